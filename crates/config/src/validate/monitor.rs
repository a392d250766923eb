//! Monitors: settings and requirements of each type of probe.

use std::path::Path;
use std::sync::Arc;

use weir_core::monitor::Schedule;

use super::monitor_answer::{body_match, drain_answer};
use super::monitor_datagrams::{dns, udp};
use super::monitor_http::http;
use super::monitor_services as services;
use crate::config::ConfiguredMember;
use crate::decode::{Context, Spanned};
use crate::document::Span;
use crate::endpoint::Endpoint;
use crate::raw::monitor::{self as raw, MonitorType};
use crate::scalar::{Duration, SECOND, show_duration};
use crate::snapshot::{GrpcProbe, Monitor, MonitorKind, ProbeTls, ScriptProbe, TcpProbe};
use crate::variants::{Choice as _, Variants as _, keys_fit};

/// Default timeout of a probe, unless the interval is shorter.
const PROBE_TIMEOUT_MS_DEFAULT: u64 = 2 * SECOND;

/// The monitors of a pool. `to_unix`: a member has no port.
pub(super) fn monitors(
    raw: &[Spanned<raw::Monitor>],
    to_unix: bool,
    directory: &Path,
    context: &mut Context,
) -> Option<Vec<Monitor>> {
    // All monitors are validated before an invalid one ends the function.
    let monitors: Vec<Option<Monitor>> =
        raw.iter().map(|raw| monitor(raw, to_unix, directory, context)).collect();
    monitors.into_iter().collect()
}

/// The own monitors of a member. Invalid ones, which were reported, are left out.
pub(super) fn of_member(
    raw: &[Spanned<raw::Monitor>],
    endpoint: &Endpoint,
    directory: &Path,
    context: &mut Context,
) -> Arc<[Monitor]> {
    need_port(raw, endpoint, context);
    monitors(raw, endpoint.is_unix(), directory, context).unwrap_or_default().into()
}

/// Reports monitors without a port for members that keep the client's port.
pub(super) fn need_ports<'m>(
    monitors: &[Spanned<raw::Monitor>],
    members: impl Iterator<Item = &'m ConfiguredMember>,
    context: &mut Context,
) {
    let mut endpoints = members.map(|member| &member.endpoint);
    if let Some(endpoint) = endpoints.find(|endpoint| endpoint.is_without_port()) {
        need_port(monitors, endpoint, context);
    }
}

fn need_port(monitors: &[Spanned<raw::Monitor>], endpoint: &Endpoint, context: &mut Context) {
    if !endpoint.is_without_port() {
        return;
    }
    let needs_port = |monitor: &&Spanned<raw::Monitor>| {
        let kind = monitor.value.kind.as_ref().map(|kind| kind.value);
        let takes_port = kind.is_none_or(|kind| raw::Monitor::takes("port", kind));
        monitor.value.port.is_none() && takes_port
    };
    for monitor in monitors.iter().filter(needs_port) {
        let message =
            format!("this monitor has no port to probe: the member `{endpoint}` has none");
        context.error_help(monitor.span, message, "add `port` to the monitor");
    }
}

/// The minimum number of passing monitors.
pub(super) fn monitors_min(
    raw: Option<&Spanned<crate::scalar::Whole<u8, 1, 255>>>,
    monitors: usize,
    context: &mut Context,
) -> Option<u8> {
    let Some(given) = raw else {
        // All monitors, for any number of monitors.
        return Some(u8::MAX);
    };
    if usize::from(given.value.0) > monitors {
        let message = format!("`monitors_min` is {}, and the pool has {monitors}", given.value.0);
        context.error_help(given.span, message, "lower it, or add monitors");
        return None;
    }
    Some(given.value.0)
}

fn monitor(
    raw: &Spanned<raw::Monitor>,
    to_unix: bool,
    directory: &Path,
    context: &mut Context,
) -> Option<Monitor> {
    let span = raw.span;
    let raw = &raw.value;
    if let Some(port) = raw.port.as_ref().filter(|_| to_unix) {
        context.error_help(
            port.span,
            "`port` does not fit a pool with a member on a unix socket",
            "remove `port`, or give the member an IP address",
        );
    }
    let schedule = schedule(raw, context);
    let kind = raw.kind.as_ref()?;
    let is_of_hosts = matches!(
        kind.value,
        MonitorType::Udp | MonitorType::Dns | MonitorType::Icmp | MonitorType::Radius
    );
    if to_unix && is_of_hosts {
        context.error_help(
            kind.span,
            format!(
                "`type: {}` does not fit a pool with a member on a unix socket",
                kind.value.word()
            ),
            "use another type, or give the member an IP address",
        );
        return None;
    }
    refuse_foreign_keys(raw, kind.value, context);
    let tls = tls(raw, kind.value, context);
    let kind = match kind.value {
        MonitorType::Tcp => MonitorKind::Tcp(tcp(raw, tls, context)?),
        MonitorType::Http | MonitorType::Https => {
            MonitorKind::Http(http(raw, tls, directory, context)?)
        }
        MonitorType::Grpc | MonitorType::Grpcs => MonitorKind::Grpc(grpc(raw, tls)),
        MonitorType::Script => MonitorKind::Script(script(raw, span, context)?),
        MonitorType::Udp => MonitorKind::Udp(udp(raw, span, context)?),
        MonitorType::Dns => MonitorKind::Dns(dns(raw, span, context)?),
        MonitorType::Icmp => MonitorKind::Icmp,
        MonitorType::Redis => MonitorKind::Redis(services::redis(raw, tls, directory, context)?),
        MonitorType::Smtp => MonitorKind::Smtp(services::smtp(raw, tls, context)?),
        MonitorType::Ldap => MonitorKind::Ldap(services::ldap(raw, tls, directory, context)?),
        MonitorType::Mysql => MonitorKind::Mysql(services::sql(raw, tls, directory, context)?),
        MonitorType::Postgresql => {
            MonitorKind::Postgresql(services::sql(raw, tls, directory, context)?)
        }
        MonitorType::Radius => {
            MonitorKind::Radius(services::radius(raw, span, directory, context)?)
        }
    };
    let is_reverse = raw.reverse.value;
    Some(Monitor { kind, schedule, port: raw.port.as_ref().map(|port| port.0), is_reverse })
}

/// Reports the keys that the monitor's type would ignore.
fn refuse_foreign_keys(raw: &raw::Monitor, kind: MonitorType, context: &mut Context) {
    keys_fit(raw, kind, context);
    if let Some(drain_on) = &raw.drain_on
        && raw::Monitor::takes("drain_on", kind)
    {
        keys_fit(&drain_on.value, kind, context);
    }
}

/// The TLS settings of a monitor; `None`: no TLS.
fn tls(raw: &raw::Monitor, kind: MonitorType, context: &mut Context) -> Option<ProbeTls> {
    let is_by_type = matches!(kind, MonitorType::Https | MonitorType::Grpcs);
    if raw.tls.value && raw.starttls.value {
        let message = "`tls` and `starttls`: a connection is encrypted from its start, or later";
        context.error_help(raw.starttls.span, message, "remove one of them");
    }
    if is_by_type || raw.tls.value || raw.starttls.value {
        let name = raw.host.as_ref().map(|host| host.value.0.as_str().into());
        let (verify, is_upgrade) = (raw.verify.value, raw.starttls.value);
        if let Some(kind) = raw.kind.as_ref().filter(|_| verify) {
            context.system_authorities(kind.span);
        }
        return Some(ProbeTls { verify, name, is_upgrade });
    }
    // Keys that do not fit the type were reported.
    if raw::Monitor::takes("tls", kind) {
        let host = raw.host.as_ref().map(|host| host.span);
        let verify = raw.verify.given.then_some(raw.verify.span);
        for (key, span) in [("verify", verify), ("host", host)] {
            if let Some(span) = span {
                let message = format!("`{key}` has no effect: the monitor speaks no TLS");
                context.error_help(span, message, "add `tls: true`, or remove it");
            }
        }
    }
    None
}

fn schedule(raw: &raw::Monitor, context: &mut Context) -> Schedule {
    let interval_ms = raw.interval.0;
    let timeout_ms = match &raw.timeout {
        None => PROBE_TIMEOUT_MS_DEFAULT.min(interval_ms),
        Some(Spanned { value: Duration(timeout_ms), span, .. }) => {
            if *timeout_ms > interval_ms {
                context.error_help(
                    *span,
                    format!(
                        "`timeout` ({}) is longer than `interval` ({}{})",
                        show_duration(*timeout_ms),
                        if raw.interval.given { "" } else { "default " },
                        show_duration(interval_ms)
                    ),
                    "probes of one member do not overlap: raise `interval` or lower `timeout`",
                );
            }
            *timeout_ms
        }
    };
    Schedule {
        interval_ms,
        timeout_ms,
        rise: raw.rise.0,
        fall: raw.fall.0,
        jitter_percent: raw.jitter.0,
        up_delay_ms: raw.up_delay.as_ref().map_or(0, |delay| delay.value.0),
    }
}

fn tcp(raw: &raw::Monitor, tls: Option<ProbeTls>, context: &mut Context) -> Option<TcpProbe> {
    let needs_receive = [
        ("send", raw.send.as_ref().map(|key| key.span)),
        ("drain_on", raw.drain_on.as_ref().map(|key| key.span)),
    ];
    for (key, span) in needs_receive {
        if let Some(span) = span.filter(|_| raw.receive.is_none()) {
            context.error_help(
                span,
                format!("with `{key}`, a monitor of type tcp needs `receive`"),
                "set the text that the answer must contain",
            );
            return None;
        }
    }
    Some(TcpProbe {
        send: match &raw.send {
            None => None,
            Some(send) => Some(send.value.bytes()?.into()),
        },
        receive: body_match(raw.receive.as_ref(), context)?,
        drain_on: match &raw.drain_on {
            None => None,
            Some(drain_on) => drain_answer(drain_on, context)?.body,
        },
        tls,
    })
}

fn grpc(raw: &raw::Monitor, tls: Option<ProbeTls>) -> GrpcProbe {
    let service = raw.service.as_ref().map_or("", |service| &service.value.0);
    let host = raw.host.as_ref().map(|host| host.value.0.as_str().into());
    GrpcProbe { service: service.into(), host, tls }
}

fn script(raw: &raw::Monitor, span: Span, context: &mut Context) -> Option<ScriptProbe> {
    let words = raw.command.as_ref().map_or(&[][..], |command| &command.value);
    let command: Vec<_> = words.iter().map(|word| word.value.0.as_str().into()).collect();
    if command.is_empty() {
        let span = raw.command.as_ref().map_or(span, |command| command.span);
        context.error_help(
            span,
            "a monitor of type script needs the command that it runs",
            "add `command: [ /path/of/the/program, argument ]`",
        );
        return None;
    }
    let program = &words[0];
    if !program.value.0.starts_with('/') {
        context.error_help(
            program.span,
            "the program of a monitor must have its whole path",
            "begin it with `/`; for a line of shell: `[ /bin/sh, -c, \"…\" ]`",
        );
        return None;
    }
    if let Some(word) = words.iter().find(|word| word.value.0.contains('\0')) {
        context.error(word.span, "a word of a command cannot have a NUL in it");
        return None;
    }
    Some(ScriptProbe { command: command.into() })
}

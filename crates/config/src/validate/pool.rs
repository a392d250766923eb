//! Pools, their members and monitors.

use std::collections::HashMap;
use std::net::IpAddr;

use regex::bytes::RegexBuilder;
use weir_core::balance::Method;
use weir_core::monitor::{PassiveSettings, Schedule};

use crate::address::Endpoint;
use crate::config::ConfiguredMember;
use crate::decode::{Context, NamedItem, Section as _, Spanned, or_absent};
use crate::quote::clip;
use crate::raw::{self, Balance, Expect, MonitorType};
use crate::scalar::{Duration, SECOND, Text, show_duration};
use crate::shapes::{BodyExpectation, MemberEntry};
use crate::snapshot::{
    Address, BodyMatch, HttpProbe, Monitor, MonitorKind, Pool, ProbeTls, ReuseSettings,
};
use crate::tree::Span;

/// Largest compiled regular expression of a monitor.
const REGEX_SIZE_BYTES_MAX: usize = 1 << 20;

/// A probe's timeout when the file gives none and the interval is not shorter.
const PROBE_TIMEOUT_MS_DEFAULT: u64 = 2 * SECOND;

/// The pool without its members, if it is sound, and the sound ones among its members.
pub(super) fn pool(
    item: &NamedItem<raw::Pool>,
    context: &mut Context,
) -> (Option<Pool>, Vec<ConfiguredMember>) {
    let Some(raw) = &item.value else {
        return (None, Vec::new());
    };
    let entries = raw.members.as_ref().map_or(&[][..], |members| &members.value);
    let source = raw.source.as_ref().map(|source| source.value.0);
    let members = members(&clip(&item.name), entries, source, context);
    let to_unix =
        members.iter().any(|member| matches!(member.endpoint, Endpoint::Literal(Address::Unix(_))));
    let monitors = raw.monitors.as_ref().map_or(&[][..], |monitors| &monitors.value);
    let monitors: Vec<Option<Monitor>> =
        monitors.iter().map(|raw| monitor(raw, to_unix, context)).collect();
    let reuse = or_absent(raw.reuse.as_ref());
    let model = monitors.into_iter().collect::<Option<Vec<Monitor>>>().map(|monitors| Pool {
        name: item.name.as_str().into(),
        balance: match raw.balance.value {
            Balance::RoundRobin => Method::RoundRobin,
            Balance::LeastConnections => Method::LeastConnections,
        },
        members: Vec::new(),
        monitors,
        passive: raw.passive.as_ref().map(|passive| self::passive(passive)),
        reuse: ReuseSettings {
            idle_per_worker: reuse.idle_per_worker.0,
            idle_timeout_ms: reuse.idle_timeout.0,
            requests_max: reuse.requests_max.0,
        },
        retries: raw.retries.0,
        connect_timeout_ms: raw.connect_timeout.0,
        response_timeout_ms: raw.response_timeout.0,
        source,
    });
    (model, members)
}

fn passive(raw: &raw::Passive) -> PassiveSettings {
    // The types bound both durations to a day, which 32 bits of milliseconds hold 49 times.
    let milliseconds = |duration: u64| u32::try_from(duration).unwrap_or(u32::MAX);
    PassiveSettings {
        failures: raw.failures.0,
        window_ms: milliseconds(raw.window.0),
        eject_ms: milliseconds(raw.eject.0),
    }
}

fn members(
    pool: &str,
    entries: &[Spanned<MemberEntry>],
    source: Option<IpAddr>,
    context: &mut Context,
) -> Vec<ConfiguredMember> {
    let mut seen: HashMap<&Endpoint, Span> = HashMap::new();
    let mut members = Vec::with_capacity(entries.len());
    for Spanned { value: MemberEntry(raw), .. } in entries {
        let Some(address) = &raw.address else {
            continue;
        };
        let endpoint = &address.value;
        if let Some(first) = seen.get(endpoint) {
            context.error_help(
                address.span,
                format!(
                    "`{endpoint}` is a member of pool `{pool}` twice; the first is in line {}",
                    first.line
                ),
                "keep one; `weight` gives a member more traffic",
            );
            continue;
        }
        seen.insert(endpoint, address.span);
        if let (Some(source), Endpoint::Literal(Address::Socket(socket))) = (source, endpoint)
            && source.is_ipv4() != socket.is_ipv4()
        {
            context.error_help(
                address.span,
                format!("`{endpoint}` cannot be reached from the pool's source address {source}"),
                "use one address family, IPv4 or IPv6, for both",
            );
        }
        members.push(ConfiguredMember {
            endpoint: endpoint.clone(),
            weight: raw.weight.0,
            connections_max: raw.connections_max.as_ref().map(|limit| limit.0),
        });
    }
    members
}

fn monitor(raw: &raw::Monitor, to_unix: bool, context: &mut Context) -> Option<Monitor> {
    if let Some(port) = raw.port.as_ref().filter(|_| to_unix) {
        context.error_help(
            port.span,
            "`port` does not fit a pool with a member on a unix socket",
            "remove `port`, or give the member an IP address",
        );
    }
    let schedule = schedule(raw, context);
    let kind = raw.kind.as_ref()?;
    refuse_foreign_keys(raw, kind.value, context);
    let kind = match kind.value {
        MonitorType::Tcp => MonitorKind::Tcp,
        MonitorType::Http => MonitorKind::Http(probe(raw, None, context)?),
        MonitorType::Https => {
            let verify = raw.verify.value;
            MonitorKind::Http(probe(raw, Some(ProbeTls { verify }), context)?)
        }
    };
    Some(Monitor { kind, schedule, port: raw.port.as_ref().map(|port| port.0) })
}

/// A key that the monitor's type would ignore is a mistake.
fn refuse_foreign_keys(raw: &raw::Monitor, kind: MonitorType, context: &mut Context) {
    let keys = [
        ("path", raw.path.given.then_some(raw.path.span)),
        ("host", raw.host.as_ref().map(|key| key.span)),
        ("expect", raw.expect.as_ref().map(|key| key.span)),
        ("verify", raw.verify.given.then_some(raw.verify.span)),
    ];
    for (key, span) in keys {
        let (foreign, fitting) = match (kind, key) {
            (MonitorType::Tcp, "verify") => ("tcp", "https"),
            (MonitorType::Tcp, _) => ("tcp", "http"),
            (MonitorType::Http, "verify") => ("http", "https"),
            (MonitorType::Http | MonitorType::Https, _) => continue,
        };
        if let Some(span) = span {
            context.error_help(
                span,
                format!("`{key}` does not apply to a monitor of type {foreign}"),
                format!("remove it, or use `type: {fitting}`"),
            );
        }
    }
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
    }
}

fn probe(raw: &raw::Monitor, tls: Option<ProbeTls>, context: &mut Context) -> Option<HttpProbe> {
    let expect = raw.expect.as_ref().map_or_else(Expect::absent, |expect| expect.value.clone());
    let expect_body = match &expect.body {
        None => None,
        Some(body) => Some(body_match(&body.value, context)?),
    };
    Some(HttpProbe {
        path: raw.path.value.0.as_str().into(),
        host: raw.host.as_ref().map(|host| host.value.0.as_str().into()),
        tls,
        expect_status: expect.status.value.0,
        expect_body,
    })
}

fn body_match(body: &BodyExpectation, context: &mut Context) -> Option<BodyMatch> {
    match body {
        BodyExpectation::Substring(Text(text)) => Some(BodyMatch::Substring(text.as_str().into())),
        BodyExpectation::Regex(raw) => {
            let regex = raw.regex.as_ref()?;
            compile(regex, context).map(BodyMatch::Regex)
        }
    }
}

fn compile(regex: &Spanned<Text>, context: &mut Context) -> Option<regex::bytes::Regex> {
    let pattern = regex.value.0.as_str();
    if let Err(error) = regex_syntax::ParserBuilder::new().utf8(false).build().parse(pattern) {
        let (reason, offset_bytes) = match &error {
            regex_syntax::Error::Parse(error) => {
                (error.kind().to_string(), error.span().start.offset)
            }
            regex_syntax::Error::Translate(error) => {
                (error.kind().to_string(), error.span().start.offset)
            }
            other => (other.to_string(), 0),
        };
        let offset = pattern.get(..offset_bytes).map_or(0, |before| before.chars().count());
        context.error_help(
            within(regex.span, pattern, offset),
            format!("the regular expression is not valid: {reason}, at character {}", offset + 1),
            "a special character that means itself is written with a backslash, in single quotes",
        );
        return None;
    }
    match RegexBuilder::new(pattern).size_limit(REGEX_SIZE_BYTES_MAX).build() {
        Ok(regex) => Some(regex),
        Err(_) => {
            context.error_help(
                regex.span,
                format!(
                    "the regular expression needs more than {} KiB when compiled",
                    REGEX_SIZE_BYTES_MAX >> 10
                ),
                "lower the counts of its repetitions",
            );
            None
        }
    }
}

/// The place of a character of a scalar, when the file has the text as it is: bare, or in quotes
/// without escapes. Otherwise the scalar's own place.
fn within(span: Span, text: &str, offset: usize) -> Span {
    let characters = text.chars().count();
    let quotes = match span.length.checked_sub(characters) {
        Some(0) => 0,
        Some(2) => 1,
        _ => return span,
    };
    Span::at(span.line, span.column + quotes + offset)
}

//! Pools, their members and monitors.

use std::collections::HashMap;
use std::net::IpAddr;

use regex::bytes::RegexBuilder;
use weir_core::admin_state::AdminState;
use weir_core::balance::Method;
use weir_core::expression::Purpose;
use weir_core::monitor::{PassiveSettings, Schedule};
use weir_core::retry::BudgetSettings;

use super::policy::Compiler;
use super::{files, limit};
use crate::address::Endpoint;
use crate::config::ConfiguredMember;
use crate::decode::{Context, NamedItem, Section as _, Spanned, or_absent};
use crate::quote::clip;
use crate::raw::{self, Balance, Expect, MonitorType};
use crate::scalar::{Duration, SECOND, Text, show_duration};
use crate::shapes::{BalanceOr, BodyExpectation, MemberEntry, MemberState};
use crate::snapshot::{
    self, Address, BodyMatch, HttpProbe, Monitor, MonitorKind, PassiveMarking, Pool, ProbeTls,
    ProxyVersion, QueueSettings, ReuseSettings,
};
use crate::tree::Span;

/// Largest compiled regular expression of a monitor.
const REGEX_SIZE_BYTES_MAX: usize = 1 << 20;

/// The longest ejection when the file gives none, in ejections of the first length.
const EJECT_GROWTH_DEFAULT: u64 = 10;

/// A probe's timeout when the file gives none and the interval is not shorter.
const PROBE_TIMEOUT_MS_DEFAULT: u64 = 2 * SECOND;

/// The pool without its members, if it is sound, and the sound ones among its members.
pub(super) fn pool(
    item: &NamedItem<raw::Pool>,
    compiler: &mut Compiler<'_>,
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
    let model = model(item, raw, monitors, compiler, context);
    (model, members)
}

fn model(
    item: &NamedItem<raw::Pool>,
    raw: &raw::Pool,
    monitors: Vec<Option<Monitor>>,
    compiler: &mut Compiler<'_>,
    context: &mut Context,
) -> Option<Pool> {
    let source = raw.source.as_ref().map(|source| source.value.0);
    let reuse = or_absent(raw.reuse.as_ref());
    let balance = balance(raw, compiler, context);
    let fallback = match &raw.fallback {
        None => None,
        Some(name) => {
            let found = compiler.pool(name, context)?;
            if name.value.0 == item.name {
                context.error(name.span, "a pool cannot be its own fallback");
                return None;
            }
            Some(found)
        }
    };
    let maintenance = match &raw.maintenance {
        None => None,
        Some(page) => Some(files::page(&page.value, page.span, compiler.directory, context)?),
    };
    let monitors: Vec<Monitor> = monitors.into_iter().collect::<Option<_>>()?;
    let monitors_min = monitors_min(raw, monitors.len(), context)?;
    Some(Pool {
        name: item.name.as_str().into(),
        balance: balance?,
        members: Vec::new(),
        monitors,
        active_members_min: or_absent(raw.priority.as_ref()).active_members_min.0,
        slow_start_ms: raw.slow_start.as_ref().map(|slow_start| slow_start.value.0),
        queue: raw.queue.as_ref().map(|queue| QueueSettings {
            length_max: queue.length_max.0,
            timeout_ms: queue.timeout.0,
        }),
        fallback,
        monitors_min,
        retry_budget: raw.retry_budget.as_ref().map(|budget| BudgetSettings {
            share_percent: budget.share.0.into(),
            floor_per_s: budget.per_second_min.0,
        }),
        maintenance,
        proxy_protocol: match raw.proxy_protocol.value {
            raw::ProxyProtocol::Off => None,
            raw::ProxyProtocol::V1 => Some(ProxyVersion::V1),
            raw::ProxyProtocol::V2 => Some(ProxyVersion::V2),
        },
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
    })
}

fn balance(
    raw: &raw::Pool,
    compiler: &mut Compiler<'_>,
    context: &mut Context,
) -> Option<snapshot::Balance> {
    Some(match &raw.balance.value {
        BalanceOr::Method(Balance::RoundRobin) => snapshot::Balance::Method(Method::RoundRobin),
        BalanceOr::Method(Balance::LeastConnections) => {
            snapshot::Balance::Method(Method::LeastConnections)
        }
        BalanceOr::Method(Balance::LeastResponseTime) => {
            snapshot::Balance::Method(Method::LeastResponseTime)
        }
        BalanceOr::Method(Balance::RandomTwo) => snapshot::Balance::Method(Method::RandomTwo),
        BalanceOr::Method(Balance::SourceAddress) => snapshot::Balance::SourceAddress,
        BalanceOr::Hash(raw) => {
            let hash = raw.hash.as_ref()?;
            let text = &hash.value.0;
            // An expression may stand there by itself.
            let bare = format!("${{{text}}}");
            let text = if text.contains("${") { text } else { &bare };
            snapshot::Balance::Hash(compiler.template(text, hash.span, Purpose::Plain, context)?)
        }
    })
}

/// How many monitors must pass.
fn monitors_min(raw: &raw::Pool, monitors: usize, context: &mut Context) -> Option<u8> {
    let Some(given) = &raw.monitors_min else {
        return Some(u8::try_from(monitors).unwrap_or(u8::MAX));
    };
    if usize::from(given.value.0) > monitors {
        let message = format!("`monitors_min` is {}, and the pool has {monitors}", given.value.0);
        context.error_help(given.span, message, "lower it, or add monitors");
        return None;
    }
    Some(given.value.0)
}

fn passive(raw: &raw::Passive) -> PassiveMarking {
    // The types bound both durations to a day, which 32 bits of milliseconds hold 49 times.
    let milliseconds = |duration: u64| u32::try_from(duration).unwrap_or(u32::MAX);
    let eject_max_ms =
        raw.eject_max.as_ref().map_or(raw.eject.0 * EJECT_GROWTH_DEFAULT, |max| max.value.0);
    PassiveMarking {
        counting: PassiveSettings {
            failures: raw.failures.0,
            window_ms: milliseconds(raw.window.0),
            eject_ms: milliseconds(raw.eject.0),
        },
        eject_max_ms: milliseconds(eject_max_ms.max(raw.eject.0)),
        ejected_share_max_percent: raw.ejected_share_max.0,
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
            rate: raw
                .requests_per_second_max
                .as_ref()
                .and_then(|limit| limit::rate(limit.value.0, None, limit.span, context)),
            priority: raw.priority.0,
            state: match raw.state.value {
                MemberState::Enabled => AdminState::Enabled,
                MemberState::Drain => AdminState::Drain,
                MemberState::Disabled => AdminState::Disabled,
            },
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
pub(super) fn within(span: Span, text: &str, offset: usize) -> Span {
    let characters = text.chars().count();
    let quotes = match span.length.checked_sub(characters) {
        Some(0) => 0,
        Some(2) => 1,
        _ => return span,
    };
    Span::at(span.line, span.column + quotes + offset)
}

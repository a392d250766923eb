//! Pools, their members and monitors.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use weir_core::admin_state::AdminState;
use weir_core::balance::Method;
use weir_core::expression::Purpose;
use weir_core::monitor::PassiveSettings;
use weir_core::retry::BudgetSettings;
use weir_http::flaws::{Flaw, Flaws};

use super::compiler::Compiler;
use super::server::half_closed;
use super::tls::TlsProfiles;
use super::{files, limit, monitor, source};
use crate::config::ConfiguredMember;
use crate::decode::{Context, NamedItem, Spanned, if_given, or_absent};
use crate::document::Span;
use crate::endpoint::Endpoint;
use crate::quote::clip;
use crate::rate::Rate;
use crate::raw::member::{Member, MemberEntry, MemberState};
use crate::raw::{self, Balance, BalanceOr, Leniency};
use crate::snapshot::{
    self, Address, Maintenance, Monitor, PassiveMarking, Pool, PoolSubstitutes, PoolTls,
    ProxyVersion, QueueSettings, Retries, ReuseSettings, Source, Spillover,
};

/// Default maximum ejection, as a multiple of the first ejection.
const EJECT_GROWTH_DEFAULT: u64 = 10;

/// The pool without its members, if it is valid, and its valid members.
pub(super) fn pool(
    item: &NamedItem<raw::Pool>,
    compiler: &mut Compiler<'_>,
    tls: &mut TlsProfiles<'_>,
    context: &mut Context,
) -> (Option<Pool>, Vec<ConfiguredMember>) {
    let Some(raw) = &item.value else {
        return (None, Vec::new());
    };
    let entries = raw.members.as_ref().map_or(&[][..], |members| &members.value);
    if let Some(members) = raw.members.as_ref().filter(|members| members.value.is_empty()) {
        let message = format!("pool `{}` has no members: its requests get 503", clip(&item.name));
        context.warning_help(members.span, message, "add members before it gets traffic");
    }
    let source = source::source(raw, context);
    let directory = compiler.directory;
    let members = members(&clip(&item.name), entries, (&source, directory), context);
    let to_unix = members.iter().any(|member| member.endpoint.is_unix());
    let monitors = raw.monitors.as_ref().map_or(&[][..], |monitors| &monitors.value);
    // Members with their own monitors are probed only by these.
    let probed = || members.iter().filter(|member| member.monitors.is_none());
    monitor::need_ports(monitors, probed(), context);
    let is_probed_by_path = probed().any(|member| member.endpoint.is_unix());
    let monitors = monitor::monitors(monitors, is_probed_by_path, directory, context);
    let of_members = members.iter().filter_map(|member| member.monitors.as_ref());
    let monitors_max = of_members.map(|monitors| monitors.len()).max();
    let http2 = raw.http2.value;
    if http2 && raw.proxy_protocol.value != raw::ProxyProtocol::Off {
        context.error_help(
            raw.http2.span,
            "`http2` cannot be used with `proxy_protocol`: a connection that many clients share cannot name one",
            "remove one of them, or tell members the client's address by `x_forwarded_for`",
        );
    }
    let lenient = lenient(raw, context);
    let tls = match &raw.tls {
        None => Some(None),
        Some(raw) => tls.of_pool(raw, (to_unix, http2), context).map(|tls| Some(Arc::new(tls))),
    };
    let model = model(item, raw, (monitors, monitors_max), tls, compiler, context);
    (model.map(|model| Pool { lenient, source, ..model }), members)
}

/// Tolerated flaws of responses: the default ones and those of the pool.
fn lenient(raw: &raw::Pool, context: &mut Context) -> Flaws {
    let named = raw.lenient.as_ref().map_or(&[][..], |named| &named.value);
    named.iter().fold(Flaws::USUAL, |flaws, named| {
        let flaw = match named.value {
            Leniency::BareLineFeeds => Flaw::BareLineFeed,
            Leniency::ControlCharacters => Flaw::ControlCharacter,
            Leniency::UnknownStatus => Flaw::UnknownStatus,
            Leniency::RepeatedChunked => Flaw::RepeatedChunked,
        };
        let is_of_http1 =
            matches!(flaw, Flaw::BareLineFeed | Flaw::ControlCharacter | Flaw::RepeatedChunked);
        if flaws.have(flaw) {
            context.warning_help(named.span, "`lenient` names the same twice", "remove one");
        } else if raw.http2.value && is_of_http1 {
            let message = "this is about HTTP/1, and the pool's members speak HTTP/2 (`http2`)";
            context.warning_help(named.span, message, "remove it");
        }
        flaws.with(flaw)
    })
}

fn model(
    item: &NamedItem<raw::Pool>,
    raw: &raw::Pool,
    (monitors, monitors_max): (Option<Vec<Monitor>>, Option<usize>),
    tls: Option<Option<Arc<PoolTls>>>,
    compiler: &mut Compiler<'_>,
    context: &mut Context,
) -> Option<Pool> {
    let reuse = or_absent(raw.reuse.as_ref());
    let balance = balance(raw, compiler, context);
    let instead = instead(raw, compiler, context);
    let retries = retries(raw, context);
    let monitors = monitors?;
    let monitors_min = monitor::monitors_min(
        raw.monitors_min.as_ref(),
        monitors.len().max(monitors_max.unwrap_or(0)),
        context,
    )?;
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
            half_closed: queue.half_closed.as_ref().map(|it| half_closed(it.value)),
        }),
        instead: instead?,
        monitors_min,
        proxy_protocol: match raw.proxy_protocol.value {
            raw::ProxyProtocol::Off => None,
            raw::ProxyProtocol::V1 => Some(ProxyVersion::V1),
            raw::ProxyProtocol::V2 => Some(ProxyVersion::V2),
        },
        tls: tls?,
        http2: raw.http2.value,
        passive: raw.passive.as_ref().map(|passive| self::passive(passive)),
        reuse: ReuseSettings {
            idle_per_worker: reuse.idle_per_worker.0,
            idle_timeout_ms: reuse.idle_timeout.0,
            requests_max: reuse.requests_max.0,
            binds: reuse.connection_authentication.value == raw::ConnectionAuthentication::Bind,
        },
        retries: retries?,
        connect_timeout_ms: raw.connect_timeout.0,
        response_timeout_ms: raw.response_timeout.0,
        source: Source::System,
        lenient: Flaws::USUAL,
    })
}

/// Substitutes for requests that the pool does not take.
fn instead(
    raw: &raw::Pool,
    compiler: &mut Compiler<'_>,
    context: &mut Context,
) -> Option<PoolSubstitutes> {
    let fallback = if_given(raw.fallback.as_ref(), |name| compiler.pool(name, context));
    let spillover = if_given(raw.spillover.as_ref(), |spillover| {
        let connections = spillover.value.connections.as_ref();
        let pool = compiler.pool(spillover.value.pool.as_ref()?, context)?;
        Some(Spillover { pool, connections: connections.map(|connections| connections.value.0) })
    });
    let maintenance =
        if_given(raw.maintenance.as_ref(), |given| maintenance(given, compiler, context));
    if let Some(spillover) = &raw.spillover
        && spillover.value.connections.is_none()
        && raw
            .members
            .iter()
            .flat_map(|members| members.iter())
            .any(|member| member.value.0.connections_max.is_none())
    {
        let message =
            "`spillover` has no effect: a member without `connections_max` always has room";
        context.warning_help(
            spillover.span,
            message,
            "set the number of open requests: `connections: 1000`",
        );
    }
    Some(PoolSubstitutes { fallback: fallback?, spillover: spillover?, maintenance: maintenance? })
}

fn maintenance(
    raw: &Spanned<raw::Maintenance>,
    compiler: &mut Compiler<'_>,
    context: &mut Context,
) -> Option<Maintenance> {
    let given = &raw.value;
    let page = (given.body.as_ref(), given.file.as_ref(), given.content_type.as_ref());
    let Some(to) = &given.redirect else {
        return files::page(page, raw.span, compiler.directory, context).map(Maintenance::Page);
    };
    let of_page = [
        ("body", given.body.as_ref().map(|it| it.span)),
        ("file", given.file.as_ref().map(|it| it.span)),
        ("content_type", given.content_type.as_ref().map(|it| it.span)),
    ];
    for (key, span) in of_page {
        if let Some(span) = span {
            let message = format!(
                "`{key}` cannot be used with `redirect`: a client gets a page or is sent elsewhere"
            );
            context.error_help(span, message, "remove one of them");
            return None;
        }
    }
    let url = compiler.template(&to.value.0, to.span, Purpose::Uri, context)?;
    let Some(constant) = url.constant().filter(|url| !url.is_empty()) else {
        context.error_help(
            to.span,
            "`redirect` of a pool is the same for every request",
            "write a URL without `${…}`; rules can send each request elsewhere (`redirect`)",
        );
        return None;
    };
    Some(Maintenance::Redirect(constant.into()))
}

fn retries(raw: &raw::Pool, context: &mut Context) -> Option<Retries> {
    let mut is_sound = true;
    let on = raw.retry_on.as_ref().map_or(&[][..], |on| &on.value);
    for (index, status) in on.iter().enumerate() {
        let code = status.value.0;
        if !(400..=599).contains(&code) {
            let message = format!("a response of status {code} is not tried again");
            context.error_help(status.span, message, "name statuses from 400 to 599");
            is_sound = false;
        } else if on[..index].iter().any(|before| before.value.0 == code) {
            context.warning_help(status.span, "`retry_on` names the same twice", "remove one");
        }
    }
    if let (Some(on), 0) = (&raw.retry_on, raw.retries.0) {
        let message = "`retry_on` without `retries`: no other member is tried";
        context.error_help(on.span, message, "set `retries` to 1 or more, or remove it");
        is_sound = false;
    }
    if raw.retry_non_idempotent.value && on.is_empty() {
        let message = "`retry_non_idempotent` has no effect without `retry_on`";
        context.error_help(raw.retry_non_idempotent.span, message, "add `retry_on`, or remove it");
        is_sound = false;
    }
    let budget = raw.retry_budget.as_ref().map(|budget| BudgetSettings {
        share_percent: budget.share.0.into(),
        floor_per_s: budget.per_second_min.0,
    });
    is_sound.then(|| Retries {
        max: raw.retries.0,
        budget,
        on: on.iter().map(|status| status.value.0).collect(),
        non_idempotent: raw.retry_non_idempotent.value,
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
            // An expression without `${…}` is accepted too.
            let bare = format!("${{{text}}}");
            let text = if text.contains("${") { text } else { &bare };
            snapshot::Balance::Hash(compiler.member_key(text, hash.span, context)?)
        }
    })
}

fn passive(raw: &raw::Passive) -> PassiveMarking {
    // Both durations are at most a day, which is much less than the range of 32 bits in milliseconds.
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
    (source, directory): (&Source, &Path),
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
            let place = context.place(*first, address.span);
            context.error_help(
                address.span,
                format!("`{endpoint}` is a member of pool `{pool}` twice; the first is in {place}"),
                "keep one; `weight` gives a member more traffic",
            );
            continue;
        }
        seen.insert(endpoint, address.span);
        if let (Some(own), Endpoint::Literal(Address::Socket(socket))) =
            (source.addresses(), endpoint)
            && let [source, others @ ..] = own.addresses.as_slice()
            && !own.addresses.iter().any(|own| own.is_ipv4() == socket.is_ipv4())
        {
            context.error_help(
                address.span,
                format!(
                    "`{endpoint}` cannot be reached from the pool's source address{} {source}",
                    if others.is_empty() { "" } else { "es, such as" }
                ),
                "use one address family, IPv4 or IPv6, for both",
            );
        }
        let monitors = raw.monitors.as_ref();
        let monitors =
            monitors.map(|own| monitor::of_member(&own.value.0, endpoint, directory, context));
        let member = configured_member(raw, endpoint, context);
        members.push(ConfiguredMember { monitors, ..member });
    }
    refuse_no_weight(pool, entries, &members, context);
    members
}

/// A member without monitors of its own.
pub(crate) fn configured_member(
    raw: &Member,
    endpoint: &Endpoint,
    context: &mut Context,
) -> ConfiguredMember {
    ConfiguredMember {
        endpoint: endpoint.clone(),
        weight: raw.weight.0,
        connections_max: raw.connections_max.as_ref().map(|limit| limit.0),
        rate: raw.requests_per_second_max.as_ref().and_then(|limit| {
            let rate = Rate { count: limit.value.0, period_ms: limit::PER_SECOND_MS };
            limit::rate(rate, None, limit.span, context)
        }),
        priority: raw.priority.0,
        state: match raw.state.value {
            MemberState::Enabled => AdminState::Enabled,
            MemberState::Drain => AdminState::Drain,
            MemberState::Disabled => AdminState::Disabled,
        },
        monitors: None,
    }
}

/// Refuses pools in which all members have weight 0: no member would take new requests.
fn refuse_no_weight(
    pool: &str,
    entries: &[Spanned<MemberEntry>],
    members: &[ConfiguredMember],
    context: &mut Context,
) {
    if let Some(first) = entries.first()
        && !members.is_empty()
        && members.iter().all(|member| member.weight == 0)
    {
        context.error_help(
            first.span,
            format!("every member of pool `{pool}` has the weight 0: no member takes new requests"),
            "give at least one a higher weight; to take the pool out of service write `state: drain`",
        );
    }
}

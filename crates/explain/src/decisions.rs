//! The decisions of one virtual server about a request.

use weir_api::explanation::{Considered, PoolTold, Rewrite};
use weir_core::clock::Clock;
use weir_core::policy::{End, PoolChoice, RewriteError, Subrequest};
use weir_exchange::local::pool::Preference;
use weir_exchange::local::traffic::{Route, RoutingVerdict};
use weir_exchange::parts::witness::ServerDecision;
use weir_exchange::shared::live::LiveTable;

use crate::masks::Masks;
use crate::rules::RuleTexts;
use crate::{limits, persistence, rules};

/// Describes a decision. `live`: the state before the request.
pub fn told(
    decided: &mut ServerDecision<'_, '_>,
    live: &LiveTable,
    now: Clock,
    masks: &Masks,
) -> Considered {
    let limits = limits::of_request(decided, live, now, masks);
    let (client, client_from) = client(decided);
    let telling = RuleTexts {
        snapshot: decided.traffic.snapshot(),
        masks,
        followed: &decided.decision.followed,
    };
    let policies = &decided.traffic.settings().policies;
    let policies = rules::for_request(policies, decided.evaluation, &telling);
    let route = match decided.verdict {
        RoutingVerdict::Forward(route) => Some(route),
        _ => None,
    };
    Considered {
        virtual_server: decided.traffic.settings().name.to_string(),
        client,
        client_from,
        limits,
        policies,
        rewrites: rewrites(decided, masks),
        authentication: authentication(decided),
        verdict: verdict(decided, now),
        pool: route.map(|route| pool(decided, route)),
        persistence: route.and_then(|route| persistence::of(decided, route)),
    }
}

fn client(decided: &ServerDecision<'_, '_>) -> (Option<String>, String) {
    let client = decided.facts.client;
    let arrival = decided.arrival;
    let from = match arrival.entry() {
        Some(entry) => format!("virtual server {}", entry.server.live.name),
        None if client == arrival.peer() => "the connection".into(),
        None => format!("a trusted proxy, by {}", arrival.client_address().header),
    };
    (client.map(|client| client.ip().to_string()), from)
}

fn rewrites(decided: &ServerDecision<'_, '_>, masks: &Masks) -> Vec<Rewrite> {
    let (edits, facts) = (&decided.decision.request, decided.facts);
    let (head, input) = (facts.request, facts.request_input);
    let parts = [
        ("path", head.member_path(input), edits.path()),
        ("query", head.query(input).unwrap_or_default(), edits.query()),
        ("host", head.authority(input), edits.authority()),
    ];
    let told = |(part, before, after): (&str, &[u8], Option<&[u8]>)| {
        let after = after.filter(|after| *after != before)?;
        let text = |text: &[u8]| match part {
            "query" => masks.target(&[b"?", text].concat()).trim_start_matches('?').to_owned(),
            _ => masks.target(text),
        };
        Some(Rewrite { part: part.into(), before: text(before), after: text(after) })
    };
    parts.into_iter().filter_map(told).collect()
}

fn authentication(decided: &ServerDecision<'_, '_>) -> Vec<String> {
    let asked = &decided.decision.authentication;
    let logins = asked.logins.iter().map(|it| format!("`{}` checks its password", it.by.name));
    let later = decided.decision.subrequests.iter().filter_map(Subrequest::check_told);
    let refused = asked.is_refused.then(|| "it has not shown who it is from".to_owned());
    logins.chain(later).chain(refused).collect()
}

fn verdict(decided: &ServerDecision<'_, '_>, now: Clock) -> String {
    let held_back = |until_us: u64| match until_us.saturating_sub(now.now_us()) {
        0 => String::new(),
        left_us => format!(", held back for {} ms by a limit", left_us.div_ceil(1_000)),
    };
    match decided.verdict {
        RoutingVerdict::Forward(route) => {
            let pool = decided.traffic.pool(route.pool);
            format!("goes to pool {}{}", pool.settings().name, held_back(route.not_before_us))
        }
        RoutingVerdict::HandedOver { to, not_before_us } => {
            let servers = &decided.traffic.snapshot().virtual_servers;
            let name = servers.get(*to).map_or("", |server| &server.name);
            format!("is handed to virtual server {name}{}", held_back(*not_before_us))
        }
        RoutingVerdict::End { not_before_us } => {
            let how = match &decided.decision.end {
                Some(End::Answer { status, .. }) => format!("is answered with {status} by a rule"),
                Some(End::Reset) => "is reset by a rule".into(),
                _ => "is closed by a rule".into(),
            };
            how + &held_back(*not_before_us)
        }
        RoutingVerdict::Misdirected => {
            "is for a name with other TLS settings than its connection".into()
        }
        RoutingVerdict::Limited { retry_after_s } => {
            format!("is above a limit: another would pass in {retry_after_s} s")
        }
        RoutingVerdict::LimitClosed => "is above a limit that closes connections".into(),
        RoutingVerdict::Failed(error) => format!("cannot be sent: {}", unsendable(*error)),
    }
}

fn unsendable(error: RewriteError) -> &'static str {
    match error {
        RewriteError::Path => "rules make an invalid path of it",
        RewriteError::Query => "rules make an invalid query of it",
        RewriteError::Host => "rules make an invalid host of it",
        RewriteError::Length => "rules make a text of it that is too long",
    }
}

fn pool(decided: &ServerDecision<'_, '_>, route: &Route) -> PoolTold {
    let server = decided.traffic.settings();
    let name = |index: usize| decided.traffic.pool(index).settings().name.to_string();
    let (chosen, because) = match &decided.decision.pool {
        None => (Some(server.pool), "the pool of the virtual server".to_owned()),
        Some(PoolChoice::One(pool)) => (Some(*pool as usize), "a rule chooses it".to_owned()),
        Some(PoolChoice::Split(split)) => {
            let is_among = split.pools().any(|pool| pool == route.pool);
            let because = "a rule draws it by weight, or persistence has it".to_owned();
            (is_among.then_some(route.pool), because)
        }
    };
    let because = match chosen {
        Some(chosen) if chosen != route.pool => {
            format!("instead of {}, which is down or full", name(chosen))
        }
        Some(_) => because,
        None => "instead of those that a rule draws from, which are down or full".into(),
    };
    let is_split = matches!(&decided.decision.pool, Some(PoolChoice::Split(_)));
    let is_drawn = is_split && route.preference == Preference::Any;
    PoolTold { name: name(route.pool), because, is_drawn }
}

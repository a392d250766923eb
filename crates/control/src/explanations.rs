//! Explanations of requests, with the state of this process or with a configuration alone.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use weir_api::asked::Asked;
use weir_api::explanation::Explanation;
use weir_config::snapshot::{PersistenceKind, Snapshot};
use weir_config::{Config, Resolutions};
use weir_core::monitor::Health;
use weir_event_loop::{clock, random, wall_clock};
use weir_exchange::environment::Environment;
use weir_exchange::local::surroundings::Sources;
use weir_exchange::shared::live::LiveTable;
use weir_explain::{ExplainError, Moment};

/// The first of the addresses that stand for unresolved host names. The addresses are reserved for benchmarks (RFC 2544).
const STAND_IN_FIRST: u32 = Ipv4Addr::new(198, 18, 0, 1).to_bits();

/// The current time.
pub fn now() -> Moment {
    let sources = Sources { unix_s: wall_clock::unix_s, fill_randomly: random::fill };
    Moment { clock: clock::now(), sources, cpu_us: clock::thread_cpu_us }
}

/// Explains a request with a configuration, as if all members were up. Host names are not resolved.
///
/// # Errors
/// The request is ambiguous or invalid.
pub fn by_configuration(config: &Config, asked: &Asked) -> Result<Explanation, ExplainError> {
    let stand_ins = stand_ins(config);
    let moment = now();
    let outside = Environment { clock: moment.clock, fill_randomly: moment.sources.fill_randomly };
    let snapshot = Arc::new(config.snapshot(&stand_ins));
    let live = LiveTable::build(Arc::clone(&snapshot), None, 1, &outside);
    for member in live.pools.iter().flat_map(|pool| &pool.members) {
        member.set_health(Health::Up, 0);
    }
    let mut explanation = weir_explain::explain(&live, asked, moment)?;
    explanation
        .remarks
        .push("by the configuration alone: all members count as up, and idle".into());
    let used = stand_ins.iter().filter(|(name, _)| reaches(&explanation, name));
    let remarks: Vec<String> =
        used.map(|(name, addresses)| stand_in_told(name, addresses)).collect();
    explanation.remarks.extend(remarks);
    if has_own_cookies(&snapshot, &explanation) {
        let remark = "persistence cookies count as unknown: only a running weir has the key";
        explanation.remarks.push(remark.into());
    }
    Ok(explanation)
}

fn stand_ins(config: &Config) -> Resolutions {
    let names = config.host_names().map(str::to_owned);
    let addresses = (STAND_IN_FIRST..).map(|bits| vec![IpAddr::V4(Ipv4Addr::from_bits(bits))]);
    names.zip(addresses).collect::<BTreeMap<_, _>>()
}

fn stand_in_told(name: &str, addresses: &[IpAddr]) -> String {
    let stand_in = addresses.first().map_or_else(String::new, IpAddr::to_string);
    format!("{stand_in} stands for {name}, which is not resolved: a key may lead elsewhere")
}

/// Whether a candidate for the request has this host name.
fn reaches(explanation: &Explanation, name: &str) -> bool {
    let mut candidates = explanation.balancing.iter().flat_map(|it| &it.candidates);
    candidates.any(|it| it.name.as_deref() == Some(name))
}

/// Whether the request's persistence uses cookies whose key is known only to a running weir.
fn has_own_cookies(snapshot: &Snapshot, explanation: &Explanation) -> bool {
    let mut used = explanation.virtual_servers.iter().filter_map(|it| it.persistence.as_ref());
    used.any(|used| {
        let found = snapshot.persistence.iter().find(|it| *it.name == *used.name);
        found.is_some_and(|found| match &found.kind {
            PersistenceKind::Insert(cookie) => cookie.keys.is_none(),
            _ => false,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(text: &str, asked: serde_json::Value) -> Explanation {
        let loaded = weir_config::parse("weir.yaml", text);
        let config = loaded.config.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics));
        let asked: Asked = serde_json::from_value(asked).expect("a request");
        by_configuration(&config, &asked).expect("it is clear")
    }

    #[test]
    fn members_count_as_up_and_names_have_stand_ins() {
        let text = "virtual_servers: { v: { listen: 127.0.0.1:80, pool: p, persistence: c } }\n\
            persistence: { c: { type: cookie, name: W } }\n\
            pools: { p: { members: [ app.example:80 ], monitors: [ { type: tcp } ] } }\n";
        let it = explained(text, serde_json::json!({ "url": "http://127.0.0.1/" }));
        let balancing = it.balancing.expect("it goes to a member");
        assert_eq!(balancing.member.as_deref(), Some("198.18.0.1:80"));
        assert_eq!(balancing.candidates[0].name.as_deref(), Some("app.example"));
        assert_eq!(balancing.candidates[0].state, "up");
        let has = |text: &str| it.remarks.iter().any(|remark| remark.contains(text));
        assert!(
            has("198.18.0.1 stands for app.example") && has("persistence cookies count as unknown")
        );
    }
}

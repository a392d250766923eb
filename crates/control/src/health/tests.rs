use weir_config::snapshot::{Address, PoolSubstitutes};
use weir_core::monitor::Health as Monitored;

use super::*;
use crate::observed_state::ObservedState;
use crate::problems::{problems, serving};
use crate::testing::{observed_of, observed_with, pool, snapshot};

fn addresses(count: u16) -> Vec<Address> {
    (0..count).map(|at| Address::Socket(([127, 0, 0, 1], 9_001 + at).into())).collect()
}

/// Takes members down by their monitors, or back up.
fn set(observed: &ObservedState, pool: usize, members: &[usize], health: Monitored) {
    for member in members {
        observed.table().pools[pool].members[*member].set_health(health, 1);
    }
}

fn of(observed: &ObservedState) -> (Health, Health, ServingState) {
    let judge = observed.judge();
    (judge.server(0), judge.pool(0).clone(), serving(observed, &judge))
}

#[test]
fn by_members() {
    let check = |down: &[usize], expected: (Condition, ServingState), why: Option<&str>| {
        let observed = observed_with(&addresses(2), 1);
        set(&observed, 0, down, Monitored::Down);
        let (server, pool, process) = of(&observed);
        assert_eq!((server.state, process), expected, "{down:?}");
        assert_eq!((pool.state, pool.why.as_deref()), (expected.0, why), "{down:?}");
        let of_server = why.map(|why| format!("pool web: {why}"));
        assert_eq!(server.why, of_server);
    };
    check(&[], (Condition::Up, ServingState::Fully), None);
    check(&[1], (Condition::Degraded, ServingState::Degraded), Some("1 of 2 members in service"));
    let none = "none of its 2 members is in service";
    check(&[0, 1], (Condition::Down, ServingState::Down), Some(none));
    let (server, pool, process) = of(&observed_with(&[], 1));
    assert_eq!((server.state, process), (Condition::Down, ServingState::Down));
    assert_eq!(pool.why.as_deref(), Some("it has no members"));
}

#[test]
fn a_member_that_the_file_keeps_out_is_not_missed() {
    let mut web = pool("web", &addresses(2), &[]);
    web.members[1].weight = 0;
    let observed = observed_of(snapshot(vec![web]), 1);
    assert_eq!(of(&observed).1.state, Condition::Up);
    let member = Arc::clone(&observed.table().pools[0].members[0]);
    member.set_state_override(Some(AdminState::Drain));
    assert_eq!(of(&observed).1.state, Condition::Down);
    let mut web = pool("web", &addresses(2), &[]);
    web.members[1].state = AdminState::Disabled;
    let observed = observed_of(snapshot(vec![web]), 1);
    assert_eq!(of(&observed).1.state, Condition::Up);
    let member = Arc::clone(&observed.table().pools[0].members[1]);
    member.set_state_override(Some(AdminState::Enabled));
    set(&observed, 0, &[1], Monitored::Down);
    assert_eq!(of(&observed).1.state, Condition::Degraded, "it was enabled, and is down");
}

#[test]
fn every_request_fails_although_all_members_are_up() {
    let observed = observed_with(&addresses(2), 1);
    observed.recent.sample(&observed.table());
    let table = observed.table();
    let counters = table.pools[0].members[0].counters.of(0);
    counters.requests.add(40);
    table.virtual_servers[0].counters.of(0).requests.add(40);
    assert_eq!(of(&observed).2, ServingState::Fully);
    counters.connect_failures.add(40);
    table.virtual_servers[0].counters.of(0).responses_5xx.add(40);
    let (server, pool, process) = of(&observed);
    assert_eq!((server.state, pool.state), (Condition::Failing, Condition::Failing));
    assert_eq!(process, ServingState::Down, "nothing that it serves works");
    let why = pool.why.expect("a reason");
    assert!(why.starts_with("40 of 40 requests failed in the last "), "{why}");
    let told = problems(&observed, &observed.judge());
    assert!(told[0].starts_with("virtual server shop is failing: 40 of 40 "), "{told:?}");
    assert!(told[1].starts_with("pool web is failing: 40 of 40 "), "{told:?}");
}

/// A virtual server that hands its requests over counts none itself.
#[test]
fn a_virtual_server_without_requests_of_its_own_is_judged_by_its_pools() {
    let observed = observed_with(&addresses(2), 1);
    observed.recent.sample(&observed.table());
    let table = observed.table();
    let counters = table.pools[0].members[0].counters.of(0);
    counters.requests.add(40);
    assert_eq!(of(&observed).0.state, Condition::Up);
    counters.responses_5xx.add(40);
    let (server, _, process) = of(&observed);
    assert_eq!((server.state, process), (Condition::Failing, ServingState::Down));
    let why = server.why.expect("a reason");
    assert!(why.starts_with("pool web: 40 of 40 requests failed"), "{why}");
    table.virtual_servers[0].counters.of(0).requests.add(40);
    assert_eq!(of(&observed).0.state, Condition::Degraded, "its own requests are fine");
}

#[test]
fn responses_that_are_cut_fail_and_meant_ones_do_not() {
    let observed = observed_with(&addresses(2), 1);
    observed.recent.sample(&observed.table());
    let table = observed.table();
    let counters = table.virtual_servers[0].counters.of(0);
    counters.requests.add(40);
    // A page for maintenance.
    counters.responses_5xx.add(40);
    counters.responses_5xx_meant.add(40);
    let (server, _, process) = of(&observed);
    assert_eq!((server.state, process), (Condition::Up, ServingState::Fully));
    counters.requests.add(40);
    counters.responses_2xx.add(40);
    counters.responses_cut.add(40);
    assert_eq!(of(&observed).0.state, Condition::Failing);
    let told = problems(&observed, &observed.judge());
    assert!(told[0].starts_with("virtual server shop is failing: 40 of 80 "), "{told:?}");
}

#[test]
fn a_pool_that_is_meant_to_be_empty_is_no_problem() {
    let web = pool("web", &addresses(1), &[]);
    let mut green = pool("green", &addresses(1), &[]);
    green.members[0].state = AdminState::Disabled;
    let observed = observed_of(snapshot(vec![web, green, pool("empty", &[], &[])]), 1);
    let judge = observed.judge();
    assert_eq!([1, 2].map(|it| judge.pool(it).state), [Condition::Down; 2]);
    assert_eq!(serving(&observed, &judge), ServingState::Fully);
    assert!(problems(&observed, &judge).is_empty());
}

#[test]
fn a_pool_whose_names_have_no_address_is_a_problem() {
    let pools = vec![pool("web", &addresses(1), &[]), pool("named", &[], &[])];
    let mut snapshot = (*snapshot(pools)).clone();
    snapshot.resolved.pools_to_be_filled.clear();
    let observed = observed_of(Arc::new(snapshot), 1);
    let judge = observed.judge();
    assert_eq!(serving(&observed, &judge), ServingState::Degraded);
    let why = "pool named is down: the names of its members have no address";
    assert_eq!(problems(&observed, &judge), [why]);
}

#[test]
fn a_fallback_serves_in_the_place_of_its_pool() {
    let mut web = pool("web", &addresses(1), &[]);
    web.instead = PoolSubstitutes { fallback: Some(1), ..PoolSubstitutes::default() };
    let spare = pool("spare", &addresses(1), &[]);
    let observed = observed_of(snapshot(vec![web, spare]), 1);
    set(&observed, 0, &[0], Monitored::Down);
    let (server, pool, process) = of(&observed);
    assert_eq!((server.state, pool.state), (Condition::Degraded, Condition::Down));
    assert_eq!(process, ServingState::Degraded);
    set(&observed, 1, &[0], Monitored::Down);
    assert_eq!(of(&observed).0.state, Condition::Down);
}

#[test]
fn a_thousand_dead_ones_are_one_sentence() {
    let mut many = (*snapshot(vec![pool("web", &addresses(1), &[])])).clone();
    let model = many.virtual_servers[0].clone();
    let named = |number: usize| snapshot::VirtualServer {
        name: format!("site-{number}").into(),
        ..model.clone()
    };
    many.virtual_servers = (0..1_000).map(named).collect();
    let observed = observed_of(Arc::new(many), 1);
    set(&observed, 0, &[0], Monitored::Down);
    let judge = observed.judge();
    assert_eq!(serving(&observed, &judge), ServingState::Down);
    let told = problems(&observed, &judge);
    let names = "site-0, site-1, site-2, site-3, site-4 and 995 more";
    assert_eq!(told[0], format!("1000 of 1000 virtual servers are down: {names}"));
    assert_eq!(told[1], "pool web is down: its only member is not in service");
    assert_eq!(told.len(), 2);
}

use std::sync::Arc;
use std::time::Duration;

use weir_config::snapshot::Address;
use weir_core::monitor::Health;

use super::*;
use crate::health::Condition;
use crate::observed_state::ObservedState;
use crate::testing::observed_with;

fn observed() -> Arc<ObservedState> {
    let addresses = [9_001, 9_002]
        .map(|port| Address::Socket(std::net::SocketAddr::from(([127, 0, 0, 1], port))));
    Arc::new(observed_with(&addresses, 1))
}

#[test]
fn figures_are_those_since_the_sample_before() {
    let observed = observed();
    let first = Sample::of(observed.judge(), None);
    assert_eq!((first.total, first.servers[0].point), (None, None));
    let table = observed.table();
    let counters = table.virtual_servers[0].counters.of(0);
    counters.requests.add(100);
    counters.responses_5xx.add(10);
    counters.handshakes_full.add(30);
    counters.handshakes_resumed.add(20);
    counters.request_duration.record(2_000);
    let mut earlier = first;
    earlier.at_ms = crate::time::monotonic_ms().saturating_sub(2_000);
    let second = Sample::of(observed.judge(), Some(&earlier));
    let total = second.total.expect("two samples");
    assert!((45.0..=50.0).contains(&total.requests), "{total:?}");
    assert!((4.5..=5.0).contains(&total.failed), "{total:?}");
    assert!((22.5..=25.0).contains(&total.handshakes), "{total:?}");
    assert_eq!((total.ms, second.servers[0].point), (Some(2.0), Some(total)));
    assert_eq!((second.servers[0].failed, second.servers[0].health.state), (10, Condition::Up));
    table.pools[0].members[0].set_health(Health::Down, 1);
    let third = Sample::of(observed.judge(), Some(&second));
    let why = "pool web: 1 of 2 members in service";
    let health = &third.servers[0].health;
    assert_eq!((health.state, health.why.as_deref()), (Condition::Degraded, Some(why)));
    let pool = &third.pools[0];
    assert_eq!((pool.health.state, pool.members.up), (Condition::Degraded, 1));
}

#[test]
fn the_history_is_bounded_and_forgets_what_is_gone() {
    let observed = observed();
    let mut before = Sample::of(observed.judge(), None);
    let mut history = History::default();
    for _ in 0..history::POINTS_MAX + 10 {
        let sample = Sample::of(observed.judge(), Some(&before));
        history.push(&sample);
        before = sample;
    }
    let name = before.servers[0].name.to_string();
    assert_eq!((history.total().len(), history.of(&name).len()), (120, 120));
    before.servers.clear();
    history.push(&before);
    assert!(history.of(&name).is_empty());
}

#[tokio::test(start_paused = true)]
async fn it_samples_only_while_somebody_reads() {
    let observed = observed();
    assert!(!observed.admin.sampler.is_running());
    let subscribe = || {
        let shared = Arc::clone(&observed);
        observed.admin.sampler.subscribe(move || shared.judge())
    };
    let (mut one, other) = (subscribe(), subscribe());
    one.changed().await.expect("a sample");
    one.changed().await.expect("another");
    assert!(observed.admin.sampler.is_running());
    drop(one);
    tokio::time::sleep(4 * INTERVAL).await;
    assert!(observed.admin.sampler.is_running() && other.borrow().is_some());
    drop(other);
    while observed.admin.sampler.is_running() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(observed.admin.sampler.history().total().is_empty());
    let mut again = subscribe();
    again.changed().await.expect("it samples again");
}

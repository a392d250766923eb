//! The members that a request can get.
//!
//! Counters that each worker has of its own are unknown here. So the selection runs as several workers: if all of them
//! select the same member, the result is certain.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use weir_api::explanation::{Balancing, Candidate, Timeouts};
use weir_config::snapshot::{Balance, Pool};
use weir_core::balance::{Method, SCAN_MEMBERS_MAX};
use weir_core::clock::Clock;
use weir_core::monitor::Health;
use weir_exchange::local::pool::{LocalPool, Preference};
use weir_exchange::shared::live::{LiveMember, LiveTable};

/// Maximum number of listed members.
pub const CANDIDATES_MAX: usize = 200;

/// Maximum number of simulated workers.
const WORKERS_MAX: usize = 32;

/// Maximum number of members that are copied for that, in all simulated workers.
const COPIED_MAX: usize = 20_000;

/// The members of a pool from the view of a request with this preference. `live`: the state before the request.
pub fn of(live: &LiveTable, pool: &str, preference: Preference, now: Clock) -> Option<Balancing> {
    let index = live.snapshot.pools.iter().position(|it| *it.name == *pool)?;
    let settings = Arc::clone(&live.snapshot.pools[index]);
    let eligible = asked_as(live, index, 0).eligible(now);
    let given = given(live, index, preference, now);
    let member = certain(&settings, preference, &eligible, &given);
    let is_any = member.is_none() && is_anybody(&settings, preference, &given);
    let has_room = |member: u32, live: &LiveMember| {
        let limit = settings.members[member as usize].connections_max;
        limit.is_none_or(|limit| live.occupancy.load(Relaxed) < limit)
    };
    let candidates = (0..).zip(&live.pools[index].members).map(|(member, live)| {
        let is_eligible = eligible.contains(&member);
        let is_drawn = is_any && is_eligible && has_room(member, live);
        let is_possible = is_drawn || given.contains(&Some(member));
        candidate(&settings, member, live, (is_eligible, is_possible), now)
    });
    let mut candidates: Vec<Candidate> = candidates.collect();
    let left_out = candidates.len().saturating_sub(CANDIDATES_MAX);
    if left_out > 0 {
        // Members that the request can get come first.
        candidates.sort_by_key(|it| (!it.is_possible, !it.is_eligible));
        candidates.truncate(CANDIDATES_MAX);
    }
    let label = |member: u32| settings.members[member as usize].label.to_string();
    Some(Balancing {
        pool: pool.to_owned(),
        method: method(&settings).into(),
        preference: match preference {
            Preference::Any => "any",
            Preference::Key(_) => "key",
            Preference::Member(_) => "member",
        }
        .into(),
        because: because(&settings, preference, (&eligible, member, &given)),
        member: member.map(label),
        candidates,
        left_out,
        timeouts: Timeouts {
            connect_ms: settings.connect_timeout_ms,
            response_ms: settings.response_timeout_ms,
            queue_ms: settings.queue.map(|queue| queue.timeout_ms),
            retries: settings.retries.max,
        },
        health: None,
    })
}

/// A copy of the pool as a worker with this seed has it.
fn asked_as(live: &LiveTable, index: usize, seed: u64) -> LocalPool {
    let copy = Arc::new(live.pools[index].copied());
    LocalPool::new(&live.snapshot, index, &copy, None, 0, seed)
}

/// The members that the simulated workers select; `None`: no member.
fn given(live: &LiveTable, index: usize, preference: Preference, now: Clock) -> Vec<Option<u32>> {
    let members = live.pools[index].members.len().max(1);
    let workers = (COPIED_MAX / members).clamp(2, WORKERS_MAX) as u64;
    // The increments of SplitMix64, so that seeds differ in many bits.
    let seeds = (1..=workers).map(|it| it.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let given = seeds.map(|seed| asked_as(live, index, seed).occupy(&[], now, preference).ok());
    given.collect()
}

/// The member that all workers select.
fn certain(
    settings: &Pool,
    preference: Preference,
    eligible: &[u32],
    given: &[Option<u32>],
) -> Option<u32> {
    let first = given.first().copied().flatten()?;
    let goes_by_load = matches!(
        settings.balance,
        Balance::Method(Method::LeastConnections | Method::LeastResponseTime)
    );
    // From many members, a worker compares only some.
    let is_compared = !goes_by_load || eligible.len() <= SCAN_MEMBERS_MAX;
    let is_led =
        matches!(preference, Preference::Key(_)) || preference == Preference::Member(first);
    let is_alone = eligible.len() == 1;
    (given.iter().all(|it| *it == Some(first))
        && (is_led || is_alone || goes_by_load && is_compared))
        .then_some(first)
}

/// Whether every eligible member is possible.
fn is_anybody(settings: &Pool, preference: Preference, given: &[Option<u32>]) -> bool {
    let is_led = matches!(preference, Preference::Key(_));
    let is_in_turn = !matches!(
        settings.balance,
        Balance::Method(Method::LeastConnections | Method::LeastResponseTime)
    );
    !is_led && given.iter().any(Option::is_some) && is_in_turn
}

fn candidate(
    settings: &Pool,
    member: u32,
    live: &LiveMember,
    (is_eligible, is_possible): (bool, bool),
    now: Clock,
) -> Candidate {
    let own = &settings.members[member as usize];
    let is_timed = matches!(settings.balance, Balance::Method(Method::LeastResponseTime));
    let is_ejected = live.ejected_until_ms(now.now_ms()).is_some();
    let state = match live.health() {
        Health::Up | Health::Draining if is_ejected => "ejected",
        health => health.as_str(),
    };
    Candidate {
        member: own.label.to_string(),
        name: own.name.as_ref().map(ToString::to_string),
        state: state.into(),
        administrative: live.state(own.state).as_str().into(),
        weight: own.weight,
        priority: own.priority,
        occupancy: live.occupancy.load(Relaxed),
        connections_max: own.connections_max,
        response_time_us: is_timed.then(|| live.response_time().average_us()).flatten(),
        is_eligible,
        is_possible,
    }
}

fn method(settings: &Pool) -> &'static str {
    match settings.balance {
        Balance::Method(Method::RoundRobin) => "round_robin",
        Balance::Method(Method::LeastConnections) => "least_connections",
        Balance::Method(Method::LeastResponseTime) => "least_response_time",
        Balance::Method(Method::RandomTwo) => "random_two",
        Balance::Hash(_) => "hash",
        Balance::SourceAddress => "source_address",
    }
}

fn because(
    settings: &Pool,
    preference: Preference,
    (eligible, member, given): (&[u32], Option<u32>, &[Option<u32>]),
) -> String {
    let is_led = matches!(preference, Preference::Key(_) | Preference::Member(_));
    match (preference, member) {
        (Preference::Member(wanted), Some(member)) if wanted == member => {
            "its client is at this member".into()
        }
        (Preference::Key(_), Some(_)) => "its key leads to this member".into(),
        _ if eligible.is_empty() => "no member takes requests".into(),
        (_, Some(_)) if eligible.len() == 1 => "it is the only member that takes requests".into(),
        _ if given.iter().all(Option::is_none) => {
            "all members have as many requests as they may have".into()
        }
        (Preference::Member(_), _) => {
            format!("its client's member does not take it: {} decides", method(settings))
        }
        (_, Some(_)) => format!("{} prefers it", method(settings)),
        (_, None) if is_led => format!("{} decides", method(settings)),
        (_, None) => match settings.balance {
            Balance::Method(Method::RandomTwo) => "two are drawn, the less loaded gets it".into(),
            Balance::Method(Method::LeastConnections | Method::LeastResponseTime) => {
                "several are loaded alike, and take turns".into()
            }
            _ => "members take turns, by each worker for itself".into(),
        },
    }
}

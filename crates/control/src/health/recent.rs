//! The share of recent requests that failed, of pools and of virtual servers.
//!
//! The counters only grow. Samples of some seconds ago tell how much of them is recent. The data path counts nothing more
//! for this.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use weir_api::health::RecentRequests;
use weir_exchange::shared::live::{LiveTable, LiveVirtualServer, PoolMembers};

use super::Condition;
use crate::time::monotonic_ms;

/// The interval between samples. A sample reads the counters of all members.
const SAMPLE_INTERVAL_MS: u64 = 5_000;

/// Maximum number of samples: they cover half a minute.
const SAMPLES_MAX: usize = 6;

/// A window that is shorter is extended to an older sample.
const WINDOW_MS_MIN: u64 = 10_000;

/// A window with fewer requests is extended to an older sample.
const WINDOW_REQUESTS: u64 = 20;

/// Fewer failed requests than this do not count: one may be chance.
const FAILED_MIN: u64 = 3;

/// From this share on, requests of something fail.
const FAILING_PERCENT: u64 = 50;

/// From this share on, something is degraded.
const DEGRADED_PERCENT: u64 = 5;

/// Counters of requests. They only grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    requests: u64,
    failed: u64,
    retried: u64,
}

impl Counts {
    /// The requests of a pool as its members get them: each try counts.
    fn of_pool(live: &PoolMembers) -> Self {
        let (mut tries, mut failures, mut lost, mut retried) = (0_u64, 0_u64, 0_u64, 0_u64);
        let add = |to: &mut u64, counted: u64| *to = to.wrapping_add(counted);
        for member in &live.members {
            for worker in 0..member.counters.workers() {
                let counters = member.counters.of(worker);
                add(&mut tries, counters.requests.get());
                add(&mut failures, counters.connect_failures.get());
                add(&mut failures, counters.response_failures.get());
                add(&mut failures, counters.responses_5xx.get());
            }
        }
        for worker in 0..live.pool.counters.workers() {
            let counters = live.pool.counters.of(worker);
            add(&mut lost, counters.no_member.get());
            add(&mut lost, counters.queue_timeouts.get());
            add(&mut failures, counters.unconnected.get());
            add(&mut retried, counters.failures_retried.get());
        }
        let (requests, failed) = (tries.wrapping_add(lost), failures.wrapping_add(lost));
        Self { requests, failed, retried }
    }

    /// The requests of a virtual server, or its connections and sessions.
    fn of_server(live: &LiveVirtualServer, is_relay: bool) -> Self {
        let mut counts = Self::default();
        for worker in 0..live.counters.workers() {
            let counters = live.counters.of(worker);
            let (requests, failed) = if is_relay {
                let failed = counters
                    .relays_no_member
                    .get()
                    .wrapping_add(counters.relays_member_connect.get())
                    .wrapping_add(counters.relays_unserved.get())
                    .wrapping_add(counters.relays_queue_timeout.get());
                let ended = counters
                    .relays_complete
                    .get()
                    .wrapping_add(counters.relays_no_member.get())
                    .wrapping_add(counters.relays_member_connect.get())
                    .wrapping_add(counters.relays_queue_timeout.get())
                    .wrapping_add(counters.relays_client_abort.get())
                    .wrapping_add(counters.relays_member_abort.get())
                    .wrapping_add(counters.relays_idle_timeout.get());
                (ended, failed)
            } else {
                (counters.requests.get(), counters.failed_requests())
            };
            counts.requests = counts.requests.wrapping_add(requests);
            counts.failed = counts.failed.wrapping_add(failed);
        }
        counts
    }

    /// The difference from an older sample; `None`: the counters were reset in between.
    fn since(&self, earlier: &Self) -> Option<Self> {
        Some(Self {
            requests: self.requests.checked_sub(earlier.requests)?,
            failed: self.failed.checked_sub(earlier.failed)?,
            retried: self.retried.checked_sub(earlier.retried)?,
        })
    }
}

/// What these requests say. Tries may fail although clients get what they ask for: then others have saved it.
pub(crate) fn condition_of(recent: &RecentRequests) -> Condition {
    match condition(recent.failed, recent.requests) {
        Condition::Failing => after_retries(recent).max(Condition::Degraded),
        milder => milder,
    }
}

fn after_retries(recent: &RecentRequests) -> Condition {
    let (failed, requests) = unsaved(recent);
    condition(failed, requests)
}

/// The requests that no further try has saved, and all requests.
fn unsaved(recent: &RecentRequests) -> (u64, u64) {
    let left = |count: u64| count.saturating_sub(recent.retried);
    (left(recent.failed), left(recent.requests))
}

fn condition(failed: u64, requests: u64) -> Condition {
    let reaches = |percent: u64| failed.saturating_mul(100) >= requests.saturating_mul(percent);
    match failed {
        ..FAILED_MIN => Condition::Up,
        _ if reaches(FAILING_PERCENT) => Condition::Failing,
        _ if reaches(DEGRADED_PERCENT) => Condition::Degraded,
        _ => Condition::Up,
    }
}

/// These requests in words, as the reason for a condition.
pub(crate) fn told(recent: &RecentRequests) -> String {
    let RecentRequests { requests, failed, retried, seconds } = recent;
    let what = if *retried == 0 { "requests" } else { "tries" };
    let told = format!("{failed} of {requests} {what} failed in the last {seconds} s");
    if *retried == 0 {
        return told;
    }
    let (failed, requests) = unsaved(recent);
    let then = match after_retries(recent) {
        Condition::Failing => "and retries save too few requests",
        _ => "but retries save the requests",
    };
    format!("{told}, {then}: {failed} of {requests} failed")
}

/// The counters at one moment.
#[derive(Debug)]
struct Sample {
    at_ms: u64,
    servers: HashMap<Arc<str>, Counts>,
    /// With a fingerprint of the members: the sum over other members says nothing.
    pools: HashMap<Arc<str>, (u64, Counts)>,
}

/// The samples so far, newest last.
#[derive(Debug, Default)]
pub(crate) struct Samples(Mutex<VecDeque<Arc<Sample>>>, RandomState);

/// The samples at one moment, for many questions.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecentSamples {
    samples: Vec<Arc<Sample>>,
    keys: RandomState,
}

impl Samples {
    /// The current samples.
    pub fn get(&self) -> RecentSamples {
        let samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        RecentSamples { samples: samples.iter().cloned().collect(), keys: self.1.clone() }
    }

    /// Samples the counters, unless that was done recently.
    pub fn sample(&self, table: &LiveTable) {
        self.sample_at(table, monotonic_ms());
    }

    fn sample_at(&self, table: &LiveTable, now_ms: u64) {
        let is_due = |last: &Arc<Sample>| now_ms.saturating_sub(last.at_ms) >= SAMPLE_INTERVAL_MS;
        let samples = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !samples().back().is_none_or(is_due) {
            return;
        }
        let sample = Arc::new(Sample::of(table, now_ms, &self.1));
        let mut samples = samples();
        if samples.len() == SAMPLES_MAX {
            samples.pop_front();
        }
        samples.push_back(sample);
    }
}

impl Sample {
    fn of(table: &LiveTable, at_ms: u64, keys: &RandomState) -> Self {
        let servers = table.virtual_servers.iter().zip(&table.snapshot.virtual_servers);
        let servers = servers.map(|(live, configured)| {
            (Arc::clone(&live.name), Counts::of_server(live, configured.service.is_relay()))
        });
        let pools = table.pools.iter();
        let pools = pools.map(|live| {
            (Arc::clone(&live.pool.name), (fingerprint(live, keys), Counts::of_pool(live)))
        });
        Self { at_ms, servers: servers.collect(), pools: pools.collect() }
    }
}

/// Tells different members apart. They are the same objects as long as they stay in their pool.
fn fingerprint(live: &PoolMembers, keys: &RandomState) -> u64 {
    let mut hasher = keys.build_hasher();
    live.members.iter().for_each(|member| hasher.write_usize(Arc::as_ptr(member).addr()));
    hasher.finish()
}

impl RecentSamples {
    /// The recent requests of a pool; `None`: it cannot be said yet.
    pub fn of_pool(&self, live: &PoolMembers) -> Option<RecentRequests> {
        let fingerprint = fingerprint(live, &self.keys);
        let earlier = |sample: &Sample| match sample.pools.get(&live.pool.name) {
            None => EarlierSample::Absent,
            Some((then, _)) if *then != fingerprint => EarlierSample::Other,
            Some((_, counts)) => EarlierSample::Counted(*counts),
        };
        self.window(Counts::of_pool(live), earlier, monotonic_ms())
    }

    /// The recent requests of a virtual server; `None`: it cannot be said yet.
    pub fn of_server(&self, live: &LiveVirtualServer, is_relay: bool) -> Option<RecentRequests> {
        let earlier = |sample: &Sample| match sample.servers.get(&live.name) {
            None => EarlierSample::Absent,
            Some(counts) => EarlierSample::Counted(*counts),
        };
        self.window(Counts::of_server(live, is_relay), earlier, monotonic_ms())
    }

    /// From the newest to the oldest sample, until the window is long enough and has enough requests.
    fn window(
        &self,
        counts: Counts,
        earlier: impl Fn(&Sample) -> EarlierSample,
        now_ms: u64,
    ) -> Option<RecentRequests> {
        let mut found = None;
        for sample in self.samples.iter().rev() {
            let then = match earlier(sample) {
                EarlierSample::Counted(then) => then,
                // It is newer than the sample: it began with nothing.
                EarlierSample::Absent => Counts::default(),
                EarlierSample::Other => break,
            };
            let Some(Counts { requests, failed, retried }) = counts.since(&then) else { break };
            let span_ms = now_ms.saturating_sub(sample.at_ms);
            // A worker counts meanwhile.
            let (failed, seconds) = (failed.min(requests), span_ms.div_ceil(1_000).max(1));
            found =
                Some(RecentRequests { requests, failed, retried: retried.min(failed), seconds });
            let is_enough = span_ms >= WINDOW_MS_MIN && requests >= WINDOW_REQUESTS;
            if is_enough || matches!(earlier(sample), EarlierSample::Absent) {
                break;
            }
        }
        found
    }
}

/// What a sample has of an object.
enum EarlierSample {
    Counted(Counts),
    /// It did not exist.
    Absent,
    /// A pool with other members.
    Other,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn counts(requests: u64, failed: u64) -> Counts {
        Counts { requests, failed, retried: 0 }
    }

    /// The window at `now_ms`, with samples of a virtual server: time, requests and failed requests.
    fn window(samples: &[(u64, u64, u64)], now: (u64, u64, u64)) -> Option<(u64, u64, u64)> {
        let sample = |&(at_ms, requests, failed): &(u64, u64, u64)| {
            let servers = HashMap::from([(Arc::from("shop"), counts(requests, failed))]);
            Arc::new(Sample { at_ms, servers, pools: HashMap::new() })
        };
        let recent = RecentSamples {
            samples: samples.iter().map(sample).collect(),
            keys: RandomState::new(),
        };
        let earlier = |sample: &Sample| match sample.servers.get("shop") {
            Some(counts) => EarlierSample::Counted(*counts),
            None => EarlierSample::Absent,
        };
        let found = recent.window(counts(now.1, now.2), earlier, now.0);
        found.map(|it| (it.requests, it.failed, it.seconds))
    }

    #[test]
    fn a_window_is_as_short_as_it_can_be() {
        assert_eq!(window(&[], (5_000, 9, 9)), None);
        assert_eq!(window(&[(1_000, 0, 0)], (1_200, 9, 9)), Some((9, 9, 1)));
        let busy = [(0, 0, 0), (5_000, 100, 0), (10_000, 200, 0), (15_000, 300, 50)];
        // Long enough and with enough requests: older samples do not matter.
        assert_eq!(window(&busy, (20_000, 400, 150)), Some((200, 150, 10)));
        let slow = [(0, 0, 0), (5_000, 3, 3), (10_000, 6, 6), (15_000, 9, 9)];
        assert_eq!(window(&slow, (20_000, 12, 12)), Some((12, 12, 20)));
        // The counters were reset before the newest sample.
        assert_eq!(window(&[(0, 50, 0), (5_000, 2, 0)], (9_000, 8, 1)), Some((6, 1, 4)));
    }

    #[test]
    fn a_few_failures_are_chance_and_a_share_is_not() {
        let check = |failed, requests, expected| {
            let recent = RecentRequests { requests, failed, retried: 0, seconds: 10 };
            assert_eq!(condition_of(&recent), expected, "{failed} of {requests}");
        };
        check(0, 0, Condition::Up);
        check(2, 2, Condition::Up);
        check(3, 3, Condition::Failing);
        check(50, 100, Condition::Failing);
        check(49, 100, Condition::Degraded);
        check(5, 100, Condition::Degraded);
        check(4, 100, Condition::Up);
        check(u64::MAX, u64::MAX, Condition::Failing);
    }

    #[test]
    fn what_retries_save_is_degraded_at_most() {
        let check = |(failed, requests, retried), expected, text: &str| {
            let found = RecentRequests { requests, failed, retried, seconds: 9 };
            assert_eq!((condition_of(&found), &*told(&found)), (expected, text));
        };
        check(
            (30, 60, 30),
            Condition::Degraded,
            "30 of 60 tries failed in the last 9 s, but retries save the requests: 0 of 30 failed",
        );
        check(
            (45, 60, 30),
            Condition::Failing,
            "45 of 60 tries failed in the last 9 s, and retries save too few requests: 15 of 30 failed",
        );
        // Two members, and both fail.
        check(
            (60, 60, 30),
            Condition::Failing,
            "60 of 60 tries failed in the last 9 s, and retries save too few requests: 30 of 30 failed",
        );
        check((3, 60, 0), Condition::Degraded, "3 of 60 requests failed in the last 9 s");
        check(
            (2, 60, 2),
            Condition::Up,
            "2 of 60 tries failed in the last 9 s, but retries save the requests: 0 of 58 failed",
        );
    }

    #[test]
    fn connections_that_a_member_ends_without_a_byte_fail() {
        let observed = crate::testing::observed_with(&[], 1);
        let table = observed.table();
        let server = &table.virtual_servers[0];
        let counters = server.counters.of(0);
        counters.relays_complete.add(7);
        counters.relays_member_abort.add(5);
        assert_eq!(Counts::of_server(server, true), counts(12, 0));
        counters.relays_unserved.add(6);
        assert_eq!(
            Counts::of_server(server, true),
            counts(12, 6),
            "they are among those that ended"
        );
        counters.relays_no_member.add(2);
        counters.relays_member_connect.add(1);
        counters.relays_queue_timeout.add(1);
        assert_eq!(Counts::of_server(server, true), counts(16, 10));
    }

    #[test]
    fn each_try_of_a_pool_counts_and_requests_without_a_member_do() {
        let addresses = [9_001, 9_002]
            .map(|port| weir_config::snapshot::Address::Socket(([127, 0, 0, 1], port).into()));
        let observed = crate::testing::observed_with(&addresses, 2);
        let table = observed.table();
        let pool = &table.pools[0];
        // Ten requests went to the first member and failed; nine of them were repeated.
        pool.members[0].counters.of(0).requests.add(10);
        pool.members[0].counters.of(0).connect_failures.add(6);
        pool.members[0].counters.of(1).responses_5xx.add(4);
        pool.members[1].counters.of(1).requests.add(9);
        // Retries of stale connections follow no failure.
        pool.pool.counters.of(1).retries.add(12);
        pool.pool.counters.of(1).failures_retried.add(9);
        assert_eq!(Counts::of_pool(pool), Counts { retried: 9, ..counts(19, 10) });
        pool.pool.counters.of(0).no_member.add(5);
        assert_eq!(Counts::of_pool(pool), Counts { retried: 9, ..counts(24, 15) });
        // The host had no socket for two attempts, which the members count as tries.
        pool.members[1].counters.of(0).requests.add(2);
        pool.pool.counters.of(1).unconnected.add(2);
        assert_eq!(Counts::of_pool(pool), Counts { retried: 9, ..counts(26, 17) });
    }

    #[test]
    fn other_members_begin_anew() {
        let address = |port| weir_config::snapshot::Address::Socket(([127, 0, 0, 1], port).into());
        let observed = crate::testing::observed_with(&[address(9_001)], 1);
        let other = crate::testing::observed_with(&[address(9_002)], 1);
        let samples = Samples::default();
        samples.sample(&observed.table());
        let requests = |table: &LiveTable| table.pools[0].members[0].counters.of(0).requests.add(9);
        requests(&observed.table());
        requests(&other.table());
        let of = |table: &LiveTable| samples.get().of_pool(&table.pools[0]).map(|it| it.requests);
        assert_eq!(of(&observed.table()), Some(9));
        assert_eq!(of(&other.table()), None);
    }

    #[test]
    fn no_more_is_kept_than_is_read() {
        let observed = crate::testing::observed_with(&[], 1);
        let samples = Samples::default();
        for second in 0..Duration::from_secs(3_600).as_secs() {
            samples.sample_at(&observed.table(), second * 1_000);
        }
        let kept = samples.get().samples;
        assert_eq!(kept.len(), SAMPLES_MAX);
        assert_eq!(kept[1].at_ms - kept[0].at_ms, SAMPLE_INTERVAL_MS);
    }
}

//! The live state of a snapshot, which changes while it is active, shared by workers and control.
//!
//! A [`LiveTable`] is built for each snapshot and takes over, by name and address, the state of earlier tables
//! ([`former`]). These are all memory words that several cores write:
//!
//! | word | written | by | bound |
//! |---|---|---|---|
//! | `LiveMember::occupancy` | twice per request | workers | one word per member |
//! | `LiveMember::passive` | on failures, the trial after an ejection, and the success that ends a series | workers | one word per member |
//! | the reason of the last ejection | on an ejection | workers | one word per member |
//! | `LiveMember::health`, and since when it is up | on a transition | control | one byte and one word per member |
//! | `LiveMember::state_override` | on a command | control | one byte per member |
//! | `LivePool::epoch` | on a transition, a command or an ejection | control, workers | one word per pool |
//! | `LivePool::waiting_since_ms` | while requests wait for a member | workers | one word per pool and worker |
//! | `LivePool::waiting` | twice per request that waits for a member | workers | one word per pool |
//! | `LiveMember::response_time` | once per response, with least_response_time | workers | one word per member |
//! | `LiveMember::rate` | once per request, with a rate of its own | workers | one word per member |
//! | `LiveVirtualServer::connections` | twice per client connection | workers | one word per virtual server |
//! | `LiveVirtualServer::used` | once per request or connection, with a limit on them | workers | three words per virtual server |
//! | `LiveTable::waf_rules` | on a finding of a web application firewall rule | workers | one word per rule |
//! | `Logins` | when a password must be checked: a place in a queue, a count per client; then the remembered login | workers, threads that check | 128 checks, 1 KiB, 64 KiB |
//! | tables of limits per key, source addresses and QUIC connection IDs | at most twice per request or datagram | workers | 40 bytes per entry asked for |
//! | `LiveTls::handshakes` | twice per handshake | workers | one word per virtual server |
//! | keys of own tickets | every six hours | the worker that notices | three keys per virtual server |
//! | the cache of `resumption: stateful` | twice per handshake, behind one of 64 locks | workers | `cache_size` |
//! | OCSP responses beside certificates | every few hours | control | one per certificate |
//! | certificates by ACME (`Managed`) | at a renewal | control | one per set of names |
//! | `Challenges`: what a certificate authority verifies | twice per name and order | control | one per name of the orders under way |
//! | keys of tokens (`TokenReader`) | when other keys were fetched | control | 64 keys per authentication |

mod copy;
mod former;
mod member_changes;
mod members;

use std::collections::HashMap;
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};
use std::sync::{Arc, PoisonError, RwLock};

use former::Former;
use members::PoolBuildFacts;
use weir_config::snapshot::{Address, KeyLimit, KeyMeasure, RuleName, Snapshot, VirtualServer};
use weir_core::admin_state::AdminState;
use weir_core::balance::ResponseTime;
use weir_core::keyed_hash::KeyedHash;
use weir_core::monitor::{Circuit, EjectionBounds, Health, Passive, PassiveSettings};

use crate::environment::Environment;
use crate::shared::counters::{
    HistogramTotals, MemberCounters, MemberTimes, Own, PerWorker, PoolCounters, RuleCounters,
    VirtualServerCounters,
};
use crate::shared::logins::Logins;
use crate::shared::server_tls::LiveTls;
use crate::shared::shared_table::{KeyedLimit, SharedLimit};
use crate::shared::sticky::Stickies;
use crate::shared::waf_rules::WafRules;

pub use former::RemovedObjects;
pub use members::{LiveMembers, PoolMembers};

/// A snapshot together with the live state of its objects. The vectors have the order of the snapshot.
#[derive(Debug)]
pub struct LiveTable {
    /// The active configuration.
    pub snapshot: Arc<Snapshot>,
    /// One per `snapshot.virtual_servers`.
    pub virtual_servers: Vec<Arc<LiveVirtualServer>>,
    /// TLS of each virtual server.
    pub tls: Vec<Option<Arc<LiveTls>>>,
    /// One per `snapshot.pools`.
    pub pools: Vec<Arc<PoolMembers>>,
    /// Persistence state.
    pub stickies: Stickies,
    /// One per `snapshot.key_limits`.
    pub key_limits: Vec<Arc<KeyedLimit>>,
    /// The hash of limits' keys, with a secret key.
    pub key_hash: KeyedHash,
    /// Checks passwords; `None`: no authentication has needed one yet.
    pub logins: Option<Arc<Logins>>,
    /// The number of times that each of `snapshot.rules` was followed.
    pub rules: Arc<[RuleCount]>,
    /// The number of findings of each rule of the web application firewall.
    pub waf_rules: WafRules,
    /// Objects that were removed from the configuration but are still in use.
    pub departed: RemovedObjects,
    /// The number of this table within the process, from 1.
    pub generation: u64,
    workers: usize,
}

/// The number of times that a rule was followed, per worker.
pub type RuleCount = Arc<PerWorker<RuleCounters>>;

/// Live state of a virtual server.
#[derive(Debug)]
pub struct LiveVirtualServer {
    /// The name.
    pub name: Arc<str>,
    /// Open client connections on all workers, for `limits.connections`.
    pub connections: AtomicU32,
    /// The used part of the limits.
    pub used: ServerUse,
    /// The counters.
    pub counters: PerWorker<VirtualServerCounters>,
}

/// The used part of a virtual server's limits.
#[derive(Debug, Default)]
pub struct ServerUse {
    /// The limit of the request rate.
    pub requests: SharedLimit,
    /// The limit of the rate of new connections.
    pub connections: SharedLimit,
    /// Requests in progress on all workers that count for `limits.requests`.
    pub requests_under_way: AtomicU32,
}

/// Live state of a pool.
#[derive(Debug)]
pub struct LivePool {
    /// The name.
    pub name: Arc<str>,
    /// Unique in this process; later pools have higher numbers.
    pub number: u64,
    /// Changes whenever the set of members that may take traffic may have changed.
    pub epoch: AtomicU32,
    /// Per worker, the time since which its first queued request waits for a member; 0: its queue is empty.
    pub waiting_since_ms: Box<[AtomicU64]>,
    /// Requests that wait in the pool's queue, on all workers.
    pub waiting: AtomicU32,
    /// The counters.
    pub counters: PerWorker<PoolCounters>,
}

/// Live state of a member of one pool.
#[derive(Debug)]
pub struct LiveMember {
    /// The pool of the member.
    pub pool: Arc<LivePool>,
    /// The address.
    pub address: Address,
    /// The address as text.
    pub label: Arc<str>,
    /// Requests that occupy the member now, on all workers.
    pub occupancy: AtomicU32,
    /// The used part of its rate limit.
    pub rate: SharedLimit,
    /// The counters.
    pub counters: PerWorker<MemberCounters>,
    /// The response times; `None`: the configuration does not ask for them.
    times: RwLock<Option<PerWorker<MemberTimes>>>,
    health: AtomicU8,
    /// The time when the member last came up; 0: before this process started.
    up_since_ms: AtomicU64,
    /// A packed [`ResponseTime`].
    response_time: AtomicU64,
    /// The operator's command at run time, packed by [`override_to_bits`].
    state_override: AtomicU8,
    /// A packed [`Passive`].
    passive: AtomicU64,
    /// The reason of the last ejection; 0: never ejected.
    ejected_for: AtomicU16,
}

impl LivePool {
    /// A pool that no earlier table has.
    fn new(name: &Arc<str>, number: u64, workers: usize) -> Arc<Self> {
        Arc::new(Self {
            name: Arc::clone(name),
            number,
            epoch: AtomicU32::new(0),
            waiting_since_ms: (0..workers).map(|_| AtomicU64::new(0)).collect(),
            waiting: AtomicU32::new(0),
            counters: PerWorker::new(workers),
        })
    }

    /// The times since which the first request waits, one per worker.
    pub fn waiting_words(&self) -> impl Iterator<Item = u64> + Clone {
        self.waiting_since_ms.iter().map(|word| word.load(SeqCst))
    }

    /// Makes workers read the members again. A worker that sees the new epoch also sees all earlier changes.
    fn members_changed(&self) {
        self.epoch.fetch_add(1, Release);
    }
}

impl LiveVirtualServer {
    /// Counts a client connection. Returns the number of earlier open connections.
    pub fn connection_opened(&self, worker: usize) -> u32 {
        self.counters.of(worker).connections_open.add(1);
        self.connections.fetch_add(1, Relaxed)
    }

    /// Undoes [`Self::connection_opened`].
    pub fn connection_closed(&self, worker: usize) {
        self.counters.of(worker).connections_open.subtract(1);
        self.connections.fetch_sub(1, Relaxed);
    }
}

impl LiveMember {
    /// The result of the member's monitors.
    pub fn health(&self) -> Health {
        match self.health.load(Relaxed) {
            0 => Health::Pending,
            1 => Health::Up,
            3 => Health::Draining,
            _ => Health::Down,
        }
    }

    /// Sets the result of the member's monitors. Returns whether it changed.
    pub fn set_health(&self, health: Health, now_ms: u64) -> bool {
        // Mostly it is the same: then no other core has to read it again.
        if self.health.load(Relaxed) == health as u8 {
            return false;
        }
        let before = self.health.swap(health as u8, Relaxed);
        let changed = before != health as u8;
        if changed {
            // Also after draining: the member has had no new clients since.
            if health == Health::Up && before != Health::Pending as u8 {
                self.up_since_ms.store(now_ms, Relaxed);
            }
            self.pool.members_changed();
        }
        changed
    }

    /// The time when the member came up after it was down; 0: it was never seen down.
    pub fn up_since_ms(&self) -> u64 {
        self.up_since_ms.load(Relaxed)
    }

    /// The recent response time.
    pub fn response_time(&self) -> ResponseTime {
        ResponseTime::from_bits(self.response_time.load(Relaxed))
    }

    /// Records the result of a request: the response time, or the failure.
    pub fn note_response_time(&self, now_ms: u64, elapsed_us: u64, is_failure: bool) {
        let next = |bits| {
            let seen = ResponseTime::from_bits(bits);
            let next = if is_failure {
                seen.failed(now_ms, elapsed_us)
            } else {
                seen.observe(now_ms, elapsed_us)
            };
            Some(next.to_bits())
        };
        // The closure never refuses the update.
        let _ = self.response_time.fetch_update(Relaxed, Relaxed, next);
    }

    /// Begins or ends the histogram of response times. `workers`: for this many; `None`: the member has none.
    fn keep_times(&self, workers: Option<usize>) {
        let mut times = self.times.write().unwrap_or_else(PoisonError::into_inner);
        match workers {
            None => *times = None,
            Some(workers) => *times = times.take().or_else(|| Some(PerWorker::new(workers))),
        }
    }

    /// The response times that one worker counts, for that worker to keep; `None`: they are not counted.
    pub fn own_times(&self, worker: usize) -> Option<Own<MemberTimes>> {
        let times = self.times.read().unwrap_or_else(PoisonError::into_inner);
        times.as_ref().map(|times| times.own(worker))
    }

    /// The distribution of response times; `None`: it is not counted.
    pub fn response_histogram(&self) -> Option<HistogramTotals> {
        let times = self.times.read().unwrap_or_else(PoisonError::into_inner);
        times.as_ref().map(|times| times.totals().response_duration)
    }

    /// The administrative state: from a command at run time, or from the file.
    pub fn state(&self, configured: AdminState) -> AdminState {
        self.state_override().unwrap_or(configured)
    }

    /// The state set at run time; `None`: the state in the file applies.
    pub fn state_override(&self) -> Option<AdminState> {
        override_from_bits(self.state_override.load(Relaxed))
    }

    /// Sets the state at run time, until the process ends or the member leaves its pool; returns the previous one. Open
    /// requests are not touched.
    pub fn set_state_override(&self, wanted: Option<AdminState>) -> Option<AdminState> {
        let bits = override_to_bits(wanted);
        let before = self.state_override.swap(bits, Relaxed);
        if before != bits {
            self.pool.members_changed();
        }
        override_from_bits(before)
    }

    /// Resets a member that had left its pool and returns: clears its run-time state and passive marks. Requests that
    /// are still open count.
    fn come_back(&self) {
        self.state_override.store(override_to_bits(None), Relaxed);
        self.passive.store(Passive::CLEAN.to_bits(), Relaxed);
        self.pool.members_changed();
    }

    /// The end of the member's ejection, by the monotonic clock; `None`: not ejected.
    pub fn ejected_until_ms(&self, now_ms: u64) -> Option<u64> {
        Passive::from_bits(self.passive.load(Relaxed)).ejected_until_ms(now_ms)
    }

    /// Whether passive health checks permit a request to the member (`None`: they do not), and whether the request is the
    /// trial. The first request after an ejection is the trial; until it is answered, no other request is permitted.
    /// Costs one load, unless there were failures.
    #[inline]
    pub fn enter_trial(&self, now_ms: u64) -> Option<bool> {
        let mut bits = self.passive.load(Relaxed);
        loop {
            let passive = Passive::from_bits(bits);
            if passive.is_clean() {
                return Some(false);
            }
            let trial = match passive.circuit(now_ms) {
                // An ejected member is tried only if all are ejected.
                Circuit::Closed | Circuit::Open { .. } => return Some(false),
                Circuit::OnTrial => return None,
                Circuit::HalfOpen => passive.begin_trial(now_ms),
            };
            let Some(trial) = trial else { return Some(false) };
            match self.passive.compare_exchange_weak(bits, trial.to_bits(), Relaxed, Relaxed) {
                Ok(_) => return Some(true),
                Err(now) => bits = now,
            }
        }
    }

    /// The trial did not take place: the next request may be the trial.
    pub fn leave_trial(&self) {
        // `Err`: no request is on trial.
        let _ = self.passive.fetch_update(Relaxed, Relaxed, |bits| {
            Passive::from_bits(bits).without_trial().map(Passive::to_bits)
        });
    }

    /// Whether a failure now would eject the member, if ejection is permitted. If a failure on another worker comes between
    /// this call and [`Self::mark_failure`], the next failure ejects.
    pub fn would_eject(&self, now_ms: u64, settings: &PassiveSettings) -> bool {
        Passive::from_bits(self.passive.load(Relaxed)).would_eject(now_ms, settings)
    }

    /// Records the reason of an ejection, as the number of a [`Blame`](crate::parts::failure::Blame).
    pub fn note_ejection(&self, blame: u16) {
        self.ejected_for.store(blame, Relaxed);
    }

    /// The reason of the last ejection; 0: never ejected.
    pub fn ejected_for(&self) -> u16 {
        self.ejected_for.load(Relaxed)
    }

    /// Records a failed request. If it ejects the member, which `bounds` may forbid, returns the end of the ejection.
    pub fn mark_failure(
        &self,
        now_ms: u64,
        settings: &PassiveSettings,
        bounds: EjectionBounds,
    ) -> Option<u64> {
        let mut ejected = None;
        let changed = self.passive.fetch_update(Relaxed, Relaxed, |bits| {
            let (next, ejection) = Passive::from_bits(bits).on_failure(now_ms, settings, bounds);
            ejected = ejection.map(|ejected| ejected.until_ms);
            (next.to_bits() != bits).then(|| next.to_bits())
        });
        let ejected = ejected.filter(|_| changed.is_ok());
        if ejected.is_some() {
            self.pool.members_changed();
        }
        ejected
    }

    /// Records a successful request. Costs one load, unless it ends a series of failures.
    #[inline]
    pub fn mark_success(&self, now_ms: u64) {
        if Passive::from_bits(self.passive.load(Relaxed)).is_clean() {
            return;
        }
        // `Err`: the state is already correct.
        let _ = self.passive.fetch_update(Relaxed, Relaxed, |bits| {
            let next = Passive::from_bits(bits).on_success(now_ms).to_bits();
            (next != bits).then_some(next)
        });
    }
}

/// A run-time state as one byte; 0: not set.
fn override_to_bits(state: Option<AdminState>) -> u8 {
    match state {
        None => 0,
        Some(AdminState::Enabled) => 1,
        Some(AdminState::Drain) => 2,
        Some(AdminState::Disabled) => 3,
    }
}

/// Unpacks [`override_to_bits`].
fn override_from_bits(bits: u8) -> Option<AdminState> {
    match bits {
        1 => Some(AdminState::Enabled),
        2 => Some(AdminState::Drain),
        3 => Some(AdminState::Disabled),
        _ => None,
    }
}

impl LiveTable {
    /// The live table of `snapshot` for a process with this many workers. State of `previous` under the same name
    /// (virtual servers, pools) or the same pool and address (members) is taken over, as is the state of removed
    /// objects that are still in use.
    pub fn build(
        snapshot: Arc<Snapshot>,
        previous: Option<&Self>,
        workers: usize,
        outside: &Environment,
    ) -> Self {
        let former = Former::of(previous);
        let server = |server: &VirtualServer| {
            former.virtual_server(&server.name).unwrap_or_else(|| {
                Arc::new(LiveVirtualServer {
                    name: Arc::clone(&server.name),
                    connections: AtomicU32::new(0),
                    used: ServerUse::default(),
                    counters: PerWorker::new(workers),
                })
            })
        };
        let virtual_servers = snapshot.virtual_servers.iter().map(server).collect();
        let generation = previous.map_or(1, |table| table.generation + 1);
        let tls = tls(&snapshot, previous);
        let making = PoolBuildFacts { is_keyed: is_keyed(&snapshot), workers };
        let pools: Vec<Arc<PoolMembers>> = snapshot
            .pools
            .iter()
            .zip(generation << 32..)
            .map(|(pool, number)| {
                let live = former.pool(&pool.name);
                let live = live.unwrap_or_else(|| LivePool::new(&pool.name, number, workers));
                Arc::new(PoolMembers::build(live, pool, &former, making))
            })
            .collect();
        keep_times(pools.iter(), snapshot.data_plane.member_histograms.then_some(workers));
        let clock = outside.clock;
        let old_stickies = previous.map(|table| &table.stickies);
        let stickies = Stickies::build(&snapshot, old_stickies, outside);
        let mut table = Self {
            virtual_servers,
            tls,
            pools,
            stickies,
            key_limits: key_limits(&snapshot, &former, clock.now_us()),
            key_hash: previous.map_or_else(|| own_hash(outside), |table| table.key_hash),
            logins: logins(&snapshot, previous, outside),
            rules: rules(&snapshot, previous, workers),
            waf_rules: WafRules::build(&snapshot, previous.map(|table| &table.waf_rules)),
            departed: RemovedObjects::default(),
            generation,
            workers,
            snapshot,
        };
        table.departed = former.departed(&table);
        table
    }

    /// The table becomes active: a member without monitors counts as up.
    pub fn enter_into_force(&self, now_ms: u64) {
        self.pools.iter().for_each(|pool| pool.enter_into_force(now_ms));
    }

    /// The number of clients for which the tables of limits had no room.
    pub fn limit_losses(&self) -> u64 {
        self.key_limits.iter().map(|limit| limit.losses().total()).sum()
    }

    /// The number of workers of the counters.
    pub fn workers(&self) -> usize {
        self.workers
    }
}

/// Begins or ends the histograms of response times of all members.
fn keep_times<'a>(pools: impl Iterator<Item = &'a Arc<PoolMembers>>, workers: Option<usize>) {
    pools.flat_map(|pool| &pool.members).for_each(|member| member.keep_times(workers));
}

/// Whether some persistence selects members by keys of requests.
fn is_keyed(snapshot: &Snapshot) -> bool {
    snapshot.persistence.iter().any(|persistence| persistence.kind.is_keyed())
}

/// The TLS of each virtual server. Tickets and sessions of clients stay valid under the same name.
fn tls(snapshot: &Snapshot, previous: Option<&LiveTable>) -> Vec<Option<Arc<LiveTls>>> {
    let old: HashMap<&str, &LiveTls> = previous
        .iter()
        .flat_map(|table| table.snapshot.virtual_servers.iter().zip(&table.tls))
        .filter_map(|(server, tls)| Some((&*server.name, tls.as_deref()?)))
        .collect();
    let of = |server: &VirtualServer| {
        let settings = server.tls.as_deref()?;
        let old = old.get(&*server.name).copied();
        let challenges = snapshot.acme.as_ref().and_then(|acme| acme.challenges.as_ref());
        Some(Arc::new(LiveTls::build(&server.name, settings, challenges, old)))
    };
    snapshot.virtual_servers.iter().map(of).collect()
}

/// The limits per key. A limit of the same name keeps its counters. A limit on simultaneous requests must be the same
/// object, since requests that entered it will leave it; with another size it begins empty.
fn key_limits(snapshot: &Snapshot, former: &Former, now_us: u64) -> Vec<Arc<KeyedLimit>> {
    let limit = |limit: &Arc<KeyLimit>| {
        let old = former.key_limit(limit);
        // The same object if possible: workers still count in it while the next table is built.
        if let Some(old) = old.filter(|old| old.entries_max() == limit.entries_max) {
            return Arc::clone(old);
        }
        match limit.measure {
            KeyMeasure::Rate(_) => {
                let new = KeyedLimit::on_rates(limit.entries_max);
                if let Some(old) = old {
                    new.take_over(old, now_us);
                }
                Arc::new(new)
            }
            KeyMeasure::AtATime(_) => Arc::new(KeyedLimit::at_a_time(limit.entries_max)),
        }
    };
    snapshot.key_limits.iter().map(limit).collect()
}

/// Password checks; successful logins are kept over reloads.
fn logins(
    snapshot: &Snapshot,
    previous: Option<&LiveTable>,
    outside: &Environment,
) -> Option<Arc<Logins>> {
    let before = previous.and_then(|table| table.logins.clone());
    before.or_else(|| {
        snapshot.authenticating.checks_passwords.then(|| Arc::new(Logins::new(outside)))
    })
}

fn rules(snapshot: &Snapshot, previous: Option<&LiveTable>, workers: usize) -> Arc<[RuleCount]> {
    let old = previous.iter().flat_map(|table| table.snapshot.rules.iter().zip(&*table.rules));
    let old: HashMap<&RuleName, &RuleCount> = old.collect();
    let count = |name: &RuleName| match old.get(name) {
        Some(&old) => Arc::clone(old),
        None => Arc::new(PerWorker::new(workers)),
    };
    snapshot.rules.iter().map(count).collect()
}

/// A hash with a random key of this process.
fn own_hash(outside: &Environment) -> KeyedHash {
    KeyedHash::new(outside.random())
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;

    use super::*;

    fn table(members: &str, previous: Option<&LiveTable>) -> LiveTable {
        let text = format!(
            "virtual_servers: {{ v: {{ listen: \"127.0.0.1:8080\", pool: p }} }}\n\
             pools: {{ p: {{ members: {members} }} }}\n"
        );
        let config = weir_config::parse("test.yaml", &text).config.expect("a good configuration");
        let snapshot = config.snapshot(&weir_config::Resolutions::default());
        LiveTable::build(Arc::new(snapshot), previous, 1, &Environment::known())
    }

    #[test]
    fn a_state_of_run_time_holds_before_that_of_the_file() {
        let table = table("[ 127.0.0.1:1 ]", None);
        let member = &table.pools[0].members[0];
        let states = [AdminState::Enabled, AdminState::Drain, AdminState::Disabled];
        let mut before = None;
        for wanted in states.map(Some).into_iter().chain([None]) {
            assert_eq!(member.set_state_override(wanted), before);
            assert_eq!(member.state_override(), wanted);
            for configured in states {
                assert_eq!(member.state(configured), wanted.unwrap_or(configured));
            }
            before = wanted;
        }
    }

    #[test]
    fn histograms_of_members_come_and_go_with_the_configuration() {
        let of = |more: &str, previous: Option<&LiveTable>| {
            let text = format!(
                "virtual_servers: {{ v: {{ listen: \"127.0.0.1:8080\", pool: p }} }}\n\
                 pools: {{ p: {{ members: [ 127.0.0.1:1 ] }} }}\n{more}"
            );
            let config = weir_config::parse("test.yaml", &text).config.expect("a configuration");
            let snapshot = config.snapshot(&weir_config::Resolutions::default());
            LiveTable::build(Arc::new(snapshot), previous, 1, &Environment::known())
        };
        let by_member = "metrics: { latency_histograms: member }";
        let count =
            |table: &LiveTable| table.pools[0].members[0].response_histogram().map(|it| it.count());
        let without = of("", None);
        assert_eq!(
            (count(&without), without.pools[0].members[0].own_times(0).is_none()),
            (None, true)
        );
        let with = of(by_member, Some(&without));
        assert_eq!(count(&with), Some(0));
        with.pools[0].members[0].own_times(0).expect("it is counted").response_duration.record(7);
        // A reload that changes nothing about it keeps what was counted.
        let again = of(by_member, Some(&with));
        assert_eq!(count(&again), Some(1));
        let without = of("metrics: { latency_histograms: pool }", Some(&again));
        assert_eq!(count(&without), None);
        assert_eq!(count(&of(by_member, Some(&without))), Some(0));
    }

    #[test]
    fn workers_look_anew_only_when_something_has_changed() {
        let table = table("[ 127.0.0.1:1 ]", None);
        let live = &table.pools[0];
        let epoch = || live.pool.epoch.load(Relaxed);
        let start = epoch();
        live.members[0].set_state_override(None);
        assert_eq!(epoch(), start);
        live.members[0].set_state_override(Some(AdminState::Drain));
        live.members[0].set_state_override(Some(AdminState::Drain));
        assert_eq!(epoch(), start + 1);
        live.members[0].set_state_override(None);
        assert_eq!(epoch(), start + 2);
    }

    #[test]
    fn a_state_of_run_time_stays_as_long_as_the_member_does() {
        let first = table("[ 127.0.0.1:1, 127.0.0.1:2 ]", None);
        for member in &first.pools[0].members {
            member.set_state_override(Some(AdminState::Drain));
        }
        let second = table("[ 127.0.0.1:2, 127.0.0.1:3 ]", Some(&first));
        let overrides = |table: &LiveTable| -> Vec<Option<AdminState>> {
            table.pools[0].members.iter().map(|member| member.state_override()).collect()
        };
        assert_eq!(overrides(&second), [Some(AdminState::Drain), None]);
        let third = table("[ 127.0.0.1:1, 127.0.0.1:2 ]", Some(&second));
        assert_eq!(overrides(&third), [None, Some(AdminState::Drain)]);
    }

    #[test]
    fn other_members_of_a_pool_leave_everything_else_as_it_is() {
        let of = |members: &str| {
            let text = format!(
                "virtual_servers: {{ v: {{ listen: \"127.0.0.1:8080\", pool: p }} }}\n\
                 pools: {{ p: {{ balance: source_address, members: {members} }}, q: {{ members: [ 127.0.0.1:9 ] }} }}\n"
            );
            let config = weir_config::parse("test.yaml", &text).config.expect("a configuration");
            Arc::new(config.snapshot(&weir_config::Resolutions::default()))
        };
        let with = |table: &LiveTable, members: &str| {
            table.with_members(of(members), &[0], &Environment::known())
        };
        let first =
            LiveTable::build(of("[ 127.0.0.1:1, 127.0.0.1:2 ]"), None, 1, &Environment::known());
        let [one, two] = [0, 1].map(|index| Arc::clone(&first.pools[0].members[index]));
        two.set_state_override(Some(AdminState::Drain));
        two.occupancy.store(1, Relaxed);
        let second =
            with(&first, "[ 127.0.0.1:2, 127.0.0.1:3, { address: \"127.0.0.1:1\", weight: 7 } ]");
        let members = &second.pools[0].members;
        assert!(Arc::ptr_eq(&members[0], &two) && Arc::ptr_eq(&members[2], &one));
        assert_eq!(members[0].state_override(), Some(AdminState::Drain));
        assert_eq!(second.pools[0].settings.members[2].weight, 7);
        assert_eq!(
            [0, 2].map(|index| second.pools[0].index_of(&members[index].label)),
            [Some(0), Some(2)]
        );
        assert!(Arc::ptr_eq(&second.pools[1], &first.pools[1]), "another pool");
        assert!(Arc::ptr_eq(&second.pools[0].pool, &first.pools[0].pool), "state of the pool");
        assert!(Arc::ptr_eq(&second.virtual_servers[0], &first.virtual_servers[0]));
        assert_eq!((second.generation, second.departed.members().count()), (2, 0));
        // A member that leaves and is still in use comes back as itself, without what a command had set.
        let third = with(&second, "[ 127.0.0.1:3 ]");
        assert_eq!(third.pools[0].members.len(), 1);
        assert_eq!(third.departed.members().count(), 2);
        drop((one, first, second));
        assert_eq!(third.departed.members().count(), 1, "nobody uses the other");
        let fourth = with(&third, "[ 127.0.0.1:3, 127.0.0.1:2 ]");
        let back = &fourth.pools[0].members[1];
        assert!(Arc::ptr_eq(back, &two) && back.state_override().is_none());
        assert_eq!(back.occupancy.load(Relaxed), 1);
        assert_eq!(fourth.departed.members().count(), 0);
    }

    #[test]
    fn the_table_for_keys_stays_unless_a_label_or_a_weight_differs() {
        let of = |members: &str| {
            let text = format!(
                "virtual_servers: {{ v: {{ listen: \"127.0.0.1:8080\", pool: p }} }}\n\
                 pools: {{ p: {{ balance: source_address, members: {members} }} }}\n"
            );
            let config = weir_config::parse("test.yaml", &text).config.expect("a configuration");
            Arc::new(config.snapshot(&weir_config::Resolutions::default()))
        };
        let first =
            LiveTable::build(of("[ 127.0.0.1:1, 127.0.0.1:2 ]"), None, 1, &Environment::known());
        let check = |members: &str, is_kept: bool| {
            let next = first.with_members(of(members), &[0], &Environment::known());
            let [before, now] = [&first, &next].map(|it| it.pools[0].maglev.clone().expect("keys"));
            assert_eq!(Arc::ptr_eq(&before, &now), is_kept, "{members}");
        };
        check("[ 127.0.0.1:1, { address: \"127.0.0.1:2\", state: drain } ]", true);
        check("[ 127.0.0.1:1, { address: \"127.0.0.1:2\", connections_max: 3 } ]", true);
        check("[ 127.0.0.1:1, { address: \"127.0.0.1:2\", weight: 2 } ]", false);
        check("[ 127.0.0.1:2, 127.0.0.1:1 ]", false);
        check("[ 127.0.0.1:1 ]", false);
        check("[ 127.0.0.1:1, 127.0.0.1:3 ]", false);
    }

    #[test]
    fn what_comes_back_is_the_same_as_long_as_it_is_in_use() {
        let first = table("[ 127.0.0.1:1, 127.0.0.1:2 ]", None);
        let held = Arc::clone(&first.pools[0].members[0]);
        let (unused, server) =
            (Arc::downgrade(&first.pools[0].members[1]), Arc::downgrade(&first.virtual_servers[0]));
        held.occupancy.store(1, Relaxed);
        let second = table("[ 127.0.0.1:3 ]", Some(&first));
        assert_eq!(second.departed.members().count(), 2);
        drop(first);
        assert_eq!(second.departed.members().count(), 1, "nobody holds the other");
        // The state is remembered even if a table in between lacks the member.
        let third = table("[ 127.0.0.1:4 ]", Some(&second));
        drop(second);
        let fourth = table("[ 127.0.0.1:1, 127.0.0.1:2 ]", Some(&third));
        let members = &fourth.pools[0].members;
        assert!(Arc::ptr_eq(&members[0], &held) && unused.upgrade().is_none());
        let occupancy = |member: usize| members[member].occupancy.load(Relaxed);
        assert_eq!((occupancy(0), occupancy(1)), (1, 0));
        assert!(Arc::ptr_eq(&members[1].pool, &held.pool));
        assert!(Weak::ptr_eq(&server, &Arc::downgrade(&fourth.virtual_servers[0])));
        let present = third.pools[0].members.len() + fourth.departed.members().count();
        assert_eq!(present, 2, "only what the table before had has gone");
    }
}

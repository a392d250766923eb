//! Work on many sessions: lists and ends at the request of operators, resets when a member goes out of service.
//!
//! A worker has many sessions, and its loop must not rest for them. So a sweep looks at a part of them per turn, and ends a
//! few. A sweep sees each session once that is there from its begin to its end.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;
use std::sync::mpsc::SyncSender;

use weir_config::snapshot::ResetOn;
use weir_core::admin_state::AdminState;
use weir_core::monitor::Health;
use weir_event_loop::EventLoop;
use weir_exchange::arena::{Arena, ExchangeKey, OfExchange, SessionKey};
use weir_exchange::local::member::LocalMember;
use weir_exchange::local::table::{LocalServer, LocalTable};
use weir_exchange::shared::live::{LiveMember, LivePool};
use weir_exchange::termination::Termination;
use weir_exchange::transaction::Transaction;

use crate::sessions::{
    AskedSessions, ListedSession, SessionFilter, SessionKind, SessionView, SessionsAnswer,
    SessionsDeed,
};
use crate::worker::agenda::Task;
use crate::worker::udp::Udp;
use crate::worker::world::World;
use crate::worker::{Worker, sooner};

/// Maximum number of places that a sweep looks at in a turn.
const PLACES_PER_TURN: usize = 4_096;
/// Maximum number of sessions that a sweep ends in a turn: each costs system calls and a log line.
const ENDS_PER_TURN: usize = 64;
/// Maximum number of sweeps of a worker. The control plane asks for one after another.
const SWEEPS_MAX: usize = 8;
/// Interval in which states of members are read, if their sessions may be reset.
const WATCH_MS: u64 = 200;

/// Which sessions a sweep is about, and what becomes of them.
enum Purpose {
    /// Sessions of this filter are listed, up to this number.
    List(Arc<SessionFilter>, usize),
    /// Sessions of this filter are ended.
    End(Arc<SessionFilter>),
    /// Sessions whose member is out of service are reset, if their virtual server says so.
    Reset(OutOfService),
}

/// Where a sweep goes on.
#[derive(Clone, Copy)]
enum Place {
    /// At this slot of the transactions.
    Transactions(usize),
    /// At this slot of the sessions of datagrams.
    Datagrams(usize),
}

/// A sweep that is not over.
struct Sweep {
    purpose: Purpose,
    at: Place,
    answer: SessionsAnswer,
    to: Option<SyncSender<SessionsAnswer>>,
}

/// The members of a table that take no sessions, by their addresses in memory.
#[derive(Default)]
struct OutOfService {
    down: HashSet<usize>,
    disabled: HashSet<usize>,
    /// Sessions were seen that connect to such a member. They may become relays.
    has_connecting: bool,
}

/// Watches the states of members whose sessions may be reset.
struct Watch {
    /// The pools, with their epochs at the last look.
    pools: Vec<(Arc<LivePool>, u32)>,
    next_ms: u64,
    /// Members may have left, or sessions are about to begin.
    is_due: bool,
}

/// The sweeps of a worker.
#[derive(Default)]
pub struct Sweeps {
    under_way: VecDeque<Sweep>,
    watch: Option<Watch>,
}

impl Sweeps {
    /// Whether there is anything to do in the next turns.
    pub fn have_work(&self) -> bool {
        self.is_under_way() || self.watch.is_some()
    }

    /// Whether a sweep is not over.
    fn is_under_way(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// A sweep has looked at everything.
    fn finish(&mut self, sweep: Sweep) {
        if let (Purpose::Reset(OutOfService { has_connecting: true, .. }), Some(watch)) =
            (&sweep.purpose, &mut self.watch)
        {
            watch.is_due = true;
        }
        if let Some(to) = sweep.to {
            // Nobody may wait for the answer any more.
            let _ = to.try_send(sweep.answer);
        }
    }

    /// Begins to list or end sessions. With too many requests, the sender of the answer is dropped.
    pub fn begin(&mut self, asked: AskedSessions) {
        if self.under_way.len() >= SWEEPS_MAX {
            return;
        }
        let AskedSessions { filter, deed, answer } = asked;
        let purpose = match deed {
            SessionsDeed::List(max) => Purpose::List(filter, max),
            SessionsDeed::End => Purpose::End(filter),
        };
        self.add(purpose, Some(answer));
    }

    fn add(&mut self, purpose: Purpose, to: Option<SyncSender<SessionsAnswer>>) {
        let at = Place::Transactions(0);
        self.under_way.push_back(Sweep { purpose, at, answer: SessionsAnswer::default(), to });
    }

    /// Watches the members of this table, if a virtual server resets sessions.
    pub fn watch(&mut self, table: &LocalTable) {
        let resets = |server: &weir_config::snapshot::VirtualServer| {
            server.service.relay().is_some_and(|relay| relay.reset_on != ResetOn::Nothing)
        };
        // Members of another table may be elsewhere in memory.
        self.under_way.retain(|sweep| !matches!(sweep.purpose, Purpose::Reset(_)));
        let is_watched = table.snapshot.virtual_servers.iter().any(resets);
        self.watch = is_watched.then(|| {
            let pools = table.pools().iter();
            let pools =
                pools.map(|pool| (Arc::clone(pool.live()), pool.live().epoch.load(Acquire)));
            Watch { pools: pools.collect(), next_ms: 0, is_due: true }
        });
    }

    /// Begins to reset sessions, if states of members have changed. Returns the time of the next look.
    fn look_at_members(&mut self, table: &LocalTable, now_ms: u64) -> Option<u64> {
        let watch = self.watch.as_mut()?;
        if now_ms < watch.next_ms {
            return Some(watch.next_ms);
        }
        watch.next_ms = now_ms + WATCH_MS;
        let next_ms = watch.next_ms;
        let is_reset = |sweep: &Sweep| matches!(sweep.purpose, Purpose::Reset(_));
        if self.under_way.iter().any(is_reset) {
            return Some(next_ms);
        }
        let mut has_changed = std::mem::take(&mut watch.is_due);
        for (pool, epoch) in &mut watch.pools {
            let now = pool.epoch.load(Acquire);
            has_changed |= std::mem::replace(epoch, now) != now;
        }
        if has_changed {
            self.add(Purpose::Reset(OutOfService::of(table)), None);
        }
        Some(next_ms)
    }

    /// Forgets all sweeps after a panic. Whoever waits for an answer learns that there is none.
    pub fn forget(&mut self) {
        self.under_way.clear();
        if let Some(watch) = &mut self.watch {
            watch.is_due = true;
        }
    }
}

impl OutOfService {
    fn of(table: &LocalTable) -> Self {
        let mut out = Self::default();
        for pool in table.pools().iter().map(|pool| pool.now()) {
            for (local, member) in pool.members.iter().zip(&pool.settings().members) {
                let at = Arc::as_ptr(&local.live).addr();
                if local.live.health() == Health::Down {
                    out.down.insert(at);
                }
                if local.live.state(member.state) == AdminState::Disabled {
                    out.disabled.insert(at);
                }
            }
        }
        out
    }

    /// Whether the sessions of a member are reset under these settings.
    fn resets(&self, reset_on: ResetOn, member: &LocalMember) -> bool {
        let at = Arc::as_ptr(&member.live).addr();
        match reset_on {
            ResetOn::Nothing => false,
            ResetOn::Down => self.down.contains(&at),
            ResetOn::OutOfService => {
                self.down.contains(&at) || self.disabled.contains(&at) || member.retired.get()
            }
        }
    }
}

/// When the sessions of a virtual server are reset: as the table says, or, if it has gone, as it was.
fn reset_on(table: &LocalTable, server: &LocalServer) -> ResetOn {
    let server = table.server(&server.live.name).map_or(server, |now| now);
    server.settings().service.relay().map_or(ResetOn::Nothing, |relay| relay.reset_on)
}

/// The member of a transaction.
fn member_of(transaction: &Transaction) -> Option<&LocalMember> {
    let lease = &transaction.ends().phase.attempt()?.lease;
    lease.pool.members.get(lease.member as usize).map(|member| &**member)
}

/// A transaction as filters see it; `None`: it is no session.
fn seen<'a>(world: &World, now_us: u64, transaction: &'a Transaction) -> Option<SessionView<'a>> {
    let kind = match transaction {
        Transaction::Http(_) => return None,
        Transaction::Relay(_) => SessionKind::Tcp,
        Transaction::Tunnel(tunnel) if tunnel.is_relay() => SessionKind::Tcp,
        Transaction::Tunnel(_) => SessionKind::Tunnel,
    };
    let ends = transaction.ends();
    let pool = ends.phase.attempt().map_or(&ends.tries.pool, |attempt| &attempt.lease.pool);
    let member: Option<&Arc<LiveMember>> = member_of(transaction).map(|member| &member.live);
    Some(SessionView {
        kind,
        virtual_server: &ends.server.live.name,
        pool: &pool.live.name,
        member,
        client: world.clients.all.find(ends.caller.client()).and_then(|client| client.address()),
        age_ms: now_us.saturating_sub(ends.account.begun_us) / 1_000,
        bytes_received: ends.account.bytes_received,
        bytes_sent: ends.account.bytes_sent,
    })
}

impl Sweep {
    /// Lists a session. Returns whether there is room for more.
    fn list(&mut self, seen: &SessionView<'_>, max: usize, worker: usize) -> bool {
        if self.answer.listed.len() >= max {
            self.answer.more = true;
            return false;
        }
        self.answer.listed.push(ListedSession {
            kind: seen.kind,
            virtual_server: Arc::clone(seen.virtual_server),
            pool: Arc::clone(seen.pool),
            member: seen.member.map(|member| Arc::clone(&member.label)),
            client: seen.client,
            age_ms: seen.age_ms,
            bytes_received: seen.bytes_received,
            bytes_sent: seen.bytes_sent,
            worker,
        });
        true
    }

    /// What becomes of a session that the filter is asked about: `Some(true)`: it ends; `None`: the sweep is over.
    fn judge(&mut self, seen: &SessionView<'_>, worker: usize) -> Option<bool> {
        let (filter, max) = match &self.purpose {
            Purpose::List(filter, max) => (filter, Some(*max)),
            Purpose::End(filter) => (filter, None),
            Purpose::Reset(_) => return Some(false),
        };
        let is_selected = filter.selects(seen);
        match max {
            Some(max) if is_selected => self.list(seen, max, worker).then_some(false),
            Some(_) => Some(false),
            None => Some(is_selected),
        }
    }

    /// Whether a transaction is reset because its member is out of service.
    fn resets(&mut self, table: &LocalTable, transaction: &Transaction) -> bool {
        let Purpose::Reset(out) = &mut self.purpose else { return false };
        let Some(member) = member_of(transaction) else { return false };
        let is_meant = || out.resets(reset_on(table, &transaction.ends().server), member);
        match transaction {
            Transaction::Tunnel(tunnel) if tunnel.is_relay() => is_meant(),
            Transaction::Relay(_) => {
                let is_meant = is_meant();
                out.has_connecting |= is_meant;
                false
            }
            _ => false,
        }
    }

    fn why(&self) -> Termination {
        match self.purpose {
            Purpose::Reset(_) => Termination::MemberDown,
            Purpose::List(..) | Purpose::End(_) => Termination::Operator,
        }
    }
}

/// A part of a sweep: what it ends, and where the sweep goes on.
struct SweepPart {
    sweep: Sweep,
    next: Option<Place>,
    transactions: Vec<ExchangeKey>,
    sessions: Vec<SessionKey>,
}

/// What a worker has that sweeps look at.
struct SweptSessions<'a> {
    transactions: &'a Arena<OfExchange, Transaction>,
    udp: &'a Udp,
    world: &'a World,
    now_us: u64,
}

impl Sweeps {
    /// Looks at a part for the first sweep; `None`: there is no sweep.
    fn begin_part(&mut self, all: &SweptSessions<'_>) -> Option<SweepPart> {
        let mut sweep = self.under_way.pop_front()?;
        let (mut transactions, mut sessions) = (Vec::new(), Vec::new());
        let next = match sweep.at {
            Place::Transactions(at) => sweep.look_at_transactions(all, at, &mut transactions),
            Place::Datagrams(at) => sweep.look_at_datagrams(all, at, &mut sessions),
        };
        Some(SweepPart { sweep, next, transactions, sessions })
    }

    /// What a part of a sweep ends has ended.
    fn end_part(&mut self, sweep: Sweep, next: Option<Place>) {
        match next {
            Some(at) => self.under_way.push_front(Sweep { at, ..sweep }),
            None => self.finish(sweep),
        }
    }
}

impl Sweep {
    /// Looks at a part of the transactions. Returns where the sweep goes on; `None`: it is over.
    fn look_at_transactions(
        &mut self,
        all: &SweptSessions<'_>,
        from: usize,
        ended: &mut Vec<ExchangeKey>,
    ) -> Option<Place> {
        let mut next = from + PLACES_PER_TURN;
        for (after, key, transaction) in all.transactions.part(from, PLACES_PER_TURN) {
            let Some(seen) = seen(all.world, all.now_us, transaction) else { continue };
            if self.judge(&seen, all.world.id)? || self.resets(&all.world.table, transaction) {
                ended.push(key);
            }
            if ended.len() >= ENDS_PER_TURN {
                next = after;
                break;
            }
        }
        self.answer.ended += ended.len() as u64;
        let is_reset = matches!(self.purpose, Purpose::Reset(_));
        match next < all.transactions.slots() {
            true => Some(Place::Transactions(next)),
            // Only virtual servers of `type: tcp` reset sessions.
            false => (!is_reset).then_some(Place::Datagrams(0)),
        }
    }

    /// Looks at a part of the sessions of datagrams. Returns where the sweep goes on; `None`: it is over.
    fn look_at_datagrams(
        &mut self,
        all: &SweptSessions<'_>,
        from: usize,
        ended: &mut Vec<SessionKey>,
    ) -> Option<Place> {
        let mut next = from + PLACES_PER_TURN;
        for (after, key, seen) in all.udp.part(from, PLACES_PER_TURN, all.now_us) {
            if self.judge(&seen, all.world.id)? {
                ended.push(key);
            }
            if ended.len() >= ENDS_PER_TURN {
                next = after;
                break;
            }
        }
        self.answer.ended += ended.len() as u64;
        (next < all.udp.slots()).then_some(Place::Datagrams(next))
    }
}

/// Does a part of the rare work at the end of a turn.
#[cold]
pub fn do_chores(worker: &mut Worker, io: &mut EventLoop) {
    if worker.router.world.table.has_compression {
        worker.router.world.note_turn_for_budget(io.clock().now_us());
    }
    let watch_ms = worker.sweeps.look_at_members(&worker.router.world.table, io.now_ms());
    let all = SweptSessions {
        transactions: &worker.router.exchanges,
        udp: &worker.udp,
        world: &worker.router.world,
        now_us: io.clock().now_us(),
    };
    if let Some(SweepPart { sweep, next, transactions, sessions }) = worker.sweeps.begin_part(&all)
    {
        let why = sweep.why();
        for key in transactions {
            worker.router.with_any(io, key, |it, at| it.truncate(at, why));
        }
        for key in sessions {
            worker.udp.end_one(io, &mut worker.router.world, key, why);
        }
        worker.sweeps.end_part(sweep, next);
    }
    let sweep_ms = worker.sweeps.is_under_way().then(|| io.now_ms());
    note_chores(worker);
    worker.router.world.agenda.wake_by(sooner(watch_ms, sweep_ms).map(|due_ms| due_ms * 1_000));
}

/// Has [`do_chores`] called at the end of each turn, as long as there are any. It is one task for all of them, because most
/// workers have none.
pub fn note_chores(worker: &mut Worker) {
    if worker.router.world.table.has_compression || worker.sweeps.have_work() {
        worker.router.world.agenda.add_once(Task::DoChores);
    }
}

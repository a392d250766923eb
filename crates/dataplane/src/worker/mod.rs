//! A worker: a thread, its event loop, and the state that only this thread uses.
//!
//! The path of a request through this folder: `client` (bytes to a request head) -> [`Transaction`] (decisions, the member,
//! failures, the response) -> `member` (a connection to the member, its response). Shared parts: `world` has the state that
//! operations change, `edge` executes the operations of a transaction, `waiting_requests` has the requests that wait for a member,
//! `commands` executes the commands of the control plane, `events` passes the events of the loop on, `agenda` has what is put off.

mod agenda;
mod client;
mod client_end;
mod command;
mod commands;
mod compression_load;
mod control_channel;
mod edge;
mod events;
mod log_settings;
mod member;
mod notices;
#[cfg(feature = "simulation")]
mod remains;
mod setup;
#[cfg(all(test, not(feature = "simulation"), target_pointer_width = "64"))]
mod sizes;
mod small_frames;
mod state;
mod straight;
mod subrequests;
mod sweeps;
mod tasks;
mod transaction_end;
mod udp;
mod waiting_requests;
mod wire;
mod world;

use std::sync::Arc;

use crate::inspection_queue::KeptInspections;
use agenda::{Agenda, Due, Task};
use control_channel::ControlChannel;
use edge::WorkerEdge;
use state::waiting_requests::WaitingRequests;
use sweeps::Sweeps;
use udp::Udp;
use weir_event_loop::{EventLoop, Token};
use weir_exchange::arena::{Arena, ExchangeKey, OfExchange};
use weir_exchange::local::table::LocalTable;
use weir_exchange::parts::transaction_ends::NextClientState;
use weir_exchange::transaction::Transaction;
use weir_exchange::transaction::exchange::Exchange;
use weir_exchange::transaction::relay::Relay;
use weir_exchange::transaction::tunnel::Tunnel;
use world::{Inbox, World};

pub use command::{COMMAND_MESSAGE, Command, LISTENER_MESSAGE};
pub use setup::Setup;

/// A worker: its transactions, memory for the current message, and the state that operations change. The three can be
/// borrowed separately.
pub struct Worker {
    exchanges: Arena<OfExchange, Transaction>,
    inbox: Inbox,
    world: World,
    /// The UDP sessions.
    udp: Udp,
    /// Work on many sessions.
    sweeps: Sweeps,
    /// Commands from the control plane.
    control: ControlChannel,
    /// The long inspections that threads have no place for.
    inspections: KeptInspections,
}

impl Worker {
    /// Creates a worker without listeners. They arrive with the first command.
    pub fn new(setup: Setup, control: Token) -> Self {
        let inspections = KeptInspections::new(setup.id, setup.inspectors.clone());
        let (mut world, commands) = World::new(setup);
        log_settings::log_as_configured(&mut world);
        let mut worker = Self {
            exchanges: Arena::default(),
            inbox: Inbox::default(),
            world,
            udp: Udp::default(),
            sweeps: Sweeps::default(),
            control: ControlChannel::new(commands, control),
            inspections,
        };
        worker.sweeps.watch(&worker.world.table);
        sweeps::note_chores(&mut worker);
        worker
    }

    /// Calls a function with an exchange, if it still exists and has not become a tunnel.
    fn with<R: Default>(
        &mut self,
        io: &mut EventLoop,
        key: ExchangeKey,
        act: impl FnOnce(&mut Exchange, &mut WorkerEdge<'_>) -> R,
    ) -> R {
        self.with_any(io, key, |it, at| {
            it.http_mut().map_or_else(R::default, |exchange| act(exchange, at))
        })
    }

    /// Calls a function with a tunnel, if it still exists.
    fn with_tunnel<R: Default>(
        &mut self,
        io: &mut EventLoop,
        key: ExchangeKey,
        act: impl FnOnce(&mut Tunnel, &mut WorkerEdge<'_>) -> R,
    ) -> R {
        self.with_any(io, key, |it, at| {
            it.tunnel_mut().map_or_else(R::default, |tunnel| act(tunnel, at))
        })
    }

    /// Calls a function with a relay, if it still exists and has not become a tunnel.
    fn with_relay(
        &mut self,
        io: &mut EventLoop,
        key: ExchangeKey,
        act: impl FnOnce(&mut Relay, &mut WorkerEdge<'_>),
    ) {
        self.with_any(io, key, |it, at| {
            if let Transaction::Relay(relay) = it {
                act(relay, at);
            }
        });
    }

    /// Calls a function with a transaction, if it still exists. If the transaction has ended afterwards, it is removed, and
    /// its client connection continues.
    fn with_any<R: Default>(
        &mut self,
        io: &mut EventLoop,
        key: ExchangeKey,
        act: impl FnOnce(&mut Transaction, &mut WorkerEdge<'_>) -> R,
    ) -> R {
        let Some(transaction) = self.exchanges.get_mut(key) else { return R::default() };
        let result = act(transaction, &mut WorkerEdge { io: &mut *io, world: &mut self.world });
        if let Some(after) = transaction.ends_mut().over.take() {
            self.continue_client(io, key, after);
        }
        if !self.world.tools.deferred_work.is_empty() {
            self.run_orders(io);
        }
        result
    }

    /// Executes what a call of a transaction has ordered, unless the call belongs to such an order itself: then it is executed
    /// after that.
    #[inline(never)]
    fn run_orders(&mut self, io: &mut EventLoop) {
        let World { agenda, tools, .. } = &mut self.world;
        tools.deferred_work.drain(..).for_each(|it| agenda.add(Task::Order(it)));
        if agenda.begin_orders() {
            self.run_due(io, Due::AfterCall);
            self.world.agenda.end_orders();
        }
    }

    /// Continues with the client connection after a transaction has ended.
    fn continue_client(&mut self, io: &mut EventLoop, key: ExchangeKey, after: NextClientState) {
        match after {
            NextClientState::Tunnel { has_member_ended } => {
                return become_tunnel(self, io, key, has_member_ended);
            }
            NextClientState::Subrequest => return subrequests::ended(self, io, key),
            _ => {}
        }
        let Some(transaction) = self.exchanges.get(key) else { return };
        let caller = transaction.ends().caller;
        self.exchanges.discard(key);
        let Some(client) = caller.client() else { return };
        let is_shared = self.world.clients.all.get(client).is_none_or(|it| it.streams().is_some());
        match after {
            // A shared connection stays open when one of its streams ends.
            NextClientState::Response(_)
            | NextClientState::Whole
            | NextClientState::Broken { .. }
            | NextClientState::Gone { .. }
                if is_shared => {}
            NextClientState::Response(outcome) => self.response_ended(io, client, outcome),
            NextClientState::Whole => self.edge(io).leave(client, true),
            NextClientState::Gone { must_reset: true } => self.edge(io).reset_client(client),
            NextClientState::Gone { must_reset: false } => self.edge(io).close_client(client),
            NextClientState::Broken { must_reset } => self.edge(io).cut_client(client, must_reset),
            NextClientState::Cut { termination, must_reset } => {
                // All exchanges on the connection end with it.
                self.abandon_streams(io, client, termination);
                self.edge(io).cut_client(client, must_reset);
            }
            NextClientState::Nothing
            | NextClientState::Subrequest
            | NextClientState::Tunnel { .. } => {}
        }
    }

    /// The sockets and the state, for calls of transactions.
    fn edge<'a>(&'a mut self, io: &'a mut EventLoop) -> WorkerEdge<'a> {
        WorkerEdge { io, world: &mut self.world }
    }

    /// Resets the worker after a panic, because the state of all connections is unreliable. Corrects the shared counts that
    /// include them.
    pub fn forget_connections(&mut self, message: &str) {
        use std::sync::atomic::Ordering::Relaxed;
        let counters = &self.world.counted;
        counters.panics.add(1);
        for leaving in [&counters.connections_leaving, &counters.member_connections_leaving] {
            leaving.subtract(leaving.get());
        }
        self.world.clients.all.clear();
        self.world.clients.http2_memory.forget_all();
        self.world.bound.clear();
        let mut transforms = Vec::new();
        for exchange in self.exchanges.values_mut() {
            transforms.push(exchange.http_mut().and_then(|it| it.filters.on.take()));
        }
        // Compressed data for clients that are disconnected is dropped.
        transforms.into_iter().for_each(|it| self.world.tools.give_transforms(it));
        self.exchanges.clear();
        self.world.tools.encoders.forget_taken();
        self.world.recorder.forget();
        self.world.tools.deferred_work.clear();
        self.world.tools.offloaded.forget();
        let kept = self.inspections.forget();
        self.world.counted.waf_inspections_away.subtract(kept as u64);
        self.world.tools.unawaited_under_way = 0;
        self.world.waiting = WaitingRequests::new(self.world.id);
        self.world.agenda = Agenda::default();
        self.world.members.all.clear();
        // A removed object may be added again, and must have the correct number of open requests.
        let departed = &self.world.live.departed;
        let servers =
            self.world.live.virtual_servers.iter().cloned().chain(departed.virtual_servers());
        for server in servers {
            let counters = server.counters.of(self.world.id);
            server.connections.fetch_sub(counters.connections_open.get() as u32, Relaxed);
            counters.connections_open.subtract(counters.connections_open.get());
            counters.requests_active.subtract(counters.requests_active.get());
        }
        let pools = self.world.live.pools.iter().map(|pool| Arc::clone(&pool.pool));
        for pool in pools.chain(departed.pools()) {
            pool.waiting_since_ms[self.world.id].store(0, Relaxed);
            let counters = pool.counters.of(self.world.id);
            pool.waiting.fetch_sub(counters.queue_length.get() as u32, Relaxed);
            counters.queue_length.subtract(counters.queue_length.get());
        }
        let members = self.world.live.pools.iter().flat_map(|pool| pool.members.iter().cloned());
        for member in members.chain(departed.members()) {
            let counters = member.counters.of(self.world.id);
            counters.requests_active.subtract(counters.requests_active.get());
            counters.connections_open.subtract(counters.connections_open.get());
            counters.connections_idle.subtract(counters.connections_idle.get());
        }
        // The table is built without the previous one, so that no idle connection is reused.
        self.world.table = LocalTable::new(&self.world.live, None, self.world.id);
        self.world.listeners.refresh(&self.world.table);
        self.udp.forget(&self.world);
        self.sweeps.forget();
        sweeps::note_chores(self);
        self.world.note_ends();
        self.world.notices.tell_of_panic(self.world.id, message);
    }
}

/// Turns an exchange or a relay into a tunnel.
fn become_tunnel(
    worker: &mut Worker,
    io: &mut EventLoop,
    key: ExchangeKey,
    has_member_ended: bool,
) {
    worker.exchanges.replace(key, |transaction| match transaction {
        Transaction::Http(exchange) => Transaction::Tunnel(Tunnel::of(exchange)),
        Transaction::Relay(relay) => Transaction::Tunnel(Tunnel::of_relay(relay)),
        tunnel @ Transaction::Tunnel(_) => tunnel,
    });
    worker.with_tunnel(io, key, |it, at| {
        let has_client_ended = at.world.clients.has_ended(&it.ends);
        it.start(at, (has_client_ended, has_member_ended));
    });
}

/// The earlier of two times; `None`: no time.
fn sooner(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        _ => one.or(other),
    }
}

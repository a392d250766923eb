//! A worker: a thread, its event loop, and the state that only this thread uses.
//!
//! The path of a request through this folder: `client` (bytes to a request head) -> [`Transaction`] (decisions, the member,
//! failures, the response) -> `member` (a connection to the member, its response). Shared parts: `world` has the state that
//! operations change, `desk` executes the operations of a transaction, `waiting` has the requests that wait for a member,
//! `commands` executes the commands of the control plane.

mod asides;
mod body;
mod client;
mod command;
mod commands;
mod compression_load;
mod desk;
mod finishing;
mod joined;
mod leaving;
mod member;
mod notices;
mod recording;
#[cfg(feature = "simulation")]
mod remains;
mod setup;
#[cfg(all(test, not(feature = "simulation"), target_pointer_width = "64"))]
mod sizes;
mod state;
mod straight;
mod sweeps;
mod udp;
mod waiting;
mod world;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use desk::Desk;
use rustix::io::Errno;
use state::waiting::Waiting;
use sweeps::Sweeps;
use udp::Udp;
use weir_core::datagram::{Flow, Train};
use weir_event_loop::{Descriptor, EventLoop, Handler, Owner, OwnerKey, Token};
use weir_exchange::arena::{Arena, ClientKey, ConnectionKey, ExchangeKey, OfExchange};
use weir_exchange::local::table::LocalTable;
use weir_exchange::parts::ends::After;
use weir_exchange::transaction::Transaction;
use weir_exchange::transaction::exchange::Exchange;
use weir_exchange::transaction::relay::Relay;
use weir_exchange::transaction::tunnel::Tunnel;
use weir_tls::{Established, TlsError};
use world::{Inbox, Queues, World};

use crate::owners::key_of;
use crate::worker::client::http2_memory;

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
    /// Whether [`sweeps::do_chores`] is called at the end of the turn.
    has_chores: bool,
    /// Commands from the control plane.
    commands: Receiver<Command>,
    control: Token,
    /// Listeners that have arrived, and whose command has not; `None`: lost, because no descriptor was free.
    handed_over: VecDeque<Option<Descriptor>>,
}

impl Worker {
    /// Creates a worker without listeners. They arrive with the first command.
    pub fn new(setup: Setup, control: Token) -> Self {
        let (mut world, commands) = World::new(setup);
        recording::log_as_configured(&mut world);
        let mut worker = Self {
            exchanges: Arena::default(),
            inbox: Inbox::default(),
            world,
            udp: Udp::default(),
            sweeps: Sweeps::default(),
            has_chores: false,
            commands,
            control,
            handed_over: VecDeque::new(),
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
        act: impl FnOnce(&mut Exchange, &mut Desk<'_>) -> R,
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
        act: impl FnOnce(&mut Tunnel, &mut Desk<'_>) -> R,
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
        act: impl FnOnce(&mut Relay, &mut Desk<'_>),
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
        act: impl FnOnce(&mut Transaction, &mut Desk<'_>) -> R,
    ) -> R {
        let Some(transaction) = self.exchanges.get_mut(key) else { return R::default() };
        let result = act(transaction, &mut Desk { io: &mut *io, world: &mut self.world });
        if let Some(after) = transaction.ends_mut().over.take() {
            self.go_on_after(io, key, after);
        }
        while let Some(errand) = self.world.tools.errands.pop() {
            asides::run(self, io, errand);
        }
        result
    }

    /// Continues with the client connection after a transaction has ended.
    fn go_on_after(&mut self, io: &mut EventLoop, key: ExchangeKey, after: After) {
        match after {
            After::Tunnel { has_member_ended } => {
                return become_tunnel(self, io, key, has_member_ended);
            }
            After::Aside => return asides::ended(self, io, key),
            _ => {}
        }
        let Some(transaction) = self.exchanges.get(key) else { return };
        let client = transaction.ends().client;
        self.exchanges.discard(key);
        let is_shared = self.world.clients.get(client).is_none_or(|it| it.streams().is_some());
        match after {
            // A shared connection stays open when one of its streams ends.
            After::Response(_) | After::Whole | After::Broken { .. } | After::Gone { .. }
                if is_shared => {}
            After::Response(outcome) => self.response_ended(io, client, outcome),
            After::Whole => self.desk(io).leave(client, true),
            After::Gone { must_reset: true } => self.desk(io).reset_client(client),
            After::Gone { must_reset: false } => self.desk(io).close_client(client),
            After::Broken { must_reset } => self.desk(io).cut_client(client, must_reset),
            After::Cut { termination, must_reset } => {
                // All exchanges on the connection end with it.
                self.abandon_streams(io, client, termination);
                self.desk(io).cut_client(client, must_reset);
            }
            After::Nothing | After::Aside | After::Tunnel { .. } => {}
        }
    }

    /// The sockets and the state, for calls of transactions.
    fn desk<'a>(&'a mut self, io: &'a mut EventLoop) -> Desk<'a> {
        Desk { io, world: &mut self.world }
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
        self.world.clients.clear();
        self.world.of_clients.bound.clear();
        let mut transforms = Vec::new();
        for exchange in self.exchanges.values_mut() {
            transforms.push(exchange.http_mut().and_then(|it| it.transforms.take()));
        }
        // Compressed data for clients that are disconnected is dropped.
        transforms.into_iter().for_each(|it| self.world.tools.give_transforms(it));
        self.exchanges.clear();
        self.world.tools.encoders.forget_taken();
        self.world.queues = Queues::default();
        self.world.recorder.forget();
        self.world.tools.errands.clear();
        self.world.tools.mirrors_under_way = 0;
        self.world.waiting = Waiting::default();
        self.world.members.clear();
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
        self.world.refresh_listeners();
        self.udp.forget(&self.world);
        self.sweeps.forget();
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
        let has_client_ended = at.has_client_ended(&it.ends);
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

/// The side whose socket has an event.
enum Side {
    Client(ClientKey),
    Member(ConnectionKey),
    Neither,
}

impl Side {
    #[inline]
    fn of(owner: Owner) -> Self {
        match owner {
            Owner::Client(key) => key_of(key).map_or(Self::Neither, Self::Client),
            Owner::Member(key) => key_of(key).map_or(Self::Neither, Self::Member),
            Owner::Control
            | Owner::Listener(_)
            | Owner::DatagramListener(_)
            | Owner::Session(_)
            | Owner::Nobody => Self::Neither,
        }
    }
}

impl Handler for Worker {
    fn accepted(
        &mut self,
        io: &mut EventLoop,
        listener: OwnerKey,
        socket: Descriptor,
        peer: Option<SocketAddr>,
    ) {
        let Some(listener) = key_of(listener) else { return };
        if let Err(error) = self.accept_client(io, listener, socket, peer) {
            self.world.notices.tell_of_socket(io.now_ms(), &error.to_string());
        }
    }

    fn make_room(&mut self, io: &mut EventLoop) -> bool {
        member::connection::make_room(&mut self.desk(io))
    }

    fn accept_failed(&mut self, io: &mut EventLoop, _listener: OwnerKey, error: Errno) {
        self.world.notices.tell_of_socket(io.now_ms(), &error.to_string());
    }

    fn connected(&mut self, io: &mut EventLoop, owner: Owner, result: Result<(), Errno>) {
        if let Side::Member(key) = Side::of(owner) {
            self.member_connected(io, key, result);
        }
    }

    fn received(&mut self, io: &mut EventLoop, owner: Owner, bytes: &mut [u8]) {
        match Side::of(owner) {
            Side::Client(key) => self.client_received(io, key, bytes),
            Side::Member(key) => self.member_received(io, key, bytes),
            Side::Neither => {}
        }
    }

    fn passed(&mut self, io: &mut EventLoop, owner: Owner, bytes: usize) {
        straight::passed(self, io, &Side::of(owner), bytes);
    }

    fn ended(&mut self, io: &mut EventLoop, owner: Owner) {
        match Side::of(owner) {
            Side::Client(key) => self.client_ended(io, key),
            Side::Member(key) => self.member_ended(io, key),
            Side::Neither => {}
        }
    }

    fn failed(&mut self, io: &mut EventLoop, owner: Owner, _error: Errno) {
        match Side::of(owner) {
            Side::Client(key) => self.client_failed(io, key),
            Side::Member(key) => self.member_failed(io, key),
            Side::Neither => {}
        }
    }

    fn secured(&mut self, io: &mut EventLoop, owner: Owner, established: Established) {
        match Side::of(owner) {
            Side::Client(key) => self.client_secured(io, key, &established),
            Side::Member(key) => self.member_ready(io, key),
            Side::Neither => {}
        }
    }

    fn confirmed(&mut self, io: &mut EventLoop, owner: Owner) {
        if let Side::Client(key) = Side::of(owner) {
            self.client_confirmed(io, key);
        }
    }

    fn insecure(&mut self, io: &mut EventLoop, owner: Owner, error: &TlsError) {
        match Side::of(owner) {
            Side::Client(key) => self.client_insecure(io, key, error),
            Side::Member(key) => self.member_insecure(io, key, error),
            Side::Neither => {}
        }
    }

    fn drained(&mut self, io: &mut EventLoop, owner: Owner) {
        match Side::of(owner) {
            Side::Client(key) => self.client_drained(io, key),
            Side::Member(key) => self.member_drained(io, key),
            Side::Neither => {}
        }
    }

    fn timer(&mut self, io: &mut EventLoop, owner: Owner) {
        match Side::of(owner) {
            Side::Client(key) => self.client_timer(io, key),
            Side::Member(key) => self.member_timer(io, key),
            Side::Neither => {
                if let Owner::Session(key) = owner
                    && let Some(key) = key_of(key)
                {
                    self.udp.timed_out(io, &mut self.world, key);
                }
            }
        }
    }

    fn datagrams(
        &mut self,
        io: &mut EventLoop,
        owner: Owner,
        flow: Option<Flow>,
        train: Train<'_>,
    ) {
        let world = &mut self.world;
        match (owner, flow) {
            (Owner::DatagramListener(key), flow) => {
                if let Some(key) = key_of(key) {
                    self.udp.client_sent(io, world, key, flow, train);
                }
            }
            (Owner::Session(key), Some(flow)) => {
                if let Some(key) = key_of(key) {
                    self.udp.member_sent(io, world, key, flow.client, train);
                }
            }
            _ => {}
        }
    }

    fn datagrams_failed(&mut self, io: &mut EventLoop, owner: Owner, error: Errno) {
        if let Owner::Session(key) = owner
            && let Some(key) = key_of(key)
        {
            self.udp.member_failed(io, &mut self.world, key, error);
        }
    }

    fn closed(&mut self, io: &mut EventLoop, owner: Owner) {
        match Side::of(owner) {
            Side::Client(key) => self.desk(io).forget_client(key),
            // The member connection was removed when it started to linger.
            Side::Member(_) => self.world.counted.member_connections_leaving.subtract(1),
            Side::Neither => {}
        }
    }

    fn control(&mut self, io: &mut EventLoop) {
        self.receive_commands(io);
    }

    fn turn_ended(&mut self, io: &mut EventLoop) -> Option<u64> {
        // This call may write log lines.
        let udp_due_ms = self.udp.turn_ended(io, &mut self.world);
        let counters = &self.world.counted;
        counters.loop_turns.add(1);
        let now_ms = io.now_ms();
        let mut due_ms = self.world.log.flush_if_due(now_ms, counters);
        let side_due_ms = self.world.side_logs.flush_if_due(now_ms, counters);
        due_ms = sooner(sooner(due_ms, side_due_ms), udp_due_ms);
        if self.has_chores {
            due_ms = sooner(due_ms, sweeps::do_chores(self, io));
        }
        self.world.note_compression_memory();
        let has_unbegun = self.begin_unbegun(io);
        let waiting_us = self.serve_waiting(io);
        self.fail_lost_streams(io);
        if self.world.leave_by_ms.is_some() || self.world.is_draining() {
            due_ms = sooner(due_ms, self.drain_step(io));
        }
        self.desk(io).flush_members();
        self.desk(io).flush_clients();
        http2_memory::heed(self, io);
        if has_unbegun || !self.world.queues.lost_streams.is_empty() {
            // Streams that were lost after `fail_lost_streams` are handled in the next turn, which starts immediately.
            return Some(io.clock().now_us());
        }
        sooner(due_ms.map(|due_ms| due_ms * 1_000), waiting_us)
    }
}

//! One worker: a thread, its event loop, and everything that only it touches.
//!
//! A request's way through this folder: `client` or `http2` (bytes to a request head) -> `exchange` (which
//! member, what if it fails) -> `member` (a connection to it, its response) -> `body` (ranges of
//! bytes both ways), `tunnel` after an upgrade; `relay` for whole connections; `commands` is what the control plane wants.

mod body;
mod client;
mod client_connection;
mod commands;
mod compress;
mod considered;
mod early_data;
mod encoding;
mod end;
mod ending;
mod exchange;
mod extras;
mod frames;
mod handshake;
mod http2;
mod joined;
mod leaving;
mod lost_streams;
mod member;
mod member_http2;
mod member_request;
mod member_tls;
mod member_tunnel;
mod member_window;
mod own_response;
mod pace;
mod patience;
mod pending;
mod policy;
mod relay;
#[cfg(feature = "simulation")]
mod remains;
mod response;
mod scratch;
mod stage;
mod stream;
mod streams;
mod toward_client;
mod toward_member;
mod trailers;
mod tunnel;
mod waiting;
mod websocket;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};

use rustix::io::Errno;
use weir_compression::{Budget, Pool};
use weir_core::policy::Decision;
use weir_event_loop::clock::Clock;
use weir_event_loop::wall_clock::WallClock;
use weir_event_loop::{Descriptor, EventLoop, Handler, Owner, OwnerKey, Token};
use weir_http::edits::FieldEdits;
use weir_http::h2::hpack::HeaderBlock;
use weir_http::message::{Field, RequestHead, ResponseHead};
use weir_tls::{Established, TlsError};

use crate::access_log::AccessLog;
use crate::arena::{
    Arena, ClientKey, ConnectionKey, ExchangeKey, ListenerKey, OfClient, OfConnection, OfExchange,
    OfListener,
};
use crate::counters::{PerWorker, WorkerCounters};
use crate::live::LiveTable;
use crate::reports::Event;
use crate::table::{LocalServer, LocalTable};
use crate::traffic::Held;

use client_connection::Client;
pub use commands::{COMMAND_MESSAGE, Command, LISTENER_MESSAGE};
use exchange::Exchange;
use extras::Extras;
use lost_streams::LostStream;
use member::MemberConnection;
use pending::PendingRequests;
use scratch::Scratch;
use streams::Stream;
use waiting::Waiting;

/// At most one event about sockets that cannot be had in this time.
const SOCKET_EVENT_INTERVAL_MS: u64 = 1_000;

/// What a worker is made of.
pub struct Setup {
    /// Its number.
    pub id: usize,
    /// What to serve first.
    pub table: Arc<LiveTable>,
    /// Its own counters are `counters.of(id)`.
    pub counters: Arc<PerWorker<WorkerCounters>>,
    /// The access log.
    pub log: AccessLog,
    /// Where events go.
    pub events: SyncSender<Event>,
    /// Where the lines of policies go.
    pub policy_lines: SyncSender<Event>,
    /// What the control plane wants; each message is announced on the control socket.
    pub commands: Receiver<Command>,
}

/// One worker's state.
pub struct Worker {
    id: usize,
    live: Arc<LiveTable>,
    table: LocalTable,
    clients: Arena<OfClient, Client>,
    exchanges: Arena<OfExchange, Exchange>,
    members: Arena<OfConnection, MemberConnection>,
    listeners: Arena<OfListener, Listener>,
    counters: Arc<PerWorker<WorkerCounters>>,
    log: AccessLog,
    events: SyncSender<Event>,
    policy_lines: SyncSender<Event>,
    socket_event_ms: u64,
    rewrite_event_ms: u64,
    insecure_event_ms: u64,
    tunnel_event_ms: u64,
    commands: Receiver<Command>,
    control: Token,
    /// Listeners that came before the command which says what they are; `None`: lost on the way.
    handed_over: VecDeque<Option<Descriptor>>,
    /// When the first client has to go whose virtual server is in no table any more.
    leave_by_ms: Option<u64>,
    /// The process stops: when the last clients are closed.
    drain_until_ms: Option<u64>,
    wall: WallClock,
    /// Requests that wait for a member or for their time.
    waiting: Waiting,
    #[expect(clippy::vec_box, reason = "the boxes are used again, not what is in them")]
    spare_extras: Vec<Box<Extras>>,
    #[expect(clippy::vec_box, reason = "the boxes are used again, not what is in them")]
    spare_streams: Vec<Box<Stream>>,
    /// Clients of HTTP/2 whose frames go out at the end of the turn.
    unflushed: Vec<ClientKey>,
    /// The same of members.
    unflushed_members: Vec<ConnectionKey>,
    /// Requests that got no stream.
    lost_streams: Vec<(ExchangeKey, Option<ConnectionKey>, LostStream)>,
    #[expect(clippy::vec_box, reason = "the boxes are used again, not what is in them")]
    spare_pending: Vec<Box<PendingRequests>>,
    /// Clients of HTTP/2 of whom more requests are to begin in the next turn.
    unbegun: Vec<ClientKey>,
    /// Requests whose bodies had not begun to come with their heads.
    bodies_to_come: Vec<ExchangeKey>,
    /// Requests and responses of which the read that is under way has brought small frames; empty between two.
    joined_requests: Vec<ExchangeKey>,
    joined_responses: Vec<ExchangeKey>,
    /// What the request that is looked at holds under limits; empty between two.
    held: Vec<Held>,
    // Reused for every message; each is stale between events. The heads leave while they are used.
    request_head: Option<Box<RequestHead>>,
    header_block: Option<HeaderBlock>,
    member_request_head: Option<Box<RequestHead>>,
    member_block: Option<HeaderBlock>,
    response_head: Option<Box<ResponseHead>>,
    response_edits: FieldEdits,
    decision: Option<Box<Decision>>,
    response_decision: Option<Box<Decision>>,
    trailers: Vec<Field>,
    scratch: Scratch,
    encoders: Pool,
    budget: Budget,
}

/// A listening socket of this worker.
struct Listener {
    token: Token,
    address: Rc<weir_config::snapshot::Address>,
    server: Rc<LocalServer>,
}

impl Worker {
    /// A worker that serves nothing until its first command brings listeners.
    pub fn new(setup: Setup, control: Token) -> Self {
        let Setup { id, table, counters, mut log, events, policy_lines, commands } = setup;
        let local = LocalTable::new(&table, None, id);
        log.set_format(local.access_format());
        Self {
            id,
            live: table,
            table: local,
            clients: Arena::default(),
            exchanges: Arena::default(),
            members: Arena::default(),
            listeners: Arena::default(),
            counters,
            log,
            events,
            policy_lines,
            socket_event_ms: 0,
            rewrite_event_ms: 0,
            insecure_event_ms: 0,
            tunnel_event_ms: 0,
            commands,
            control,
            handed_over: VecDeque::new(),
            leave_by_ms: None,
            drain_until_ms: None,
            wall: WallClock::default(),
            waiting: Waiting::default(),
            spare_extras: Vec::new(),
            spare_streams: Vec::new(),
            unflushed: Vec::new(),
            unflushed_members: Vec::new(),
            lost_streams: Vec::new(),
            member_request_head: None,
            member_block: None,
            spare_pending: Vec::new(),
            unbegun: Vec::new(),
            bodies_to_come: Vec::new(),
            joined_requests: Vec::new(),
            joined_responses: Vec::new(),
            held: Vec::new(),
            request_head: None,
            header_block: None,
            response_head: None,
            response_edits: FieldEdits::default(),
            decision: None,
            response_decision: None,
            trailers: Vec::new(),
            scratch: Scratch::default(),
            encoders: Pool::default(),
            budget: Budget::new(Clock::new().now_us()),
        }
    }

    /// Whether the process is stopping.
    fn is_draining(&self) -> bool {
        self.drain_until_ms.is_some()
    }

    /// After a panic: nothing is known of any connection any more. What was promised to other
    /// workers about them is taken back.
    pub fn forget_connections(&mut self, message: &str) {
        use std::sync::atomic::Ordering::Relaxed;
        let counters = self.counters.of(self.id);
        counters.panics.add(1);
        for leaving in [&counters.connections_leaving, &counters.member_connections_leaving] {
            leaving.subtract(leaving.get());
        }
        self.clients.clear();
        let mut encodings = Vec::new();
        for exchange in self.exchanges.values_mut() {
            if let Some(member) = exchange.reserved {
                exchange.pool.members[member as usize].live.occupancy.fetch_sub(1, Relaxed);
            }
            encodings.push(exchange.encoding.take());
        }
        // What was compressed for a client that is gone is given up, not sent.
        encodings.into_iter().for_each(|encoding| self.give_encoding(encoding));
        self.exchanges.clear();
        self.encoders.forget_taken();
        self.unflushed.clear();
        self.unflushed_members.clear();
        self.lost_streams.clear();
        self.unbegun.clear();
        self.bodies_to_come.clear();
        self.joined_requests.clear();
        self.joined_responses.clear();
        self.waiting = Waiting::default();
        self.members.clear();
        // What has gone may come back, and then knows what is under way.
        let departed = &self.live.departed;
        let servers = self.live.virtual_servers.iter().cloned().chain(departed.virtual_servers());
        for server in servers {
            let counters = server.counters.of(self.id);
            server.connections.fetch_sub(counters.connections_open.get() as u32, Relaxed);
            counters.connections_open.subtract(counters.connections_open.get());
            counters.requests_active.subtract(counters.requests_active.get());
        }
        let pools = self.live.pools.iter().map(|pool| Arc::clone(&pool.pool));
        for pool in pools.chain(departed.pools()) {
            pool.waiting_since_ms[self.id].store(0, Relaxed);
            let counters = pool.counters.of(self.id);
            pool.waiting.fetch_sub(counters.queue_length.get() as u32, Relaxed);
            counters.queue_length.subtract(counters.queue_length.get());
        }
        let members = self.live.pools.iter().flat_map(|pool| pool.members.iter().cloned());
        for member in members.chain(departed.members()) {
            let counters = member.counters.of(self.id);
            member.occupancy.fetch_sub(counters.requests_active.get() as u32, Relaxed);
            counters.requests_active.subtract(counters.requests_active.get());
            counters.connections_open.subtract(counters.connections_open.get());
            counters.connections_idle.subtract(counters.connections_idle.get());
        }
        // Without the old table no idle connection is taken over.
        self.table = LocalTable::new(&self.live, None, self.id);
        self.refresh_listeners();
        let event = Event::WorkerPanicked { worker: self.id, message: message.to_owned() };
        // A full channel loses the notice; the counter has it.
        let _ = self.events.try_send(event);
    }
}

/// Whose socket something happened to.
enum Side {
    Client(ClientKey),
    Member(ConnectionKey),
    Neither,
}

impl Side {
    #[inline]
    fn of(owner: Owner) -> Self {
        match owner {
            Owner::Client(key) => ClientKey::of(key).map_or(Self::Neither, Self::Client),
            Owner::Member(key) => ConnectionKey::of(key).map_or(Self::Neither, Self::Member),
            Owner::Control | Owner::Listener(_) => Self::Neither,
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
        let Some(listener) = ListenerKey::of(listener) else { return };
        if let Err(error) = self.accept_client(io, listener, socket, peer) {
            self.report_socket_failure(io, &error.to_string());
        }
    }

    fn accept_failed(&mut self, io: &mut EventLoop, _listener: OwnerKey, error: Errno) {
        self.report_socket_failure(io, &error.to_string());
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
            Side::Member(key) => self.member_secured(io, key, &established),
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
            Side::Client(key) => self.client_insecure(io, key),
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
            Side::Neither => {}
        }
    }

    fn closed(&mut self, io: &mut EventLoop, owner: Owner) {
        match Side::of(owner) {
            Side::Client(key) => self.forget_client(io, key),
            // It was forgotten when it was left to linger.
            Side::Member(_) => self.counters.of(self.id).member_connections_leaving.subtract(1),
            Side::Neither => {}
        }
    }

    fn control(&mut self, io: &mut EventLoop) {
        self.receive_commands(io);
    }

    fn turn_ended(&mut self, io: &mut EventLoop) -> Option<u64> {
        let counters = self.counters.of(self.id);
        counters.loop_turns.add(1);
        let now_ms = io.now_ms();
        let log_due_ms = self.log.flush_if_due(now_ms, counters);
        if self.table.has_compression {
            self.note_turn_for_budget(io.clock().now_us());
        }
        self.note_compression_memory();
        let has_unbegun = self.begin_unbegun(io);
        let waiting_us = self.serve_waiting(io);
        self.fail_lost_streams(io);
        let due_ms = if self.leave_by_ms.is_none() && self.drain_until_ms.is_none() {
            log_due_ms
        } else {
            [log_due_ms, self.drain_step(io)].into_iter().flatten().min()
        };
        self.flush_members(io);
        self.flush_clients(io);
        let due_us = due_ms.map(|due_ms| due_ms * 1_000);
        // Those that were lost once more have their turn at once.
        let is_due = has_unbegun || !self.lost_streams.is_empty();
        let now_us = is_due.then(|| io.clock().now_us());
        [due_us, waiting_us, now_us].into_iter().flatten().min()
    }
}

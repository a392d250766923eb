//! A worker: a thread, its event loop, and the state that only this thread uses.
//!
//! The path of a request through this folder: `client` (bytes to a request head) -> `Transaction` (decisions, the member,
//! failures, the response) -> `member` (a connection to the member, its response). `router` takes what comes from a connection to its
//! transaction. Shared parts: `world` has the state that
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
mod router;
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

use agenda::Agenda;
use control_channel::ControlChannel;
use router::Router;
use state::waiting_requests::WaitingRequests;
use sweeps::Sweeps;
use udp::Udp;
use weir_event_loop::Token;
use weir_exchange::arena::Arena;
use weir_exchange::local::table::LocalTable;
use world::{Inbox, World};

use crate::inspection_queue::KeptInspections;

pub use command::{COMMAND_MESSAGE, Command, LISTENER_MESSAGE};
pub use setup::Setup;

/// A worker: connections and transactions, sessions of datagrams, and what it does for the control plane.
pub struct Worker {
    /// Connections and transactions.
    router: Router,
    /// The UDP sessions.
    udp: Udp,
    /// Work on many sessions.
    sweeps: Sweeps,
    /// Commands from the control plane.
    control: ControlChannel,
}

impl Worker {
    /// Creates a worker without listeners. They arrive with the first command.
    pub fn new(setup: Setup, control: Token) -> Self {
        let inspections = KeptInspections::new(setup.id, setup.inspectors.clone());
        let (mut world, commands) = World::new(setup);
        log_settings::log_as_configured(&mut world);
        let mut worker = Self {
            router: Router {
                exchanges: Arena::default(),
                inbox: Inbox::default(),
                world,
                inspections,
            },
            udp: Udp::default(),
            sweeps: Sweeps::default(),
            control: ControlChannel::new(commands, control),
        };
        worker.sweeps.watch(&worker.router.world.table);
        sweeps::note_chores(&mut worker);
        worker
    }

    /// Resets the worker after a panic, because the state of all connections is unreliable. Corrects the shared counts that
    /// include them.
    pub fn forget_connections(&mut self, message: &str) {
        use std::sync::atomic::Ordering::Relaxed;
        let counters = &self.router.world.counted;
        counters.panics.add(1);
        for leaving in [&counters.connections_leaving, &counters.member_connections_leaving] {
            leaving.subtract(leaving.get());
        }
        self.router.world.clients.all.clear();
        self.router.world.clients.http2_memory.forget_all();
        self.router.world.members.bound.clear();
        let mut transforms = Vec::new();
        for exchange in self.router.exchanges.values_mut() {
            transforms.push(exchange.http_mut().and_then(|it| it.filters.on.take()));
        }
        // Compressed data for clients that are disconnected is dropped.
        transforms.into_iter().for_each(|it| self.router.world.tools.give_transforms(it));
        self.router.exchanges.clear();
        self.router.world.tools.encoders.forget_taken();
        self.router.world.recorder.forget();
        self.router.world.tools.deferred_work.clear();
        self.router.world.tools.offloaded.forget();
        let kept = self.router.inspections.forget();
        self.router.world.counted.waf_inspections_away.subtract(kept as u64);
        self.router.world.tools.unawaited_under_way = 0;
        self.router.world.waiting = WaitingRequests::new(self.router.world.id);
        self.router.world.agenda = Agenda::default();
        self.router.world.members.all.clear();
        // A removed object may be added again, and must have the correct number of open requests.
        let departed = &self.router.world.live.departed;
        let servers = self
            .router
            .world
            .live
            .virtual_servers
            .iter()
            .cloned()
            .chain(departed.virtual_servers());
        for server in servers {
            let counters = server.counters.of(self.router.world.id);
            server.connections.fetch_sub(counters.connections_open.get() as u32, Relaxed);
            counters.connections_open.subtract(counters.connections_open.get());
            counters.requests_active.subtract(counters.requests_active.get());
        }
        let pools = self.router.world.live.pools.iter().map(|pool| Arc::clone(&pool.pool));
        for pool in pools.chain(departed.pools()) {
            pool.waiting_since_ms[self.router.world.id].store(0, Relaxed);
            let counters = pool.counters.of(self.router.world.id);
            pool.waiting.fetch_sub(counters.queue_length.get() as u32, Relaxed);
            counters.queue_length.subtract(counters.queue_length.get());
        }
        let members =
            self.router.world.live.pools.iter().flat_map(|pool| pool.members.iter().cloned());
        for member in members.chain(departed.members()) {
            let counters = member.counters.of(self.router.world.id);
            counters.requests_active.subtract(counters.requests_active.get());
            counters.connections_open.subtract(counters.connections_open.get());
            counters.connections_idle.subtract(counters.connections_idle.get());
        }
        // The table is built without the previous one, so that no idle connection is reused.
        self.router.world.table =
            LocalTable::new(&self.router.world.live, None, self.router.world.id);
        self.router.world.listeners.refresh(&self.router.world.table);
        self.udp.forget(&self.router.world);
        self.sweeps.forget();
        sweeps::note_chores(self);
        self.router.world.note_ends();
        self.router.world.notices.tell_of_panic(self.router.world.id, message);
    }
}

/// The earlier of two times; `None`: no time.
fn sooner(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        _ => one.or(other),
    }
}

//! Executes commands of the control plane: another table, drain, stop.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use weir_config::snapshot::{Address, ListenPoint};
#[cfg(feature = "simulation")]
use weir_event_loop::Descriptor;
use weir_event_loop::{EventLoop, accept_before_close};
use weir_exchange::arena::{Arena, ClientKey, ConnectionKey, OfConnection};
use weir_exchange::local::member::LocalMember;
use weir_exchange::local::pool::LocalPool;
use weir_exchange::local::table::LocalTable;
use weir_exchange::shared::live::LiveTable;
use weir_exchange::termination::Termination;

use super::Worker;
use super::agenda::Task;
use super::world::World;
use crate::worker::command::Command;
use crate::worker::control_channel::ControlEvent;
use crate::worker::edge::WorkerEdge;
use crate::worker::state::client::Client;
use crate::worker::state::client_end::ClientEnd;
use crate::worker::state::client_step::ClientStep;
use crate::worker::state::drain_deadlines::DrainDeadlines;
use crate::worker::state::member::MemberConnection;
use crate::worker::state::stage::Stage;
use crate::worker::{log_settings, subrequests, sweeps};

/// The time in which a client that has connected before a stop may send its first request; at most half of the drain time.
const FIRST_REQUEST_MS: u64 = 1_000;

impl Worker {
    /// Reads the control socket, and executes the announced commands.
    pub fn receive_commands(&mut self, io: &mut EventLoop) {
        while let Some(event) = self.control.next(io) {
            match event {
                ControlEvent::Command(command) => self.obey(io, command),
                // The worker stops, too.
                ControlEvent::End => return io.stop(),
                ControlEvent::Failure(error) => {
                    let error = format!("control socket: {error}");
                    return self.router.world.notices.tell_of_socket(io.now_ms(), &error);
                }
            }
        }
    }

    /// Executes a command with its listeners.
    #[cfg(feature = "simulation")]
    pub fn obey_in_simulation(
        &mut self,
        io: &mut EventLoop,
        command: Command,
        listeners: Vec<Descriptor>,
    ) {
        self.control.add_listeners(listeners);
        self.obey(io, command);
    }

    fn obey(&mut self, io: &mut EventLoop, command: Command) {
        match command {
            Command::Apply { table, added, removed } => self.apply(io, table, added, &removed),
            Command::Members { table, pools } => self.take_members(io, table, &pools),
            Command::Drain { timeout_ms, idle_ms } => self.drain(io, timeout_ms, idle_ms),
            Command::Stop => self.stop(io),
            Command::Sessions(asked) => {
                self.sweeps.begin(asked);
                sweeps::note_chores(self);
            }
            Command::Follow(is_followed) => {
                log_settings::follow(&mut self.router.world, is_followed)
            }
            Command::Inspected(job) => subrequests::inspection_returned(&mut self.router, io, *job),
            Command::LineDropped => self.router.world.counted.waf_log_lines_dropped.add(1),
            Command::Answer(answer) => answer.store(true, Relaxed),
            #[cfg(feature = "simulation")]
            Command::SetInspections { are_all_long, cpu_us } => {
                let tools = &mut self.router.world.tools;
                tools.offloaded.turn.work_bytes_max = if are_all_long { 0 } else { u64::MAX };
                tools.cpu_us = cpu_us;
            }
            #[cfg(test)]
            Command::Open(path, answer) => {
                answer.send(std::fs::File::open(path).map(drop)).expect("a test that waits");
            }
            #[cfg(test)]
            Command::Panic => panic!("as told"),
            #[cfg(test)]
            Command::Wait(until) => until.recv().expect("a word"),
        }
    }

    fn apply(
        &mut self,
        io: &mut EventLoop,
        live: Arc<LiveTable>,
        added: Vec<ListenPoint>,
        removed: &[ListenPoint],
    ) {
        accept_last(self, io, removed);
        let next = LocalTable::new(&live, Some(&self.router.world.table), self.router.world.id);
        for member in self.router.world.table.retire_members(&next) {
            self.router.world.members.close_idle(io, &member);
        }
        self.router.world.log.flush(&self.router.world.counted);
        self.router.world.side_logs.flush(&self.router.world.counted);
        let leave_by_ms = io.now_ms() + live.snapshot.data_plane.drain_timeout_ms;
        self.router.world.table = next;
        self.router.world.live = live;
        self.router.world.waiting.move_to(&self.router.world.table, &mut self.router.exchanges);
        self.sweeps.watch(&self.router.world.table);
        sweeps::note_chores(self);
        log_settings::log_as_configured(&mut self.router.world);
        self.router.world.listeners.remove(io, removed);
        self.router.world.listeners.refresh(&self.router.world.table);
        // Idle clients would keep the previous table in memory.
        let idle =
            self.router.world.clients.all.iter().filter(|(_, client)| client.exchange().is_none());
        let idle: Vec<ClientKey> = idle.map(|(key, _)| key).collect();
        idle.into_iter().for_each(|key| self.router.world.refresh_server(key));
        self.router.world.set_leave_times(leave_by_ms);
        let bytes_max = self.router.world.live.snapshot.data_plane.http2_memory_bytes;
        self.router.world.clients.http2_memory.set_max(&mut self.router.world.agenda, bytes_max);
        self.udp.apply(io, &mut self.router.world, removed, leave_by_ms);
        for address in added {
            let world = &mut self.router.world;
            let failure = match self.control.next_listener() {
                Some(socket) if matches!(address.address, Address::Udp(_)) => {
                    self.udp.add_listener(io, world, socket, address);
                    continue;
                }
                Some(socket) => {
                    let added = world.listeners.add(io, &world.table, socket, address.clone());
                    added.err().map(|error| format!("listener {address}: {error}"))
                }
                None => Some(format!("listener {address} was lost")),
            };
            if let Some(failure) = failure {
                world.notices.tell_of_socket(io.now_ms(), &failure);
            }
        }
        self.close_idle_clients(io);
    }

    /// Takes the members of some pools, by their indexes, from a table that differs from the active one in nothing else.
    fn take_members(&mut self, io: &mut EventLoop, live: Arc<LiveTable>, pools: &[usize]) {
        for member in self.router.world.table.take_members(&live, pools, self.router.world.id) {
            self.router.world.members.close_idle(io, &member);
        }
        go_over(&self.router.world.table, pools, &mut self.router.world.members.all);
        self.router.world.live = live;
        self.router.world.waiting.move_to(&self.router.world.table, &mut self.router.exchanges);
        self.sweeps.watch(&self.router.world.table);
        sweeps::note_chores(self);
    }
}

/// Connections that any request may use go over to the present view of their pool: they would keep the former one, with the
/// settings of all of its members, as long as they are idle. No other setting of the pool has changed.
fn go_over(
    table: &LocalTable,
    pools: &[usize],
    connections: &mut Arena<OfConnection, MemberConnection>,
) {
    let pools = pools.iter().map(|index| table.pools()[*index].now());
    let pools: Vec<Rc<LocalPool>> = pools.collect();
    // Who has fewer is gone over: the pools, or all connections.
    if pools.iter().map(|pool| pool.members.len()).sum::<usize>() <= connections.slots() {
        for pool in &pools {
            for keys in pool.members.iter().flat_map(|member| idle_lists(member)) {
                for key in &*keys.borrow() {
                    if let Some(connection) = connections.get_mut(*key) {
                        connection.pool = Rc::clone(pool);
                    }
                }
            }
        }
        return;
    }
    let present = |connection: &MemberConnection| {
        pools.iter().find(|pool| Arc::ptr_eq(&pool.live, &connection.pool.live))
    };
    let may_be_used = |key: ConnectionKey, connection: &MemberConnection| {
        let member = &*connection.member;
        !member.retired.get() && idle_lists(member).iter().any(|keys| keys.borrow().contains(&key))
    };
    let over = connections.iter().filter_map(|(key, connection)| {
        let pool = present(connection).filter(|_| may_be_used(key, connection))?;
        Some((key, Rc::clone(pool)))
    });
    for (key, pool) in over.collect::<Vec<_>>() {
        if let Some(connection) = connections.get_mut(key) {
            connection.pool = pool;
        }
    }
}

/// The connections of a member that any request may use.
fn idle_lists(member: &LocalMember) -> [&RefCell<Vec<ConnectionKey>>; 3] {
    [&member.idle, &member.bound, &member.multiplexed]
}

impl World {
    /// Sets the deadline of clients without a virtual server, and of clients whose handshake was checked by other settings
    /// for client certificates. An earlier deadline stays.
    fn set_leave_times(&mut self, leave_by_ms: u64) {
        let is_lost = |client: &Client| {
            self.has_lost_its_server(client) || self.has_handshake_of_others(client)
        };
        let lost: Vec<bool> = self.clients.all.iter().map(|(_, client)| is_lost(client)).collect();
        for (client, lost) in self.clients.all.values_mut().zip(lost) {
            client.leave_by_ms = lost.then(|| client.leave_by_ms.unwrap_or(leave_by_ms));
        }
        self.leave_by_ms = self.next_leave_ms();
        self.note_ends();
    }

    /// Has clients ended in time, if the process drains or some clients have deadlines.
    pub fn note_ends(&mut self) {
        if self.leave_by_ms.is_some() || self.is_draining() {
            self.agenda.add_once(Task::EndClients);
        }
    }

    /// The earliest deadline of these clients.
    fn next_leave_ms(&self) -> Option<u64> {
        self.clients.all.iter().filter_map(|(_, client)| client.leave_by_ms).min()
    }
}

impl Worker {
    /// Closes idle clients that have a deadline, or all idle clients if the process drains. Clients with an open request get
    /// `Connection: close` in the response. The first request of a client that has just connected may be on its way.
    fn close_idle_clients(&mut self, io: &mut EventLoop) {
        let keys: Vec<ClientKey> = self
            .router
            .world
            .clients
            .all
            .iter()
            .filter(|(_, client)| {
                let stays = !self.router.world.is_draining() && client.leave_by_ms.is_none();
                let is_new = io.sockets.sent_bytes(client.token) == 0;
                let is_spared = client.leave_by_ms.is_none()
                    && (DrainDeadlines::spares_idle(self.router.world.clients.draining)
                        || is_new
                            && DrainDeadlines::spares_new(self.router.world.clients.draining));
                match client.stage {
                    Stage::Idle => !stays && !is_spared,
                    // HTTP/2 clients get a GOAWAY first, so that no request is lost.
                    Stage::Streams => !stays,
                    _ => false,
                }
            })
            .map(|(key, _)| key)
            .collect();
        for key in keys {
            let World { clients, agenda, .. } = &mut self.router.world;
            let Some(client) = clients.all.get_mut(key) else { continue };
            match client.stage {
                Stage::Streams => client.announce_end((io, agenda), key),
                _ if client.leaves_idle(io) => {
                    WorkerEdge::of(io, &mut self.router.world).end_client(key, ClientEnd::ORDERLY);
                }
                _ => {}
            }
        }
    }

    fn drain(&mut self, io: &mut EventLoop, timeout_ms: u64, idle_ms: Option<u64>) {
        let addresses = self.router.world.listeners.addresses();
        match idle_ms {
            None => accept_last(self, io, &addresses),
            Some(_) => self.udp.leave_unread(io),
        }
        self.router.world.listeners.remove(io, &addresses);
        let now_ms = io.now_ms();
        let idle_until_ms = idle_ms.map(|idle_ms| now_ms.saturating_add(idle_ms));
        let until_ms = now_ms.saturating_add(timeout_ms);
        let first_until_ms = Some(now_ms.saturating_add(FIRST_REQUEST_MS.min(timeout_ms / 2)));
        self.router.world.clients.draining =
            Some(DrainDeadlines { until_ms, idle_until_ms, first_until_ms });
        self.router.world.note_ends();
        self.close_idle_clients(io);
    }

    /// Checks whether draining is finished or its time is over, and closes clients whose deadlines have passed.
    pub fn end_clients(&mut self, io: &mut EventLoop) {
        if self.router.world.leave_by_ms.is_none() && !self.router.world.is_draining() {
            return;
        }
        let now_ms = io.now_ms();
        // Members may still take what the last clients have sent.
        let has_ended = self.router.world.clients.all.is_empty()
            && self.udp.is_empty()
            // The log still gets what they find.
            && self.router.world.tools.offloaded.left() == 0
            && self.router.world.counted.member_connections_leaving.get() == 0;
        let draining = self.router.world.clients.draining;
        if draining.is_some_and(|draining| has_ended || now_ms >= draining.until_ms) {
            self.router.world.note_ends();
            return self.stop(io);
        }
        let is_due = |at_ms: u64| at_ms <= now_ms;
        if self
            .router
            .world
            .clients
            .draining
            .as_mut()
            .is_some_and(|draining| draining.end_times(now_ms))
        {
            self.close_idle_clients(io);
        }
        if self.router.world.leave_by_ms.is_some_and(is_due) {
            self.close_clients(io, |client| client.leave_by_ms.is_some_and(is_due));
            self.router.world.leave_by_ms = self.router.world.next_leave_ms();
        }
        let draining = self.router.world.clients.draining.map(|draining| draining.next_ms());
        let next_ms = self.router.world.leave_by_ms.into_iter().chain(draining).min();
        self.router.world.agenda.wake_by(next_ms.map(|at_ms| at_ms * 1_000));
        self.router.world.note_ends();
    }

    fn stop(&mut self, io: &mut EventLoop) {
        self.close_clients(io, |_| true);
        self.udp.stop(io, &mut self.router.world);
        self.router.world.log.flush(&self.router.world.counted);
        self.router.world.side_logs.flush(&self.router.world.counted);
        io.stop();
    }

    /// Closes the client connections that satisfy a condition, in any state.
    fn close_clients(&mut self, io: &mut EventLoop, which: impl Fn(&Client) -> bool) {
        let keys: Vec<ClientKey> = self
            .router
            .world
            .clients
            .all
            .iter()
            .filter(|(_, client)| which(client))
            .map(|(key, _)| key)
            .collect();
        for key in keys {
            let Some(client) = self.router.world.clients.all.get(key) else {
                continue;
            };
            match client.stage {
                Stage::Exchange(exchange) => self
                    .router
                    .with_any(io, exchange, |it, at| it.truncate(at, Termination::Stopped)),
                Stage::Streams => {
                    let step = ClientStep::EndStreams(Termination::Stopped, ClientEnd::Stop);
                    self.router.client_step(io, key, step);
                }
                _ => WorkerEdge::of(io, &mut self.router.world).end_client(key, ClientEnd::Close),
            }
        }
    }
}

/// Accepts the connections in the queues of listeners that are about to be closed.
fn accept_last(worker: &mut Worker, io: &mut EventLoop, removed: &[ListenPoint]) {
    for token in worker.router.world.listeners.sockets(removed) {
        accept_before_close(io, worker, token);
    }
}

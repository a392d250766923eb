//! Executes commands of the control plane: another table, drain, stop.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use weir_config::snapshot::{Address, ListenPoint};
use weir_event_loop::{Descriptor, EventLoop, Owner, Token, accept_before_close};
use weir_exchange::arena::{Arena, ClientKey, ListenerKey, OfConnection};
use weir_exchange::local::table::LocalTable;
use weir_exchange::shared::live::LiveTable;
use weir_exchange::termination::Termination;

use super::Worker;
use super::edge::WorkerEdge;
use super::world::{DrainDeadlines, World};
use crate::owners::owner_key;
use crate::worker::command::{Command, LISTENER_MESSAGE};
use crate::worker::state::client::Client;
use crate::worker::state::destination::Destination;
use crate::worker::state::listener::Listener;
use crate::worker::state::member::MemberConnection;
use crate::worker::state::stage::Stage;
use crate::worker::{log_settings, subrequests, sweeps};

/// The time in which a client that has connected before a stop may send its first request; at most half of the drain time.
const FIRST_REQUEST_MS: u64 = 1_000;

impl Worker {
    /// Reads the control socket, and executes the announced commands.
    pub fn receive_commands(&mut self, io: &mut EventLoop) {
        loop {
            let Some(socket) = io.sockets.descriptor(self.control).and_then(Descriptor::socket)
            else {
                return;
            };
            match receive(socket) {
                Ok(ControlMessage::Listener(descriptor)) => {
                    self.handed_over.push_back(descriptor.map(Descriptor::from))
                }
                Ok(ControlMessage::Command) => {
                    if let Ok(command) = self.commands.try_recv() {
                        self.obey(io, command);
                    }
                }
                // The control plane has ended, so the worker stops, too.
                Ok(ControlMessage::End) => return io.stop(),
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                Err(error) => {
                    let error = format!("control socket: {error}");
                    return self.world.notices.tell_of_socket(io.now_ms(), &error);
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
        self.handed_over.extend(listeners.into_iter().map(Some));
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
            Command::Follow(is_followed) => log_settings::follow(&mut self.world, is_followed),
            Command::Inspected(job) => subrequests::inspection_returned(self, io, *job),
            Command::Answer(answer) => answer.store(true, Relaxed),
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
        let next = LocalTable::new(&live, Some(&self.world.table), self.world.id);
        for member in self.world.table.retire_members(&next) {
            self.edge(io).close_idle(&member);
        }
        self.world.log.flush(&self.world.counted);
        self.world.side_logs.flush(&self.world.counted);
        let leave_by_ms = io.now_ms() + live.snapshot.data_plane.drain_timeout_ms;
        self.world.table = next;
        self.world.live = live;
        self.move_waiting();
        self.sweeps.watch(&self.world.table);
        sweeps::note_chores(self);
        log_settings::log_as_configured(&mut self.world);
        self.edge(io).remove_listeners(removed);
        self.world.refresh_listeners();
        // Idle clients would keep the previous table in memory.
        let idle = self.world.clients.iter().filter(|(_, client)| client.exchange().is_none());
        let idle: Vec<ClientKey> = idle.map(|(key, _)| key).collect();
        idle.into_iter().for_each(|key| self.world.refresh_server(key));
        self.world.set_leave_times(leave_by_ms);
        self.udp.apply(io, &mut self.world, removed, leave_by_ms);
        for address in added {
            match self.handed_over.pop_front().flatten() {
                Some(socket) if matches!(address.address, Address::Udp(_)) => {
                    self.udp.add_listener(io, &mut self.world, socket, address);
                }
                Some(socket) => self.edge(io).add_listener(socket, address),
                None => self
                    .world
                    .notices
                    .tell_of_socket(io.now_ms(), &format!("listener {address} was lost")),
            }
        }
        self.close_idle_clients(io);
    }

    /// Takes the members of some pools, by their indexes, from a table that differs from the active one in nothing else.
    fn take_members(&mut self, io: &mut EventLoop, live: Arc<LiveTable>, pools: &[usize]) {
        for member in self.world.table.take_members(&live, pools, self.world.id) {
            self.edge(io).close_idle(&member);
        }
        go_over(&self.world.table, pools, &mut self.world.members);
        self.world.live = live;
        self.move_waiting();
        self.sweeps.watch(&self.world.table);
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
    for &index in pools {
        let pool = table.pools()[index].now();
        for member in &pool.members {
            for keys in [&member.idle, &member.bound, &member.multiplexed] {
                for key in &*keys.borrow() {
                    if let Some(connection) = connections.get_mut(*key) {
                        connection.pool = Rc::clone(&pool);
                    }
                }
            }
        }
    }
}

impl World {
    /// Sets the deadline of clients without a virtual server, and of clients whose handshake was checked by other settings
    /// for client certificates. An earlier deadline stays.
    fn set_leave_times(&mut self, leave_by_ms: u64) {
        let is_lost = |client: &Client| {
            self.has_lost_its_server(client) || self.has_handshake_of_others(client)
        };
        let lost: Vec<bool> = self.clients.iter().map(|(_, client)| is_lost(client)).collect();
        for (client, lost) in self.clients.values_mut().zip(lost) {
            client.leave_by_ms = lost.then(|| client.leave_by_ms.unwrap_or(leave_by_ms));
        }
        self.leave_by_ms = self.next_leave_ms();
    }

    /// The earliest deadline of these clients.
    fn next_leave_ms(&self) -> Option<u64> {
        self.clients.iter().filter_map(|(_, client)| client.leave_by_ms).min()
    }

    /// Assigns the virtual servers of the active table to the listeners.
    pub fn refresh_listeners(&mut self) {
        for listener in self.listeners.values_mut() {
            if let Some(server) = self.table.server_at(listener.address.listen()) {
                listener.server = Rc::clone(server);
            }
        }
    }
}

impl WorkerEdge<'_> {
    fn add_listener(&mut self, socket: Descriptor, address: ListenPoint) {
        let Some(server) = self.world.table.server_at(&address) else {
            return;
        };
        match self.io.add(socket, Owner::Listener(owner_key(self.world.listeners.next_key()))) {
            Ok(token) => {
                let (address, server) = (Destination::new(address), Rc::clone(server));
                self.world.listeners.insert(Listener { token, address, server });
            }
            Err(error) => self
                .world
                .notices
                .tell_of_socket(self.io.now_ms(), &format!("listener {address}: {error}")),
        }
    }

    fn remove_listeners(&mut self, removed: &[ListenPoint]) {
        let keys: Vec<ListenerKey> = self
            .world
            .listeners
            .iter()
            .filter(|(_, listener)| removed.contains(listener.address.listen()))
            .map(|(key, _)| key)
            .collect();
        for key in keys {
            if let Some(listener) = self.world.listeners.remove(key) {
                self.io.close(listener.token);
            }
        }
    }
}

impl Worker {
    /// Closes idle clients that have a deadline, or all idle clients if the process drains. Clients with an open request get
    /// `Connection: close` in the response. The first request of a client that has just connected may be on its way.
    fn close_idle_clients(&mut self, io: &mut EventLoop) {
        let keys: Vec<ClientKey> = self
            .world
            .clients
            .iter()
            .filter(|(_, client)| {
                let stays = !self.world.is_draining() && client.leave_by_ms.is_none();
                let is_new = io.sockets.sent_bytes(client.token) == 0;
                let is_spared = client.leave_by_ms.is_none()
                    && (DrainDeadlines::spares_idle(self.world.draining)
                        || is_new && DrainDeadlines::spares_new(self.world.draining));
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
            let Some(client) = self.world.clients.get(key) else { continue };
            match client.stage {
                Stage::Streams => self.edge(io).announce_end(key),
                _ => self.edge(io).leave_idle(key),
            }
        }
    }

    fn drain(&mut self, io: &mut EventLoop, timeout_ms: u64, idle_ms: Option<u64>) {
        let addresses: Vec<ListenPoint> = self
            .world
            .listeners
            .iter()
            .map(|(_, listener)| listener.address.listen().clone())
            .collect();
        match idle_ms {
            None => accept_last(self, io, &addresses),
            Some(_) => self.udp.leave_unread(io),
        }
        self.edge(io).remove_listeners(&addresses);
        let now_ms = io.now_ms();
        let idle_until_ms = idle_ms.map(|idle_ms| now_ms.saturating_add(idle_ms));
        let until_ms = now_ms.saturating_add(timeout_ms);
        let first_until_ms = Some(now_ms.saturating_add(FIRST_REQUEST_MS.min(timeout_ms / 2)));
        self.world.draining = Some(DrainDeadlines { until_ms, idle_until_ms, first_until_ms });
        self.close_idle_clients(io);
    }

    /// Checks whether draining is finished or its time is over, and closes clients whose deadlines have passed. Returns the
    /// time of the next check.
    pub fn drain_step(&mut self, io: &mut EventLoop) -> Option<u64> {
        let now_ms = io.now_ms();
        // Members may still take what the last clients have sent.
        let has_ended = self.world.clients.is_empty()
            && self.udp.is_empty()
            // The log still gets what they find.
            && self.world.tools.offloaded.left() == 0
            && self.world.counted.member_connections_leaving.get() == 0;
        let draining = self.world.draining;
        if draining.is_some_and(|draining| has_ended || now_ms >= draining.until_ms) {
            self.stop(io);
            return None;
        }
        let is_due = |at_ms: u64| at_ms <= now_ms;
        if self.world.draining.as_mut().is_some_and(|draining| draining.end_times(now_ms)) {
            self.close_idle_clients(io);
        }
        if self.world.leave_by_ms.is_some_and(is_due) {
            self.close_clients(io, |client| client.leave_by_ms.is_some_and(is_due));
            self.world.leave_by_ms = self.world.next_leave_ms();
        }
        let draining = self.world.draining.map(|draining| draining.next_ms());
        self.world.leave_by_ms.into_iter().chain(draining).min()
    }

    fn stop(&mut self, io: &mut EventLoop) {
        self.close_clients(io, |_| true);
        self.udp.stop(io, &mut self.world);
        self.world.log.flush(&self.world.counted);
        self.world.side_logs.flush(&self.world.counted);
        io.stop();
    }

    /// Closes the client connections that satisfy a condition, in any state.
    fn close_clients(&mut self, io: &mut EventLoop, which: impl Fn(&Client) -> bool) {
        let keys: Vec<ClientKey> = self
            .world
            .clients
            .iter()
            .filter(|(_, client)| which(client))
            .map(|(key, _)| key)
            .collect();
        for key in keys {
            let Some(client) = self.world.clients.get(key) else {
                continue;
            };
            match client.stage {
                Stage::Exchange(exchange) => {
                    self.with_any(io, exchange, |it, at| it.truncate(at, Termination::Stopped))
                }
                Stage::Streams => self.stop_http2(io, key),
                _ => self.edge(io).close_client(key),
            }
        }
    }
}

/// Accepts the connections in the queues of listeners that are about to be closed.
fn accept_last(worker: &mut Worker, io: &mut EventLoop, removed: &[ListenPoint]) {
    let listeners = worker.world.listeners.iter().map(|(_, listener)| listener);
    let going = listeners.filter(|listener| removed.contains(listener.address.listen()));
    let tokens: Vec<Token> = going.map(|listener| listener.token).collect();
    for token in tokens {
        accept_before_close(io, worker, token);
    }
}

enum ControlMessage {
    /// A listener; `None`: the process had no free descriptor for it.
    Listener(Option<OwnedFd>),
    /// The channel has a command.
    Command,
    End,
}

/// Receives one message of the control socket.
fn receive(socket: &OwnedFd) -> Result<ControlMessage, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut kind = [0; 1];
    let message = recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut kind)],
        &mut ancillary,
        RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC,
    )?;
    let descriptor = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    Ok(match kind[0] {
        _ if message.bytes == 0 => ControlMessage::End,
        LISTENER_MESSAGE => ControlMessage::Listener(descriptor),
        _ => ControlMessage::Command,
    })
}

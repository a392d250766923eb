//! Passes the events of the loop on: to the client or member whose socket it is, to sessions of datagrams, and to the work at the
//! end of each turn.

use std::net::SocketAddr;

use rustix::io::Errno;
use weir_core::datagram::{Flow, Train};
use weir_event_loop::{Descriptor, EventLoop, Handler, Owner, OwnerKey};
use weir_exchange::arena::{ClientKey, ConnectionKey};
use weir_exchange::edge::TunnelBytes;
use weir_exchange::parts::failure::MemberFailure;
use weir_tls::{HandshakeResult, TlsError};

use crate::owners::key_of;
use crate::worker::agenda::TaskKind;
use crate::worker::edge::WorkerEdge;
use crate::worker::{Worker, sooner};

/// The side whose socket has an event.
enum SocketOwner {
    Client(ClientKey),
    Member(ConnectionKey),
    Neither,
}

impl SocketOwner {
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

/// Counts bytes of a tunnel that were moved directly from this side to the other.
fn passed(worker: &mut Worker, io: &mut EventLoop, from: &SocketOwner, count: usize) {
    let world = &mut worker.router.world;
    world.counted.bytes_spliced.add(count as u64);
    let passing = TunnelBytes::Moved(count);
    match *from {
        SocketOwner::Client(key) => {
            let Some(client) = world.clients.all.get(key) else { return };
            client.server.counters.bytes_received.add(count as u64);
            let Some(exchange) = client.exchange() else { return };
            worker.router.with_any(io, exchange, |it, at| {
                it.with_tunnel(|it| it.client_passed(at, passing))
            });
        }
        SocketOwner::Member(key) => {
            let Some(connection) = world.members.all.get(key) else { return };
            connection.member.counters.bytes_received.add(count as u64);
            let Some(exchange) = connection.exchange else { return };
            worker.router.with_any(io, exchange, |it, at| {
                it.with_tunnel(|it| it.member_passed(at, passing))
            });
        }
        SocketOwner::Neither => {}
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
        match self.router.world.accept_client(io, listener, socket, peer) {
            Ok(Some((key, step))) => self.router.client_step(io, key, step),
            Ok(None) => {}
            Err(error) => {
                self.router.world.notices.tell_of_socket(io.now_ms(), &error.to_string());
            }
        }
    }

    fn make_room(&mut self, io: &mut EventLoop) -> bool {
        self.router.world.members.make_room(io, &self.router.world.table)
    }

    fn accept_failed(&mut self, io: &mut EventLoop, _listener: OwnerKey, error: Errno) {
        self.router.world.notices.tell_of_socket(io.now_ms(), &error.to_string());
    }

    fn connected(&mut self, io: &mut EventLoop, owner: Owner, result: Result<(), Errno>) {
        if let SocketOwner::Member(key) = SocketOwner::of(owner) {
            match result {
                Err(_) => self.router.connection_lost(io, key, MemberFailure::Connect),
                // The handshake may use the rest of `connect_timeout`.
                Ok(()) if self.router.world.members.has_handshake(io, key) => {}
                Ok(()) => self.router.member_ready(io, key),
            }
        }
    }

    fn received(&mut self, io: &mut EventLoop, owner: Owner, bytes: &mut [u8]) {
        match SocketOwner::of(owner) {
            SocketOwner::Client(key) => self.router.client_received(io, key, bytes),
            SocketOwner::Member(key) => self.router.member_received(io, key, bytes),
            SocketOwner::Neither => {}
        }
    }

    fn passed(&mut self, io: &mut EventLoop, owner: Owner, bytes: usize) {
        passed(self, io, &SocketOwner::of(owner), bytes);
    }

    fn ended(&mut self, io: &mut EventLoop, owner: Owner) {
        match SocketOwner::of(owner) {
            SocketOwner::Client(key) => self.router.client_event(io, key, |it| it.ended()),
            SocketOwner::Member(key) => self.router.member_ended(io, key),
            SocketOwner::Neither => {}
        }
    }

    fn failed(&mut self, io: &mut EventLoop, owner: Owner, _error: Errno) {
        match SocketOwner::of(owner) {
            SocketOwner::Client(key) => self.router.client_event(io, key, |it| it.failed()),
            SocketOwner::Member(key) => self.router.connection_lost(io, key, MemberFailure::Abort),
            SocketOwner::Neither => {}
        }
    }

    fn secured(&mut self, io: &mut EventLoop, owner: Owner, established: HandshakeResult) {
        match SocketOwner::of(owner) {
            SocketOwner::Client(key) => {
                let draining = self.router.world.clients.draining;
                self.router.client_event(io, key, |it| it.secured(&established, draining));
            }
            SocketOwner::Member(key) => self.router.member_ready(io, key),
            SocketOwner::Neither => {}
        }
    }

    fn confirmed(&mut self, io: &mut EventLoop, owner: Owner) {
        if let SocketOwner::Client(key) = SocketOwner::of(owner) {
            self.router.client_event(io, key, |it| it.client.confirmed());
        }
    }

    fn insecure(&mut self, io: &mut EventLoop, owner: Owner, error: &TlsError) {
        match SocketOwner::of(owner) {
            SocketOwner::Client(key) => self.router.client_event(io, key, |it| it.insecure(error)),
            SocketOwner::Member(key) => {
                let world = &mut self.router.world;
                let failure = world.members.tls_failure(io, key, error, &mut world.notices);
                if let Some(failure) = failure {
                    self.router.connection_lost(io, key, failure);
                }
            }
            SocketOwner::Neither => {}
        }
    }

    fn drained(&mut self, io: &mut EventLoop, owner: Owner) {
        match SocketOwner::of(owner) {
            SocketOwner::Client(key) => self.router.client_event(io, key, |it| it.drained()),
            SocketOwner::Member(key) => self.router.member_drained(io, key),
            SocketOwner::Neither => {}
        }
    }

    fn timer(&mut self, io: &mut EventLoop, owner: Owner) {
        match SocketOwner::of(owner) {
            SocketOwner::Client(key) => self.router.client_event(io, key, |it| it.timed_out()),
            SocketOwner::Member(key) => self.router.member_timer(io, key),
            SocketOwner::Neither => {
                if let Owner::Session(key) = owner
                    && let Some(key) = key_of(key)
                {
                    self.udp.timed_out(io, &mut self.router.world, key);
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
        let world = &mut self.router.world;
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
            self.udp.member_failed(io, &mut self.router.world, key, error);
        }
    }

    fn closed(&mut self, io: &mut EventLoop, owner: Owner) {
        match SocketOwner::of(owner) {
            SocketOwner::Client(key) => {
                WorkerEdge::of(io, &mut self.router.world).forget_client(key)
            }
            // The member connection was removed when it started to linger.
            SocketOwner::Member(_) => {
                self.router.world.counted.member_connections_leaving.subtract(1)
            }
            SocketOwner::Neither => {}
        }
    }

    fn control(&mut self, io: &mut EventLoop) {
        self.receive_commands(io);
    }

    fn turn_ended(&mut self, io: &mut EventLoop) -> Option<u64> {
        // This call may write log lines.
        let udp_due_ms = self.udp.turn_ended(io, &mut self.router.world);
        let counters = &self.router.world.counted;
        counters.loop_turns.add(1);
        let now_ms = io.now_ms();
        let log_due_ms = self.router.world.log.flush_if_due(now_ms, counters);
        let side_due_ms = self.router.world.side_logs.flush_if_due(now_ms, counters);
        let due_ms = sooner(sooner(log_due_ms, side_due_ms), udp_due_ms);
        self.router.world.agenda.wake_by(due_ms.map(|due_ms| due_ms * 1_000));
        self.end_turn(io);
        self.router.world.note_compression_memory();
        let (now_us, world) = (io.clock().now_us(), &mut self.router.world);
        if world.agenda.count(TaskKind::ServeWaiting) > 0 {
            // Tasks behind this one may have added requests to queues.
            world.agenda.wake_by(world.waiting.next_check_us(now_us));
        }
        world.agenda.next_turn_us(now_us)
    }
}

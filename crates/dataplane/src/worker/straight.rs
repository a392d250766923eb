//! Tunnels between two plain connections. The event loop may move data directly between their sockets, and the bytes are
//! counted here.

use weir_event_loop::{EventLoop, Reading};
use weir_exchange::edge::{self, Passing};
use weir_exchange::parts::ends::Ends;

use crate::worker::world::World;
use crate::worker::{Side, Worker};

/// Allows the event loop to move data directly from one side to the other, if neither side is a stream. The loop checks
/// whether both connections are plain.
pub fn offer(io: &mut EventLoop, world: &World, ends: &Ends, from: edge::Side) {
    let client = world.clients.get(ends.client).filter(|_| ends.stream.is_none());
    let member = ends.attempt.connection.and_then(|key| world.members.get(key));
    let (Some(client), Some(member)) = (client, member.filter(|it| it.http2.is_none())) else {
        return;
    };
    let (source, sink) = match from {
        edge::Side::Client => (client.token, member.token),
        edge::Side::Member => (member.token, client.token),
    };
    io.read_as(source, Reading::Straight(sink));
}

/// Counts bytes of a tunnel that were moved directly from this side to the other.
pub fn passed(worker: &mut Worker, io: &mut EventLoop, from: &Side, count: usize) {
    let world = &mut worker.world;
    world.counted.bytes_spliced.add(count as u64);
    let passing = Passing::Moved(count);
    match *from {
        Side::Client(key) => {
            let Some(client) = world.clients.get(key) else { return };
            client.server.counters.bytes_received.add(count as u64);
            let Some(exchange) = client.exchange() else { return };
            worker.with_tunnel(io, exchange, |it, at| it.client_passed(at, passing));
        }
        Side::Member(key) => {
            let Some(connection) = world.members.get(key) else { return };
            connection.member.counters.bytes_received.add(count as u64);
            let Some(exchange) = connection.exchange else { return };
            worker.with_tunnel(io, exchange, |it, at| it.member_passed(at, passing));
        }
        Side::Neither => {}
    }
}

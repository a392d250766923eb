//! Tunnels between two plain connections. The event loop may move data directly between their sockets. It tells the worker how
//! many bytes it has moved (`events`).

use weir_event_loop::{EventLoop, ReadMode};
use weir_exchange::edge;
use weir_exchange::parts::transaction_ends::TransactionEnds;

use crate::worker::world::World;

/// Allows the event loop to move data directly from one side to the other, if neither side is a stream. The loop checks
/// whether both connections are plain.
pub fn offer(io: &mut EventLoop, world: &World, ends: &TransactionEnds, from: edge::Side) {
    let client =
        world.clients.all.find(ends.caller.client()).filter(|_| ends.caller.stream().is_none());
    let member = ends.phase.connection().and_then(|key| world.members.all.get(key));
    let (Some(client), Some(member)) = (client, member.filter(|it| it.http2.is_none())) else {
        return;
    };
    let (source, sink) = match from {
        edge::Side::Client => (client.token, member.token),
        edge::Side::Member => (member.token, client.token),
    };
    io.sockets.read_as(source, ReadMode::Straight(sink));
}

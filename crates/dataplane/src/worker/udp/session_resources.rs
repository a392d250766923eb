//! The resources of sessions that are not part of the world of transactions.

use weir_event_loop::EventLoop;
use weir_exchange::session::Tools;

use crate::worker::udp::idle_sockets::IdleSockets;
use crate::worker::udp::listeners::Listeners;
use crate::worker::world::World;

/// The resources of sessions that are not part of [`World`].
#[derive(Default)]
pub struct SessionResources {
    pub listeners: Listeners,
    pub idle_sockets: IdleSockets,
    pub tools: Tools,
}

/// Records that a session was refused because sessions use their whole share of descriptors.
pub fn report_descriptor_share(io: &mut EventLoop, world: &mut World) {
    world.counted.udp_share_exceeded.add(1);
    let (_, max) = io.room.session_sockets();
    world.notices.tell_of_udp_share(io.now_ms(), max);
}

//! Clients: one session for each connection to weir.

use weir_testing::Random;

use crate::link::Link;
use crate::place::{Place, Server, Version};
use crate::world::World;
use crate::{http1_client, http2_client, relay};

/// Uses one connection to the virtual server of a place, as a thread with this number, until it is
/// done. Findings are recorded in the world. Only one session at a time may use a thread's number.
pub async fn session(world: &World, thread: usize, random: Random, place: Place, link: Link) {
    world.begin_session(thread);
    match (place.server, place.client) {
        (Server::Relay, _) => relay::session(world, thread, random, place, link).await,
        (_, Version::Http1) => http1_client::session(world, thread, random, place, link).await,
        (_, Version::Http2) => http2_client::session(world, thread, random, place, link).await,
    }
}

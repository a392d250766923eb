//! Whoever asks: one session for each connection to weir.

use weir_testing::Random;

use crate::link::Link;
use crate::place::{Place, Server, Version};
use crate::world::World;
use crate::{http1_client, http2_client, relay};

/// Speaks on one connection to the virtual server of a place, as a thread with this number, until it is done. What is
/// wrong is noted in the world. One session at a time may have the number of a thread.
pub async fn session(world: &World, thread: usize, random: Random, place: Place, link: Link) {
    world.begin_session(thread);
    match (place.server, place.client) {
        (Server::Relay, _) => relay::session(world, thread, random, place, link).await,
        (_, Version::Http1) => http1_client::session(world, thread, random, place, link).await,
        (_, Version::Http2) => http2_client::session(world, thread, random, place, link).await,
    }
}

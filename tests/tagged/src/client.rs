//! Clients: one session per connection to weir.

use weir_testing::Random;

use crate::link::Link;
use crate::place::{Place, Server, Version};
use crate::world::World;
use crate::{http1_client, http2_client, relay};

/// Uses one connection to the virtual server of a place until the session is complete, as the thread with this number. The
/// world records findings. Only one session at a time may use the number of a thread.
pub async fn session(world: &World, thread: usize, random: Random, place: Place, link: Link) {
    world.begin_session(thread);
    match (place.server, place.client) {
        (Server::Relay, _) => relay::session(world, thread, random, place, link).await,
        (_, Version::Http1) => http1_client::session(world, thread, random, place, link).await,
        (_, Version::Http2) => http2_client::session(world, thread, random, place, link).await,
    }
}

//! Members: one session for each connection of weir.

use weir_testing::Random;

use crate::link::Link;
use crate::world::World;
use crate::{http1_member, http2_member, relay};

/// A kind of member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// An HTTP/1 member with this number in its pool.
    Http1(usize),
    /// It speaks HTTP/2.
    Http2(usize),
    /// An HTTP/2 member that ends connections at will.
    RoughHttp2,
    /// A member of relayed connections.
    Relay,
}

/// Serves one connection of weir to its end. Findings are recorded in the world.
pub async fn serve(world: &World, role: Role, random: Random, link: Link) {
    let served = match role {
        Role::Http1(number) => http1_member::serve(world, number, random, link).await,
        Role::Http2(number) => http2_member::serve(world, (number, false), random, link).await,
        Role::RoughHttp2 => http2_member::serve(world, (0, true), random, link).await,
        Role::Relay => relay::serve(world, random, link).await,
    };
    if let Err(finding) = served {
        world.found(&finding);
    }
}

//! Members: one session per connection from weir.

use weir_testing::Random;

use crate::link::Link;
use crate::world::World;
use crate::{http1_member, http2_member, relay, service};

/// A kind of member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// An HTTP/1 member with this number in the pool.
    Http1(usize),
    /// An HTTP/2 member with this number in the pool.
    Http2(usize),
    /// An HTTP/2 member that breaks connections at random.
    RoughHttp2,
    /// The member of relayed connections.
    Relay,
    /// The authorisation service.
    Service,
    /// The member that gets copies of requests.
    Copies,
}

/// Serves one connection from weir to its end. The world records findings.
pub async fn serve(world: &World, role: Role, random: Random, link: Link) {
    let served = match role {
        Role::Http1(number) => http1_member::serve(world, number, random, link).await,
        Role::Http2(number) => http2_member::serve(world, (number, false), random, link).await,
        Role::RoughHttp2 => http2_member::serve(world, (0, true), random, link).await,
        Role::Relay => relay::serve(world, random, link).await,
        Role::Service => service::answer(world, random, link).await,
        Role::Copies => service::take_copies(world, random, link).await,
    };
    if let Err(finding) = served {
        world.found(&finding);
    }
}

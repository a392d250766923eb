//! The place of an exchange. It is part of the exchange's number, so the number determines it.

use weir_testing::Random;

use crate::tag::Id;

/// Number of bits for the place and for the thread in an exchange's number.
const PLACE_BITS: u32 = 7;
const THREAD_BITS: u32 = 7;
/// Maximum number of threads that send requests.
pub const THREADS_MAX: usize = 1 << THREAD_BITS;

/// An HTTP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.1 or 1.0.
    Http1,
    /// HTTP/2.
    Http2,
}

/// A virtual server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    /// A pool of HTTP/1 members.
    Http1,
    /// A pool of HTTP/2 members.
    Http2,
    /// Rules: pool by path, redirects, responses, rewrites.
    Policies,
    /// Compressed responses.
    Compressed,
    /// Members with few connections, and a queue.
    Queue,
    /// Unreachable members, members that stall or break connections, and short timeouts.
    Rough,
    /// Relayed connections.
    Relay,
    /// TLS to the members: they are another virtual server of weir with the members of the plain ones.
    Chain,
    /// Persistence by cookie. Members become unavailable and return.
    Kept,
    /// Persistence by the client's address. Members become unavailable and return.
    Sourced,
    /// Low limits for connections, concurrent requests and bodies.
    Limits,
    /// Rules that inspect bodies: weir holds a body until it is inspected, unless the body is too long.
    Guarded,
    /// A service decides about each request. Another pool gets copies of requests.
    Asked,
    /// Text in response bodies is replaced, before they are compressed.
    Rewritten,
}

/// The virtual servers for HTTP over sockets. The others need waits that take too long there.
pub const HTTP_SERVERS: [Server; 8] = [
    Server::Http1,
    Server::Http2,
    Server::Policies,
    Server::Compressed,
    Server::Queue,
    Server::Rough,
    Server::Chain,
    Server::Guarded,
];

/// All virtual servers that clients connect to.
pub const SERVERS: [Server; 14] = [
    Server::Http1,
    Server::Http2,
    Server::Policies,
    Server::Compressed,
    Server::Queue,
    Server::Rough,
    Server::Relay,
    Server::Chain,
    Server::Kept,
    Server::Sourced,
    Server::Limits,
    Server::Guarded,
    Server::Asked,
    Server::Rewritten,
];

/// The place of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The virtual server.
    pub server: Server,
    /// The member's version.
    pub member: Version,
    /// The client's version.
    pub client: Version,
    /// Whether the client may break the connection, with all of its requests.
    pub is_fragile: bool,
}

/// The HTTP versions of the members of a virtual server.
pub fn members_of(server: Server) -> &'static [Version] {
    match server {
        Server::Http1 | Server::Relay | Server::Sourced => &[Version::Http1],
        Server::Http2 => &[Version::Http2],
        _ => &[Version::Http1, Version::Http2],
    }
}

impl Place {
    /// Draws a place for a session: with `relays`, a relayed connection in one of ten cases; otherwise one of these virtual
    /// servers for HTTP.
    pub fn draw(random: &mut Random, http_servers: &[Server], relays: bool) -> Self {
        let server = match relays && random.percent(10) {
            true => Server::Relay,
            false => http_servers[random.below(http_servers.len())],
        };
        let versions = members_of(server);
        let member = versions[random.below(versions.len())];
        let is_fragile = random.percent(25);
        let client = if random.percent(60) { Version::Http1 } else { Version::Http2 };
        Self { server, member, client, is_fragile }
    }

    /// Whether no other exchange can make exchanges here incomplete.
    pub fn is_calm(self) -> bool {
        !self.is_fragile && self.server != Server::Rough
    }

    fn bits(self) -> u64 {
        (self.server as u64) << 3
            | (self.member as u64) << 2
            | (self.client as u64) << 1
            | u64::from(self.is_fragile)
    }

    /// The place of the exchange with this number; `None`: no valid number.
    pub fn of(id: Id) -> Option<Self> {
        let bits = id.0 & ((1 << PLACE_BITS) - 1);
        let version = |bit: u64| if bits >> bit & 1 == 0 { Version::Http1 } else { Version::Http2 };
        let server = *SERVERS.get((bits >> 3) as usize)?;
        let is_fragile = bits & 1 == 1;
        Some(Self { server, member: version(2), client: version(1), is_fragile })
    }

    /// The number of the next exchange of a thread at this place, after `count` others of the thread.
    pub fn id(self, thread: usize, count: u64) -> Id {
        Id(count << (PLACE_BITS + THREAD_BITS) | (thread as u64) << PLACE_BITS | self.bits())
    }
}

/// The thread of an exchange, and the number of its earlier exchanges.
pub fn origin(id: Id) -> (usize, u64) {
    let thread = (id.0 >> PLACE_BITS) as usize & (THREADS_MAX - 1);
    (thread, id.0 >> (PLACE_BITS + THREAD_BITS))
}

#[test]
fn numbers_say_where() {
    for server in SERVERS {
        for member in [Version::Http1, Version::Http2] {
            let place = Place { server, member, client: Version::Http2, is_fragile: true };
            let id = place.id(17, 12_345);
            assert_eq!(Place::of(id), Some(place));
            assert_eq!(origin(id), (17, 12_345));
        }
    }
}

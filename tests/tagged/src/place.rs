//! The place of an exchange, which is part of its number: so any reader of the number knows what to
//! expect.

use weir_testing::Random;

use crate::tag::Id;

/// Bits of a number for the place, and for the thread that begins the exchange.
const PLACE_BITS: u32 = 7;
const THREAD_BITS: u32 = 7;
/// Threads that may begin exchanges.
pub const THREADS_MAX: usize = 1 << THREAD_BITS;

/// The version that a side speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.1, or 1.0.
    Http1,
    /// HTTP/2.
    Http2,
}

/// A virtual server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    /// Only a pool of HTTP/1 members.
    Http1,
    /// Only a pool of HTTP/2 members.
    Http2,
    /// Rules: pools by path, redirects, answers, rewrites.
    Policies,
    /// Responses are compressed.
    Compressed,
    /// Members with few places; other requests wait.
    Queue,
    /// Members that are unreachable, stall and break connections; short timeouts.
    Rough,
    /// Relayed connections.
    Relay,
    /// Members over TLS: another virtual server, which has the members of the plain ones.
    Chain,
    /// Clients are kept at members by a cookie; members leave and return.
    Kept,
    /// The same by the address of the client.
    Sourced,
    /// Few connections, few requests at a time, and small bodies.
    Limits,
    /// Bodies are held until rules have inspected them, unless they are long.
    Guarded,
}

/// All virtual servers that speak HTTP.
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

/// All virtual servers that clients reach.
pub const SERVERS: [Server; 12] = [
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
];

/// Where an exchange takes place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The virtual server.
    pub server: Server,
    /// The member's version.
    pub member: Version,
    /// The client's version.
    pub client: Version,
    /// The client may break its connection, with other requests on it.
    pub is_fragile: bool,
}

/// Versions of the members that may receive a virtual server's requests.
pub fn members_of(server: Server) -> &'static [Version] {
    match server {
        Server::Http1 | Server::Relay | Server::Sourced => &[Version::Http1],
        Server::Http2 => &[Version::Http2],
        _ => &[Version::Http1, Version::Http2],
    }
}

impl Place {
    /// A place for a session: one relayed connection in ten, if any are wanted; else one of these
    /// HTTP virtual servers.
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

    /// Whether exchanges here are complete regardless of others.
    pub fn is_calm(self) -> bool {
        !self.is_fragile && self.server != Server::Rough
    }

    fn bits(self) -> u64 {
        (self.server as u64) << 3
            | (self.member as u64) << 2
            | (self.client as u64) << 1
            | u64::from(self.is_fragile)
    }

    /// The place of an exchange.
    pub fn of(id: Id) -> Option<Self> {
        let bits = id.0 & ((1 << PLACE_BITS) - 1);
        let version = |bit: u64| if bits >> bit & 1 == 0 { Version::Http1 } else { Version::Http2 };
        let server = *SERVERS.get((bits >> 3) as usize)?;
        let is_fragile = bits & 1 == 1;
        Some(Self { server, member: version(2), client: version(1), is_fragile })
    }

    /// The number of the exchange that a thread begins here after `count` others.
    pub fn id(self, thread: usize, count: u64) -> Id {
        Id(count << (PLACE_BITS + THREAD_BITS) | (thread as u64) << PLACE_BITS | self.bits())
    }
}

/// The thread that began an exchange, and how many it had begun before.
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

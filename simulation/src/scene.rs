//! The setting of a run: addresses, configurations, network quality.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use weir_config::snapshot::Snapshot;
use weir_event_loop::memory::NetworkFaults;
use weir_tagged::place::Server;
use weir_tagged::settings::{Addresses, Settings};
use weir_testing::Random;

/// The virtual servers of a run. Those with TLS are omitted, because the seed does not determine handshakes.
pub const SERVERS: [Server; 12] = [
    Server::Http1,
    Server::Http2,
    Server::Policies,
    Server::Compressed,
    Server::Queue,
    Server::Rough,
    Server::Kept,
    Server::Sourced,
    Server::Limits,
    Server::Guarded,
    Server::Asked,
    Server::Rewritten,
];

/// The addresses, and the configuration with its small changes.
pub struct Scene {
    /// The addresses of all listeners.
    pub addresses: Addresses,
    snapshots: Vec<Snapshot>,
}

/// The number of configurations, after which they repeat.
const CHANGES: usize = 20;

/// An address of virtual servers (net 1), members (net 2) or clients (net 3).
fn address(net: u8, host: u8) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, net, host)), 8_000 + u16::from(host))
}

/// A random address of a client. Each client has its own IP address.
pub fn client_address(client: usize, random: &mut Random) -> SocketAddr {
    SocketAddr::new(address(3, 1 + client as u8).ip(), 1_024 + random.below(60_000) as u16)
}

impl Scene {
    /// Parses all configurations.
    pub fn new() -> Self {
        let servers = SERVERS.into_iter().chain([Server::Relay]);
        let members = |first| [address(2, first), address(2, first + 1)];
        let addresses = Addresses {
            servers: servers.zip((1..).map(|host| address(1, host))).collect(),
            http1: members(1),
            http2: members(3),
            rough: members(5),
            relay: address(2, 7),
            refusing: address(2, 8),
            spare: address(2, 9),
            service: address(2, 10),
            copies: address(2, 11),
            inner: None,
        };
        let snapshots = (0..CHANGES).map(|change| snapshot(&addresses, change)).collect();
        Self { addresses, snapshots }
    }

    /// The configuration after this number of changes.
    pub fn snapshot(&self, change: usize) -> Snapshot {
        self.snapshots[change % CHANGES].clone()
    }
}

fn snapshot(addresses: &Addresses, change: usize) -> Snapshot {
    const TOP: &str = "log: { access: { format: json } }\n";
    const RECORDED: &str = "recent_requests: { slow: \"off\" }\n";
    // Reloads begin and end the recording, too.
    let top = if change.is_multiple_of(3) { TOP.to_owned() } else { [TOP, RECORDED].concat() };
    let text = Settings { addresses, change }.yaml(&top);
    let loaded = weir_config::parse("simulation.yaml", &text);
    match loaded.config {
        Some(config) => config.snapshot(&Default::default()),
        None => panic!("{:#?}\n{text}", loaded.diagnostics),
    }
}

/// The quality of a network: good, bad, or anything in between.
pub fn weather(random: &mut Random) -> NetworkFaults {
    let mut draw = |most: usize| if random.percent(30) { 0 } else { random.below(most) };
    NetworkFaults {
        short_sends_percent: draw(20),
        stirs_percent: draw(20),
        delays_percent: draw(70),
        parts_percent: draw(50),
        narrow_percent: draw(30),
        accept_failures_permille: draw(30),
    }
}

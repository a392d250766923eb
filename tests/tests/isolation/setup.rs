//! The addresses of members and virtual servers, and weir's configuration.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use rustix::net::sockopt::set_socket_recv_buffer_size;
use weir_tagged::member::{Role, serve};
use weir_tagged::place::{SERVERS, Server};
use weir_tagged::settings::{Addresses, Inner, Settings};
use weir_tagged::world::World;
use weir_testing::Random;
use weir_tests::ports::Lease;
use weir_tests::proxy::Setup;
use weir_tests::tls;

use crate::sockets::{NARROW_BYTES, block_on, link};

/// The members, with one thread per connection.
#[derive(Debug)]
pub struct Members {
    http1: [SocketAddr; 2],
    http2: [SocketAddr; 2],
    rough: [SocketAddr; 2],
    relay: SocketAddr,
    spare: SocketAddr,
    /// An address without a listener.
    refusing: Lease,
    is_over: Arc<AtomicBool>,
}

impl Members {
    /// Starts all members.
    pub fn start(world: &Arc<World>) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let start = |role| listen(role, Buffer::Usual, world, &is_over);
        let start_narrow = |role| listen(role, Buffer::Narrow, world, &is_over);
        Self {
            http1: [start(Role::Http1(0)), start_narrow(Role::Http1(1))],
            http2: [start(Role::Http2(0)), start_narrow(Role::Http2(1))],
            rough: [start(Role::Http1(0)), start(Role::RoughHttp2)],
            relay: start(Role::Relay),
            spare: start(Role::Http1(2)),
            refusing: Lease::new(),
            is_over,
        }
    }

    /// All addresses. `first` is the address of the first virtual server.
    fn addresses(&self, listeners: &Listeners, first: SocketAddr) -> Addresses {
        let certificates = tls::pair("shop-ec");
        // Clients wait long for a service that never answers.
        let is_used = |server: &Server| !matches!(server, Server::Asked | Server::Rewritten);
        let servers = SERVERS.into_iter().filter(is_used);
        Addresses {
            servers: servers.map(|server| (server, listeners.address(server, first))).collect(),
            http1: self.http1,
            http2: self.http2,
            rough: self.rough,
            relay: self.relay,
            spare: self.spare,
            refusing: self.refusing.address(),
            service: self.refusing.address(),
            copies: self.refusing.address(),
            inner: Some(Inner { listen: listeners.inner(), certificates }),
        }
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        let all = [&self.http1[..], &self.http2, &self.rough, &[self.relay, self.spare]].concat();
        for address in all {
            // Wakes up the accepting thread.
            let _ = TcpStream::connect(address);
        }
    }
}

/// The size of a member's receive buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Buffer {
    Usual,
    Narrow,
}

fn listen(role: Role, buffer: Buffer, world: &Arc<World>, is_over: &Arc<AtomicBool>) -> SocketAddr {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    if buffer == Buffer::Narrow {
        // Accepted connections inherit the size from the listener.
        set_socket_recv_buffer_size(&listener, NARROW_BYTES).expect("SO_RCVBUF");
    }
    let address = listener.local_addr().expect("the listener's address");
    let (world, is_over) = (Arc::clone(world), Arc::clone(is_over));
    thread::spawn(move || {
        for stream in listener.incoming() {
            if is_over.load(Ordering::Acquire) {
                return;
            }
            let Ok(stream) = stream else { continue };
            let world = Arc::clone(&world);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            thread::spawn(move || {
                let random = Random::new(world.seed ^ number.rotate_left(40));
                if let Ok(link) = link(stream, &world) {
                    block_on(serve(&world, role, random, link));
                }
            });
        }
    });
    address
}

/// The addresses of the virtual servers. That of the first one is from the harness. The last address is that of the virtual
/// server to which only weir connects.
#[derive(Debug)]
pub struct Listeners(Vec<Lease>);

impl Listeners {
    /// Leases an address for each virtual server except the first.
    pub fn lease() -> Self {
        Self((0..SERVERS.len()).map(|_| Lease::new()).collect())
    }

    fn inner(&self) -> SocketAddr {
        self.0[SERVERS.len() - 1].address()
    }

    /// The address of a virtual server.
    pub fn address(&self, server: Server, first: SocketAddr) -> SocketAddr {
        match server as usize {
            0 => first,
            place => self.0[place - 1].address(),
        }
    }
}

/// The configuration with one of several small changes.
pub fn setup(members: &Members, listeners: &Listeners, workers: usize, change: usize) -> Setup {
    // The harness sets the address of the first virtual server.
    let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let addresses = members.addresses(listeners, nowhere);
    let settings = Settings { addresses: &addresses, change };
    let setup = Setup::new(settings.first_members())
        .http(&settings.first_http())
        .top(&format!("data_plane: {{ workers: {workers} }}"))
        .top(&settings.policies())
        .admin_socket();
    // Reloads begin and end the recording, too.
    let setup = match change % 4 {
        3 => setup,
        _ => setup.top("recent_requests: { keep: 300, slow: \"off\" }"),
    };
    let servers = settings.further_servers();
    let setup = servers.iter().fold(setup, |setup, line| setup.also_virtual_server(line));
    settings.further_pools().iter().fold(setup, |setup, line| setup.also_pool(line))
}

//! The virtual servers and pools, and small changes to them.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use rustix::net::sockopt::set_socket_recv_buffer_size;
use weir_testing::Random;
use weir_tests::ports::Lease;
use weir_tests::proxy::Setup;
use weir_tests::tls;

use crate::link::NARROW_BYTES;
use crate::place::{SERVERS, Server, Version};
use crate::world::World;
use crate::{http1_member, http2_member, relay};

/// A member.
#[derive(Debug, Clone, Copy)]
enum Role {
    Http1,
    Http2,
    RoughHttp2,
    Relay,
}

/// Members in threads, one for each connection.
#[derive(Debug)]
pub struct Members {
    http1: [SocketAddr; 2],
    http2: [SocketAddr; 2],
    rough: [SocketAddr; 2],
    relay: SocketAddr,
    /// Where nobody listens.
    refusing: Lease,
    is_over: Arc<AtomicBool>,
}

impl Members {
    /// All that there are.
    pub fn start(world: &Arc<World>) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let start = |role| listen(role, Buffer::Usual, world, &is_over);
        let start_narrow = |role| listen(role, Buffer::Narrow, world, &is_over);
        Self {
            http1: [start(Role::Http1), start_narrow(Role::Http1)],
            http2: [start(Role::Http2), start_narrow(Role::Http2)],
            rough: [start(Role::Http1), start(Role::RoughHttp2)],
            relay: start(Role::Relay),
            refusing: Lease::new(),
            is_over,
        }
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        let all = [&self.http1[..], &self.http2, &self.rough, &[self.relay]].concat();
        for address in all {
            // Wakes the acceptor.
            let _ = TcpStream::connect(address);
        }
    }
}

/// How much a member takes at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Buffer {
    Usual,
    Narrow,
}

fn listen(role: Role, buffer: Buffer, world: &Arc<World>, is_over: &Arc<AtomicBool>) -> SocketAddr {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    if buffer == Buffer::Narrow {
        // Connections have it from their listener.
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
                let random = &mut Random::new(world.seed ^ number.rotate_left(40));
                let served = match role {
                    Role::Http1 => http1_member::serve(&world, stream, random),
                    Role::Http2 => http2_member::serve(&world, stream, false, random),
                    Role::RoughHttp2 => http2_member::serve(&world, stream, true, random),
                    Role::Relay => relay::serve(&world, stream, random),
                };
                if let Err(finding) = served {
                    world.found(&finding);
                }
            });
        }
    });
    address
}

/// Where the virtual servers listen; the first is the harness's own. Behind them comes the one that clients do not reach.
#[derive(Debug)]
pub struct Listeners(Vec<Lease>);

impl Listeners {
    /// One for each but the first.
    pub fn lease() -> Self {
        Self((0..SERVERS.len()).map(|_| Lease::new()).collect())
    }

    fn inner(&self) -> SocketAddr {
        self.0[SERVERS.len() - 1].address()
    }

    /// Where one listens.
    pub fn address(&self, server: Server, first: SocketAddr) -> SocketAddr {
        match server as usize {
            0 => first,
            place => self.0[place - 1].address(),
        }
    }

    fn of(&self, server: Server) -> SocketAddr {
        self.0[server as usize - 1].address()
    }
}

/// What members speak that a virtual server's requests may go to.
pub fn members_of(server: Server) -> &'static [Version] {
    match server {
        Server::Http1 | Server::Relay => &[Version::Http1],
        Server::Http2 => &[Version::Http2],
        _ => &[Version::Http1, Version::Http2],
    }
}

const HTTP: &str = "http2: true, request_trailers: forward, body_size_max: 16MiB, body_timeout: 10s, header_timeout: 10s";
const ROUGH: &str = "http2: true, request_trailers: forward, response_body_timeout: 1s, body_size_max: 16MiB, body_timeout: 1s, header_timeout: 1s";

const POLICIES: &str = r#"policies:
  http2:
    rules:
      - { when: 'request.path.startsWith("/2/")', then: [ { pool: http2 } ] }
  queue2:
    rules:
      - { when: 'request.path.startsWith("/2/")', then: [ { pool: queue2 } ] }
  rough2:
    rules:
      - { when: 'request.path.startsWith("/2/")', then: [ { pool: rough2 } ] }
  chain2:
    rules:
      - { when: 'request.path.startsWith("/2/")', then: [ { pool: chain2 } ] }
  what:
    rules:
      - when: 'request.path.startsWithAny(["/1/redirect/", "/2/redirect/"])'
        then: [ { redirect: { to: "https://${request.host}${request.target}", status: 301 } } ]
      - when: 'request.path.startsWithAny(["/1/respond/", "/2/respond/"])'
        then:
          - respond:
              status: 403
              body: "no ${request.query['q']} here\n"
              content_type: text/weir
              headers: { X-Refused: "${request.query['q']}" }
      - { when: 'request.path.startsWithAny(["/1/close/", "/2/close/"])', then: [ close ] }
      - { when: 'request.path.startsWithAny(["/1/reset/", "/2/reset/"])', then: [ reset ] }
      - when: 'request.path.startsWithAny(["/1/rewrite/", "/2/rewrite/"])'
        then:
          - rewrite_path: { regex: "^/(.)/rewrite/", to: "/$1/rewritten/" }
          - rewrite_query: "from=${request.query['q']}"
          - rewrite_host: inner.test
          - set_header: { X-Set: "${request.query['q']}" }
          - remove_header: X-Tag-1
          - remove_cookie: b
          - set_response_header: { X-Answered: "${request.query['q']}" }
          - remove_response_header: X-Tag-1
      - when: 'request.path.startsWithAny(["/1/limited/", "/2/limited/"])'
        then: [ { rate_limit: { requests_per_second: 5 } } ]
"#;

/// The configuration, with one of several small changes.
pub fn setup(members: &Members, listeners: &Listeners, workers: usize, change: usize) -> Setup {
    let idle = ["60s", "61s"][change % 2];
    // Now and then a member is gone.
    let http1 = if change % 5 == 3 { &members.http1[..1] } else { &members.http1 };
    let setup = Setup::new(http1)
        .http(&format!("{HTTP}, idle_timeout: {idle}"))
        .top(&format!("data_plane: {{ workers: {workers} }}"))
        .top(POLICIES);
    let servers = virtual_servers(listeners, change, idle);
    let setup = servers.iter().fold(setup, |setup, line| setup.also_virtual_server(line));
    pools(members, listeners, change).iter().fold(setup, |setup, line| setup.also_pool(line))
}

fn virtual_servers(listeners: &Listeners, change: usize, idle: &str) -> Vec<String> {
    let level = ["1", "5"][change / 2 % 2];
    let http = format!("http: {{ {HTTP}, idle_timeout: {idle} }}");
    let compression =
        format!("compression: {{ gzip: {{ level: {level} }}, min_size: 256B, level_min: 1 }}");
    let certificates = tls::pair("shop-ec");
    let lines = [
        (Server::Http2, "http2", format!("pool: http2, {http}")),
        (Server::Policies, "policies", format!("pool: members, policies: [ http2, what ], {http}")),
        (
            Server::Compressed,
            "compressed",
            format!("pool: members, policies: [ http2 ], {compression}, {http}"),
        ),
        (Server::Queue, "queue", format!("pool: queue1, policies: [ queue2 ], {http}")),
        (
            Server::Rough,
            "rough",
            format!("pool: rough1, policies: [ rough2 ], http: {{ {ROUGH} }}"),
        ),
        (Server::Relay, "relay", "type: tcp, pool: relay".to_owned()),
        (Server::Chain, "chain", format!("pool: chain1, policies: [ chain2 ], {http}")),
    ];
    let line = |listen: SocketAddr, name: &str, rest: &str| {
        format!("{name}: {{ listen: \"{listen}\", {rest} }}")
    };
    let mut servers: Vec<String> = Vec::new();
    for (server, name, rest) in &lines {
        servers.push(line(listeners.of(*server), name, rest));
    }
    let inner = format!(
        "pool: members, policies: [ http2 ], {http}, tls: {{ certificates: [ {certificates} ] }}"
    );
    servers.push(line(listeners.inner(), "inner", &inner));
    servers
}

fn pools(members: &Members, listeners: &Listeners, change: usize) -> Vec<String> {
    let limited = |pair: [SocketAddr; 2]| {
        pair.map(|it| format!("{{ address: \"{it}\", connections_max: 2 }}")).join(", ")
    };
    let [one, other] = members.http2;
    let http2 = if change % 5 == 4 { format!("{one}") } else { format!("{one}, {other}") };
    let [rough1, rough2] = members.rough;
    let (refusing, relay, inner) = (members.refusing.address(), members.relay, listeners.inner());
    let (queue1, queue2) = (limited(members.http1), limited(members.http2));
    let queue = "queue: { timeout: 5s, length_max: 6 }, retries: 2";
    let timeouts = "connect_timeout: 1s, response_timeout: 1s";
    let tls = "tls: { verify: false }";
    vec![
        format!("http2: {{ http2: true, members: [ {http2} ] }}"),
        format!("queue1: {{ {queue}, members: [ {queue1} ] }}"),
        format!("queue2: {{ http2: true, {queue}, members: [ {queue2} ] }}"),
        format!("rough1: {{ {timeouts}, members: [ \"{refusing}\", \"{rough1}\" ] }}"),
        format!("rough2: {{ http2: true, {timeouts}, members: [ \"{refusing}\", \"{rough2}\" ] }}"),
        format!("chain1: {{ {tls}, members: [ \"{inner}\" ] }}"),
        format!("chain2: {{ {tls}, http2: true, members: [ \"{inner}\" ] }}"),
        format!("relay: {{ members: [ \"{relay}\" ] }}"),
    ]
}

//! Tests of the number of allocations per request in steady state: none, or the expected number.
//!
//! Clients send the same request repeatedly. After a warm-up, the worker's allocations during its turns are counted: see
//! [`crate::memory`].

mod peers;

use std::net::SocketAddr;

use peers::{Client, Member, Request, Version};
use weir_dataplane::simulation::SimulatedWorker;
use weir_event_loop::memory::{self as kernel, Network, NetworkFaults, Reachability};

use crate::memory;

const SERVER: &str = "10.0.1.1:80";
const MEMBERS: [&str; 2] = ["10.0.2.1:80", "10.0.2.2:80"];
/// Number of clients, each of which always has a request in progress.
const CLIENTS: u16 = 4;
/// Number of requests until all buffers have reached their final size.
const WARM_UP: u64 = 20_000;
/// Number of requests whose allocations are counted.
const COUNTED: u64 = 10_000;
/// Simulated time of a turn.
const TURN_US: u64 = 20;
/// Number of turns after which a response counts as lost.
const TURNS_MAX: u64 = 100;

const GET: Request =
    Request { version: Version::Http1, path: "/", has_body: false, fields: &[("accept", "*/*")] };
const POST: Request = Request { has_body: true, ..GET };
const OVER_HTTP2: Request = Request { version: Version::Http2, ..GET };

/// A repeated request and its setting.
#[derive(Debug, Clone, Copy)]
struct Case {
    request: Request,
    /// Number of simultaneous requests of each client.
    at_once: usize,
    /// The HTTP version of the members.
    members: Version,
    /// The format of the access log.
    log: &'static str,
    /// Further settings of the virtual server.
    server: &'static str,
}

const PLAIN: Case =
    Case { request: GET, at_once: 1, members: Version::Http1, log: "off", server: "" };

/// The settings of the benchmark "Advanced L7", without its second pool.
const ADVANCED: &str = "persistence: { type: source_address }, \
    client_address: { x_forwarded_for: append }, policies: [ rewriting ], ";
const POLICIES: &str = r#"policies:
  rewriting:
    strategy: all_match
    rules:
      - when: 'request.path.startsWith("/catalogue/")'
        then: [ { rewrite_path: { regex: "^/catalogue/(.*)$", to: "/store/catalogue/$1" } } ]
      - { then: [ { remove_header: X-Internal }, { set_response_header: { Server: weir } } ] }
"#;

#[test]
fn requests_of_http1_ask_for_no_memory() {
    check(0, PLAIN);
    check(0, Case { request: POST, ..PLAIN });
    check(0, Case { server: "persistence: { type: cookie }, ", ..PLAIN });
    let request = Request { path: "/catalogue/a", ..GET };
    check(0, Case { request, server: ADVANCED, ..PLAIN });
}

#[test]
fn members_of_http2_ask_for_no_memory() {
    check(0, Case { members: Version::Http2, ..PLAIN });
    check(0, Case { members: Version::Http2, request: POST, ..PLAIN });
}

/// Log lines are passed to the writer in batches of 80 or 400 lines.
#[test]
fn lines_of_the_log_ask_for_a_batch_at_a_time() {
    check(1, Case { log: "json", ..PLAIN });
    check(0, Case { log: "combined", ..PLAIN });
}

/// Memory for streams is not bound to an idle HTTP/2 client: the next client that sends a request reuses it.
#[test]
fn clients_of_http2_ask_for_no_memory() {
    let http2 = Case { request: OVER_HTTP2, ..PLAIN };
    check(0, http2);
    check(0, Case { request: Request { version: Version::Http2, ..POST }, ..PLAIN });
    check(0, Case { server: "persistence: { type: cookie }, ", ..http2 });
    check(0, Case { members: Version::Http2, ..http2 });
    check(0, Case { at_once: 5, ..http2 });
}

#[test]
fn compressed_responses_ask_for_a_box() {
    const GZIP: &str = "compression: { gzip: { level: 1 }, min_size: 256B }, ";
    let request = Request { fields: &[("accept-encoding", "gzip")], ..GET };
    check(100, Case { request, server: GZIP, ..PLAIN });
}

/// Checks the number of allocations per hundred requests.
#[track_caller]
fn check(expected: u64, case: Case) {
    let mut scene = Scene::new(case);
    let found = scene.allocations() / (COUNTED / 100);
    if found != expected {
        memory::trace_allocations(|| scene.serve(u64::from(CLIENTS)));
    }
    assert!(
        found <= expected,
        "memory is asked for {found} times in each hundred requests, and it was {expected} times: do without, \
         see above where it is; {case:?}"
    );
    assert!(
        found == expected,
        "memory is asked for only {found} times in each hundred requests: lower the number here from {expected}; \
         {case:?}"
    );
}

struct Scene {
    network: Network,
    worker: SimulatedWorker,
    clients: Vec<Client>,
    members: Vec<Member>,
    case: Case,
}

impl Scene {
    fn new(case: Case) -> Self {
        kernel::begin(1);
        memory::begin();
        const FAIR: NetworkFaults = NetworkFaults {
            short_sends_percent: 0,
            stirs_percent: 0,
            delays_percent: 0,
            parts_percent: 0,
            narrow_percent: 0,
            accept_failures_permille: 0,
        };
        let network = Network::new(1, FAIR, 100);
        MEMBERS.iter().for_each(|member| network.set_reach(address(member), Reachability::Open));
        let text = case.configuration();
        let loaded = weir_config::parse("allocations.yaml", &text);
        let Some(config) = loaded.config else { panic!("{:#?}\n{text}", loaded.diagnostics) };
        let worker = SimulatedWorker::new(&network, config.snapshot(&Default::default()));
        let clients = (0..CLIENTS).map(|client| {
            let from = SocketAddr::new(address("10.0.3.1:0").ip(), 1_024 + client);
            Client::new(
                network.dial(address(SERVER), from).expect("a listener"),
                case.request,
                case.at_once,
            )
        });
        let clients = clients.collect();
        Self { network, worker, clients, members: Vec::new(), case }
    }

    /// The number of allocations in steady state.
    fn allocations(&mut self) -> u64 {
        self.serve(WARM_UP);
        let before = memory::allocations();
        self.serve(COUNTED);
        memory::allocations() - before
    }

    /// Runs until this number of further requests have been answered.
    fn serve(&mut self, requests: u64) {
        let (mut served, mut turns) = (0, 0);
        while served < requests {
            turns += 1;
            assert!(turns < requests * TURNS_MAX, "a response is lost");
            served += self.turn();
        }
    }

    /// Lets every party act once. Returns the number of responses.
    fn turn(&mut self) -> u64 {
        while let Some((_, peer)) = self.network.take_call() {
            self.members.push(Member::new(peer, self.case.members));
        }
        self.members.iter_mut().for_each(Member::step);
        let served = self.clients.iter_mut().map(Client::step).sum();
        self.network.travel();
        let is_due = self.worker.due_us().is_some_and(|due_us| due_us <= kernel::now_us());
        if is_due || self.network.has_events() {
            memory::count(|| self.worker.turn()).expect("the loop goes on");
        }
        self.network.travel();
        self.worker.take_log(&mut Vec::new());
        kernel::pass(TURN_US);
        served
    }
}

impl Case {
    fn configuration(&self) -> String {
        let Self { log, server, .. } = self;
        let http2 = self.members == Version::Http2;
        let members = MEMBERS.join(", ");
        format!(
            "log: {{ access: {{ format: {log} }} }}\n{POLICIES}\
             virtual_servers: {{ main: {{ listen: \"{SERVER}\", {server}http: {{ http2: true }}, pool: all }} }}\n\
             pools: {{ all: {{ http2: {http2}, members: [ {members} ] }} }}\n"
        )
    }
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

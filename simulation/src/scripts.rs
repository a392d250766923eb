//! Scripted cases that seeds reach too rarely.

use std::net::SocketAddr;

use weir_dataplane::simulation::SimulatedWorker;
use weir_event_loop::memory::{self as kernel, Network, NetworkFaults, Peer, Reachability};

const SERVER: &str = "10.0.1.1:80";
const MEMBER: &str = "10.0.2.1:80";
/// Number of turns after which no more events occur without a timer.
const TURNS: usize = 50;
const TURN_US: u64 = 20;
/// Size of an upload. It exceeds the part of a request that is stored for a retry.
const UPLOAD_BYTES: usize = 7_000;

/// A network without delays and failures.
const CALM: NetworkFaults = NetworkFaults {
    short_sends_percent: 0,
    stirs_percent: 0,
    delays_percent: 0,
    parts_percent: 0,
    narrow_percent: 0,
    accept_failures_permille: 0,
};

/// A worker, with the connections to its only member in the order of their creation.
struct Script {
    network: Network,
    worker: SimulatedWorker,
    members: Vec<Peer>,
    clients: u16,
}

impl Script {
    /// A script in a calm network. `stirs_percent`: the share of the worker's calls during which data arrives.
    fn new(stirs_percent: usize) -> Self {
        Self::with(NetworkFaults { stirs_percent, ..CALM }, "", "")
    }

    /// A script in this network. `keys`: additional keys of the virtual server; `sections`: additional sections of the file.
    fn with(weather: NetworkFaults, keys: &str, sections: &str) -> Self {
        kernel::begin(1);
        let network = Network::new(1, weather, 100);
        network.set_reach(address(MEMBER), Reachability::Open);
        let text = format!(
            "virtual_servers: {{ main: {{ listen: \"{SERVER}\", pool: all{keys} }} }}\n\
             pools: {{ all: {{ members: [ {MEMBER} ] }} }}\n{sections}"
        );
        let loaded = weir_config::parse("script.yaml", &text);
        let Some(config) = loaded.config else { panic!("{:#?}", loaded.diagnostics) };
        let worker = SimulatedWorker::new(&network, config.snapshot(&Default::default()));
        Self { network, worker, members: Vec::new(), clients: 0 }
    }

    fn client(&mut self) -> Peer {
        self.clients += 1;
        let from = SocketAddr::new(address("10.0.3.1:0").ip(), 1_024 + self.clients);
        self.network.dial(address(SERVER), from).expect("a listener")
    }

    /// Runs until no more events occur without a timer.
    fn settle(&mut self) {
        for _ in 0..TURNS {
            self.network.travel();
            self.turn();
        }
    }

    fn turn(&mut self) {
        let is_due = self.worker.due_us().is_some_and(|due_us| due_us <= kernel::now_us());
        if is_due || self.network.has_events() {
            self.worker.turn().expect("the loop goes on");
        }
        while let Some((_, peer)) = self.network.take_call() {
            self.members.push(peer);
        }
        kernel::pass(TURN_US);
    }

    /// Opens a connection to the member, and makes it idle by a first exchange.
    fn keep_a_connection(&mut self) {
        let mut client = self.client();
        send(&mut client, b"GET /first HTTP/1.1\r\nHost: a\r\n\r\n");
        self.settle();
        assert!(read(&mut self.members[0]).starts_with("GET /first "));
        self.answer(0, &mut client);
    }

    /// Answers on this connection to the member, and checks that the client receives the answer.
    fn answer(&mut self, connection: usize, client: &mut Peer) {
        send(&mut self.members[connection], b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        self.settle();
        assert!(read(client).starts_with("HTTP/1.1 200 OK"));
    }

    /// Resets the first connection to the member.
    fn reset_the_first(&mut self) {
        self.members[0].reset_on_close();
        drop(self.members.remove(0));
    }
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn send(peer: &mut Peer, bytes: &[u8]) {
    assert_eq!(peer.write(bytes).ok(), Some(bytes.len()), "there is room");
}

/// Reads all received bytes.
fn read(peer: &mut Peer) -> String {
    let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = peer.read(&mut buffer) {
        all.extend_from_slice(&buffer[..count]);
    }
    String::from_utf8_lossy(&all).into_owned()
}

fn upload() -> String {
    let body = "b".repeat(UPLOAD_BYTES);
    format!("POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: {UPLOAD_BYTES}\r\n\r\n{body}")
}

/// A member answers an upload early, keeps the connection open, and does not read the rest of the upload.
#[test]
fn what_a_member_has_not_taken_of_a_request_is_no_beginning_of_the_next() {
    const SMUGGLED: &[u8] = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut script = Script::new(0);
    let (mut first, mut second) = (script.client(), script.client());
    let head =
        format!("POST /first HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", SMUGGLED.len());
    send(&mut first, head.as_bytes());
    script.settle();
    assert!(read(&mut script.members[0]).starts_with("POST /first "));
    script.members[0].take_nothing(true);
    send(&mut first, SMUGGLED);
    script.settle();
    script.answer(0, &mut first);
    send(&mut second, b"GET /second HTTP/1.1\r\nHost: a\r\n\r\n");
    script.settle();
    script.reset_the_first();
    script.settle();
    assert!(read(&mut script.members[0]).starts_with("GET /second "));
    script.answer(0, &mut second);
}

#[test]
fn an_upload_that_a_kept_connection_takes_nothing_of_goes_to_another() {
    let mut script = Script::new(0);
    script.keep_a_connection();
    script.members[0].take_nothing(true);
    let mut client = script.client();
    send(&mut client, upload().as_bytes());
    script.settle();
    script.reset_the_first();
    script.settle();
    let asked = read(&mut script.members[0]);
    assert!(asked.starts_with("POST /upload ") && asked.ends_with(&"b".repeat(UPLOAD_BYTES)));
    script.answer(0, &mut client);
}

/// The reset arrives after the worker has checked the connection, and before it sends.
#[test]
fn an_upload_that_cannot_be_sent_on_a_kept_connection_goes_to_another() {
    let mut script = Script::new(100);
    script.keep_a_connection();
    let mut client = script.client();
    script.settle();
    send(&mut client, upload().as_bytes());
    script.network.travel();
    script.reset_the_first();
    script.turn();
    script.settle();
    let asked = read(&mut script.members[0]);
    assert!(asked.starts_with("POST /upload ") && asked.ends_with(&"b".repeat(UPLOAD_BYTES)));
    script.answer(0, &mut client);
}

#[test]
fn the_head_of_a_cut_response_gets_through_though_its_client_has_sent_ahead() {
    let mut script = Script::new(0);
    let mut client = script.client();
    send(
        &mut client,
        b"GET /first HTTP/1.1\r\nHost: a\r\n\r\nGET /ahead HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    client.take_nothing(true);
    script.settle();
    let response =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nno size\r\n";
    send(&mut script.members[0], response);
    script.settle();
    // The client reads again, and more requests arrive at the same time.
    client.take_nothing(false);
    send(&mut client, b"GET /later HTTP/1.1\r\nHost: a\r\n\r\n");
    script.settle();
    assert!(read(&mut client).starts_with("HTTP/1.1 200 OK\r\n"));
    assert_eq!(client.read(&mut [0; 1]).ok(), Some(0), "an end, and no reset");
}

/// The client's end is known before the first answer is read, and each answer needs more than one read.
#[test]
fn all_that_a_client_sent_ahead_of_its_end_is_answered() {
    const REQUEST: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    const REQUESTS: usize = 5;
    /// Size of an answer. A narrow connection accepts at most 3,000 bytes, and has as many in flight.
    const BODY_BYTES: usize = 7_000;
    /// Number of steps that the narrowest connection needs.
    const STEPS: usize = 500;
    let body = "b".repeat(BODY_BYTES);
    let sections = format!(
        "policies: {{ p: {{ rules: [ {{ then: [ {{ respond: {{ status: 200, body: {body} }} }} ] }} ] }} }}"
    );
    let weather = NetworkFaults { narrow_percent: 100, ..CALM };
    let mut script = Script::with(weather, ", policies: [ p ]", &sections);
    let requests = REQUEST.repeat(REQUESTS);
    let mut client = loop {
        let mut client = script.client();
        if client.write(requests.as_bytes()).ok() == Some(requests.len()) {
            break client;
        }
    };
    client.finish();
    let mut all = String::new();
    for _ in 0..STEPS {
        script.settle();
        all.push_str(&read(&mut client));
    }
    assert_eq!(all.matches("HTTP/1.1 200 ").count(), REQUESTS, "after {} bytes", all.len());
}

/// A member answers before the request is whole: what was stored of the request is dropped then.
#[test]
fn a_request_that_is_answered_before_it_is_whole_is_not_copied() {
    let rules = "[ { then: [ { mirror: { pool: all } } ] } ]";
    let sections = format!("policies: {{ p: {{ rules: {rules} }} }}");
    let mut script = Script::with(CALM, ", policies: [ p ]", &sections);
    let mut client = script.client();
    send(&mut client, b"POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbo");
    script.settle();
    send(&mut script.members[0], b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe");
    script.settle();
    send(&mut client, b"dy");
    script.settle();
    send(&mut script.members[0], b"llo");
    script.settle();
    assert!(read(&mut client).ends_with("hello"));
    assert!(read(&mut script.members[0]).ends_with("body"));
    assert_eq!(script.members.len(), 1, "no copy");
}

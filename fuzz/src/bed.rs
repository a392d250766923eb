//! A worker on the simulated kernel, between scripted clients and members.

#![allow(dead_code, reason = "each target uses a part")]

use std::io::ErrorKind;
use std::net::SocketAddr;

use weir_config::snapshot::Snapshot;
use weir_dataplane::simulation::SimulatedWorker;
use weir_event_loop::memory::{self as kernel, Network, NetworkFaults, Peer, Reachability};
use weir_http::edits::FieldEdits;
use weir_http::h1::{OwnResponse, Persistence};
use weir_http::h2::hpack::HeaderBlock;
use weir_http::h2::message::write_own_response;
use weir_http::h2::{Connection, Event, HeadersKind, Limits, ReceiveResult, SendKind};
use weir_http::message::Version;
use weir_testing::frame::Frame;

/// Number of virtual servers.
pub const SERVERS: usize = 5;
/// The time in which everything must end, and again after the clients have gone. It must exceed the idle timeout of tunnels.
const END_US: u64 = 3 * 3_600_000_000;
/// Number of rounds after which a run counts as endless.
const ROUNDS_MAX: usize = 200_000;
const DESCRIPTORS_MAX: usize = 64;

thread_local! {
    static SNAPSHOT: Snapshot = snapshot();
}

fn address(net: u8, host: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, net, host as u8], 80))
}

fn snapshot() -> Snapshot {
    let http = "http: { http2: true, request_trailers: forward, body_size_max: 64KiB }";
    let gzip = "compression: { gzip: { level: 1 }, min_size: 1B }";
    let queue = "queue: { length_max: 4, timeout: 5s }";
    let (one, two) = (address(2, 1), address(2, 2));
    let text = format!(
        "virtual_servers:\n\
         \x20 a: {{ listen: \"{}\", pool: one, {http} }}\n\
         \x20 b: {{ listen: \"{}\", pool: two, {http} }}\n\
         \x20 c: {{ listen: \"{}\", pool: few1, {http}, {gzip} }}\n\
         \x20 d: {{ listen: \"{}\", pool: few2, {http}, {gzip} }}\n\
         \x20 e: {{ listen: \"{}\", type: tcp, pool: one }}\n\
         pools:\n\
         \x20 one: {{ members: [ \"{one}\" ] }}\n\
         \x20 two: {{ http2: true, members: [ \"{two}\" ] }}\n\
         \x20 few1: {{ {queue}, members: [ {{ address: \"{one}\", connections_max: 1 }} ] }}\n\
         \x20 few2: {{ http2: true, {queue}, members: [ {{ address: \"{two}\", connections_max: 1 }} ] }}\n",
        address(1, 0),
        address(1, 1),
        address(1, 2),
        address(1, 3),
        address(1, 4),
    );
    let parsed = weir_config::parse("fuzz.yaml", &text);
    let config = parsed.config.unwrap_or_else(|| panic!("{:#?}\n{text}", parsed.diagnostics));
    config.snapshot(&Default::default())
}

/// The end of a connection after everything was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// An orderly end.
    Fin,
    /// A reset.
    Reset,
    /// No end: the other side must end the connection.
    Silence,
}

impl ConnectionEnd {
    /// The ending for this number.
    pub fn of(number: u8) -> Self {
        [Self::Fin, Self::Reset, Self::Silence, Self::Fin][usize::from(number % 4)]
    }
}

/// Frames in a short form: one byte each for type, flags, stream and length, and then the payload.
pub fn frames_of(mut bytes: &[u8]) -> Vec<u8> {
    let mut frames = Vec::new();
    while let [kind, flags, stream, length, rest @ ..] = bytes {
        let (payload, rest) = rest.split_at(rest.len().min(usize::from(*length)));
        Frame::new(*kind, *flags, u32::from(*stream), payload).write(&mut frames);
        bytes = rest;
    }
    frames
}

/// The behaviour of a party of a connection.
#[derive(Debug, Clone)]
pub struct Script {
    /// The bytes to send.
    pub says: Vec<u8>,
    /// Maximum number of bytes per write.
    pub cut: usize,
    /// The end after these bytes.
    pub ending: ConnectionEnd,
    /// Whether the party reads received bytes.
    pub reads: bool,
    /// Whether the party sends nothing before it has received something.
    pub waits: bool,
}

/// A well-behaved member.
pub enum Server {
    /// Answers over HTTP/1 after anything that ends like a head. `ends`: the number of bytes of that end so far.
    Http1 { ends: usize },
    /// Answers over HTTP/2.
    Http2 { connection: Box<Connection>, block: HeaderBlock, input: Vec<u8> },
}

impl Server {
    fn new(is_http2: bool) -> Self {
        if !is_http2 {
            return Self::Http1 { ends: 0 };
        }
        let connection = Box::new(Connection::server(Limits::DEFAULT));
        Self::Http2 { connection, block: HeaderBlock::new(), input: Vec::new() }
    }

    /// Appends the answer to these bytes.
    fn answer(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Http1 { ends } => {
                for byte in bytes {
                    *ends = match (byte, *ends) {
                        (b'\r', 0 | 2) | (b'\n', 1 | 3) => *ends + 1,
                        (b'\r', _) => 1,
                        _ => 0,
                    };
                    if *ends == 4 {
                        *ends = 0;
                        out.extend_from_slice(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello");
                    }
                }
            }
            Self::Http2 { connection, block, input } => {
                input.extend_from_slice(bytes);
                let mut at = 0;
                loop {
                    let now_ms = kernel::now_us() / 1_000;
                    let received = connection.receive(&input[at..], now_ms, block, out);
                    let Ok(ReceiveResult { consumed, event }) = received else { break };
                    at += consumed;
                    match event {
                        Event::NeedMore => break,
                        Event::Headers { stream, kind: HeadersKind::Request, .. } => {
                            let answered = connection.send_headers(
                                stream,
                                SendKind::Response,
                                true,
                                out,
                                |lines| {
                                    write_own_response(&NO_CONTENT, lines);
                                },
                            );
                            assert_eq!(answered, Ok(()), "weir asks soundly");
                        }
                        Event::Data { stream, start, end, .. } => {
                            connection.release(stream, (end - start) as u32, out);
                        }
                        _ => {}
                    }
                }
                input.drain(..at);
            }
        }
    }
}

const NO_CONTENT: OwnResponse<'_> = OwnResponse {
    status: 204,
    fields: &[],
    edits: &FieldEdits::NONE,
    body: b"",
    client_version: Version::Http2,
    persistence: Persistence::KeepAlive,
    head_only: false,
};

/// A client's or member's end of a connection.
struct Party {
    peer: Option<Peer>,
    script: Script,
    said: usize,
    has_ended: bool,
    server: Option<Server>,
    is_told: bool,
}

impl Party {
    fn new(peer: Peer, script: Script, server: Option<Server>) -> Self {
        Self { peer: Some(peer), script, said: 0, has_ended: false, server, is_told: false }
    }

    /// Reads and sends if possible. Returns whether anything happened.
    fn act(&mut self) -> bool {
        let is_busy = (self.script.reads && self.read()) | self.say();
        let is_done = self.said == self.script.says.len() && self.server.is_none();
        if is_done && !self.has_ended && self.peer.is_some() {
            self.has_ended = true;
            match (self.script.ending, &mut self.peer) {
                (ConnectionEnd::Fin, Some(peer)) => peer.finish(),
                (ConnectionEnd::Reset, Some(peer)) => {
                    peer.reset_on_close();
                    self.peer = None;
                }
                (ConnectionEnd::Silence, _) | (_, None) => {}
            }
            return true;
        }
        is_busy
    }

    fn read(&mut self) -> bool {
        let mut buffer = [0; 4_096];
        let mut is_busy = false;
        while let Some(peer) = &mut self.peer {
            match peer.read(&mut buffer) {
                Ok(0) => self.peer = None,
                Ok(count) => {
                    self.is_told = true;
                    if let Some(server) = &mut self.server {
                        server.answer(&buffer[..count], &mut self.script.says);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => self.peer = None,
            }
            is_busy = true;
        }
        is_busy
    }

    /// Sends the next part of the script.
    fn say(&mut self) -> bool {
        let Some(peer) = &mut self.peer else { return false };
        let rest = &self.script.says[self.said..];
        if rest.is_empty() || self.script.waits && !self.is_told {
            return false;
        }
        match peer.write(&rest[..rest.len().min(self.script.cut)]) {
            Ok(count) => self.said += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            Err(_) => self.peer = None,
        }
        true
    }
}

/// A worker with all its peers.
pub struct Bed {
    network: Network,
    worker: SimulatedWorker,
    clients: Vec<Party>,
    members: Vec<Party>,
    /// The script of all members; `None`: they are well-behaved.
    member: Option<Script>,
}

impl Bed {
    /// The initial state. `member`: the script of every member, whatever the request is; `None`: well-behaved members.
    pub fn new(seed: u8, is_foul: bool, member: Option<Script>) -> Self {
        kernel::begin(u64::from(seed));
        let percent = if is_foul { 30 } else { 0 };
        let weather = NetworkFaults {
            short_sends_percent: percent,
            stirs_percent: percent,
            delays_percent: percent,
            parts_percent: percent,
            narrow_percent: percent,
            accept_failures_permille: 0,
        };
        let network = Network::new(u64::from(seed), weather, DESCRIPTORS_MAX);
        for host in [1, 2] {
            network.set_reach(address(2, host), Reachability::Open);
        }
        let worker = SimulatedWorker::new(&network, SNAPSHOT.with(Clone::clone));
        Self { network, worker, clients: Vec::new(), members: Vec::new(), member }
    }

    /// Connects a client to a virtual server.
    pub fn connect(&mut self, server: usize, script: Script) {
        let from = SocketAddr::from(([10, 0, 3, 1], 1_024 + self.clients.len() as u16));
        let peer = self.network.dial(address(1, server % SERVERS), from);
        self.clients.push(Party::new(peer.expect("it listens"), script, None));
    }

    /// Runs until all parties have ended, and checks that no state remains.
    pub fn finish(mut self) {
        let end_us = kernel::now_us() + END_US;
        self.run(end_us, |bed| {
            bed.clients.iter().any(|client| client.peer.is_some() && client.script.reads)
        });
        let is_kept = |client: &Party| client.peer.is_some() && client.script.reads;
        assert!(!self.clients.iter().any(is_kept), "a client is kept for ever");
        // A client that does not read cannot notice the end.
        self.clients.clear();
        let quiet_us = kernel::now_us() + END_US;
        self.run(quiet_us, |_| true);
        let remains = self.worker.remains();
        assert!(remains.is_empty(), "left of it: {}", remains.join(", "));
    }

    fn run(&mut self, until_us: u64, goes_on: impl Fn(&Self) -> bool) {
        let mut rounds = 0;
        while kernel::now_us() < until_us && goes_on(self) {
            self.round(until_us);
            rounds += 1;
            assert!(rounds < ROUNDS_MAX, "it comes to no end");
        }
    }

    /// Lets every party act once. If nothing happens, advances the time to the next event.
    fn round(&mut self, until_us: u64) {
        let mut is_busy = self.network.travel();
        for party in self.clients.iter_mut().chain(&mut self.members) {
            is_busy |= party.act();
        }
        while let Some((at, peer)) = self.network.take_call() {
            let server = Server::new(at == address(2, 2));
            let nothing = Script {
                says: Vec::new(),
                cut: 4_096,
                ending: ConnectionEnd::Fin,
                reads: true,
                waits: false,
            };
            let party = match &self.member {
                Some(script) => Party::new(peer, script.clone(), None),
                None => Party::new(peer, nothing, Some(server)),
            };
            self.members.push(party);
            is_busy = true;
        }
        self.members.retain(|member| member.peer.is_some());
        let due_us = self.worker.due_us().unwrap_or(u64::MAX);
        if due_us <= kernel::now_us() || self.network.has_events() {
            self.worker.turn().expect("the loop goes on");
            is_busy = true;
        }
        let pause_us = due_us.min(until_us).saturating_sub(kernel::now_us());
        kernel::pass(if is_busy { 10 } else { pause_us.max(1) });
    }
}

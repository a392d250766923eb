//! Clients and members over real sockets. The kernel delivers a datagram over loopback before the send returns, so the tests
//! decide when the relay has its turn.

use std::net::UdpSocket;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use super::*;
use crate::load::udp::{UdpPlan, run};
use crate::load::{Extent, NoObserver};
use crate::origin::{UdpOrigin, UdpSettings};

const NO_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

fn any() -> SocketAddr {
    "127.0.0.1:0".parse().expect("an address")
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind(any()).expect("a socket");
    socket.set_nonblocking(true).expect("no waiting");
    socket
}

impl Relay {
    fn address(&self) -> SocketAddr {
        let address = rustix::net::getsockname(&self.listener).expect("its address");
        address.try_into().expect("an address of the internet")
    }
}

/// A relay with a member, and some clients.
struct Scene {
    relay: Relay,
    member: UdpSocket,
    clients: Vec<UdpSocket>,
}

/// The bytes of a client's datagram. All bytes depend on the client, the round and the direction.
fn tagged(client: usize, round: usize, is_answer: bool) -> Vec<u8> {
    // Short enough for the queries of all clients to fit into the smallest receive buffer.
    let length = 6 + (client * 37 + round * 101) % 250;
    let seed = client as u64 * 7_919 + round as u64 * 104_729 + u64::from(is_answer);
    let mut bytes: Vec<u8> = (0..length as u64)
        .map(|at| ((seed + at).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8)
        .collect();
    bytes[..2].copy_from_slice(&(client as u16).to_be_bytes());
    bytes[2..4].copy_from_slice(&(round as u16).to_be_bytes());
    bytes
}

/// The client and the round of a datagram.
fn tags(bytes: &[u8]) -> (usize, usize) {
    let number = |at: usize| usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
    (number(0), number(2))
}

impl Scene {
    fn new(sockets: usize, clients: usize) -> Self {
        let member = socket();
        let to = member.local_addr().expect("its address");
        Self { member, ..Self::asking(to, sockets, clients) }
    }

    /// A relay that asks another member than the scene's.
    fn asking(to: SocketAddr, sockets: usize, clients: usize) -> Self {
        let member = socket();
        let relay = Relay::open(any(), &[to], sockets).expect("a relay");
        let address = relay.address();
        let clients: Vec<UdpSocket> = (0..clients).map(|_| socket()).collect();
        for client in &clients {
            client.connect(address).expect("connecting");
        }
        Self { relay, member, clients }
    }

    fn ask(&self, client: usize, round: usize) {
        self.clients[client].send(&tagged(client, round, false)).expect("sending");
    }

    /// Gives the relay turns until all that has arrived is relayed.
    fn relay_all(&mut self) {
        for _ in 0..1_000 {
            self.relay.turn(Some(&NO_WAIT)).expect("a turn");
            if self.relay.events.is_empty() {
                return;
            }
        }
        panic!("the relay does not come to rest");
    }

    /// The datagrams that have reached the member, with their senders.
    fn asked(&self) -> Vec<(SocketAddr, Vec<u8>)> {
        let mut buffer = vec![0; DATAGRAM_BYTES];
        let received = std::iter::from_fn(|| {
            let (length, from) = self.member.recv_from(&mut buffer).ok()?;
            Some((from, buffer[..length].to_vec()))
        });
        received.collect()
    }

    fn answer(&self, (to, query): &(SocketAddr, Vec<u8>)) {
        let (client, round) = tags(query);
        assert_eq!(*query, tagged(client, round, false), "the member gets what was sent");
        self.member.send_to(&tagged(client, round, true), to).expect("answering");
    }

    /// Asserts that a client has received the answer of this round and nothing else; `None`: nothing at all.
    fn assert_answered(&self, client: usize, round: Option<usize>) {
        let mut buffer = vec![0; DATAGRAM_BYTES];
        if let Some(round) = round {
            let length = self.clients[client].recv(&mut buffer).expect("an answer");
            assert!(buffer[..length] == tagged(client, round, true), "client {client}");
        }
        assert!(self.clients[client].recv(&mut buffer).is_err(), "client {client} got more");
    }
}

#[test]
fn every_client_gets_its_own_answer() {
    const CLIENTS: usize = 200;
    let mut scene = Scene::new(MEMBER_SOCKETS, CLIENTS);
    for round in 0..20 {
        (0..CLIENTS).for_each(|client| scene.ask(client, round));
        scene.relay_all();
        let mut asked = scene.asked();
        assert_eq!(asked.len(), CLIENTS);
        // The order of the answers differs from the order of the queries.
        asked.sort_by_key(|(_, query)| (tags(query).0 * 7 + round) % CLIENTS);
        asked.iter().for_each(|it| scene.answer(it));
        scene.relay_all();
        (0..CLIENTS).for_each(|client| scene.assert_answered(client, Some(round)));
        assert_eq!(scene.relay.sockets.free.len(), MEMBER_SOCKETS);
    }
}

#[test]
fn the_largest_and_the_empty_datagram_arrive_whole() {
    let mut scene = Scene::new(40, 40);
    for (length, count) in [(65_507, 3), (0, 40)] {
        let filling = |client: usize| vec![client as u8 + 1; length];
        for client in 0..count {
            scene.clients[client].send(&filling(client)).expect("sending");
        }
        scene.relay_all();
        let asked = scene.asked();
        assert_eq!(asked.len(), count);
        for (to, bytes) in &asked {
            assert_eq!(bytes.len(), length);
            scene.member.send_to(bytes, to).expect("answering");
        }
        scene.relay_all();
        let mut buffer = vec![0; DATAGRAM_BYTES];
        for client in 0..count {
            let got = scene.clients[client].recv(&mut buffer).expect("an answer");
            assert!(buffer[..got] == filling(client), "client {client}: {got} bytes");
        }
    }
}

#[test]
fn with_more_clients_than_sockets_the_oldest_queries_are_given_up() {
    let mut scene = Scene::new(3, 5);
    for round in 0..4 {
        (0..5).for_each(|client| scene.ask(client, round));
        scene.relay_all();
        let asked = scene.asked();
        assert_eq!(asked.len(), 5);
        // Rarely, the kernel gives the port of a closed socket to the next one, which would get the late answer.
        let is_behind = |(port, query): &(SocketAddr, Vec<u8>)| {
            asked.iter().any(|(other, later)| other == port && tags(later).0 > tags(query).0)
        };
        asked.iter().filter(|it| !is_behind(it)).for_each(|it| scene.answer(it));
        scene.relay_all();
        // Sockets of the first two were replaced. Their answers reach nobody.
        for client in 0..5 {
            scene.assert_answered(client, (client >= 2).then_some(round));
        }
        assert_eq!(scene.relay.sockets.free.len(), 3);
    }
}

#[test]
fn an_answer_that_never_comes_takes_no_socket_for_ever() {
    let mut scene = Scene::new(3, 4);
    let ask = |scene: &mut Scene, client, round| {
        scene.ask(client, round);
        scene.relay_all();
        scene.asked().pop().expect("a query")
    };
    let unanswered = ask(&mut scene, 0, 0);
    // Two sockets are left for the others.
    for round in 1..50 {
        for client in 1..4 {
            let asked = ask(&mut scene, client, round);
            scene.answer(&asked);
            scene.relay_all();
            scene.assert_answered(client, Some(round));
        }
    }
    assert_eq!(scene.relay.sockets.free.len(), 2);
    // The third one takes the socket of the unanswered query.
    let last: Vec<_> = (1..4).map(|client| ask(&mut scene, client, 50)).collect();
    scene.answer(&unanswered);
    scene.relay_all();
    (0..4).for_each(|client| scene.assert_answered(client, None));
    last.iter().for_each(|it| scene.answer(it));
    scene.relay_all();
    scene.assert_answered(0, None);
    (1..4).for_each(|client| scene.assert_answered(client, Some(50)));
    assert_eq!(scene.relay.sockets.free.len(), 3);
}

#[test]
fn a_refused_query_makes_its_socket_free() {
    // Datagrams to the member's port are refused. Nobody else uses this address, so nobody gets the port meanwhile.
    let [.., high, low] = std::process::id().to_be_bytes();
    let gone = UdpSocket::bind(SocketAddr::from(([127, 33, high, low], 0))).expect("a socket");
    let to = gone.local_addr().expect("its address");
    drop(gone);
    let mut scene = Scene::asking(to, 2, 3);
    for round in 0..10 {
        (0..3).for_each(|client| scene.ask(client, round));
        scene.relay_all();
        assert_eq!(scene.relay.sockets.free.len(), 2, "round {round}");
    }
    (0..3).for_each(|client| scene.assert_answered(client, None));
}

#[test]
fn further_answers_reach_nobody() {
    let mut scene = Scene::new(1, 2);
    scene.ask(0, 0);
    scene.relay_all();
    let asked = scene.asked();
    // One more answer at the same time, and one later.
    scene.answer(&asked[0]);
    scene.answer(&asked[0]);
    scene.relay_all();
    scene.answer(&asked[0]);
    scene.relay_all();
    scene.assert_answered(0, Some(0));
    scene.ask(1, 1);
    scene.relay_all();
    scene.asked().iter().for_each(|it| scene.answer(it));
    scene.relay_all();
    scene.assert_answered(0, None);
    scene.assert_answered(1, Some(1));
}

#[test]
fn the_relay_needs_one_address() {
    for listen in ["0.0.0.0:0", "[::]:0"] {
        let listen = listen.parse().expect("an address");
        let error = Relay::open(listen, &[any()], 1).map(|_| ()).expect_err("it is ambiguous");
        assert!(error.to_string().contains("one address"), "{error}");
    }
}

/// The loads of the test `udp-queries`, through a relay in a thread of its own.
#[test]
fn a_load_gets_all_its_answers() {
    let settings = UdpSettings { listen: any(), servers: 3, threads: 1, cores: Vec::new() };
    let origin = UdpOrigin::start(&settings).expect("an origin");
    let members = origin.addresses().to_vec();
    let stop = Arc::new(AtomicBool::new(false));
    let is_over = stop.clone();
    let (opened, address) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let mut relay = Relay::open(any(), &members, MEMBER_SOCKETS).expect("a relay");
        opened.send(relay.address()).expect("the test waits");
        let wait = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
        while !is_over.load(Relaxed) {
            relay.turn(Some(&wait)).expect("a turn");
        }
        relay.sockets.free.len()
    });
    let targets = [address.recv().expect("the relay's address")];
    for queries_per_flow in [Some(1), None] {
        let plan = UdpPlan {
            targets: targets.to_vec(),
            flows: 64,
            queries_per_flow,
            query_bytes: 48,
            answer_bytes: 128,
            extent: Extent::Requests(5_000),
            rate: None,
            warm_up: Duration::ZERO,
            timeout: Duration::from_secs(10),
            sources: Vec::new(),
            threads: 1,
            cores: Vec::new(),
            network_namespace: None,
            stop: Arc::default(),
        };
        let outcome = run(&plan, &mut NoObserver).expect("a load");
        assert_eq!((outcome.requests, outcome.errors), (5_000, 0), "{outcome:?}");
        assert_eq!(outcome.bytes, 5_000 * 128);
    }
    assert_eq!(origin.counts().queries, 10_000);
    stop.store(true, Relaxed);
    assert_eq!(thread.join().expect("the relay"), MEMBER_SOCKETS);
}

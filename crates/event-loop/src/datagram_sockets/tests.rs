use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::*;
use crate::handler::Handler;
use crate::sockets::{Endpoint, ListenOptions, listen};
use crate::token::OwnerKey;
use crate::turn::Turns;

const LISTENER: Owner = Owner::DatagramListener(OwnerKey::new(0));
const SESSION: Owner = Owner::Session(OwnerKey::new(1));

/// Records events, and stops the loop.
struct Recorder {
    told: Vec<(Owner, Vec<u8>)>,
    failed: Vec<Errno>,
    panics: bool,
    until: Instant,
}

impl Recorder {
    fn new() -> Self {
        let until = Instant::now() + Duration::from_secs(60);
        Self { told: Vec::new(), failed: Vec::new(), panics: false, until }
    }

    fn run(&mut self, io: &mut EventLoop) {
        io.is_stopping = false;
        Turns::default().run(io, self).unwrap();
    }
}

impl Handler for Recorder {
    fn accepted(&mut self, _: &mut EventLoop, _: OwnerKey, _: Descriptor, _: Option<SocketAddr>) {}
    fn accept_failed(&mut self, _: &mut EventLoop, _: OwnerKey, _: Errno) {}
    fn connected(&mut self, _: &mut EventLoop, _: Owner, _: Result<(), Errno>) {}
    fn received(&mut self, _: &mut EventLoop, _: Owner, _: &mut [u8]) {}
    fn ended(&mut self, _: &mut EventLoop, _: Owner) {}
    fn failed(&mut self, _: &mut EventLoop, _: Owner, _: Errno) {}
    fn drained(&mut self, _: &mut EventLoop, _: Owner) {}
    fn timer(&mut self, _: &mut EventLoop, _: Owner) {}
    fn closed(&mut self, _: &mut EventLoop, _: Owner) {}
    fn datagrams(&mut self, io: &mut EventLoop, owner: Owner, _: Option<Flow>, train: Train<'_>) {
        assert!(!std::mem::take(&mut self.panics), "as told");
        self.told.extend(train.iter().map(|bytes| (owner, bytes.to_vec())));
        io.stop();
    }
    fn datagrams_failed(&mut self, io: &mut EventLoop, _: Owner, error: Errno) {
        self.failed.push(error);
        io.stop();
    }
    fn control(&mut self, _: &mut EventLoop) {}
    fn turn_ended(&mut self, io: &mut EventLoop) -> Option<u64> {
        assert!(Instant::now() < self.until, "nothing was told");
        Some(io.clock().now_us() + 100_000)
    }
}

/// A member, and its address.
fn member() -> (UdpSocket, SocketAddr) {
    let member = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = member.local_addr().unwrap();
    (member, address)
}

#[test]
fn what_is_too_long_is_lost_and_the_socket_goes_on() {
    let mut io = EventLoop::new().unwrap();
    let (member, address) = member();
    let token = Datagrams::of(&mut io).connect(address, None, SESSION).unwrap();
    let long = [0; 65_530];
    assert_eq!(Datagrams::of(&mut io).send(token, Train::one(&long)), Ok(()));
    assert_eq!(Datagrams::of(&mut io).take_lost(), 1);
    // No further event may wake the loop.
    let mut events = Vec::with_capacity(8);
    io.kernel.wait(&mut events, Some(0), false).unwrap();
    assert!(events.is_empty(), "{}", events.len());
    assert_eq!(Datagrams::of(&mut io).send(token, Train::one(b"short")), Ok(()));
    let (length, from) = member.recv_from(&mut [0; 16]).unwrap();
    assert_eq!(length, 5);
    member.send_to(b"answer", from).unwrap();
    let mut recorder = Recorder::new();
    recorder.run(&mut io);
    assert_eq!(recorder.told.len(), 1);
    assert!(recorder.failed.is_empty(), "{:?}", recorder.failed);
    // A refused port is the member's error, reported once.
    drop(member);
    assert_eq!(Datagrams::of(&mut io).send(token, Train::one(b"anybody?")), Ok(()));
    recorder.run(&mut io);
    assert_eq!(recorder.failed, [Errno::CONNREFUSED]);
}

#[test]
fn a_socket_at_rest_to_which_something_came_is_given_to_nobody() {
    for late in [&b"late"[..], b""] {
        let mut io = EventLoop::new().unwrap();
        let (member, address) = member();
        let token = Datagrams::of(&mut io).connect(address, None, SESSION).unwrap();
        assert_eq!(Datagrams::of(&mut io).send(token, Train::one(b"query")), Ok(()));
        let (_, from) = member.recv_from(&mut [0; 16]).unwrap();
        Datagrams::of(&mut io).rest(token, u64::MAX);
        member.send_to(late, from).unwrap();
        assert!(!Datagrams::of(&mut io).wake(token, Owner::Session(OwnerKey::new(2))));
    }
}

/// A socket for a listener of the loop, and a client of the listener.
fn listener() -> (Descriptor, UdpSocket) {
    let address = Endpoint::Datagrams("127.0.0.1:0".parse().unwrap());
    let socket: OwnedFd = listen(address, 1, ListenOptions::default()).unwrap().remove(0);
    let socket = Descriptor::from(socket);
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(socket.local_address().unwrap()).unwrap();
    (socket, client)
}

#[test]
fn after_a_panic_of_the_handler_datagrams_are_read_as_before() {
    let mut io = EventLoop::new().unwrap();
    let (socket, client) = listener();
    Datagrams::of(&mut io).listen(socket, LISTENER).unwrap();
    let mut recorder = Recorder { panics: true, ..Recorder::new() };
    let mut turns = Turns::default();
    client.send(b"first").unwrap();
    catch_unwind(AssertUnwindSafe(|| turns.run(&mut io, &mut recorder))).unwrap_err();
    io.close_streams();
    client.send(b"second").unwrap();
    turns.run(&mut io, &mut recorder).unwrap();
    assert_eq!(recorder.told, [(LISTENER, b"second".to_vec())]);
}

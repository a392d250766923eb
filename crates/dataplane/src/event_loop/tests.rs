use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use weir_config::snapshot::Address;

use super::*;
use crate::sockets;

/// Writes down what it is told, with the bytes that the kernel had taken of ours by then.
struct Recorder {
    token: Option<Token>,
    told: Vec<(&'static str, u64)>,
}

impl Recorder {
    fn note(&mut self, io: &mut EventLoop, what: &'static str) {
        let sent = self.token.map_or(0, |token| io.sent_bytes(token));
        self.told.push((what, sent));
    }
}

impl Handler for Recorder {
    fn accepted(&mut self, _: &mut EventLoop, _: OwnerKey, _: OwnedFd, _: Option<SocketAddr>) {}
    fn accept_failed(&mut self, _: &mut EventLoop, _: OwnerKey, _: Errno) {}
    fn connected(&mut self, io: &mut EventLoop, _: Owner, result: Result<(), Errno>) {
        result.unwrap();
        self.note(io, "connected");
    }
    fn received(&mut self, io: &mut EventLoop, _: Owner, _: &mut [u8]) {
        self.note(io, "received");
    }
    fn ended(&mut self, io: &mut EventLoop, _: Owner) {
        self.note(io, "ended");
        io.stop();
    }
    fn failed(&mut self, _: &mut EventLoop, _: Owner, error: Errno) {
        panic!("{error}");
    }
    fn drained(&mut self, io: &mut EventLoop, _: Owner) {
        self.note(io, "drained");
    }
    fn timer(&mut self, _: &mut EventLoop, _: Owner) {}
    fn closed(&mut self, _: &mut EventLoop, _: Owner) {}
    fn control(&mut self, _: &mut EventLoop) {}
    fn turn_ended(&mut self, _: &mut EventLoop) -> Option<u64> {
        None
    }
}

#[test]
fn what_a_peer_says_unasked_is_delivered_before_what_waits_to_be_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Socket(listener.local_addr().unwrap());
    let mut io = EventLoop::new().unwrap();
    let socket = sockets::connect(&address, None).unwrap();
    let (mut peer, _) = listener.accept().unwrap();
    peer.write_all(b"unasked").unwrap();
    let token = io.add_connecting(socket, Owner::Member(OwnerKey::new(0))).unwrap();
    io.send(token, &[IoSlice::new(b"request")]);
    let peer = std::thread::spawn(move || {
        let mut request = [0; 7];
        peer.read_exact(&mut request).unwrap();
        request
    });
    let mut recorder = Recorder { token: Some(token), told: Vec::new() };
    io.run(&mut recorder).unwrap();
    assert_eq!(&peer.join().unwrap(), b"request");
    assert_eq!(recorder.told, [("connected", 0), ("received", 0), ("drained", 7), ("ended", 7)]);
}

#[test]
fn the_last_bytes_go_out_with_the_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut io = EventLoop::new().unwrap();
    let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (socket, _) = listener.accept().unwrap();
    let token = io.add_stream(socket.into(), Owner::Client(OwnerKey::new(0))).unwrap();
    io.send(token, &[IoSlice::new(b"first, ")]);
    io.send_last(token, &[IoSlice::new(b"last")]);
    io.close(token);
    let mut received = Vec::new();
    peer.read_to_end(&mut received).unwrap();
    assert_eq!(received, b"first, last");
}

#[test]
fn a_loop_without_a_socket_turns() {
    /// Stops the loop at the end of its first turn.
    struct Stopper;
    impl Handler for Stopper {
        fn accepted(&mut self, _: &mut EventLoop, _: OwnerKey, _: OwnedFd, _: Option<SocketAddr>) {}
        fn accept_failed(&mut self, _: &mut EventLoop, _: OwnerKey, _: Errno) {}
        fn connected(&mut self, _: &mut EventLoop, _: Owner, _: Result<(), Errno>) {}
        fn received(&mut self, _: &mut EventLoop, _: Owner, _: &mut [u8]) {}
        fn ended(&mut self, _: &mut EventLoop, _: Owner) {}
        fn failed(&mut self, _: &mut EventLoop, _: Owner, _: Errno) {}
        fn drained(&mut self, _: &mut EventLoop, _: Owner) {}
        fn timer(&mut self, _: &mut EventLoop, _: Owner) {}
        fn closed(&mut self, _: &mut EventLoop, _: Owner) {}
        fn control(&mut self, _: &mut EventLoop) {}
        fn turn_ended(&mut self, io: &mut EventLoop) -> Option<u64> {
            io.stop();
            None
        }
    }
    EventLoop::new().unwrap().run(&mut Stopper).unwrap();
}

#[test]
fn clients_leave_room_for_members_and_both_for_listeners() {
    for (limit, accept_below, connect_below) in [
        (4, 0, 0),
        (64, 53, 59),
        (1_024, 893, 989),
        (20_000, 18_972, 19_740),
        (usize::MAX, usize::MAX - 1_028, usize::MAX - 260),
    ] {
        assert_eq!(Room::within(limit), Room { accept_below, connect_below }, "{limit}");
    }
}

/// A socket that brings more than its handler can take at once, and another that has something to say each time.
struct Slices {
    other: TcpStream,
    left_bytes: usize,
    /// Bytes of the first, or none: the other had its turn.
    told: Vec<usize>,
}

impl Handler for Slices {
    fn accepted(&mut self, _: &mut EventLoop, _: OwnerKey, _: OwnedFd, _: Option<SocketAddr>) {}
    fn accept_failed(&mut self, _: &mut EventLoop, _: OwnerKey, _: Errno) {}
    fn connected(&mut self, _: &mut EventLoop, _: Owner, _: Result<(), Errno>) {}
    fn received(&mut self, io: &mut EventLoop, owner: Owner, bytes: &mut [u8]) {
        if owner == Owner::Client(OwnerKey::new(0)) {
            return self.told.push(0);
        }
        self.told.push(bytes.len());
        self.other.write_all(b"x").unwrap();
        self.left_bytes -= bytes.len();
        if self.left_bytes == 0 {
            io.stop();
        }
    }
    fn ended(&mut self, _: &mut EventLoop, _: Owner) {}
    fn failed(&mut self, _: &mut EventLoop, _: Owner, error: Errno) {
        panic!("{error}");
    }
    fn drained(&mut self, _: &mut EventLoop, _: Owner) {}
    fn timer(&mut self, _: &mut EventLoop, _: Owner) {}
    fn closed(&mut self, _: &mut EventLoop, _: Owner) {}
    fn control(&mut self, _: &mut EventLoop) {}
    fn turn_ended(&mut self, _: &mut EventLoop) -> Option<u64> {
        None
    }
}

#[test]
fn between_limited_reads_others_have_their_turn() {
    const SLICE_BYTES: usize = 1_000;
    const BYTES: usize = 40_500;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut io = EventLoop::new().unwrap();
    let mut stream = |owner| {
        let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        (peer, io.add_stream(socket.into(), owner).unwrap())
    };
    let (mut first, token) = stream(Owner::Member(OwnerKey::new(0)));
    let (other, _) = stream(Owner::Client(OwnerKey::new(0)));
    io.limit_reads(token, SLICE_BYTES);
    first.write_all(&[7; BYTES]).unwrap();
    let mut slices = Slices { other, left_bytes: BYTES, told: Vec::new() };
    io.run(&mut slices).unwrap();
    let told = &slices.told;
    assert!(told.iter().all(|bytes| *bytes <= SLICE_BYTES), "{told:?}");
    // The first turn reads twice: for the event, and for what that left.
    assert!(told[2..].windows(2).all(|two| two.contains(&0)), "{told:?}");
    assert_eq!(told.iter().sum::<usize>(), BYTES);
}

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown as Half, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt;
use weir_tls::Session;
use weir_tls::client::{ClientSettings, client_config};

use crate::event_loop::EventLoop;
use crate::handler::Handler;
use crate::kernel::Descriptor;
use crate::socket::ReadMode;
use crate::socket_room::SocketLimits;
use crate::sockets::Endpoint;
use crate::token::{Owner, OwnerKey, Token};
use crate::turn::Turns;

const ZERO: OwnerKey = OwnerKey::new(0);
const ONE: OwnerKey = OwnerKey::new(1);

/// A peer, and a connected socket for the loop.
pub(crate) fn pair() -> (TcpStream, Descriptor) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (socket, _) = listener.accept().unwrap();
    socket.set_nonblocking(true).unwrap();
    (peer, OwnedFd::from(socket).into())
}

/// Records events, with the number of bytes that the kernel had accepted by then.
struct Recorder {
    token: Option<Token>,
    told: Vec<(&'static str, u64)>,
}

impl Recorder {
    fn note(&mut self, io: &mut EventLoop, what: &'static str) {
        let sent = self.token.map_or(0, |token| io.sockets.sent_bytes(token));
        self.told.push((what, sent));
    }
}

impl Handler for Recorder {
    fn accepted(&mut self, _: &mut EventLoop, _: OwnerKey, _: Descriptor, _: Option<SocketAddr>) {}
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
    let address = Endpoint::Socket(listener.local_addr().unwrap());
    let mut io = EventLoop::new().unwrap();
    let token = io.connect(address, None, Owner::Member(ZERO)).unwrap();
    let (mut peer, _) = listener.accept().unwrap();
    peer.write_all(b"unasked").unwrap();
    io.send(token, &[IoSlice::new(b"request")]);
    let peer = std::thread::spawn(move || {
        let mut request = [0; 7];
        peer.read_exact(&mut request).unwrap();
        request
    });
    let mut recorder = Recorder { token: Some(token), told: Vec::new() };
    Turns::default().run(&mut io, &mut recorder).unwrap();
    assert_eq!(&peer.join().unwrap(), b"request");
    assert_eq!(recorder.told, [("connected", 0), ("received", 0), ("drained", 7), ("ended", 7)]);
}

#[test]
fn the_last_bytes_go_out_with_the_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut io = EventLoop::new().unwrap();
    let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (socket, _) = listener.accept().unwrap();
    let token = io.add(OwnedFd::from(socket).into(), Owner::Client(ZERO)).unwrap();
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
        fn accepted(
            &mut self,
            _: &mut EventLoop,
            _: OwnerKey,
            _: Descriptor,
            _: Option<SocketAddr>,
        ) {
        }
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
    let mut io = EventLoop::new().unwrap();
    Turns::default().run(&mut io, &mut Stopper).unwrap();
}

/// Counts the connections that each turn accepts, up to a total.
struct Accepting {
    of_turns: Vec<usize>,
    of_this: usize,
    wanted: usize,
}

impl Handler for Accepting {
    fn accepted(&mut self, _: &mut EventLoop, _: OwnerKey, _: Descriptor, _: Option<SocketAddr>) {
        self.of_this += 1;
    }
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
        self.of_turns.extend((self.of_this > 0).then_some(self.of_this));
        self.of_this = 0;
        if self.of_turns.iter().sum::<usize>() == self.wanted {
            io.stop();
        }
        None
    }
}

#[test]
fn a_lone_connection_is_accepted_without_a_look_for_others_and_many_are_taken_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    let mut io = EventLoop::new().unwrap();
    io.add(OwnedFd::from(listener).into(), Owner::Listener(ZERO)).unwrap();
    let mut turns = Turns::default();
    for (at_once, expected) in [(1, &[1][..]), (5, &[1, 4]), (100, &[1, 64, 35])] {
        let _peers: Vec<_> = (0..at_once).map(|_| TcpStream::connect(address).unwrap()).collect();
        let mut handler = Accepting { of_turns: Vec::new(), of_this: 0, wanted: at_once };
        io.is_stopping = false;
        turns.run(&mut io, &mut handler).unwrap();
        assert_eq!(handler.of_turns, expected);
        // A separate turn without events.
        turns.turn(&mut io, &mut handler, Some(0)).unwrap();
    }
}

/// With two busy listeners, one turn accepts several connections from each.
#[test]
fn two_busy_listeners_are_both_emptied_at_once() {
    let mut io = EventLoop::new().unwrap();
    let addresses = [(), ()].map(|()| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        io.add(OwnedFd::from(listener).into(), Owner::Listener(ZERO)).unwrap();
        address
    });
    let peers =
        addresses.into_iter().flat_map(|to| (0..20).map(move |_| TcpStream::connect(to).unwrap()));
    let _peers: Vec<_> = peers.collect();
    let mut handler = Accepting { of_turns: Vec::new(), of_this: 0, wanted: 40 };
    Turns::default().run(&mut io, &mut handler).unwrap();
    assert_eq!(handler.of_turns, [2, 38]);
}

#[test]
fn clients_leave_room_for_members_and_both_for_listeners() {
    for (limit, accept_below, connect_below, sessions_below) in [
        (4, 0, 0, 0),
        (64, 51, 57, 25),
        (1_024, 865, 958, 432),
        (20_000, 18_460, 19_228, 9_230),
        (usize::MAX, usize::MAX - 1_540, usize::MAX - 772, (usize::MAX - 1_540) / 2),
    ] {
        let room = SocketLimits { accept_below, connect_below, sessions_below };
        assert_eq!(SocketLimits::within(limit), room, "{limit}");
    }
}

#[test]
fn sessions_have_the_share_of_clients_descriptors_that_is_set() {
    let room = SocketLimits::within(1_024);
    for (percent, sessions_below) in [(0, 0), (1, 8), (30, 259), (100, 865)] {
        assert_eq!(
            room.with_sessions(percent),
            SocketLimits { sessions_below, ..room },
            "{percent}"
        );
    }
}

/// A socket with more data than its handler reads at once, and another socket with an event for each read.
struct Slices {
    other: TcpStream,
    left_bytes: usize,
    /// The sizes of the reads from the first socket; 0: an event of the other socket.
    told: Vec<usize>,
}

impl Handler for Slices {
    fn accepted(&mut self, _: &mut EventLoop, _: OwnerKey, _: Descriptor, _: Option<SocketAddr>) {}
    fn accept_failed(&mut self, _: &mut EventLoop, _: OwnerKey, _: Errno) {}
    fn connected(&mut self, _: &mut EventLoop, _: Owner, _: Result<(), Errno>) {}
    fn received(&mut self, io: &mut EventLoop, owner: Owner, bytes: &mut [u8]) {
        if owner == Owner::Client(ZERO) {
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
        (peer, io.add(OwnedFd::from(socket).into(), owner).unwrap())
    };
    let (mut first, token) = stream(Owner::Member(ZERO));
    let (other, _) = stream(Owner::Client(ZERO));
    io.sockets.read_as(token, ReadMode::Slices(SLICE_BYTES));
    first.write_all(&[7; BYTES]).unwrap();
    let mut slices = Slices { other, left_bytes: BYTES, told: Vec::new() };
    Turns::default().run(&mut io, &mut slices).unwrap();
    let told = &slices.told;
    assert!(told.iter().all(|bytes| *bytes <= SLICE_BYTES), "{told:?}");
    // The first turn reads twice: for the event, and for the remaining data.
    assert!(told[2..].windows(2).all(|two| two.contains(&0)), "{told:?}");
    assert_eq!(told.iter().sum::<usize>(), BYTES);
}

/// Maximum duration of a test scenario.
const SCENARIO_MS: u64 = 60_000;

/// An event of a handler.
#[derive(Debug, PartialEq, Eq)]
enum Told<'a> {
    Received(&'a [u8]),
    Ended,
    Failed(Errno),
    Timer,
    Closed,
}

/// Forwards all events to a closure. Fails if the loop is not stopped in time.
struct Script<F> {
    act: F,
    until: Instant,
}

impl<F: FnMut(&mut EventLoop, Owner, Told<'_>)> Script<F> {
    fn run(io: &mut EventLoop, act: F) {
        let until = Instant::now() + Duration::from_millis(SCENARIO_MS);
        Turns::default().run(io, &mut Self { act, until }).unwrap();
    }
}

impl<F: FnMut(&mut EventLoop, Owner, Told<'_>)> Handler for Script<F> {
    fn accepted(&mut self, _: &mut EventLoop, _: OwnerKey, _: Descriptor, _: Option<SocketAddr>) {}
    fn accept_failed(&mut self, _: &mut EventLoop, _: OwnerKey, _: Errno) {}
    fn connected(&mut self, _: &mut EventLoop, _: Owner, _: Result<(), Errno>) {}
    fn received(&mut self, io: &mut EventLoop, owner: Owner, bytes: &mut [u8]) {
        (self.act)(io, owner, Told::Received(bytes));
    }
    fn ended(&mut self, io: &mut EventLoop, owner: Owner) {
        (self.act)(io, owner, Told::Ended);
    }
    fn failed(&mut self, io: &mut EventLoop, owner: Owner, error: Errno) {
        (self.act)(io, owner, Told::Failed(error));
    }
    fn drained(&mut self, _: &mut EventLoop, _: Owner) {}
    fn timer(&mut self, io: &mut EventLoop, owner: Owner) {
        (self.act)(io, owner, Told::Timer);
    }
    fn closed(&mut self, io: &mut EventLoop, owner: Owner) {
        (self.act)(io, owner, Told::Closed);
    }
    fn control(&mut self, _: &mut EventLoop) {}
    fn turn_ended(&mut self, io: &mut EventLoop) -> Option<u64> {
        assert!(Instant::now() < self.until, "nobody has stopped the loop");
        Some(io.clock().now_us() + 1_000_000)
    }
}

/// Closes the peer with a reset, and waits until the reset has arrived at the loop's socket.
fn reset(peer: TcpStream, socket: Option<&Descriptor>) {
    sockopt::set_socket_linger(&peer, Some(Duration::ZERO)).unwrap();
    drop(peer);
    // Without flags, only an error or the end of both directions wakes poll.
    let socket = socket.and_then(Descriptor::socket).unwrap();
    let mut wait = [PollFd::new(socket, PollFlags::empty())];
    let timeout = Timespec { tv_sec: (SCENARIO_MS / 1_000) as i64, tv_nsec: 0 };
    assert_eq!(poll(&mut wait, Some(&timeout)), Ok(1), "the reset has not come");
}

/// How a member closes its connection.
#[derive(Debug, Clone, Copy)]
enum Ending {
    Reset,
    /// FIN before the reset.
    EndAndReset,
}

/// A member sends data and closes, and a write is the first call that detects this. Returns the events that the handler
/// receives. `is_paused`: the socket is paused at that time.
fn told_of(ending: Ending, bytes: usize, is_paused: bool) -> Vec<String> {
    let mut io = EventLoop::new().unwrap();
    let (mut trigger, socket) = pair();
    io.add(socket, Owner::Client(ZERO)).unwrap();
    let (peer, socket) = pair();
    let member = io.add(socket, Owner::Member(ZERO)).unwrap();
    // The data then takes several turns.
    io.sockets.read_as(member, ReadMode::Slices(10_000));
    let mut peer = Some(peer);
    let (mut told, mut received_bytes) = (Vec::new(), 0);
    trigger.write_all(b"x").unwrap();
    Script::run(&mut io, |io, owner, what| match (owner, what) {
        (Owner::Client(_), Told::Received(b"x")) => {
            let mut peer = peer.take().unwrap();
            peer.write_all(&vec![7; bytes]).unwrap();
            if matches!(ending, Ending::EndAndReset) {
                peer.shutdown(Half::Write).unwrap();
            }
            reset(peer, io.sockets.descriptor(member));
            if is_paused {
                io.sockets.pause(member);
            }
            io.send(member, &[IoSlice::new(b"more")]);
            if is_paused {
                // This event follows when all due work is done.
                trigger.write_all(b"resume").unwrap();
            }
        }
        (Owner::Client(_), _) => {
            told.push("resumed".to_owned());
            io.sockets.resume(member);
        }
        (_, Told::Received(bytes)) => received_bytes += bytes.len(),
        (_, what) => {
            told.push(format!("{received_bytes} bytes, {what:?}"));
            if matches!(what, Told::Failed(_)) {
                io.close(member);
                io.stop();
            }
        }
    });
    told
}

#[test]
fn a_reset_that_a_write_meets_first_is_no_end() {
    for bytes in [0, 1_000, 100_000] {
        let failed = format!("{bytes} bytes, Failed({:?})", Errno::CONNRESET);
        assert_eq!(told_of(Ending::Reset, bytes, false), [&*failed]);
        assert_eq!(told_of(Ending::Reset, bytes, true), ["resumed", &*failed]);
    }
}

#[test]
fn an_end_before_a_reset_is_an_end() {
    for bytes in [0, 1_000, 100_000] {
        let ended = format!("{bytes} bytes, Ended");
        let failed = format!("{bytes} bytes, Failed({:?})", Errno::PIPE);
        assert_eq!(told_of(Ending::EndAndReset, bytes, false), [&*ended, &failed]);
        assert_eq!(told_of(Ending::EndAndReset, bytes, true), ["resumed", &*ended, &failed]);
    }
}

#[test]
fn a_client_that_resets_is_not_read_on() {
    let mut io = EventLoop::new().unwrap();
    let (mut trigger, socket) = pair();
    io.add(socket, Owner::Client(ZERO)).unwrap();
    let (peer, socket) = pair();
    let client = io.add(socket, Owner::Client(ONE)).unwrap();
    let mut peer = Some(peer);
    trigger.write_all(b"x").unwrap();
    Script::run(&mut io, |io, owner, what| match (owner, what) {
        (Owner::Client(ZERO), _) => {
            peer.as_mut().unwrap().write_all(b"a request").unwrap();
            reset(peer.take().unwrap(), io.sockets.descriptor(client));
            io.send(client, &[IoSlice::new(b"a response")]);
        }
        (_, what) => {
            assert_eq!(what, Told::Failed(Errno::CONNRESET));
            io.stop();
        }
    });
}

/// The result for a peer that sends a long upload completely before it reads anything.
#[derive(Debug)]
struct Uploader {
    sent: Result<(), ErrorKind>,
    got: Vec<u8>,
    end: Result<usize, ErrorKind>,
}

impl Uploader {
    fn upload(peer: &mut TcpStream, bytes: usize) -> Self {
        let sent = peer.write_all(&vec![7; bytes]).map_err(|error| error.kind());
        let _ = peer.shutdown(Half::Write);
        let mut got = Vec::new();
        let end = peer.read_to_end(&mut got).map_err(|error| error.kind());
        Self { sent, got, end }
    }
}

/// Sends a response and finishes the socket with `leave`, while its peer uploads.
fn let_go(
    answer: &[u8],
    upload_bytes: usize,
    leave: impl FnOnce(&mut EventLoop, Token),
) -> Uploader {
    let mut io = EventLoop::new().unwrap();
    let (mut peer, socket) = pair();
    let token = io.add(socket, Owner::Client(ZERO)).unwrap();
    let uploader = std::thread::spawn(move || Uploader::upload(&mut peer, upload_bytes));
    io.send(token, &[IoSlice::new(answer)]);
    leave(&mut io, token);
    Script::run(&mut io, |io, _, what| {
        assert_eq!(what, Told::Closed);
        io.stop();
    });
    uploader.join().unwrap()
}

#[test]
fn who_reads_the_answer_only_behind_a_long_upload_gets_it() {
    for upload_bytes in [0, 3_000_000, 30_000_000] {
        let uploader = let_go(b"413", upload_bytes, |io, token| io.linger(token, 5_000));
        assert_eq!((uploader.sent, uploader.end), (Ok(()), Ok(3)), "{upload_bytes}");
        assert_eq!(uploader.got, b"413");
    }
}

#[test]
fn what_was_queued_before_a_reset_gets_through() {
    // More than the kernel accepts at once.
    let answer: Vec<u8> = (0..12_000_000_u32).map(|at| at as u8).collect();
    for upload_bytes in [0, 3_000_000] {
        let reset = |io: &mut EventLoop, token| io.reset_when_taken(token, 5_000);
        let uploader = let_go(&answer, upload_bytes, reset);
        assert_eq!(uploader.sent, Ok(()));
        assert_eq!(uploader.end, Err(ErrorKind::ConnectionReset));
        assert!(uploader.got == answer, "{} of {} bytes", uploader.got.len(), answer.len());
    }
}

#[test]
fn what_the_kernel_has_before_a_reset_gets_through() {
    // More than the kernel of a peer stores while the peer does not read.
    let answer = vec![7; 500_000];
    let mut io = EventLoop::new().unwrap();
    let (mut trigger, socket) = pair();
    io.add(socket, Owner::Client(ZERO)).unwrap();
    let (mut peer, socket) = pair();
    let token = io.add(socket, Owner::Client(ONE)).unwrap();
    let (reads, may_read) = std::sync::mpsc::channel();
    let peer = std::thread::spawn(move || {
        let _ = may_read.recv();
        let mut got = Vec::new();
        (peer.read_to_end(&mut got).map_err(|error| error.kind()), got.len())
    });
    trigger.write_all(b"x").unwrap();
    Script::run(&mut io, |io, owner, what| match (owner, what) {
        (Owner::Client(ZERO), Told::Received(b"x")) => {
            io.send(token, &[IoSlice::new(&answer)]);
            assert_eq!(io.sockets.queued(token), 0, "the kernel has it all");
            io.reset_when_taken(token, 5_000);
            trigger.write_all(b"next turn").unwrap();
        }
        (Owner::Client(ZERO), _) => reads.send(()).unwrap(),
        (_, what) => {
            assert_eq!(what, Told::Closed);
            io.stop();
        }
    });
    drop(reads);
    assert_eq!(peer.join().unwrap(), (Err(ErrorKind::ConnectionReset), answer.len()));
}

#[test]
fn a_reset_waits_for_nobody_who_takes_nothing() {
    let mut io = EventLoop::new().unwrap();
    let (mut peer, socket) = pair();
    let token = io.add(socket, Owner::Client(ZERO)).unwrap();
    io.send(token, &[IoSlice::new(&vec![7; 12_000_000])]);
    io.reset_when_taken(token, 1);
    Script::run(&mut io, |io, _, what| {
        assert_eq!(what, Told::Closed);
        io.stop();
    });
    let end = peer.read_to_end(&mut Vec::new()).map_err(|error| error.kind());
    assert_eq!(end, Err(ErrorKind::ConnectionReset));
}

#[test]
fn what_has_come_before_a_silent_socket_is_closed_is_delivered() {
    for (sent, expected) in [(&b""[..], None), (b"a request", Some(&b"a request"[..]))] {
        let mut io = EventLoop::new().unwrap();
        let (mut trigger, socket) = pair();
        io.add(socket, Owner::Client(ZERO)).unwrap();
        let (mut peer, socket) = pair();
        let token = io.add(socket, Owner::Client(ONE)).unwrap();
        let mut got = None;
        trigger.write_all(b"x").unwrap();
        Script::run(&mut io, |io, owner, what| match (owner, what) {
            (Owner::Client(ZERO), Told::Received(b"x")) => {
                peer.write_all(sent).unwrap();
                assert_eq!(io.sockets.has_arrived(token), expected.is_some());
                trigger.write_all(b"end").unwrap();
            }
            (Owner::Client(ZERO), _) => io.stop(),
            (_, Told::Received(bytes)) => got = Some(bytes.to_vec()),
            (_, what) => panic!("{what:?}"),
        });
        assert_eq!(got.as_deref(), expected);
    }
}

#[test]
fn records_that_nobody_wants_any_more_keep_no_loop_busy() {
    let settings = ClientSettings { authorities: None, identity: None, alpn: Vec::new() };
    let config = client_config(&settings).unwrap();
    let session = Session::client(&config, "shop.example".try_into().unwrap()).unwrap();
    let mut io = EventLoop::new().unwrap();
    let (mut trigger, socket) = pair();
    io.add(socket, Owner::Client(ZERO)).unwrap();
    let (_peer, socket) = pair();
    let token = io.add(socket, Owner::Client(ONE)).unwrap();
    io.sockets.secure(token, session, b"part of a record");
    io.linger(token, 5_000);
    trigger.write_all(b"first turn").unwrap();
    Script::run(&mut io, |io, owner, what| match (owner, what) {
        (Owner::Client(ZERO), Told::Received(b"first turn")) => {
            trigger.write_all(b"next turn").unwrap();
        }
        (Owner::Client(ZERO), _) => {
            assert_eq!(io.sockets.ready, []);
            io.stop();
        }
        (_, what) => panic!("{what:?}"),
    });
}

#[test]
fn who_is_heard_first_of_a_turn_knows_what_all_members_have_said() {
    let say: [fn(&mut TcpStream); 2] =
        [|peer| peer.write_all(b"unasked").unwrap(), |peer| peer.shutdown(Half::Write).unwrap()];
    for say in say {
        let mut io = EventLoop::new().unwrap();
        let (mut client, socket) = pair();
        io.add(socket, Owner::Client(ZERO)).unwrap();
        let (mut one, socket) = pair();
        let first = io.add(socket, Owner::Member(ZERO)).unwrap();
        let (mut other, socket) = pair();
        let second = io.add(socket, Owner::Member(ONE)).unwrap();
        let (_silent, socket) = pair();
        let third = io.add(socket, Owner::Member(OwnerKey::new(2))).unwrap();
        client.write_all(b"a request").unwrap();
        say(&mut one);
        say(&mut other);
        let mut heard = Vec::new();
        Script::run(&mut io, |io, owner, _| {
            if heard.is_empty() {
                let unheard = if owner == Owner::Member(ZERO) { second } else { first };
                assert!(io.sockets.has_news(unheard) && !io.sockets.has_news(third));
            }
            heard.push(matches!(owner, Owner::Member(_)));
            if heard.len() == 3 {
                io.stop();
            }
        });
        assert_eq!(heard, [true, true, false]);
    }
}

#[test]
fn what_a_broken_socket_did_not_take_can_be_sent_elsewhere() {
    let mut io = EventLoop::new().unwrap();
    let (mut trigger, socket) = pair();
    io.add(socket, Owner::Client(ZERO)).unwrap();
    let (peer, socket) = pair();
    let token = io.add(socket, Owner::Member(ZERO)).unwrap();
    let mut peer = Some(peer);
    trigger.write_all(b"a request").unwrap();
    Script::run(&mut io, |io, owner, what| match (owner, what) {
        (Owner::Client(_), _) => {
            reset(peer.take().unwrap(), io.sockets.descriptor(token));
            assert!(io.sockets.is_quiet(token));
            io.send(token, &[IoSlice::new(b"head, "), IoSlice::new(b"body")]);
            // This data is queued after the failed data, and never written.
            io.send(token, &[IoSlice::new(b", end")]);
            assert!(!io.sockets.is_quiet(token));
            assert_eq!(io.sockets.queued(token), 0, "nobody who sends has to wait for it");
        }
        (_, Told::Failed(_)) => {
            assert_eq!(io.sockets.sent_bytes(token), 0);
            io.send(token, &[IoSlice::new(b"too late")]);
            assert_eq!(io.sockets.take_queued(token), b"head, body, end");
            io.stop();
        }
        (_, what) => panic!("{what:?}"),
    });
}

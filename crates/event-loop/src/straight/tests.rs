use std::io::{IoSlice, Read as _, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use weir_tls::Session;
use weir_tls::client::{ClientSettings, client_config};

use super::*;
use crate::bounds::Bulk;
use crate::kernel::Descriptor;
use crate::pace::SHORT_FILLS;
use crate::tests::pair;
use crate::token::OwnerKey;
use crate::turn::Turns;

const MIB: usize = 1 << 20;
const KEY: OwnerKey = OwnerKey::new(0);
const SOURCE: Owner = Owner::Member(KEY);
const SINK: Owner = Owner::Client(KEY);
/// Maximum duration of a test scenario.
const SCENARIO: Duration = Duration::from_secs(60);

/// Forwards bytes from one socket to the other, and pauses the source while the sink accepts nothing.
struct Tunnel {
    source: Token,
    sink: Token,
    copied: Vec<usize>,
    passed: Vec<usize>,
    /// Receives a message when the source is paused.
    stopped: Option<Sender<()>>,
    ends_when_stopped: bool,
    has_ended: bool,
    failed: Option<(Owner, Errno)>,
    until: Instant,
}

impl Tunnel {
    /// A direction that may be spliced, and the peers at its ends.
    fn over(io: &mut EventLoop) -> (TcpStream, Self, TcpStream) {
        let ((from, source), (to, sink)) = (pair(), pair());
        let source = io.add(source, SOURCE).unwrap();
        let sink = io.add(sink, SINK).unwrap();
        io.sockets.read_as(source, ReadMode::Straight(sink));
        let (copied, passed) = (Vec::new(), Vec::new());
        let until = Instant::now() + SCENARIO;
        let tunnel = Self {
            source,
            sink,
            copied,
            passed,
            stopped: None,
            ends_when_stopped: false,
            has_ended: false,
            failed: None,
            until,
        };
        (from, tunnel, to)
    }

    fn passed_on(&mut self, io: &mut EventLoop) {
        if io.sockets.queued(self.sink) == 0 {
            return;
        }
        io.sockets.pause(self.source);
        if let Some(stopped) = &self.stopped {
            // Only the first message has a receiver.
            let _ = stopped.send(());
        }
        if self.ends_when_stopped {
            io.stop();
        }
    }

    fn end_if_done(&mut self, io: &mut EventLoop) {
        if self.has_ended && io.sockets.queued(self.sink) == 0 {
            io.shut_write(self.sink);
            io.stop();
        }
    }

    fn all(&self) -> usize {
        self.copied.iter().chain(&self.passed).sum()
    }
}

impl Handler for Tunnel {
    fn accepted(&mut self, _: &mut EventLoop, _: OwnerKey, _: Descriptor, _: Option<SocketAddr>) {}
    fn accept_failed(&mut self, _: &mut EventLoop, _: OwnerKey, _: Errno) {}
    fn connected(&mut self, _: &mut EventLoop, _: Owner, _: Result<(), Errno>) {}
    fn received(&mut self, io: &mut EventLoop, owner: Owner, bytes: &mut [u8]) {
        assert_eq!(owner, SOURCE);
        self.copied.push(bytes.len());
        io.send(self.sink, &[IoSlice::new(bytes)]);
        self.passed_on(io);
    }
    fn passed(&mut self, io: &mut EventLoop, owner: Owner, bytes: usize) {
        assert_eq!(owner, SOURCE);
        self.passed.push(bytes);
        self.passed_on(io);
    }
    fn ended(&mut self, io: &mut EventLoop, owner: Owner) {
        assert_eq!(owner, SOURCE);
        assert!(!std::mem::replace(&mut self.has_ended, true), "the end is told once");
        self.end_if_done(io);
    }
    fn failed(&mut self, io: &mut EventLoop, owner: Owner, error: Errno) {
        self.failed = Some((owner, error));
        io.stop();
    }
    fn drained(&mut self, io: &mut EventLoop, owner: Owner) {
        assert_eq!(owner, SINK);
        io.sockets.resume(self.source);
        self.end_if_done(io);
    }
    fn timer(&mut self, _: &mut EventLoop, _: Owner) {}
    fn closed(&mut self, _: &mut EventLoop, _: Owner) {}
    fn control(&mut self, _: &mut EventLoop) {}
    fn turn_ended(&mut self, io: &mut EventLoop) -> Option<u64> {
        assert!(Instant::now() < self.until, "nobody has stopped the loop");
        Some(io.clock().now_us() + 1_000_000)
    }
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at % 251) as u8).collect()
}

/// Sends the whole pattern and FIN.
fn send(mut from: TcpStream, bytes: usize) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        from.write_all(&pattern(bytes)).unwrap();
        from.shutdown(Shutdown::Write).unwrap();
    })
}

/// Receives until FIN. With `begins`, starts only after that signal.
fn receive(mut to: TcpStream, begins: Option<Receiver<()>>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut received = Vec::new();
        if let Some(begins) = begins {
            begins.recv().unwrap();
        }
        to.read_to_end(&mut received).unwrap();
        received
    })
}

#[test]
fn many_bytes_are_moved_and_arrive_as_they_were() {
    let mut io = EventLoop::new().unwrap();
    let (from, mut tunnel, to) = Tunnel::over(&mut io);
    let (sender, receiver) = (send(from, 16 * MIB), receive(to, None));
    Turns::default().run(&mut io, &mut tunnel).unwrap();
    sender.join().unwrap();
    assert!(receiver.join().unwrap() == pattern(16 * MIB), "the bytes are others");
    assert_eq!(tunnel.all(), 16 * MIB, "all of them are told");
    assert!(!tunnel.passed.is_empty(), "none was moved: {:?}", tunnel.copied);
    assert!(io.pipes.open() >= 1, "an empty pipe is kept");
}

#[test]
fn what_the_other_side_does_not_take_waits_in_the_pipe_and_stops_the_source() {
    let mut io = EventLoop::new().unwrap();
    let (from, mut tunnel, to) = Tunnel::over(&mut io);
    let (stopped, begins) = channel();
    tunnel.stopped = Some(stopped);
    let (sender, receiver) = (send(from, 32 * MIB), receive(to, Some(begins)));
    Turns::default().run(&mut io, &mut tunnel).unwrap();
    sender.join().unwrap();
    // FIN came after the bytes in the pipe.
    assert!(receiver.join().unwrap() == pattern(32 * MIB), "the bytes are others");
    assert_eq!(tunnel.all(), 32 * MIB);
}

#[test]
fn a_pipe_with_bytes_in_it_is_closed_with_its_socket() {
    let mut io = EventLoop::new().unwrap();
    for closes_sink in [true, false] {
        let (from, mut first, to) = Tunnel::over(&mut io);
        first.ends_when_stopped = true;
        // More than a socket accepts if its peer does not read.
        let sender = thread::spawn(move || {
            let mut from = from;
            from.write_all(&pattern(64 * MIB)).unwrap_err();
        });
        while io.sockets.queued(first.sink) == 0 || first.passed.is_empty() {
            io.is_stopping = false;
            Turns::default().run(&mut io, &mut first).unwrap();
        }
        assert_eq!(io.pipes.open(), 1, "{:?}", first.passed);
        if closes_sink {
            io.reset(first.sink);
            io.reset(first.source);
        } else {
            io.close_streams();
        }
        assert_eq!(io.pipes.open(), 0, "it had bytes of a connection that is gone");
        sender.join().unwrap();
        drop(to);
        // Another connection receives only its own bytes.
        io.is_stopping = false;
        let (from, mut second, to) = Tunnel::over(&mut io);
        let (sender, receiver) = (send(from, 8 * MIB), receive(to, None));
        Turns::default().run(&mut io, &mut second).unwrap();
        sender.join().unwrap();
        assert!(receiver.join().unwrap() == pattern(8 * MIB), "the bytes are others");
        assert!(!second.passed.is_empty(), "none was moved");
        io.close_streams();
        io.is_stopping = false;
        io.pipes = Pipes::within(1 << 20, io.pipes.bulk);
    }
}

#[test]
fn without_a_pipe_bytes_are_copied() {
    let mut io = EventLoop::new().unwrap();
    io.pipes.limit(0);
    let (from, mut tunnel, to) = Tunnel::over(&mut io);
    let (sender, receiver) = (send(from, 8 * MIB), receive(to, None));
    Turns::default().run(&mut io, &mut tunnel).unwrap();
    sender.join().unwrap();
    assert!(receiver.join().unwrap() == pattern(8 * MIB), "the bytes are others");
    assert_eq!((tunnel.copied.iter().sum::<usize>(), tunnel.passed.len()), (8 * MIB, 0));
}

#[test]
fn when_little_flows_bytes_are_copied_again() {
    const MESSAGES: usize = 6;
    let mut io = EventLoop::new().unwrap();
    let (mut from, mut tunnel, mut to) = Tunnel::over(&mut io);
    let peers = thread::spawn(move || {
        // Each message is received before the next is sent, whatever the size of the first.
        let mut writing = from.try_clone().unwrap();
        let bulk = thread::spawn(move || writing.write_all(&pattern(8 * MIB)).unwrap());
        let mut received = vec![0; 8 * MIB];
        to.read_exact(&mut received).unwrap();
        bulk.join().unwrap();
        assert!(received == pattern(8 * MIB), "the bytes are others");
        for _ in 0..MESSAGES {
            from.write_all(b"message").unwrap();
            let mut message = [0; 7];
            to.read_exact(&mut message).unwrap();
            assert_eq!(&message, b"message");
        }
        from.shutdown(Shutdown::Write).unwrap();
        assert_eq!(to.read(&mut [0; 1]).unwrap(), 0);
    });
    Turns::default().run(&mut io, &mut tunnel).unwrap();
    peers.join().unwrap();
    assert!(!tunnel.passed.is_empty(), "none was moved: {:?}", tunnel.copied);
    let of_messages = tunnel.copied.iter().rev().take_while(|count| **count == 7).count();
    assert!(of_messages >= MESSAGES - usize::from(SHORT_FILLS), "{:?}", tunnel.copied);
}

#[test]
fn a_sink_that_breaks_is_told_of_and_takes_its_pipe_along() {
    let mut io = EventLoop::new().unwrap();
    let (from, mut tunnel, to) = Tunnel::over(&mut io);
    let (stopped, begins) = channel();
    tunnel.stopped = Some(stopped);
    let sender = thread::spawn(move || {
        let mut from = from;
        // The write fails when the sink accepts nothing.
        let _ = from.write_all(&pattern(64 * MIB));
    });
    let breaking = thread::spawn(move || {
        begins.recv().unwrap();
        rustix::net::sockopt::set_socket_linger(&to, Some(Duration::ZERO)).unwrap();
        drop(to);
    });
    Turns::default().run(&mut io, &mut tunnel).unwrap();
    breaking.join().unwrap();
    assert!(matches!(tunnel.failed, Some((SINK, _))), "{:?}", tunnel.failed);
    io.reset(tunnel.sink);
    io.reset(tunnel.source);
    sender.join().unwrap();
    assert_eq!(io.pipes.open(), 0, "{:?}", tunnel.passed);
}

/// Sends 10,000 bytes of the pattern, a byte of urgent data, and the next 10,000 bytes.
fn send_around_a_mark(from: &mut TcpStream) {
    let bytes = pattern(20_000);
    from.write_all(&bytes[..10_000]).unwrap();
    assert_eq!(rustix::net::send(&*from, b"!", rustix::net::SendFlags::OOB).unwrap(), 1);
    from.write_all(&bytes[10_000..]).unwrap();
}

/// The kernel moves nothing beyond the mark, and reports no data, or the end.
#[test]
fn urgent_data_neither_stops_nor_ends_what_is_moved() {
    let mut findings = Vec::new();
    for (is_moved, has_ended) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut io = EventLoop::new().unwrap();
        let (mut from, mut tunnel, mut to) = Tunnel::over(&mut io);
        if is_moved {
            let socket = io.sockets.get(tunnel.source).unwrap();
            socket.straight.as_mut().unwrap().pace = Pace::Spliced { short_fills: 0 };
        }
        // All data has arrived before the first part is read.
        send_around_a_mark(&mut from);
        if has_ended {
            from.shutdown(Shutdown::Write).unwrap();
        }
        let receiver = thread::spawn(move || {
            to.set_read_timeout(Some(SCENARIO / 4)).unwrap();
            let mut received = vec![0; 20_000];
            let outcome = to.read_exact(&mut received);
            from.shutdown(Shutdown::Write).unwrap();
            // The socket stays open, because a close would end the sink.
            (outcome.map(|()| received), to)
        });
        Turns::default().run(&mut io, &mut tunnel).unwrap();
        let case = format!("moved: {is_moved}, its end with it: {has_ended}");
        let (outcome, _to) = receiver.join().unwrap();
        match outcome {
            Ok(received) if received == pattern(20_000) => {}
            Ok(_) => findings.push(format!("{case}: the bytes are others")),
            Err(error) => findings.push(format!("{case}: {error}")),
        }
        assert_eq!(tunnel.passed.is_empty(), !is_moved, "{case}");
    }
    assert!(findings.is_empty(), "{findings:#?}");
}

#[test]
fn to_a_secure_socket_nothing_goes_straight() {
    let mut io = EventLoop::new().unwrap();
    let (_from, tunnel, _to) = Tunnel::over(&mut io);
    let settings = ClientSettings { authorities: None, identity: None, alpn: Vec::new() };
    let config = client_config(&settings).unwrap();
    let session = Session::client(&config, "shop.example".try_into().unwrap()).unwrap();
    io.sockets.secure(tunnel.sink, session, b"");
    io.sockets.read_as(tunnel.source, ReadMode::Straight(tunnel.sink));
    assert!(io.sockets.get(tunnel.source).unwrap().is_read_as_usual());
    io.sockets.read_as(tunnel.sink, ReadMode::Straight(tunnel.source));
    assert!(io.sockets.get(tunnel.sink).unwrap().is_read_as_usual());
}

#[test]
fn a_pace_is_chosen_by_what_comes() {
    let bulk = Bulk { read_bytes: 100, fill_bytes_max: 400, short_bytes: 25 };
    let spliced = |short_fills| Pace::Spliced { short_fills };
    for (before, bytes, after) in [
        (Pace::Copied, 99, Pace::Copied),
        (Pace::Copied, 100, spliced(0)),
        (spliced(0), 25, spliced(0)),
        (spliced(0), 24, spliced(1)),
        (spliced(1), 400, spliced(0)),
        (spliced(1), 24, Pace::Copied),
        (Pace::Ended, 100, Pace::Ended),
    ] {
        let mut straight = Straight { sink: Token { index: 0, generation: 0 }, pace: before };
        straight.note(bytes, bulk);
        assert_eq!(straight.pace, after, "{before:?} and {bytes} bytes");
    }
}

//! A bare byte relay: one thread, edge-triggered epoll, one member connection per client connection.
//!
//! It does not parse HTTP. Its cost per request is the kernel's TCP cost of any proxy on this machine, so the
//! benchmarks compare proxies with it.
//!
//! For each event and direction, it reads once into a scratch buffer and writes at once. It stores data only while the
//! receiving side is full, and does not read during that time.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};

use rustix::event::epoll;

pub mod datagrams;

/// Size of the scratch buffer. After a read that fills it, the relay reads again.
const SCRATCH_BYTES: usize = 64 * 1024;
/// Maximum number of events per wait.
const EVENTS_MAX: usize = 256;
/// Event data of the listener; connections use `pair index * 2 + side`.
const LISTENER: u64 = u64::MAX;

/// One end of a pair: 0 is the client, 1 the member.
type Side = usize;

/// A client connection and its member connection.
struct Pair {
    streams: [TcpStream; 2],
    /// Data from the other side that this side could not send yet.
    unsent: [Vec<u8>; 2],
    /// Whether this side has sent its FIN.
    ended: [bool; 2],
}

/// The state of a pair after an event.
#[derive(PartialEq, Eq)]
enum PairState {
    Lives,
    Done,
}

impl Pair {
    /// Moves received data of `from` to the other side.
    ///
    /// With `until_empty`, reads again after a short read: data and FIN that arrive together cause no further event.
    fn advance(
        &mut self,
        from: Side,
        until_empty: bool,
        scratch: &mut [u8],
    ) -> io::Result<PairState> {
        let to = 1 - from;
        while !self.ended[from] && self.unsent[to].is_empty() {
            let received = match self.streams[from].read(scratch) {
                Ok(0) => {
                    self.ended[from] = true;
                    self.streams[to].shutdown(Shutdown::Write)?;
                    break;
                }
                Ok(received) => received,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            };
            let sent = write_some(&mut self.streams[to], &scratch[..received])?;
            self.unsent[to].extend_from_slice(&scratch[sent..received]);
            // Edge-triggered: a short read emptied the socket, so the next byte causes an event.
            if received < scratch.len() && !until_empty {
                break;
            }
        }
        Ok(if self.ended == [true, true] { PairState::Done } else { PairState::Lives })
    }

    /// Sends stored data once `to` is writable. Returns true if no data is left.
    fn flush(&mut self, to: Side) -> io::Result<bool> {
        let sent = write_some(&mut self.streams[to], &self.unsent[to])?;
        self.unsent[to].drain(..sent);
        Ok(self.unsent[to].is_empty())
    }

    /// Handles one readiness event of one side.
    fn handle(
        &mut self,
        side: Side,
        ready: epoll::EventFlags,
        scratch: &mut [u8],
    ) -> io::Result<PairState> {
        if ready.contains(epoll::EventFlags::OUT)
            && !self.unsent[side].is_empty()
            && self.flush(side)?
        {
            // The other side was not read while this side was full, and its event has passed.
            if self.advance(1 - side, true, scratch)? == PairState::Done {
                return Ok(PairState::Done);
            }
        }
        let ended = epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        if ready.intersects(ended | epoll::EventFlags::IN) {
            return self.advance(side, ready.intersects(ended), scratch);
        }
        Ok(PairState::Lives)
    }
}

/// Writes as much as the socket accepts without blocking.
fn write_some(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
    let mut sent = 0;
    while sent < bytes.len() {
        match stream.write(&bytes[sent..]) {
            Ok(count) => sent += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(sent)
}

/// The pairs by index. Indexes are reused; a late event of an earlier pair only finds nothing to read.
#[derive(Default)]
struct Pairs {
    slots: Vec<Option<Pair>>,
    free: Vec<usize>,
}

impl Pairs {
    fn insert(&mut self, pair: Pair) -> usize {
        let index = self.free.pop().unwrap_or(self.slots.len());
        if index == self.slots.len() {
            self.slots.push(Some(pair));
        } else {
            self.slots[index] = Some(pair);
        }
        index
    }

    fn remove(&mut self, index: usize) {
        self.slots[index] = None;
        self.free.push(index);
    }
}

/// Accepts every waiting client and connects each to the member.
fn accept_all(
    listener: &TcpListener,
    member: SocketAddr,
    poll: impl std::os::fd::AsFd,
    pairs: &mut Pairs,
) -> io::Result<()> {
    loop {
        let client = match listener.accept() {
            Ok((client, _)) => client,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
            Err(error) => return Err(error),
        };
        // This blocks, but on loopback the handshake completes within the call.
        let member = match TcpStream::connect(member) {
            Ok(member) => member,
            Err(error) => {
                // If standard error is gone, the message is lost; the client sees a close.
                let _ = writeln!(io::stderr(), "weir bench relay: {member}: {error}");
                continue;
            }
        };
        for stream in [&client, &member] {
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
        }
        let index = pairs.insert(Pair {
            streams: [client, member],
            unsent: [Vec::new(), Vec::new()],
            ended: [false, false],
        });
        let Some(pair) = &pairs.slots[index] else {
            continue;
        };
        for (side, stream) in pair.streams.iter().enumerate() {
            let flags = epoll::EventFlags::IN
                | epoll::EventFlags::OUT
                | epoll::EventFlags::RDHUP
                | epoll::EventFlags::ET;
            let data = epoll::EventData::new_u64((index * 2 + side) as u64);
            epoll::add(&poll, stream, data, flags)?;
        }
    }
}

/// Relays every connection on `listen` to `member`, until the process ends.
pub fn relay(listen: SocketAddr, member: SocketAddr) -> io::Result<()> {
    let listener = TcpListener::bind(listen)?;
    listener.set_nonblocking(true)?;
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&poll, &listener, epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN)?;

    let mut pairs = Pairs::default();
    let mut scratch = vec![0; SCRATCH_BYTES];
    let mut events = Vec::with_capacity(EVENTS_MAX);
    loop {
        events.clear();
        match epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            let data = event.data.u64();
            if data == LISTENER {
                accept_all(&listener, member, &poll, &mut pairs)?;
                continue;
            }
            let (index, side) = ((data / 2) as usize, (data % 2) as usize);
            let Some(pair) = &mut pairs.slots[index] else {
                continue;
            };
            match pair.handle(side, event.flags, &mut scratch) {
                Ok(PairState::Lives) => {}
                // An error is a reset by one side. Closing both sockets passes it on.
                Ok(PairState::Done) | Err(_) => pairs.remove(index),
            }
        }
    }
}

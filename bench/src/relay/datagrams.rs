//! A bare relay of datagrams: one thread, level-triggered epoll, one listener and a stock of sockets, each connected to a member.
//!
//! A datagram of a client takes a free member socket until its answer has come. Nothing is looked up: there are no sessions
//! and no timers, and a query goes to the member of the socket that is free. So its cost per query is the least that ordinary
//! sockets cost any proxy on this machine.
//!
//! Calls for each query: one send to the member and one reception from it. Receptions from clients and sends to clients
//! share calls, up to [`BATCH_MAX`] datagrams each.
//!
//! Edge-triggered epoll costs the same within 1%, but would leave a second answer in the socket for the next client.
//!
//! It is a measuring instrument and not a product:
//!
//! - It expects one answer to each query. A client that sends two datagrams may use two ports of the relay, and a member
//!   cannot send a client anything unasked.
//! - It does not check that a free socket is empty before another client uses it. If a member answers a query twice, the
//!   second answer can reach the next client of that socket.
//! - If no socket is free, the query that has waited longest is given up, even if its answer is about to come. Its socket
//!   is closed and replaced, so that a late answer reaches nobody.

use std::io;
use std::net::SocketAddr;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};
use weir_event_loop::batches::{self, BATCH_MAX, ReceivedBatch};

#[cfg(test)]
mod tests;

/// Number of member sockets, and so of queries under way at a time.
const MEMBER_SOCKETS: usize = 256;
/// Maximum number of events per wait.
const EVENTS_MAX: usize = 256;
/// Event data of the listener; member sockets use their index.
const LISTENER: u64 = u64::MAX;
/// Space for one datagram: more than the largest that UDP can carry.
const DATAGRAM_BYTES: usize = 65_536;
/// Size of the listener's receive buffer; the kernel may grant less.
const RECEIVE_BYTES: usize = 4 << 20;

/// A socket that is connected to the member.
struct MemberSocket {
    socket: OwnedFd,
    /// The client whose query is under way; `None`: the socket is free.
    client: Option<SocketAddr>,
    /// The number of the query that took the socket last.
    query: u64,
}

/// The stock of member sockets. Members take turns in it, and none of the lists is empty.
struct MemberSockets {
    members: Vec<SocketAddr>,
    poll: OwnedFd,
    all: Vec<MemberSocket>,
    free: Vec<usize>,
    /// Number of queries so far.
    queries: u64,
}

impl MemberSockets {
    fn open(members: &[SocketAddr], count: usize) -> io::Result<Self> {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut sockets = Self {
            members: members.to_vec(),
            poll,
            all: Vec::new(),
            free: (0..count).rev().collect(),
            queries: 0,
        };
        for index in 0..count {
            let socket = sockets.connect(index)?;
            sockets.all.push(socket);
        }
        Ok(sockets)
    }

    fn connect(&self, index: usize) -> io::Result<MemberSocket> {
        let member = self.members[index % self.members.len()];
        let socket = datagram_socket(member)?;
        rustix::net::connect(&socket, &member)?;
        let data = epoll::EventData::new_u64(index as u64);
        epoll::add(&self.poll, &socket, data, epoll::EventFlags::IN)?;
        Ok(MemberSocket { socket, client: None, query: 0 })
    }

    /// Sends a client's datagram to the member. A datagram that the kernel does not accept is lost.
    fn ask(&mut self, client: SocketAddr, datagram: &[u8]) -> io::Result<()> {
        // The last one that became free: the caches still hold it.
        let index = match self.free.pop() {
            Some(index) => index,
            None => self.replace_oldest()?,
        };
        self.queries += 1;
        let taken = &mut self.all[index];
        taken.query = self.queries;
        match rustix::net::send(&taken.socket, datagram, SendFlags::empty()) {
            Ok(_) => taken.client = Some(client),
            Err(_) => self.free.push(index),
        }
        Ok(())
    }

    /// Gives up the query that has waited longest, and replaces its socket by a new one. Returns the index.
    fn replace_oldest(&mut self) -> io::Result<usize> {
        let by_age = self.all.iter().enumerate().min_by_key(|(_, socket)| socket.query);
        let oldest = by_age.map(|(index, _)| index).unwrap_or_default();
        self.all[oldest] = self.connect(oldest)?;
        Ok(oldest)
    }

    /// Makes a socket free. Returns the client that used it.
    fn release(&mut self, index: usize) -> Option<SocketAddr> {
        let client = self.all[index].client.take();
        if client.is_some() {
            self.free.push(index);
        }
        client
    }
}

/// Answers that are sent to clients with one call.
struct Answers {
    bytes: Vec<u8>,
    /// Each answer's client, and the end of its bytes. They begin at the end of the previous answer.
    ends: Vec<(SocketAddr, usize)>,
}

impl Answers {
    fn new() -> Self {
        let bytes = vec![0; BATCH_MAX * DATAGRAM_BYTES];
        Self { bytes, ends: Vec::with_capacity(BATCH_MAX) }
    }

    fn used(&self) -> usize {
        self.ends.last().map_or(0, |(_, end)| *end)
    }

    /// Sends all, and is empty after that. An answer that the kernel does not accept is lost.
    fn send(&mut self, listener: impl AsFd) {
        let mut sent = 0;
        while sent < self.ends.len() {
            let start = |at: usize| at.checked_sub(1).map_or(0, |before| self.ends[before].1);
            let left = (sent..self.ends.len()).map(|at| {
                let (client, end) = self.ends[at];
                (client, &self.bytes[start(at)..end])
            });
            match batches::send(&listener, left) {
                Ok(count) => sent += count,
                Err(Errno::INTR) => {}
                // The first one was refused.
                Err(_) => sent += 1,
            }
        }
        self.ends.clear();
    }
}

/// The relay.
struct Relay {
    listener: OwnedFd,
    sockets: MemberSockets,
    queries: ReceivedBatch,
    answers: Answers,
    events: Vec<epoll::Event>,
}

impl Relay {
    fn open(listen: SocketAddr, members: &[SocketAddr], sockets: usize) -> io::Result<Self> {
        let refused = |reason| Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        if listen.ip().is_unspecified() {
            return refused(
                "datagrams need one address to listen on: answers come from the address that was asked",
            );
        }
        if members.is_empty() {
            return refused("there are no members");
        }
        let listener = datagram_socket(listen)?;
        sockopt::set_socket_recv_buffer_size(&listener, RECEIVE_BYTES)?;
        rustix::net::bind(&listener, &listen)?;
        let sockets = MemberSockets::open(members, sockets)?;
        let data = epoll::EventData::new_u64(LISTENER);
        epoll::add(&sockets.poll, &listener, data, epoll::EventFlags::IN)?;
        let (queries, answers) = (ReceivedBatch::default(), Answers::new());
        Ok(Self { listener, sockets, queries, answers, events: Vec::with_capacity(EVENTS_MAX) })
    }

    /// Waits for events and handles them: first the answers, because they make sockets free.
    fn turn(&mut self, wait: Option<&Timespec>) -> io::Result<()> {
        self.events.clear();
        match epoll::wait(&self.sockets.poll, spare_capacity(&mut self.events), wait) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut has_queries = false;
        for at in 0..self.events.len() {
            let epoll::Event { data, .. } = self.events[at];
            match data.u64() {
                LISTENER => has_queries = true,
                index => self.read_answer(index as usize),
            }
        }
        self.answers.send(&self.listener);
        if has_queries { self.ask_all() } else { Ok(()) }
    }

    /// Reads one answer at a member socket, which is free after that. Further ones cause the next event.
    fn read_answer(&mut self, index: usize) {
        if self.answers.ends.len() == BATCH_MAX {
            self.answers.send(&self.listener);
        }
        let used = self.answers.used();
        let space = &mut self.answers.bytes[used..used + DATAGRAM_BYTES];
        match rustix::net::recv(&self.sockets.all[index].socket, space, RecvFlags::empty()) {
            Ok((length, _)) => {
                // An answer without a client is dropped.
                if let Some(client) = self.sockets.release(index) {
                    self.answers.ends.push((client, used + length));
                }
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            // The member or a router refused the query (ICMP). The client gets no answer.
            Err(_) => drop(self.sockets.release(index)),
        }
    }

    /// Sends a batch of queries to the members. Further ones cause the next event.
    fn ask_all(&mut self) -> io::Result<()> {
        // An error is about an earlier answer, which a client did not receive. The next event tells of queries behind it.
        if self.queries.receive(&self.listener).is_ok() {
            for (client, datagram) in self.queries.datagrams() {
                self.sockets.ask(client, datagram)?;
            }
        }
        Ok(())
    }
}

fn datagram_socket(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(family, SocketType::DGRAM, flags, None)?)
}

/// Relays every datagram that arrives at `listen` to one of `members`, and its answer back, until the process ends.
pub fn relay(listen: SocketAddr, members: &[SocketAddr]) -> io::Result<()> {
    let mut relay = Relay::open(listen, members, MEMBER_SOCKETS)?;
    loop {
        relay.turn(None)?;
    }
}

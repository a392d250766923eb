//! Sockets to members that wait for their next session (`sessions_per_socket_max`).
//!
//! If each query is a session, most of its cost is the socket, which is opened, monitored and closed for one answer. When a
//! session has received all expected answers, its socket rests here, and another session uses it later. A datagram that
//! arrives at a resting socket, such as a repeated answer, closes the socket. Sockets rest for a minimum time, so that
//! repeated answers arrive in this time.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::rc::Rc;

use weir_config::snapshot::Source;
use weir_event_loop::{Datagrams, EventLoop, Owner, Token};
use weir_exchange::local::pool::LocalPool;

/// Minimum rest of a socket, which is many times the response time within one network.
const REST_MS_MIN: u64 = 20;
/// Maximum rest of a socket. It is then closed.
const REST_MS_MAX: u64 = 2_000;
/// Maximum number of resting sockets of a worker. Each of them uses a port of this host.
const RESTING_MAX: usize = 2_048;

/// A socket to a member.
#[derive(Debug, Clone, Copy)]
pub struct MemberSocket {
    pub token: Token,
    /// The address of the member that the socket is connected to.
    member: SocketAddr,
    /// The number of finished sessions.
    served: u32,
}

impl MemberSocket {
    /// Creates the state of a new socket.
    pub fn new(token: Token, member: SocketAddr) -> Self {
        Self { token, member, served: 0 }
    }

    /// Whether the sender of a datagram is the member.
    pub fn is_of(&self, sender: SocketAddr) -> bool {
        sender.ip() == self.member.ip() && sender.port() == self.member.port()
    }
}

/// The resting sockets of one worker.
#[derive(Default)]
pub struct IdleSockets {
    /// The resting sockets of each member, with the longest-resting first. The key is the member and the address of the pool
    /// in memory, which cannot change while a socket of the pool rests.
    lines: HashMap<(usize, u32), Line>,
    /// The number of resting sockets, including closed ones that were not removed yet.
    count: usize,
    /// The earliest time of the next search for closed sockets, if the shelf is full.
    sweep_at_ms: u64,
}

struct Line {
    resting: VecDeque<IdleSocket>,
    _pool: Rc<LocalPool>,
}

struct IdleSocket {
    socket: MemberSocket,
    since_ms: u64,
}

fn place(pool: &Rc<LocalPool>, member: u32) -> (usize, u32) {
    (Rc::as_ptr(pool).addr(), member)
}

impl IdleSockets {
    /// Removes and returns a socket to this member that has rested for the minimum time.
    pub fn take(
        &mut self,
        io: &mut EventLoop,
        pool: &Rc<LocalPool>,
        member: u32,
        owner: Owner,
    ) -> Option<MemberSocket> {
        let resting = &mut self.lines.get_mut(&place(pool, member))?.resting;
        let rested_ms = io.now_ms().checked_sub(REST_MS_MIN)?;
        while let Some(first) = resting.pop_front_if(|first| first.since_ms <= rested_ms) {
            self.count -= 1;
            // `wake` fails if the socket was closed: after the maximum rest, or because a datagram arrived.
            if Datagrams::of(io).wake(first.socket.token, owner) {
                return Some(first.socket);
            }
        }
        None
    }

    /// Stores a socket for another session. The socket is closed if it has served the maximum number of sessions, if only
    /// this client or port could use it, or if too many sockets rest.
    pub fn put(
        &mut self,
        io: &mut EventLoop,
        socket: MemberSocket,
        sessions_max: u32,
        pool: &Rc<LocalPool>,
        member: u32,
    ) {
        let served = socket.served + 1;
        self.sweep_if_full(io.now_ms());
        let address = pool.members[member as usize].live.address.socket();
        let is_for_all = address.is_some_and(|address| address.port() != 0)
            && !matches!(pool.settings().source, Source::Client);
        let is_kept = served < sessions_max
            && is_for_all
            && self.count < RESTING_MAX
            && io.room.fits_resting_session();
        if !is_kept {
            return io.close(socket.token);
        }
        let since_ms = io.now_ms();
        Datagrams::of(io).rest(socket.token, since_ms + REST_MS_MAX);
        let socket = MemberSocket { served, ..socket };
        let line = self.lines.entry(place(pool, member));
        let line =
            line.or_insert_with(|| Line { resting: VecDeque::new(), _pool: Rc::clone(pool) });
        line.resting.push_back(IdleSocket { socket, since_ms });
        self.count += 1;
    }

    /// Removes sockets whose maximum rest is over, if the shelf is full.
    fn sweep_if_full(&mut self, now_ms: u64) {
        if self.count < RESTING_MAX || now_ms < self.sweep_at_ms {
            return;
        }
        self.sweep_at_ms = now_ms + REST_MS_MIN;
        self.lines.retain(|_, line| {
            line.resting.retain(|it| it.since_ms + REST_MS_MAX > now_ms);
            !line.resting.is_empty()
        });
        self.count = self.lines.values().map(|line| line.resting.len()).sum();
    }

    /// Whether no socket rests.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Closes all sockets, because the pools may have changed.
    pub fn clear(&mut self, io: &mut EventLoop) {
        for resting in self.lines.drain().flat_map(|(_, line)| line.resting) {
            io.close(resting.socket.token);
        }
        self.count = 0;
    }
}

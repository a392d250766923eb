//! Sockets to members between two sessions (`sessions_per_socket_max`).
//!
//! If each query is a session, most of its cost is the socket: opened, watched and closed for one answer. A socket
//! whose session got all expected answers rests here, and serves another session later. A datagram that arrives while
//! it rests (a repeated answer) closes it. It rests for a minimum time, so that repeated answers arrive while it rests.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::rc::Rc;

use weir_config::snapshot::Source;
use weir_event_loop::{Datagrams, EventLoop, Owner, Token};
use weir_exchange::local::pool::LocalPool;

/// The minimum rest of a socket: many times the duration of an answer within one network.
const REST_MS_MIN: u64 = 20;
/// The maximum rest of a socket; then it is closed.
const REST_MS_MAX: u64 = 2_000;
/// The maximum number of resting sockets of one worker. Each uses a port of this host.
const RESTING_MAX: usize = 2_048;

/// A socket to a member.
#[derive(Debug, Clone, Copy)]
pub struct MemberSocket {
    pub token: Token,
    /// The member that it is connected to.
    member: SocketAddr,
    /// The number of sessions that it has served.
    served: u32,
}

impl MemberSocket {
    /// A new socket.
    pub fn new(token: Token, member: SocketAddr) -> Self {
        Self { token, member, served: 0 }
    }

    /// Whether a datagram of this sender comes from the member.
    pub fn is_of(&self, sender: SocketAddr) -> bool {
        sender.ip() == self.member.ip() && sender.port() == self.member.port()
    }
}

/// The resting sockets of one worker.
#[derive(Default)]
pub struct Shelf {
    /// The key: the address of the pool in memory, which is constant while a socket of it rests, and the member.
    /// Sockets that have rested longest come first.
    lines: HashMap<(usize, u32), Line>,
    /// The number of sockets on all lines, including closed ones that were not swept yet.
    count: usize,
    /// When a full shelf may next be swept for closed sockets.
    sweep_at_ms: u64,
}

struct Line {
    resting: VecDeque<Resting>,
    _pool: Rc<LocalPool>,
}

struct Resting {
    socket: MemberSocket,
    since_ms: u64,
}

fn place(pool: &Rc<LocalPool>, member: u32) -> (usize, u32) {
    (Rc::as_ptr(pool).addr(), member)
}

impl Shelf {
    /// Takes a socket to this member that has rested long enough.
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
            // `wake` fails if the socket was closed: because of a long idle time, or because a datagram arrived.
            if Datagrams::of(io).wake(first.socket.token, owner) {
                return Some(first.socket);
            }
        }
        None
    }

    /// Keeps a socket for another session. Closes it if it has served enough sessions, if only this client or port
    /// could use it, or if too many sockets rest.
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
            && Datagrams::of(io).has_room_to_rest();
        if !is_kept {
            return io.close(socket.token);
        }
        let since_ms = io.now_ms();
        Datagrams::of(io).rest(socket.token, since_ms + REST_MS_MAX);
        let socket = MemberSocket { served, ..socket };
        let line = self.lines.entry(place(pool, member));
        let line =
            line.or_insert_with(|| Line { resting: VecDeque::new(), _pool: Rc::clone(pool) });
        line.resting.push_back(Resting { socket, since_ms });
        self.count += 1;
    }

    /// Removes sockets that have rested too long and were closed.
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

    /// Closes all sockets: the pools may have changed.
    pub fn clear(&mut self, io: &mut EventLoop) {
        for resting in self.lines.drain().flat_map(|(_, line)| line.resting) {
            io.close(resting.socket.token);
        }
        self.count = 0;
    }
}

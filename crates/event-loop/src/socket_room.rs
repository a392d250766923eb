//! How many sockets are open, and how many may be.

use crate::pipes::{self, DESCRIPTORS_OF_A_PIPE};

/// Maximum number of descriptors that a worker reserves, which client connections cannot use.
const DESCRIPTORS_RESERVED_MAX: usize = 1024;
/// One in this many reserved descriptors is for new listeners. Member connections cannot use it either.
const LISTENERS_SHARE: usize = 4;
/// Descriptors that a worker uses besides its sockets and pipes: the standard streams and epoll.
const DESCRIPTORS_BESIDE: usize = 4;
/// The share of UDP sessions until [`SocketRoom::set_session_share`] sets another, in percent.
const SESSIONS_SHARE_PERCENT: u8 = 50;

/// The open sockets of a loop, and the room for more.
#[derive(Debug)]
pub struct SocketRoom {
    limits: SocketLimits,
    open_count: usize,
    /// Open sockets of UDP sessions, including resting ones. They are part of the others.
    session_count: usize,
}

impl SocketRoom {
    /// No open sockets, with this limit on descriptors.
    pub(crate) fn within(descriptors_max: usize) -> Self {
        let limits = SocketLimits::within(descriptors_max);
        Self { limits, open_count: 0, session_count: 0 }
    }

    /// Counts a socket that was opened.
    pub(crate) fn count_opened(&mut self, is_session: bool) {
        self.open_count += 1;
        self.session_count += usize::from(is_session);
    }

    /// Counts a socket that is closed.
    pub(crate) fn count_closed(&mut self, is_session: bool) {
        self.open_count -= 1;
        self.session_count -= usize::from(is_session);
    }

    /// The number of open sockets, including listeners.
    #[cfg(feature = "simulation")]
    pub fn open_sockets(&self) -> usize {
        self.open_count
    }

    /// The number of open sockets of sessions, and their maximum.
    pub fn session_sockets(&self) -> (usize, usize) {
        (self.session_count, self.limits.sessions_below)
    }

    /// Whether another client connection may be opened.
    #[inline]
    pub(crate) fn fits_client(&self) -> bool {
        self.open_count < self.limits.accept_below
    }

    /// Whether another member connection may be opened.
    pub(crate) fn fits_member(&self) -> bool {
        self.open_count < self.limits.connect_below
    }

    /// Whether the share of sessions has room for another socket.
    pub fn fits_session(&self) -> bool {
        self.session_count < self.limits.sessions_below
    }

    /// Whether a socket of a session may stay open without an owner: at most half of the room is used.
    pub fn fits_resting_session(&self) -> bool {
        self.open_count < self.limits.accept_below / 2
            && self.session_count < self.limits.sessions_below / 2
    }

    /// Sets the share of the descriptors of clients that sockets of sessions may use, in percent. Open sockets stay.
    pub fn set_session_share(&mut self, percent: u8) {
        self.limits = self.limits.with_sessions(percent);
    }
}

/// Limits on the number of open sockets: a socket may be opened while fewer are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SocketLimits {
    /// The limit for client connections, which leave descriptors for member connections.
    pub(crate) accept_below: usize,
    /// The limit for member connections. Both kinds leave descriptors for listeners: if a worker could not add a listener,
    /// nothing would accept its share of the connections.
    pub(crate) connect_below: usize,
    /// The limit for sockets of UDP sessions alone, a share of `accept_below`. Anybody can begin sessions from forged
    /// addresses, so they must not take the descriptors of connections.
    pub(crate) sessions_below: usize,
}

impl SocketLimits {
    pub(crate) fn within(limit: usize) -> Self {
        let of_pipes = pipes::open_max(limit) * DESCRIPTORS_OF_A_PIPE;
        let sockets = limit.saturating_sub(DESCRIPTORS_BESIDE + of_pipes);
        let reserved = (sockets / 8).min(DESCRIPTORS_RESERVED_MAX);
        let room = Self {
            accept_below: sockets - reserved,
            connect_below: sockets - reserved / LISTENERS_SHARE,
            sessions_below: 0,
        };
        room.with_sessions(SESSIONS_SHARE_PERCENT)
    }

    /// The same room with this share for UDP sessions.
    pub(crate) fn with_sessions(self, percent: u8) -> Self {
        // By 128 bits: without a limit on descriptors, the product would not fit into 64.
        let share = self.accept_below as u128 * u128::from(percent) / 100;
        Self { sessions_below: usize::try_from(share).unwrap_or(self.accept_below), ..self }
    }
}

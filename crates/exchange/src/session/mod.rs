//! Sessions of datagrams: datagrams from one client port go to one member, and its answers go back to that port.
//!
//! | event | effect on the session |
//! |---|---|
//! | first datagram of a client | limits; a member is selected as for a request; a new socket to that member |
//! | a datagram of the client | is sent to the member; `datagrams` limits how many |
//! | an answer | is sent to the client within `amplification_max`; the last one of `responses` may end the session |
//! | the member is unreachable (ICMP) | before the first answer: retry if the datagram is still stored; else the end |
//! | `idle_timeout` | the session ends; a missing expected answer counts as a failure of the member |
//!
//! A socket belongs to one session, so an answer reaches no other client. Exception: a very late answer, after the
//! kernel has reused the port for another session with that member. With `sessions_per_socket_max`, another session may
//! use the socket later, but only if this one got exactly the expected number of answers.

pub mod edge;
mod events;
mod persistence;
mod start;
mod table;

use std::rc::Rc;
use std::sync::Arc;

use weir_config::snapshot;
use weir_core::datagram::Flow;

use crate::arena::{ListenerKey, SessionKey};
use crate::local::key_limits::ConnectionPlaces;
use crate::local::member::LocalMember;
use crate::local::pool::LocalPool;
use crate::local::stickiness::{PersistenceResult as Stayed, Stickiness};
use crate::local::table::LocalServer;
use crate::parts::tries::{Lease, Tries};
use crate::session::persistence::SessionPersistence;
use crate::termination::Termination;

pub use start::{Refusal, Tools, admit};
pub use table::Sessions;

/// The origin of a session's datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// The listener that receives the client's datagrams and sends the answers.
    pub listener: ListenerKey,
    /// The client's address and the local address that it sent to.
    pub flow: Flow,
}

/// Counters and times of a session for its log line.
#[derive(Default)]
pub struct Account {
    /// When the first datagram arrived.
    pub begun_us: u64,
    /// When the session last got a member.
    pub tried_us: u64,
    /// When the first answer arrived; 0: no answer yet.
    pub answered_us: u64,
    /// Datagrams received from the client.
    pub datagrams_received: u64,
    /// Bytes received from the client.
    pub bytes_received: u64,
    /// Datagrams sent to the client.
    pub datagrams_sent: u64,
    /// Bytes sent to the client.
    pub bytes_sent: u64,
    /// Number of retries on other members.
    pub retries: u32,
    /// The last member.
    pub member: Option<Rc<LocalMember>>,
    /// The result of persistence; `None`: no persistence applies.
    pub kept: Option<Stayed>,
}

/// A session of datagrams between one client and one member.
pub struct Session<S> {
    /// The key of this session.
    pub key: SessionKey,
    /// The virtual server, as configured when the session began.
    pub server: Rc<LocalServer>,
    /// The origin of its datagrams.
    pub source: Source,
    /// The socket to the member; `None`: there is no member.
    pub socket: Option<S>,
    /// Counters and times for the log.
    pub account: Account,
    /// Why the session has ended; `None`: it has not.
    pub over: Option<Termination>,
    settings: Arc<snapshot::Sessions>,
    tries: Tries,
    lease: Option<Lease>,
    stickiness: Option<Stickiness>,
    /// State of persistence by QUIC connection IDs.
    kept: Option<Box<SessionPersistence>>,
    /// The first datagram, kept for a retry until the member answers.
    held: Vec<u8>,
    /// Some answers were dropped because of `amplification_max`.
    has_dropped: bool,
    _places: ConnectionPlaces,
}

impl<S: Copy> Session<S> {
    /// The pool that serves this session.
    pub fn pool(&self) -> &Rc<LocalPool> {
        &self.tries.pool
    }

    /// Whether the session accepts further datagrams of its client.
    pub fn is_open(&self) -> bool {
        self.over.is_none() && self.room() > 0
    }

    /// How many more datagrams the session accepts.
    fn room(&self) -> usize {
        let taken = self.account.datagrams_received;
        self.settings
            .datagrams_max
            .map_or(usize::MAX, |max| u64::from(max).saturating_sub(taken) as usize)
    }
}

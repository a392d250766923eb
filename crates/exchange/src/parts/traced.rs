//! The trace that a request belongs to, and the record of a request whose trace is sampled.

use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;

use weir_http::message::Version;
use weir_http::trace_context::TraceParent;

use crate::local::pool::{LocalMember, LocalPool};
use crate::parts::failure::MemberFailure;

/// Bytes of one text of a record.
pub const TEXT_BYTES_MAX: usize = 2048;

/// The trace that a request belongs to.
#[derive(Debug)]
pub struct Traced {
    /// The trace.
    pub trace_id: u128,
    /// The span of the request; of a request of weir's own that of the request it was made for.
    pub span_id: u64,
    /// The span that the request came from; 0: none.
    pub parent_id: u64,
    /// Flags of `traceparent`.
    pub flags: u8,
    /// The span that the next member is told as its parent: that of the attempt with it, or of the request if nothing is
    /// recorded.
    pub told_id: u64,
    /// Members get the received `tracestate`.
    pub keeps_state: bool,
    /// `None`: it is not sampled.
    pub record: Option<Box<Record>>,
}

impl Traced {
    /// What members are told.
    pub fn told(&self) -> TraceParent {
        TraceParent { trace_id: self.trace_id, span_id: self.told_id, flags: self.flags }
    }
}

/// Which requests have a span of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// That of a client.
    Client,
    /// A copy for another pool.
    Mirror,
    /// A question to a service that authorises requests.
    Authorisation,
}

/// Facts about a sampled request for its spans.
pub struct Record {
    /// Whose request it is.
    pub kind: Kind,
    /// Its method.
    pub method: Box<[u8]>,
    /// Its target, as it was received.
    pub target: Box<[u8]>,
    /// The requested authority.
    pub host: Box<[u8]>,
    /// `User-Agent`; empty: none.
    pub user_agent: Box<[u8]>,
    /// `tracestate`, if members get it.
    pub state: Box<[u8]>,
    /// The version of HTTP that it came by.
    pub version: Version,
    /// It came through TLS.
    pub is_secure: bool,
    /// Its client.
    pub client: Option<SocketAddr>,
    /// The connection's peer.
    pub peer: Option<SocketAddr>,
    /// Where the client connected to.
    pub listen: Option<SocketAddr>,
    /// Attempts that are over, without the last one.
    pub attempts: Vec<Attempted>,
    /// The status that the member of the current attempt has answered; 0: none yet.
    pub member_status: u16,
    /// When the last of `attempts` began, and which attempt it was.
    pub closed: (u64, u8),
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} with {} attempts", self.kind, self.attempts.len())
    }
}

/// An attempt with a member that is over.
pub struct Attempted {
    /// Its span.
    pub span_id: u64,
    /// The pool.
    pub pool: Rc<LocalPool>,
    /// The member.
    pub member: Rc<LocalMember>,
    /// When it began.
    pub begun_us: u64,
    /// When the connection was there; 0: it never was.
    pub connected_us: u64,
    /// When the first byte of a response came; 0: none did.
    pub first_byte_us: u64,
    /// When it ended.
    pub ended_us: u64,
    /// The member's status; 0: none.
    pub status: u16,
    /// How the member failed, unless by its status.
    pub failure: Option<MemberFailure>,
}

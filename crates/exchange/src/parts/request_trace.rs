//! The trace that a request belongs to, and the record of a request whose trace is sampled.

use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;

use weir_http::message::Version;
use weir_http::trace_context::TraceParent;

use crate::local::member::LocalMember;
use crate::local::pool::LocalPool;
use crate::parts::failure::MemberFailure;

/// Maximum length of a text in a record.
pub const TEXT_BYTES_MAX: usize = 2048;

/// The trace context of a request.
#[derive(Debug)]
pub struct RequestTrace {
    /// The trace.
    pub trace_id: u128,
    /// The span of the request. For a request that weir makes itself: the span of the request that caused it.
    pub span_id: u64,
    /// The span that the client sent as the parent; 0: none.
    pub parent_id: u64,
    /// Flags of `traceparent`.
    pub flags: u8,
    /// The span in the `traceparent` sent to the next member: the span of that attempt, or of the request if it is not
    /// sampled.
    pub told_id: u64,
    /// The received `tracestate` is forwarded to members.
    pub keeps_state: bool,
    /// The facts for the spans; `None`: the request is not sampled.
    pub record: Option<Box<Record>>,
}

impl RequestTrace {
    /// The `traceparent` sent to members.
    pub fn told(&self) -> TraceParent {
        TraceParent { trace_id: self.trace_id, span_id: self.told_id, flags: self.flags }
    }
}

/// The kind of a traced request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A client's request.
    Client,
    /// A request of weir's own; this is its purpose.
    Own(&'static str),
}

/// Facts about a sampled request for its spans.
pub struct Record {
    /// The kind of the request.
    pub kind: Kind,
    /// Its method.
    pub method: Box<[u8]>,
    /// Its target, as received.
    pub target: Box<[u8]>,
    /// The requested authority.
    pub host: Box<[u8]>,
    /// `User-Agent`; empty: none.
    pub user_agent: Box<[u8]>,
    /// `tracestate`, if it is forwarded to members.
    pub state: Box<[u8]>,
    /// The HTTP version of the request.
    pub version: Version,
    /// The request came over TLS.
    pub is_secure: bool,
    /// The client address.
    pub client: Option<SocketAddr>,
    /// The connection's peer.
    pub peer: Option<SocketAddr>,
    /// The address that the client connected to.
    pub listen: Option<SocketAddr>,
    /// Finished attempts, without the last one.
    pub attempts: Vec<FinishedAttempt>,
    /// The status from the member of the current attempt; 0: none yet.
    pub member_status: u16,
    /// Start time and number of the last attempt in `attempts`.
    pub closed: (u64, u8),
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} with {} attempts", self.kind, self.attempts.len())
    }
}

/// A finished attempt with a member.
pub struct FinishedAttempt {
    /// Its span.
    pub span_id: u64,
    /// The pool.
    pub pool: Rc<LocalPool>,
    /// The member.
    pub member: Rc<LocalMember>,
    /// When it began.
    pub begun_us: u64,
    /// When the connection was open; 0: it was never open.
    pub connected_us: u64,
    /// When the first byte of the response arrived; 0: no response.
    pub first_byte_us: u64,
    /// When it ended.
    pub ended_us: u64,
    /// The member's status; 0: none.
    pub status: u16,
    /// The failure of the member; `None`: it did not fail, or failed by its status.
    pub failure: Option<MemberFailure>,
}

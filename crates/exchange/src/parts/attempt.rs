//! An attempt to serve a request with a member: the place and the connection.

use crate::arena::{ConnectionKey, MemberStreamKey};
use crate::parts::tries::Lease;

/// An attempt to serve a request with a member.
pub struct Attempt {
    /// The place at the member.
    pub lease: Lease,
    /// The connection; `None`: there is none yet, or it was lost or released.
    pub link: Option<Link>,
    /// `sent_bytes` of the connection at the beginning of the attempt.
    pub sent_before: u64,
    /// A lost connection does not count as a failure of the member: the connection was a kept one, or the member did
    /// not read the request. A new connection to the same member is tried first.
    pub may_be_stale: bool,
    /// Whether a byte of a response has arrived, including interim responses.
    pub response_seen: bool,
}

/// A connection to a member, or a stream of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// The connection.
    pub connection: ConnectionKey,
    /// The stream on that connection; `None`: HTTP/1.
    pub stream: Option<MemberStreamKey>,
}

impl Link {
    /// A whole connection.
    pub fn to(connection: ConnectionKey) -> Self {
        Self { connection, stream: None }
    }
}

impl Attempt {
    /// An attempt that has no connection yet.
    pub fn at(lease: Lease) -> Self {
        Self { lease, link: None, sent_before: 0, may_be_stale: false, response_seen: false }
    }
}

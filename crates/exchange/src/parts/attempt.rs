//! An attempt with a member: the place at it, the connection to it, and times.

use crate::arena::{ConnectionKey, MemberStreamKey};
use crate::parts::tries::Lease;

/// An attempt with a member; empty while a request has none.
#[derive(Default)]
pub struct Attempt {
    /// The place at the member.
    pub lease: Option<Lease>,
    /// The connection to it.
    pub connection: Option<ConnectionKey>,
    /// The stream of that; `None`: the request has the connection for itself (HTTP/1).
    pub member_stream: Option<MemberStreamKey>,
    /// That the connection ends is no fault of the member's: it was there before, or the member has left the request unread.
    /// So a new one to the same member is tried first.
    pub may_be_stale: bool,
    /// `sent_bytes` of the connection when it was taken.
    pub sent_before: u64,
    /// A byte of a response has come, an interim one included.
    pub response_seen: bool,
    /// When it began.
    pub try_us: u64,
    /// When the connection was there; 0: not yet.
    pub connected_us: u64,
    /// When the whole request was handed over on it; 0: not yet.
    pub asked_us: u64,
    /// When the first byte of a response came; 0: not yet.
    pub first_byte_us: u64,
}

impl Attempt {
    /// A byte has come from the member; its response may begin later.
    pub fn note_first_byte(&mut self, now_us: u64) {
        if self.first_byte_us == 0 {
            self.first_byte_us = now_us;
        }
    }

    /// The member.
    pub fn member(&self) -> Option<u32> {
        self.lease.as_ref().map(|lease| lease.member)
    }
}

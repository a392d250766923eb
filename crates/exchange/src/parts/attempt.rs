//! An attempt to serve a request with a member: the place, the connection, and times.

use crate::arena::{ConnectionKey, MemberStreamKey};
use crate::parts::tries::Lease;

/// An attempt to serve a request with a member. Empty while there is no member.
#[derive(Default)]
pub struct Attempt {
    /// The place at the member.
    pub lease: Option<Lease>,
    /// The member connection.
    pub connection: Option<ConnectionKey>,
    /// The stream on that connection; `None`: HTTP/1.
    pub member_stream: Option<MemberStreamKey>,
    /// A lost connection does not count as a failure of the member: the connection was a kept one, or the member did
    /// not read the request. A new connection to the same member is tried first.
    pub may_be_stale: bool,
    /// `sent_bytes` of the connection at the beginning of the attempt.
    pub sent_before: u64,
    /// Whether a byte of a response has arrived, including interim responses.
    pub response_seen: bool,
    /// When the attempt began.
    pub try_us: u64,
    /// When the connection was ready; 0: not yet.
    pub connected_us: u64,
    /// When the whole request was sent or queued; 0: not yet.
    pub asked_us: u64,
    /// When the first byte of a response arrived; 0: not yet.
    pub first_byte_us: u64,
}

impl Attempt {
    /// Records the arrival of a byte from the member; its response may begin later.
    pub fn note_first_byte(&mut self, now_us: u64) {
        if self.first_byte_us == 0 {
            self.first_byte_us = now_us;
        }
    }

    /// The index of the member.
    pub fn member(&self) -> Option<u32> {
        self.lease.as_ref().map(|lease| lease.member)
    }
}

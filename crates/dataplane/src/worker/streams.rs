//! What an exchange has on a connection that it shares with others, on either side.

use weir_http::h2::Priority;

use super::end::OwnedEnd;
use super::frames::Outgoing;
use crate::access_log::Termination;
use crate::arena::ExchangeKey;

/// The stream of its client's connection.
#[derive(Default)]
pub struct Stream {
    /// The response on its way.
    pub out: Outgoing,
    /// What the client wants to have first.
    pub priority: Priority,
    /// When its client must have done something; `None`: it need not.
    pub deadline_ms: Option<u64>,
    /// Bytes of the request whose window is not given back yet.
    pub unreleased: u32,
    /// Bytes of the request that came when its response was whole already.
    pub unwanted_bytes: u64,
    /// Bytes of the request, among those that are not given back, that wait for a member.
    pub held: Vec<u8>,
    /// What follows them.
    pub held_end: OwnedEnd,
    /// Those that came in small frames of the read that is under way; behind those that are held.
    pub joined: Vec<u8>,
    /// The client has ended its request short, since it knew the answer. No more of it will come.
    pub is_cut: bool,
    /// The member waits until the client has taken what there is of the response.
    pub holds_up_member: bool,
    /// The client of a tunnel knows that its member sends nothing more.
    pub is_end_told: bool,
    /// How the exchange ends when all of its response is out; `None`: more comes.
    pub ends_as: Option<Termination>,
}

/// The stream of its member's connection.
#[derive(Default)]
pub struct MemberStream {
    /// The request on its way; its stream is 0 until the head is written.
    pub out: Outgoing,
    /// Bytes of the response whose window is not given back yet.
    pub unreleased: u32,
    /// When the member must have done something.
    pub deadline_ms: Option<u64>,
    /// The client waits for the member to take what there is of the request.
    pub was_backed_up: bool,
    /// The member of a tunnel knows that its client sends nothing more.
    pub is_end_told: bool,
    /// Bytes of the response that came in small frames of the read that is under way.
    pub joined: Vec<u8>,
    /// The request waits for the window of the connection, and nothing of it has been sent.
    pub awaits_window: bool,
    /// The trailers of such a request, if it has some.
    pub awaited_end: OwnedEnd,
}

impl MemberStream {
    /// Whether something of the request waits.
    pub fn is_behind(&self) -> bool {
        self.out.is_behind() || self.awaits_window
    }
}

/// The exchange that a stream's tag names; a stream is without one only until its head is read.
pub fn exchange_of(tag: u64) -> Option<ExchangeKey> {
    ExchangeKey::from_bits(tag)
}

//! Persistence: a client that was sent to a member goes there again.
//!
//! Where the member is remembered decides what has to be kept here:
//!
//! | kind | remembered by | kept here |
//! |---|---|---|
//! | [`cookie`], inserted | the client, in a cookie of ours | nothing: a token per member, from the key |
//! | source address | a table ([`source`] packs its words) | a bounded number of entries |
//! | consistent hash of an address, a cookie of the application's, a field, an expression | nobody | nothing: [`KeyedHash`](crate::keyed_hash::KeyedHash) gives the place on the ring |
//! | session id in the path ([`path_parameter`]) | the application | nothing: hashed, without its route |
//!
//! However the member was found, [`stays`] says whether it serves the client.

pub mod cookie;
pub mod keys;
mod path_parameter;
#[cfg(test)]
mod simulation;
pub mod source;

pub use path_parameter::{path_parameter, session_id};

/// What a member that a client persists to may do, the first that applies from the top.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberState {
    /// It is configured no more.
    Gone,
    /// The operator took it out.
    Disabled,
    /// Its monitors or its traffic say that it does not serve, or no probe has passed yet.
    Down,
    /// At its limit of connections.
    Full,
    /// It finishes what it has: no new clients, its persistent ones stay.
    Draining,
    /// It takes requests.
    Up,
}

/// Whether a client that persists to a member in this state is served by it; else the balancing method picks
/// another, and the client is told or the table updated.
///
/// | state | it stays | why |
/// |---|---|---|
/// | up | yes | |
/// | draining | yes | until the cookie or the entry ends: that is what draining waits for |
/// | full, down, disabled, gone | no | |
///
/// Whoever is re-picked is renewed: its next requests go to the new member, even when the old one
/// recovers. What the application keeps for the client then moves once, not twice.
pub fn stays(state: MemberState) -> bool {
    match state {
        MemberState::Up | MemberState::Draining => true,
        MemberState::Full | MemberState::Down | MemberState::Disabled | MemberState::Gone => false,
    }
}

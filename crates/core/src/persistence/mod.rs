//! Persistence: a client that was sent to a member goes there again.
//!
//! The place where the member is remembered decides what weir must store:
//!
//! | kind | remembered by | stored in weir |
//! |---|---|---|
//! | [`cookie`], inserted | the client, in weir's cookie | nothing: a token per member, from the key |
//! | source address | a table ([`source`] packs its words) | a bounded number of entries |
//! | consistent hash of an address, a cookie of the application, a field, an expression | – | nothing: [`KeyedHash`](crate::keyed_hash::KeyedHash) gives the place on the ring |
//! | session id in the path ([`path_parameter`]) | the application | nothing: hashed, without its route |
//!
//! However the member was found, [`stays`] decides whether it serves the client.

pub mod cookie;
pub mod keys;
mod path_parameter;
#[cfg(test)]
mod simulation;
pub mod source;

pub use path_parameter::{path_parameter, session_id};

/// The state of a client's member; the first that applies from the top.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberState {
    /// Removed from the configuration.
    Gone,
    /// The operator took it out.
    Disabled,
    /// Its monitors or its traffic say that it does not serve, or no probe has passed yet.
    Down,
    /// At its connection limit.
    Full,
    /// It finishes open requests: no new clients, its persistent ones stay.
    Draining,
    /// Takes requests.
    Up,
}

/// Whether a client stays at its member in this state; otherwise the balancing method picks another one, and the cookie
/// or the table is updated.
///
/// | state | stays | reason |
/// |---|---|---|
/// | up | yes | |
/// | draining | yes | until the cookie or the entry ends: that is what draining waits for |
/// | full, down, disabled, gone | no | |
///
/// The new member is remembered: the client's next requests go there, even when the old one recovers. So the
/// application's session moves once, not twice.
pub fn stays(state: MemberState) -> bool {
    match state {
        MemberState::Up | MemberState::Draining => true,
        MemberState::Full | MemberState::Down | MemberState::Disabled | MemberState::Gone => false,
    }
}

//! Persistence: later requests of a client go to the same member.
//!
//! The place where the member is stored determines the state that weir must keep:
//!
//! | kind | stored by | stored in weir |
//! |---|---|---|
//! | [`cookie`], inserted | the client, in weir's cookie | nothing: a token per member, from the key |
//! | source address | a table ([`source`] packs its words) | a bounded number of entries |
//! | consistent hash of an address, a cookie of the application, a field, an expression | – | nothing: [`KeyedHash`](crate::keyed_hash::KeyedHash) gives the position on the ring |
//! | session id in the path ([`path_parameter`]) | the application | nothing: the session id is hashed, without its route |
//!
//! For every kind, [`stays`] decides whether the found member serves the client.

pub mod cookie;
pub mod keys;
mod path_parameter;
#[cfg(test)]
mod simulation;
pub mod source;

pub use path_parameter::{path_parameter, session_id};

/// The state of a client's member. If several apply, the first from the top is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberState {
    /// Removed from the configuration.
    Gone,
    /// Disabled by the operator.
    Disabled,
    /// Down by its monitors or its traffic, or no probe has passed yet.
    Down,
    /// At its connection limit.
    Full,
    /// Draining: it takes no new clients, but keeps persistent ones.
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
/// | draining | yes | until the cookie or the entry expires: draining waits for this |
/// | full, down, disabled, gone | no | |
///
/// The new member is stored: the client's next requests go there, even after the old member has recovered. So the
/// application's session moves once, not twice.
pub fn stays(state: MemberState) -> bool {
    match state {
        MemberState::Up | MemberState::Draining => true,
        MemberState::Full | MemberState::Down | MemberState::Disabled | MemberState::Gone => false,
    }
}

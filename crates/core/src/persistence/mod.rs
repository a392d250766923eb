//! Persistence: a client that was sent to a member goes there again.
//!
//! Where the member is remembered decides what has to be kept here:
//!
//! | kind | remembered by | kept here |
//! |---|---|---|
//! | [`cookie`], inserted | the client, in a cookie of ours | nothing: a token per member, from the key |
//! | source address | a table ([`source`] packs its words) | a bounded number of entries |
//! | consistent hash of an address, a cookie of the application's, a field, an expression | nobody | nothing: [`KeyedHash`](crate::keyed_hash::KeyedHash) gives the place on the ring |
//! | session id in the path ([`path_parameter`]) | the application | nothing: hashed, or its route compared |
//!
//! However the member was found, [`decide`] says what becomes of it.

pub mod cookie;
pub mod keys;
mod path_parameter;
#[cfg(test)]
mod simulation;
pub mod source;

pub use path_parameter::{SessionId, path_parameter};

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

/// What becomes of a client whose member is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenFull {
    /// It waits in the member's queue, and is answered 503 when that is full or the wait too long.
    #[default]
    Wait,
    /// Another member serves it, from now on.
    Repick,
}

/// What to do with a request whose client persists to a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The member serves it.
    Keep,
    /// The member serves it as soon as it has room.
    Wait,
    /// The balancing method picks a member, and the client is told or the table updated.
    Repick,
}

/// What becomes of a client that persists to a member in this state.
///
/// | state | decision | why |
/// |---|---|---|
/// | up | keep | |
/// | draining | keep | until the cookie or the entry ends: that is what draining waits for |
/// | full | wait, or repick as configured | |
/// | down, disabled, gone | repick | |
///
/// Whoever is re-picked is renewed: its next requests go to the new member, even when the old one
/// recovers. What the application keeps for the client then moves once, not twice.
pub fn decide(state: MemberState, when_full: WhenFull) -> Decision {
    match state {
        MemberState::Up | MemberState::Draining => Decision::Keep,
        MemberState::Full => match when_full {
            WhenFull::Wait => Decision::Wait,
            WhenFull::Repick => Decision::Repick,
        },
        MemberState::Down | MemberState::Disabled | MemberState::Gone => Decision::Repick,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_moves_only_with_a_cause() {
        use {Decision::*, MemberState::*};
        for (state, when_full, expected) in [
            (Up, WhenFull::Wait, Keep),
            (Up, WhenFull::Repick, Keep),
            (Draining, WhenFull::Wait, Keep),
            (Draining, WhenFull::Repick, Keep),
            (Full, WhenFull::Wait, Wait),
            (Full, WhenFull::Repick, Repick),
            (Down, WhenFull::Wait, Repick),
            (Disabled, WhenFull::Wait, Repick),
            (Gone, WhenFull::Wait, Repick),
        ] {
            assert_eq!(decide(state, when_full), expected, "{state:?}, {when_full:?}");
        }
    }
}

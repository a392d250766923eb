//! How far a transaction is between its client and its member.
//!
//! | transaction | goes through |
//! |---|---|
//! | exchange | all phases: [`Phase::Before`] and [`Phase::Asked`] by turns, then [`Phase::Left`], [`Phase::Judge`] and [`Phase::Deliver`] |
//! | relay | [`Phase::Before`] and [`Phase::Asked`] by turns |
//! | tunnel | [`Phase::Asked`], and [`Phase::Before`] when its member is gone |

use crate::arena::{ConnectionKey, MemberStreamKey};
use crate::parts::attempt::{Attempt, Link};
use crate::parts::tries::Lease;
use crate::parts::wait_state::WaitState;
use crate::termination::Termination;

/// How far a transaction is.
pub enum Phase {
    /// It has no member, and the client has nothing of a response but interim ones: it passes its stages, waits, or ends.
    Before(WaitState),
    /// It has a place at a member. `None`: the head of the response has not arrived.
    Asked(Attempt, Option<Begun>),
    /// The response has begun, and its member has been left: the transaction ends, or delivers the rest, in the same call.
    Left(Begun),
    /// The response is complete here, and held until it is judged. Then the transaction ends for this reason.
    Judge(Termination),
    /// The response is complete here, but the client's HTTP/2 windows hold back the rest of it.
    Deliver(RestOfResponse),
}

/// A response that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begun {
    /// It is held for inspection, or the request is weir's own: nothing was sent to a client.
    Held,
    /// It is held, and waits for the verdict of an inspection elsewhere. The member is not read meanwhile.
    Judging,
    /// Its head was sent to the client; the body follows.
    Sent,
}

impl Begun {
    /// Whether nothing of the response was sent to a client.
    pub fn is_held(self) -> bool {
        matches!(self, Self::Held | Self::Judging)
    }
}

/// The rest of a response that the client's windows hold back.
#[derive(Debug, Clone, Copy)]
pub struct RestOfResponse {
    /// The termination reason after delivery.
    pub ends_as: Termination,
    /// Bytes that the client has sent since.
    pub unwanted_bytes: u64,
}

impl Phase {
    /// The beginning.
    pub const START: Self = Self::Before(WaitState::No);

    /// The attempt; `None`: there is no member.
    #[inline]
    pub fn attempt(&self) -> Option<&Attempt> {
        match self {
            Self::Asked(attempt, _) => Some(attempt),
            Self::Before(_) | Self::Left(_) | Self::Judge(_) | Self::Deliver(_) => None,
        }
    }

    /// The attempt, mutable.
    #[inline]
    pub fn attempt_mut(&mut self) -> Option<&mut Attempt> {
        match self {
            Self::Asked(attempt, _) => Some(attempt),
            Self::Before(_) | Self::Left(_) | Self::Judge(_) | Self::Deliver(_) => None,
        }
    }

    /// The connection to the member, or the stream of one.
    #[inline]
    pub fn link(&self) -> Option<Link> {
        self.attempt()?.link
    }

    /// The connection to the member.
    #[inline]
    pub fn connection(&self) -> Option<ConnectionKey> {
        self.link().map(|link| link.connection)
    }

    /// The stream on the connection to the member; `None`: there is no connection, or it is one of HTTP/1.
    #[inline]
    pub fn member_stream(&self) -> Option<MemberStreamKey> {
        self.link()?.stream
    }

    /// Takes the connection: it is released or lost.
    #[inline]
    pub fn take_link(&mut self) -> Option<Link> {
        self.attempt_mut()?.link.take()
    }

    /// The index of the member.
    #[inline]
    pub fn member(&self) -> Option<u32> {
        self.attempt().map(|attempt| attempt.lease.member)
    }

    /// What the client or weir has of the response; `None`: its head has not arrived.
    #[inline]
    pub fn begun(&self) -> Option<Begun> {
        match self {
            Self::Before(_) => None,
            Self::Asked(_, begun) => *begun,
            Self::Left(begun) => Some(*begun),
            Self::Judge(_) => Some(Begun::Judging),
            Self::Deliver(_) => Some(Begun::Sent),
        }
    }

    /// The reason for which the transaction ends when its held response, which is complete, was sent.
    pub fn whole(&self) -> Option<Termination> {
        match self {
            Self::Judge(ends_as) => Some(*ends_as),
            Self::Before(_) | Self::Asked(..) | Self::Left(_) | Self::Deliver(_) => None,
        }
    }

    /// The response of the member begins, or what was held of it is sent.
    #[inline]
    pub fn begin(&mut self, how: Begun) {
        match self {
            Self::Asked(_, begun) => *begun = Some(how),
            // It needs another turn.
            Self::Judge(_) if how == Begun::Judging => {}
            Self::Judge(_) => {
                debug_assert!(how == Begun::Sent, "nothing more will come of the response");
                *self = Self::Left(how);
            }
            Self::Before(_) | Self::Left(_) | Self::Deliver(_) => {
                debug_assert!(false, "a response comes from a member");
            }
        }
    }

    /// The response is whole, and its member was left: what the client's windows hold back of it is delivered. One that waits for
    /// its verdict does so further.
    pub fn deliver(&mut self, ends_as: Termination) {
        if self.begun() != Some(Begun::Judging) {
            *self = Self::Deliver(RestOfResponse { ends_as, unwanted_bytes: 0 });
        }
    }

    /// The member is left: takes the attempt, whose connection was released before.
    #[inline]
    pub fn leave(&mut self) -> Option<Attempt> {
        let Self::Asked(_, begun) = self else { return None };
        let left = begun.map_or(Self::START, Self::Left);
        match std::mem::replace(self, left) {
            Self::Asked(attempt, _) => Some(attempt),
            Self::Before(_) | Self::Left(_) | Self::Judge(_) | Self::Deliver(_) => None,
        }
    }

    /// Nothing of the response was sent, and nothing will be: the member has been left.
    pub fn drop_held(&mut self) {
        if matches!(self, Self::Left(Begun::Held | Begun::Judging) | Self::Judge(_)) {
            *self = Self::START;
        }
    }
}

// A transaction without a member.
impl Phase {
    /// What it waits for.
    pub fn wait_state(&self) -> &WaitState {
        match self {
            Self::Before(wait_state) => wait_state,
            Self::Asked(..) | Self::Left(_) | Self::Judge(_) | Self::Deliver(_) => &WaitState::No,
        }
    }

    /// It waits for this from now on.
    pub fn park(&mut self, what: WaitState) {
        debug_assert!(matches!(self, Self::Before(_)), "what waits has no member, and no response");
        if let Self::Before(wait_state) = self {
            *wait_state = what;
        }
    }

    /// It does not wait at a stage any more.
    pub fn leave_stages(&mut self) {
        if let Self::Before(wait_state @ WaitState::AtStage) = self {
            *wait_state = WaitState::No;
        }
    }

    /// It does not wait any more.
    pub fn end_wait(&mut self) -> WaitState {
        match self {
            Self::Before(wait_state) => std::mem::take(wait_state),
            Self::Asked(..) | Self::Left(_) | Self::Judge(_) | Self::Deliver(_) => WaitState::No,
        }
    }

    /// Takes the reserved place.
    pub fn take_place(&mut self) -> Option<Lease> {
        match self {
            Self::Before(wait_state) => wait_state.take_place(),
            Self::Asked(..) | Self::Left(_) | Self::Judge(_) | Self::Deliver(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::sync::Arc;
    use std::sync::atomic::Ordering::Relaxed;

    use weir_core::clock::Clock;

    use super::*;
    use crate::environment::Environment;
    use crate::local::pool::{LocalPool, Preference};
    use crate::shared::live::LiveTable;

    fn pool() -> Rc<LocalPool> {
        let text = "virtual_servers: { v: { listen: \"127.0.0.1:8080\", pool: p } }\n\
            pools: { p: { members: [ 127.0.0.1:1 ] } }\n";
        let config = weir_config::parse("test.yaml", text).config.expect("a good configuration");
        let snapshot = Arc::new(config.snapshot(&weir_config::Resolutions::default()));
        let table = LiveTable::build(Arc::clone(&snapshot), None, 1, &Environment::known());
        Rc::new(LocalPool::new(&snapshot, 0, &table.pools[0], None, 0, 0))
    }

    fn asked(pool: &Rc<LocalPool>, begun: Option<Begun>) -> Phase {
        let member = pool.occupy(&[], Clock::at_us(1_000_000_000), Preference::Any);
        let member = member.unwrap_or_else(|_| panic!("there is one member, and it is up"));
        Phase::Asked(Attempt::at(Lease::of(pool, member)), begun)
    }

    #[test]
    fn a_member_is_left_once_and_gets_its_place_back() {
        let pool = pool();
        let places = || pool.members[0].live.occupancy.load(Relaxed);
        for begun in [None, Some(Begun::Held), Some(Begun::Judging), Some(Begun::Sent)] {
            let mut phase = asked(&pool, begun);
            assert_eq!((phase.member(), phase.begun(), places()), (Some(0), begun, 1));
            assert!(phase.leave().is_some(), "{begun:?}");
            assert_eq!((phase.member(), phase.begun(), places()), (None, begun, 0));
            assert!(phase.leave().is_none(), "{begun:?}");
        }
    }

    #[test]
    fn what_was_held_can_be_dropped_and_what_was_sent_cannot() {
        let pool = pool();
        for (begun, expected) in [
            (None, None),
            (Some(Begun::Held), None),
            (Some(Begun::Judging), None),
            (Some(Begun::Sent), Some(Begun::Sent)),
        ] {
            let mut phase = asked(&pool, begun);
            drop(phase.leave());
            phase.drop_held();
            assert_eq!(phase.begun(), expected, "{begun:?}");
        }
    }

    #[test]
    fn a_whole_response_is_sent_or_dropped_after_its_verdict() {
        let judge = || Phase::Judge(Termination::Complete);
        let mut phase = judge();
        phase.begin(Begun::Judging);
        assert_eq!(
            (phase.whole(), phase.begun()),
            (Some(Termination::Complete), Some(Begun::Judging))
        );
        phase.begin(Begun::Sent);
        assert_eq!((phase.whole(), phase.begun()), (None, Some(Begun::Sent)));
        let mut phase = judge();
        phase.drop_held();
        assert_eq!(phase.begun(), None);
    }

    #[test]
    fn only_a_wait_at_a_stage_ends_with_the_stages() {
        for (wait_state, is_left) in
            [(WaitState::No, true), (WaitState::AtStage, true), (WaitState::Beside, false)]
        {
            let mut phase = Phase::Before(wait_state);
            phase.leave_stages();
            assert_eq!(matches!(phase, Phase::Before(WaitState::No)), is_left);
        }
    }
}

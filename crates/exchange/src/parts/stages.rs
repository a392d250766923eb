//! What a request still has to pass before it gets a member.

/// A stage between the head of a request and its member. A request passes its stages in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Stage {
    /// The delay of a rate limit.
    Delay,
    /// The checks of its passwords.
    Login,
    /// The inspection of its head, or of its held body, that goes on elsewhere.
    Judge,
    /// The questions to external services.
    Ask,
    /// The end that was decided with its head: it gets no member.
    End,
    /// The copies for other pools.
    Copy,
    /// Its body is held until it is judged.
    Body,
}

/// All stages, in order.
const ALL: [Stage; 7] =
    [Stage::Delay, Stage::Login, Stage::Judge, Stage::Ask, Stage::End, Stage::Copy, Stage::Body];

const _: () = assert!(ALL.len() <= u8::BITS as usize, "every stage has a bit in `Stages`");

/// The stages that a request still has to pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stages(u8);

impl Stages {
    /// No stage is left.
    pub const NONE: Self = Self(0);

    /// Adds a stage, if this holds.
    pub fn add_if(&mut self, stage: Stage, holds: bool) {
        self.0 |= u8::from(holds) << stage as u8;
    }

    /// A stage was passed.
    pub fn remove(&mut self, stage: Stage) {
        self.0 &= !(1 << stage as u8);
    }

    /// The next stage; `None`: all were passed.
    #[inline]
    pub fn next(self) -> Option<Stage> {
        ALL.get(self.0.trailing_zeros() as usize).copied()
    }

    /// Whether a stage before [`Stage::End`] is left: each of them may wait.
    pub fn may_wait_before_the_end(self) -> bool {
        self.next().is_some_and(|stage| (stage as u8) < Stage::End as u8)
    }

    /// Whether no stage is left.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// What a request waits for at a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// For this time, in microseconds of the clock. A timer of an earlier stage may bring the request back before, so the stage looks
    /// at the time, and waits on for an event.
    Until(u64),
    /// For something that comes by itself: the reply to a request of weir's own, an inspection, or a time that was asked for
    /// before.
    Event,
    /// For its body.
    Body,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_passed_in_order() {
        let mut stages = Stages::NONE;
        assert!(stages.is_empty() && stages.next().is_none());
        for stage in [Stage::Body, Stage::Login, Stage::Copy] {
            stages.add_if(stage, true);
        }
        stages.add_if(Stage::Ask, false);
        let mut passed = Vec::new();
        while let Some(stage) = stages.next() {
            passed.push(stage);
            stages.remove(stage);
        }
        assert_eq!(passed, [Stage::Login, Stage::Copy, Stage::Body]);
        assert!((0..).zip(ALL).all(|(place, stage)| stage as u8 == place), "bits are places");
    }
}

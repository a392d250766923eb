//! Limits on the work and time of the rules for one request, and of one turn.
//!
//! A turn ends behind a rule. If it is over before that, the rule is left between two of its values, as long as none of them has
//! matched: then nothing of the rule has acted, and another turn evaluates it anew.
//!
//! Work is counted in bytes: see [`super::texts::Texts::work_bytes`].

use super::options::{Options, Turn};
use super::report::{Limit, StoppedAt, Verdict};
use super::timer::Timer;
use crate::plan::CompiledRule;

/// The limits for one request, and what is left of them.
#[derive(Debug)]
pub(super) struct Bounds {
    /// The maximum amount of work.
    work_bytes_max: u64,
    /// The amount of work at which work and time are next compared with their limits.
    look_at_bytes: u64,
    timer: Timer,
    leaving: InterruptedRule,
    /// The first limit that was exceeded.
    exceeded: Option<Limit>,
    /// Where that ended the evaluation first.
    stopped: Option<StoppedAt>,
}

/// Whether a rule is left between two of its values, because the turn is over. Nothing of it has acted by then, so it is
/// evaluated anew in another turn.
#[derive(Debug, Clone, Copy, Default)]
struct InterruptedRule {
    /// Whether the next rule may be left. In each turn but the first, one rule is evaluated to its end.
    may_leave: bool,
    /// Whether the current rule may be left, as long as it has no match.
    can_be_left: bool,
    is_left: bool,
    /// The counters before the current rule, and its comparisons.
    before: (EvaluationCounts, u64),
}

/// The number of operator evaluations.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EvaluationCounts {
    pub compared: u32,
    /// The number of these evaluations that used patterns.
    pub patterns: u32,
}

/// What follows a rule.
pub(super) enum AfterRule {
    /// The next rule.
    On,
    /// Nothing: a limit is exceeded.
    Stop(Verdict),
    /// The next rule, in another turn.
    Turn,
}

impl Bounds {
    /// No work and no time yet, in a turn without an end.
    pub fn new(options: &Options) -> Self {
        Self {
            work_bytes_max: options.work_bytes_max,
            look_at_bytes: options.work_bytes_max,
            timer: Timer::new(options.time),
            leaving: InterruptedRule::default(),
            exceeded: None,
            stopped: None,
        }
    }

    /// Starts a turn. `is_first`: ordinary requests need no other, so the clock is only read after some work.
    pub fn begin_turn(&mut self, work_bytes: u64, turn: Turn, is_first: bool) {
        self.timer.begin_turn(work_bytes, turn, is_first);
        self.leaving.may_leave = is_first;
        self.plan(work_bytes);
    }

    /// Starts the evaluation of a phase. Returns the limit that was exceeded before it, if any.
    pub fn begin_phase(&mut self, work_bytes: u64) -> Option<Limit> {
        self.timer.plan(work_bytes);
        self.plan(work_bytes);
        self.look(work_bytes, false)
    }

    /// A rule begins. `before`: what is restored if it is left.
    pub fn begin_rule(&mut self, before: (EvaluationCounts, u64)) {
        self.leaving.can_be_left = self.leaving.may_leave;
        self.leaving.before = before;
    }

    /// From here on, the current rule is not left.
    pub fn keep_rule(&mut self) {
        self.leaving.can_be_left = false;
    }

    /// The current rule has ended. Returns what was before it if it was left.
    pub fn end_rule(&mut self) -> Option<(EvaluationCounts, u64)> {
        let was_left = std::mem::take(&mut self.leaving.is_left);
        self.leaving.may_leave |= !was_left;
        was_left.then_some(self.leaving.before)
    }

    /// Whether the current rule is left.
    pub fn leaves_rule(&self) -> bool {
        self.leaving.is_left
    }

    /// Whether the turn is over.
    pub fn is_turn_over(&self, work_bytes: u64) -> bool {
        self.timer.is_turn_over(work_bytes)
    }

    /// Looks at the clock between two parts of other work than that of rules.
    pub fn look_between(&mut self) {
        self.timer.look_between();
    }

    /// Whether further values of the current rule are not inspected: its time is over, or it is left. `has_matched`: it cannot be
    /// left.
    #[inline]
    pub fn ends_rule(&mut self, work_bytes: u64, has_matched: bool) -> bool {
        self.look(work_bytes, has_matched) == Some(Limit::Time) || self.leaving.is_left
    }

    /// What follows this rule. After little work this takes one comparison: the end of a turn is a mark of work, too.
    #[inline]
    pub fn after(&mut self, rule: &CompiledRule, work_bytes: u64) -> AfterRule {
        if work_bytes <= self.look_at_bytes && self.exceeded.is_none() {
            return AfterRule::On;
        }
        self.after_much(rule, work_bytes)
    }

    #[cold]
    fn after_much(&mut self, rule: &CompiledRule, work_bytes: u64) -> AfterRule {
        if let Some(limit) = self.look(work_bytes, true) {
            let phase = rule.phase as u8;
            self.stopped.get_or_insert(StoppedAt { phase, rule: rule.id });
            return AfterRule::Stop(Verdict::Exceeded(limit));
        }
        if self.is_turn_over(work_bytes) { AfterRule::Turn } else { AfterRule::On }
    }

    /// The rule after which a limit ended the evaluation; `None`: no limit did.
    pub fn stopped(&self) -> Option<StoppedAt> {
        self.stopped
    }

    /// Notes that a limit is exceeded. The first one counts.
    pub fn exceed(&mut self, limit: Limit) {
        self.exceeded.get_or_insert(limit);
    }

    /// Whether so much work is too much. Notes it.
    pub fn exceeds_work(&mut self, work_bytes: u64) -> bool {
        let is_too_much = work_bytes > self.work_bytes_max;
        if is_too_much {
            self.exceed(Limit::Work);
        }
        is_too_much
    }

    /// The exceeded limit, if any. It is checked after each rule and before each further value.
    #[inline]
    fn look(&mut self, work_bytes: u64, has_matched: bool) -> Option<Limit> {
        if work_bytes > self.look_at_bytes {
            self.look_closely(work_bytes, has_matched);
        }
        self.exceeded
    }

    /// Checks work and time, after the work has exceeded its next mark.
    #[cold]
    fn look_closely(&mut self, work_bytes: u64, has_matched: bool) {
        self.exceeds_work(work_bytes);
        if self.timer.is_over(work_bytes) {
            self.exceed(Limit::Time);
        }
        self.plan(work_bytes);
        let InterruptedRule { can_be_left, is_left, .. } = &mut self.leaving;
        *is_left |= *can_be_left && !has_matched && self.look_at_bytes == 0;
    }

    /// Sets the next mark. When the turn is over, the next rule that has ended is beyond it, and the next value.
    fn plan(&mut self, work_bytes: u64) {
        self.look_at_bytes = match self.is_turn_over(work_bytes) {
            true => 0,
            false => self.work_bytes_max.min(self.timer.look_at_bytes),
        };
    }
}

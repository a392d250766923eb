//! Limits on the work and time of the rules for one request, and of one turn.
//!
//! A turn ends behind a rule. If it is over before that, the rule is left between two of its values, as long as none of them has
//! matched: then nothing of the rule has acted, and another turn evaluates it anew.

use super::options::Turn;
use super::report::{Limit, Stopped, Verdict};
use super::state::{Leaving, State};
use crate::plan::CompiledRule;

/// What follows a rule.
pub(super) enum After {
    /// The next rule.
    On,
    /// Nothing: a limit is exceeded.
    Stop(Verdict),
    /// The next rule, in another turn.
    Turn,
}

/// Starts a turn. `is_first`: ordinary requests need no other, so the clock is only read after some work.
pub(super) fn begin_turn(state: &mut State, turn: Turn, is_first: bool) {
    state.timer.begin_turn(state.message.texts.work_bytes(), turn, is_first);
    state.leaving.may_leave = is_first;
    plan(state);
}

/// Starts the evaluation of a phase.
pub(super) fn begin(state: &mut State) {
    state.timer.plan(state.message.texts.work_bytes());
    plan(state);
}

/// Whether the turn is over.
pub(super) fn is_turn_over(state: &State) -> bool {
    state.timer.is_turn_over(state.message.texts.work_bytes())
}

/// The exceeded limit, if any. It is checked after each rule and before each further value.
#[inline]
pub(super) fn look(state: &mut State) -> Option<Limit> {
    if state.message.texts.work_bytes() > state.marks.looked_at_bytes {
        look_closely(state);
    }
    state.exceeded.limit
}

/// Whether further values of the rule are not inspected: its time is over, or it is left.
#[inline]
pub(super) fn ends_rule(state: &mut State) -> bool {
    look(state) == Some(Limit::Time) || state.leaving.is_left
}

/// What follows this rule. After little work this takes one comparison: the end of a turn is a mark of work, too.
#[inline]
pub(super) fn after(state: &mut State, rule: &CompiledRule) -> After {
    let is_little = state.message.texts.work_bytes() <= state.marks.looked_at_bytes;
    if is_little && state.exceeded.limit.is_none() {
        return After::On;
    }
    after_much(state, rule)
}

#[cold]
fn after_much(state: &mut State, rule: &CompiledRule) -> After {
    if let Some(limit) = look(state) {
        let phase = rule.phase as u8;
        state.exceeded.at.get_or_insert(Stopped { phase, rule: rule.id });
        return After::Stop(Verdict::Exceeded(limit));
    }
    if is_turn_over(state) { After::Turn } else { After::On }
}

/// Checks work and time, after the work has exceeded its next mark.
#[cold]
fn look_closely(state: &mut State) {
    let work_bytes = state.message.texts.work_bytes();
    if work_bytes > state.marks.bytes_max {
        state.exceeded.limit.get_or_insert(Limit::Work);
    }
    if state.timer.is_over(work_bytes) {
        state.exceeded.limit.get_or_insert(Limit::Time);
    }
    plan(state);
    let Leaving { can_be_left, is_left, .. } = &mut state.leaving;
    *is_left |= *can_be_left && state.hits.is_empty() && state.marks.looked_at_bytes == 0;
}

/// Sets the next mark. When the turn is over, the next rule that has ended is beyond it, and the next value.
fn plan(state: &mut State) {
    state.marks.looked_at_bytes = match is_turn_over(state) {
        true => 0,
        false => state.marks.bytes_max.min(state.timer.look_at_bytes),
    };
}

//! Limits on the work and time of the rules for one request.

use super::report::{Limit, Stopped, Verdict};
use super::state::State;
use crate::plan::CompiledRule;

/// Starts the evaluation of a phase.
pub(super) fn begin(state: &mut State) {
    state.timer.begin(state.message.texts.work_bytes());
    plan(state);
}

/// The exceeded limit, if any. It is checked after each rule and before each further value.
#[inline]
pub(super) fn look(state: &mut State) -> Option<Limit> {
    if state.message.texts.work_bytes() > state.work_bytes_looked_at {
        look_closely(state);
    }
    state.exceeded.limit
}

/// The verdict if a limit is exceeded.
pub(super) fn verdict(state: &mut State) -> Option<Verdict> {
    look(state).map(Verdict::Exceeded)
}

/// The verdict after a rule, if a limit is exceeded.
#[inline]
pub(super) fn verdict_after(state: &mut State, rule: &CompiledRule) -> Option<Verdict> {
    let limit = look(state)?;
    let phase = rule.phase as u8;
    state.exceeded.at.get_or_insert(Stopped { phase, rule: rule.id });
    Some(Verdict::Exceeded(limit))
}

/// Checks work and time, after the work has exceeded its next mark.
#[cold]
fn look_closely(state: &mut State) {
    let work_bytes = state.message.texts.work_bytes();
    if work_bytes > state.work_bytes_max {
        state.exceeded.limit.get_or_insert(Limit::Work);
    }
    if state.timer.is_over(work_bytes) {
        state.exceeded.limit.get_or_insert(Limit::Time);
    }
    plan(state);
}

fn plan(state: &mut State) {
    state.work_bytes_looked_at = state.work_bytes_max.min(state.timer.look_at_bytes);
}

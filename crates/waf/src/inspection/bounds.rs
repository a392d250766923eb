//! The bounds of what rules may do for a request: work and time.

use super::report::Limit;
use super::state::State;

/// Rules of a phase are evaluated from here on.
pub(super) fn begin(state: &mut State) {
    state.timer.begin(state.message.texts.work_bytes());
    plan(state);
}

/// What keeps the request from being judged, behind a rule or before one more value.
#[inline]
pub(super) fn look(state: &mut State) -> Option<Limit> {
    if state.message.texts.work_bytes() > state.work_bytes_looked_at {
        look_closely(state);
    }
    state.exceeded
}

/// So much was looked at that it may be too much, or have taken too long.
#[cold]
fn look_closely(state: &mut State) {
    let work_bytes = state.message.texts.work_bytes();
    if work_bytes > state.work_bytes_max {
        state.exceeded.get_or_insert(Limit::Work);
    }
    if state.timer.is_over(work_bytes) {
        state.exceeded.get_or_insert(Limit::Time);
    }
    plan(state);
}

fn plan(state: &mut State) {
    state.work_bytes_looked_at = state.work_bytes_max.min(state.timer.look_at_bytes);
}

//! What all answers are made from.

use std::sync::Arc;

use crate::events::Events;
use crate::observed_state::ObservedState;

/// The state from which requests are answered.
#[derive(Debug, Clone)]
pub(super) struct Context {
    pub(super) observed: Arc<ObservedState>,
    pub(super) events: Events,
}

//! What all answers are made from.

use std::sync::Arc;

use crate::events::Events;
use crate::observed::Observed;

/// The state from which requests are answered.
#[derive(Debug, Clone)]
pub(super) struct Context {
    pub(super) observed: Arc<Observed>,
    pub(super) events: Events,
}

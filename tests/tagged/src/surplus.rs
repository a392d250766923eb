//! What members say that nobody has asked for, where it comes to a client: right only if weir could not know of it.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use crate::tag::Id;

/// What has come of it; shared by all clients and members.
#[derive(Debug, Default)]
pub struct Surplus(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    /// Exchanges behind whose responses it came when the next request was on its way already.
    excused: HashSet<Id>,
    /// Exchanges whose clients got it, and behind which response it came.
    received: Vec<(Id, Id)>,
}

impl Surplus {
    /// What was said behind this exchange may have been taken for the answer to the next.
    pub fn excuse(&self, id: Id) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).excused.insert(id);
    }

    /// The client of `id` got what was said behind the response to `of`.
    pub fn receive(&self, id: Id, of: Id) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).received.push((id, of));
    }

    /// Those who got what they should not have, all members having been asked.
    pub fn convicted(&self) -> Vec<(Id, Id)> {
        let seen = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let excused = &seen.excused;
        seen.received.drain(..).filter(|(_, of)| !excused.contains(of)).collect()
    }
}

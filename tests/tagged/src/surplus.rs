//! Unsolicited responses of members that reach a client. They are valid only if weir could not detect them before the next
//! request.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use crate::tag::Id;

/// The unsolicited responses; shared by all sessions.
#[derive(Debug, Default)]
pub struct Surplus(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    /// Exchanges whose unsolicited response crossed with the next request.
    excused: HashSet<Id>,
    /// Clients' exchanges that received an unsolicited response, with the exchange that it followed.
    received: Vec<(Id, Id)>,
}

impl Surplus {
    /// Records that the unsolicited response after this exchange crossed with the next request, so weir could not detect it.
    pub fn excuse(&self, id: Id) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).excused.insert(id);
    }

    /// The client of `id` received the unsolicited response that followed the response to `of`.
    pub fn receive(&self, id: Id, of: Id) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).received.push((id, of));
    }

    /// The exchanges that received an unsolicited response wrongly. Call this when all members have reported.
    pub fn convicted(&self) -> Vec<(Id, Id)> {
        let seen = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let excused = &seen.excused;
        seen.received.drain(..).filter(|(_, of)| !excused.contains(of)).collect()
    }
}

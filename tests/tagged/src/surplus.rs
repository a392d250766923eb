//! Unsolicited responses of members that reach a client: valid only if weir could not know about
//! them.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use crate::tag::Id;

/// The outcomes; shared by all clients and members.
#[derive(Debug, Default)]
pub struct Surplus(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    /// Exchanges followed by an unsolicited response when the next request was on its way already.
    excused: HashSet<Id>,
    /// Exchanges whose clients received one, and the response that it followed.
    received: Vec<(Id, Id)>,
}

impl Surplus {
    /// The unsolicited response after this exchange may have been taken for the answer to the next.
    pub fn excuse(&self, id: Id) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).excused.insert(id);
    }

    /// The client of `id` received the unsolicited response that followed the response to `of`.
    pub fn receive(&self, id: Id, of: Id) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).received.push((id, of));
    }

    /// Clients that wrongly received one, after all members have reported.
    pub fn convicted(&self) -> Vec<(Id, Id)> {
        let seen = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let excused = &seen.excused;
        seen.received.drain(..).filter(|(_, of)| !excused.contains(of)).collect()
    }
}

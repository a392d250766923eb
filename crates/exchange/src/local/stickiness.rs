//! The persistence of a request's client.

use std::sync::Arc;

use crate::shared::counters::VirtualServerCounters;
use crate::shared::sticky::Sticky;

/// The persistence of a request's client.
#[derive(Debug)]
pub struct Stickiness {
    /// The persistence that applies. Its members are those of the pool that the request has.
    pub sticky: Arc<Sticky>,
    /// Its index in the snapshot.
    pub persistence: u32,
    /// The client's key in the table; `None`: it has none.
    pub key: Option<u64>,
    /// The client's known member.
    pub known: Option<u32>,
    /// The client's cookie must be renewed even if the member stays the same.
    pub is_stale: bool,
}

/// The result of persistence for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PersistenceResult {
    /// The client stayed at its member.
    Kept,
    /// The client moved to another member.
    Moved,
    /// The client had no known member.
    New,
}

impl PersistenceResult {
    /// The word for the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Moved => "moved",
            Self::New => "new",
        }
    }
}

impl Stickiness {
    /// A member was selected. Stores it in the table at once, so that the client's next request on any worker finds it.
    #[inline]
    pub fn note_member(&self, member: u32, now_ms: u64) {
        let Some((key, places)) = self.key.zip(self.sticky.places()) else { return };
        let is_news = match self.is_stale {
            // A table that learns only from responses is not written here.
            true => self.sticky.learn().is_none(),
            false => self.known != Some(member),
        };
        if is_news {
            places.remember(key, member, now_ms);
        }
    }

    /// The request turns to other members of its pool. `sticky`: the same persistence with these; `moved`: the new index of a
    /// member.
    pub fn renumber(&mut self, sticky: Arc<Sticky>, moved: impl Fn(u32) -> Option<u32>) {
        self.sticky = sticky;
        self.known = self.known.and_then(moved);
    }

    /// The client is served by this member: counts the result of persistence.
    pub fn count(&self, member: u32, counters: &VirtualServerCounters) -> PersistenceResult {
        match self.known {
            Some(known) if known == member => {
                counters.persistence_kept.add(1);
                PersistenceResult::Kept
            }
            Some(_) => {
                counters.persistence_moved.add(1);
                PersistenceResult::Moved
            }
            None => PersistenceResult::New,
        }
    }
}

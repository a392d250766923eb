//! How the client of a request is kept at its member.

use std::sync::Arc;

use crate::shared::counters::VirtualServerCounters;
use crate::shared::sticky::Sticky;

/// How the client of a request is kept at its member.
#[derive(Debug)]
pub struct Stickiness {
    /// The persistence that decided.
    pub sticky: Arc<Sticky>,
    /// The client's key in the table, if there is one.
    pub key: Option<u64>,
    /// The member that it is known to be at.
    pub known: Option<u32>,
    /// The client's cookie must be renewed even if the client stays.
    pub is_stale: bool,
}

/// The result of persistence for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// It is where it was.
    Kept,
    /// It was at another one.
    Moved,
    /// The client was unknown.
    New,
}

impl Kept {
    /// Its name in the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Moved => "moved",
            Self::New => "new",
        }
    }
}

impl Stickiness {
    /// A member was selected. A table learns this at once, so that the client's next request, on any worker, goes there
    /// too.
    #[inline]
    pub fn note_member(&self, member: u32, now_ms: u64) {
        let Some((key, places)) = self.key.zip(self.sticky.places()) else { return };
        let is_news = match self.is_stale {
            // It is not in the table. What members alone put there comes with their responses.
            true => self.sticky.learn().is_none(),
            false => self.known != Some(member),
        };
        if is_news {
            places.table.remember(key, member, now_ms);
        }
    }

    /// The client is at this member now: that is counted.
    pub fn count(&self, member: u32, counters: &VirtualServerCounters) -> Kept {
        match self.known {
            Some(known) if known == member => {
                counters.persistence_kept.add(1);
                Kept::Kept
            }
            Some(_) => {
                counters.persistence_moved.add(1);
                Kept::Moved
            }
            None => Kept::New,
        }
    }
}

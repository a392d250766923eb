//! The reason why a request waits without a member.

use weir_core::policy::Decision;
use weir_core::queue::Ticket;

use crate::parts::considered::Ending;
use crate::parts::tries::Lease;

/// The reason why a request waits without a member.
#[derive(Default)]
pub enum Parked {
    /// Nothing.
    #[default]
    No,
    /// For its time; it may have been decided how it ends then.
    Until(Option<(Ending, Box<Decision>)>),
    /// For a place at a member, in line.
    InLine(Ticket),
    /// Beside the queue: a member has failed it already.
    Beside,
    /// It has waited in the queue, and its turn has come, with the place reserved for it, if any.
    Called(Option<Lease>),
}

impl Parked {
    /// The place reserved for it.
    pub fn take_place(&mut self) -> Option<Lease> {
        match self {
            Self::Called(lease) => lease.take(),
            _ => None,
        }
    }

    /// It has a member and waits for nothing any more: times that were set while it did mean nothing to it.
    pub fn end(&mut self) {
        if matches!(self, Self::Called(_)) {
            *self = Self::No;
        }
    }

    /// Whether it waits.
    pub fn waits(&self) -> bool {
        matches!(self, Self::Until(_) | Self::InLine(_) | Self::Beside)
    }

    /// Whether it waits for a place at a member.
    pub fn is_in_queue(&self) -> bool {
        matches!(self, Self::InLine(_) | Self::Beside)
    }
}

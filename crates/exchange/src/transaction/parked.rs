//! What a request waits for that has no member.

use weir_core::policy::Decision;
use weir_core::queue::Ticket;

use crate::transaction::considered::Ending;

/// What a request waits for that has no member.
#[derive(Default)]
pub enum Parked {
    /// Nothing.
    #[default]
    No,
    /// For its time; it may have been decided how it ends then.
    Until(Option<(Ending, Box<Decision>)>),
    /// For a place at a member, in line.
    InLine(Ticket),
    /// The same, beside the line: a member has failed it already.
    Beside,
    /// It has waited in line, and its turn has come.
    Called,
}

impl Parked {
    /// Whether it waits.
    pub fn waits(&self) -> bool {
        matches!(self, Self::Until(_) | Self::InLine(_) | Self::Beside)
    }

    /// Whether it waits for a place at a member.
    pub fn is_in_queue(&self) -> bool {
        matches!(self, Self::InLine(_) | Self::Beside)
    }
}

//! The reason why a request waits without a member.

use weir_core::queue::Ticket;

use crate::parts::tries::Lease;

/// The reason why a request waits without a member.
#[derive(Default)]
pub enum WaitState {
    /// It does not wait.
    #[default]
    No,
    /// At a stage, for a time or an event.
    AtStage,
    /// For its body, which is held until it is judged.
    ForBody,
    /// For a member, in the queue.
    InLine(Ticket),
    /// For a retry, beside the queue.
    Beside,
    /// Its turn in the queue has come; with the member reserved for it, if any.
    Called(Option<Lease>),
}

impl WaitState {
    /// Takes the reserved place.
    pub fn take_place(&mut self) -> Option<Lease> {
        match self {
            Self::Called(lease) => lease.take(),
            _ => None,
        }
    }

    /// Whether it waits for something else than its body.
    pub fn waits(&self) -> bool {
        matches!(self, Self::AtStage | Self::InLine(_) | Self::Beside)
    }

    /// Whether it waits for a member.
    pub fn is_in_queue(&self) -> bool {
        matches!(self, Self::InLine(_) | Self::Beside)
    }
}

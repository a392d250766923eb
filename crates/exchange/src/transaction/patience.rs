//! Timeouts of both sides of an exchange.

use crate::edge::Edge;
use crate::parts::inspection::InspectionState;
use crate::parts::pace::Pace;
use crate::parts::phase::Begun;
use crate::transaction::exchange::Exchange;

impl Exchange {
    /// Sets the client's deadline for progress.
    pub fn await_client(&mut self, at: &mut impl Edge) {
        let mut until_ms = at.turn().now_ms() + self.pace.client_timeout_ms(&self.ends.server);
        if let Some(InspectionState::Reading(reading)) = self.inspection_state.as_deref() {
            // A held body must be complete at some time, or it would occupy memory forever.
            until_ms = until_ms.min(reading.until_ms);
        }
        self.ends.set_client_deadline(at, until_ms);
    }

    /// A part of a request has arrived, and more follows. With sparse bodies, this shows that both sides are
    /// alive.
    pub fn await_more_of_request(&mut self, at: &mut impl Edge) {
        self.await_client(at);
        if (self.pace, self.ends.phase.begun()) == (Pace::Sparse, Some(Begun::Sent)) {
            let until_ms =
                at.turn().now_ms() + self.pace.response_body_timeout_ms(&self.ends.server);
            self.ends.set_member_deadline(at, until_ms);
        }
    }
}

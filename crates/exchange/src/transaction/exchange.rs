//! An exchange: a request, the member that serves it, and the response. An exchange belongs to a stream of a client
//! connection, never to the connection itself. It handles messages of any HTTP version.

use weir_http::message::Framing;

use crate::edge::Edge;
use crate::parts::encoding::Filters;
use crate::parts::inspection::{InspectedPart, InspectionState};
use crate::parts::pace::Pace;
use crate::parts::phase::Phase;
use crate::parts::reply::Reply;
use crate::parts::request::Request;
use crate::parts::request_decisions::DelayedDecision;
use crate::parts::stages::Stages;
use crate::parts::transaction_ends::TransactionEnds;
use crate::parts::wait_state::WaitState;

/// A request of at most this many bytes is kept for a retry.
pub const REPLAY_BYTES_MAX: usize = 16 * 1024;

/// An exchange: one request and its response.
pub struct Exchange {
    /// The client connection, the member connection, and facts about them.
    pub ends: TransactionEnds,
    /// Both the client and weir allow another request on the connection so far.
    pub keep_alive: bool,
    /// The client announced that this is its last request.
    pub client_closes: bool,
    /// Whether its bodies flow steadily or with pauses.
    pub pace: Pace,
    /// The request that is sent to the member.
    pub request: Request,
    /// The framing of the response body toward the client.
    pub response_framing: Framing,
    /// The client has ended its side of the stream. This matters if the exchange becomes a tunnel.
    pub client_ended: bool,
    /// The client of HTTP/1 has ended its sending side behind its request, and has left if nothing of its response flows.
    pub is_client_leaving: bool,
    /// State of the inspection by the web application firewall; `None`: nothing to inspect.
    pub inspection_state: Option<Box<InspectionState>>,
    /// The response so far, if the request is weir's own; `None`: it is a client's.
    pub reply: Option<Box<Reply>>,
    /// The stages that are left before it gets a member.
    pub stages: Stages,
    /// What stages need to know of a request that was delayed, or whose end was decided with its head.
    pub delayed_decision: Option<Box<DelayedDecision>>,
    /// The filters of the response.
    pub filters: Filters,
}

impl Exchange {
    /// Whether the exchange has ended.
    pub fn is_over(&self) -> bool {
        self.ends.over.is_some()
    }

    /// Whether body data of the request can be used at once. An HTTP/1 client is read only then, so no further data has
    /// to be held.
    pub fn takes_body(&self) -> bool {
        let has_place = self.ends.phase.connection().is_some() && !is_held_up(self);
        !self.request.is_whole() && (has_place || is_held_now(self))
    }

    /// Whether the client's stream carries data for a tunnel that the member has not accepted yet.
    pub fn awaits_tunnel(&self) -> bool {
        self.request.is_extended_connect && self.ends.phase.begun().is_none()
    }

    /// Whether this status must not be forwarded: a client that sent an extended CONNECT takes any 2xx for an accepted
    /// tunnel (RFC 8441 section 5).
    pub fn is_no_tunnel(&self, status: u16) -> bool {
        self.awaits_tunnel() && matches!(status, 200..=299)
    }
}

impl Exchange {
    /// The response head has arrived: records the times and drops the stored request. `is_failure`: the status counts
    /// as a failure of the member.
    #[inline]
    pub fn response_began(&mut self, at: &mut impl Edge, status: u16, is_failure: bool) {
        let now_us = at.turn().now_us();
        self.ends.account.times.note_first_byte(now_us);
        self.ends.account.status = status;
        at.recycle(std::mem::take(&mut self.request.bytes));
        self.request.let_go();
        self.ends.note_response(at, status, is_failure);
    }
}

/// Whether the body of the request is held until it is judged.
pub fn is_judged_whole(exchange: &Exchange) -> bool {
    matches!(exchange.inspection_state.as_deref(), Some(InspectionState::Reading(_)))
}

/// Whether the body of the request is held until it is judged, or will be if rules read it.
pub fn may_be_judged_whole(exchange: &Exchange) -> bool {
    match exchange.inspection_state.as_deref() {
        Some(InspectionState::Reading(_)) => true,
        Some(InspectionState::Judging(judging)) => {
            matches!(judging.of, InspectedPart::Head(announced) if announced.has_body())
                && judging.terms.holds_bodies()
        }
        _ => false,
    }
}

/// Whether arriving body data is held.
pub fn is_held_now(exchange: &Exchange) -> bool {
    matches!(exchange.ends.phase, Phase::Before(WaitState::ForBody))
}

/// Whether the body of the request waits for the verdict on the head of the response: its first bytes have yet to show whether it
/// is that of a gRPC call, which the verdict is needed for.
pub fn is_held_up(exchange: &Exchange) -> bool {
    let response = exchange.inspection_state.as_deref().and_then(InspectionState::response);
    response.is_some_and(|response| response.facts.look.is_some())
}

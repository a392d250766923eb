//! An exchange: a request, the member that serves it, and the response. An exchange belongs to a stream of a client
//! connection, never to the connection itself. It handles messages of any HTTP version.

use weir_http::message::Framing;

use crate::parts::encoding::Filters;
use crate::parts::inspection::ExchangeInspection;
use crate::parts::pace::Patience;
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
    /// How long both sides are waited for.
    pub patience: Patience,
    /// The request that is sent to the member.
    pub request: Request,
    /// The framing of the response body toward the client.
    pub response_framing: Framing,
    /// The client has ended its side of the stream. This matters if the exchange becomes a tunnel.
    pub client_ended: bool,
    /// The inspection by the web application firewall.
    pub inspection: ExchangeInspection,
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
    /// Whether body data of the request can be used at once. An HTTP/1 client is read only then, so no further data has
    /// to be held.
    pub fn takes_body(&self) -> bool {
        let has_place = self.ends.phase.connection().is_some() && !is_held_up(self);
        !self.request.is_whole() && (has_place || is_held_now(self))
    }
}

/// Whether arriving body data is held.
pub fn is_held_now(exchange: &Exchange) -> bool {
    matches!(exchange.ends.phase, Phase::Before(WaitState::ForBody))
}

/// Whether the body of the request waits for the verdict on the head of the response: its first bytes have yet to show whether it
/// is that of a gRPC call, which the verdict is needed for.
pub fn is_held_up(exchange: &Exchange) -> bool {
    exchange.inspection.response().is_some_and(|response| response.facts.look.is_some())
}

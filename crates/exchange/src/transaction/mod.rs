//! The open transactions of a worker: exchanges, relays, and the tunnels that they become.
//!
//! This type receives all events and passes them on. A relay ignores events of streams and of received data: it has no
//! streams, and reads nothing before it becomes a tunnel.

pub mod agreement;
mod attempts;
pub mod challenge;
mod claims;
pub mod connections;
pub mod early_data;
mod early_end;
pub mod exchange;
pub mod exchange_end;
pub mod filters;
mod hand_over;
mod inspection_results;
pub mod learned_persistence;
pub mod long_inspection;
pub mod lost_streams;
pub mod member_request;
pub mod member_search;
pub mod patience;
pub mod policy;
pub mod relay;
mod request_id;
pub mod request_inspection;
pub mod response;
pub mod response_data;
mod response_delivery;
pub mod response_inspection;
mod response_start;
mod response_verdict;
mod retry_on;
pub mod stages;
pub mod subrequest;
pub mod tracing;
pub mod trailers;
pub mod tunnel;
pub mod unusual;
pub mod upload;
pub mod verdict_waits;

use crate::arena::ExchangeKey;
use crate::edge::{Edge, Lag, Release, Side};
use crate::parts::caller::Caller;
use crate::parts::end::End;
use crate::parts::failure::{Loss, MemberFailure, Progress};
use crate::parts::inspection_job::InspectionJob;
use crate::parts::phase::Phase;
use crate::parts::pieces::Pieces;
use crate::parts::reply::Reply;
use crate::parts::transaction_ends::{LetOut, NextClientState, TransactionEnds};
use crate::termination::Termination;
use crate::transaction::exchange::Exchange;
use crate::transaction::relay::Relay;
use crate::transaction::tunnel::Tunnel;

/// An open transaction: a request, a relayed connection, or a tunnel.
pub enum Transaction {
    /// A request and its response.
    Http(Exchange),
    /// A relayed connection that has no connected member yet.
    Relay(Relay),
    /// Bytes in both directions.
    Tunnel(Tunnel),
}

impl Transaction {
    /// The part that all transactions have: the two connections and facts about them.
    pub fn ends(&self) -> &TransactionEnds {
        match self {
            Self::Http(exchange) => &exchange.ends,
            Self::Relay(relay) => &relay.ends,
            Self::Tunnel(tunnel) => &tunnel.ends,
        }
    }

    /// The part that all transactions have, mutable.
    pub fn ends_mut(&mut self) -> &mut TransactionEnds {
        match self {
            Self::Http(exchange) => &mut exchange.ends,
            Self::Relay(relay) => &mut relay.ends,
            Self::Tunnel(tunnel) => &mut tunnel.ends,
        }
    }

    /// The exchange, if the transaction is one.
    pub fn http(&self) -> Option<&Exchange> {
        match self {
            Self::Http(exchange) => Some(exchange),
            _ => None,
        }
    }

    /// The exchange, mutable, if the transaction is one.
    pub fn http_mut(&mut self) -> Option<&mut Exchange> {
        match self {
            Self::Http(exchange) => Some(exchange),
            _ => None,
        }
    }

    /// The tunnel, mutable, if the transaction is one.
    pub fn tunnel_mut(&mut self) -> Option<&mut Tunnel> {
        match self {
            Self::Tunnel(tunnel) => Some(tunnel),
            _ => None,
        }
    }

    /// Calls a function with the tunnel, if the transaction is one.
    pub fn with_tunnel<R: Default>(&mut self, act: impl FnOnce(&mut Tunnel) -> R) -> R {
        self.tunnel_mut().map_or_else(R::default, act)
    }

    /// The tunnel that an exchange or a relay becomes.
    pub fn into_tunnel(self) -> Self {
        match self {
            Self::Http(exchange) => Self::Tunnel(Tunnel::of(exchange)),
            Self::Relay(relay) => Self::Tunnel(Tunnel::of_relay(relay)),
            tunnel @ Self::Tunnel(_) => tunnel,
        }
    }

    /// The transaction for which this one, a request of weir's own, was made, and the reply for it; `None`: there is none.
    pub fn take_reply(&mut self) -> Option<(ExchangeKey, Option<Box<Reply>>)> {
        let exchange = self.http_mut()?;
        match exchange.ends.caller {
            Caller::Parent(parent) => Some((parent, exchange.reply.take())),
            Caller::Client(..) | Caller::Nobody => None,
        }
    }

    /// A relay's member is connected.
    pub fn connected(&mut self, at: &mut impl Edge) {
        if let Self::Relay(relay) = self {
            relay.connected(at);
        }
    }

    /// The transaction's wait is over: continues.
    pub fn resume(&mut self, at: &mut impl Edge) {
        match self {
            Self::Http(exchange) => exchange.resume(at),
            Self::Relay(relay) => relay.resume(at),
            // A timer that was set while it waited, and has no meaning for a tunnel.
            Self::Tunnel(_) => {}
        }
    }

    /// The transaction's wait for a member timed out.
    pub fn wait_timed_out(&mut self, at: &mut impl Edge) {
        match self {
            Self::Http(exchange) => exchange.respond(at, 503, Termination::QueueTimeout),
            Self::Relay(relay) => relay.truncate(at, Termination::QueueTimeout),
            Self::Tunnel(_) => debug_assert!(false, "a tunnel waits for nobody"),
        }
    }

    /// Whether the transaction is a tunnel.
    pub fn is_tunnel(&self) -> bool {
        matches!(self, Self::Tunnel(_))
    }

    /// Ends because the client is gone. The caller closes the client connection.
    pub fn abandon(&mut self, at: &mut impl Edge, why: Termination) {
        match self {
            Self::Http(exchange) => exchange.abandon(at, why, NextClientState::Nothing),
            Self::Relay(relay) => relay.abandon(at, why),
            Self::Tunnel(tunnel) => tunnel.abandon(at, why),
        }
    }

    /// Ends at once, in a way that shows the client that data is missing.
    pub fn truncate(&mut self, at: &mut impl Edge, why: Termination) {
        match self {
            Self::Http(exchange) => exchange.truncate(at, why),
            Self::Relay(relay) => relay.truncate(at, why),
            Self::Tunnel(tunnel) => tunnel.truncate(at, why),
        }
    }

    /// Data arrived on the client's stream, possibly with its end.
    pub fn client_data(&mut self, at: &mut impl Edge, data: &[u8], end: End<'_>) {
        match self {
            Self::Http(exchange) => {
                exchange.client_data(at, (data, &Pieces::whole(data.len())), end)
            }
            Self::Relay(_) => {}
            Self::Tunnel(tunnel) => tunnel.client_data(at, data, end),
        }
    }

    /// The client reset its stream without an error: it has its response and sends no more of the request.
    pub fn client_cut(&mut self, at: &mut impl Edge) {
        match self {
            Self::Http(exchange) => exchange.request_cut(at),
            Self::Relay(_) => {}
            Self::Tunnel(tunnel) => tunnel.client_ended(at),
        }
    }

    /// The client took everything that was queued for it.
    pub fn client_took(&mut self, at: &mut impl Edge) {
        match self {
            Self::Http(exchange) => {
                let Exchange { patience, ends, request, .. } = exchange;
                patience.client_takes_more(at, ends, request);
            }
            Self::Relay(_) => {}
            Self::Tunnel(tunnel) => tunnel.client_took(at),
        }
    }

    /// The client's windows let out some queued data. Returns whether more may be sent.
    pub fn client_let_out(&mut self, at: &mut impl Edge, sent: &LetOut) -> bool {
        match self {
            Self::Http(exchange) => exchange.client_let_out(at, sent),
            Self::Relay(_) => false,
            Self::Tunnel(tunnel) => tunnel.client_let_out(at, sent),
        }
    }

    /// A client with HTTP/1 or a relayed client has ended its sending side.
    pub fn client_finished(&mut self, at: &mut impl Edge) {
        match self {
            Self::Http(exchange) => exchange.client_finished(at),
            Self::Relay(relay) => relay.client_finished(at),
            Self::Tunnel(tunnel) => tunnel.client_ended(at),
        }
    }

    /// The deadline of the client's stream, or of its connection, has passed.
    pub fn client_timed_out(&mut self, at: &mut impl Edge) {
        self.ends_mut().clear_client_deadline(at);
        match self {
            Self::Http(exchange) => exchange.client_timed_out(at),
            Self::Relay(_) => {}
            Self::Tunnel(tunnel) => tunnel.timer(at),
        }
    }

    /// Data arrived on the member's stream, possibly with its end.
    pub fn member_data(&mut self, at: &mut impl Edge, data: &[u8], end: End<'_>) {
        match self {
            Self::Http(exchange) => {
                if matches!(exchange.ends.phase, Phase::Asked(_, Some(_))) {
                    let nothing = at.tools().scratch.take();
                    exchange.member_body(at, nothing, data, end);
                }
            }
            Self::Relay(_) => {}
            Self::Tunnel(tunnel) => tunnel.member_data(at, data, end),
        }
    }

    /// Whether the member has not taken all data. For an exchange, this restarts the member's deadline.
    pub fn is_member_backed_up(&mut self, at: &mut impl Edge) -> bool {
        match self {
            Self::Http(exchange) => exchange.patience.is_member_backed_up(at, &mut exchange.ends),
            Self::Relay(_) => false,
            Self::Tunnel(tunnel) => at.lag(&tunnel.ends, Side::Member) != Lag::None,
        }
    }

    /// The member took everything that was queued for it.
    pub fn member_took(&mut self, at: &mut impl Edge) {
        match self {
            Self::Http(exchange) => exchange.member_took(at),
            Self::Relay(_) => {}
            Self::Tunnel(tunnel) => tunnel.member_took(at),
        }
    }

    /// The member connection has failed and was closed.
    pub fn member_lost(&mut self, at: &mut impl Edge, loss: Loss) {
        match self {
            Self::Http(exchange) => exchange.member_lost(at, loss),
            Self::Relay(relay) => relay.member_lost(at, loss),
            Self::Tunnel(tunnel) => tunnel.member_lost(at, loss.reason),
        }
    }

    /// The member's stream has failed.
    pub fn stream_lost(&mut self, at: &mut impl Edge, why: MemberFailure, progress: Progress) {
        match self {
            Self::Http(exchange) => {
                let loss = exchange.ends.lose_stream(at, why, progress);
                exchange.member_lost(at, loss);
            }
            Self::Relay(_) => {}
            Self::Tunnel(tunnel) => {
                at.release(&mut tunnel.ends, Release::Drop);
                tunnel.member_lost(at, why);
            }
        }
    }
    /// An inspection is back that was elsewhere.
    pub fn inspection_returned(&mut self, at: &mut impl Edge, job: InspectionJob) {
        if let Self::Http(exchange) = self
            && exchange.inspection.returned(job)
        {
            exchange.resume(at);
        }
    }
}

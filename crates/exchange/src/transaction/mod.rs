//! Open transactions of a worker: requests, and the tunnels that some of them become.
//!
//! Events of all kinds come here; events of exchanges alone go to them. A relay has no stream on either side, and is not
//! read before it is a tunnel.

pub mod agreement;
pub mod aside;
pub mod asking;
pub mod authorisation;
pub mod compress;
pub mod early_data;
pub mod ending;
pub mod ends;
pub mod exchange;
mod handing;
pub mod inspect;
pub mod inspect_response;
pub mod learning;
mod login;
pub mod losing;
pub mod mirror;
mod naming;
pub mod patience;
pub mod policy;
pub mod receiving;
pub mod relay;
mod repeating;
pub mod response;
pub mod rewrite;
pub mod seeking;
pub mod sending;
pub mod stages;
pub mod tracing;
pub mod trailers;
pub mod tunnel;

use crate::edge::{Edge, Lag, Release, Side};
use crate::parts::end::End;
use crate::parts::ends::{After, Ends, LetOut};
use crate::parts::failure::{Loss, MemberFailure};
use crate::parts::pieces::Pieces;
use crate::termination::Termination;
use crate::transaction::exchange::Exchange;
use crate::transaction::relay::Relay;
use crate::transaction::tunnel::Tunnel;

/// An open transaction of a worker.
pub enum Transaction {
    /// A request and its response.
    Http(Exchange),
    /// A connection on its way to a member.
    Relay(Relay),
    /// Bytes both ways.
    Tunnel(Tunnel),
}

impl Transaction {
    /// The two connections.
    pub fn ends(&self) -> &Ends {
        match self {
            Self::Http(exchange) => &exchange.ends,
            Self::Relay(relay) => &relay.ends,
            Self::Tunnel(tunnel) => &tunnel.ends,
        }
    }

    /// The two connections.
    pub fn ends_mut(&mut self) -> &mut Ends {
        match self {
            Self::Http(exchange) => &mut exchange.ends,
            Self::Relay(relay) => &mut relay.ends,
            Self::Tunnel(tunnel) => &mut tunnel.ends,
        }
    }

    /// The exchange, if it is one.
    pub fn http(&self) -> Option<&Exchange> {
        match self {
            Self::Http(exchange) => Some(exchange),
            _ => None,
        }
    }

    /// The exchange, if it is one.
    pub fn http_mut(&mut self) -> Option<&mut Exchange> {
        match self {
            Self::Http(exchange) => Some(exchange),
            _ => None,
        }
    }

    /// The tunnel, if it is one.
    pub fn tunnel_mut(&mut self) -> Option<&mut Tunnel> {
        match self {
            Self::Tunnel(tunnel) => Some(tunnel),
            _ => None,
        }
    }

    /// Its wait is over, and it may continue.
    pub fn go_on(&mut self, at: &mut impl Edge) {
        match self {
            Self::Http(exchange) => exchange.go_on(at),
            Self::Relay(relay) => relay.go_on(at),
            // A timer for answers that have arrived since.
            Self::Tunnel(_) => {}
        }
    }

    /// Its wait for a member timed out.
    pub fn waited_in_vain(&mut self, at: &mut impl Edge) {
        match self {
            Self::Http(exchange) => exchange.respond(at, 503, Termination::QueueTimeout),
            Self::Relay(relay) => relay.truncate(at, Termination::QueueTimeout),
            Self::Tunnel(_) => debug_assert!(false, "a tunnel waits for nobody"),
        }
    }

    /// Whether it is a tunnel.
    pub fn is_tunnel(&self) -> bool {
        matches!(self, Self::Tunnel(_))
    }

    /// Its client is gone; the client connection is the caller's to close.
    pub fn abandon(&mut self, at: &mut impl Edge, why: Termination) {
        match self {
            Self::Http(exchange) => exchange.abandon(at, why, After::Nothing),
            Self::Relay(relay) => relay.abandon(at, why),
            Self::Tunnel(tunnel) => tunnel.abandon(at, why),
        }
    }

    /// It has to end now, so that its client notices that something is missing.
    pub fn truncate(&mut self, at: &mut impl Edge, why: Termination) {
        match self {
            Self::Http(exchange) => exchange.truncate(at, why),
            Self::Relay(relay) => relay.truncate(at, why),
            Self::Tunnel(tunnel) => tunnel.truncate(at, why),
        }
    }

    /// Data came on the client's stream, and perhaps its end.
    pub fn client_data(&mut self, at: &mut impl Edge, data: &[u8], end: End<'_>) {
        match self {
            Self::Http(exchange) => {
                exchange.client_data(at, (data, &Pieces::whole(data.len())), end)
            }
            Self::Relay(_) => {}
            Self::Tunnel(tunnel) => tunnel.client_data(at, data, end),
        }
    }

    /// The client has ended its stream short, since it knew the answer.
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
            Self::Http(exchange) => exchange.client_takes_more(at),
            Self::Relay(_) => {}
            Self::Tunnel(tunnel) => tunnel.client_took(at),
        }
    }

    /// Some of the data that waited for the client's windows was sent. Returns whether more may be sent.
    pub fn client_let_out(&mut self, at: &mut impl Edge, sent: &LetOut) -> bool {
        match self {
            Self::Http(exchange) => exchange.client_let_out(at, sent),
            Self::Relay(_) => false,
            Self::Tunnel(tunnel) => tunnel.client_let_out(at, sent),
        }
    }

    /// A client that has its connection for itself sends nothing more.
    pub fn client_finished(&mut self, at: &mut impl Edge) {
        match self {
            Self::Http(exchange) => exchange.client_finished(at),
            Self::Relay(relay) => relay.client_finished(at),
            Self::Tunnel(tunnel) => tunnel.client_ended(at),
        }
    }

    /// The deadline of the client has passed: of its stream, or of the connection that it has for itself.
    pub fn client_timed_out(&mut self, at: &mut impl Edge) {
        self.ends_mut().clear_client_deadline(at);
        match self {
            Self::Http(exchange) => exchange.client_timed_out(at),
            Self::Relay(_) => {}
            Self::Tunnel(tunnel) => tunnel.timer(at),
        }
    }

    /// Data came on the member's stream, and perhaps its end.
    pub fn member_data(&mut self, at: &mut impl Edge, data: &[u8], end: End<'_>) {
        match self {
            Self::Http(exchange) => exchange.member_data(at, data, end),
            Self::Relay(_) => {}
            Self::Tunnel(tunnel) => tunnel.member_data(at, data, end),
        }
    }

    /// Whether the member has yet to take something, for which it has its time from now on.
    pub fn is_member_backed_up(&mut self, at: &mut impl Edge) -> bool {
        match self {
            Self::Http(exchange) => exchange.is_member_backed_up(at),
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

    /// The member connection is of no use any more and has been closed.
    pub fn member_lost(&mut self, at: &mut impl Edge, loss: Loss) {
        match self {
            Self::Http(exchange) => exchange.member_lost(at, loss),
            Self::Relay(relay) => relay.member_lost(at, loss),
            Self::Tunnel(tunnel) => tunnel.member_lost(at, loss.reason),
        }
    }

    /// The member's stream is of no use any more.
    pub fn stream_lost(&mut self, at: &mut impl Edge, why: MemberFailure, is_unread: bool) {
        match self {
            Self::Http(exchange) => exchange.stream_lost(at, why, is_unread),
            Self::Relay(_) => {}
            Self::Tunnel(tunnel) => {
                at.release(&mut tunnel.ends, Release::Drop);
                tunnel.member_lost(at, why);
            }
        }
    }
}

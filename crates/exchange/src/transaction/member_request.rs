//! Sending a request to a member: its head, its body, timeouts.

use crate::edge::{Edge, Lag, Side};
use crate::parts::end::End;
use crate::parts::phase::Begun;
use crate::parts::pieces::Pieces;
use crate::transaction::exchange::Exchange;
use crate::transaction::lost_streams::watch_leaving_client;
use crate::transaction::stages::mirror;

impl Exchange {
    /// Sends the head of a request that has no body.
    pub fn send_request_head(&mut self, at: &mut impl Edge) {
        if self.ends.phase.connection().is_some() {
            let nothing = (&b""[..], &Pieces::whole(0));
            at.ask(&mut self.ends, &mut self.request, nothing, End::Data);
            self.request_handed_over(at);
        }
    }

    /// The connection to the member has the whole request: starts the timeout for the response.
    pub fn request_handed_over(&mut self, at: &mut impl Edge) {
        let Some(reach) = at.reach(&self.ends, &self.request) else {
            return;
        };
        let times = &mut self.ends.account.times;
        if self.request.is_whole() && times.asked_us == 0 && !reach.awaits_settings {
            times.asked_us = at.turn().now_us();
        }
        let is_head_awaited = self.request.is_whole() && self.ends.phase.begun().is_none();
        if !is_head_awaited || reach.is_connecting {
            return;
        }
        // While the client does not take interim responses, the member is not read: the client's timeout applies then,
        // not the member's.
        if self.ends.is_client_holding_up(at) {
            self.await_client(at);
        } else {
            self.ends.set_member_deadline(at, at.turn().now_ms() + reach.timeout_ms);
        }
    }

    /// The member has taken everything that was sent so far.
    pub fn member_took(&mut self, at: &mut impl Edge) {
        if self.request.is_whole() {
            self.ends.give_window(at);
            return self.request_handed_over(at);
        }
        if self.ends.phase.begun().is_none() {
            self.ends.clear_member_deadline(at);
        }
        self.request_goes_on(at);
    }

    /// Whether the member takes data more slowly than the client sends it. If so, sets the member's deadline. A member that is not
    /// read, because its response waits for a verdict, has none: it may be waiting for weir.
    pub fn is_member_backed_up(&mut self, at: &mut impl Edge) -> bool {
        let lag = at.lag(&self.ends, Side::Member);
        let is_paused = self.ends.phase.begun() == Some(Begun::Judging);
        if matches!(lag, Lag::Behind | Lag::Others) && !is_paused {
            let timeout_ms = self.pace.client_timeout_ms(&self.ends.server);
            self.ends.set_member_deadline(at, at.turn().now_ms() + timeout_ms);
        }
        lag != Lag::None
    }
}

/// Sends pieces of the body, and its end, to the member.
pub fn send_body_to_member(
    exchange: &mut Exchange,
    at: &mut impl Edge,
    (input, pieces): (&[u8], &Pieces),
    end: End<'_>,
) {
    let is_last = !matches!(end, End::No);
    exchange.request.receive(is_last);
    at.ask(&mut exchange.ends, &mut exchange.request, (input, pieces), end);
    if is_last {
        if exchange.ends.context.is_some() {
            mirror::send(exchange, at);
        }
        exchange.request_handed_over(at);
        if !exchange.ends.is_client_behind(at) {
            exchange.ends.clear_client_deadline(at);
            watch_leaving_client(exchange, at);
        }
    } else {
        exchange.await_more_of_request(at);
    }
    exchange.resume_receiving(at);
}

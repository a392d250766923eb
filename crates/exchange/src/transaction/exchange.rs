//! An exchange: a request, the member that serves it, and the response. An exchange belongs to a stream of a client
//! connection, never to the connection itself. It handles messages of any HTTP version.

use weir_config::snapshot::Maintenance;
use weir_core::retry::{FailedAttempt, Sent, may_retry};
use weir_http::edits::FieldEdits;
use weir_http::message::Framing;

use crate::edge::Edge;
use crate::parts::encoding::{Codings, Transforms};
use crate::parts::ends::Ends;
use crate::parts::failure::{Loss, MemberFailure};
use crate::parts::inspecting::Scrutiny;
use crate::parts::pace::Pace;
use crate::parts::request::Request;
use crate::termination::Termination;
use crate::transaction::losing::response_whole;
use crate::transaction::seeking::Found;
use crate::transaction::tracing::{note_failed, tell_anew};

/// A request of at most this many bytes is kept for a retry.
pub const REPLAY_BYTES_MAX: usize = 16 * 1024;

/// The status of a maintenance redirect: 302, temporary (RFC 9110 section 15.4.3).
const MAINTENANCE_REDIRECT: u16 = 302;

/// The phase of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The response head has not arrived.
    AwaitHead,
    /// The response head has arrived and is inspected with its body: nothing was sent to the client yet.
    Judge,
    /// The response head was sent to the client; the body follows.
    Respond,
    /// The response is complete here, but the client's HTTP/2 windows hold back the rest of it.
    Deliver {
        /// The termination reason after delivery.
        ends_as: Termination,
        /// Bytes that the client has sent since.
        unwanted_bytes: u64,
    },
}

/// An exchange: one request and its response.
pub struct Exchange {
    /// The client connection, the member connection, and facts about them.
    pub ends: Ends,
    /// Both the client and weir allow another request on the connection so far.
    pub keep_alive: bool,
    /// The client announced that this is its last request.
    pub client_closes: bool,
    /// The phase of this exchange.
    pub phase: Phase,
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
    /// Codings that the client accepts; `None`: responses are not compressed.
    pub codings: Option<Codings>,
    /// State of the inspection by the web application firewall; `None`: nothing to inspect.
    pub scrutiny: Option<Box<Scrutiny>>,
    /// Transforms that change or discard the body of the response.
    pub transforms: Option<Box<Transforms>>,
}

impl Exchange {
    /// Whether the exchange has ended.
    pub fn is_over(&self) -> bool {
        self.ends.over.is_some()
    }

    /// Whether body data of the request can be used at once. An HTTP/1 client is read only then, so no further data has
    /// to be held.
    pub fn takes_body(&self) -> bool {
        !self.request.is_whole && (self.ends.attempt.connection.is_some() || is_held_now(self))
    }

    /// Whether the client's stream carries data for a tunnel that the member has not accepted yet.
    pub fn awaits_tunnel(&self) -> bool {
        self.phase == Phase::AwaitHead && self.request.is_extended_connect
    }

    /// Whether this status must not be forwarded: a client that sent an extended CONNECT takes any 2xx for an accepted
    /// tunnel (RFC 8441 section 5).
    pub fn is_no_tunnel(&self, status: u16) -> bool {
        self.awaits_tunnel() && matches!(status, 200..=299)
    }

    /// Microseconds until the response head: the time spent outside the member, and the member's response time.
    pub fn times_us(&self) -> (u64, u64) {
        let member_us =
            self.ends.attempt.first_byte_us.saturating_sub(self.ends.attempt.connected_us);
        let all_us = self.ends.attempt.first_byte_us.saturating_sub(self.ends.account.begun_us);
        (all_us.saturating_sub(member_us), member_us)
    }
}

impl Exchange {
    /// Finds a member and a connection to it. Returns false if the exchange waits for a member, or has ended because no
    /// member is available.
    pub fn dispatch(&mut self, at: &mut impl Edge) -> bool {
        let need = self.request.need();
        let is_full = match self.ends.find_member(at, need) {
            Found::Member => {
                if self.codings.is_some() {
                    self.limit_reads(at);
                }
                return true;
            }
            Found::Waits => return false,
            Found::Nobody { is_full } => is_full,
        };
        let (status, termination) = self.ends.why_nobody();
        let instead = self.ends.tries.pool.settings().instead.maintenance.clone();
        let mut fields = FieldEdits::default();
        match instead.filter(|_| termination == Termination::NoMember && !is_full) {
            Some(Maintenance::Page(page)) => {
                let content_type = page.content_type.as_bytes();
                fields.add(b"Content-Type", |out| out.extend_from_slice(content_type));
                self.respond_with(at, status, termination, &fields, Some(&page.body));
            }
            Some(Maintenance::Redirect(to)) => {
                fields.add(b"Location", |out| out.extend_from_slice(&to));
                self.respond_adding(at, MAINTENANCE_REDIRECT, termination, fields);
            }
            None => self.respond(at, status, termination),
        }
        false
    }

    /// The member connection has failed and was closed: retries the request, or reports the failure to the client.
    pub fn member_lost(&mut self, at: &mut impl Edge, loss: Loss) {
        let Loss { reason, nothing_sent, unsent, is_counted, is_whole } = loss;
        self.ends.attempt.connection = None;
        self.ends.tries.failure = Some(reason);
        match self.phase {
            Phase::AwaitHead => {}
            Phase::Judge | Phase::Respond if is_whole => {
                return response_whole(self, at, reason);
            }
            // Without a body, and without a stream that frames it, a response is whole with its head.
            Phase::Respond if self.response_framing.is_empty() && self.ends.stream.is_none() => {
                return response_whole(self, at, reason);
            }
            Phase::Judge => {
                note_failed(&mut self.ends, at, reason, true);
                self.ends.leave_member(at, Some(reason));
                return self.respond(at, reason.status(), reason.termination());
            }
            Phase::Respond | Phase::Deliver { .. } => {
                note_failed(&mut self.ends, at, reason, true);
                self.ends.leave_member(at, Some(reason));
                return self.truncate(at, reason.termination());
            }
        }
        self.ends.attempt.first_byte_us = 0;
        let sent = match (nothing_sent, self.request.is_replayable()) {
            (true, _) => Sent::Nothing,
            (false, true) => Sent::Replayable,
            (false, false) => Sent::Consumed,
        };
        let attempt = FailedAttempt {
            idempotent: self.request.method.is_idempotent(),
            sent,
            response_started: self.ends.attempt.response_seen,
            reused_connection: self.ends.attempt.may_be_stale,
            tries_left: self.ends.tries.left(),
        };
        // A kept connection that closes says nothing about its member. So the request is sent to the same member on a
        // new connection; this counts neither as a try of another member nor against the retry budget.
        let stale = self.ends.attempt.may_be_stale && reason == MemberFailure::Abort;
        let repeat = reason != MemberFailure::Timeout
            && reason != MemberFailure::Malformed
            && (self.request.is_replayable() || !unsent.is_empty())
            && may_retry(&attempt)
            && (stale || self.ends.tries.pool.may_retry(at.turn().now_ms()));
        if stale && repeat {
            return self.retry_stale(at, unsent);
        }
        note_failed(&mut self.ends, at, reason, !nothing_sent);
        let is_blamed = !stale && !is_counted;
        self.ends.leave_member(at, is_blamed.then_some(reason));
        if !repeat {
            return self.respond(at, reason.status(), reason.termination());
        }
        if self.is_over() {
            return;
        }
        if !nothing_sent {
            tell_anew(self, at);
        }
        if self.dispatch(at) {
            self.resend(at, &unsent);
        }
    }

    /// Sends the request again on a new connection to the same member. Other requests of the failed connection share
    /// the new one.
    fn retry_stale(&mut self, at: &mut impl Edge, unsent: Vec<u8>) {
        let Some(member) = self.ends.attempt.member() else {
            return;
        };
        self.ends.account.retries += 1;
        self.ends.tries.pool.counters.retries.add(1);
        match at.connect(&mut self.ends, member, self.request.need(), true) {
            Ok(()) => {
                self.limit_reads(at);
                self.resend(at, &unsent);
            }
            Err(reason) => {
                note_failed(&mut self.ends, at, reason, true);
                self.ends.leave_member(at, Some(reason));
                if self.is_over() {
                    return;
                }
                tell_anew(self, at);
                self.ends.tries.failure = Some(reason);
                if !self.ends.tries.pool.may_retry(at.turn().now_ms()) {
                    return self.respond(at, reason.status(), reason.termination());
                }
                if self.dispatch(at) {
                    self.resend(at, &unsent);
                }
            }
        }
    }

    /// Sends the request on a new connection: `unsent` (the data that was queued for the old connection), or all of it.
    pub fn resend(&mut self, at: &mut impl Edge, unsent: &[u8]) {
        if self.ends.attempt.connection.is_none() {
            return;
        }
        at.ask_again(&mut self.ends, &mut self.request, unsent);
        self.request_handed_over(at);
        // The client may have been paused because the old connection was slow.
        if self.request.is_whole {
            if !self.is_over() && !self.is_member_backed_up(at) {
                self.ends.give_window(at);
            }
        } else if !self.is_member_backed_up(at) {
            self.request_goes_on(at);
        }
    }

    /// The response head has arrived: records the times and drops the stored request. `is_failure`: the status counts
    /// as a failure of the member.
    #[inline]
    pub fn response_began(&mut self, at: &mut impl Edge, status: u16, is_failure: bool) {
        let now_us = at.turn().now_us();
        self.ends.attempt.note_first_byte(now_us);
        self.ends.account.status = status;
        at.recycle(std::mem::take(&mut self.request.bytes));
        self.request.let_go();
        self.ends.note_response(at, status, is_failure);
    }
}

/// Whether the body of the request is held until it is judged.
pub fn is_judged_whole(exchange: &Exchange) -> bool {
    matches!(exchange.scrutiny.as_deref(), Some(Scrutiny::Reading(_)))
}

/// Whether arriving body data is held.
pub fn is_held_now(exchange: &Exchange) -> bool {
    is_judged_whole(exchange) && !exchange.ends.parked.waits()
}

//! One transaction: a request, the member that serves it, the response. It belongs to a stream of a
//! client connection, never to the connection itself, and speaks of messages, not of a version of
//! HTTP.

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
use crate::transaction::seeking::Found;
use crate::transaction::tracing::{note_failed, tell_anew};

/// A request is kept for sending it again as long as it is not larger than this.
pub const REPLAY_BYTES_MAX: usize = 16 * 1024;

/// The status of the maintenance redirect: temporary (RFC 9110 section 15.4.3).
const MAINTENANCE_REDIRECT: u16 = 302;

/// How far a transaction has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// No response head has come yet.
    AwaitHead,
    /// The response head has come, and waits with its body to be judged: nothing of it has gone out.
    Judge,
    /// The response head went to the client, its body follows.
    Respond,
    /// The response has come to its end, and the client has yet to let the rest of it out (HTTP/2).
    Deliver {
        /// How it ends then.
        ends_as: Termination,
        /// Bytes that the client has sent meanwhile.
        unwanted_bytes: u64,
    },
}

/// One transaction.
pub struct Exchange {
    /// The two connections that it is between.
    pub ends: Ends,
    /// The client allows another request, and so do we so far.
    pub keep_alive: bool,
    /// The client said that this is its last request.
    pub client_closes: bool,
    /// How far it has come.
    pub phase: Phase,
    /// How steadily its bodies come.
    pub pace: Pace,
    /// The request on its way.
    pub request: Request,
    /// How the response body is framed towards the client.
    pub response_framing: Framing,
    /// The client of a stream has ended its half, which counts if this becomes a tunnel.
    pub client_ended: bool,
    /// Codings that the client accepts, where responses are compressed.
    pub codings: Option<Codings>,
    /// How far the web application firewall is with it, where that has something to do.
    pub scrutiny: Option<Box<Scrutiny>>,
    /// Transforms that change or drop the body of the response.
    pub transforms: Option<Box<Transforms>>,
}

impl Exchange {
    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.ends.over.is_some()
    }

    /// Whether the request body can be forwarded. A client on its own connection is read only then, so further data is not
    /// held.
    pub fn takes_body(&self) -> bool {
        !self.request.is_whole && (self.ends.attempt.connection.is_some() || is_held_now(self))
    }

    /// Whether data of the client's stream belongs to a tunnel that the member has yet to agree to.
    pub fn awaits_tunnel(&self) -> bool {
        self.phase == Phase::AwaitHead && self.request.is_extended_connect
    }

    /// Whether a response could be taken for a tunnel without the member's agreement: after an extended CONNECT, any 2xx
    /// means a tunnel (RFC 8441 section 5).
    pub fn is_no_tunnel(&self, status: u16) -> bool {
        self.awaits_tunnel() && matches!(status, 200..=299)
    }

    /// The time until the response head without the member's part, and the member's part.
    pub fn times_us(&self) -> (u64, u64) {
        let member_us =
            self.ends.attempt.first_byte_us.saturating_sub(self.ends.attempt.connected_us);
        let all_us = self.ends.attempt.first_byte_us.saturating_sub(self.ends.account.begun_us);
        (all_us.saturating_sub(member_us), member_us)
    }
}

impl Exchange {
    /// Finds a member and a connection to it. Returns false if the exchange waits for a member, or has ended because there
    /// is none.
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

    /// The member connection of an exchange is of no use any more and has been closed. The request
    /// is sent elsewhere, or the client learns of the failure.
    pub fn member_lost(&mut self, at: &mut impl Edge, loss: Loss) {
        let Loss { reason, nothing_sent, unsent, is_counted } = loss;
        self.ends.attempt.connection = None;
        self.ends.tries.failure = Some(reason);
        match self.phase {
            Phase::AwaitHead => {}
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
        // A kept connection that ends says nothing about its member: a new one to the same member, which is
        // no try of another and no part of the budget for those.
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
        self.ends.account.retries += 1;
        self.ends.tries.pool.counters.retries.add(1);
        if !nothing_sent {
            tell_anew(self, at);
        }
        if self.dispatch(at) {
            self.resend(at, &unsent);
        }
    }

    /// Sends the request once more, on a new connection to the member that it occupies already. Others that were on
    /// the old one share that.
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

    /// Sends the request on a new connection: the data that was queued for the old one, or all of it.
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

    /// The response head has come: the timers of the log stand, the request is not needed any more. `is_failure`: its status
    /// counts against the member.
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

/// Whether the body of an exchange is held until it was judged.
pub fn is_judged_whole(exchange: &Exchange) -> bool {
    matches!(exchange.scrutiny.as_deref(), Some(Scrutiny::Reading(_)))
}

/// Whether body data that arrives now is held.
pub fn is_held_now(exchange: &Exchange) -> bool {
    is_judged_whole(exchange) && !exchange.ends.parked.waits()
}

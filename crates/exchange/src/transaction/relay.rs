//! Relayed connections until a member is connected. Then they become tunnels.
//!
//! Before the member is connected, at most one read is taken from the client; so another member can be tried without a
//! loss. A connection that breaks is passed on as a reset: a part must not look like the whole.

use std::rc::Rc;

use weir_core::policy::{Decision, End, PoolChoice};

use crate::edge::{Edge, Release};
use crate::local::pool::Preference;
use crate::parts::account::Account;
use crate::parts::arrival::{Arrival, Registration};
use crate::parts::caller::Caller;
use crate::parts::failure::{Loss, MemberFailure};
use crate::parts::hand_over::DecidedOrHandedOver;
use crate::parts::phase::Phase;
use crate::parts::request::{ConnectionChoice, ConnectionNeed};
use crate::parts::request_decisions::EndWithoutMember;
use crate::parts::stream_end::StreamEnd;
use crate::parts::transaction_ends::{NextClientState, TransactionEnds};
use crate::parts::tries::Tries;
use crate::shared::counters::VirtualServerCounters;
use crate::termination::Termination;
use crate::transaction::member_search::MemberSearchResult;
use crate::transaction::policy::consider;

/// A reused connection would contain another client's dialogue.
const NEED: ConnectionNeed = ConnectionNeed {
    wanted: ConnectionChoice::Fresh,
    is_repeatable: false,
    is_tunnel: false,
    has_body: false,
    is_whole: true,
    is_sent: false,
    is_replayable: true,
};

/// A relayed connection without a connected member.
pub struct Relay {
    /// The two connections.
    pub ends: TransactionEnds,
    /// Policies or limits that end the connection.
    cut: Option<RelayEnd>,
}

/// How a connection without a member ends.
#[derive(Clone, Copy)]
struct RelayEnd {
    why: Termination,
    must_reset: bool,
}

impl RelayEnd {
    fn of(ending: EndWithoutMember, decision: &Decision) -> Self {
        match ending {
            EndWithoutMember::Policy => {
                let must_reset = matches!(decision.end, Some(End::Reset));
                Self { why: Termination::Policy, must_reset }
            }
            EndWithoutMember::Closed | EndWithoutMember::Limited { .. } => {
                Self { why: Termination::RateLimit, must_reset: false }
            }
            EndWithoutMember::Failed
            | EndWithoutMember::Blocked
            | EndWithoutMember::Challenge
            | EndWithoutMember::Misdirected
            | EndWithoutMember::Overloaded => {
                debug_assert!(false, "there is no request of which this could be said");
                Self { why: Termination::PolicyFailed, must_reset: true }
            }
        }
    }
}

impl Relay {
    /// Begins a relayed connection to the pool at this index, or to another pool selected by policies.
    pub fn begin(
        at: &mut impl Edge,
        arrival: &Arrival<'_>,
        registration: Registration,
        pool: usize,
    ) -> Self {
        let server = arrival.server;
        let (pool, preference, context, cut) = match &server.traffic {
            None => (server.pool.now(), Preference::Any, None, None),
            Some(traffic) => {
                let mut decision: Box<Decision> = at.tools().decision.take().unwrap_or_default();
                decision.pool = Some(PoolChoice::One(pool as u32));
                let course = consider(at, arrival, traffic, &mut decision, None);
                let found = match course {
                    DecidedOrHandedOver::Decided(found) => {
                        let cut = found.ending.map(|ending| RelayEnd::of(ending, &decision));
                        let pool = traffic.pool(found.pool);
                        (pool, found.preference, found.context, cut)
                    }
                    DecidedOrHandedOver::HandedOver(_) => {
                        let cut = RelayEnd::of(EndWithoutMember::Failed, &decision);
                        (server.pool.now(), Preference::Any, None, Some(cut))
                    }
                };
                decision.clear();
                at.tools().decision = Some(decision);
                found
            }
        };
        let turn = at.turn();
        if cut.is_none() {
            pool.note_request(turn.now_ms());
        }
        let Registration { key, client, stream, logged, log_request } = registration;
        let ends = TransactionEnds {
            key,
            over: None,
            caller: Caller::Client(client, stream),
            is_member_stopped: false,
            tries: Tries::new(pool, preference),
            phase: Phase::START,
            server: Rc::clone(server),
            context,
            account: Account::begin(turn.now_us(), logged, log_request),
        };
        Self { ends, cut }
    }

    /// Connects to a member, unless the relay has ended.
    pub fn resume(&mut self, at: &mut impl Edge) {
        match self.cut.take() {
            None => self.find_member(at),
            Some(RelayEnd { why, must_reset }) => {
                self.end(at, why, NextClientState::Cut { termination: why, must_reset });
            }
        }
    }

    /// Finds a member, and opens a connection to it.
    fn find_member(&mut self, at: &mut impl Edge) {
        match self.ends.find_member(at, NEED) {
            MemberSearchResult::Member | MemberSearchResult::Waits => {}
            MemberSearchResult::Nobody { .. } => {
                let (_, why) = self.ends.why_nobody();
                self.truncate(at, why);
            }
        }
    }

    /// The connection to the member is open.
    pub fn connected(&mut self, at: &mut impl Edge) {
        let clock = at.turn().clock;
        let ends = &mut self.ends;
        ends.account.times.connected_us = clock.now_us();
        if let Some(member) = ends.phase.member() {
            let live = &ends.tries.pool.members[member as usize].live;
            if ends.tries.pool.is_timed() {
                let elapsed_us = clock.now_us().saturating_sub(ends.account.times.try_us);
                live.note_response_time(clock.now_ms(), elapsed_us, false);
            }
            live.mark_success(clock.now_ms());
            if let Some(context) = &mut ends.context {
                let stickiness = context.stickiness.as_ref();
                context.kept = stickiness.map(|it| it.count(member, &ends.server.counters));
            }
        }
        ends.over = Some(NextClientState::Tunnel { has_member_ended: false });
    }

    /// The connection to the member could not be opened. Nothing was read from the client, so another member can
    /// be tried.
    pub fn member_lost(&mut self, at: &mut impl Edge, loss: Loss) {
        let (ends, reason) = (&mut self.ends, loss.reason);
        ends.phase.take_link();
        ends.tries.failure = Some(reason);
        let may_repeat = !matches!(reason, MemberFailure::Timeout | MemberFailure::Malformed)
            && ends.tries.left() > 0
            && ends.tries.pool.may_retry(at.turn().now_ms());
        ends.release_member(at, (!loss.is_counted).then_some(reason));
        if !may_repeat {
            return self.truncate(at, reason.termination());
        }
        self.find_member(at);
    }

    /// The client has ended its sending side. It may still wait for the member's data.
    pub fn client_finished(&mut self, at: &mut impl Edge) {
        if self.ends.gives_up_its_place() {
            self.end(at, Termination::ClientAbort, NextClientState::Gone { must_reset: false });
        }
    }

    /// Ends with a reset, so that the part does not look complete.
    pub fn truncate(&mut self, at: &mut impl Edge, why: Termination) {
        self.end(at, why, NextClientState::Broken { must_reset: true });
    }

    /// Ends because the client is gone. The caller closes the client connection.
    pub fn abandon(&mut self, at: &mut impl Edge, why: Termination) {
        self.end(at, why, NextClientState::Nothing);
    }

    fn end(&mut self, at: &mut impl Edge, why: Termination, after: NextClientState) {
        at.release(&mut self.ends, Release::Reset { is_told: false });
        self.ends.release_member(at, None);
        if self.ends.over.is_none() {
            count_relay(&self.ends.server.counters, why);
            self.ends.end(at, why, StreamEnd::of_tunnel(why));
            self.ends.over = Some(after);
        }
    }
}

/// Counts how a relayed connection ended, or why it did not begin.
pub fn count_relay(counters: &VirtualServerCounters, termination: Termination) {
    let counter = match termination {
        Termination::Complete => &counters.relays_complete,
        Termination::ClientAbort | Termination::ClientTimeout => &counters.relays_client_abort,
        Termination::MemberAbort | Termination::MemberTimeout => &counters.relays_member_abort,
        Termination::IdleTimeout => &counters.relays_idle_timeout,
        Termination::NoMember => &counters.relays_no_member,
        Termination::MemberConnect => &counters.relays_member_connect,
        Termination::QueueTimeout => &counters.relays_queue_timeout,
        Termination::HelloTimeout => &counters.relays_hello_timeout,
        Termination::ClientMalformed => &counters.relays_client_malformed,
        Termination::UnknownServerName => &counters.relays_unknown_server_name,
        Termination::MemberDown => &counters.relays_member_down,
        Termination::Operator => &counters.relays_operator,
        Termination::Stopped => &counters.relays_stopped,
        // These are counted elsewhere: refused and limited connections, handshakes.
        _ => return,
    };
    counter.add(1);
}

//! Policies, limits and persistence of a request: carries out the decisions.

use std::rc::Rc;

use weir_core::expression::{Evaluation, Facts, MemberFacts, ResponseFacts};
use weir_core::policy::{Decision, RewriteError};
use weir_http::edits::FieldEdits;
use weir_http::message::{ResponseHead, Scheme};

use crate::edge::Edge;
use crate::local::around::Known;
use crate::local::client_address::tell_member;
use crate::local::key_limits::LimitPlace;
use crate::local::pool::{LocalPool, Preference};
use crate::local::stickiness::{Kept, Stickiness};
use crate::local::table::LocalServer;
use crate::local::traffic::{Traffic, Verdict};
use crate::parts::arrival::Arrival;
use crate::parts::considered::{Considered, Ending};
use crate::parts::handed_over::{Brought, Course};
use crate::parts::identity::Identity;
use crate::parts::notice::Notice;
use crate::parts::pending::Pending;
use crate::parts::remembered::Remembered;
use crate::parts::tools::Tools;
use crate::parts::witness::{Decided, Step};
use crate::shared::sticky::Sticky;
use crate::transaction::exchange::Exchange;
use crate::transaction::filters::rewrite;
use crate::transaction::handing::hand_over;
use crate::transaction::learning::learn;
use crate::transaction::naming::{Named, identify};
use crate::transaction::stages::login::ask;

/// Decides about a request of a virtual server with settings that concern requests. `brought`: data from other virtual
/// servers that have handed the request over.
pub fn consider(
    at: &mut impl Edge,
    arrival: &Arrival<'_>,
    traffic: &Traffic,
    decision: &mut Decision,
    mut brought: Option<Box<Brought>>,
) -> Course {
    let server = arrival.server;
    let turn = at.turn();
    let around = traffic.around((at.tools().sources, turn.clock), Known::default());
    let mut facts = arrival.facts(&around);
    facts.unix_s = traffic.reads_tokens.then(|| (at.tools().sources.unix_s)());
    let mut scratch = at.tools().scratch.take();
    let mut fields = traffic.fields();
    let mut evaluation = fields.begin(facts);
    let mut held = std::mem::take(&mut at.tools().limit_places);
    take_what_is_brought(brought.as_deref_mut(), decision, &mut held);
    let draw = if traffic.draws { at.tools().draw() } else { 0 };
    let scratches = (&mut *scratch, &mut held, draw);
    let verdict = match arrival.is_misdirected {
        true => traffic.refuse_misdirected(&facts, &mut evaluation, decision),
        false => {
            let (live, clock) = (&server.live, turn.clock);
            traffic.decide(&facts, &mut evaluation, live, clock, decision, scratches)
        }
    };
    at.note(Step::Decided(Decided {
        arrival,
        traffic,
        facts: &facts,
        evaluation: &mut evaluation,
        decision,
        verdict: &verdict,
    }));
    if let Verdict::Forward(_) = verdict {
        tell_about_client(arrival, traffic, (&facts, brought.as_deref()), decision, &mut scratch);
    }
    at.tools().scratch.give(scratch);
    let to = match verdict {
        Verdict::HandedOver { to, .. } => Some(to),
        _ => None,
    };
    let named = match to {
        None => identify(arrival, decision, at.tools()),
        Some(_) => Named::default(),
    };
    traffic.count(turn.worker, decision);
    tell_lines(at, decision);
    let (mut considered, stickiness) = carry_out(at, server, verdict);
    considered.request_number = named.number;
    server.counters.requests_unauthenticated.add(u64::from(decision.authentication.is_refused));
    let known = (&facts, &mut evaluation);
    let pending = wait_for(at, (traffic, arrival), known, decision, &mut considered, &mut brought);
    let user = if pending.is_some() { evaluation.user() } else { b"" };
    if let (Some(to), Some(Ending::Policy)) = (to, considered.ending) {
        let mut goes = brought.take().unwrap_or_default();
        goes.limit_places = held;
        goes.not_before_us = considered.not_before_us;
        let goes = (goes, pending.unwrap_or_default(), user);
        return match hand_over(at, arrival, to, decision, goes) {
            Some(over) => Course::HandedOver(over),
            None => Course::Decided(Considered { ending: Some(Ending::Failed), ..considered }),
        };
    }
    let kept = (named, user, pending.unwrap_or_default(), around.known());
    let of = (&facts, decision, brought.as_deref_mut());
    keep(at.tools(), arrival, traffic, of, (stickiness, &mut held), kept, &mut considered);
    at.tools().limit_places = held;
    Course::Decided(considered)
}

/// Earlier decisions that stay valid after a hand-over.
fn take_what_is_brought(
    brought: Option<&mut Brought>,
    decision: &mut Decision,
    held: &mut Vec<LimitPlace>,
) {
    let Some(brought) = brought else { return };
    debug_assert!(held.is_empty(), "what it holds was kept apart");
    std::mem::swap(&mut brought.limit_places, held);
    std::mem::swap(&mut brought.response, &mut decision.response);
}

/// Adds facts about the client to the request for the member, and removes weir's own cookies.
fn tell_about_client(
    arrival: &Arrival<'_>,
    traffic: &Traffic,
    (facts, brought): (&Facts<'_>, Option<&Brought>),
    decision: &mut Decision,
    scratch: &mut Vec<u8>,
) {
    let settings = &*arrival.server.settings().client_address;
    let settings = (settings, &arrival.client_address().trust);
    let changed = brought.map(|brought| &*brought.asked_for).filter(|asked| !asked.is_empty());
    let asked = changed.unwrap_or_else(|| arrival.head.authority(arrival.input));
    tell_member(settings, arrival.peer(), (facts, asked), &mut decision.request, scratch);
    if traffic.rewrites_bodies || !decision.body_edits.is_empty() {
        rewrite::ask_for_plain(arrival.server, facts, &mut decision.request.fields, scratch);
    }
    let passed = brought.iter().flat_map(|brought| &brought.passed);
    for before in passed.filter_map(|server| server.traffic.as_ref()) {
        before.hide_cookies(facts, decision, scratch);
    }
}

/// The checks for which the request waits, including earlier ones; see [`ask`]. If they are not made, drops the
/// decisions that depend on them.
fn wait_for(
    at: &mut impl Edge,
    of: (&Traffic, &Arrival<'_>),
    known: (&Facts<'_>, &mut Evaluation<'_>),
    decision: &mut Decision,
    considered: &mut Considered,
    brought: &mut Option<Box<Brought>>,
) -> Option<Pending> {
    let counters = &of.1.server.counters;
    let is_delayed = considered.not_before_us > at.turn().now_us();
    counters.requests_delayed.add(u64::from(is_delayed));
    let mut waits_for = Pending::default();
    if let Some(brought) = brought {
        considered.not_before_us = considered.not_before_us.max(brought.not_before_us);
        waits_for = std::mem::take(&mut brought.pending);
    }
    let is_let_in = waits_for.is_settled();
    let pending = ask(at, of, known, decision, considered, waits_for);
    if pending.is_none() {
        decision.response.clear();
        decision.body_edits.clear();
    }
    if let (None, false, Some(brought)) = (&pending, is_let_in, brought) {
        // The user at the virtual server of the listener is not verified.
        brought.user = Box::default();
        brought.marks.clear();
    }
    let is_overloaded = considered.ending == Some(Ending::Overloaded);
    counters.password_checks_refused.add(u64::from(is_overloaded));
    pending
}

/// Carries out a verdict for its request, and returns the client's persistence.
fn carry_out(
    at: &mut impl Edge,
    server: &LocalServer,
    verdict: Verdict,
) -> (Considered, Option<Stickiness>) {
    let counters = &server.counters;
    let mut considered = Considered {
        pool: server.settings().pool,
        preference: Preference::Any,
        not_before_us: 0,
        request_number: 0,
        remembered: None,
        ending: None,
    };
    let mut stickiness = None;
    match verdict {
        Verdict::Forward(route) => {
            considered.pool = route.pool;
            considered.preference = route.preference;
            considered.not_before_us = route.not_before_us;
            stickiness = route.stickiness;
        }
        Verdict::HandedOver { not_before_us, .. } => {
            considered.not_before_us = not_before_us;
            considered.ending = Some(Ending::Policy);
        }
        Verdict::End { not_before_us } => {
            considered.not_before_us = not_before_us;
            let ended = match server.is_tcp {
                true => &counters.connections_ended_by_policy,
                false => &counters.requests_ended_by_policy,
            };
            ended.add(1);
            considered.ending = Some(Ending::Policy);
        }
        Verdict::Limited { retry_after_s } => {
            counters.requests_limited.add(1);
            considered.ending = Some(Ending::Limited { retry_after_s });
        }
        Verdict::Misdirected => considered.ending = Some(Ending::Misdirected),
        Verdict::LimitClosed => {
            let limited = match server.is_tcp {
                true => &counters.connections_limited,
                false => &counters.requests_limited,
            };
            limited.add(1);
            considered.ending = Some(Ending::Closed);
        }
        Verdict::Failed(error) => {
            counters.rewrites_failed.add(1);
            at.tell(Notice::Unsendable { server: &server.live.name, why: why_unsendable(error) });
            considered.ending = Some(Ending::Failed);
        }
    }
    (considered, stickiness)
}

/// Keeps the data of a request that its response needs, if any.
fn keep(
    tools: &mut Tools,
    arrival: &Arrival<'_>,
    traffic: &Traffic,
    (facts, decision, brought): (&Facts<'_>, &mut Decision, Option<&mut Brought>),
    (stickiness, held): (Option<Stickiness>, &mut Vec<LimitPlace>),
    (named, user, pending, known): (Named, &[u8], Pending, Known),
    considered: &mut Considered,
) {
    let server = arrival.server;
    let Pending { checks, asks, mirrors } = pending;
    let is_unchecked = !checks.is_empty() || !asks.is_empty();
    // Rules do not see misdirected requests.
    let is_for_rules = traffic.has_response_rules && considered.ending != Some(Ending::Misdirected);
    let has_rules_to_note = tools.notes_rules && !decision.followed.is_empty();
    let learns = stickiness.as_ref().is_some_and(|it| it.sticky.learn().is_some());
    let is_asked_again = is_for_rules || learns;
    let is_remembered = stickiness.is_some()
        || has_rules_to_note
        || !named.taken.is_empty()
        || named.traced.is_some()
        || !held.is_empty()
        || !user.is_empty()
        || is_unchecked
        || mirrors.is_some()
        || brought.is_some()
        || is_for_rules
        || server.http.rewrite_location
        || !decision.response.is_empty()
        || !decision.marks.is_empty()
        || !decision.body_edits.is_empty();
    if !is_remembered {
        return;
    }
    let mut remembered = tools.take_remembered();
    remembered.take(decision, stickiness);
    remembered.is_secure = arrival.tls().is_some();
    remembered.request_id = named.taken;
    remembered.traced = named.traced;
    remembered.mirrors = mirrors;
    if has_rules_to_note {
        remembered.followed.extend_from_slice(&decision.followed);
    }
    std::mem::swap(&mut remembered.limit_places, held);
    let mut asked_for = Vec::new();
    let mut entered_as = Box::default();
    if let Some(brought) = brought {
        entered_as = std::mem::take(&mut brought.user);
        asked_for = keep_brought(&mut remembered, brought);
    }
    // A pending check needs its request to be kept, or nothing would wait for the result.
    let is_named = !user.is_empty() || !entered_as.is_empty();
    if is_unchecked || is_named || is_asked_again && facts.unix_s.is_some() {
        let (user, unix_s) = (user.into(), facts.unix_s);
        let identity = Identity { user, entered_as, unix_s, checks, asks };
        remembered.identity = Some(Box::new(identity));
    }
    if is_asked_again {
        remembered.keep_request(facts, arrival.tls().cloned(), known);
    }
    if server.http.rewrite_location && considered.ending.is_none() {
        let is_secure = traffic.pool(considered.pool).settings().tls.is_some();
        let member = if is_secure { Scheme::Https } else { Scheme::Http };
        remembered.names.take((facts, &asked_for), member, &mut decision.request);
    }
    considered.remembered = Some(remembered);
}

/// Stores data that a request brings from other virtual servers. Returns the host that the client requested, if rules
/// have changed it.
fn keep_brought(remembered: &mut Remembered, brought: &mut Brought) -> Vec<u8> {
    remembered.entered_at = brought.entered_at().cloned();
    remembered.marks = brought.marks_with(&remembered.marks);
    let later = std::mem::replace(&mut remembered.followed, std::mem::take(&mut brought.followed));
    remembered.followed.extend(later);
    std::mem::swap(&mut remembered.request_names, &mut brought.names);
    std::mem::take(&mut brought.asked_for)
}

/// Logs the lines that policies have written.
pub fn tell_lines(at: &mut impl Edge, decision: &Decision) {
    for line in decision.messages.iter() {
        at.tell(Notice::PolicyLine(line));
    }
}

/// Facts about a member for rules that read the response.
fn member_facts(pool: &LocalPool, member: u32) -> Option<MemberFacts<'_>> {
    let settings = pool.settings();
    let found = settings.members.get(member as usize)?;
    let name = found.name.as_deref().unwrap_or(&found.label);
    Some(MemberFacts { address: found.address.socket(), name, pool: &settings.name })
}

fn why_unsendable(error: RewriteError) -> &'static str {
    match error {
        RewriteError::Path => "the new path is not a valid path, or has a dot-segment",
        RewriteError::Query => "the new query has characters that may not stand there",
        RewriteError::Host => "the new host is not a valid host",
        RewriteError::Length => "the new text is longer than any head may be",
    }
}

impl Exchange {
    /// Stores in `edits` the changes to the response: those decided with the request, those of rules for responses, and
    /// the persistence cookie. Returns the decision of a rule that answers instead of the member.
    pub fn edit_response(
        &mut self,
        at: &mut impl Edge,
        head: &ResponseHead,
        input: &[u8],
        edits: &mut FieldEdits,
    ) -> Option<Box<Decision>> {
        edits.clear();
        let mut remembered = self.ends.remembered.take()?;
        remembered.forget_what_is_for_the_unchecked();
        let mut answer = None;
        let server = Rc::clone(&self.ends.server);
        let member = self.ends.phase.member();
        std::mem::swap(edits, &mut remembered.response);
        if let Some(traffic) = server.traffic.as_ref().filter(|traffic| traffic.has_response_rules)
        {
            let mut decision = at.tools().response_decision.take().unwrap_or_default();
            std::mem::swap(edits, &mut decision.response);
            std::mem::swap(&mut remembered.marks, &mut decision.marks);
            std::mem::swap(&mut remembered.body_edits, &mut decision.body_edits);
            let moment = (at.tools().sources, at.turn().clock);
            let around = traffic.around(moment, remembered.known());
            let member = member.and_then(|member| member_facts(&self.ends.tries.pool, member));
            let response = ResponseFacts { head, input, member };
            if let Some(facts) = remembered.facts(response, &around) {
                let mut fields = traffic.fields();
                let mut evaluation = fields.begin(facts);
                evaluation.set_user(remembered.user());
                decision.follow_response(&traffic.settings().policies, &mut evaluation, &facts);
            }
            traffic.count(at.turn().worker, &decision);
            if at.tools().notes_rules {
                remembered.followed.extend_from_slice(&decision.followed);
            }
            tell_lines(at, &decision);
            if decision.is_uncompressed {
                self.filters.codings = None;
            }
            std::mem::swap(edits, &mut decision.response);
            std::mem::swap(&mut remembered.marks, &mut decision.marks);
            std::mem::swap(&mut remembered.body_edits, &mut decision.body_edits);
            if decision.end.is_some() {
                answer = Some(decision);
            } else {
                decision.clear();
                at.tools().response_decision = Some(decision);
            }
        }
        // A response without bytes is one of weir's own.
        if let (true, Some(member), false) =
            (server.http.rewrite_location, member, input.is_empty())
        {
            let address = &self.ends.tries.pool.settings().members[member as usize].address;
            remembered.names.change_location(head, input, address, edits);
        }
        if remembered.stickiness.is_some()
            && let Some(member) = member
        {
            remember(&server, &mut remembered, member, edits);
            if let (Some(traffic), false) = (&server.traffic, input.is_empty()) {
                let from = member_facts(&self.ends.tries.pool, member);
                let response = ResponseFacts { head, input, member: from };
                learn(at, traffic, &remembered, member, response);
            }
        }
        remembered.note_response_edits(head, edits);
        self.ends.remembered = Some(remembered);
        answer
    }
}

/// The client is now at this member: the response contains this, if it changed.
fn remember(
    server: &LocalServer,
    remembered: &mut Remembered,
    member: u32,
    edits: &mut FieldEdits,
) {
    let Some(stickiness) = &remembered.stickiness else { return };
    let kept = stickiness.count(member, &server.counters);
    remembered.kept = Some(kept);
    // Tables were updated when the member was selected.
    if let Sticky::Insert(insert) = &*stickiness.sticky
        && (kept != Kept::Kept || stickiness.is_stale)
    {
        edits.add(b"Set-Cookie", |out| {
            insert.write_field(member, remembered.is_secure, &remembered.other_tokens, out);
        });
    }
}

/// Seals the cookies of a response, if configured: those of the member, and those that policies set.
#[inline]
pub fn keep_cookies(
    exchange: &Exchange,
    at: &mut impl Edge,
    message: (&ResponseHead, &[u8]),
    edits: &mut FieldEdits,
) {
    if let Some(keeper) = &exchange.ends.server.cookies {
        let mut scratch = at.tools().scratch.take();
        keeper.set(message, edits, &mut scratch);
        at.tools().scratch.give(scratch);
    }
}

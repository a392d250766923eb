//! Policies, limits and persistence of a request: carries out the decisions.

use std::rc::Rc;

use weir_core::expression::{Evaluation, Facts, MemberFacts, ResponseFacts};
use weir_core::policy::{Decision, RewriteError};
use weir_http::edits::FieldEdits;
use weir_http::message::{ResponseHead, Scheme};

use crate::edge::Edge;
use crate::local::client_address::tell_member;
use crate::local::key_limits::LimitPlace;
use crate::local::pool::{LocalPool, Preference};
use crate::local::stickiness::{PersistenceResult, Stickiness};
use crate::local::surroundings::SeedAndTime;
use crate::local::table::LocalServer;
use crate::local::traffic::{RoutingVerdict, Traffic};
use crate::parts::arrival::Arrival;
use crate::parts::encoding::Codings;
use crate::parts::hand_over::{DecidedOrHandedOver, HandOverContext};
use crate::parts::identity::Identity;
use crate::parts::notice::Notice;
use crate::parts::request_context::RequestContext;
use crate::parts::request_decisions::{EndWithoutMember, RequestDecisions};
use crate::parts::stage_work::StageWork;
use crate::parts::tools::Tools;
use crate::parts::transaction_ends::TransactionEnds;
use crate::parts::witness::{ServerDecision, Step};
use crate::shared::sticky::Sticky;
use crate::transaction::filters::rewrite;
use crate::transaction::hand_over::hand_over;
use crate::transaction::learned_persistence::learn;
use crate::transaction::request_id::{RequestName, identify};
use crate::transaction::stages::preparation::prepare;

/// Decides about a request of a virtual server with settings that concern requests. `brought`: data from other virtual
/// servers that have handed the request over.
pub fn consider(
    at: &mut impl Edge,
    arrival: &Arrival<'_>,
    traffic: &Traffic,
    decision: &mut Decision,
    mut carried: Option<Box<HandOverContext>>,
) -> DecidedOrHandedOver {
    let server = arrival.server;
    let turn = at.turn();
    let around = traffic.around((at.tools().sources, turn.clock), SeedAndTime::default());
    let mut facts = arrival.facts(&around);
    facts.unix_s = traffic.reads_tokens.then(|| (at.tools().sources.unix_s)());
    let mut scratch = at.tools().scratch.take();
    let mut fields = traffic.fields();
    let mut evaluation = fields.begin(facts);
    let mut held = std::mem::take(&mut at.tools().limit_places);
    apply_hand_over_context(carried.as_deref_mut(), decision, &mut held);
    let draw = if traffic.draws { at.tools().draw() } else { 0 };
    let scratches = (&mut *scratch, &mut held, draw);
    let verdict = match arrival.is_misdirected {
        true => traffic.refuse_misdirected(&facts, &mut evaluation, decision),
        false => {
            let (live, clock) = (&server.live, turn.clock);
            traffic.decide(&facts, &mut evaluation, live, clock, decision, scratches)
        }
    };
    at.note(Step::Decided(ServerDecision {
        arrival,
        traffic,
        facts: &facts,
        evaluation: &mut evaluation,
        decision,
        verdict: &verdict,
    }));
    if let RoutingVerdict::Forward(_) = verdict {
        add_client_fields(arrival, traffic, (&facts, carried.as_deref()), decision, &mut scratch);
    }
    at.tools().scratch.give(scratch);
    let to = match verdict {
        RoutingVerdict::HandedOver { to, .. } => Some(to),
        _ => None,
    };
    let named = match to {
        None => identify(arrival, decision, at.tools()),
        Some(_) => RequestName::default(),
    };
    traffic.count(turn.worker, decision);
    log_policy_lines(at, decision);
    let (mut decisions, stickiness) = carry_out(at, server, verdict);
    decisions.request_number = named.number;
    server.counters.requests_unauthenticated.add(u64::from(decision.authentication.is_refused));
    let known = (&facts, &mut evaluation);
    let work = stage_work(at, (traffic, arrival), known, decision, &mut decisions, &mut carried);
    let user = if work.is_some() { evaluation.user() } else { b"" };
    if let (Some(to), Some(EndWithoutMember::Policy)) = (to, decisions.ending) {
        let mut goes = carried.take().unwrap_or_default();
        goes.limit_places = held;
        goes.not_before_us = decisions.not_before_us;
        let goes = (goes, work.unwrap_or_default(), user);
        decisions.ending = Some(EndWithoutMember::Failed);
        let over = hand_over(at, arrival, to, decision, goes);
        return over
            .map_or(DecidedOrHandedOver::Decided(decisions), DecidedOrHandedOver::HandedOver);
    }
    let kept = (named, user, work.unwrap_or_default(), around.known());
    let of = (&facts, decision, carried.as_deref_mut());
    keep(at.tools(), arrival, traffic, of, (stickiness, &mut held), kept, &mut decisions);
    at.tools().limit_places = held;
    DecidedOrHandedOver::Decided(decisions)
}

/// Earlier decisions that stay valid after a hand-over.
fn apply_hand_over_context(
    carried: Option<&mut HandOverContext>,
    decision: &mut Decision,
    held: &mut Vec<LimitPlace>,
) {
    let Some(carried) = carried else { return };
    debug_assert!(held.is_empty(), "what it holds was kept apart");
    std::mem::swap(&mut carried.limit_places, held);
    std::mem::swap(&mut carried.response, &mut decision.later.response);
}

/// Adds facts about the client to the request for the member, and removes weir's own cookies.
fn add_client_fields(
    arrival: &Arrival<'_>,
    traffic: &Traffic,
    (facts, carried): (&Facts<'_>, Option<&HandOverContext>),
    decision: &mut Decision,
    scratch: &mut Vec<u8>,
) {
    let settings = &*arrival.server.settings().client_address;
    let settings = (settings, &arrival.client_address().trust);
    let changed = carried.map(|carried| &*carried.asked_for).filter(|asked| !asked.is_empty());
    let asked = changed.unwrap_or_else(|| arrival.head.authority(arrival.input));
    tell_member(settings, arrival.peer(), (facts, asked), &mut decision.request, scratch);
    if traffic.rewrites_bodies || !decision.later.body_edits.is_empty() {
        rewrite::ask_for_plain(arrival.server, facts, &mut decision.request.fields, scratch);
    }
    let passed = carried.iter().flat_map(|carried| &carried.passed);
    for before in passed.filter_map(|server| server.traffic.as_ref()) {
        before.hide_cookies(facts, decision, scratch);
    }
}

/// What the stages have to do, including what an earlier virtual server has decided; see [`prepare`]. If checks are not
/// made, drops the decisions that depend on them.
fn stage_work(
    at: &mut impl Edge,
    of: (&Traffic, &Arrival<'_>),
    known: (&Facts<'_>, &mut Evaluation<'_>),
    decision: &mut Decision,
    decisions: &mut RequestDecisions,
    carried: &mut Option<Box<HandOverContext>>,
) -> Option<StageWork> {
    let counters = &of.1.server.counters;
    let is_delayed = decisions.not_before_us > at.turn().now_us();
    counters.requests_delayed.add(u64::from(is_delayed));
    let mut earlier = StageWork::default();
    if let Some(carried) = carried {
        decisions.not_before_us = decisions.not_before_us.max(carried.not_before_us);
        earlier = std::mem::take(&mut carried.stage_work);
    }
    let is_let_in = !earlier.is_unchecked();
    let work = prepare(at, of, known, decision, decisions, earlier);
    if work.is_none() {
        decision.later.forget_response();
    }
    if let (None, false, Some(carried)) = (&work, is_let_in, carried) {
        // The user at the virtual server of the listener is not verified.
        carried.user = Box::default();
        carried.marks.clear();
    }
    let is_overloaded = decisions.ending == Some(EndWithoutMember::Overloaded);
    counters.password_checks_refused.add(u64::from(is_overloaded));
    work
}

/// Carries out a verdict for its request, and returns the client's persistence.
fn carry_out(
    at: &mut impl Edge,
    server: &LocalServer,
    verdict: RoutingVerdict,
) -> (RequestDecisions, Option<Stickiness>) {
    let counters = &server.counters;
    let mut decisions = RequestDecisions {
        pool: server.settings().pool,
        preference: Preference::Any,
        not_before_us: 0,
        request_number: 0,
        context: None,
        ending: None,
    };
    let mut stickiness = None;
    match verdict {
        RoutingVerdict::Forward(route) => {
            decisions.pool = route.pool;
            decisions.preference = route.preference;
            decisions.not_before_us = route.not_before_us;
            stickiness = route.stickiness;
        }
        RoutingVerdict::HandedOver { not_before_us, .. } => {
            decisions.not_before_us = not_before_us;
            decisions.ending = Some(EndWithoutMember::Policy);
        }
        RoutingVerdict::End { not_before_us } => {
            decisions.not_before_us = not_before_us;
            let ended = match server.is_tcp {
                true => &counters.connections_ended_by_policy,
                false => &counters.requests_ended_by_policy,
            };
            ended.add(1);
            decisions.ending = Some(EndWithoutMember::Policy);
        }
        RoutingVerdict::Limited { retry_after_s } => {
            counters.requests_limited.add(1);
            decisions.ending = Some(EndWithoutMember::Limited { retry_after_s });
        }
        RoutingVerdict::Misdirected => decisions.ending = Some(EndWithoutMember::Misdirected),
        RoutingVerdict::LimitClosed => {
            let limited = match server.is_tcp {
                true => &counters.connections_limited,
                false => &counters.requests_limited,
            };
            limited.add(1);
            decisions.ending = Some(EndWithoutMember::Closed);
        }
        RoutingVerdict::Failed(error) => {
            counters.rewrites_failed.add(1);
            at.tell(Notice::Unsendable { server: &server.live.name, why: why_unsendable(error) });
            decisions.ending = Some(EndWithoutMember::Failed);
        }
    }
    (decisions, stickiness)
}

/// Keeps the data of a request that its response needs, if any.
fn keep(
    tools: &mut Tools,
    arrival: &Arrival<'_>,
    traffic: &Traffic,
    (facts, decision, carried): (&Facts<'_>, &mut Decision, Option<&mut HandOverContext>),
    (stickiness, held): (Option<Stickiness>, &mut Vec<LimitPlace>),
    (named, user, work, known): (RequestName, &[u8], StageWork, SeedAndTime),
    decisions: &mut RequestDecisions,
) {
    let server = arrival.server;
    // Rules do not see misdirected requests.
    let is_for_rules =
        traffic.has_response_rules && decisions.ending != Some(EndWithoutMember::Misdirected);
    let has_rules_to_note = tools.notes_rules && !decision.followed.is_empty();
    let learns = stickiness.as_ref().is_some_and(|it| it.sticky.learn().is_some());
    let is_asked_again = is_for_rules || learns;
    let is_remembered = stickiness.is_some()
        || has_rules_to_note
        || !named.taken.is_empty()
        || named.traced.is_some()
        || !held.is_empty()
        || !user.is_empty()
        || !work.is_nothing()
        || carried.is_some()
        || is_for_rules
        || server.http.rewrite_location
        || !decision.later.is_empty();
    if !is_remembered {
        return;
    }
    let mut context = tools.take_remembered();
    context.take(decision, stickiness);
    context.is_secure = arrival.tls().is_some();
    context.request_id = named.taken;
    context.traced = named.traced;
    if has_rules_to_note {
        context.followed.extend_from_slice(&decision.followed);
    }
    std::mem::swap(&mut context.limit_places, held);
    let mut asked_for = Vec::new();
    let mut entered_as = Box::default();
    if let Some(carried) = carried {
        entered_as = std::mem::take(&mut carried.user);
        asked_for = store_hand_over_context(&mut context, carried);
    }
    // A pending check needs its request to be kept, or nothing would wait for the result.
    let is_named = !user.is_empty() || !entered_as.is_empty();
    if work.is_unchecked() || is_named || is_asked_again && facts.unix_s.is_some() {
        let (user, unix_s) = (user.into(), facts.unix_s);
        context.identity = Some(Box::new(Identity { user, entered_as, unix_s }));
    }
    context.stage_work = (!work.is_nothing()).then(|| Box::new(work));
    if is_asked_again {
        context.keep_request(facts, arrival.tls().cloned(), known);
    }
    if server.http.rewrite_location && decisions.ending.is_none() {
        let is_secure = traffic.pool(decisions.pool).settings().tls.is_some();
        let member = if is_secure { Scheme::Https } else { Scheme::Http };
        context.names.take((facts, &asked_for), member, &mut decision.request);
    }
    decisions.context = Some(context);
}

/// Stores data that a request brings from other virtual servers. Returns the host that the client requested, if rules
/// have changed it.
fn store_hand_over_context(context: &mut RequestContext, carried: &mut HandOverContext) -> Vec<u8> {
    context.entered_at = carried.entered_at().cloned();
    context.later.marks = carried.marks_with(&context.later.marks);
    let later = std::mem::replace(&mut context.followed, std::mem::take(&mut carried.followed));
    context.followed.extend(later);
    std::mem::swap(&mut context.request_names, &mut carried.names);
    std::mem::take(&mut carried.asked_for)
}

/// Logs the lines that policies have written.
pub fn log_policy_lines(at: &mut impl Edge, decision: &Decision) {
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

impl TransactionEnds {
    /// Stores in `edits` the changes to the response: those decided with the request, those of rules for responses, and
    /// the persistence cookie. Returns the decision of a rule that answers instead of the member. `codings`: those that the client
    /// accepts.
    pub fn edit_response(
        &mut self,
        at: &mut impl Edge,
        codings: &mut Option<Codings>,
        (head, input): (&ResponseHead, &[u8]),
        edits: &mut FieldEdits,
    ) -> Option<Box<Decision>> {
        edits.clear();
        let mut context = self.context.take()?;
        context.forget_what_is_for_the_unchecked();
        let mut answer = None;
        let server = Rc::clone(&self.server);
        let member = self.phase.member();
        if let Some(traffic) = server.traffic.as_ref().filter(|traffic| traffic.has_response_rules)
        {
            let mut decision = at.tools().response_decision.take().unwrap_or_default();
            std::mem::swap(&mut context.later, &mut decision.later);
            let moment = (at.tools().sources, at.turn().clock);
            let around = traffic.around(moment, context.known());
            let member = member.and_then(|member| member_facts(&self.tries.pool, member));
            let response = ResponseFacts { head, input, member };
            if let Some(facts) = context.facts(response, &around) {
                let mut fields = traffic.fields();
                let mut evaluation = fields.begin(facts);
                evaluation.set_user(context.user());
                decision.follow_response(&traffic.settings().policies, &mut evaluation, &facts);
            }
            traffic.count(at.turn().worker, &decision);
            if at.tools().notes_rules {
                context.followed.extend_from_slice(&decision.followed);
            }
            log_policy_lines(at, &decision);
            if decision.is_uncompressed {
                *codings = None;
            }
            std::mem::swap(&mut context.later, &mut decision.later);
            if decision.end.is_some() {
                answer = Some(decision);
            } else {
                decision.clear();
                at.tools().response_decision = Some(decision);
            }
        }
        std::mem::swap(edits, &mut context.later.response);
        // A response without bytes is one of weir's own.
        if let (true, Some(member), false) =
            (server.http.rewrite_location, member, input.is_empty())
        {
            let address = &self.tries.pool.settings().members[member as usize].address;
            context.names.change_location(head, input, address, edits);
        }
        if context.stickiness.is_some()
            && let Some(member) = member
        {
            remember(&server, &mut context, member, edits);
            if let (Some(traffic), false) = (&server.traffic, input.is_empty()) {
                let from = member_facts(&self.tries.pool, member);
                let response = ResponseFacts { head, input, member: from };
                learn(at, traffic, &context, member, response);
            }
        }
        context.note_response_edits(head, edits);
        self.context = Some(context);
        answer
    }
}

/// The client is now at this member: the response contains this, if it changed.
fn remember(
    server: &LocalServer,
    context: &mut RequestContext,
    member: u32,
    edits: &mut FieldEdits,
) {
    let Some(stickiness) = &context.stickiness else { return };
    let kept = stickiness.count(member, &server.counters);
    context.kept = Some(kept);
    // Tables were updated when the member was selected.
    if let Sticky::Insert(insert) = &*stickiness.sticky
        && (kept != PersistenceResult::Kept || stickiness.is_stale)
    {
        edits.add(b"Set-Cookie", |out| {
            insert.write_field(member, context.is_secure, &context.other_tokens, out);
        });
    }
}

/// Seals the cookies of a response, if configured: those of the member, and those that policies set.
#[inline]
pub fn keep_cookies(
    server: &LocalServer,
    at: &mut impl Edge,
    message: (&ResponseHead, &[u8]),
    edits: &mut FieldEdits,
) {
    if let Some(keeper) = &server.cookies {
        let mut scratch = at.tools().scratch.take();
        keeper.set(message, edits, &mut scratch);
        at.tools().scratch.give(scratch);
    }
}

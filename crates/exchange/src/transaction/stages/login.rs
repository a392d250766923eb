//! Password checks of a request: it waits until all of its passwords are checked.

use std::net::IpAddr;
use std::sync::Arc;

use weir_core::expression::{Evaluation, Facts};
use weir_core::policy::{Authenticator, Decision, Login};
use weir_http::edits::FieldEdits;

use crate::edge::{Edge, Turn};
use crate::local::traffic::Traffic;
use crate::parts::arrival::Arrival;
use crate::parts::deferred_work::Mirrors;
use crate::parts::identity::PasswordCheck;
use crate::parts::pending_checks::PendingChecks;
use crate::parts::request_decisions::{EndWithoutMember, RequestDecisions};
use crate::parts::stages::{StageResult, Wait};
use crate::shared::logins::{Answer, CheckQueueFull};
use crate::termination::Termination;
use crate::transaction::exchange::Exchange;
use crate::transaction::stages::{authorisation, mirror};

/// The interval at which a waiting request looks for the result of its check.
const LOOK_US: u64 = 2_000;

fn now_s(turn: Turn) -> u64 {
    turn.now_ms() / 1_000
}

/// Begins the checks of a request: of passwords that are not known to be right, and by services. The request is held
/// back until they are done. `None`: no checks are made, because the request ends by a limit, cannot be sent, or finds
/// the queue full; then nothing may depend on the user that it names. `pending`: checks from earlier virtual servers.
pub fn ask(
    at: &mut impl Edge,
    of: (&Traffic, &Arrival<'_>),
    known: (&Facts<'_>, &mut Evaluation<'_>),
    decision: &mut Decision,
    decisions: &mut RequestDecisions,
    mut pending: PendingChecks,
) -> Option<PendingChecks> {
    let turn = at.turn();
    if !decision.mirrors.is_empty() && decisions.ending.is_none() {
        pending.mirrors = choose_mirrors(at, of, (known.0, &mut *known.1), decision);
    }
    if !decision.authentication.has_to_be_asked() && pending.is_settled() {
        return Some(pending);
    }
    if !matches!(decisions.ending, None | Some(EndWithoutMember::Policy)) {
        return None;
    }
    let client = known.0.client.map(|client| client.ip());
    for login in decision.authentication.logins.drain(..) {
        match check(of.0, login, client, turn) {
            Ok(waits) => pending.checks.extend(waits),
            Err(CheckQueueFull) => {
                decisions.ending = Some(EndWithoutMember::Overloaded);
                return None;
            }
        }
    }
    let mut scratch = at.tools().scratch.take();
    // The last service in the list is asked first.
    let mut asks = authorisation::prepare(of, known, decision, turn.clock, &mut scratch);
    asks.append(&mut pending.asks);
    pending.asks = asks;
    at.tools().scratch.give(scratch);
    Some(pending)
}

fn choose_mirrors(
    at: &mut impl Edge,
    (traffic, arrival): (&Traffic, &Arrival<'_>),
    known: (&Facts<'_>, &mut Evaluation<'_>),
    decision: &Decision,
) -> Option<Box<Mirrors>> {
    let now = at.turn().clock;
    let mut scratch = at.tools().scratch.take();
    let of = (traffic, &*arrival.server.claims.copy_mark);
    let mirrors = mirror::choose(at.tools(), of, known, decision, now, &mut scratch);
    at.tools().scratch.give(scratch);
    (!mirrors.0.is_empty()).then(|| Box::new(mirrors))
}

/// Requests the check of a password; `Ok(None)`: the password is known to be right.
fn check(
    traffic: &Traffic,
    login: Login,
    client: Option<IpAddr>,
    turn: Turn,
) -> Result<Option<PasswordCheck>, CheckQueueFull> {
    let logins = traffic.logins.as_ref().ok_or(CheckQueueFull)?;
    let tag = logins.tag(&login);
    if tag.is_some_and(|tag| logins.knows(&tag, now_s(turn))) {
        return Ok(None);
    }
    let by = Arc::clone(&login.by);
    let ticket = logins.ask(login, client)?;
    Ok(Some(PasswordCheck { by, tag, ticket, logins: Arc::clone(logins) }))
}

/// Waits while a password is not checked yet. Refuses the request if one is wrong.
pub fn pass(exchange: &mut Exchange, at: &mut impl Edge) -> StageResult {
    let context = exchange.ends.context.as_deref_mut();
    let Some(identity) = context.and_then(|it| it.identity.as_deref_mut()) else {
        return StageResult::On;
    };
    let turn = at.turn();
    while let Some(check) = identity.checks.last() {
        match check.ticket.answer() {
            Answer::Pending => {
                return StageResult::Wait(Wait::Until(turn.now_us() + LOOK_US));
            }
            Answer::Right => {
                if let Some(tag) = &check.tag {
                    check.logins.remember(tag, now_s(turn));
                }
                identity.checks.pop();
            }
            Answer::Wrong => {
                let by = Arc::clone(&check.by);
                refuse(exchange, at, &by);
                return StageResult::Over;
            }
        }
    }
    StageResult::On
}

/// Drops all decisions that depend on the user.
fn refuse(exchange: &mut Exchange, at: &mut impl Edge, by: &Authenticator) {
    let mark = format!("authenticate {}: the user or the password is wrong", by.name);
    authorisation::forget_decided(exchange, at, &mark);
    let mut fields = FieldEdits::default();
    let challenge = by.basic_challenge();
    fields.add(b"WWW-Authenticate", |out| out.extend_from_slice(challenge.as_bytes()));
    exchange.respond_adding(at, 401, Termination::Policy, fields);
}

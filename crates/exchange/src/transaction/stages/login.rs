//! Password checks of a request: it waits until all of its passwords are checked.

use std::net::IpAddr;
use std::sync::Arc;

use weir_core::expression::Facts;
use weir_core::policy::{Authenticator, Login};
use weir_http::edits::FieldEdits;

use crate::edge::{Edge, Turn};
use crate::local::traffic::Traffic;
use crate::parts::stage_work::PasswordCheck;
use crate::parts::stages::{StageResult, Wait};
use crate::shared::logins::{Answer, CheckQueueFull};
use crate::termination::Termination;
use crate::transaction::exchange::Exchange;
use crate::transaction::stages::refusal::forget_decided;

/// The interval at which a waiting request looks for the result of its check.
const LOOK_US: u64 = 2_000;

fn now_s(turn: Turn) -> u64 {
    turn.now_ms() / 1_000
}

/// Begins the checks of passwords that are not known to be right.
pub fn begin(
    logins: impl Iterator<Item = Login>,
    traffic: &Traffic,
    facts: &Facts<'_>,
    turn: Turn,
    checks: &mut Vec<PasswordCheck>,
) -> Result<(), CheckQueueFull> {
    let client = facts.client.map(|client| client.ip());
    for login in logins {
        checks.extend(check(traffic, login, client, turn)?);
    }
    Ok(())
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
    let Some(work) = context.and_then(|context| context.stage_work.as_mut()) else {
        return StageResult::On;
    };
    let turn = at.turn();
    while let Some(check) = work.checks.last() {
        match check.ticket.answer() {
            Answer::Pending => {
                return StageResult::Wait(Wait::Until(turn.now_us() + LOOK_US));
            }
            Answer::Right => {
                if let Some(tag) = &check.tag {
                    check.logins.remember(tag, now_s(turn));
                }
                work.checks.pop();
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
    forget_decided(exchange, at, &mark);
    let mut fields = FieldEdits::default();
    let challenge = by.basic_challenge();
    fields.add(b"WWW-Authenticate", |out| out.extend_from_slice(challenge.as_bytes()));
    exchange.respond_adding(at, 401, Termination::Policy, fields);
}

//! Password checks of a request: it waits until all of its passwords are checked.

use std::net::IpAddr;
use std::sync::Arc;

use weir_core::expression::Facts;
use weir_core::policy::{Authenticator, Login};
use weir_http::edits::FieldEdits;

use crate::edge::Turn;
use crate::local::table::LocalServer;
use crate::local::traffic::Traffic;
use crate::parts::request_context::RequestContext;
use crate::parts::stage_result::StageResult;
use crate::parts::stage_work::PasswordCheck;
use crate::parts::stages::Wait;
use crate::parts::weir_response::WeirResponse;
use crate::shared::logins::{Answer, CheckQueueFull};
use crate::termination::Termination;

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
pub fn pass(context: Option<&mut RequestContext>, server: &LocalServer, turn: Turn) -> StageResult {
    let Some(work) = context.and_then(|context| context.stage_work.as_mut()) else {
        return StageResult::On;
    };
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
            Answer::Wrong => return refusal(&check.by, server),
        }
    }
    StageResult::On
}

fn refusal(by: &Authenticator, server: &LocalServer) -> StageResult {
    let mark = format!("authenticate {}: the user or the password is wrong", by.name);
    let mut fields = FieldEdits::default();
    let challenge = by.basic_challenge();
    fields.add(b"WWW-Authenticate", |out| out.extend_from_slice(challenge.as_bytes()));
    let response = WeirResponse::with_fields(server, 401, Termination::Policy, fields);
    StageResult::Refuse { mark, response }
}

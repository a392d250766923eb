//! Passwords on a request's way: it waits until each of them was checked.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use weir_core::policy::{Authenticator, Decision, Login};
use weir_http::edits::FieldEdits;

use crate::edge::{Edge, Turn};
use crate::local::traffic::Traffic;
use crate::parts::considered::{Considered, Ending};
use crate::parts::identity::Checking;
use crate::parts::parked::Parked;
use crate::shared::logins::{Answer, Overloaded};
use crate::termination::Termination;
use crate::transaction::exchange::Exchange;

/// How often a request that waits looks whether its password was checked.
const LOOK_US: u64 = 2_000;

fn now_s(turn: Turn) -> u64 {
    turn.now_ms() / 1_000
}

/// Has the passwords of a request checked that are not known to be right; it is held back until then. `None`: they are not checked,
/// and nothing is for the user that the request names: it ends by a limit, cannot be sent, or too many wait.
pub fn ask(
    traffic: &Traffic,
    client: Option<SocketAddr>,
    decision: &mut Decision,
    considered: &mut Considered,
    turn: Turn,
) -> Option<Vec<Checking>> {
    if decision.authentication.logins.is_empty() {
        return Some(Vec::new());
    }
    if !matches!(considered.ending, None | Some(Ending::Policy)) {
        return None;
    }
    let mut checks = Vec::new();
    let client = client.map(|client| client.ip());
    for login in decision.authentication.logins.drain(..) {
        match check(traffic, login, client, turn) {
            Ok(waits) => checks.extend(waits),
            Err(Overloaded) => {
                considered.ending = Some(Ending::Overloaded);
                return None;
            }
        }
    }
    if !checks.is_empty() {
        considered.not_before_us = considered.not_before_us.max(turn.now_us() + LOOK_US);
    }
    Some(checks)
}

/// Has a password checked; `Ok(None)`: it is known to be right.
fn check(
    traffic: &Traffic,
    login: Login,
    client: Option<IpAddr>,
    turn: Turn,
) -> Result<Option<Checking>, Overloaded> {
    let logins = traffic.logins.as_ref().ok_or(Overloaded)?;
    let tag = logins.tag(&login);
    if tag.is_some_and(|tag| logins.knows(&tag, now_s(turn))) {
        return Ok(None);
    }
    let by = Arc::clone(&login.by);
    let ticket = logins.ask(login, client)?;
    Ok(Some(Checking { by, tag, ticket, logins: Arc::clone(logins) }))
}

/// Whether a request that was held back cannot go on: a password is still checked, or was wrong.
pub fn holds(exchange: &mut Exchange, at: &mut impl Edge) -> bool {
    let remembered = exchange.ends.remembered.as_deref_mut();
    let Some(identity) = remembered.and_then(|it| it.identity.as_deref_mut()) else { return false };
    let turn = at.turn();
    while let Some(check) = identity.checks.last() {
        match check.ticket.answer() {
            Answer::Pending => {
                at.delay(&exchange.ends, turn.now_us() + LOOK_US);
                return true;
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
                return true;
            }
        }
    }
    false
}

/// Nothing that was decided for the user is for whoever this is.
fn refuse(exchange: &mut Exchange, at: &mut impl Edge, by: &Authenticator) {
    if let Parked::Until(Some((_, mut decision))) = std::mem::take(&mut exchange.ends.parked) {
        decision.clear();
        at.tools().decision = Some(decision);
    }
    if let Some(remembered) = exchange.ends.remembered.as_deref_mut() {
        remembered.forget_what_is_for_the_unchecked();
        remembered.marks.push(|out| {
            let mark = format!("authenticate {}: the user or the password is wrong", by.name);
            out.extend_from_slice(mark.as_bytes());
        });
        if let Some(identity) = remembered.identity.as_deref_mut() {
            identity.checks.clear();
        }
    }
    exchange.ends.server.counters.requests_unauthenticated.add(1);
    let mut fields = FieldEdits::default();
    let challenge = by.basic_challenge();
    fields.add(b"WWW-Authenticate", |out| out.extend_from_slice(challenge.as_bytes()));
    exchange.respond_adding(at, 401, Termination::Policy, fields);
}

//! What the stages of a request have to do, found out while it is decided about.

use weir_core::expression::{Evaluation, Facts};
use weir_core::policy::Decision;

use crate::edge::Edge;
use crate::local::traffic::Traffic;
use crate::parts::arrival::Arrival;
use crate::parts::request_decisions::{EndWithoutMember, RequestDecisions};
use crate::parts::stage_work::StageWork;
use crate::shared::logins::CheckQueueFull;
use crate::transaction::stages::{authorisation, login, mirror};

/// Lists what the stages of a request have to do, and begins the checks of passwords that are not known to be right. The request is
/// held back until all checks are done. `None`: no checks are made, because the request ends by a limit, cannot be sent, or finds
/// the queue full; then nothing may depend on the user that it names. `work`: that of earlier virtual servers.
pub fn prepare(
    at: &mut impl Edge,
    of: (&Traffic, &Arrival<'_>),
    known: (&Facts<'_>, &mut Evaluation<'_>),
    decision: &mut Decision,
    decisions: &mut RequestDecisions,
    mut work: StageWork,
) -> Option<StageWork> {
    if !decision.subrequests.is_empty() && decisions.ending.is_none() {
        work.copies = mirror::choose(at, of, (known.0, &mut *known.1), decision);
    }
    if !decision.has_checks() && !work.is_unchecked() {
        return Some(work);
    }
    if !matches!(decisions.ending, None | Some(EndWithoutMember::Policy)) {
        return None;
    }
    let logins = decision.authentication.logins.drain(..);
    if let Err(CheckQueueFull) = login::begin(logins, of.0, known.0, at.turn(), &mut work.checks) {
        decisions.ending = Some(EndWithoutMember::Overloaded);
        return None;
    }
    // The last service in the list is asked first.
    let mut asks = authorisation::prepare(at, of, known, decision);
    asks.append(&mut work.asks);
    work.asks = asks;
    Some(work)
}

//! Replaces the running process with a new one, and reports the result.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::json;
use weir_api::upgrade::{Upgrade, UpgradeAsked, UpgradeReport};
use weir_config::snapshot::Role;

use super::answer::Answer;
use super::ask::Ask;
use super::peer::{Credentials, Peer};
use super::problem::Problem;
use super::route::{HandlerResult, Route};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/upgrade", "upgrade", "Replaces the process by a new one", upgrade)
            .post()
            .role(Role::Admin)
            .takes::<Upgrade>()
            .statuses(&[StatusCode::CONFLICT])
            .answers::<UpgradeAsked>(),
        Route::get(
            "/v1/upgrades/{number}",
            "getUpgrade",
            "How far an upgrade is, and its result; both processes answer",
            report,
        )
        .statuses(&[StatusCode::NOT_FOUND])
        .answers::<UpgradeReport>(),
    ]
}

fn upgrade(ask: &Ask) -> HandlerResult {
    let wanted: Upgrade = ask.document()?;
    if let Some(binary) = &wanted.binary {
        if !may_choose_binary(&ask.caller.peer) {
            let error = "only root and weir's own user may choose the program: `binary`";
            return Err(Problem::new(StatusCode::FORBIDDEN, error));
        }
        if !binary.is_absolute() {
            let binary = binary.display();
            return Err(Problem::bad_request(format_args!(
                "`binary` {binary} is no absolute path"
            )));
        }
    }
    let program = wanted.binary.clone();
    let timeout = wanted.timeout_ms.map(Duration::from_millis);
    let number = ask.context.observed.upgrades.ask(wanted.binary, timeout).map_err(|number| {
        Problem::new(StatusCode::CONFLICT, format_args!("upgrade {number} is under way"))
    })?;
    let by = &ask.caller;
    ask.context.events.info("weir", format_args!("is to be upgraded, says {by}"));
    Ok(Answer::json(&UpgradeAsked { number })?
        .change(json!({ "upgrade": number, "binary": program })))
}

/// Whether a peer may choose the program that runs as weir's user: only a peer that could start it itself.
fn may_choose_binary(peer: &Peer) -> bool {
    let own = rustix::process::geteuid().as_raw();
    matches!(peer, Peer::Local(Some(Credentials { user, .. })) if user.id == 0 || user.id == own)
}

fn report(ask: &Ask) -> HandlerResult {
    let number = ask.number("number")?;
    let last = ask.context.observed.upgrades.last().filter(|last| last.number == number);
    let report = last.ok_or_else(|| {
        Problem::not_found(format_args!("there is no report of an upgrade {number}"))
            .help("the last one is kept")
    })?;
    Answer::json(&report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::peer::NetworkPeer;

    #[test]
    fn others_do_not_choose_the_program() {
        let own = rustix::process::geteuid().as_raw();
        let local = |user| Peer::Local(Some(Credentials::of_user(user, None)));
        assert!(may_choose_binary(&local(own)) && may_choose_binary(&local(0)));
        let address = "127.0.0.1:9".parse().expect("an address");
        let network = Peer::Network(NetworkPeer { address, is_loopback: true, certificate: None });
        for peer in [local(own + 1), Peer::Local(None), network] {
            assert!(!may_choose_binary(&peer), "{peer:?}");
        }
    }
}

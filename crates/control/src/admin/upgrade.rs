//! `/upgrade`: replaces the running process by another one, and reports the result.
//!
//! | request | answer |
//! |---|---|
//! | `POST /upgrade` with `{}`, or `{"binary": "/usr/bin/weir", "timeout_ms": 60000}` | 200 with `{"number": 7}`; over a unix socket only |
//! | `GET /upgrades/7` | 200 with a [`Report`](crate::upgrade::reports::Report) |

use std::path::PathBuf;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use serde::{Deserialize, Serialize};

use super::pools::{may_change, read_body};
use super::problem::Problem;
use super::{Context, Credentials, Peer, json};

pub(super) fn routes() -> Router<Context> {
    Router::new().route("/upgrade", post(upgrade)).route("/upgrades/{number}", get(report))
}

/// A request for an upgrade.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// The program to start; absent: that of the process.
    binary: Option<PathBuf>,
    /// The time for the new process to be ready; absent: 30 seconds and `first_probes.wait`.
    timeout_ms: Option<u64>,
}

/// The response to it.
#[derive(Debug, Serialize)]
struct Asked {
    /// Under which its report is found, in the new process, too.
    number: u64,
}

async fn upgrade(
    State(Context { observed, events, .. }): State<Context>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    if let Err(problem) = may_change(peer, &headers) {
        return problem.into_response();
    }
    let body = match read_body(body).await {
        Ok(body) => body,
        Err(problem) => return problem.into_response(),
    };
    let wanted: Wanted = match serde_json::from_slice(&body) {
        Ok(wanted) => wanted,
        Err(error) => return refuse(StatusCode::BAD_REQUEST, format!("not an upgrade: {error}")),
    };
    if let Some(binary) = &wanted.binary {
        if !may_choose_binary(peer) {
            let error = "only root and weir's own user may choose the program: `binary`";
            return refuse(StatusCode::FORBIDDEN, error.to_owned());
        }
        if !binary.is_absolute() {
            let error = format!("`binary` {} is not an absolute path", binary.display());
            return refuse(StatusCode::BAD_REQUEST, error);
        }
    }
    let timeout = wanted.timeout_ms.map(Duration::from_millis);
    match observed.upgrades.ask(wanted.binary, timeout) {
        Ok(number) => {
            events.info("weir", format_args!("is to be upgraded, says {peer}"));
            json(StatusCode::OK, &Asked { number })
        }
        Err(number) => refuse(StatusCode::CONFLICT, format!("upgrade {number} is under way")),
    }
}

/// Whether a peer may choose the program that runs as weir's user: one that could start it itself.
fn may_choose_binary(peer: Peer) -> bool {
    let own = rustix::process::geteuid().as_raw();
    matches!(peer, Peer::Local(Some(Credentials { user, .. })) if user == 0 || user == own)
}

fn refuse(status: StatusCode, error: String) -> Response {
    Problem { status, error, help: None }.into_response()
}

async fn report(
    State(Context { observed, .. }): State<Context>,
    Path(number): Path<u64>,
) -> Response {
    match observed.upgrades.last().filter(|last| last.number == number) {
        Some(report) => json(StatusCode::OK, &report),
        None => Problem {
            status: StatusCode::NOT_FOUND,
            error: format!("there is no report of an upgrade {number}"),
            help: Some("the last one is kept".into()),
        }
        .into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_do_not_choose_the_program() {
        let own = rustix::process::geteuid().as_raw();
        let local = |user| Peer::Local(Some(Credentials { user, process: None }));
        assert!(may_choose_binary(local(own)) && may_choose_binary(local(0)));
        for peer in [local(own + 1), Peer::Local(None), Peer::Network] {
            assert!(!may_choose_binary(peer), "{peer:?}");
        }
    }
}

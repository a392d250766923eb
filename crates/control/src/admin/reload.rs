//! `/reload`: reloads the configuration file, and reports the result.
//!
//! | request | answer |
//! |---|---|
//! | `POST /reload` | 200 with `{"number": 7}`; over a unix socket only |
//! | `GET /reloads/7` | 200 with a [`Report`](crate::reloads::Report) |

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use serde::Serialize;

use super::pools::may_change;
use super::problem::Problem;
use super::{Context, Peer, json};

pub(super) fn routes() -> Router<Context> {
    Router::new().route("/reload", post(reload)).route("/reloads/{number}", get(report))
}

/// The response to a reload request.
#[derive(Debug, Serialize)]
struct Asked {
    /// Under which its report is found.
    number: u64,
}

async fn reload(
    State(Context { observed, events, .. }): State<Context>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Response {
    if let Err(problem) = may_change(peer, &headers) {
        return problem.into_response();
    }
    let number = observed.reloads.ask();
    events.info("configuration", format_args!("is to be read again, says {peer}"));
    json(StatusCode::OK, &Asked { number })
}

async fn report(
    State(Context { observed, .. }): State<Context>,
    Path(number): Path<u64>,
) -> Response {
    match observed.reloads.report(number) {
        Some(report) => json(StatusCode::OK, &report),
        None => Problem {
            status: StatusCode::NOT_FOUND,
            error: format!("there is no report of a reload {number}"),
            help: Some("the last 32 are kept".into()),
        }
        .into_response(),
    }
}

//! `POST /v1/explain`: why a request would go where it goes, by the state of this moment.
//!
//! The body says which request, as JSON: see [`weir_explain::Asked`]. The answer is a [`weir_explain::Explanation`]. Nothing
//! changes, and secrets of the request are masked. It is answered over a unix socket only: it shows the conditions of rules, and
//! whether a password is right. One is explained at a time: the next waits.
//!
//! | status | reason |
//! |---|---|
//! | 400 | the body is invalid, or it is not clear which request is meant |
//! | 403 | over TCP, or from a web page |
//! | 413 | the body is above [`BODY_SIZE_MAX`] |
//! | 415 | the body is not `application/json` |

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Extension, Router};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::sync::Semaphore;
use weir_explain::Asked;
use weir_explain::asked::BODY_BYTES_MAX;

use super::pools::may_change;
use super::problem::Problem;
use super::{Context, Peer, json, off_thread};
use crate::explaining;

/// Bytes of a question: the body of a request, each of whose bytes may be escaped, and its head.
pub const BODY_SIZE_MAX: usize = 6 * BODY_BYTES_MAX + 64 * 1024;

pub(super) fn routes() -> Router<Context> {
    let one_at_a_time = Arc::new(Semaphore::new(1));
    Router::new().route("/v1/explain", post(explain)).layer(Extension(one_at_a_time))
}

async fn explain(
    State(Context { observed, .. }): State<Context>,
    Extension(peer): Extension<Peer>,
    Extension(one_at_a_time): Extension<Arc<Semaphore>>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    if let Err(problem) = may_change(peer, &headers) {
        return problem.into_response();
    }
    let asked = match read(body).await {
        Ok(asked) => asked,
        Err(problem) => return problem.into_response(),
    };
    let Ok(_turn) = one_at_a_time.acquire_owned().await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    off_thread(move || match weir_explain::explain(&observed.table(), &asked, explaining::now()) {
        Ok(explanation) => json(StatusCode::OK, &explanation),
        Err(why) => {
            let status = StatusCode::BAD_REQUEST;
            Problem { status, error: why.to_string(), help: None }.into_response()
        }
    })
    .await
}

async fn read(body: Body) -> Result<Asked, Problem> {
    let status = StatusCode::BAD_REQUEST;
    let help = Some(r#"a question looks like this: {"url": "https://shop.example/cart"}"#.into());
    match Limited::new(body, BODY_SIZE_MAX).collect().await {
        Ok(body) => serde_json::from_slice(&body.to_bytes()).map_err(|error| Problem {
            status,
            error: format!("not a question: {error}"),
            help,
        }),
        Err(error) if error.is::<LengthLimitError>() => Err(Problem {
            status: StatusCode::PAYLOAD_TOO_LARGE,
            error: format!("a question has at most {BODY_SIZE_MAX} bytes"),
            help: None,
        }),
        Err(error) => {
            Err(Problem { status, error: format!("the question cannot be read: {error}"), help })
        }
    }
}

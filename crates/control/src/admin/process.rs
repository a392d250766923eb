//! Views of the process as a whole: probe, metrics, status, OpenAPI document, the caller's own rights.

use std::sync::LazyLock;
use std::sync::atomic::Ordering::Relaxed;

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::answer::Answer;
use super::ask::Ask;
use super::problem::Problem;
use super::route::{Content, Handled, Route};
use super::{openapi, table};
use crate::metrics;
use crate::observed::Observed;
use crate::problems::problems;
use crate::status::{self, ProcessStatus, Status};

/// The media type of the probe.
const TEXT: &str = "text/plain; charset=utf-8";

/// Made once: it is the same for all.
static OPENAPI: LazyLock<Value> = LazyLock::new(|| openapi::document(&table::routes()));

pub(super) fn routes() -> Vec<Route> {
    let unavailable: &[StatusCode] = &[StatusCode::SERVICE_UNAVAILABLE];
    vec![
        Route::get("/health", "probe", "Whether clients should be sent here", probe)
            .for_all()
            .content(Content::Text(TEXT))
            .statuses(unavailable),
        Route::get("/metrics", "metrics", "Metrics in the text format of Prometheus", metrics_text)
            .content(Content::Text(metrics::CONTENT_TYPE)),
        Route::get("/v1/openapi.json", "openapi", "This document", document)
            .content(Content::OpenApi),
        Route::get(
            "/v1/health",
            "health",
            "Whether weir serves, and the problems of the process",
            health,
        )
        .answers::<Health>(),
        Route::get(
            "/v1/status",
            "status",
            "Everything at once: process, virtual servers, pools",
            all,
        )
        .answers::<Status>(),
        Route::get("/v1/process", "process", "Process, configuration and logs", process)
            .answers::<ProcessStatus>(),
        Route::get("/v1/whoami", "whoami", "The user and the rights of this request", whoami)
            .answers::<Whoami>(),
    ]
}

/// What the process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum State {
    /// It waits for the first probes of its members.
    Starting,
    /// It serves.
    Serving,
    /// It ends, and takes no new connections.
    Draining,
}

impl State {
    fn of(observed: &Observed) -> Self {
        if observed.draining.load(Relaxed) {
            Self::Draining
        } else if observed.starting.load(Relaxed) {
            Self::Starting
        } else {
            Self::Serving
        }
    }
}

fn probe(ask: &Ask) -> Handled {
    let (status, text) = match State::of(&ask.context.observed) {
        State::Starting => (StatusCode::SERVICE_UNAVAILABLE, "starting\n"),
        State::Serving => (StatusCode::OK, "ok\n"),
        State::Draining => (StatusCode::SERVICE_UNAVAILABLE, "draining\n"),
    };
    Ok(Answer::text(status, TEXT, text))
}

fn metrics_text(ask: &Ask) -> Handled {
    let text = metrics::encode(&ask.context.observed);
    Ok(Answer::text(StatusCode::OK, metrics::CONTENT_TYPE, text))
}

fn document(_: &Ask) -> Handled {
    Answer::json(&*OPENAPI)
}

/// Whether weir serves.
#[derive(Debug, Serialize, JsonSchema)]
struct Health {
    state: State,
    /// Problems of the process as a whole, in sentences.
    problems: Vec<String>,
}

fn health(ask: &Ask) -> Handled {
    let observed = &ask.context.observed;
    Answer::json(&Health { state: State::of(observed), problems: problems(observed) })
}

fn all(ask: &Ask) -> Handled {
    Answer::json(&Status::of(&ask.context.observed))
}

fn process(ask: &Ask) -> Handled {
    Answer::json(&status::process(&ask.context.observed))
}

/// Whoever sent the request.
#[derive(Debug, Serialize, JsonSchema)]
struct Whoami<'a> {
    /// The user of the configuration; `null`: no credentials were sent.
    user: Option<&'a str>,
    /// `read`, `operate` or `admin`.
    role: &'static str,
    /// Where the request came from.
    peer: String,
}

fn whoami(ask: &Ask) -> Handled {
    let caller = &ask.caller;
    // Without a role it would not have come here.
    let role = caller.role.ok_or_else(|| Problem::unauthenticated("no user"))?;
    Answer::json(&Whoami {
        user: caller.user.as_deref(),
        role: role.as_str(),
        peer: caller.peer.to_string(),
    })
}

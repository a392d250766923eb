//! Views of the whole process: probe, metrics, status, and the rights of the caller.

use std::sync::atomic::Ordering::Relaxed;

use axum::http::StatusCode;
use weir_api::process::{HealthOfProcess, Process, ProcessHealth, Whoami};
use weir_api::status::Status;

use super::answer::Answer;
use super::ask::{Ask, Kind, Parameter};
use super::problem::Problem;
use super::route::{Content, HandlerResult, Route};
use crate::metrics;
use crate::problems::{problems, serving};
use crate::status;

/// The media type of the probe.
const TEXT: &str = "text/plain; charset=utf-8";

const NAME: Parameter = Parameter {
    name: "name",
    kind: Kind::Text,
    summary: "Only metrics whose names begin with this",
};

pub(super) fn routes() -> Vec<Route> {
    let unavailable: &[StatusCode] = &[StatusCode::SERVICE_UNAVAILABLE];
    vec![
        Route::get("/health", "probe", "Whether clients should be sent here", probe)
            .for_all()
            .content(Content::Text(TEXT))
            .statuses(unavailable),
        Route::get("/metrics", "metrics", "Metrics in the text format of Prometheus", metrics_text)
            .query(&[NAME])
            .content(Content::Text(metrics::CONTENT_TYPE)),
        Route::get(
            "/v1/health",
            "health",
            "Whether weir serves, and the problems of the process",
            health,
        )
        .answers::<HealthOfProcess>(),
        Route::get(
            "/v1/status",
            "status",
            "Everything at once: process, virtual servers, pools",
            all,
        )
        .answers::<Status>(),
        Route::get("/v1/process", "process", "Process, configuration and logs", process)
            .answers::<Process>(),
        Route::get("/v1/whoami", "whoami", "The user and the rights of this request", whoami)
            .answers::<Whoami>(),
    ]
}

fn probe(ask: &Ask) -> HandlerResult {
    // Dead members do not count here: another weir with the same members would serve no better.
    let observed = &ask.context.observed;
    let (status, text) = if observed.draining.load(Relaxed) {
        (StatusCode::SERVICE_UNAVAILABLE, "draining\n")
    } else if observed.starting.load(Relaxed) {
        (StatusCode::SERVICE_UNAVAILABLE, "starting\n")
    } else {
        (StatusCode::OK, "ok\n")
    };
    Ok(Answer::text(status, TEXT, text))
}

fn metrics_text(ask: &Ask) -> HandlerResult {
    let observed = &ask.context.observed;
    let wanted = ask.query.text(NAME.name).unwrap_or_default();
    let packed = if ask.takes_gzip { metrics::encode_gzip(observed, wanted) } else { None };
    let answer = |text| Answer::text(StatusCode::OK, metrics::CONTENT_TYPE, text).by_coding();
    Ok(match packed {
        Some(packed) => answer(String::new()).gzip(packed),
        None => answer(metrics::encode(observed, wanted)),
    })
}

fn health(ask: &Ask) -> HandlerResult {
    let observed = &ask.context.observed;
    let judge = observed.judge();
    let state = ProcessHealth::from(serving(observed, &judge));
    Answer::json(&HealthOfProcess { state, problems: problems(observed, &judge) })
}

fn all(ask: &Ask) -> HandlerResult {
    Answer::json(&status::whole(&ask.context.observed))
}

fn process(ask: &Ask) -> HandlerResult {
    Answer::json(&status::process(&ask.context.observed))
}

fn whoami(ask: &Ask) -> HandlerResult {
    let caller = &ask.caller;
    // A request without a role was refused earlier.
    let role = caller.role.ok_or_else(|| Problem::unauthenticated("no user"))?;
    Answer::json(&Whoami {
        user: caller.user.as_deref().map(str::to_owned),
        role: role.as_str().to_owned(),
        peer: caller.peer.to_string(),
    })
}

//! Reloads the configuration file, and reports the results of reloads.

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use weir_config::snapshot::Role;

use super::answer::Answer;
use super::ask::Ask;
use super::problem::Problem;
use super::route::{Handled, Route};
use crate::reloads::Report;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/reload", "reload", "Reads the configuration file again", reload)
            .post()
            .role(Role::Operate)
            .takes::<Nothing>()
            .answers::<Asked>(),
        Route::get("/v1/reloads", "listReloads", "The last reloads, the newest last", reports)
            .answers::<Reports>(),
        Route::get(
            "/v1/reloads/{number}",
            "getReload",
            "How far a reload is, and its result",
            report,
        )
        .statuses(&[StatusCode::NOT_FOUND])
        .answers::<Report>(),
    ]
}

/// A reload has no settings.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// The response to a reload request.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ReloadAsked")]
struct Asked {
    /// The number of the reload's report.
    number: u64,
}

/// Reports of the latest reloads.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Reloads")]
struct Reports {
    items: Vec<Report>,
}

fn reload(ask: &Ask) -> Handled {
    ask.document::<Nothing>()?;
    let number = ask.context.observed.reloads.ask();
    let by = &ask.caller;
    ask.context.events.info("configuration", format_args!("is to be read again, says {by}"));
    Ok(Answer::json(&Asked { number })?.change(json!({ "reload": number })))
}

/// The report as the caller may see it: findings quote values.
fn shown(mut report: Report, ask: &Ask) -> Report {
    if !ask.caller.sees_values() {
        report.diagnostics.clear();
    }
    report
}

fn reports(ask: &Ask) -> Handled {
    let reports = ask.context.observed.reloads.reports_kept();
    let items = reports.into_iter().map(|report| shown(report, ask)).collect();
    Answer::json(&Reports { items })
}

fn report(ask: &Ask) -> Handled {
    let number = ask.number("number")?;
    let report = ask.context.observed.reloads.report(number);
    let report = report.ok_or_else(|| {
        Problem::not_found(format_args!("there is no report of a reload {number}"))
            .help("the last 32 are kept")
    })?;
    Answer::json(&shown(report, ask))
}

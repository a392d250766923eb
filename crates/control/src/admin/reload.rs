//! Reloads the configuration file, and reports the results of reloads.

use std::pin::Pin;
use std::time::Duration;

use axum::http::StatusCode;
use serde_json::json;
use weir_api::reload::{Reload, ReloadSettings, ReloadState, Reloads};
use weir_config::snapshot::Role;

use super::answer::Answer;
use super::ask::{Ask, Kind, Parameter};
use super::problem::Problem;
use super::route::{HandlerResult, Route};

/// Maximum wait for the result of a reload: longer than the default wait for first probes.
const RESULT_WAIT_MAX_MS: u64 = 15_000;

const WAIT_MS: Parameter = Parameter {
    name: "wait_ms",
    kind: Kind::Time { max: RESULT_WAIT_MAX_MS, default: RESULT_WAIT_MAX_MS },
    summary: "The answer comes after this time, even if the result is not known yet; 0: at once",
};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get_later(
            "/v1/reload",
            "reload",
            "Reads the configuration file again, and answers with the result",
            reload,
        )
        .post()
        .role(Role::Operate)
        .query(&[WAIT_MS])
        .takes::<ReloadSettings>()
        .statuses(&[StatusCode::ACCEPTED, StatusCode::CONFLICT])
        .answers::<Reload>(),
        Route::get("/v1/reloads", "listReloads", "The last reloads, the newest last", reports)
            .answers::<Reloads>(),
        Route::get(
            "/v1/reloads/{number}",
            "getReload",
            "How far a reload is, and its result",
            report,
        )
        .statuses(&[StatusCode::NOT_FOUND])
        .answers::<Reload>(),
    ]
}

fn reload(ask: Ask) -> Pin<Box<dyn Future<Output = HandlerResult> + Send>> {
    Box::pin(async move {
        ask.document::<ReloadSettings>()?;
        let reloads = &ask.context.observed.reloads;
        let number = reloads.ask();
        let by = &ask.caller;
        ask.context.events.info("configuration", format_args!("is to be read again, says {by}"));
        let wait_ms = u64::try_from(ask.query.number(&WAIT_MS)).unwrap_or(RESULT_WAIT_MAX_MS);
        let wait = Duration::from_millis(wait_ms);
        let report = match wait_ms {
            // A timer of no time may take a moment, in which the reload could end.
            0 => reloads.report(number),
            _ => match tokio::time::timeout(wait, reloads.result(number)).await {
                Ok(report) => report,
                Err(_) => reloads.report(number),
            },
        };
        let report = shown(report.ok_or_else(|| gone(number))?, &ask);
        if report.state == ReloadState::Refused {
            let reason = report.reason.unwrap_or_default();
            let mut detail = format!("reload {number} was refused: {reason}");
            if let Some(message) = report.findings.first().map(|it| &it.message) {
                detail = format!("{detail}: {message}");
            }
            let help = "the previous configuration stays in effect";
            let problem = Problem::new(StatusCode::CONFLICT, detail).help(help);
            return Err(problem.findings(report.findings));
        }
        let is_over = report.state == ReloadState::InForce;
        let status = if is_over { StatusCode::OK } else { StatusCode::ACCEPTED };
        Ok(Answer::json(&report)?.status(status).change(json!({ "reload": number })))
    })
}

fn gone(number: u64) -> Problem {
    Problem::not_found(format_args!("there is no report of a reload {number}"))
        .help("the last 32 are kept")
}

/// The report as the caller may see it: findings quote values.
fn shown(mut report: Reload, ask: &Ask) -> Reload {
    if !ask.caller.sees_values() {
        report.diagnostics.clear();
        report.findings.clear();
    }
    report
}

fn reports(ask: &Ask) -> HandlerResult {
    let reports = ask.context.observed.reloads.reports_kept();
    let items = reports.into_iter().map(|report| shown(report, ask)).collect();
    Answer::json(&Reloads { items })
}

fn report(ask: &Ask) -> HandlerResult {
    let number = ask.number("number")?;
    let report = ask.context.observed.reloads.report(number);
    Answer::json(&shown(report.ok_or_else(|| gone(number))?, ask))
}

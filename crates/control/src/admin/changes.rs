//! Transactions on the configuration, and its versions.
//!
//! The handler proposes a transaction to the supervisor, which checks it and puts it in force. The handler waits for
//! the result up to the time in the request, and answers with the transaction's state. A refused transaction gets 409
//! with findings, or 412 if another version came first.

use std::pin::Pin;
use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};
use weir_api::changes::{
    COMMENT_BYTES_MAX, Change, Confirmation, PATH_BYTES_MAX, RollBack, Transaction,
    TransactionReport, TransactionState,
};
use weir_api::differences::{Difference, Differences};
use weir_api::page::Page;
use weir_api::versions::{Version, VersionChange};
use weir_config::snapshot::Role;
use weir_sources::Sources;
use weir_sources::overlay::{self, Overlay, POINTER_BYTES_MAX, Pointer};

use super::answer::Answer;
use super::ask::{Ask, Kind, Parameter};
use super::audit::author_of;
use super::page::{PAGE, page};
use super::peer::Peer;
use super::pools::clip;
use super::problem::Problem;
use super::route::{Content, HandlerResult, Route};
use super::tags::Tags;
use crate::findings::findings;
use crate::overlay::changes::{self, NotQueued};
use crate::overlay::history::{self, RequestedChanges};
use crate::overlay::reports::Report;
use crate::time::rfc3339;

/// Maximum wait for the result of a transaction: longer than the default wait for first probes.
const RESULT_WAIT_MAX_MS: u64 = 15_000;

/// Maximum size of a transaction's document.
const TRANSACTION_BYTES_MAX: usize = 8 << 20;

/// Maximum size of a rollback's document: a comment, each of whose bytes may be escaped, and a head.
const ROLLBACK_BYTES_MAX: usize = 6 * COMMENT_BYTES_MAX + 1024;

/// The media type of configurations (RFC 9512).
const YAML: &str = "application/yaml";

// The API says what the configuration accepts.
const _: () = assert!(PATH_BYTES_MAX == POINTER_BYTES_MAX);

const DRY_RUN: Parameter = Parameter {
    name: "dry_run",
    kind: Kind::Word(&["true", "false"]),
    summary: "Only checks the transaction: nothing changes",
};

const WAIT_MS: Parameter = Parameter {
    name: "wait_ms",
    kind: Kind::Number { max: RESULT_WAIT_MAX_MS, default: RESULT_WAIT_MAX_MS },
    summary: "The answer comes after this time, even if the result is not known yet",
};

type PendingAnswer = Pin<Box<dyn Future<Output = HandlerResult> + Send>>;

pub(super) fn routes() -> Vec<Route> {
    [requests(), views()].concat()
}

/// Routes that change something.
fn requests() -> Vec<Route> {
    const PROPOSED: &[StatusCode] = &[
        StatusCode::ACCEPTED,
        StatusCode::CONFLICT,
        StatusCode::PRECONDITION_FAILED,
        StatusCode::SERVICE_UNAVAILABLE,
    ];
    vec![
        Route::get_later(
            "/v1/changes",
            "change",
            "Changes the configuration: all of it, or nothing",
            propose,
        )
        .post()
        .role(Role::Admin)
        .query(&[DRY_RUN, WAIT_MS])
        .takes::<Transaction>()
        .at_most(TRANSACTION_BYTES_MAX)
        .statuses(PROPOSED)
        .answers::<TransactionReport>(),
        Route::get_later(
            "/v1/versions/{number}/rollback",
            "rollBack",
            "Goes back to this version; 0: no changes",
            roll_back,
        )
        .post()
        .role(Role::Operate)
        .query(&[DRY_RUN, WAIT_MS])
        .takes::<RollBack>()
        .at_most(ROLLBACK_BYTES_MAX)
        .statuses(PROPOSED)
        .answers::<TransactionReport>(),
        Route::get_later(
            "/v1/versions/{number}/revert",
            "revert",
            "Undoes this version alone, and keeps later ones",
            revert,
        )
        .post()
        .role(Role::Operate)
        .query(&[DRY_RUN, WAIT_MS])
        .takes::<RollBack>()
        .at_most(ROLLBACK_BYTES_MAX)
        .statuses(PROPOSED)
        .answers::<TransactionReport>(),
        Route::get_later(
            "/v1/versions/{number}/confirm",
            "confirm",
            "Keeps a version that would be taken back",
            confirm,
        )
        .post()
        .role(Role::Operate)
        .query(&[WAIT_MS])
        .takes::<Confirmation>()
        .statuses(&[StatusCode::ACCEPTED, StatusCode::CONFLICT, StatusCode::SERVICE_UNAVAILABLE])
        .answers::<TransactionReport>(),
    ]
}

/// Routes that show changes.
fn views() -> Vec<Route> {
    vec![
        Route::get(
            "/v1/changes/{number}",
            "getChange",
            "How far a transaction is, and its result",
            report,
        )
        .answers::<TransactionReport>(),
        Route::get(
            "/v1/versions",
            "listVersions",
            "Versions of the configuration, the oldest first",
            versions,
        )
        .query(PAGE)
        .statuses(&[StatusCode::NOT_FOUND])
        .answers::<Page<Version>>(),
        Route::get("/v1/versions/{number}", "getVersion", "A version: who changed what", version)
            .answers::<Version>(),
        Route::get("/v1/diff", "diff", "What the changes say beside the files", diff)
            .answers::<Differences>(),
        Route::get(
            "/v1/configuration",
            "configuration",
            "The configuration in effect as one file, with its secrets",
            merged,
        )
        .role(Role::Admin)
        .content(Content::Text(YAML)),
    ]
}

fn parse(change: Change) -> Result<overlay::Change, Problem> {
    let pointer = |path: &str| {
        Pointer::parse(path).map_err(|why| Problem::bad_request(format_args!("`path`: {why}")))
    };
    Ok(match change {
        Change::Set { path, value } => overlay::Change::Set { path: pointer(&path)?, value },
        Change::Remove { path } => overlay::Change::Remove { path: pointer(&path)? },
    })
}

fn settings(wanted: RollBack) -> Settings {
    let RollBack { comment, confirm_within_s, last: takes_last } = wanted;
    Settings { comment, confirm_within_s, takes_last }
}

/// What a request says beside its changes.
struct Settings {
    comment: String,
    confirm_within_s: Option<u64>,
    takes_last: bool,
}

/// The report as the caller may see it: findings quote values.
fn shown(report: &Report, ask: &Ask) -> TransactionReport {
    let diagnostics = match ask.caller.sees_values() {
        true => findings(&report.diagnostics),
        false => Vec::new(),
    };
    TransactionReport {
        number: report.number,
        state: report.state,
        version: report.version,
        reason: report.reason.clone(),
        diagnostics,
        changes: report.changes.clone(),
        changes_omitted: report.changes_omitted,
    }
}

/// The version that `If-Match` names: `"version-7"`.
fn expected(ask: &Ask) -> Result<Option<u64>, Problem> {
    let number = |tag: &String| -> Option<u64> {
        tag.strip_prefix("\"version-")?.strip_suffix('"')?.parse().ok()
    };
    match &ask.if_match {
        None | Some(Tags::Any) => Ok(None),
        Some(Tags::Some(tags)) => match &tags[..] {
            [tag] if number(tag).is_some() => Ok(number(tag)),
            _ => Err(Problem::new(StatusCode::PRECONDITION_FAILED, "`If-Match` names no version")
                .help("send the newest version: If-Match: \"version-7\"")),
        },
    }
}

fn propose(ask: Ask) -> PendingAnswer {
    Box::pin(async move {
        let transaction: Transaction = ask.document()?;
        if transaction.changes.is_empty() {
            return Err(Problem::bad_request("the transaction has no changes").help(
                "`changes` needs at least one: `{ \"op\": \"set\", \"path\": …, \"value\": … }`",
            ));
        }
        let paths: Vec<String> = transaction
            .changes
            .iter()
            .map(|change| match change {
                Change::Set { path, .. } => format!("set {}", clip(path)),
                Change::Remove { path } => format!("remove {}", clip(path)),
            })
            .take(AUDITED_MAX)
            .collect();
        let Transaction { comment, changes, confirm_within_s, last: takes_last } = transaction;
        let changes: Result<Vec<overlay::Change>, Problem> =
            changes.into_iter().map(parse).collect();
        let wanted = RequestedChanges::Changes(changes?);
        let settings = Settings { comment, confirm_within_s, takes_last };
        transact(&ask, wanted, settings, json!({ "changes": paths })).await
    })
}

/// Maximum number of changes of a transaction in the audit log. The version contains all of them.
const AUDITED_MAX: usize = 20;

fn roll_back(ask: Ask) -> PendingAnswer {
    Box::pin(async move {
        let number = ask.number("number")?;
        let settings = settings(ask.document()?);
        transact(
            &ask,
            RequestedChanges::RollBackTo(number),
            settings,
            json!({ "roll_back_to": number }),
        )
        .await
    })
}

fn revert(ask: Ask) -> PendingAnswer {
    Box::pin(async move {
        let number = ask.number("number")?;
        let settings = settings(ask.document()?);
        transact(&ask, RequestedChanges::Revert(number), settings, json!({ "revert": number }))
            .await
    })
}

async fn transact(
    ask: &Ask,
    wanted: RequestedChanges,
    settings: Settings,
    record: Value,
) -> HandlerResult {
    let dry_run = ask.query.text(DRY_RUN.name) == Some("true");
    let expected_version = expected(ask)?;
    let transaction = changes::Transaction {
        author: author_of(&ask.caller),
        comment: settings.comment,
        expected_version,
        wanted,
        dry_run,
        takes_last: settings.takes_last,
        is_from_network: matches!(ask.caller.peer, Peer::Network(_)),
        confirm_within_s: settings.confirm_within_s,
    };
    let number = ask.context.observed.changes.propose(transaction).map_err(unqueued)?;
    let mut record = record;
    record["dry_run"] = dry_run.into();
    result(ask, number, expected_version, record).await
}

fn confirm(ask: Ask) -> PendingAnswer {
    Box::pin(async move {
        let version = ask.number("number")?;
        ask.document::<Confirmation>()?;
        let changes = &ask.context.observed.changes;
        let number = changes.confirm(version, &author_of(&ask.caller)).map_err(unqueued)?;
        result(&ask, number, None, json!({ "confirmed": version })).await
    })
}

fn unqueued(why: NotQueued) -> Problem {
    let status = match why {
        NotQueued::Full | NotQueued::Ends => StatusCode::SERVICE_UNAVAILABLE,
        NotQueued::Invalid(_) => StatusCode::BAD_REQUEST,
    };
    Problem::new(status, why)
}

/// Waits for the result of a request, and answers with it.
async fn result(ask: &Ask, number: u64, expected: Option<u64>, mut record: Value) -> HandlerResult {
    let changes = &ask.context.observed.changes;
    let wait_ms = u64::try_from(ask.query.number(&WAIT_MS)).unwrap_or(RESULT_WAIT_MAX_MS);
    let wait = Duration::from_millis(wait_ms);
    let result = tokio::time::timeout(wait, changes.result(number)).await;
    let report = match result {
        Ok(report) => report,
        Err(_) => changes.report(number),
    };
    let report = report.ok_or_else(|| gone(number))?;
    if report.state == TransactionState::Refused {
        let reason = report.reason.clone().unwrap_or_default();
        if report.needs_last {
            return Err(Problem::takes_last(reason));
        }
        let is_late = expected.is_some_and(|version| changes.history().version() != version);
        let status = if is_late { StatusCode::PRECONDITION_FAILED } else { StatusCode::CONFLICT };
        let findings = shown(&report, ask).diagnostics;
        return Err(Problem::new(status, reason).findings(findings));
    }
    record["version"] = report.version.into();
    if report.state == TransactionState::Unchanged {
        record["unchanged"] = true.into();
    }
    let status = if report.state.is_final() { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok(Answer::json(&shown(&report, ask))?.status(status).change(record))
}

fn gone(number: u64) -> Problem {
    Problem::not_found(format_args!("there is no report of a transaction {number}"))
}

fn report(ask: &Ask) -> HandlerResult {
    let number = ask.number("number")?;
    let report = ask.context.observed.changes.report(number).ok_or_else(|| gone(number))?;
    Answer::json(&shown(&report, ask))
}

/// A version as the caller may see it.
fn shown_version(
    version: &history::Version,
    unconfirmed: Option<u64>,
    in_force: u64,
    ask: &Ask,
) -> Version {
    let shown = version.concealed();
    let sees_values = ask.caller.sees_values();
    let change = |change: &overlay::Change| {
        let (op, value) = match change {
            overlay::Change::Set { value, .. } => ("set", Some(value.clone())),
            overlay::Change::Remove { .. } => ("remove", None),
        };
        VersionChange {
            op: op.to_owned(),
            path: change.path().as_str().to_owned(),
            value: value.filter(|_| sees_values),
        }
    };
    let (changes, rolled_back_to, reverted) = match &shown.wanted {
        RequestedChanges::Changes(changes) => (changes.iter().map(change).collect(), None, None),
        RequestedChanges::RollBackTo(version) => (Vec::new(), Some(*version), None),
        RequestedChanges::Revert(version) => (Vec::new(), None, Some(*version)),
    };
    let until = version.confirm_until_unix_ms.filter(|_| unconfirmed == Some(version.number));
    Version {
        number: version.number,
        time: rfc3339(version.unix_ms),
        author: shown.author,
        comment: shown.comment,
        changes,
        rolled_back_to,
        reverted,
        confirm_until: until.map(rfc3339),
        in_force: version.number == in_force,
    }
}

fn versions(ask: &Ask) -> HandlerResult {
    let changes = &ask.context.observed.changes;
    let (history, in_force) = (changes.history(), changes.in_force());
    let unconfirmed = history.unconfirmed().map(|it| it.version);
    let page = page(
        &ask.query,
        history.versions(),
        |version| version.number.to_string(),
        |version| shown_version(version, unconfirmed, in_force, ask),
    )?;
    Answer::json(&page)
}

fn version(ask: &Ask) -> HandlerResult {
    let number = ask.number("number")?;
    let changes = &ask.context.observed.changes;
    let history = changes.history();
    let version = history.get(number).ok_or_else(|| {
        let oldest = history.oldest() + 1;
        Problem::not_found(format_args!("there is no version {number}"))
            .help(format!("versions {oldest} to {} are kept", history.version()))
    })?;
    let unconfirmed = history.unconfirmed().map(|it| it.version);
    Answer::json(&shown_version(version, unconfirmed, changes.in_force(), ask))
}

/// A difference as the caller may see it.
fn difference(found: overlay::Difference, sees_values: bool) -> Difference {
    Difference {
        path: found.path.as_str().to_owned(),
        effect: found.effect.as_str().to_owned(),
        file: found.file.filter(|_| sees_values),
        place: found.place,
        overlay: found.overlay.filter(|_| sees_values),
        reason: found.reason,
    }
}

/// The overlay in force.
fn overlay_in_force(ask: &Ask) -> Overlay {
    let changes = &ask.context.observed.changes;
    let history = changes.history();
    // The version in force is always stored.
    history.overlay_after(changes.in_force()).unwrap_or_else(|| history.overlay().clone())
}

fn diff(ask: &Ask) -> HandlerResult {
    let observed = &ask.context.observed;
    let history = observed.changes.history();
    let found = Sources::new(&observed.files(), history.overlay()).differences();
    let sees_values = ask.caller.sees_values();
    Answer::json(&Differences {
        version: history.version(),
        in_force: observed.changes.in_force(),
        unconfirmed: history.unconfirmed().map(|it| it.version),
        items: found.into_iter().map(|it| difference(it, sees_values)).collect(),
    })
}

fn merged(ask: &Ask) -> HandlerResult {
    let (files, overlay) = (ask.context.observed.files(), overlay_in_force(ask));
    let text = Sources::new(&files, &overlay).to_yaml();
    Ok(Answer::text(StatusCode::OK, YAML, text))
}

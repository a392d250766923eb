//! Transactions on the configuration, and its versions.
//!
//! The handler proposes a transaction to the supervisor, which checks it and puts it in force. The handler waits for
//! the result up to the time in the request, and answers with the transaction's state. A refused transaction gets 409
//! with findings, or 412 if another version came first.

use std::pin::Pin;
use std::time::Duration;

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Number, Value, json};
use weir_config::overlay::{Change, Difference, Overlay, POINTER_BYTES_MAX, Pointer};
use weir_config::snapshot::Role;

use super::answer::Answer;
use super::ask::{Ask, Kind, Parameter};
use super::audit::author_of;
use super::page::{PAGE, Page};
use super::peer::Peer;
use super::pools::clip;
use super::problem::Problem;
use super::route::{Content, Handled, Route};
use super::tags::Tags;
use crate::overlay::changes::{COMMENT_BYTES_MAX, CONFIRM_S_MAX, Transaction, Unqueued};
use crate::overlay::history::{Version, Wanted};
use crate::overlay::reports::{Report, State};
use crate::time::rfc3339;

/// Maximum wait for the result of a transaction: longer than the default wait for first probes.
const RESULT_WAIT_MAX_MS: u64 = 15_000;

/// Maximum size of a transaction's document.
const TRANSACTION_BYTES_MAX: usize = 8 << 20;

/// Maximum size of a rollback's document: a comment, each of whose bytes may be escaped, and a head.
const ROLLBACK_BYTES_MAX: usize = 6 * COMMENT_BYTES_MAX + 1024;

/// The media type of configurations (RFC 9512).
const YAML: &str = "application/yaml";

/// A line of text, as a regular expression.
const LINE_PATTERN: &str = r"^[^\u0000-\u001f\u007f-\u009f]*$";

/// A JSON pointer without empty segments, as a regular expression.
const POINTER_PATTERN: &str = "^(/([^/~]|~[01])+)+$";

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

type Later = Pin<Box<dyn Future<Output = Handled> + Send>>;

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
        .takes::<Wish>()
        .at_most(TRANSACTION_BYTES_MAX)
        .statuses(PROPOSED)
        .answers::<Outcome>(),
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
        .answers::<Outcome>(),
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
        .answers::<Outcome>(),
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
        .answers::<Outcome>(),
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
        .answers::<Outcome>(),
        Route::get(
            "/v1/versions",
            "listVersions",
            "Versions of the configuration, the oldest first",
            versions,
        )
        .query(PAGE)
        .statuses(&[StatusCode::NOT_FOUND])
        .answers::<Page<VersionStatus>>(),
        Route::get("/v1/versions/{number}", "getVersion", "A version: who changed what", version)
            .answers::<VersionStatus>(),
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

/// Reads an integer as JSON Schema has it: `60.0` is one, too.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let Some(number) = Option::<Number>::deserialize(deserializer)? else { return Ok(None) };
    let float = number.as_f64().filter(|it| it.fract() == 0.0 && (0.0..=WHOLE_MAX).contains(it));
    let whole = number.as_u64().or_else(|| float.map(|it| it as u64));
    whole
        .map(Some)
        .ok_or_else(|| D::Error::custom(format_args!("{number} is not an integer of at least 0")))
}

/// Up to here, each integer is a floating-point number.
const WHOLE_MAX: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;

/// A transaction.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Transaction")]
struct Wish {
    /// The reason for the changes.
    #[serde(default)]
    #[schemars(length(max = COMMENT_BYTES_MAX), regex(pattern = LINE_PATTERN))]
    comment: String,
    /// The changes, applied in order.
    #[schemars(length(min = 1))]
    changes: Vec<WishedChange>,
    /// Without a confirmation within this time, the previous version is restored.
    #[serde(default, deserialize_with = "whole")]
    #[schemars(range(min = 1, max = CONFIRM_S_MAX))]
    confirm_within_s: Option<u64>,
    /// Also if a pool then has no member that takes new requests, and its clients get 503. Without it, such a change is refused
    /// (409).
    #[serde(default)]
    last: bool,
}

/// A change of the configuration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "Change")]
enum WishedChange {
    /// Sets the value at a path.
    Set {
        /// A JSON pointer (RFC 6901), for example `/pools/web/members/10.0.0.1:80/weight`.
        #[schemars(length(max = POINTER_BYTES_MAX), regex(pattern = POINTER_PATTERN))]
        path: String,
        /// The value, as in the configuration.
        value: Value,
    },
    /// Removes the value at a path.
    Remove {
        /// A JSON pointer (RFC 6901).
        #[schemars(length(max = POINTER_BYTES_MAX), regex(pattern = POINTER_PATTERN))]
        path: String,
    },
}

impl WishedChange {
    fn parse(self) -> Result<Change, Problem> {
        let pointer = |path: &str| {
            Pointer::parse(path).map_err(|why| Problem::bad_request(format_args!("`path`: {why}")))
        };
        Ok(match self {
            Self::Set { path, value } => Change::Set { path: pointer(&path)?, value },
            Self::Remove { path } => Change::Remove { path: pointer(&path)? },
        })
    }
}

/// Settings of a rollback, or of undoing a version.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RollBack {
    /// The reason.
    #[serde(default)]
    #[schemars(length(max = COMMENT_BYTES_MAX), regex(pattern = LINE_PATTERN))]
    comment: String,
    /// Without a confirmation within this time, the previous version is restored.
    #[serde(default, deserialize_with = "whole")]
    #[schemars(range(min = 1, max = CONFIRM_S_MAX))]
    confirm_within_s: Option<u64>,
    /// Also if a pool then has no member that takes new requests, and its clients get 503. Without it, such a change is refused
    /// (409).
    #[serde(default)]
    last: bool,
}

impl RollBack {
    fn settings(self) -> Settings {
        let Self { comment, confirm_within_s, last: takes_last } = self;
        Settings { comment, confirm_within_s, takes_last }
    }
}

/// What a request says beside its changes.
struct Settings {
    comment: String,
    confirm_within_s: Option<u64>,
    takes_last: bool,
}

/// A confirmation has no settings.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Confirmation {}

/// The state of a transaction.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "TransactionReport")]
struct Outcome {
    /// The number of the transaction; use it to query the transaction later.
    number: u64,
    /// `checking`; `waiting` for first probes; `in_force`; `unchanged`: the configuration had these values, and no version was
    /// made; `done` (checked or confirmed); `refused`.
    state: State,
    /// The version that the transaction made; with `unchanged`, the newest version, which stays.
    version: Option<u64>,
    /// The reason for a refusal.
    reason: Option<String>,
    /// Findings, as in `weir check --json`. Only the role admin sees them, because they quote values.
    diagnostics: Vec<Value>,
    /// Changed parts of the configuration: `changed pools.web`.
    changes: Vec<String>,
    /// The number of changes that are not listed.
    changes_omitted: usize,
}

impl Outcome {
    fn of(report: &Report, ask: &Ask) -> Self {
        let shown = match ask.caller.sees_values() {
            true => &report.diagnostics[..],
            false => &[],
        };
        let diagnostics = weir_config::render_json(shown);
        Self {
            number: report.number,
            state: report.state,
            version: report.version,
            reason: report.reason.clone(),
            diagnostics: diagnostics["diagnostics"].as_array().cloned().unwrap_or_default(),
            changes: report.changes.clone(),
            changes_omitted: report.changes_omitted,
        }
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

fn propose(ask: Ask) -> Later {
    Box::pin(async move {
        let mut wish: Wish = ask.document()?;
        if wish.changes.is_empty() {
            return Err(Problem::bad_request("the transaction has no changes").help(
                "`changes` needs at least one: `{ \"op\": \"set\", \"path\": …, \"value\": … }`",
            ));
        }
        let paths: Vec<String> = wish
            .changes
            .iter()
            .map(|change| match change {
                WishedChange::Set { path, .. } => format!("set {}", clip(path)),
                WishedChange::Remove { path } => format!("remove {}", clip(path)),
            })
            .take(AUDITED_MAX)
            .collect();
        let asked = std::mem::take(&mut wish.changes);
        let changes: Result<Vec<Change>, Problem> =
            asked.into_iter().map(WishedChange::parse).collect();
        let wanted = Wanted::Changes(changes?);
        let Wish { comment, confirm_within_s, last: takes_last, .. } = wish;
        let settings = Settings { comment, confirm_within_s, takes_last };
        transact(&ask, wanted, settings, json!({ "changes": paths })).await
    })
}

/// Maximum number of changes of a transaction in the audit log. The version contains all of them.
const AUDITED_MAX: usize = 20;

fn roll_back(ask: Ask) -> Later {
    Box::pin(async move {
        let number = ask.number("number")?;
        let settings = ask.document::<RollBack>()?.settings();
        transact(&ask, Wanted::RollBackTo(number), settings, json!({ "roll_back_to": number }))
            .await
    })
}

fn revert(ask: Ask) -> Later {
    Box::pin(async move {
        let number = ask.number("number")?;
        let settings = ask.document::<RollBack>()?.settings();
        transact(&ask, Wanted::Revert(number), settings, json!({ "revert": number })).await
    })
}

async fn transact(ask: &Ask, wanted: Wanted, settings: Settings, record: Value) -> Handled {
    let dry_run = ask.query.text(DRY_RUN.name) == Some("true");
    let expected_version = expected(ask)?;
    let transaction = Transaction {
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

fn confirm(ask: Ask) -> Later {
    Box::pin(async move {
        let version = ask.number("number")?;
        ask.document::<Confirmation>()?;
        let changes = &ask.context.observed.changes;
        let number = changes.confirm(version, &author_of(&ask.caller)).map_err(unqueued)?;
        result(&ask, number, None, json!({ "confirmed": version })).await
    })
}

fn unqueued(why: Unqueued) -> Problem {
    let status = match why {
        Unqueued::Full | Unqueued::Ends => StatusCode::SERVICE_UNAVAILABLE,
        Unqueued::Invalid(_) => StatusCode::BAD_REQUEST,
    };
    Problem::new(status, why)
}

/// Waits for the result of a request, and answers with it.
async fn result(ask: &Ask, number: u64, expected: Option<u64>, mut record: Value) -> Handled {
    let changes = &ask.context.observed.changes;
    let wait_ms = u64::try_from(ask.query.number(&WAIT_MS)).unwrap_or(RESULT_WAIT_MAX_MS);
    let wait = Duration::from_millis(wait_ms);
    let result = tokio::time::timeout(wait, changes.result(number)).await;
    let report = match result {
        Ok(report) => report,
        Err(_) => changes.report(number),
    };
    let report = report.ok_or_else(|| gone(number))?;
    if report.state == State::Refused {
        let reason = report.reason.clone().unwrap_or_default();
        if report.needs_last {
            return Err(Problem::takes_last(reason));
        }
        let is_late = expected.is_some_and(|version| changes.history().version() != version);
        let status = if is_late { StatusCode::PRECONDITION_FAILED } else { StatusCode::CONFLICT };
        let outcome = Outcome::of(&report, ask);
        return Err(Problem::new(status, reason).findings(outcome.diagnostics));
    }
    record["version"] = report.version.into();
    if report.state == State::Unchanged {
        record["unchanged"] = true.into();
    }
    let status = if report.state.is_final() { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok(Answer::json(&Outcome::of(&report, ask))?.status(status).change(record))
}

fn gone(number: u64) -> Problem {
    Problem::not_found(format_args!("there is no report of a transaction {number}"))
}

fn report(ask: &Ask) -> Handled {
    let number = ask.number("number")?;
    let report = ask.context.observed.changes.report(number).ok_or_else(|| gone(number))?;
    Answer::json(&Outcome::of(&report, ask))
}

/// A version of the configuration.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Version")]
struct VersionStatus {
    /// Versions count from 1; version 0 means the files without changes.
    number: u64,
    time: String,
    /// The user who requested the version.
    author: String,
    /// The reason for the version.
    comment: String,
    /// The requested changes, without passwords and shared keys. Only the role admin sees `value`.
    changes: Vec<Value>,
    /// The version that this one restores, for a rollback.
    rolled_back_to: Option<u64>,
    /// The version that this one undoes.
    reverted: Option<u64>,
    /// Without a confirmation until then, the previous version is restored; `null`: the version stays.
    confirm_until: Option<String>,
    /// Whether this version is in force.
    in_force: bool,
}

impl VersionStatus {
    fn of(version: &Version, unconfirmed: Option<u64>, in_force: u64, ask: &Ask) -> Self {
        let shown = version.concealed();
        let change = |change: &Change| {
            let mut change = serde_json::to_value(change).ok()?;
            if let Some(fields) = change.as_object_mut().filter(|_| !ask.caller.sees_values()) {
                fields.remove("value");
            }
            Some(change)
        };
        let (changes, rolled_back_to, reverted) = match &shown.wanted {
            Wanted::Changes(changes) => (changes.iter().filter_map(change).collect(), None, None),
            Wanted::RollBackTo(version) => (Vec::new(), Some(*version), None),
            Wanted::Revert(version) => (Vec::new(), None, Some(*version)),
        };
        let until = version.confirm_until_unix_ms.filter(|_| unconfirmed == Some(version.number));
        Self {
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
}

fn versions(ask: &Ask) -> Handled {
    let changes = &ask.context.observed.changes;
    let (history, in_force) = (changes.history(), changes.in_force());
    let unconfirmed = history.unconfirmed().map(|it| it.version);
    let page = Page::of(
        &ask.query,
        history.versions(),
        |version| version.number.to_string(),
        |version| VersionStatus::of(version, unconfirmed, in_force, ask),
    )?;
    Answer::json(&page)
}

fn version(ask: &Ask) -> Handled {
    let number = ask.number("number")?;
    let changes = &ask.context.observed.changes;
    let history = changes.history();
    let version = history.get(number).ok_or_else(|| {
        let oldest = history.oldest() + 1;
        Problem::not_found(format_args!("there is no version {number}"))
            .help(format!("versions {oldest} to {} are kept", history.version()))
    })?;
    let unconfirmed = history.unconfirmed().map(|it| it.version);
    Answer::json(&VersionStatus::of(version, unconfirmed, changes.in_force(), ask))
}

/// The changes on top of the files.
#[derive(Debug, Serialize, JsonSchema)]
struct Differences {
    /// The newest version, for `If-Match: "version-N"`.
    version: u64,
    /// The version in force; the newest may wait for first probes.
    in_force: u64,
    /// The newest version, if it still needs a confirmation.
    unconfirmed: Option<u64>,
    items: Vec<DifferenceStatus>,
}

/// A change on top of the files, without passwords and shared keys. Only the role admin sees the values.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Difference")]
struct DifferenceStatus {
    /// A JSON pointer (RFC 6901).
    path: String,
    /// `added`, `changed`, `removed`; `redundant`: the files have the same value; `stale`: the files no longer contain
    /// the changed part.
    effect: &'static str,
    /// The value in the files, as YAML.
    file: Option<String>,
    /// The file and line of that value: `weir.yaml:3`.
    place: Option<String>,
    /// The changed value, as YAML.
    overlay: Option<String>,
    /// The reason why the change has no effect.
    reason: Option<String>,
}

impl DifferenceStatus {
    fn of(found: Difference, sees_values: bool) -> Self {
        Self {
            path: found.path.as_str().to_owned(),
            effect: found.effect.as_str(),
            file: found.file.filter(|_| sees_values),
            place: found.place,
            overlay: found.overlay.filter(|_| sees_values),
            reason: found.reason,
        }
    }
}

/// The overlay in force.
fn overlay_in_force(ask: &Ask) -> Overlay {
    let changes = &ask.context.observed.changes;
    let history = changes.history();
    // The version in force is always stored.
    history.overlay_after(changes.in_force()).unwrap_or_else(|| history.overlay().clone())
}

fn diff(ask: &Ask) -> Handled {
    let observed = &ask.context.observed;
    let history = observed.changes.history();
    let found = observed.files().differences(history.overlay());
    let sees_values = ask.caller.sees_values();
    Answer::json(&Differences {
        version: history.version(),
        in_force: observed.changes.in_force(),
        unconfirmed: history.unconfirmed().map(|it| it.version),
        items: found.into_iter().map(|it| DifferenceStatus::of(it, sees_values)).collect(),
    })
}

fn merged(ask: &Ask) -> Handled {
    let text = ask.context.observed.files().merged(&overlay_in_force(ask));
    Ok(Answer::text(StatusCode::OK, YAML, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_those_of_json_schema() {
        for (text, expected) in [
            ("60", Some(Some(60))),
            ("60.0", Some(Some(60))),
            ("6e1", Some(Some(60))),
            ("18446744073709551615", Some(Some(u64::MAX))),
            ("null", Some(None)),
            ("60.5", None),
            ("-1", None),
            ("-1.0", None),
            ("1e300", None),
            ("\"60\"", None),
        ] {
            let read = whole(&mut serde_json::Deserializer::from_str(text));
            assert_eq!(read.ok(), expected, "{text}");
        }
    }
}

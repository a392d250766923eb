//! Sends a change, and prints its result.

use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::Value;
use weir_api::changes::{CONFIRM_S_MAX, TransactionReport, TransactionState};
use weir_api::versions::Version;
use weir_cli::output;
use weir_cli::values::parse_duration;

use crate::admin::client::Client;
use crate::admin::error::Error;
use crate::admin::findings;
use crate::admin::text::{counted, printable, span};
use crate::admin::{self, Connection, EXIT_REFUSED};

/// Exit status if the change is not in force at the end of `--wait`.
const EXIT_UNDER_WAY: u8 = 4;

/// The interval between queries of the result.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The interval between lines of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);

/// Maximum number of changed parts that are printed.
const CHANGES_SHOWN_MAX: usize = 50;

/// The last line of a refusal.
const UNCHANGED: &str = "nothing has changed\n";

/// Options of all commands that make a version.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Why; versions show it
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,

    /// Only check it: nothing changes
    #[arg(long, conflicts_with = "confirm")]
    pub(super) dry_run: bool,

    /// Return to the version before after this time (30s, 5m), unless `weir confirm` keeps the new one
    #[arg(long, value_name = "DURATION", value_parser = parse_confirm)]
    confirm: Option<u64>,

    /// Also if a pool then has no member that takes new requests: clients get 503 then
    #[arg(long)]
    last: bool,

    /// Only if this is still the newest version, as `weir diff` shows it
    #[arg(long, value_name = "NUMBER")]
    if_version: Option<u64>,

    /// Wait at most this long (500ms, 30s, 5m) [default: until it is in effect or refused]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    wait: Option<Duration>,

    #[command(flatten)]
    pub(super) connection: Connection,

    /// Print weir's answer as JSON on standard output
    #[arg(long)]
    json: bool,
}

impl Options {
    /// These options, for the case that this is still the newest version.
    pub(super) fn if_still(&self, version: u64) -> Self {
        Self { if_version: self.if_version.or(Some(version)), ..self.clone() }
    }
}

/// Parses a duration; weir accepts whole seconds.
fn parse_confirm(text: &str) -> Result<u64, String> {
    let time = parse_duration(text)?;
    match time.subsec_nanos() {
        0 if time.as_secs() <= CONFIRM_S_MAX => Ok(time.as_secs()),
        _ => Err("the time for a confirmation is whole seconds, 1s to 24h".into()),
    }
}

/// Sends `document` to `path` with these options, and prints the result.
pub fn propose(command: &str, options: &Options, path: &str, document: Value) -> ExitCode {
    match propose_and_wait(command, options, path, document) {
        Ok(status) => status,
        Err(error) => {
            let status = admin::refuse(command, &error);
            if error.is_answer() && !options.dry_run {
                output::tell(UNCHANGED);
            }
            status
        }
    }
}

fn propose_and_wait(
    command: &str,
    options: &Options,
    path: &str,
    mut document: Value,
) -> Result<ExitCode, Error> {
    let client = options.connection.client()?;
    if let Some(comment) = &options.comment {
        document["comment"] = comment.as_str().into();
    }
    if let Some(seconds) = options.confirm {
        document["confirm_within_s"] = seconds.into();
    }
    if options.last {
        // An old version of weir does not know this key, and needs no permission.
        document["last"] = true.into();
    }
    let wait = options.wait.map_or(PROGRESS_INTERVAL, |wait| wait.min(PROGRESS_INTERVAL));
    let query = format!("?wait_ms={}&dry_run={}", wait.as_millis(), options.dry_run);
    let began = Instant::now();
    let mut answer = client.post_if(&format!("{path}{query}"), &document, options.if_version)?;
    let mut told_at = began;
    loop {
        let outcome: TransactionReport = client.read(&answer)?;
        let is_over = outcome.state.is_final();
        if is_over || options.wait.is_some_and(|wait| began.elapsed() >= wait) {
            output::tell(findings::render(&outcome.diagnostics));
            let status = status(outcome.state);
            if options.json {
                let printed = admin::print(command, &String::from_utf8_lossy(&answer));
                return Ok(if printed == ExitCode::SUCCESS { status } else { printed });
            }
            return Ok(tell(command, &client, &outcome, began.elapsed()));
        }
        if told_at.elapsed() >= PROGRESS_INTERVAL {
            told_at = Instant::now();
            let doing = doing(outcome.state);
            output::tell(format_args!("{doing}, {}\n", span(began.elapsed())));
        }
        thread::sleep(POLL_INTERVAL);
        answer = client.get(&format!("/v1/changes/{}", outcome.number))?;
    }
}

fn doing(state: TransactionState) -> &'static str {
    match state {
        TransactionState::Waiting => {
            "waits for the first probes of new members (weir status says which)"
        }
        _ => "is being checked",
    }
}

fn status(state: TransactionState) -> ExitCode {
    match state {
        TransactionState::InForce | TransactionState::Unchanged | TransactionState::Done => {
            ExitCode::SUCCESS
        }
        TransactionState::Refused => ExitCode::from(EXIT_REFUSED),
        TransactionState::Checking | TransactionState::Waiting => ExitCode::from(EXIT_UNDER_WAY),
    }
}

fn tell(command: &str, client: &Client, outcome: &TransactionReport, waited: Duration) -> ExitCode {
    match outcome.state {
        TransactionState::InForce | TransactionState::Unchanged | TransactionState::Done => {
            let mut text = done_text(outcome);
            if outcome.state == TransactionState::InForce {
                text += &hint_to_confirm(client, outcome.version);
            }
            admin::print(command, &text)
        }
        TransactionState::Refused => {
            let reason = printable(outcome.reason.as_deref().unwrap_or("no reason is known"));
            output::tell(format_args!("{command}: {reason}\n{UNCHANGED}"));
            ExitCode::from(EXIT_REFUSED)
        }
        TransactionState::Checking | TransactionState::Waiting => {
            let version = outcome.version.map_or_else(String::new, |it| format!("version {it} "));
            output::tell(format_args!(
                "{command}: {version}not in effect after {}: it {}; weir continues\n{}",
                span(waited),
                doing(outcome.state),
                hint_to_confirm(client, outcome.version),
            ));
            ExitCode::from(EXIT_UNDER_WAY)
        }
    }
}

/// The result, such as `version 7 is in effect: 1 change`, and the changed parts.
fn done_text(outcome: &TransactionReport) -> String {
    let what = match (outcome.state, outcome.version) {
        (TransactionState::Unchanged, Some(version)) if version > 0 => {
            return format!("unchanged: version {version} stays, which says this already\n");
        }
        (TransactionState::Unchanged, _) => {
            return "unchanged: the files say this already\n".to_owned();
        }
        (TransactionState::InForce, Some(version)) => format!("version {version} is in effect"),
        _ => "possible, nothing has changed yet".to_owned(),
    };
    let count = outcome.changes.len() + outcome.changes_omitted;
    if count == 0 {
        return format!("{what}: the configuration stays the same\n");
    }
    let mut text = format!("{what}: {}\n", counted(count as u64, "change"));
    for change in outcome.changes.iter().take(CHANGES_SHOWN_MAX) {
        text += &format!("  {}\n", printable(change));
    }
    if count > CHANGES_SHOWN_MAX {
        text += &format!("  and {} more\n", count - CHANGES_SHOWN_MAX);
    }
    text
}

/// A hint how to keep a version that needs a confirmation. The change was made already, so a failure of this query is
/// ignored.
fn hint_to_confirm(client: &Client, version: Option<u64>) -> String {
    let Some(version) = version else { return String::new() };
    let document = client.get(&format!("/v1/versions/{version}"));
    let found = document.and_then(|document| client.read::<Version>(&document)).ok();
    let until = found.and_then(|version| version.confirm_until);
    until.map_or_else(String::new, |until| {
        format!(
            "version {} returns at {}, unless you confirm: weir confirm {version}\n",
            version - 1,
            printable(&until)
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outcome(change: impl FnOnce(&mut Value)) -> TransactionReport {
        let mut document = json!({
            "number": 3, "state": "in_force", "version": 7, "reason": null, "diagnostics": [],
            "changes": ["changed pools.web"], "changes_omitted": 0,
        });
        change(&mut document);
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn results() {
        let check = |change: &dyn Fn(&mut Value), expected: &str| {
            assert_eq!(done_text(&outcome(change)), expected);
        };
        check(&|_| {}, "version 7 is in effect: 1 change\n  changed pools.web\n");
        check(
            &|it| it["changes"] = json!([]),
            "version 7 is in effect: the configuration stays the same\n",
        );
        check(
            &|it| {
                it["state"] = "done".into();
                it["version"] = Value::Null;
            },
            "possible, nothing has changed yet: 1 change\n  changed pools.web\n",
        );
        check(
            &|it| {
                it["state"] = "unchanged".into();
                it["changes"] = json!([]);
            },
            "unchanged: version 7 stays, which says this already\n",
        );
        check(
            &|it| {
                it["state"] = "unchanged".into();
                it["version"] = 0.into();
            },
            "unchanged: the files say this already\n",
        );
        let many: Vec<String> = (0..60).map(|number| format!("added pools.{number}\n")).collect();
        let text = done_text(&outcome(|it| {
            it["changes"] = json!(many);
            it["changes_omitted"] = 4.into();
        }));
        assert!(text.starts_with("version 7 is in effect: 64 changes\n"), "{text}");
        assert!(text.contains("  added pools.0\u{fffd}\n"), "{text}");
        assert!(text.ends_with("  and 14 more\n"), "{text}");
    }

    #[test]
    fn times_for_a_confirmation() {
        let check =
            |text, expected: Option<u64>| assert_eq!(parse_confirm(text).ok(), expected, "{text}");
        check("1s", Some(1));
        check("2m", Some(120));
        check("24h", Some(86_400));
        check("1500ms", None);
        check("25h", None);
        check("0s", None);
    }
}

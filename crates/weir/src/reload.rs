//! `weir reload`: reloads the configuration of a running weir, and reports the changes or the errors.

use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use weir_api::reload::{Reload, ReloadAsked, ReloadSettings, ReloadState};
use weir_cli::output;
use weir_cli::values::parse_duration;

use crate::admin::client::Client;
use crate::admin::error::Error;
use crate::admin::text::{counted, printable, span};
use crate::admin::{self, Connection, EXIT_REFUSED};

const COMMAND: &str = "weir reload";

/// Exit status if the configuration is not in effect at the end of `--wait`.
const EXIT_UNDER_WAY: u8 = 4;

/// The interval between queries of the result.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The interval between lines of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);

/// Maximum number of changes that are printed.
const CHANGES_SHOWN_MAX: usize = 50;

/// Reload the configuration of a running weir
///
/// The file takes effect as a whole, or is refused as a whole. After a refusal, the previous configuration stays in
/// effect, and the command prints the errors. A new pool gets traffic when one of its members has passed its first
/// probe. Open connections and requests are not affected.
///
/// Files named in the configuration (certificates, rules, pages) are read again as well; the list of changes includes
/// those with another content.
///
/// A line with `!` tells of a change at run time (weir set, weir member) that has no effect any more: the files no longer
/// have what it changes, or say the same. `weir diff` shows all changes, `weir unset PATH` removes one.
///
/// Needs the unix socket of the admin listener, or a token with the role operate. SIGHUP does the same without an
/// answer.
///
/// Exit status: 0 in effect; 1 refused; 2 wrong usage; 3 weir cannot be reached; 4 still waiting for first probes at
/// the end of --wait.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir check /etc/weir/weir.yaml && weir reload\n  \
                        weir reload --wait 30s\n  \
                        weir reload --json | jq .changes")]
pub struct Arguments {
    /// Wait at most this long (500ms, 30s, 5m) [default: until it is in effect or refused]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    wait: Option<Duration>,

    #[command(flatten)]
    connection: Connection,

    /// Print the report as JSON on standard output
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    match reload(arguments) {
        Ok(status) => status,
        Err(error) => admin::refuse(COMMAND, &error),
    }
}

fn reload(arguments: &Arguments) -> Result<ExitCode, Error> {
    let client = arguments.connection.client()?;
    let ask = || ask(&client);
    let mut number = ask()?;
    let mut has_asked_again = false;
    let began = Instant::now();
    let mut told_at = began;
    loop {
        let document = match client.get(&format!("/v1/reloads/{number}")) {
            // An upgrade has replaced the process that was asked. The new one may have read an older file.
            Err(Error::Refused { status: 404, .. }) if !has_asked_again => {
                has_asked_again = true;
                number = ask()?;
                continue;
            }
            answered => answered?,
        };
        let report: Reload = client.read(&document)?;
        let is_late = arguments.wait.is_some_and(|wait| began.elapsed() >= wait);
        if report.state.is_final() || is_late {
            if arguments.json {
                let printed = admin::print(COMMAND, &String::from_utf8_lossy(&document));
                return Ok(if printed == ExitCode::SUCCESS {
                    status(report.state)
                } else {
                    printed
                });
            }
            return Ok(tell(&report, began.elapsed()));
        }
        if told_at.elapsed() >= PROGRESS_INTERVAL {
            told_at = Instant::now();
            output::tell(format_args!("{}, {}\n", doing(report.state), span(began.elapsed())));
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Asks for a reload, and does not wait for its result. Returns its number.
fn ask(client: &Client) -> Result<u64, Error> {
    let asked: ReloadAsked = match client.post("/v1/reload?wait_ms=0", &ReloadSettings {}) {
        // An old version of weir never waits, and has no such parameter.
        Err(Error::Refused { status: 400, .. }) => {
            client.read(&client.post("/v1/reload", &ReloadSettings {})?)
        }
        answered => client.read(&answered?),
    }?;
    Ok(asked.number)
}

fn doing(state: ReloadState) -> &'static str {
    match state {
        ReloadState::Waiting => {
            "waits for the first probes of new members (weir status says which)"
        }
        _ => "reads the file, and asks for names",
    }
}

fn status(state: ReloadState) -> ExitCode {
    match state {
        ReloadState::InForce => ExitCode::SUCCESS,
        ReloadState::Refused => ExitCode::from(EXIT_REFUSED),
        ReloadState::Reading | ReloadState::Waiting => ExitCode::from(EXIT_UNDER_WAY),
    }
}

fn tell(report: &Reload, waited: Duration) -> ExitCode {
    match report.state {
        ReloadState::InForce => {
            // Warnings.
            output::tell(&report.diagnostics);
            admin::print(COMMAND, &in_effect_text(report))
        }
        ReloadState::Refused => {
            output::tell(&report.diagnostics);
            let reason = printable(report.reason.as_deref().unwrap_or("no reason is known"));
            output::tell(format_args!(
                "{COMMAND}: refused, the previous configuration stays in effect: {reason}\n"
            ));
            ExitCode::from(EXIT_REFUSED)
        }
        ReloadState::Reading | ReloadState::Waiting => {
            output::tell(format_args!(
                "{COMMAND}: not in effect after {}: it {}; the reload continues\n",
                span(waited),
                doing(report.state)
            ));
            ExitCode::from(EXIT_UNDER_WAY)
        }
    }
}

/// `in effect: 2 changes`, the list of changes, and what has no effect any more.
fn in_effect_text(report: &Reload) -> String {
    let mut text = changes_text(report);
    for lost in report.without_effect.iter().take(CHANGES_SHOWN_MAX) {
        text += &format!("! {}\n", printable(lost));
    }
    match report.without_effect.len().saturating_sub(CHANGES_SHOWN_MAX) {
        0 => text,
        more => text + &format!("! and {more} more without effect\n"),
    }
}

fn changes_text(report: &Reload) -> String {
    let count = report.changes.len() + report.changes_omitted;
    if count == 0 && !report.without_effect.is_empty() {
        return "in effect: the configuration is the same\n".to_owned();
    }
    if count == 0 {
        return "in effect: no setting has changed, and none of the files that the settings name\n"
            .to_owned();
    }
    let mut text = format!("in effect: {}\n", counted(count as u64, "change"));
    for change in report.changes.iter().take(CHANGES_SHOWN_MAX) {
        text += &format!("  {}\n", printable(change));
    }
    if count > CHANGES_SHOWN_MAX {
        text += &format!("  and {} more\n", count - CHANGES_SHOWN_MAX);
    }
    text
}

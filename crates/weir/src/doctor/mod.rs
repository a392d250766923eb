//! `weir doctor`: finds common problems of this host, the configuration and the running weir, and says how to fix them.
//!
//! Each check is a function of a [`Case`] that returns a [`CheckResult`]. A check reports only facts: it omits
//! anything that it cannot inspect.

mod case;
mod certificates;
mod clock;
mod configuration;
mod finding;
pub mod host;
mod kernel;
mod limits;
mod members;
mod ports;
mod running;
pub mod sockets;
mod storage;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use weir_cli::values::parse_duration;
use weir_config::{Config, Diagnostic, LoadResult, Resolutions};

use self::case::{Case, RunningStatus};
use self::finding::{CheckResult, Finding, Report};
use self::host::Host;
use self::running::Answers;
use crate::admin::client::Client;
use crate::admin::error::Error;
use crate::admin::{self, Connection};

const COMMAND: &str = "weir doctor";

/// Exit status if there are warnings or errors.
const EXIT_TROUBLES: u8 = 1;

/// The configuration file of the package.
const FILE_DEFAULT: &str = "/etc/weir/weir.yaml";

/// Find common troubles, and how to mend them
///
/// Looks at this host, a configuration file, its members, and the running weir if there is one: limits, ports, clock,
/// certificates, names, members, kernel settings, folders. If the running weir has changes in front of its file, they are
/// looked at, too. Each finding has a place and a remedy. The file is FILE, else
/// that of the running weir, else /etc/weir/weir.yaml. Run it as weir's user, since rights and limits are those of the
/// caller: sudo -u weir weir doctor.
///
/// Each member is connected to or probed once. Nothing is changed; ports are bound for a moment, without listening.
///
/// Exit status: 0 nothing found but notes, 1 warnings or errors found, 2 wrong usage, 3 the output could not be written.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        sudo -u weir weir doctor\n  \
                        weir doctor weir.yaml               # before the first start\n  \
                        weir doctor --no-members weir.yaml  # without a packet to members and name servers\n  \
                        weir doctor --json | jq -r '.checks[].findings[] | select(.severity == \"error\") | .mend'")]
pub struct Arguments {
    /// The configuration file [default: that of the running weir, or /etc/weir/weir.yaml]
    file: Option<PathBuf>,

    #[command(flatten)]
    connection: Connection,

    /// Resolve no names, and probe no members
    #[arg(long)]
    no_members: bool,

    /// Time for names and members altogether (500ms, 30s, 5m)
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    timeout: Duration,

    /// Print the report as JSON on standard output
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    let report = examine(arguments);
    let text = match arguments.json {
        true => serde_json::to_string_pretty(&report).map(|text| text + "\n"),
        false => Ok(report.render(admin::paint_of_stdout())),
    };
    let text = text.unwrap_or_else(|error| format!("{error}\n"));
    match admin::print(COMMAND, &text) {
        ExitCode::SUCCESS if report.has_troubles() => ExitCode::from(EXIT_TROUBLES),
        status => status,
    }
}

/// The running weir with its answers, or the reason why it is absent.
struct RunningWeir {
    running: Option<(RunningStatus, Answers)>,
    checked: CheckResult,
}

fn examine(arguments: &Arguments) -> Report {
    let host = Host::here();
    let asked = ask_running(&arguments.connection);
    let running = asked.running.as_ref().map(|(running, _)| running);
    let file = file_of(arguments, &asked);
    let loaded = file.as_deref().map(weir_sources::load);
    let mut checks = Vec::new();
    let mut snapshot = None;
    let overlaid = file
        .as_deref()
        .zip(asked.running.as_ref())
        .and_then(|(file, (running, answers))| answers.overlaid(file).filter(|_| running.is_here));
    let in_effect = overlaid.as_ref().or(loaded.as_ref());
    if let Some(config) = in_effect.and_then(|loaded| loaded.config.as_ref()) {
        let (found, network) = look_at(config, arguments);
        snapshot = Some(found);
        checks = network;
    }
    let case = Case { host: &host, snapshot: snapshot.as_ref(), running };
    let mut all = vec![configuration_of(&case, file.as_deref(), loaded.as_ref())];
    all.push(match &asked.running {
        Some((running, answers)) => running::check(running, answers, file.as_deref()),
        None => asked.checked,
    });
    all.extend([limits::check(&case), ports::check(&case), storage::check(&case)]);
    all.extend([kernel::check(&case), clock::check(&case), certificates::check(&case)]);
    all.append(&mut checks);
    Report {
        file: file.map(|file| file.display().to_string()),
        is_running: running.is_some(),
        checks: all,
    }
}

/// Returns the snapshot with resolved names, and the network checks.
fn look_at(
    config: &Config,
    arguments: &Arguments,
) -> (weir_config::snapshot::Snapshot, Vec<CheckResult>) {
    let without = || config.snapshot(&Resolutions::default());
    if arguments.no_members {
        return (without(), Vec::new());
    }
    match members::ask(config, arguments.timeout) {
        Ok(asked) => (asked.snapshot, asked.checks.into()),
        Err(error) => {
            let mut checked = CheckResult::new("members");
            let what = format!("names and members cannot be asked: {error}");
            checked.find(Finding::warning(
                what,
                "this process",
                "end other processes, or raise `ulimit -n`",
            ));
            (without(), vec![checked])
        }
    }
}

/// Findings of the file, or a note that there is no file.
fn configuration_of(
    case: &Case<'_>,
    file: Option<&Path>,
    loaded: Option<&LoadResult>,
) -> CheckResult {
    let Some((file, loaded)) = file.zip(loaded) else {
        let mut checked = CheckResult::new("configuration");
        let what = format!("there is no {FILE_DEFAULT}, and no running weir that has a file here");
        checked.find(Finding::note(what, "configuration", "weir doctor FILE"));
        return checked;
    };
    let diagnostics: &[Diagnostic] = &loaded.diagnostics;
    configuration::check(case, diagnostics, &file.display().to_string())
}

/// The configuration file to check.
fn file_of(arguments: &Arguments, asked: &RunningWeir) -> Option<PathBuf> {
    let of_running = || {
        let (running, answers) = asked.running.as_ref()?;
        let files = answers.files.as_ref().filter(|_| running.is_here)?;
        files.items.first().map(|file| PathBuf::from(&file.path))
    };
    let of_package = || Some(PathBuf::from(FILE_DEFAULT)).filter(|file| file.exists());
    arguments.file.clone().or_else(of_running).or_else(of_package)
}

fn ask_running(connection: &Connection) -> RunningWeir {
    let mut checked = CheckResult::new("running weir");
    let answers = connection.client().and_then(|client| answers_of(&client, connection));
    let running = match answers {
        Ok(running) => Some(running),
        Err(Error::Unreachable(address, error)) if is_absent(&error) => {
            checked.fact(format!("none at {address}"));
            None
        }
        Err(error) => {
            let (what, mend) = halves(&error.to_string());
            checked.find(Finding::warning(what, "the admin listener", mend));
            None
        }
    };
    RunningWeir { running, checked }
}

fn answers_of(client: &Client, connection: &Connection) -> Result<(RunningStatus, Answers), Error> {
    let status = client.read(&client.get("/v1/status")?)?;
    let running = RunningStatus { status, is_here: connection.is_here() };
    Ok((running, Answers::of(client)?))
}

/// Whether the error means that no weir runs, which is not a problem by itself.
fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused)
}

/// Splits an error message into the error and its remedy.
fn halves(error: &str) -> (String, String) {
    let (what, help) = error.split_once("\nhelp: ").unwrap_or((error, "weir status"));
    (what.to_owned(), help.to_owned())
}

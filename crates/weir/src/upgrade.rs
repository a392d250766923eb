//! `weir upgrade`: replaces a running weir with a new process, and reports the result.

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use weir_api::upgrade::{Upgrade, UpgradeAsked, UpgradeReport, UpgradeState};
use weir_cli::output;
use weir_cli::values::parse_duration;

use crate::admin::error::Error;
use crate::admin::text::{printable, span};
use crate::admin::{self, Connection, EXIT_REFUSED, EXIT_USAGE};

const COMMAND: &str = "weir upgrade";

/// The interval between queries of the result.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The interval between lines of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);

/// Number of successive queries that may fail during the take-over.
const FAILURES_MAX: u32 = 20;

/// Replace a running weir by a new process, without losing a connection
///
/// The running process starts the program again, by default from the same path with the same arguments. The new process
/// checks the configuration, gets the listening sockets, and waits for the first probes of its members. When it is
/// ready, it serves; the old process accepts no more connections, and exits with its last client, at the latest after
/// `data_plane.drain_timeout`. If the new process fails or is not ready in time, it is ended, and the old one serves
/// on.
///
/// Needs the unix socket of the admin listener. SIGUSR2 does the same without an answer.
///
/// Exit status: 0 the new process serves; 1 it failed, and the old one serves on; 2 wrong usage; 3 weir cannot be
/// reached.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir upgrade\n  \
                        weir upgrade --binary /opt/weir-2/bin/weir\n  \
                        weir upgrade --timeout 2m --json | jq .pid")]
pub struct Arguments {
    /// Program of the new process [default: that of the running one]
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,

    /// Time for the new process to be ready (500ms, 30s, 5m) [default: 30s and `first_probes.wait`]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    timeout: Option<Duration>,

    #[command(flatten)]
    connection: Connection,

    /// Print the report as JSON on standard output
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    let binary = arguments.binary.as_ref().map(std::path::absolute).transpose();
    let binary = match binary {
        Ok(binary) => binary,
        Err(error) => {
            output::tell(format_args!("{COMMAND}: --binary: {error}\n"));
            return ExitCode::from(EXIT_USAGE);
        }
    };
    match upgrade(arguments, binary) {
        Ok(status) => status,
        Err(error) => admin::refuse(COMMAND, &error),
    }
}

fn upgrade(arguments: &Arguments, binary: Option<PathBuf>) -> Result<ExitCode, Error> {
    let client = arguments.connection.client()?;
    let timeout_ms = arguments.timeout.map(|timeout| timeout.as_millis() as u64);
    let wanted = Upgrade { binary, timeout_ms };
    let asked: UpgradeAsked = client.read(&client.post("/v1/upgrade", &wanted)?)?;
    let began = Instant::now();
    let (mut told_at, mut failures) = (began, 0);
    loop {
        // Either process may answer, and the take-over may break a connection.
        let document = match client.get(&format!("/v1/upgrades/{}", asked.number)) {
            Err(error) if error.is_answer() || failures >= FAILURES_MAX => return Err(error),
            Err(_) => {
                failures += 1;
                thread::sleep(POLL_INTERVAL);
                continue;
            }
            Ok(document) => document,
        };
        failures = 0;
        let report: UpgradeReport = client.read(&document)?;
        if report.state != UpgradeState::Starting {
            if arguments.json {
                let printed = admin::print(COMMAND, &String::from_utf8_lossy(&document));
                let is_done = report.state == UpgradeState::Done;
                return Ok(if printed == ExitCode::SUCCESS && !is_done {
                    ExitCode::from(EXIT_REFUSED)
                } else {
                    printed
                });
            }
            return Ok(tell(&report, began.elapsed()));
        }
        if told_at.elapsed() >= PROGRESS_INTERVAL {
            told_at = Instant::now();
            output::tell(format_args!("the new process starts, {}\n", span(began.elapsed())));
        }
        thread::sleep(POLL_INTERVAL);
    }
}

fn tell(report: &UpgradeReport, waited: Duration) -> ExitCode {
    if report.state == UpgradeState::Done {
        let pid = report.pid.map_or_else(String::new, |pid| format!(" {pid}"));
        let text = format!("upgraded: process{pid} serves, after {}\n", span(waited));
        return admin::print(COMMAND, &text);
    }
    output::tell(&report.diagnostics);
    let reason = printable(report.reason.as_deref().unwrap_or("no reason is known"));
    output::tell(format_args!("{COMMAND}: failed, the old process serves on: {reason}\n"));
    ExitCode::from(EXIT_REFUSED)
}

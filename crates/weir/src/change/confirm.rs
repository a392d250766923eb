//! `weir confirm`: keeps a version that needs a confirmation.

use std::process::ExitCode;

use clap::Args;
use weir_api::changes::Confirmation;

use crate::admin::error::Error;
use crate::admin::{self, Connection};

const COMMAND: &str = "weir confirm";

/// Keep a version of the configuration that was made with --confirm
///
/// Without it, the version before returns by itself when the time is over.
///
/// Needs the unix socket of the admin listener, or a token with the role operate.
///
/// Exit status: 0 the version stays; 1 refused, it does not wait for a confirmation; 2 wrong usage; 3 weir cannot be
/// reached.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir set /pools/web/balance random_two --confirm 2m\n  \
                        weir confirm 7\n  \
                        weir versions          # which one waits for a confirmation?")]
pub struct Arguments {
    /// The version
    #[arg(value_name = "NUMBER")]
    version: u64,

    #[command(flatten)]
    connection: Connection,

    /// Print weir's answer as JSON on standard output
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    match confirm(arguments) {
        Ok(text) => admin::print(COMMAND, &text),
        Err(error) => admin::refuse(COMMAND, &error),
    }
}

fn confirm(arguments: &Arguments) -> Result<String, Error> {
    let client = arguments.connection.client()?;
    let version = arguments.version;
    let document = client.post(&format!("/v1/versions/{version}/confirm"), &Confirmation {})?;
    Ok(match arguments.json {
        true => String::from_utf8_lossy(&document).into_owned(),
        false => format!("version {version} stays\n"),
    })
}

//! `weir rollback`: returns to an earlier version of the configuration.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::transaction::{Options, propose};

const COMMAND: &str = "weir rollback";

/// Return to an earlier version of the configuration of a running weir
///
/// The changes in front of the files become what they were after version NUMBER; 0: none, the files alone. This makes a
/// new version, so a rollback can be rolled back. The files are not part of versions: weir takes them as it last read
/// them.
///
/// Needs the unix socket of the admin listener, or a token with the role operate.
///
/// Exit status: 0 in effect, or possible with --dry-run; 1 refused; 2 wrong usage; 3 weir cannot be reached; 4 not in
/// effect at the end of --wait.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir versions                              # which versions are there?\n  \
                        weir rollback 6 --comment 'too many 5xx'\n  \
                        weir rollback 0 --dry-run                  # what would it change?")]
pub struct Arguments {
    /// The version
    #[arg(value_name = "NUMBER")]
    version: u64,

    #[command(flatten)]
    options: Options,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    let path = format!("/v1/versions/{}/rollback", arguments.version);
    propose(COMMAND, &arguments.options, &path, json!({}))
}

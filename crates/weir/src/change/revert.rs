//! `weir revert`: undoes one version of the configuration, and keeps those after it.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::transaction::{Options, propose};

const COMMAND: &str = "weir revert";

/// Undo one version of the configuration of a running weir, and keep those after it
///
/// What version NUMBER has changed becomes what it was before; changes of later versions stay. If a later version has
/// changed the same again, nothing changes, and the command says what and which version it was. This makes a new
/// version, which can be undone in the same way.
///
/// Needs the unix socket of the admin listener, or a token with the role operate.
///
/// Exit status: 0 in effect, or possible with --dry-run; 1 refused; 2 wrong usage; 3 weir cannot be reached; 4 not in
/// effect at the end of --wait.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir versions                              # what did each version change?\n  \
                        weir revert 7 --comment 'too many 5xx'\n  \
                        weir revert 7 --dry-run                    # is it possible, and what would it change?")]
pub struct Arguments {
    /// The version
    #[arg(value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    version: u64,

    #[command(flatten)]
    options: Options,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    let path = format!("/v1/versions/{}/revert", arguments.version);
    propose(COMMAND, &arguments.options, &path, json!({}))
}

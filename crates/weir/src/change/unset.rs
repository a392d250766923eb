//! `weir unset`: removes values from the configuration of a running weir.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use weir_api::changes::Change;
use weir_cli::output;
use weir_sources::overlay::Pointer;

use super::transaction::{Options, propose};
use crate::admin::EXIT_USAGE;

const COMMAND: &str = "weir unset";

/// Remove values from the configuration of a running weir
///
/// Removes what is at each POINTER, also what the files have there: a setting then has its default, and a member, pool
/// or virtual server is gone. To return to what the files say, use `weir rollback` instead. All of it takes effect, or
/// nothing. `weir help set` describes pointers, and how changes are checked and kept.
///
/// Needs the unix socket of the admin listener, or a token with the role admin.
///
/// Exit status: 0 in effect, or possible with --dry-run; 1 refused; 2 wrong usage; 3 weir cannot be reached; 4 not in
/// effect at the end of --wait.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir unset /pools/web/queue\n  \
                        weir unset /pools/web/members/10.0.0.11:80 --comment 'switched off'\n  \
                        weir unset /virtual_servers/old /pools/old --dry-run")]
pub struct Arguments {
    /// Places in the configuration
    #[arg(value_name = "POINTER", required = true)]
    pointers: Vec<String>,

    #[command(flatten)]
    options: Options,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    for pointer in &arguments.pointers {
        if let Err(why) = Pointer::parse(pointer) {
            output::tell(format_args!("{COMMAND}: `{pointer}`: {why}\n"));
            return ExitCode::from(EXIT_USAGE);
        }
    }
    let changes: Vec<_> =
        arguments.pointers.iter().map(|path| Change::Remove { path: path.clone() }).collect();
    propose(COMMAND, &arguments.options, "/v1/changes", json!({ "changes": changes }))
}

//! `weir rollback`: returns to an earlier version of the configuration.

use std::io::{self, BufRead as _, IsTerminal as _};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use weir_api::differences::Differences;
use weir_api::page::Page;
use weir_api::versions::Version;
use weir_cli::output;

use super::transaction::{Options, propose};
use crate::admin::client::Client;
use crate::admin::error::Error;
use crate::admin::text::{counted, printable};
use crate::admin::{self, EXIT_REFUSED};
use crate::versions::summary;

const COMMAND: &str = "weir rollback";

/// Maximum number of versions that are listed.
const VERSIONS_SHOWN_MAX: usize = 50;

/// Return to an earlier version of the configuration of a running weir
///
/// The changes in front of the files become what they were after version NUMBER; 0: none, the files alone. All later
/// versions go, so the command lists them and asks; --yes does not ask. `weir revert` undoes one version alone.
///
/// This makes a new version, so a rollback can be rolled back. The files are not part of versions: weir takes them as
/// it last read them.
///
/// Needs the unix socket of the admin listener, or a token with the role operate.
///
/// Exit status: 0 in effect, or possible with --dry-run; 1 refused, or not confirmed; 2 wrong usage; 3 weir cannot be
/// reached; 4 not in effect at the end of --wait.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir versions                              # which versions are there?\n  \
                        weir rollback 6 --comment 'too many 5xx'\n  \
                        weir rollback 0 --dry-run                  # what would it change?\n  \
                        weir rollback 6 --yes                      # in a script")]
pub struct Arguments {
    /// The version
    #[arg(value_name = "NUMBER")]
    version: u64,

    /// Do not ask
    #[arg(long, short)]
    yes: bool,

    #[command(flatten)]
    options: Options,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    let (version, options) = (arguments.version, &arguments.options);
    let (newest, goes) = match told(options, version) {
        Ok(told) => told,
        Err(error) => return admin::refuse(COMMAND, &error),
    };
    if goes && !options.dry_run && !arguments.yes && !is_confirmed(version) {
        return ExitCode::from(EXIT_REFUSED);
    }
    let path = format!("/v1/versions/{version}/rollback");
    // What comes in the meantime was not listed.
    let options = options.if_still(newest);
    propose(COMMAND, &options, &path, json!({}))
}

/// Lists the versions that go. Returns the newest version, and whether any goes.
fn told(options: &Options, version: u64) -> Result<(u64, bool), Error> {
    let client = options.connection.client()?;
    let newest: Differences = client.read(&client.get("/v1/diff")?)?;
    let gone = later(&client, version)?;
    output::tell(list(version, &gone));
    Ok((newest.version, !gone.is_empty()))
}

/// The kept versions after this one.
fn later(client: &Client, version: u64) -> Result<Vec<Version>, Error> {
    let oldest: Page<Version> = client.read(&client.get("/v1/versions?limit=1")?)?;
    let after = oldest.items.first().filter(|oldest| oldest.number <= version);
    let after = after.map(|_| version.to_string());
    let found = client.list_after("/v1/versions", after.as_deref());
    let found = match found {
        // There is no such version: weir says so when it is asked for it.
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        found => found?,
    };
    Ok(client.read::<Page<Version>>(&found)?.items)
}

fn list(version: u64, gone: &[Version]) -> String {
    if gone.is_empty() {
        return String::new();
    }
    let count = counted(gone.len() as u64, "version");
    let mut text = format!("version {version} is followed by {count}, the newest first:\n");
    for gone in gone.iter().rev().take(VERSIONS_SHOWN_MAX) {
        let Version { number, time, author, comment, .. } = gone;
        let comment = if comment.is_empty() { String::new() } else { format!(" ({comment})") };
        let line = format!("  {number}  {time}  {author}: {}{comment}", summary(gone));
        text += &(printable(&line) + "\n");
    }
    if let Some(more) = gone.len().checked_sub(VERSIONS_SHOWN_MAX).filter(|more| *more > 0) {
        text += &format!("  and {more} more\n");
    }
    text
}

/// Asks on the terminal. Without one, the answer is no.
fn is_confirmed(version: u64) -> bool {
    let is_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    if !is_terminal {
        output::tell(format_args!(
            "{COMMAND}: it needs --yes where nobody can be asked; nothing has changed\n\
             help: `weir revert NUMBER` undoes one version and keeps later ones\n"
        ));
        return false;
    }
    output::tell(format_args!("Return to version {version}? [y/N] "));
    let mut answer = String::new();
    // An error is no answer.
    let read = io::stdin().lock().read_line(&mut answer);
    let is_yes = read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes");
    if !is_yes {
        output::tell("nothing has changed\n");
    }
    is_yes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_is_listed() {
        let version = |number: u64, comment: &str| -> Version {
            serde_json::from_value(json!({
                "number": number, "time": "2026-11-27T09:00:00.000Z", "author": "ann",
                "comment": comment, "rolled_back_to": null, "confirm_until": null,
                "in_force": false,
                "changes": [{ "op": "set", "path": "/pools/web/retries", "value": 2 }],
            }))
            .unwrap()
        };
        assert_eq!(
            list(6, &[version(7, ""), version(8, "less\u{1b}[2J")]),
            concat!(
                "version 6 is followed by 2 versions, the newest first:\n",
                "  8  2026-11-27T09:00:00.000Z  ann: set /pools/web/retries (less\u{fffd}[2J)\n",
                "  7  2026-11-27T09:00:00.000Z  ann: set /pools/web/retries\n",
            )
        );
        assert_eq!(list(6, &[]), "");
        let many: Vec<Version> = (1..=60).map(|number| version(number, "")).collect();
        assert!(list(0, &many).ends_with("  and 10 more\n"));
    }
}

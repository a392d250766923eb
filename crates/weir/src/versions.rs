//! `weir versions`: the versions of a running weir's configuration.

use std::process::ExitCode;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use weir_api::differences::Differences;
use weir_api::page::Page;
use weir_api::versions::{Version, VersionChange};

use crate::admin::client::Client;
use crate::admin::error::Error;
use crate::admin::text::{Alignment, Paint, Table, Tone, counted};
use crate::admin::{self, Connection};

const COMMAND: &str = "weir versions";

/// Show the versions of a running weir's configuration, or one of them in detail
///
/// Each change of the configuration while weir serves makes a version. Version 0 is the files without changes. Shows
/// the newest versions first; with NUMBER, all changes of one. --json has the oldest first, as the API lists them.
/// Passwords and shared keys are not shown.
///
/// Exit status: 0 shown; 1 unknown version; 2 wrong usage; 3 weir cannot be reached.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir versions\n  \
                        weir versions 7\n  \
                        weir versions --limit 1000 --json | jq -r '.items[] | [.number, .author, .comment] | @tsv'")]
pub struct Arguments {
    /// The version to show in detail
    #[arg(value_name = "NUMBER")]
    version: Option<u64>,

    /// At most so many of the newest
    #[arg(long, value_name = "COUNT", default_value_t = 20, conflicts_with = "version",
          value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    limit: u64,

    #[command(flatten)]
    connection: Connection,

    /// Print the admin listener's JSON on standard output
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    match answer(arguments, admin::paint_of_stdout()) {
        Ok(text) => admin::print(COMMAND, &text),
        Err(error) => admin::refuse(COMMAND, &error),
    }
}

fn answer(arguments: &Arguments, paint: Paint) -> Result<String, Error> {
    let client = arguments.connection.client()?;
    let (document, text) = match arguments.version {
        Some(number) => {
            let document = client.get(&format!("/v1/versions/{number}"))?;
            let text = detail(&client.read(&document)?, paint);
            (document, text)
        }
        None => {
            let after = before_the_newest(&client, arguments.limit)?;
            let after = after.map(|number| number.to_string());
            let document = client.list_after("/v1/versions", after.as_deref())?;
            let text = overview(&client.read::<Page<Version>>(&document)?.items, paint);
            (document, text)
        }
    };
    Ok(if arguments.json { String::from_utf8_lossy(&document).into_owned() } else { text })
}

/// The version before the newest `limit` versions, if it is stored.
fn before_the_newest(client: &Client, limit: u64) -> Result<Option<u64>, Error> {
    let oldest: Page<Version> = client.read(&client.get("/v1/versions?limit=1")?)?;
    let newest: Differences = client.read(&client.get("/v1/diff")?)?;
    let before = newest.version.saturating_sub(limit);
    Ok(oldest.items.first().filter(|oldest| oldest.number <= before).map(|_| before))
}

fn overview(versions: &[Version], paint: Paint) -> String {
    if versions.is_empty() {
        return "There are no versions: the files are in effect, without changes.\n".to_owned();
    }
    let mut table = Table::new(&[
        ("version", Alignment::Right),
        ("time", Alignment::Left),
        ("author", Alignment::Left),
        ("state", Alignment::Left),
        ("changes", Alignment::Left),
        ("comment", Alignment::Left),
    ]);
    let mut is_newer = true;
    for version in versions.iter().rev() {
        let tone = if version.confirm_until.is_some() { Tone::Unusual } else { Tone::Plain };
        is_newer &= !version.in_force;
        let state = match (version.in_force, is_newer) {
            (true, _) => "in effect",
            (false, true) => "waits for first probes",
            (false, false) => "",
        };
        table.row(
            tone,
            [
                version.number.to_string(),
                version.time.clone(),
                version.author.clone(),
                state.to_owned(),
                summary(version),
                version.comment.clone(),
            ],
        );
        if let Some(until) = unconfirmed(version) {
            table.note(Tone::Unusual, until);
        }
    }
    table.render(paint, "  ")
}

fn unconfirmed(version: &Version) -> Option<String> {
    let (until, number) = (version.confirm_until.as_deref()?, version.number);
    let before = number.saturating_sub(1);
    Some(format!("version {before} returns at {until}, unless: weir confirm {number}"))
}

/// The first change, and the number of further ones.
pub fn summary(version: &Version) -> String {
    if let Some(to) = version.rolled_back_to {
        return format!("back to version {to}");
    }
    if let Some(undone) = version.reverted {
        return format!("undoes version {undone}");
    }
    match &version.changes[..] {
        [] => "none".to_owned(),
        [only] => format!("{} {}", only.op, only.path),
        [first, rest @ ..] => format!("{} {} and {} more", first.op, first.path, rest.len()),
    }
}

fn detail(version: &Version, paint: Paint) -> String {
    let mut text = paint.heading(&format!("version {}", version.number));
    let mut line = |tone, name: &str, value: &str| {
        text += &paint.line(tone, "  ", &format!("{name:<7}  {value}"));
    };
    line(Tone::Plain, "time", &version.time);
    line(Tone::Plain, "author", &version.author);
    line(Tone::Plain, "comment", &version.comment);
    line(Tone::Plain, "state", if version.in_force { "in effect" } else { "not in effect" });
    if let Some(until) = unconfirmed(version) {
        line(Tone::Unusual, "", &until);
    }
    let changes = match (version.rolled_back_to, version.reverted) {
        (Some(to), _) => format!("back to version {to}"),
        (None, Some(undone)) => format!("undoes version {undone}"),
        (None, None) => counted(version.changes.len() as u64, "change"),
    };
    line(Tone::Plain, "changes", &changes);
    for change in &version.changes {
        text += &paint.line(Tone::Plain, "    ", &shown(change));
    }
    text
}

/// A change such as `set /pools/web/retries 2`.
fn shown(change: &VersionChange) -> String {
    let value = change.value.as_ref().map_or_else(String::new, |value| format!(" {value}"));
    format!("{} {}{value}", change.op, change.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions() -> Vec<Version> {
        serde_json::from_value(serde_json::json!([
            { "number": 6, "time": "2026-11-27T09:00:00.000Z", "author": "user 0", "comment": "less",
              "changes": [
                  { "op": "set", "path": "/pools/web/retries", "value": 2 },
                  { "op": "remove", "path": "/pools/web/queue" },
              ],
              "rolled_back_to": null, "confirm_until": null, "in_force": false },
            { "number": 7, "time": "2026-11-27T09:30:00.000Z", "author": "ann", "comment": "",
              "changes": [], "rolled_back_to": 5, "confirm_until": "2026-11-27T09:31:00.000Z",
              "in_force": true },
        ]))
        .unwrap()
    }

    #[test]
    fn the_newest_comes_first() {
        assert_eq!(
            overview(&versions(), Paint::Plain),
            concat!(
                "  version  time                      author  state      changes                            comment\n",
                "        7  2026-11-27T09:30:00.000Z  ann     in effect  back to version 5\n",
                "    version 6 returns at 2026-11-27T09:31:00.000Z, unless: weir confirm 7\n",
                "        6  2026-11-27T09:00:00.000Z  user 0             set /pools/web/retries and 1 more  less\n",
            )
        );
    }

    #[test]
    fn one_in_detail() {
        assert_eq!(
            detail(&versions()[0], Paint::Plain),
            "version 6\n  time     2026-11-27T09:00:00.000Z\n  author   user 0\n  comment  less\n  \
             state    not in effect\n  changes  2 changes\n    set /pools/web/retries 2\n    \
             remove /pools/web/queue\n"
        );
        let text = detail(&versions()[1], Paint::Plain);
        assert!(text.contains("  state    in effect\n           version 6 returns at "), "{text}");
        assert!(text.ends_with("  changes  back to version 5\n"), "{text}");
    }
}

//! `weir diff`: the changes of a running weir on top of its files.

use std::process::ExitCode;

use clap::Args;
use weir_api::differences::{Difference, Differences};

use crate::admin::error::Error;
use crate::admin::text::{Paint, Tone, counted};
use crate::admin::{self, Connection, EXIT_UNREACHABLE};

const COMMAND: &str = "weir diff";

/// Exit status if a change has an effect or is stale.
const EXIT_DIFFERENT: u8 = 1;

/// Show what the changes of a running weir say beside its files
///
/// For each change: its place, its effect, and both values. An effect is added, changed, removed; redundant if the
/// files say the same; or stale if the object that it names has gone from the files. `!` marks stale changes. Passwords
/// and shared keys are not shown. Changes of `weir member` are not among them.
///
/// Exit status, like that of diff: 0 the files alone give the same configuration; 1 they do not, or a change is stale;
/// 2 wrong usage; 3 weir cannot be reached, or refused.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir diff\n  \
                        weir diff > /dev/null || echo 'weir has changes that are not in its files'\n  \
                        weir diff --json | jq -r '.items[] | select(.effect == \"stale\") | .path'")]
pub struct Arguments {
    #[command(flatten)]
    connection: Connection,

    /// Print the admin listener's JSON on standard output
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    match diff(arguments, admin::paint_of_stdout()) {
        Ok((text, is_different)) => match admin::print(COMMAND, &text) {
            ExitCode::SUCCESS if is_different => ExitCode::from(EXIT_DIFFERENT),
            status => status,
        },
        Err(error) => {
            admin::refuse(COMMAND, &error);
            ExitCode::from(EXIT_UNREACHABLE)
        }
    }
}

/// The output, and whether there are differences.
fn diff(arguments: &Arguments, paint: Paint) -> Result<(String, bool), Error> {
    let client = arguments.connection.client()?;
    let document = client.get("/v1/diff")?;
    let found: Differences = client.read(&document)?;
    let text = match arguments.json {
        true => String::from_utf8_lossy(&document).into_owned(),
        false => render(&found, paint),
    };
    Ok((text, found.items.iter().any(is_difference)))
}

fn is_difference(difference: &Difference) -> bool {
    difference.effect != "redundant"
}

fn render(found: &Differences, paint: Paint) -> String {
    let Differences { version, in_force, unconfirmed, items } = found;
    let waits = match in_force == version {
        true => String::new(),
        false => format!(", version {in_force} is in effect until first probes have passed"),
    };
    let mut text = paint
        .heading(&format!("version {version}: {}{waits}", counted(items.len() as u64, "change")));
    if let Some(version) = unconfirmed {
        let before = version.saturating_sub(1);
        let hint = format!("version {before} returns by itself, unless: weir confirm {version}");
        text += &paint.line(Tone::Unusual, "  ", &hint);
    }
    for item in items {
        text.push('\n');
        text += &one(item, paint);
    }
    text
}

/// A heading such as `changed /pools/web/balance (weir.yaml:3)`, and the values in lines with `-` and `+`.
fn one(item: &Difference, paint: Paint) -> String {
    let tone = match item.effect.as_str() {
        "stale" => Tone::Wrong,
        "redundant" => Tone::Unusual,
        _ => Tone::Plain,
    };
    let place = item.place.as_deref().map_or_else(String::new, |place| format!(" ({place})"));
    let why = match (&item.reason, item.effect.as_str()) {
        (Some(reason), _) => format!(": {reason}"),
        (None, "redundant") => ": the files say the same".to_owned(),
        (None, _) => String::new(),
    };
    let mut text = paint.line(tone, "  ", &format!("{} {}{place}{why}", item.effect, item.path));
    let values = match tone {
        // Both values are equal.
        Tone::Unusual => [("=", item.overlay.as_deref()), ("-", None)],
        _ => [("-", item.file.as_deref()), ("+", item.overlay.as_deref())],
    };
    for (mark, value) in values {
        for line in value.unwrap_or_default().lines() {
            text += &paint.line(Tone::Plain, "    ", &format!("{mark} {line}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_beside_the_files() {
        let found: Differences = serde_json::from_value(serde_json::json!({
            "version": 7, "in_force": 7, "unconfirmed": 7,
            "items": [
                { "path": "/pools/web/balance", "effect": "changed", "file": "round_robin",
                  "place": "weir.yaml:3", "overlay": "random_two", "reason": null },
                { "path": "/pools/new", "effect": "added", "file": null, "place": null,
                  "overlay": "members:\n  - 10.0.0.1:80", "reason": null },
                { "path": "/pools/old", "effect": "removed", "file": "members: []",
                  "place": "weir.yaml:9", "overlay": null, "reason": null },
                { "path": "/pools/web/retries", "effect": "redundant", "file": "2",
                  "place": "weir.yaml:5", "overlay": "2", "reason": null },
                { "path": "/pools/gone/retries", "effect": "stale", "file": null, "place": null,
                  "overlay": "1", "reason": "there is no pool\u{1b}[2J" },
            ],
        }))
        .unwrap();
        assert_eq!(
            render(&found, Paint::Plain),
            "version 7: 5 changes\n  version 6 returns by itself, unless: weir confirm 7\n\
             \n  changed /pools/web/balance (weir.yaml:3)\n    - round_robin\n    + random_two\n\
             \n  added /pools/new\n    + members:\n    +   - 10.0.0.1:80\n\
             \n  removed /pools/old (weir.yaml:9)\n    - members: []\n\
             \n  redundant /pools/web/retries (weir.yaml:5): the files say the same\n    = 2\n\
             \n! stale /pools/gone/retries: there is no pool\u{fffd}[2J\n    + 1\n"
        );
        let different: Vec<bool> = found.items.iter().map(is_difference).collect();
        assert_eq!(different, [true, true, true, false, true]);
    }

    #[test]
    fn no_changes() {
        let found = Differences { version: 0, in_force: 0, unconfirmed: None, items: Vec::new() };
        assert_eq!(render(&found, Paint::Plain), "version 0: 0 changes\n");
    }
}

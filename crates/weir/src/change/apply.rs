//! `weir apply`: makes the changes in a file.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::Value;
use weir_cli::output;

use super::transaction::{Options, propose};
use crate::admin::{EXIT_REFUSED, findings};
use crate::input::Input;

const COMMAND: &str = "weir apply";

/// Make the changes of a file to the configuration of a running weir
///
/// FILE is a transaction in YAML or JSON: `changes`, a list of `{ op: set, path: POINTER, value: VALUE }` and `{ op:
/// remove, path: POINTER }`, and if you like a `comment` and `confirm_within_s`. --comment and --confirm replace these.
/// The changes are made one after the other, and take effect together, or none does. `weir help set` describes
/// pointers, and how changes are checked and kept.
///
/// Needs the unix socket of the admin listener, or a token with the role admin.
///
/// Exit status: 0 in effect, or possible with --dry-run; 1 refused, or FILE cannot be used; 2 wrong usage; 3 weir
/// cannot be reached; 4 not in effect at the end of --wait.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir apply green.yaml --dry-run\n  \
                        weir apply green.yaml --confirm 2m --if-version 7\n  \
                        ./make-changes | weir apply -\n  \
                        \n\
                        A file:\n  \
                        comment: green takes over\n  \
                        changes:\n    \
                        - { op: set, path: /pools/green, value: { members: [ 10.0.0.21:80, 10.0.0.22:80 ] } }\n    \
                        - { op: set, path: /virtual_servers/shop/pool, value: green }\n    \
                        - { op: remove, path: /pools/blue }")]
pub struct Arguments {
    /// The file; `-` for standard input
    file: PathBuf,

    #[command(flatten)]
    options: Options,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    match transaction(&Input::of(&arguments.file)) {
        Ok(document) => propose(COMMAND, &arguments.options, "/v1/changes", document),
        Err(why) => {
            output::tell(why);
            ExitCode::from(EXIT_REFUSED)
        }
    }
}

/// The transaction in a file. `Err`: the errors as text.
fn transaction(input: &Input) -> Result<Value, String> {
    let name = input.name();
    let bytes = input.read().map_err(|why| format!("{COMMAND}: {name}: {why}\n"))?;
    // JSON first: JSON can escape a character beyond U+FFFF as two surrogates, which YAML cannot.
    let document = match serde_json::from_slice(&bytes) {
        Ok(document) => document,
        Err(_) => weir_sources::document(&name, bytes)
            .map_err(|wrong| weir_config::render_text(&wrong, findings::colour()))?,
    };
    let changes = document.get("changes").and_then(Value::as_array);
    if changes.is_none_or(Vec::is_empty) {
        return Err(format!(
            "{COMMAND}: {name}: there are no changes in it\n\
             help: it has `changes`, a list: weir help apply shows one\n"
        ));
    }
    Ok(document)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<Value, &str>) {
        let file = std::env::temp_dir().join(format!("weir-apply-{}.yaml", std::process::id()));
        std::fs::write(&file, text).unwrap();
        let found = transaction(&Input::of(&file));
        std::fs::remove_file(&file).unwrap();
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{text}"),
            (Err(found), Err(expected)) => assert!(found.contains(expected), "{text}: {found}"),
            (found, _) => panic!("{text}: {found:?}"),
        }
    }

    #[test]
    fn files() {
        let changes = serde_json::json!({
            "comment": "off", "changes": [{ "op": "set", "path": "/a", "value": [5, "off", true] }],
        });
        check(
            "comment: off\nchanges:\n- { op: set, path: /a, value: [ 5, off, true ] }\n",
            Ok(changes.clone()),
        );
        check(&changes.to_string(), Ok(changes));
        let smile = "{\"changes\": [\"\\ud83d\\ude00\"]}";
        check(smile, Ok(serde_json::json!({ "changes": ["\u{1f600}"] })));
        check("", Err(".yaml:1:1: error: the document is empty"));
        check("changes: [ 1\n", Err(".yaml:"));
        check("a: 1\na: 2\nchanges: [ 1 ]\n", Err(".yaml:2:1: error: "));
        check("changes: 1\n", Err("there are no changes in it\nhelp: "));
        check("- 1\n", Err("there are no changes in it"));
    }
}

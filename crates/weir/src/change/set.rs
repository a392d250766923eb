//! `weir set`: sets values in the configuration of a running weir.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use weir_api::changes::Change;
use weir_cli::output;
use weir_sources::overlay::Pointer;

use super::transaction::{Options, propose};
use crate::admin::EXIT_USAGE;

const COMMAND: &str = "weir set";

/// Set values in the configuration of a running weir
///
/// All values of one command take effect together, or none. The result is checked as `weir check` checks files. It
/// takes effect like a reload: open connections and requests are not affected. weir keeps the change in front of its
/// files, also over reloads and restarts, and never writes to the files. `weir diff` shows such changes, `weir
/// rollback` takes them back, `weir save` writes them into a file.
///
/// POINTER is a place in the configuration: a JSON pointer (RFC 6901). Members are found by their addresses. In a name,
/// ~1 stands for / and ~0 for ~.
///
/// VALUE is JSON. Other text is a string, except if it begins like JSON, with `{`, `[` or `"`. Write a string that
/// looks like a number in quotes: '"1.2"'.
///
/// Needs the unix socket of the admin listener, or a token with the role admin.
///
/// Exit status: 0 in effect, or possible with --dry-run; 1 refused; 2 wrong usage; 3 weir cannot be reached; 4 not in
/// effect at the end of --wait.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir set /pools/web/members/10.0.0.11:80/weight 5\n  \
                        weir set /pools/web/members/10.0.0.12:80 '{}' --comment 'one more server'\n  \
                        weir set /pools/web/balance least_connections /pools/web/retries 2 --dry-run\n  \
                        weir set /virtual_servers/shop/pool green --confirm 2m")]
#[command(override_usage = "weir set [OPTIONS] <POINTER> <VALUE> [<POINTER> <VALUE>]...")]
pub struct Arguments {
    /// Places, each with its value
    #[arg(value_name = "POINTER VALUE", num_args = 2.., required = true, allow_negative_numbers = true)]
    words: Vec<String>,

    #[command(flatten)]
    options: Options,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    match changes(&arguments.words) {
        Ok(changes) => {
            let document = json!({ "changes": changes });
            propose(COMMAND, &arguments.options, "/v1/changes", document)
        }
        Err(why) => {
            output::tell(format_args!("{COMMAND}: {why}\n"));
            ExitCode::from(EXIT_USAGE)
        }
    }
}

fn changes(words: &[String]) -> Result<Vec<Change>, String> {
    let (pairs, rest) = words.as_chunks::<2>();
    if let [pointer] = rest {
        return Err(format!("`{pointer}` has no value\nhelp: weir unset takes a value away"));
    }
    let change = |[pointer, value]: &[String; 2]| {
        Pointer::parse(pointer).map_err(|why| format!("`{pointer}`: {why}"))?;
        Ok(Change::Set { path: pointer.clone(), value: parse_value(value)? })
    };
    pairs.iter().map(change).collect()
}

/// Parses JSON; other text becomes a string, unless it begins like JSON, so that an error in JSON is reported.
fn parse_value(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).or_else(|error| {
        if text.trim_start().starts_with(['{', '[', '"']) {
            return Err(format!(
                "`{text}` begins like JSON, but is not valid JSON: {error}\n\
                 help: names and texts within {{ }} and [ ] are quoted: '{{\"weight\": 5}}'"
            ));
        }
        Ok(Value::String(text.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        let check =
            |text, expected: Option<Value>| assert_eq!(parse_value(text).ok(), expected, "{text}");
        check("5", Some(json!(5)));
        check("true", Some(json!(true)));
        check("off", Some(json!("off")));
        check("30s", Some(json!("30s")));
        check("127.0.0.1:80", Some(json!("127.0.0.1:80")));
        check("\"1.2\"", Some(json!("1.2")));
        check("{\"a\": [1]}", Some(json!({ "a": [1] })));
        check("", Some(json!("")));
        check("{ a: 1 }", None);
        check("[ a ]", None);
        check("\"a", None);
    }

    #[test]
    fn places_have_values() {
        let words =
            |words: &[&str]| -> Vec<String> { words.iter().map(|it| (*it).into()).collect() };
        let set = changes(&words(&["/a/b", "1", "/c", "x"])).unwrap();
        assert_eq!(
            json!(set),
            json!([
                { "op": "set", "path": "/a/b", "value": 1 },
                { "op": "set", "path": "/c", "value": "x" },
            ])
        );
        assert!(changes(&words(&["/a", "1", "/b"])).unwrap_err().contains("`/b` has no value"));
        assert!(changes(&words(&["pools", "1"])).unwrap_err().starts_with("`pools`: "));
    }
}

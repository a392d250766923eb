//! `weir token`: tokens for users of the admin listeners.

use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use weir_cli::output;
use weir_control::admin::token::Token;

use crate::admin;
use crate::admin::EXIT_REFUSED;

const COMMAND: &str = "weir token new";

/// Make tokens for users of the admin listeners
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    New(NewArguments),
}

/// Make a token, and print it with the lines for the configuration
///
/// Standard output has the lines for the configuration, with the hash of the token. Standard error has the token
/// itself, once: weir stores it nowhere. Give it to its user, who keeps it in a file (`weir --token-file`).
///
/// A second token for the same user goes beside the first: `token_hash: [ FIRST, SECOND ]`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir token new --name ann --role operate\n  \
                        weir token new --name prometheus --role read 2> prometheus.token")]
struct NewArguments {
    /// The name of the user, for the configuration and the audit log
    #[arg(long, value_name = "NAME", value_parser = user_name)]
    name: String,

    /// The rights of the user
    #[arg(long, value_enum)]
    role: Role,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Role {
    /// Read everything
    Read,
    /// Also change the state of members, end flows, reload and go back to a version
    Operate,
    /// Everything
    Admin,
}

impl Role {
    fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Operate => "operate",
            Self::Admin => "admin",
        }
    }
}

fn user_name(text: &str) -> Result<String, String> {
    weir_config::check_name(text).map(|()| text.to_owned())
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    let Action::New(arguments) = &arguments.action;
    match Token::generate() {
        Ok(token) => {
            let printed = admin::print(COMMAND, &lines(arguments, &token.hash()));
            if printed == ExitCode::SUCCESS {
                output::tell(format_args!("{}\n", token.expose()));
            }
            printed
        }
        Err(error) => {
            output::tell(format_args!("{COMMAND}: {error}\n"));
            ExitCode::from(EXIT_REFUSED)
        }
    }
}

/// The lines for the configuration.
fn lines(arguments: &NewArguments, hash: &str) -> String {
    let NewArguments { name, role } = arguments;
    format!("admin:\n  users:\n    {name}: {{ role: {}, token_hash: \"{hash}\" }}\n", role.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_are_those_of_the_configuration() {
        let arguments = NewArguments { name: "team/ann".into(), role: Role::Operate };
        let hash = Token::generate().expect("random numbers").hash();
        let text = format!(
            "{}  listen: 127.0.0.1:9900\nvirtual_servers: {{ a: {{ listen: 127.0.0.1:80, https_redirect: true }} }}\n",
            lines(&arguments, &hash)
        );
        let checked = weir_config::parse("weir.yaml", &text);
        let config = checked.config.unwrap_or_else(|| panic!("{:?}", checked.diagnostics));
        let snapshot = config.snapshot(&weir_config::Resolutions::default());
        let user = &snapshot.admin.users[0];
        assert_eq!(
            (&*user.name, user.role.as_str(), user.token_hashes.len()),
            ("team/ann", "operate", 1)
        );
        assert!(user_name("a b").is_err() && user_name("").is_err());
    }
}

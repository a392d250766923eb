//! Common parts of commands that connect to a running weir: connection, answers, output.

pub mod address;
pub mod client;
mod credentials;
pub mod error;
pub mod findings;
pub mod follow;
pub mod text;

use std::fmt;
use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

use clap::Args;
use weir_cli::output;

use self::address::AdminAddress;
use self::client::Client;
use self::error::Error;
use self::text::Paint;

/// Exit status if weir refused, or the object does not exist.
pub const EXIT_REFUSED: u8 = 1;

/// Exit status for wrong usage, as in clap.
pub const EXIT_USAGE: u8 = 2;

/// Exit status if weir cannot be reached, or the output could not be written.
pub const EXIT_UNREACHABLE: u8 = 3;

/// The address of weir.
#[derive(Debug, Clone, Args)]
pub struct Connection {
    /// Address of weir's admin listener: unix:/path, ADDRESS:PORT (read-only without a token), or https://HOST:PORT
    #[arg(long, value_name = "ADDRESS", env = "WEIR_ADMIN", hide_env_values = true,
          default_value = address::DEFAULT, value_parser = address::parse)]
    admin: AdminAddress,

    #[command(flatten)]
    credentials: credentials::CredentialArguments,
}

impl Connection {
    /// A client for this address.
    pub fn client(&self) -> Result<Client, Error> {
        Client::new(self.admin.clone(), self.credentials.read()?)
    }

    /// Whether that weir runs on this host.
    pub fn is_here(&self) -> bool {
        self.admin.is_here()
    }
}

/// The address of the admin listener.
impl fmt::Display for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.admin.fmt(formatter)
    }
}

/// The use of colours on standard output.
pub fn paint_of_stdout() -> Paint {
    paint(io::stdout().is_terminal())
}

/// The use of colours on standard error.
pub fn paint_of_stderr() -> Paint {
    paint(io::stderr().is_terminal())
}

fn paint(is_terminal: bool) -> Paint {
    let wanted = is_terminal && std::env::var_os("NO_COLOR").is_none();
    if wanted { Paint::Colourful } else { Paint::Plain }
}

/// Prints the reason for a failure of `command`, with a suggested solution. Returns the exit status.
pub fn refuse(command: &str, error: &Error) -> ExitCode {
    output::tell(findings::render(error.findings()));
    output::tell(format_args!("{command}: {error}\n"));
    ExitCode::from(if error.is_answer() { EXIT_REFUSED } else { EXIT_UNREACHABLE })
}

/// Prints an answer; returns the exit status.
pub fn print(command: &str, text: &str) -> ExitCode {
    print_exactly(command, &weir_control::printable::output(text))
}

/// As [`print`], byte by byte: for a configuration, whose texts must not change.
pub fn print_exactly(command: &str, text: &str) -> ExitCode {
    match output::print(text) {
        // The reader has closed the pipe (`weir status | head`).
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            output::tell(format_args!("{command}: cannot write the answer: {error}\n"));
            ExitCode::from(EXIT_UNREACHABLE)
        }
        _ => ExitCode::SUCCESS,
    }
}

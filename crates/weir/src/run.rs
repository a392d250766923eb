//! `weir run`: serves a configuration file.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use weir_cli::output;
use weir_config::Colour;
use weir_control::events::Events;
use weir_control::supervisor::{self, Error};

/// Exit status if weir could not serve, or stopped because of an error.
const EXIT_FAILED: u8 = 1;

/// Maximum time for writing the last events.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Serve a configuration file
///
/// Runs in the foreground. The access log goes to the configured target, events go to standard error.
///
/// SIGHUP reads the file again; it takes effect as a whole, or is refused as a whole. SIGTERM or SIGINT (Ctrl-C) stops
/// accepting connections, waits for open requests (at most `drain_timeout`), and exits. A second signal exits at once.
/// SIGUSR2 replaces the process by a new one (see `weir help upgrade`).
///
/// Exit status: 0 stopped by a signal, 1 could not serve, 2 wrong usage.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir run weir.yaml\n  \
                        kill -HUP $(pidof weir)   # read weir.yaml again")]
pub struct Arguments {
    /// The configuration file
    file: PathBuf,

    /// Write the secrets of all TLS sessions to the file in the environment variable SSLKEYLOGFILE
    ///
    /// Programs such as Wireshark use them to decrypt recorded traffic (NSS format). The file has the sessions with
    /// clients and with members; anyone who has it can decrypt them. The variable alone has no effect.
    #[arg(long)]
    tls_key_log: bool,
}

/// The environment variable for the file with TLS secrets, as in browsers and curl.
const KEY_LOG_VARIABLE: &str = "SSLKEYLOGFILE";

/// Exit status for wrong usage.
const EXIT_USAGE: u8 = 2;

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    let mut key_log = None;
    if arguments.tls_key_log {
        key_log = std::env::var_os(KEY_LOG_VARIABLE).filter(|path| !path.is_empty());
        if key_log.is_none() {
            output::tell(format_args!(
                "weir: --tls-key-log needs a file name in the environment variable {KEY_LOG_VARIABLE}\n"
            ));
            return ExitCode::from(EXIT_USAGE);
        }
    }
    serve(&arguments.file, key_log.as_deref().map(Path::new))
}

fn serve(file: &Path, key_log: Option<&Path>) -> ExitCode {
    let events = match Events::to_stderr() {
        Ok(events) => events,
        Err(error) => {
            output::tell(format_args!("weir: cannot start a thread: {error}\n"));
            return ExitCode::from(EXIT_FAILED);
        }
    };
    let result = supervisor::run(file, key_log, &events);
    events.flush(FLUSH_TIMEOUT);
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::tell(text_of(&error));
            ExitCode::from(EXIT_FAILED)
        }
    }
}

/// The error message: the findings of `weir check` if the file is invalid, else one line.
fn text_of(error: &Error) -> String {
    let colourful = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let colour = if colourful { Colour::Always } else { Colour::Never };
    match error {
        Error::Configuration { diagnostics, .. } => weir_config::render_text(diagnostics, colour),
        other => format!("weir: {other}\n"),
    }
}

//! `weir logs`: live requests and events of a running weir.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use weir_api::events::{Event, Missed, StreamEnd, StreamEndReason};
use weir_api::recorded::RequestSummary;
use weir_cli::output;

use crate::admin::client::Client;
use crate::admin::error::Error;
use crate::admin::follow::{FollowEnd, FollowNext};
use crate::admin::text::{Paint, Tone, counted};
use crate::admin::{self, Connection, EXIT_REFUSED, EXIT_UNREACHABLE};
use crate::requests::{Filter, line};

const COMMAND: &str = "weir logs";

/// Maximum number of attempts to connect to the new process after an upgrade.
const RECONNECTIONS_MAX: u32 = 10;

/// Pause between two attempts.
const RECONNECT_PAUSE: Duration = Duration::from_millis(200);

/// Follow the requests and events of a running weir
///
/// Shows each request when it is over, and the events of weir, until Ctrl-C or the end of weir; whether an access log is
/// configured does not matter. With a filter, only requests are shown. Secrets are masked. Requests that are missing, because this
/// command or weir is too slow, are counted and told. After an upgrade of weir, the new process is followed.
///
/// Needs the unix socket of the admin listener, or a token with the role operate.
///
/// Exit status: 0 stopped, or weir has ended; 1 refused; 2 wrong usage; 3 weir cannot be reached.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir logs\n  \
                        weir logs --status 5xx\n  \
                        weir logs --virtual-server shop --waf\n  \
                        weir logs --slow --json | jq .target")]
pub struct Arguments {
    #[command(flatten)]
    filter: Filter,

    #[command(flatten)]
    connection: Connection,

    /// Print a JSON document per line: a request, an event, or a count of missed ones
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    let client = match arguments.connection.client() {
        Ok(client) => client,
        Err(error) => return admin::refuse(COMMAND, &error),
    };
    let path = format!("/v1/logs{}", arguments.filter.query(None));
    let mut reconnections = 0;
    loop {
        let mut follower = Follower::new(arguments.json);
        let ended = client.follow(&path, |name, data| follower.take(&client, name, data));
        if let Some(error) = follower.error {
            output::tell(format_args!("{COMMAND}: cannot write: {error}\n"));
            return ExitCode::from(EXIT_UNREACHABLE);
        }
        match (ended, follower.reason) {
            (Ok(FollowEnd::Stopped), None) => return ExitCode::SUCCESS,
            (Ok(_), Some(StreamEndReason::HandedOver)) => reconnections = 0,
            (Ok(_), Some(StreamEndReason::Stopped)) => {
                output::tell(format_args!("{COMMAND}: weir has ended\n"));
                return ExitCode::SUCCESS;
            }
            (Ok(_), Some(StreamEndReason::Revoked)) => {
                output::tell(format_args!("{COMMAND}: the token is not accepted any more\n"));
                return ExitCode::from(EXIT_REFUSED);
            }
            (Ok(_), _) => {
                output::tell(format_args!("{COMMAND}: the connection was lost\n"));
                return ExitCode::from(EXIT_UNREACHABLE);
            }
            // The new process may not have opened its listener yet.
            (Err(Error::Unreachable(..)), _) if (1..RECONNECTIONS_MAX).contains(&reconnections) => {
            }
            (Err(error), _) => return admin::refuse(COMMAND, &error),
        }
        reconnections += 1;
        std::thread::sleep(RECONNECT_PAUSE);
    }
}

/// Prints the events of the stream.
struct Follower {
    is_json: bool,
    paint: Paint,
    /// The reason for the end of the stream, as reported by weir.
    reason: Option<StreamEndReason>,
    error: Option<io::Error>,
}

impl Follower {
    fn new(is_json: bool) -> Self {
        Self { is_json, paint: admin::paint_of_stdout(), reason: None, error: None }
    }

    fn take(&mut self, client: &Client, name: &str, data: &str) -> FollowNext {
        let text = match (name, self.is_json) {
            ("end", _) => {
                self.reason = client.read::<StreamEnd>(data.as_bytes()).ok().map(|end| end.reason);
                return FollowNext::On;
            }
            (_, true) => Ok(format!("{data}\n")),
            (name, false) => self.shown(client, name, data),
        };
        let written = match text {
            Ok(text) => output::print(weir_control::printable::output(&text)),
            Err(error) => Err(io::Error::other(error.to_string())),
        };
        match written {
            Ok(()) => FollowNext::On,
            // The reader closed the pipe.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => FollowNext::Stop,
            Err(error) => {
                self.error = Some(error);
                FollowNext::Stop
            }
        }
    }

    fn shown(&self, client: &Client, name: &str, data: &str) -> Result<String, Error> {
        let data = data.as_bytes();
        Ok(match name {
            "request" => line(&client.read::<RequestSummary>(data)?, self.paint),
            "event" => {
                let Event { time, level, text } = client.read(data)?;
                let tone = match &*level {
                    "error" => Tone::Wrong,
                    "warning" => Tone::Unusual,
                    _ => Tone::Plain,
                };
                self.paint.line(tone, "  ", &format!("{time}  {level}  {text}"))
            }
            "missed" => {
                let Missed { count } = client.read(data)?;
                let missing = counted(count, "request or event");
                self.paint.line(Tone::Unusual, "  ", &format!("({missing} missing here)"))
            }
            // An event type of a newer weir.
            _ => String::new(),
        })
    }
}

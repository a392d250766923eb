//! `weir sessions`: relayed connections, tunnels and sessions of datagrams.

use std::process::ExitCode;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};
use weir_api::sessions::{EndedSessions, Session, SessionType, Sessions, SessionsToEnd};
use weir_cli::values::parse_duration;

use crate::admin::client::{Client, parameters};
use crate::admin::error::Error;
use crate::admin::text::{Alignment, Paint, Table, Tone, counted, grouped, span};
use crate::admin::{self, Connection};

const COMMAND: &str = "weir sessions";

/// List or end relayed connections, WebSockets and UDP sessions
///
/// Sessions are connections of virtual servers of type tcp, tunnels after a request (WebSocket, CONNECT), and sessions of
/// type udp. The options select sessions; a missing option matches any value. Sessions that begin during the command may be
/// missing. For flows of type fast_l4, see `weir l4`.
///
/// Exit status: 0 done; 1 refused; 2 wrong usage; 3 weir cannot be reached.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:\n  \
                        weir sessions\n  \
                        weir sessions --virtual-server database --older-than 1h\n  \
                        weir sessions --client 192.0.2.0/24 --json\n  \
                        weir sessions end --pool database --member 10.0.0.21")]
pub struct Arguments {
    #[command(subcommand)]
    action: Option<Action>,

    #[command(flatten)]
    list: ListArguments,
}

#[derive(Debug, Subcommand)]
enum Action {
    End(EndArguments),
}

/// Selects sessions; a missing option matches any value.
#[derive(Debug, Args)]
struct Filter {
    /// Sessions of this type
    #[arg(long = "type", value_name = "TYPE", value_enum)]
    kind: Option<Type>,

    /// Sessions of this virtual server
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    virtual_server: Option<String>,

    /// Sessions of this pool
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pool: Option<String>,

    /// Sessions of this member: its address as `weir pool` shows it, or its IP address
    #[arg(long, value_name = "ADDRESS", value_parser = NonEmptyStringValueParser::new())]
    member: Option<String>,

    /// Sessions of this client: an address or a network
    #[arg(long, value_name = "NETWORK", value_parser = NonEmptyStringValueParser::new())]
    client: Option<String>,

    /// Sessions that are at least this old (30s, 5m, 1h)
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    older_than: Option<Duration>,
}

/// The type of a session.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Type {
    /// Connections of virtual servers of type tcp
    Tcp,
    /// Tunnels after a request: WebSocket, CONNECT
    Tunnel,
    /// Sessions of virtual servers of type udp
    Udp,
}

impl From<Type> for SessionType {
    fn from(kind: Type) -> Self {
        match kind {
            Type::Tcp => Self::Tcp,
            Type::Tunnel => Self::Tunnel,
            Type::Udp => Self::Udp,
        }
    }
}

#[derive(Debug, Args)]
struct ListArguments {
    #[command(flatten)]
    filter: Filter,

    /// Most sessions to list
    #[arg(long, value_name = "NUMBER", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    max: u32,

    #[command(flatten)]
    connection: Connection,

    /// Print the admin listener's JSON on standard output
    #[arg(long)]
    json: bool,
}

/// End sessions: both ends of TCP connections get a reset
///
/// WebSocket clients see their connection close. A datagram of an ended UDP session begins another one. Needs the unix
/// socket of the admin listener, or a token with the role operate.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir sessions end --client 192.0.2.7\n  \
                        weir sessions end --type tunnel --virtual-server shop\n  \
                        weir sessions end --pool database --member 10.0.0.21 --older-than 10m\n  \
                        weir sessions end --all")]
#[command(group(clap::ArgGroup::new("which").required(true).multiple(true)
    .args(["kind", "virtual_server", "pool", "member", "client", "older_than", "all"])))]
struct EndArguments {
    #[command(flatten)]
    filter: Filter,

    /// All sessions
    #[arg(long, conflicts_with_all = ["kind", "virtual_server", "pool", "member", "client", "older_than"])]
    all: bool,

    #[command(flatten)]
    connection: Connection,

    /// Print the admin listener's JSON on standard output
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    match &arguments.action {
        None => match list(&arguments.list, admin::paint_of_stdout()) {
            Ok(text) => admin::print(COMMAND, &text),
            Err(error) => admin::refuse(COMMAND, &error),
        },
        Some(Action::End(arguments)) => match end(arguments) {
            Ok(text) => admin::print("weir sessions end", &text),
            Err(error) => admin::refuse("weir sessions end", &error),
        },
    }
}

impl Filter {
    fn wanted(&self) -> SessionsToEnd {
        SessionsToEnd {
            r#type: self.kind.map(SessionType::from),
            virtual_server: self.virtual_server.clone(),
            pool: self.pool.clone(),
            member: self.member.clone(),
            client: self.client.clone(),
            // A session that is half a second short of it is not older.
            age_seconds_min: self.older_than.map(|age| age.as_millis().div_ceil(1_000) as u64),
            all: false,
        }
    }
}

fn list(arguments: &ListArguments, paint: Paint) -> Result<String, Error> {
    let client = arguments.connection.client()?;
    let filter = parameters(&arguments.filter.wanted());
    let document = client.get(&format!("/v1/sessions?limit={}{filter}", arguments.max))?;
    let sessions: Sessions = client.read(&document)?;
    if arguments.json {
        return Ok(String::from_utf8_lossy(&document).into_owned());
    }
    Ok(render(&sessions, paint))
}

fn render(sessions: &Sessions, paint: Paint) -> String {
    let mut table = Table::new(&[
        ("type", Alignment::Left),
        ("virtual server", Alignment::Left),
        ("pool", Alignment::Left),
        ("member", Alignment::Left),
        ("client", Alignment::Left),
        ("age", Alignment::Right),
        ("bytes in", Alignment::Right),
        ("bytes out", Alignment::Right),
    ]);
    for session in &sessions.items {
        table.row(Tone::Plain, cells(session));
    }
    let mut text = table.render(paint, "");
    let more = if sessions.more { ", and more: see --max" } else { "" };
    text += &format!("{}{more}\n", counted(sessions.items.len() as u64, "session"));
    text
}

fn cells(session: &Session) -> [String; 8] {
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
    [
        session.r#type.map_or("unknown", SessionType::as_str).to_owned(),
        session.virtual_server.clone(),
        session.pool.clone(),
        or_none(&session.member),
        or_none(&session.client),
        span(Duration::from_secs(session.age_seconds)),
        grouped(session.bytes_received),
        grouped(session.bytes_sent),
    ]
}

fn end(arguments: &EndArguments) -> Result<String, Error> {
    let client = arguments.connection.client()?;
    let wanted = SessionsToEnd { all: arguments.all, ..arguments.filter.wanted() };
    let (document, ended) = end_sessions(&client, &wanted)?;
    if arguments.json {
        return Ok(String::from_utf8_lossy(&document).into_owned());
    }
    Ok(told(ended))
}

/// Ends the selected sessions. Returns the answer and its number of sessions.
pub fn end_sessions(client: &Client, wanted: &SessionsToEnd) -> Result<(Vec<u8>, u64), Error> {
    let document = client.post("/v1/sessions/end", wanted)?;
    let ended: EndedSessions = client.read(&document)?;
    Ok((document.to_vec(), ended.sessions))
}

/// The number of ended sessions, as text.
pub fn told(ended: u64) -> String {
    format!("{} ended\n", counted(ended, "session"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sessions_are_a_table() {
        let sessions: Sessions = serde_json::from_value(json!({
            "more": true,
            "items": [
                {
                    "type": "tcp", "virtual_server": "database", "pool": "pg", "member": "10.0.0.21:5432",
                    "client": "192.0.2.7:40000", "age_seconds": 61, "bytes_received": 1_204, "bytes_sent": 9, "worker": 0,
                },
                {
                    "type": "tunnel", "virtual_server": "chat", "pool": "web", "member": null, "client": null,
                    "age_seconds": 0, "bytes_received": 0, "bytes_sent": 0, "worker": 1,
                },
            ],
        }))
        .unwrap();
        let expected = "\
type    virtual server  pool  member          client             age  bytes in  bytes out
tcp     database        pg    10.0.0.21:5432  192.0.2.7:40000  1 min     1,204          9
tunnel  chat            web   -               -                  0 s         0          0
2 sessions, and more: see --max
";
        let text: Vec<String> = render(&sessions, Paint::Plain)
            .lines()
            .map(|line| line.trim_start().to_owned())
            .collect();
        assert_eq!(text, expected.lines().collect::<Vec<_>>());
        assert_eq!(told(1), "1 session ended\n");
    }

    #[test]
    fn ages_are_rounded_up() {
        let filter = Filter {
            kind: Some(Type::Udp),
            virtual_server: None,
            pool: None,
            member: Some("10.0.0.1".into()),
            client: None,
            older_than: Some(Duration::from_millis(1_500)),
        };
        let expected = json!({ "type": "udp", "member": "10.0.0.1", "age_seconds_min": 2 });
        assert_eq!(json!(filter.wanted()), expected);
        assert_eq!(parameters(&filter.wanted()), "&type=udp&member=10.0.0.1&age_seconds_min=2");
    }
}

//! Sessions of the workers: relayed connections, tunnels (WebSockets) and sessions of datagrams.

use std::time::Duration;

use axum::http::StatusCode;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::json;
use weir_config::snapshot::{NOBODY, Role};
use weir_core::expression::{AddressSet, Network};
use weir_dataplane::sessions::{
    LISTED_SESSIONS_MAX, ListedSession, SessionFilter, SessionKind, SessionsAnswer, SessionsDeed,
    is_member,
};
use weir_exchange::shared::live::LiveMember;

use super::answer::Answer;
use super::ask::{Ask, Kind, Parameter};
use super::pools::clip;
use super::problem::Problem;
use super::route::{Handled, Route};

/// Number of sessions in a list without `limit`.
const LISTED_DEFAULT: u64 = 1_000;

/// How long the workers may take to answer. A worker looks at a part of its sessions in each turn of its loop.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// Maximum age in filters: ten years.
const AGE_SECONDS_MAX: u64 = 10 * 366 * 24 * 60 * 60;

const LIMIT: Parameter = Parameter {
    name: "limit",
    kind: Kind::Number { max: LISTED_SESSIONS_MAX as u64, default: LISTED_DEFAULT },
    summary: "Most sessions in the list",
};

const PARAMETERS: &[Parameter] = &[
    LIMIT,
    Parameter {
        name: "type",
        kind: Kind::Word(&["tcp", "tunnel", "udp"]),
        summary: "Only relayed connections (tcp), tunnels after a request such as WebSockets (tunnel), or sessions of datagrams (udp)",
    },
    Parameter { name: "virtual_server", kind: Kind::Text, summary: "Only sessions of this one" },
    Parameter { name: "pool", kind: Kind::Text, summary: "Only sessions of this pool" },
    Parameter {
        name: "member",
        kind: Kind::Text,
        summary: "Only sessions of this member: its address as shown, or its IP address",
    },
    Parameter {
        name: "client",
        kind: Kind::Text,
        summary: "Only sessions of this client: an address or a network",
    },
    Parameter {
        name: "age_seconds_min",
        kind: Kind::Seconds { max: AGE_SECONDS_MAX },
        summary: "Only sessions that are at least this old",
    },
];

pub(super) fn routes() -> Vec<Route> {
    const STATUSES: &[StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::SERVICE_UNAVAILABLE];
    vec![
        Route::get(
            "/v1/sessions",
            "listSessions",
            "Relayed connections, tunnels and sessions of datagrams",
            list,
        )
        .query(PARAMETERS)
        .statuses(STATUSES)
        .answers::<Listed>(),
        Route::get("/v1/sessions/end", "endSessions", "Ends sessions", end)
            .post()
            .role(Role::Operate)
            .takes::<Wanted>()
            .statuses(STATUSES)
            .answers::<Ended>(),
    ]
}

/// The kind of a session.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "SessionType")]
enum Type {
    /// A connection of a virtual server of type tcp.
    Tcp,
    /// A tunnel after a request, such as a WebSocket.
    Tunnel,
    /// A session of a virtual server of type udp.
    Udp,
}

impl Type {
    fn kind(self) -> SessionKind {
        match self {
            Self::Tcp => SessionKind::Tcp,
            Self::Tunnel => SessionKind::Tunnel,
            Self::Udp => SessionKind::Udp,
        }
    }

    fn of(kind: SessionKind) -> Self {
        match kind {
            SessionKind::Tcp => Self::Tcp,
            SessionKind::Tunnel => Self::Tunnel,
            SessionKind::Udp => Self::Udp,
        }
    }
}

/// Selects sessions. A missing key matches any value.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SessionsToEnd")]
struct Wanted {
    r#type: Option<Type>,
    virtual_server: Option<String>,
    pool: Option<String>,
    /// The address of a member as shown, or its IP address.
    member: Option<String>,
    /// An address or a network.
    #[schemars(schema_with = "network_or_null")]
    client: Option<String>,
    /// The minimum age.
    #[schemars(schema_with = "age_or_null")]
    age_seconds_min: Option<u64>,
    /// Selects all sessions; only without other keys.
    #[serde(default)]
    all: bool,
}

fn network_or_null(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [
            { "type": "string", "format": "ipv4" },
            { "type": "string", "format": "ipv6" },
            { "type": "string", "pattern": "^[0-9A-Fa-f.:]+/[0-9]+$" },
            { "type": "null" },
        ],
    })
}

fn age_or_null(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["integer", "null"], "minimum": 0, "maximum": AGE_SECONDS_MAX })
}

impl Wanted {
    fn of_query(ask: &Ask) -> Self {
        let text = |name| ask.query.text(name).map(str::to_owned);
        let kind = |word: &str| SessionKind::ALL.into_iter().find(|kind| kind.as_str() == word);
        Self {
            r#type: ask.query.text("type").and_then(kind).map(Type::of),
            virtual_server: text("virtual_server"),
            pool: text("pool"),
            member: text("member"),
            client: text("client"),
            age_seconds_min: ask.query.text("age_seconds_min").and_then(|age| age.parse().ok()),
            all: false,
        }
    }

    fn is_any(&self) -> bool {
        let Self { r#type, virtual_server, pool, member, client, age_seconds_min, all: _ } = self;
        let names = [virtual_server, pool, member, client];
        names.into_iter().all(Option::is_none) && r#type.is_none() && age_seconds_min.is_none()
    }

    fn filter(&self, ask: &Ask) -> Result<SessionFilter, Problem> {
        self.check_names(ask)?;
        let network = |client: &String| {
            Network::parse(client).map(|network| AddressSet::new([network])).map_err(|error| {
                Problem::bad_request(format_args!("`client`: {error}"))
                    .help("write an address or a network, such as 192.0.2.0/24")
            })
        };
        let age_seconds = self.age_seconds_min.unwrap_or(0);
        if age_seconds > AGE_SECONDS_MAX {
            let detail = format_args!("`age_seconds_min` is a number up to {AGE_SECONDS_MAX}");
            return Err(Problem::bad_request(detail));
        }
        Ok(SessionFilter {
            kind: self.r#type.map(Type::kind),
            virtual_server: self.virtual_server.clone(),
            pool: self.pool.clone(),
            member: self.member.clone(),
            clients: self.client.as_ref().map(network).transpose()?,
            age_ms_min: age_seconds * 1_000,
        })
    }

    /// Refuses names that nothing has: a misspelled name would select nothing without a word. A removed virtual server, pool
    /// or member still has its name until its last session has ended.
    fn check_names(&self, ask: &Ask) -> Result<(), Problem> {
        let table = ask.context.observed.table();
        let departed = &table.departed;
        if let Some(name) = &self.virtual_server {
            let all = table.virtual_servers.iter().cloned().chain(departed.virtual_servers());
            let all: Vec<_> = all.collect();
            if !all.iter().any(|server| *server.name == **name) {
                let what = format!("there is no virtual server `{}`", clip(name));
                let packets = table.snapshot.packets.as_ref();
                let is_forwarded =
                    packets.is_some_and(|it| it.servers.iter().any(|it| *it.name == **name));
                return Err(match is_forwarded {
                    true => Problem::not_found(what)
                        .help("flows of type fast_l4 are in `/v1/l4/flows` (weir l4)"),
                    false => Problem::unknown(what, name, all.iter().map(|server| &*server.name)),
                });
            }
        }
        if let Some(name) = &self.pool {
            let pools = table.pools.iter().map(|pool| pool.pool.clone());
            let pools: Vec<_> = pools.chain(departed.pools()).collect();
            if !pools.iter().any(|pool| *pool.name == **name) {
                let what = format!("there is no pool `{}`", clip(name));
                let known = pools.iter().map(|pool| &*pool.name).filter(|name| *name != NOBODY);
                return Err(Problem::unknown(what, name, known));
            }
        }
        if let Some(name) = &self.member {
            let members = table.pools.iter().flat_map(|pool| pool.members.iter().cloned());
            let of_pool = |pool: &str| self.pool.as_ref().is_none_or(|wanted| wanted == pool);
            let is_it = |live: &LiveMember| {
                of_pool(&live.pool.name) && is_member(name, &live.label, &live.address)
            };
            if !members.chain(departed.members()).any(|live| is_it(&live)) {
                return Err(Problem::not_found(format_args!(
                    "there is no member `{}`",
                    clip(name)
                ))
                .help("write its address as `weir pool` shows it, or its IP address"));
            }
        }
        Ok(())
    }
}

/// The selected sessions.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Sessions")]
struct Listed {
    items: Vec<Session>,
    /// Whether the list was cut at `limit`.
    more: bool,
}

/// A session.
#[derive(Debug, Serialize, JsonSchema)]
struct Session {
    r#type: Type,
    virtual_server: String,
    pool: String,
    /// `null`: it has no member yet.
    member: Option<String>,
    /// `null`: it came by a unix socket.
    client: Option<String>,
    age_seconds: u64,
    /// Bytes from the client.
    bytes_received: u64,
    /// Bytes to the client.
    bytes_sent: u64,
    worker: usize,
}

impl Session {
    fn of(listed: ListedSession) -> Self {
        Self {
            r#type: Type::of(listed.kind),
            virtual_server: listed.virtual_server.to_string(),
            pool: listed.pool.to_string(),
            member: listed.member.map(|member| member.to_string()),
            client: listed.client.map(|client| client.to_string()),
            age_seconds: listed.age_ms / 1_000,
            bytes_received: listed.bytes_received,
            bytes_sent: listed.bytes_sent,
            worker: listed.worker,
        }
    }
}

/// The number of sessions that were ended.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "EndedSessions")]
struct Ended {
    sessions: u64,
}

fn list(ask: &Ask) -> Handled {
    let filter = Wanted::of_query(ask).filter(ask)?;
    let deed = SessionsDeed::List(ask.query.number(&LIMIT));
    let SessionsAnswer { listed, more, .. } = sessions(ask, filter, deed)?;
    Answer::json(&Listed { items: listed.into_iter().map(Session::of).collect(), more })
}

fn end(ask: &Ask) -> Handled {
    let wanted: Wanted = ask.document()?;
    if wanted.is_any() != wanted.all {
        let problem = Problem::bad_request("say which sessions end, or `{\"all\": true}`");
        return Err(problem.help(
            "select sessions by `type`, `virtual_server`, `pool`, `member`, `client` and `age_seconds_min`",
        ));
    }
    let filter = wanted.filter(ask)?;
    let ended = sessions(ask, filter, SessionsDeed::End)?.ended;
    let what = format_args!("ended {ended} sessions, by {}", ask.caller);
    ask.context.events.info("sessions", what);
    let record = json!({
        "type": wanted.r#type,
        "virtual_server": wanted.virtual_server,
        "pool": wanted.pool,
        "member": wanted.member,
        "client": wanted.client,
        "age_seconds_min": wanted.age_seconds_min,
        "all": wanted.all,
        "sessions_ended": ended,
    });
    Ok(Answer::json(&Ended { sessions: ended })?.change(record))
}

fn sessions(
    ask: &Ask,
    filter: SessionFilter,
    deed: SessionsDeed,
) -> Result<SessionsAnswer, Problem> {
    let unavailable = |error| Problem::new(StatusCode::SERVICE_UNAVAILABLE, error);
    ask.context.observed.sessions().ask(filter, deed, ANSWER_TIME).map_err(unavailable)
}

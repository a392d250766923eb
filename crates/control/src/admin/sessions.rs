//! Sessions of the workers: relayed connections, tunnels (WebSockets) and sessions of datagrams.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::json;
use weir_api::sessions::{
    AGE_SECONDS_MAX, EndedSessions, Session, SessionType, Sessions, SessionsToEnd,
};
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
use super::route::{HandlerResult, Route};

/// Number of sessions in a list without `limit`.
const LISTED_DEFAULT: u64 = 1_000;

/// How long the workers may take to answer. A worker looks at a part of its sessions in each turn of its loop.
const ANSWER_TIME: Duration = Duration::from_secs(10);

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
        .answers::<Sessions>(),
        Route::get("/v1/sessions/end", "endSessions", "Ends sessions", end)
            .post()
            .role(Role::Operate)
            .takes::<SessionsToEnd>()
            .statuses(STATUSES)
            .answers::<EndedSessions>(),
    ]
}

fn kind(wanted: SessionType) -> SessionKind {
    match wanted {
        SessionType::Tcp => SessionKind::Tcp,
        SessionType::Tunnel => SessionKind::Tunnel,
        SessionType::Udp => SessionKind::Udp,
    }
}

fn type_of(kind: SessionKind) -> SessionType {
    match kind {
        SessionKind::Tcp => SessionType::Tcp,
        SessionKind::Tunnel => SessionType::Tunnel,
        SessionKind::Udp => SessionType::Udp,
    }
}

/// The sessions that a query selects.
fn of_query(ask: &Ask) -> SessionsToEnd {
    let text = |name| ask.query.text(name).map(str::to_owned);
    let kind = |word: &str| SessionKind::ALL.into_iter().find(|kind| kind.as_str() == word);
    SessionsToEnd {
        r#type: ask.query.text("type").and_then(kind).map(type_of),
        virtual_server: text("virtual_server"),
        pool: text("pool"),
        member: text("member"),
        client: text("client"),
        age_seconds_min: ask.query.text("age_seconds_min").and_then(|age| age.parse().ok()),
        all: false,
    }
}

fn is_any(wanted: &SessionsToEnd) -> bool {
    let SessionsToEnd { r#type, virtual_server, pool, member, client, age_seconds_min, all: _ } =
        wanted;
    let names = [virtual_server, pool, member, client];
    names.into_iter().all(Option::is_none) && r#type.is_none() && age_seconds_min.is_none()
}

fn filter(wanted: &SessionsToEnd, ask: &Ask) -> Result<SessionFilter, Problem> {
    check_names(wanted, ask)?;
    let network = |client: &String| {
        Network::parse(client).map(|network| AddressSet::new([network])).map_err(|error| {
            Problem::bad_request(format_args!("`client`: {error}"))
                .help("write an address or a network, such as 192.0.2.0/24")
        })
    };
    let age_seconds = wanted.age_seconds_min.unwrap_or(0);
    if age_seconds > AGE_SECONDS_MAX {
        let detail = format_args!("`age_seconds_min` is a number up to {AGE_SECONDS_MAX}");
        return Err(Problem::bad_request(detail));
    }
    Ok(SessionFilter {
        kind: wanted.r#type.map(kind),
        virtual_server: wanted.virtual_server.clone(),
        pool: wanted.pool.clone(),
        member: wanted.member.clone(),
        clients: wanted.client.as_ref().map(network).transpose()?,
        age_ms_min: age_seconds * 1_000,
    })
}

/// Refuses names that nothing has: a misspelled name would select nothing without a word. A removed virtual server, pool
/// or member still has its name until its last session has ended.
fn check_names(wanted: &SessionsToEnd, ask: &Ask) -> Result<(), Problem> {
    let table = ask.context.observed.table();
    let departed = &table.departed;
    if let Some(name) = &wanted.virtual_server {
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
    if let Some(name) = &wanted.pool {
        let pools = table.pools.iter().map(|pool| pool.pool.clone());
        let pools: Vec<_> = pools.chain(departed.pools()).collect();
        if !pools.iter().any(|pool| *pool.name == **name) {
            let what = format!("there is no pool `{}`", clip(name));
            let known = pools.iter().map(|pool| &*pool.name).filter(|name| *name != NOBODY);
            return Err(Problem::unknown(what, name, known));
        }
    }
    if let Some(name) = &wanted.member {
        let members = table.pools.iter().flat_map(|pool| pool.members.iter().cloned());
        let of_pool = |pool: &str| wanted.pool.as_ref().is_none_or(|wanted| wanted == pool);
        let is_it = |live: &LiveMember| {
            of_pool(&live.pool.name) && is_member(name, &live.label, &live.address)
        };
        if !members.chain(departed.members()).any(|live| is_it(&live)) {
            return Err(Problem::not_found(format_args!("there is no member `{}`", clip(name)))
                .help("write its address as `weir pool` shows it, or its IP address"));
        }
    }
    Ok(())
}

fn session(listed: ListedSession) -> Session {
    Session {
        r#type: Some(type_of(listed.kind)),
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

fn list(ask: &Ask) -> HandlerResult {
    let filter = filter(&of_query(ask), ask)?;
    let deed = SessionsDeed::List(ask.query.number(&LIMIT));
    let SessionsAnswer { listed, more, .. } = sessions(ask, filter, deed)?;
    Answer::json(&Sessions { items: listed.into_iter().map(session).collect(), more })
}

fn end(ask: &Ask) -> HandlerResult {
    let wanted: SessionsToEnd = ask.document()?;
    if is_any(&wanted) != wanted.all {
        let problem = Problem::bad_request("say which sessions end, or `{\"all\": true}`");
        return Err(problem.help(
            "select sessions by `type`, `virtual_server`, `pool`, `member`, `client` and `age_seconds_min`",
        ));
    }
    let filter = filter(&wanted, ask)?;
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
    Ok(Answer::json(&EndedSessions { sessions: ended })?.change(record))
}

fn sessions(
    ask: &Ask,
    filter: SessionFilter,
    deed: SessionsDeed,
) -> Result<SessionsAnswer, Problem> {
    let unavailable = |error| Problem::new(StatusCode::SERVICE_UNAVAILABLE, error);
    ask.context.observed.sessions().ask(filter, deed, ANSWER_TIME).map_err(unavailable)
}

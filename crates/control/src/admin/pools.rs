//! `/pools`: the pools and their members, and changes of a member's state at run time.
//!
//! | request | answer |
//! |---|---|
//! | `GET /pools` | `{"pools": […]}`, each as in `/status` |
//! | `GET /pools/POOL` | one of them |
//! | `GET /pools/POOL/members/ADDRESS` | one member, as in `/status` |
//! | `POST /pools/POOL/members/ADDRESS` | 200 with [`Changed`] |
//! | `POST /members/ADDRESS` | the same of all pools that it is a member of: 200 with [`ChangedAll`] |
//!
//! The body of a POST has the new state, `{"state": "drain"}`: `enabled`, `drain`, `disabled`, or `configured` for the
//! state in the file. The change applies from the next request on, on all workers; it survives reloads, until the process
//! ends or the member leaves its pool.
//!
//! Changes are accepted over a unix socket only, with the media type of JSON, and without an Origin: a page in a browser
//! cannot send such a request.
//!
//! | status | reason |
//! |---|---|
//! | 400 | the body is invalid |
//! | 403 | a change over TCP, or from a web page |
//! | 404 | there is no such pool or member; a similar pool name is suggested, but never another member |
//! | 413 | the body is above [`BODY_SIZE_MAX`] |
//! | 415 | the body is not `application/json` |

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::{Deserialize, Serialize};
use weir_config::snapshot::{self, Address};
use weir_core::admin_state::AdminState;
use weir_exchange::shared::live::{LiveMember, LiveTable};

use super::problem::{Problem, listed};
use super::{Context, Peer, json, off_thread};
use crate::events::Level;
use crate::member_state::{administrative_state, is_in_service};
use crate::observed::Observed;
use crate::status::{self, MemberStatus, PoolStatus};

/// Bytes of a change's body.
pub const BODY_SIZE_MAX: usize = 4 * 1024;

/// Characters of an unknown name that messages show.
const NAME_TOLD_LENGTH_MAX: usize = 100;

pub(super) fn routes() -> Router<Context> {
    Router::new()
        .route("/pools", get(pools))
        .route("/pools/{pool}", get(pool))
        .route("/pools/{pool}/members/{member}", get(member).post(change))
        .route("/members/{member}", post(change_all))
}

/// All pools.
#[derive(Debug, Serialize)]
struct Pools {
    pools: Vec<PoolStatus>,
}

async fn pools(State(Context { observed, .. }): State<Context>) -> Response {
    off_thread(move || {
        let pools = status::pools(&observed.table(), &observed.monitors);
        json(StatusCode::OK, &Pools { pools })
    })
    .await
}

async fn pool(
    State(Context { observed, .. }): State<Context>,
    Path(pool): Path<String>,
) -> Response {
    off_thread(move || {
        let table = observed.table();
        match find_pool(&table, &pool) {
            Ok(index) => {
                let (configured, live) = (&table.snapshot.pools[index], &table.pools[index]);
                json(StatusCode::OK, &status::pool(configured, live, &observed.monitors))
            }
            Err(problem) => problem.into_response(),
        }
    })
    .await
}

async fn member(
    State(Context { observed, .. }): State<Context>,
    Path((pool, member)): Path<(String, String)>,
) -> Response {
    match FoundMember::find(observed.table(), &pool, &member) {
        Ok(found) => json(StatusCode::OK, &found.status(&observed)),
        Err(problem) => problem.into_response(),
    }
}

/// A requested change.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    state: WantedState,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WantedState {
    Enabled,
    Drain,
    Disabled,
    /// The state in the file.
    Configured,
}

impl WantedState {
    fn as_override(self) -> Option<AdminState> {
        match self {
            Self::Enabled => Some(AdminState::Enabled),
            Self::Drain => Some(AdminState::Drain),
            Self::Disabled => Some(AdminState::Disabled),
            Self::Configured => None,
        }
    }
}

/// The answer to a change.
#[derive(Debug, Serialize)]
struct Changed {
    pool: String,
    /// It was not so before.
    changed: bool,
    /// The member's state before.
    before: &'static str,
    /// Members of the pool that take new requests now.
    members_in_service: usize,
    /// The member now.
    member: MemberStatus,
}

async fn change(
    State(context): State<Context>,
    Extension(peer): Extension<Peer>,
    Path((pool, member)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let changed = async {
        may_change(peer, &headers)?;
        let wanted = read_change(body).await?.state;
        let found = FoundMember::find(context.observed.table(), &pool, &member)?;
        Ok::<Changed, Problem>(found.set_state(wanted, peer, &context))
    };
    match changed.await {
        Ok(changed) => json(StatusCode::OK, &changed),
        Err(problem) => problem.into_response(),
    }
}

/// The answer to a change of a server wherever it is a member.
#[derive(Debug, Serialize)]
struct ChangedAll {
    members: Vec<Changed>,
}

async fn change_all(
    State(context): State<Context>,
    Extension(peer): Extension<Peer>,
    Path(member): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let changed = async {
        may_change(peer, &headers)?;
        let wanted = read_change(body).await?.state;
        let found = FoundMember::find_all(&context.observed.table(), &member)?;
        let members = found.iter().map(|found| found.set_state(wanted, peer, &context)).collect();
        Ok::<ChangedAll, Problem>(ChangedAll { members })
    };
    match changed.await {
        Ok(changed) => json(StatusCode::OK, &changed),
        Err(problem) => problem.into_response(),
    }
}

/// Whether this peer may change anything with a request of this form.
pub(super) fn may_change(peer: Peer, headers: &HeaderMap) -> Result<(), Problem> {
    if peer == Peer::Network {
        return Err(Problem {
            status: StatusCode::FORBIDDEN,
            error: "TCP is read-only, because weir cannot know the user".into(),
            help: Some(
                "use a unix socket, which belongs to weir's user: \
                 `admin: { listen: unix:/run/weir/admin.sock }`"
                    .into(),
            ),
        });
    }
    if headers.contains_key(header::ORIGIN) {
        return Err(Problem {
            status: StatusCode::FORBIDDEN,
            error: "requests with an Origin come from web pages, and are refused".into(),
            help: None,
        });
    }
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = media_type.and_then(|value| value.split(';').next()).map(str::trim);
    if !essence.is_some_and(|essence| essence.eq_ignore_ascii_case("application/json")) {
        return Err(Problem {
            status: StatusCode::UNSUPPORTED_MEDIA_TYPE,
            error: "a change needs `Content-Type: application/json`".into(),
            help: None,
        });
    }
    Ok(())
}

async fn read_change(body: Body) -> Result<Change, Problem> {
    serde_json::from_slice(&read_body(body).await?).map_err(Problem::bad_request)
}

/// The body of a change, as far as it may be.
pub(super) async fn read_body(body: Body) -> Result<Bytes, Problem> {
    match Limited::new(body, BODY_SIZE_MAX).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Problem {
            status: StatusCode::PAYLOAD_TOO_LARGE,
            error: format!("a change has at most {BODY_SIZE_MAX} bytes"),
            help: None,
        }),
        Err(error) => Err(Problem::bad_request(format_args!("cannot be read: {error}"))),
    }
}

/// A member of the table in force.
struct FoundMember {
    table: Arc<LiveTable>,
    pool: usize,
    member: usize,
}

impl FoundMember {
    /// Finds a member by its address, in whatever form that is written.
    fn find(table: Arc<LiveTable>, pool: &str, member: &str) -> Result<Self, Problem> {
        let pool = find_pool(&table, pool)?;
        match place_in(&table.snapshot.pools[pool], member) {
            Some(member) => Ok(Self { table, pool, member }),
            None => Err(no_such_member(&table.snapshot.pools, &table.snapshot.pools[pool], member)),
        }
    }

    /// Finds a server in all pools that it is a member of.
    fn find_all(table: &Arc<LiveTable>, member: &str) -> Result<Vec<Self>, Problem> {
        let pools = table.snapshot.pools.iter().enumerate();
        let found: Vec<Self> = pools
            .filter_map(|(pool, configured)| {
                let member = place_in(configured, member)?;
                Some(Self { table: Arc::clone(table), pool, member })
            })
            .collect();
        if found.is_empty() {
            return Err(Problem {
                status: StatusCode::NOT_FOUND,
                error: format!("no pool has a member `{}`", clip(member)),
                help: Some("a member has an address and a port: weir status shows them".into()),
            });
        }
        Ok(found)
    }

    fn pool(&self) -> &snapshot::Pool {
        &self.table.snapshot.pools[self.pool]
    }

    fn configured(&self) -> &snapshot::Member {
        &self.pool().members[self.member]
    }

    fn live(&self) -> &LiveMember {
        &self.table.pools[self.pool].members[self.member]
    }

    fn status(&self, observed: &Observed) -> MemberStatus {
        status::member(self.configured(), self.live(), &observed.monitors)
    }

    /// Members of its pool that take new requests.
    fn members_in_service(&self) -> usize {
        let live = &self.table.pools[self.pool].members;
        let members = self.pool().members.iter().zip(live);
        members.filter(|(configured, live)| is_in_service(configured, live)).count()
    }

    fn set_state(&self, wanted: WantedState, by: Peer, context: &Context) -> Changed {
        let before = administrative_state(self.configured(), self.live());
        let wanted = wanted.as_override();
        let changed = self.live().set_state_override(wanted) != wanted;
        let members_in_service = self.members_in_service();
        if changed {
            let told = Told {
                before,
                now: administrative_state(self.configured(), self.live()),
                of_file: wanted.is_none(),
                by,
                requests: self.live().occupancy.load(Relaxed),
                members_in_service,
            };
            let subject = format_args!("member {}/{}", self.pool().name, self.live().label);
            context.events.tell(told.level(), &subject, &told);
        }
        Changed {
            pool: self.pool().name.to_string(),
            changed,
            before: before.as_str(),
            members_in_service,
            member: self.status(&context.observed),
        }
    }
}

/// The event of a change: `is set to drain, was enabled, by user 0 (process 4711); 3 requests are under way`.
struct Told {
    before: AdminState,
    now: AdminState,
    /// Back to the state in the file.
    of_file: bool,
    by: Peer,
    requests: u32,
    members_in_service: usize,
}

impl Told {
    fn level(&self) -> Level {
        if self.takes_the_last() { Level::Warning } else { Level::Info }
    }

    /// Whether the pool has no member left for new requests because of this change.
    fn takes_the_last(&self) -> bool {
        self.members_in_service == 0
            && self.before == AdminState::Enabled
            && self.now != AdminState::Enabled
    }
}

impl fmt::Display for Told {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = if self.of_file { ", as the file says" } else { "" };
        write!(formatter, "is set to {}{source}", self.now.as_str())?;
        write!(formatter, ", was {}, by {}", self.before.as_str(), self.by)?;
        if self.now != AdminState::Enabled {
            match self.requests {
                0 => formatter.write_str("; nothing is under way"),
                1 => formatter.write_str("; 1 request is under way"),
                count => write!(formatter, "; {count} requests are under way"),
            }?;
        }
        if self.takes_the_last() {
            formatter.write_str("; no member of the pool takes new requests now")?;
        }
        Ok(())
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network => formatter.write_str("someone on the network"),
            Self::Local(None) => formatter.write_str("a local process"),
            Self::Local(Some(peer)) => {
                write!(formatter, "user {}", peer.user)?;
                peer.process.map_or(Ok(()), |process| write!(formatter, " (process {process})"))
            }
        }
    }
}

fn find_pool(table: &LiveTable, name: &str) -> Result<usize, Problem> {
    let pools = &table.snapshot.pools;
    pools.iter().position(|pool| *pool.name == *name).ok_or_else(|| {
        let what = format!("there is no pool `{}`", clip(name));
        let known = pools.iter().map(|pool| &*pool.name);
        Problem::unknown(what, name, known.filter(|name| *name != snapshot::NOBODY))
    })
}

/// The place of a member in its pool, by its address in whatever form that is written.
fn place_in(pool: &snapshot::Pool, member: &str) -> Option<usize> {
    let socket: Option<SocketAddr> = member.parse().ok();
    pool.members.iter().position(|candidate| {
        *candidate.label == *member
            || socket.is_some_and(|socket| candidate.address == Address::Socket(socket))
    })
}

/// No other member is suggested: the command takes traffic away, and a wrong suggestion would hit another server.
fn no_such_member(pools: &[Arc<snapshot::Pool>], pool: &snapshot::Pool, member: &str) -> Problem {
    let what = format!("pool `{}` has no member `{}`", pool.name, clip(member));
    // A host name of the file stands for as many members as it has addresses.
    let host = member.rsplit_once(':').map_or(member, |(host, _)| host);
    let named = pool.members.iter().filter(|candidate| {
        candidate.name.as_deref().is_some_and(|name| name.eq_ignore_ascii_case(host))
    });
    if let Some(names) = listed(named.map(|candidate| &*candidate.label)) {
        let help = Some(format!("`{}` stands for {names}", clip(host)));
        return Problem { status: StatusCode::NOT_FOUND, error: what, help };
    }
    let others = pools.iter().filter(|other| place_in(other, member).is_some());
    let help = match listed(others.map(|other| &*other.name)) {
        Some(others) => Some(format!("it is a member of {others}")),
        None => listed(pool.members.iter().map(|candidate| &*candidate.label))
            .map(|members| format!("its members: {members}")),
    };
    Problem { status: StatusCode::NOT_FOUND, error: what, help }
}

fn clip(name: &str) -> String {
    if name.chars().nth(NAME_TOLD_LENGTH_MAX).is_none() {
        return name.to_owned();
    }
    name.chars().take(NAME_TOLD_LENGTH_MAX).chain(['…']).collect()
}

#[cfg(test)]
mod tests;

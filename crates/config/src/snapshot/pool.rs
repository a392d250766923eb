//! Pools and their members.

use std::sync::Arc;

use weir_core::admin_state::AdminState;
use weir_core::balance::Method;
use weir_core::expression::Template;
use weir_core::limit::Rate;
use weir_core::monitor::PassiveSettings;
use weir_core::retry::BudgetSettings;
use weir_http::flaws::Flaws;
use weir_tls::ClientConfig;

use super::{Address, HalfClosed, Monitor, Page, Source};

/// A group of equivalent members.
#[derive(Debug, Clone)]
pub struct Pool {
    /// The key in the file.
    pub name: Arc<str>,
    /// The load balancing method.
    pub balance: Balance,
    /// The members; possibly empty while a name does not resolve. No address occurs twice.
    pub members: Vec<Member>,
    /// Active health checks, for all members without monitors of their own. Without monitors, members count as up.
    pub monitors: Vec<Monitor>,
    /// Passive health checks.
    pub passive: Option<PassiveMarking>,
    /// Whether connections to members use HTTP/2.
    pub http2: bool,
    /// The reuse of idle connections to members.
    pub reuse: ReuseSettings,
    /// Retries of failed requests on other members.
    pub retries: Retries,
    /// Timeout until a member has accepted a connection.
    pub connect_timeout_ms: u64,
    /// Timeout from the end of the request to the response head.
    pub response_timeout_ms: u64,
    /// The source addresses of connections to members.
    pub source: Source,
    /// Members of the next priority are used if fewer members than this are up.
    pub active_members_min: u16,
    /// Duration of the slow start of a member that came up; `None`: no slow start.
    pub slow_start_ms: Option<u64>,
    /// The queue of requests that wait for a member.
    pub queue: Option<QueueSettings>,
    /// Substitutes for requests that the pool does not take.
    pub instead: PoolSubstitutes,
    /// Minimum number of passing monitors for a member to be up; for members with fewer monitors, all of them.
    pub monitors_min: u8,
    /// The PROXY protocol version for connections to members; `None`: no PROXY header.
    pub proxy_protocol: Option<ProxyVersion>,
    /// TLS to members; `None`: no TLS.
    pub tls: Option<Arc<PoolTls>>,
    /// Tolerated flaws of responses, including those tolerated in all pools.
    pub lenient: Flaws,
}

impl Pool {
    /// This pool with other members. Its present ones are not copied.
    pub(crate) fn with_members(&self, members: Vec<Member>) -> Self {
        Self {
            members,
            name: self.name.clone(),
            balance: self.balance.clone(),
            monitors: self.monitors.clone(),
            passive: self.passive,
            http2: self.http2,
            reuse: self.reuse,
            retries: self.retries.clone(),
            connect_timeout_ms: self.connect_timeout_ms,
            response_timeout_ms: self.response_timeout_ms,
            source: self.source.clone(),
            active_members_min: self.active_members_min,
            slow_start_ms: self.slow_start_ms,
            queue: self.queue,
            instead: self.instead.clone(),
            monitors_min: self.monitors_min,
            proxy_protocol: self.proxy_protocol,
            tls: self.tls.clone(),
            lenient: self.lenient,
        }
    }
}

/// Substitutes for requests that a pool does not take.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolSubstitutes {
    /// Index into [`Snapshot::pools`](super::Snapshot::pools): the pool that serves while no member is up.
    pub fallback: Option<usize>,
    /// The pool that serves while this pool is at its limits.
    pub spillover: Option<Spillover>,
    /// The response while no member is up.
    pub maintenance: Option<Maintenance>,
}

impl PoolSubstitutes {
    /// The pools among the substitutes.
    pub fn pools(&self) -> impl Iterator<Item = usize> {
        self.fallback.into_iter().chain(self.spillover.map(|spillover| spillover.pool))
    }
}

/// `spillover:` of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spillover {
    /// Index into [`Snapshot::pools`](super::Snapshot::pools).
    pub pool: usize,
    /// The number of active requests at which the pool is full; `None`: the limits of members apply.
    pub connections: Option<u32>,
}

/// `maintenance:` of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Maintenance {
    /// A page, with status 503.
    Page(Page),
    /// A redirect to this URL.
    Redirect(Arc<[u8]>),
}

/// Retries of failed requests on other members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retries {
    /// Maximum number of retries of a request.
    pub max: u8,
    /// A limit on retries in proportion to requests.
    pub budget: Option<BudgetSettings>,
    /// Response statuses that count as a failure of the member.
    pub on: Box<[u16]>,
    /// Whether non-idempotent requests are retried for these statuses.
    pub non_idempotent: bool,
}

/// `tls:` of a pool.
#[derive(Debug, Clone)]
pub struct PoolTls {
    /// Trusted authorities, and weir's certificate.
    pub config: Arc<ClientConfig>,
    /// The server name for members; `None`: each member's own name.
    pub server_name: Option<Arc<str>>,
    /// All inputs of these settings: equal inputs mean equal settings.
    pub made_from: Vec<Vec<u8>>,
}

impl Eq for PoolTls {}

impl PartialEq for PoolTls {
    fn eq(&self, other: &Self) -> bool {
        self.made_from == other.made_from && self.server_name == other.server_name
    }
}

/// `passive:` of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassiveMarking {
    /// The conditions of an ejection.
    pub counting: PassiveSettings,
    /// Maximum length of an ejection; each consecutive one is twice as long.
    pub eject_max_ms: u32,
    /// Maximum share of members that are ejected at the same time.
    pub ejected_share_max_percent: u8,
}

/// The load balancing method of a pool.
#[derive(Debug, Clone)]
pub enum Balance {
    /// By active requests, or in turn.
    Method(Method),
    /// By the hash of a value of the request.
    Hash(Template),
    /// By the hash of the client's address.
    SourceAddress,
}

/// The queue of requests that wait for a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueSettings {
    /// Maximum number of waiting requests on all workers.
    pub length_max: u32,
    /// Maximum wait.
    pub timeout_ms: u64,
    /// Whether a request leaves the queue, at once, when its client has half-closed the connection; `None`: as the virtual
    /// server says.
    pub half_closed: Option<HalfClosed>,
}

/// A version of the PROXY protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyVersion {
    /// Text.
    V1,
    /// Binary.
    V2,
}

/// Idle member connections of one worker to one member (connection multiplexing).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReuseSettings {
    /// Maximum number of idle connections per worker and member; 0: every request opens a connection.
    pub idle_per_worker: u32,
    /// Maximum idle time of a connection.
    pub idle_timeout_ms: u64,
    /// A connection is closed after this number of requests.
    pub requests_max: u32,
    /// Whether a connection on which the member authenticates a user belongs to the client from then on.
    pub binds: bool,
}

/// One server of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The address of the member.
    pub address: Address,
    /// The address as text for logs and metrics: `127.0.0.1:9001`, `[::1]:80`, `unix:/run/app.sock`.
    pub label: Arc<str>,
    /// The host name in the file; `None`: the file has an address.
    pub name: Option<Arc<str>>,
    /// The share of the traffic, up to 256; 0: no new requests except those of persistent clients.
    pub weight: u16,
    /// Maximum number of active requests on all workers.
    pub connections_max: Option<u32>,
    /// Maximum rate of requests on all workers.
    pub rate: Option<Rate>,
    /// The priority; higher values are preferred.
    pub priority: u16,
    /// The state in the file.
    pub state: AdminState,
    /// Monitors that replace the pool's; an empty list: the member counts as up.
    pub monitors: Option<Arc<[Monitor]>>,
}

impl Member {
    /// The monitors of the member, in a pool with these monitors.
    pub fn monitors<'a>(&'a self, of_pool: &'a [Monitor]) -> &'a [Monitor] {
        self.monitors.as_deref().unwrap_or(of_pool)
    }
}

//! The validated configuration: immutable, sound, compiled for use by the data path.
//!
//! Durations are milliseconds and sizes bytes; both carry their unit in the name.

mod acme;
mod admin;
mod authentication;
mod datagram_probe;
mod http_url;
mod limit;
mod listening;
mod log_format;
mod log_target;
pub mod packet;
mod persistence;
mod probe;
mod probe_answer;
mod probe_login;
mod request_id;
mod service;
mod service_probe;
mod source;
mod tracing;
mod waf;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use weir_compression::Rules;
use weir_core::admin_state::AdminState;
use weir_core::balance::Method;
use weir_core::expression::{AddressSet, Slots, Template};
use weir_core::limit::Rate;
use weir_core::monitor::PassiveSettings;
use weir_core::persistence::keys::Keys;
use weir_core::policy::{Action, Policy};
use weir_core::retry::BudgetSettings;
use weir_core::time_zone::TimeZone;
use weir_http::flaws::Flaws;
use weir_http::path::TargetForm;
use weir_tls::ClientConfig;
use weir_tls::identity::Identity;
use weir_tls::managed::{Credential, Managed};
use weir_tls::server::Offer;

use crate::diagnostic::Position;

pub use crate::secret::Secret;
pub use acme::{Acme, Challenge as AcmeChallenge, ExternalAccount, Issuing, KeyKind};
pub use admin::{AdminSettings, AdminTls, AdminUser, Role};
pub use authentication::FetchedKeys;
pub use datagram_probe::{DnsProbe, DnsRcode, DnsRecord, UdpProbe};
pub use http_url::HttpUrl;
pub use limit::{Counted, Exceed, KeyLimit, KeyMeasure, LimitKey, Limits};
pub use listening::{ListenPoint, Listening, ranges};
pub use log_format::{GivenFormat, LogField, LogFormat, LogLine, LogPiece};
pub use log_target::{LogTarget, Syslog, SyslogServer, SyslogTls};
pub use persistence::{
    AddressOf, InsertedCookie, Learned, Persistence, PersistenceKind, RememberedAddress,
    TableSettings,
};
pub use probe::{GrpcProbe, HttpProbe, Monitor, MonitorKind, ProbeMethod, ScriptProbe, TcpProbe};
pub use probe_answer::{BodyMatch, DrainAnswer};
pub use probe_login::{Credentials, ProbeTls};
pub use request_id::RequestIdSettings;
pub use service::{ConnectionIdSettings, Relay, ServerIdPlace, ServerNames, Service, Sessions};
pub use service_probe::{
    LdapProbe, RadiusProbe, RadiusReply, RedisProbe, RedisRole, SmtpProbe, SqlProbe, SqlQuery,
};
pub use source::{Source, SourceAddresses};
pub use tracing::{Exporting, Tracing};
pub use waf::{Cookies, Record, Responses, Unjudged, Waf};

/// Everything that one configuration file says, with defaults filled in and names resolved.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The admin listeners.
    pub admin: AdminSettings,
    /// Threads and draining.
    pub data_plane: DataPlaneSettings,
    /// Settings for a start or a reload until members are known.
    pub first_probes: FirstProbesSettings,
    /// Access log.
    pub log: LogSettings,
    /// Virtual servers in the file's order; names are unique.
    pub virtual_servers: Vec<VirtualServer>,
    /// Disabled virtual servers.
    pub disabled: Vec<Disabled>,
    /// The packet path; `None`: not configured.
    pub packets: Option<packet::Packets>,
    /// Pools in the file's order; names are unique.
    pub pools: Vec<Arc<Pool>>,
    /// Pools that no member is configured for: requests do not wait for one.
    pub pools_to_be_filled: Vec<Arc<str>>,
    /// Persistences in the file's order, followed by those defined inline in virtual servers.
    pub persistence: Vec<Arc<Persistence>>,
    /// Limits per key, of virtual servers and of rules.
    pub key_limits: Vec<Arc<KeyLimit>>,
    /// The names of rules, by their numbers.
    pub rules: Vec<RuleName>,
    /// Where they stand, by the same numbers.
    pub rule_places: Vec<RulePlace>,
    /// Token readers whose keys are fetched.
    pub fetched_keys: Vec<FetchedKeys>,
    /// At least one authentication needs passwords.
    pub checks_passwords: bool,
    /// The slots of all expressions and templates.
    pub slots: Arc<Slots>,
    /// The time zone for expressions.
    pub time_zone: Arc<TimeZone>,
    /// The folder for data that must survive a restart.
    pub state_dir: PathBuf,
    /// The key of inserted cookies whose persistence names no key; the control plane stores it in `state_dir`.
    pub own_keys: Option<Arc<Keys>>,
    /// Certificates by ACME; `None`: the section is absent.
    pub acme: Option<Issuing>,
}

/// How often a request may be handed from one virtual server to another.
pub const HAND_OVERS_MAX: usize = 8;

/// The name of the pool for virtual servers without a pool. No name in a file is empty.
pub const NOBODY: &str = "";

/// `data_plane:` of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataPlaneSettings {
    /// `None`: one thread per core that the process may run on.
    pub workers: Option<u16>,
    /// How long removed virtual servers and a stopping process let transactions end.
    pub drain_timeout_ms: u64,
    /// Whether workers are denied access to files.
    pub sandbox: Sandbox,
}

/// Whether worker threads are denied access to files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sandbox {
    /// If the kernel supports it.
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

impl Sandbox {
    /// The word in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::On => "on",
            Self::Off => "off",
        }
    }
}

/// `first_probes:` of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstProbesSettings {
    /// The longest wait.
    pub wait_ms: u64,
    /// The treatment of members without a probe result in a pool without a usable member.
    pub then: AfterFirstProbes,
}

/// The treatment of members that have not answered a probe in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFirstProbes {
    /// Members get traffic until their probes fail.
    Serve,
    /// Members get no traffic.
    Refuse,
}

/// `recent_requests:` of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecentRequests {
    /// Maximum number of kept records.
    pub keep: u32,
    /// The share of recorded requests, in parts of [`SHARE_OF_ALL`].
    pub share: u32,
    /// Requests that take this long are slow, and always recorded; `None`: no request is slow.
    pub slow_us: Option<u64>,
}

/// The value of [`RecentRequests::share`] for all requests.
pub const SHARE_OF_ALL: u32 = 100_000;

/// Logs and records of requests: `log:`, `tracing:` and `recent_requests:` of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSettings {
    /// The format of a line.
    pub access_format: AccessFormat,
    /// The custom format of [`AccessFormat::Given`].
    pub given_format: GivenFormat,
    /// The target of access log lines.
    pub access_to: LogTarget,
    /// The target of the firewall log.
    pub waf_to: LogTarget,
    /// The target of the audit log; `None`: its lines are events.
    pub audit_to: Option<LogTarget>,
    /// The target of spans; `None`: spans are not exported.
    pub spans_to: Option<Arc<Exporting>>,
    /// Records of requests, in memory; `None`: disabled.
    pub recent_requests: Option<RecentRequests>,
}

/// Form of an access log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessFormat {
    /// One JSON object per line.
    Json,
    /// The Apache combined format.
    Combined,
    /// One that the file gives.
    Given,
    /// No access log.
    Off,
}

/// An address to listen on or to connect to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    /// IP address and port.
    Socket(SocketAddr),
    /// A unix stream socket.
    Unix(PathBuf),
    /// IP address and port, to listen on for datagrams.
    Udp(SocketAddr),
}

impl Address {
    /// The IP address and port, for any protocol.
    pub fn socket(&self) -> Option<SocketAddr> {
        match self {
            Self::Socket(address) | Self::Udp(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }
}

/// An address that clients connect to.
#[derive(Debug, Clone)]
pub struct VirtualServer {
    /// The key in the file.
    pub name: Arc<str>,
    /// Each is used only once in a snapshot. Empty: other virtual servers hand requests to it.
    pub listen: Vec<ListenPoint>,
    /// How it listens there.
    pub listening: Listening,
    /// Index into [`Snapshot::pools`]; where only names lead to pools, that of the first of them.
    pub pool: usize,
    /// HTTP limits and timeouts.
    pub http: HttpSettings,
    /// The kind of service.
    pub service: Service,
    /// How clients are served over TLS; `None`: without.
    pub tls: Option<Arc<ServerTls>>,
    /// The responses that are compressed; `None`: no response.
    pub compression: Option<Arc<Rules>>,
    /// How requests are inspected; `None`: they are not.
    pub waf: Option<Arc<Waf>>,
    /// How much is served.
    pub limits: Limits,
    /// Policies in the order in which they run.
    pub policies: Vec<Arc<Policy>>,
    /// Connection policies.
    pub connection_policies: ConnectionPolicies,
    /// Index into [`Snapshot::persistence`].
    pub persistence: Option<usize>,
    /// How the client's address is found and forwarded to members.
    pub client_address: Arc<ClientAddress>,
    /// How requests are called toward members and clients; `None`: in logs alone.
    pub request_id: Option<RequestIdSettings>,
    /// Trace settings; `None`: requests are not traced.
    pub tracing: Option<Arc<Tracing>>,
    /// Pages in place of short answers.
    pub error_pages: Arc<ErrorPages>,
    /// Whether responses have their duration.
    pub server_timing: bool,
}

/// A virtual server that does not serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disabled {
    /// The name in the file.
    pub name: Arc<str>,
    /// The type in the file.
    pub kind: &'static str,
    /// The addresses it would listen on.
    pub listen: Vec<String>,
}

/// Policies about connections, in the order in which they run.
#[derive(Debug, Clone, Default)]
pub struct ConnectionPolicies {
    /// When a connection has been accepted.
    pub accepted: Vec<Arc<Policy>>,
    /// Policies that run when the client has sent the server name.
    pub named: Vec<Arc<Policy>>,
}

impl ConnectionPolicies {
    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.accepted.iter().chain(&self.named).map(|policy| &*policy.name)
    }
}

impl VirtualServer {
    /// The rules that hand requests to others, and to which.
    pub fn hand_overs(&self) -> impl Iterator<Item = (RuleName, usize)> {
        let rules = self
            .policies
            .iter()
            .flat_map(|policy| policy.request.all().iter().map(move |rule| (policy, rule)));
        rules.flat_map(|(policy, rule)| {
            let others = rule.actions.iter().filter_map(Action::virtual_server);
            let name =
                || RuleName { policy: Arc::clone(&policy.name), rule: Arc::clone(&rule.name) };
            others.map(move |to| (name(), to))
        })
    }

    /// The virtual servers that its rules hand requests to, by their indexes in the snapshot; each once.
    pub fn hands_over_to(&self) -> Vec<usize> {
        let mut found: Vec<usize> = self.hand_overs().map(|(_, to)| to).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The pools of its own settings, without those of policies and without fallbacks.
    pub fn pools(&self) -> impl Iterator<Item = usize> {
        let names = self.service.relay().and_then(|relay| relay.names.as_ref()).into_iter();
        std::iter::once(self.pool).chain(names.flat_map(|names| names.pools.values().copied()))
    }
}

/// `tls:` of a virtual server.
#[derive(Debug, Clone)]
pub struct ServerTls {
    /// For all clients except those of [`names`](Self::names). Storage of sessions is added later.
    pub default: Offer,
    /// For clients that request certain names.
    pub names: Vec<NameTls>,
    /// How a client that comes again is spared the full handshake.
    pub sessions: SessionsOf,
    /// A digest of the settings for accepted client certificates, including those of names: sessions end when it
    /// changes.
    pub lets_in: Vec<u8>,
    /// All certificates; those of the virtual server first.
    pub credentials: Vec<Credential>,
    /// The timeout of the handshake.
    pub handshake_timeout_ms: u64,
    /// Maximum number of concurrent handshakes on all workers.
    pub handshakes_max: Option<u32>,
}

impl ServerTls {
    /// The current certificates for clients, in the same order.
    pub fn shown(&self) -> impl Iterator<Item = Arc<Identity>> {
        self.credentials.iter().filter_map(Credential::current)
    }

    /// The slots of ACME certificates.
    pub fn managed(&self) -> impl Iterator<Item = &Arc<Managed>> {
        self.credentials.iter().filter_map(|credential| match credential {
            Credential::Managed(managed) => Some(managed),
            Credential::Fixed(_) => None,
        })
    }
}

/// TLS settings for some server names.
#[derive(Debug, Clone)]
pub struct NameTls {
    /// In lower case; wildcards begin with `*.`.
    pub names: Vec<Arc<str>>,
    /// The settings.
    pub offer: Offer,
}

/// How a client that comes again is spared the full handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionsOf {
    /// No resumption.
    Off,
    /// Resumption by tickets.
    Tickets {
        /// Shared with others; `None`: own ones.
        keys: Option<Arc<Keys>>,
    },
    /// Resumption by stored sessions.
    Stateful {
        /// The size of the cache.
        bytes_max: u64,
        /// Requests may come before the handshake is done (0-RTT).
        early_data: bool,
    },
}

/// The name of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RuleName {
    /// The name of the policy.
    pub policy: Arc<str>,
    /// The name of the rule, or its number in the policy.
    pub rule: Arc<str>,
}

/// The position of a rule in the configuration, or in the overlay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulePlace {
    /// The file, or the place in the overlay.
    pub file: Arc<str>,
    /// Line and column in the file; `None` in the overlay.
    pub position: Option<Position>,
    /// The condition as written; `None`: the rule has no condition.
    pub when: Option<Arc<str>>,
}

impl fmt::Display for RulePlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.file)?;
        match self.position {
            Some(Position { line, column }) => write!(formatter, ":{line}:{column}"),
            None => Ok(()),
        }
    }
}

/// `client_address:` of a virtual server.
#[derive(Debug, Clone)]
pub struct ClientAddress {
    /// Trusted proxies.
    pub trust: AddressSet,
    /// The field with the client's address.
    pub header: Arc<str>,
    /// They begin connections with the PROXY protocol.
    pub proxy_protocol: bool,
    /// `X-Forwarded-For` for members.
    pub x_forwarded_for: Forwarding,
    /// `X-Forwarded-Proto` and `X-Forwarded-Host` for members.
    pub x_forwarded_proto: bool,
    /// `Forwarded` for members.
    pub forwarded: Forwarding,
}

/// The treatment of a list of client addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forwarding {
    /// The client is added at its end.
    Append,
    /// The client alone is in it.
    Replace,
    /// The field is forwarded unchanged.
    Off,
}

/// A page for clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The media type.
    pub content_type: Arc<str>,
    /// The content.
    pub body: Arc<[u8]>,
}

/// Pages by status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErrorPages {
    /// Pages by status.
    pub codes: Vec<(u16, Page)>,
    /// Pages by the first digit of the status.
    pub classes: Vec<(u16, Page)>,
}

impl ErrorPages {
    /// The page for a status.
    pub fn of(&self, status: u16) -> Option<&Page> {
        let find = |pages: &'_ [(u16, Page)], key| pages.iter().position(|(of, _)| *of == key);
        find(&self.codes, status)
            .map(|index| &self.codes[index].1)
            .or_else(|| find(&self.classes, status / 100).map(|index| &self.classes[index].1))
    }
}

/// The HTTP profile of a virtual server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpSettings {
    /// Bytes of one request or response head, and of one trailer section.
    pub head_size_max: u32,
    /// Fields in one head or trailer section.
    pub headers_max: u16,
    /// Bytes of a request body; `None`: any size (bodies are streamed, not held).
    pub body_size_max: Option<u64>,
    /// From the first byte of a request head to its last.
    pub header_timeout_ms: u64,
    /// A request body that is under way without a byte of progress, or a response of which the client takes nothing.
    pub body_timeout_ms: u64,
    /// A response that is under way without a byte from its member.
    pub response_body_timeout_ms: u64,
    /// A client connection between two requests.
    pub idle_timeout_ms: u64,
    /// A tunnel (after 101), an event stream or a gRPC call without a byte in either direction.
    pub tunnel_timeout_ms: u64,
    /// Clients may speak HTTP/2.
    pub http2: bool,
    /// Requests that one of them may have under way at once on a connection.
    pub http2_streams_max: u32,
    /// Whether members get fields that clients send behind their bodies.
    pub request_trailers: RequestTrailers,
    /// The form of a target for members and rules.
    pub target: TargetForm,
    /// Locations in responses name the virtual server where they name the member.
    pub rewrite_location: bool,
}

/// The treatment of fields behind a request's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestTrailers {
    /// Members do not get them.
    Drop,
    /// Members receive the trailers that may be forwarded.
    Forward,
}

/// Members that serve alike.
#[derive(Debug, Clone)]
pub struct Pool {
    /// The key in the file.
    pub name: Arc<str>,
    /// How a member is picked.
    pub balance: Balance,
    /// Possibly empty while a name does not resolve; no address appears twice.
    pub members: Vec<Member>,
    /// Active health checks, for every member that has none of its own; without any, members are up.
    pub monitors: Vec<Monitor>,
    /// Passive health checks.
    pub passive: Option<PassiveMarking>,
    /// Members are spoken to by HTTP/2.
    pub http2: bool,
    /// Idle member connections kept for reuse.
    pub reuse: ReuseSettings,
    /// How requests that a member has failed are tried on others.
    pub retries: Retries,
    /// Until a member has accepted a connection.
    pub connect_timeout_ms: u64,
    /// From the end of the request to the response head.
    pub response_timeout_ms: u64,
    /// The source addresses of connections to members.
    pub source: Source,
    /// With fewer members of the highest priorities up than this, the next are used as well.
    pub active_members_min: u16,
    /// How long a member that came up takes to get its full share.
    pub slow_start_ms: Option<u64>,
    /// The queue of requests that wait for a member.
    pub queue: Option<QueueSettings>,
    /// Substitutes for requests that it does not take.
    pub instead: Instead,
    /// Monitors that must pass for a member to be up; all, where it has fewer.
    pub monitors_min: u8,
    /// How members get the client's address.
    pub proxy_protocol: Option<ProxyVersion>,
    /// How members are spoken to over TLS; `None`: without.
    pub tls: Option<Arc<PoolTls>>,
    /// Tolerated flaws of responses, including those that are tolerated in all pools.
    pub lenient: Flaws,
}

/// Substitutes for requests that a pool does not take.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Instead {
    /// Index into [`Snapshot::pools`]: the pool that serves while no member is up.
    pub fallback: Option<usize>,
    /// The pool that serves while there is no room.
    pub spillover: Option<Spillover>,
    /// The response while no member is up.
    pub maintenance: Option<Maintenance>,
}

impl Instead {
    /// The pools that serve for it.
    pub fn pools(&self) -> impl Iterator<Item = usize> {
        self.fallback.into_iter().chain(self.spillover.map(|spillover| spillover.pool))
    }
}

/// `spillover:` of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spillover {
    /// Index into [`Snapshot::pools`].
    pub pool: usize,
    /// Requests under way from which on there is no room; `None`: as the members' limits say.
    pub connections: Option<u32>,
}

/// `maintenance:` of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Maintenance {
    /// A page, with status 503.
    Page(Page),
    /// Clients are sent to this URL.
    Redirect(Arc<[u8]>),
}

/// How requests that a member has failed are tried on others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retries {
    /// Further members that one request may try.
    pub max: u8,
    /// A limit on retries in proportion to requests.
    pub budget: Option<BudgetSettings>,
    /// Statuses of responses by which a member has failed a request.
    pub on: Box<[u16]>,
    /// By them also requests that may do something twice.
    pub non_idempotent: bool,
}

/// `tls:` of a pool.
#[derive(Debug, Clone)]
pub struct PoolTls {
    /// Trusted authorities, and weir's certificate.
    pub config: Arc<ClientConfig>,
    /// The server name for members; `None`: each member's own name.
    pub server_name: Option<Arc<str>>,
    /// Everything that it was made from: two that have the same are alike.
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
    /// Maximum length of an ejection; each successive one is twice as long.
    pub eject_max_ms: u32,
    /// Members that may be ejected at a time.
    pub ejected_share_max_percent: u8,
}

/// How a pool picks the member of a request.
#[derive(Debug, Clone)]
pub enum Balance {
    /// By open requests, or by turns.
    Method(Method),
    /// By a value of the request.
    Hash(Template),
    /// By the client's address.
    SourceAddress,
}

/// Requests that wait for a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueSettings {
    /// Requests at a time, over all workers.
    pub length_max: u32,
    /// How long one waits.
    pub timeout_ms: u64,
    /// One whose client has ended its sending gives up its place.
    pub is_left_by_half_closed: bool,
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
    /// Kept per worker and member; 0: every request opens a connection.
    pub idle_per_worker: u32,
    /// Kept at most this long unused.
    pub idle_timeout_ms: u64,
    /// Closed after this many requests.
    pub requests_max: u32,
}

/// One server of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The address that it listens on.
    pub address: Address,
    /// The address as text for logs and metrics: `127.0.0.1:9001`, `[::1]:80`, `unix:/run/app.sock`.
    pub label: Arc<str>,
    /// The host name that the file gave, when it gave one.
    pub name: Option<Arc<str>>,
    /// Share of the traffic, up to 256; 0: nothing new but requests of clients that are kept at it.
    pub weight: u16,
    /// Requests that may occupy it at a time, over all workers.
    pub connections_max: Option<u32>,
    /// Requests per second, over all workers.
    pub rate: Option<Rate>,
    /// The higher, the more preferred.
    pub priority: u16,
    /// The state in the file.
    pub state: AdminState,
    /// Monitors that replace the pool's; an empty list: the member counts as up.
    pub monitors: Option<Arc<[Monitor]>>,
}

impl Member {
    /// The monitors that probe it, in a pool with these.
    pub fn monitors<'a>(&'a self, of_pool: &'a [Monitor]) -> &'a [Monitor] {
        self.monitors.as_deref().unwrap_or(of_pool)
    }
}

impl Address {
    /// Whether connections go to the port that the client connected to.
    pub fn is_without_port(&self) -> bool {
        self.socket().is_some_and(|address| address.port() == 0)
    }

    /// A member's address as text for logs and metrics; without a port if the member has no port of its own.
    pub fn label(&self) -> String {
        match self {
            Self::Socket(address) if address.port() == 0 => address.ip().to_string(),
            address => address.to_string(),
        }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Socket(address) => address.fmt(formatter),
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
            Self::Udp(address) => write!(formatter, "udp:{address}"),
        }
    }
}

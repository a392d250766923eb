//! The validated configuration: immutable and compiled for the data path.
//!
//! Durations are in milliseconds and sizes in bytes; the names of both contain the unit.

mod acme;
mod admin;
mod authentication;
mod data_plane;
mod datagram_probe;
mod dated_files;
mod http_url;
mod limit;
mod listener_options;
mod log_format;
mod log_target;
mod member_changes;
pub mod packet;
mod persistence;
mod pool;
mod probe;
mod probe_answer;
mod probe_login;
mod request_id;
mod resolution_facts;
mod service;
mod service_probe;
mod source;
mod tracing;
mod waf;

use std::fmt;
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_compression::Rules;
use weir_core::expression::{AddressSet, Slots};
use weir_core::persistence::keys::Keys;
use weir_core::policy::{Action, Policy};
use weir_core::time_zone::TimeZone;
use weir_http::h2::Allowance;
use weir_http::path::TargetForm;
use weir_tls::identity::Identity;
use weir_tls::managed_certificate::{Credential, ManagedCertificate};
use weir_tls::server::Offer;

use crate::diagnostic::Position;

pub use crate::secret::Secret;
pub use acme::{Acme, AcmeConfiguration, Challenge as AcmeChallenge, ExternalAccount, KeyKind};
pub use admin::{AdminSettings, AdminTls, AdminUser, Role};
pub use authentication::{AuthenticationNeeds, FetchedKeys};
pub use data_plane::{DataPlaneSettings, Sandbox};
pub use datagram_probe::{DnsProbe, DnsRcode, DnsRecord, UdpProbe};
pub use dated_files::{DatedFile, DatedKind, EXPIRY_DAYS, Expiry};
pub use http_url::HttpUrl;
pub use limit::{CountedEvents, KeyLimit, KeyMeasure, LimitAction, LimitKey, Limits};
pub use listener_options::{ListenPoint, ListenerOptions, ranges};
pub use log_format::{GivenFormat, LogField, LogFormat, LogLine, LogPiece};
pub use log_target::{LogTarget, Syslog, SyslogServer, SyslogTls};
pub use member_changes::MemberChanges;
pub use persistence::{
    AddressOf, InsertedCookie, LearnedPersistence, Persistence, PersistenceKind, RememberedAddress,
    TableSettings,
};
pub use pool::{
    Balance, Maintenance, Member, PassiveMarking, Pool, PoolSubstitutes, PoolTls, ProxyVersion,
    QueueSettings, Retries, ReuseSettings, Spillover,
};
pub use probe::{GrpcProbe, HttpProbe, Monitor, MonitorKind, ProbeMethod, ScriptProbe, TcpProbe};
pub use probe_answer::{BodyMatch, DrainAnswer};
pub use probe_login::{Credentials, ProbeTls};
pub use request_id::RequestIdSettings;
pub use resolution_facts::ResolutionFacts;
pub use service::{
    ConnectionIdSettings, Relay, ResetOn, ServerIdPlace, ServerNames, Service, Sessions,
};
pub use service_probe::{
    LdapProbe, RadiusProbe, RadiusReply, RedisProbe, RedisRole, SmtpProbe, SqlProbe, SqlQuery,
};
pub use source::{Source, SourceAddresses};
pub use tracing::{TraceExport, Tracing};
pub use waf::{Cookies, Record, Responses, UnjudgedAction, Waf};

/// A whole configuration, with defaults filled in and names resolved.
///
/// It has all [`Settings`], too. A copy shares them and the pools, so it is cheap; a change of a copy makes its own.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Everything but pools. Snapshots that differ in members alone share it.
    pub settings: Arc<Settings>,
    /// Pools in the file's order; names are unique.
    pub pools: Vec<Arc<Pool>>,
    /// What follows from the addresses of names.
    pub resolved: ResolutionFacts,
}

impl Deref for Snapshot {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.settings
    }
}

impl DerefMut for Snapshot {
    fn deref_mut(&mut self) -> &mut Settings {
        Arc::make_mut(&mut self.settings)
    }
}

/// A configuration without its pools.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The admin listeners.
    pub admin: AdminSettings,
    /// Threads and draining.
    pub data_plane: DataPlaneSettings,
    /// Settings for the time after a start or a reload, until the states of members are known.
    pub first_probes: FirstProbesSettings,
    /// Access log.
    pub log: LogSettings,
    /// Virtual servers in the file's order; names are unique.
    pub virtual_servers: Vec<VirtualServer>,
    /// Disabled virtual servers.
    pub disabled: Vec<DisabledServer>,
    /// The packet path; `None`: not configured.
    pub packets: Option<packet::Packets>,
    /// Persistences in the file's order, followed by those defined inline in virtual servers.
    pub persistence: Vec<Arc<Persistence>>,
    /// Limits per key, of virtual servers and of rules.
    pub key_limits: Vec<Arc<KeyLimit>>,
    /// The names of rules, by number.
    pub rules: Vec<RuleName>,
    /// The positions of rules, by the same numbers.
    pub rule_places: Vec<RulePlace>,
    /// Token readers with keys that are fetched by URL.
    pub fetched_keys: Vec<FetchedKeys>,
    /// What all authentications need.
    pub authenticating: AuthenticationNeeds,
    /// The slots of all expressions and templates.
    pub slots: Arc<Slots>,
    /// The time zone for expressions.
    pub time_zone: Arc<TimeZone>,
    /// The folder for data that must survive a restart.
    pub state_dir: PathBuf,
    /// The keys for inserted cookies of persistences without own keys; the control plane stores them in `state_dir`.
    pub own_keys: Option<Arc<Keys>>,
    /// Certificates by ACME; `None`: the section is absent.
    pub acme: Option<AcmeConfiguration>,
    /// The files with contents that expire, except certificates for clients.
    pub dated: Arc<[DatedFile]>,
}

/// Maximum number of hand-overs of a request between virtual servers.
pub const HAND_OVERS_MAX: usize = 8;

/// The name of the empty pool, for virtual servers without a pool. A name in the file cannot be empty.
pub const NOBODY: &str = "";

/// `first_probes:` of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstProbesSettings {
    /// Maximum wait for probe results.
    pub wait_ms: u64,
    /// The treatment of members without a probe result in a pool without a usable member.
    pub then: AfterFirstProbes,
}

/// The treatment of members whose first probe has no result in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFirstProbes {
    /// Members get traffic until a probe fails.
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
    pub spans_to: Option<Arc<TraceExport>>,
    /// Records of requests, in memory; `None`: disabled.
    pub recent_requests: Option<RecentRequests>,
}

impl LogSettings {
    /// The files of logs with their keys, each once: without a target of its own, the firewall's log goes where the access log
    /// goes.
    pub fn files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let waf_to = Some(&self.waf_to).filter(|to| **to != self.access_to);
        let all = [
            ("log.access.to", Some(&self.access_to)),
            ("log.waf.to", waf_to),
            ("log.audit.to", self.audit_to.as_ref()),
        ];
        all.into_iter().filter_map(|(key, target)| match target? {
            LogTarget::File(path) => Some((key, &**path)),
            LogTarget::Stdout | LogTarget::Syslog(_) => None,
        })
    }
}

/// The format of an access log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessFormat {
    /// One JSON object per line.
    Json,
    /// The Apache combined format.
    Combined,
    /// A custom format.
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

/// A virtual server: addresses for clients, and their service.
#[derive(Debug, Clone)]
pub struct VirtualServer {
    /// The key in the file.
    pub name: Arc<str>,
    /// The listeners; each occurs only once in a snapshot. Empty: other virtual servers hand requests over.
    pub listen: Vec<ListenPoint>,
    /// The options of the listeners.
    pub listening: ListenerOptions,
    /// Index into [`Snapshot::pools`]; if only server names select pools, the pool of the first name.
    pub pool: usize,
    /// HTTP limits and timeouts.
    pub http: HttpSettings,
    /// The kind of service.
    pub service: Service,
    /// TLS settings for clients; `None`: no TLS.
    pub tls: Option<Arc<ServerTls>>,
    /// The rules for compressing responses; `None`: no compression.
    pub compression: Option<Arc<Rules>>,
    /// The inspection of requests; `None`: no inspection.
    pub waf: Option<Arc<Waf>>,
    /// The limits on connections and requests.
    pub limits: Limits,
    /// Policies in the order in which they run.
    pub policies: Vec<Arc<Policy>>,
    /// Connection policies.
    pub connection_policies: ConnectionPolicies,
    /// Index into [`Snapshot::persistence`].
    pub persistence: Option<usize>,
    /// The detection of the client's address, and its forwarding to members.
    pub client_address: Arc<ClientAddress>,
    /// The request id for members and clients; `None`: only in logs.
    pub request_id: Option<RequestIdSettings>,
    /// Trace settings; `None`: requests are not traced.
    pub tracing: Option<Arc<Tracing>>,
    /// Pages that replace the short texts of weir's own responses.
    pub error_pages: Arc<ErrorPages>,
    /// Whether responses contain the duration of the request (`Server-Timing`).
    pub server_timing: bool,
}

/// A virtual server that is disabled in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisabledServer {
    /// The name in the file.
    pub name: Arc<str>,
    /// The type in the file.
    pub kind: &'static str,
    /// The addresses in the file, which are not listened on.
    pub listen: Vec<String>,
    /// The same, each by itself. Empty for networks of type fast_l4.
    pub addresses: Vec<Address>,
}

/// Connection policies, in order.
#[derive(Debug, Clone, Default)]
pub struct ConnectionPolicies {
    /// Policies that run when a connection has been accepted.
    pub accepted: Vec<Arc<Policy>>,
    /// Policies that run when the client has sent the server name.
    pub named: Vec<Arc<Policy>>,
}

impl ConnectionPolicies {
    /// The names of the policies.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.accepted.iter().chain(&self.named).map(|policy| &*policy.name)
    }
}

impl VirtualServer {
    /// The rules that hand requests over, and the indexes of the target virtual servers.
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

    /// The virtual servers that its rules hand requests over to, by their indexes in the snapshot, without duplicates.
    pub fn hands_over_to(&self) -> Vec<usize> {
        let mut found: Vec<usize> = self.hand_overs().map(|(_, to)| to).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The pools in the virtual server's own settings, without pools of policies and fallbacks.
    pub fn pools(&self) -> impl Iterator<Item = usize> {
        let names = self.service.relay().and_then(|relay| relay.names.as_ref()).into_iter();
        std::iter::once(self.pool).chain(names.flat_map(|names| names.pools.values().copied()))
    }
}

/// `tls:` of a virtual server.
#[derive(Debug, Clone)]
pub struct ServerTls {
    /// The settings for all clients except those of [`names`](Self::names). The session storage is added later.
    pub default: Offer,
    /// For clients that request certain names.
    pub names: Vec<NameTls>,
    /// The resumption of sessions.
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
    pub fn managed(&self) -> impl Iterator<Item = &Arc<ManagedCertificate>> {
        self.credentials.iter().filter_map(|credential| match credential {
            Credential::Managed(managed) => Some(managed),
            Credential::Fixed(_) => None,
        })
    }
}

/// TLS settings for some server names.
#[derive(Debug, Clone)]
pub struct NameTls {
    /// The server names, in lower case; wildcards begin with `*.`.
    pub names: Vec<Arc<str>>,
    /// The settings.
    pub offer: Offer,
}

/// The resumption of TLS sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionsOf {
    /// No resumption.
    Off,
    /// Resumption by tickets.
    Tickets {
        /// Keys shared with other instances; `None`: weir's own keys.
        keys: Option<Arc<Keys>>,
    },
    /// Resumption by stored sessions.
    Stateful {
        /// The size of the cache.
        bytes_max: u64,
        /// Whether clients may send early data (0-RTT).
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
    /// The addresses of trusted proxies.
    pub trust: AddressSet,
    /// The field with the client's address.
    pub header: Arc<str>,
    /// Whether connections begin with a PROXY protocol header.
    pub proxy_protocol: bool,
    /// The treatment of `X-Forwarded-For` for members.
    pub x_forwarded_for: Forwarding,
    /// Whether members get `X-Forwarded-Proto` and `X-Forwarded-Host`.
    pub x_forwarded_proto: bool,
    /// The treatment of `Forwarded` for members.
    pub forwarded: Forwarding,
}

/// The treatment of a list of client addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forwarding {
    /// The client's address is appended.
    Append,
    /// The list is replaced by the client's address.
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
    /// Maximum size of a request head, response head or trailer section.
    pub head_size_max: u32,
    /// Maximum number of fields in a head or trailer section.
    pub headers_max: u16,
    /// Maximum size of a request body; `None`: unlimited (bodies are streamed, not stored).
    pub body_size_max: Option<u64>,
    /// Timeout from the first to the last byte of a request head.
    pub header_timeout_ms: u64,
    /// Timeout for progress of a request body, and for a client that does not read the response.
    pub body_timeout_ms: u64,
    /// Timeout for progress of a response body from a member.
    pub response_body_timeout_ms: u64,
    /// Timeout of a client connection between two requests.
    pub idle_timeout_ms: u64,
    /// Idle timeout of a tunnel (after 101), an event stream or a gRPC call: no byte in either direction.
    pub tunnel_timeout_ms: u64,
    /// Whether clients may use HTTP/2.
    pub http2: bool,
    /// Maximum number of concurrent HTTP/2 requests on a connection.
    pub http2_streams_max: u32,
    /// Whether members get requests that ask for themselves as the response (TRACE).
    pub trace: bool,
    /// Whether members are offered the upgrade of a request with a body.
    pub upgrade_with_body: bool,
    /// Whether members get trailer fields of requests.
    pub request_trailers: RequestTrailers,
    /// The form of a target for members and rules.
    pub target: TargetForm,
    /// Whether locations in responses that name the member are rewritten to the virtual server.
    pub rewrite_location: bool,
    /// Whether an HTTP/1 client that half-closes its connection has left.
    pub half_closed: HalfClosed,
    /// Budgets against floods on an HTTP/2 connection.
    pub http2_budgets: Http2Budgets,
}

/// The treatment of a client that half-closes its connection while it waits for a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HalfClosed {
    /// It gets its response.
    Wait,
    /// It has left, after a grace.
    Leave,
}

/// Budgets of an HTTP/2 connection for work of its client without use: see [`weir_http::h2::Limits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Http2Budgets {
    /// For early cancelled streams.
    pub resets: Allowance,
    /// For streams with client errors.
    pub client_errors: Allowance,
    /// For refused streams.
    pub refused_streams: Allowance,
    /// For frames on closed streams.
    pub closed_streams: Allowance,
    /// For SETTINGS frames.
    pub settings: Allowance,
    /// For PING frames.
    pub pings: Allowance,
    /// For PRIORITY frames and unknown ones.
    pub priorities: Allowance,
    /// For WINDOW_UPDATE frames.
    pub window_updates: Allowance,
    /// For empty DATA frames.
    pub empty_data: Allowance,
    /// For short DATA frames.
    pub tiny_data: Allowance,
}

/// The treatment of trailer fields of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestTrailers {
    /// They are dropped.
    Drop,
    /// Members receive the permitted ones.
    Forward,
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

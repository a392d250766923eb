//! The validated configuration: immutable, sound, compiled for use by the data path.
//!
//! Durations are milliseconds and sizes bytes; both carry their unit in the name.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use weir_core::balance::Method;
use weir_core::monitor::{PassiveSettings, Schedule};

/// Everything that one configuration file says, with defaults filled in and names resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// Where the admin listener is; none by default.
    pub admin_listen: Option<Address>,
    /// Threads and draining.
    pub data_plane: DataPlaneSettings,
    /// Access log.
    pub log: LogSettings,
    /// In the file's order; names are unique.
    pub virtual_servers: Vec<VirtualServer>,
    /// In the file's order; names are unique.
    pub pools: Vec<Arc<Pool>>,
}

/// `data_plane:` of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataPlaneSettings {
    /// `None`: one thread per core that the process may run on.
    pub workers: Option<u16>,
    /// How long removed virtual servers and a stopping process let transactions end.
    pub drain_timeout_ms: u64,
}

/// `log:` of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSettings {
    /// What one line looks like.
    pub access_format: AccessFormat,
    /// Where the lines go.
    pub access_to: LogTarget,
}

/// Form of an access log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessFormat {
    /// One JSON object per line.
    Json,
    /// The Apache combined format.
    Combined,
    /// No access log.
    Off,
}

/// Where log lines go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogTarget {
    /// Standard output.
    Stdout,
    /// A file, appended to; reopened on reload.
    File(PathBuf),
}

/// An address to listen on or to connect to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    /// IP address and port.
    Socket(SocketAddr),
    /// A unix stream socket.
    Unix(PathBuf),
}

/// What clients reach.
#[derive(Debug, Clone, PartialEq)]
pub struct VirtualServer {
    /// Its key in the file.
    pub name: Arc<str>,
    /// At least one; no address is used twice in a snapshot.
    pub listen: Vec<Address>,
    /// Index into [`Snapshot::pools`].
    pub pool: usize,
    /// HTTP limits and timeouts.
    pub http: HttpSettings,
    /// Client connections at a time, over all workers.
    pub connections_max: Option<u32>,
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
    /// A body that is under way, in either direction, without a byte of progress.
    pub body_timeout_ms: u64,
    /// A client connection between two requests.
    pub idle_timeout_ms: u64,
    /// A tunnel (after 101) without a byte in either direction.
    pub tunnel_timeout_ms: u64,
}

/// Members that serve alike.
#[derive(Debug, Clone, PartialEq)]
pub struct Pool {
    /// Its key in the file.
    pub name: Arc<str>,
    /// How a member is picked.
    pub balance: Method,
    /// Possibly empty while a name does not resolve; no address appears twice.
    pub members: Vec<Member>,
    /// Active health checks, each against every member; none: members are up.
    pub monitors: Vec<Monitor>,
    /// What traffic itself says.
    pub passive: Option<PassiveSettings>,
    /// Idle member connections kept for reuse.
    pub reuse: ReuseSettings,
    /// Further members that one request may try.
    pub retries: u8,
    /// Until a member has accepted a connection.
    pub connect_timeout_ms: u64,
    /// From the end of the request to the response head.
    pub response_timeout_ms: u64,
    /// Local address to connect from.
    pub source: Option<IpAddr>,
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
    /// Where it listens.
    pub address: Address,
    /// The address as text for logs and metrics: `127.0.0.1:9001`, `[::1]:80`, `unix:/run/app.sock`.
    pub label: Arc<str>,
    /// The host name that the file gave, when it gave one.
    pub name: Option<Arc<str>>,
    /// Share of the traffic, 1 to 256.
    pub weight: u16,
    /// Requests that may occupy it at a time, over all workers.
    pub connections_max: Option<u32>,
}

/// One active health check.
#[derive(Debug, Clone, PartialEq)]
pub struct Monitor {
    /// What is asked and what is expected.
    pub kind: MonitorKind,
    /// When.
    pub schedule: Schedule,
    /// Another port than the member's.
    pub port: Option<u16>,
}

/// What a monitor does.
#[derive(Debug, Clone, PartialEq)]
pub enum MonitorKind {
    /// The connection is accepted.
    Tcp,
    /// A GET gets the expected answer.
    Http(HttpProbe),
}

/// What an http or https monitor sends and expects.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpProbe {
    /// Origin-form target.
    pub path: Arc<str>,
    /// Host field (and TLS server name); `None`: the member's name or address.
    pub host: Option<Arc<str>>,
    /// `Some` for https.
    pub tls: Option<ProbeTls>,
    /// Inclusive ranges, at least one.
    pub expect_status: Vec<(u16, u16)>,
    /// What the body must have, in its first 64 KiB.
    pub expect_body: Option<BodyMatch>,
}

/// TLS of an https monitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeTls {
    /// Whether the certificate must be valid for the host.
    pub verify: bool,
}

/// A condition on a probe's response body.
#[derive(Debug, Clone)]
pub enum BodyMatch {
    /// Contains these bytes.
    Substring(Arc<str>),
    /// The expression finds a match.
    Regex(regex::bytes::Regex),
}

impl PartialEq for BodyMatch {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Substring(a), Self::Substring(b)) => a == b,
            (Self::Regex(a), Self::Regex(b)) => a.as_str() == b.as_str(),
            _ => false,
        }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Socket(address) => address.fmt(formatter),
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
        }
    }
}

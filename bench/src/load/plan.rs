//! The plan of a load.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustls::pki_types::ServerName;

/// Maximum number of connections per thread. More connections need more threads, because each thread has a descriptor
/// table of its own, with its own limit.
pub const CONNECTIONS_PER_THREAD_MAX: usize = 15_000;

/// A complete and consistent load.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The targets. Connections and requests rotate over them, by weight.
    pub targets: Vec<Target>,
    /// Concurrent connections (simulated users).
    pub connections: usize,
    /// Requests on a connection before it is closed and replaced; `None`: unlimited.
    pub requests_per_connection: Option<u64>,
    /// The duration of the measurement, or its number of requests.
    pub extent: Extent,
    /// Requests per second over all connections (open loop). `None`: closed loop; a connection sends the next request
    /// when it has the response.
    pub rate: Option<f64>,
    /// Closed loop only: each thread sends one request at a time, over its connections in turn, once all connections
    /// have been tried.
    pub one_at_a_time: bool,
    /// Time over which connections are opened evenly before the measurement.
    pub ramp_up: Duration,
    /// Duration of the load before the measurement.
    pub warm_up: Duration,
    /// Time limit for opening a connection and for a response.
    pub timeout: Duration,
    /// Source addresses, used in turn; empty: the system chooses.
    pub sources: Vec<IpAddr>,
    /// Number of threads. More are used if [`CONNECTIONS_PER_THREAD_MAX`] requires it.
    pub threads: usize,
    /// Cores for the threads; empty: any.
    pub cores: Vec<usize>,
    /// Network namespace of the connections (a file such as `/run/netns/client`).
    pub network_namespace: Option<PathBuf>,
    /// The expected response.
    pub expect: Expectation,
    /// TLS on every connection.
    pub tls: Option<TlsPlan>,
    /// HTTP/2 on every connection, without TLS by prior knowledge; `None`: HTTP/1.1.
    pub http2: Option<Http2Plan>,
    /// Interval for counting good transactions over time; `None`: no timeline.
    pub timeline_every: Option<Duration>,
    /// Set by another thread to end the load early, as if its duration had passed.
    pub stop: Arc<AtomicBool>,
}

/// The end of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Ends after this time. The load waits for open requests and counts them.
    Time(Duration),
    /// Ends after this number of transactions, good or not.
    Requests(u64),
}

/// A request that is sent repeatedly.
#[derive(Debug, Clone)]
pub struct Target {
    /// The server's address.
    pub address: SocketAddr,
    /// The bytes of the HTTP/1 request, head and body.
    pub request: Vec<u8>,
    /// The same with `Connection: close`, for the last request on a connection.
    pub last_request: Vec<u8>,
    /// The request for HTTP/2.
    pub lines: RequestLines,
    /// Whether responses have no body (HEAD).
    pub is_head: bool,
    /// Weight of the request relative to the other targets with the same address.
    pub weight: u32,
}

/// The expected response. A different response is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    /// The status; `None`: any 2xx or 3xx.
    pub status: Option<u16>,
    /// Length of the body; `None`: any.
    pub body_bytes: Option<u64>,
    /// The check of the body's bytes.
    pub checksum: Checksum,
    /// The content of a gzip body; `None`: the body is not compressed. With gzip, `body_bytes` and `checksum` are not
    /// checked.
    pub gzip: Option<Gzip>,
}

/// The content of a compressed body. The gzip trailer of every response is checked. The first response to each target
/// is decompressed, once per thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gzip {
    /// Length of the contents.
    pub body_bytes: u64,
    /// CRC-32 (IEEE) of the content.
    pub crc32: u32,
}

/// The check of a body's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// No check.
    Ignored,
    /// This CRC-32 (IEEE).
    Crc32(u32),
    /// The same as in the first good response to the target, within one thread.
    AsFirst,
}

/// A request without a body, as HTTP/2 fields. The connection adds `:scheme`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestLines {
    /// `:method`
    pub method: Vec<u8>,
    /// `:authority`
    pub authority: Vec<u8>,
    /// `:path`
    pub path: Vec<u8>,
    /// Further fields, with lower-case names.
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
}

/// HTTP/2 settings of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Http2Plan {
    /// Number of concurrent requests on a connection, each on its own stream. A user of a closed loop keeps this many
    /// open.
    pub streams: usize,
}

/// TLS settings of a load, from [`TlsOptions::plan`](super::TlsOptions::plan).
#[derive(Debug, Clone)]
pub struct TlsPlan {
    /// Versions, ciphers and trust.
    pub config: Arc<rustls::ClientConfig>,
    /// Whether a user resumes its session when it connects again; otherwise every handshake is a full one.
    pub resume: bool,
    /// The server name (SNI).
    pub server_name: ServerName<'static>,
    /// The required handshake results. Any other result is an error.
    pub expect: NegotiatedTls,
}

/// Results of a handshake; `None`: any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NegotiatedTls {
    /// The version.
    pub version: Option<rustls::ProtocolVersion>,
    /// The cipher suite.
    pub suite: Option<rustls::CipherSuite>,
    /// The application protocol (ALPN).
    pub protocol: Option<Vec<u8>>,
}

impl Checksum {
    /// Whether the check needs the bytes of bodies.
    pub fn is_wanted(self) -> bool {
        self != Self::Ignored
    }
}

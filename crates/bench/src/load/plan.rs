//! The plan of a load.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustls::pki_types::ServerName;

/// Concurrent connections that one thread holds at most; the plan spreads more over more threads, because
/// each thread has a descriptor table, and so a limit, of its own.
pub const CONNECTIONS_PER_THREAD_MAX: usize = 15_000;

/// A load, complete and consistent.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The targets; connections and requests take turns over these, by weight.
    pub targets: Vec<Target>,
    /// Concurrent connections (simulated users).
    pub connections: usize,
    /// Requests on a connection before it is closed and opened anew; `None`: endless.
    pub requests_per_connection: Option<u64>,
    /// How long to measure, or how much.
    pub extent: Extent,
    /// Requests per second over all connections: an open loop. `None`: a closed loop, the next request of a
    /// connection follows its response.
    pub rate: Option<f64>,
    /// In a closed loop: whether each thread has one request under way at a time, its connections in turn
    /// once all were tried.
    pub one_at_a_time: bool,
    /// Connections are opened evenly over this time, before anything is measured.
    pub ramp_up: Duration,
    /// The load runs this long before the measurement begins.
    pub warm_up: Duration,
    /// How long a connection, and a response, may take.
    pub timeout: Duration,
    /// Addresses to connect from, in turn; empty: the system chooses.
    pub sources: Vec<IpAddr>,
    /// Threads; more are used if [`CONNECTIONS_PER_THREAD_MAX`] requires it.
    pub threads: usize,
    /// Cores to run on; empty: any.
    pub cores: Vec<usize>,
    /// Network namespace of the connections (a file such as `/run/netns/client`).
    pub network_namespace: Option<PathBuf>,
    /// The expected response.
    pub expect: Expectation,
    /// TLS on every connection.
    pub tls: Option<TlsPlan>,
    /// HTTP/2 on every connection, with prior knowledge where there is no TLS; `None`: HTTP/1.1.
    pub http2: Option<Http2Plan>,
    /// Steps in which good transactions are counted over time; `None`: they are not.
    pub timeline_every: Option<Duration>,
    /// Set by another thread to end the load early: it then ends as if its time were up.
    pub stop: Arc<AtomicBool>,
}

/// When a load ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// After this time; requests that are then open are awaited and counted.
    Time(Duration),
    /// After this many transactions, good or not.
    Requests(u64),
}

/// One request, sent again and again.
#[derive(Debug, Clone)]
pub struct Target {
    /// Where to connect to.
    pub address: SocketAddr,
    /// The request as it goes over the wire, head and body.
    pub request: Vec<u8>,
    /// The request with `Connection: close`, for the last one on a connection.
    pub last_request: Vec<u8>,
    /// The request as HTTP/2 has it.
    pub lines: RequestLines,
    /// Whether a response to it never has a body (HEAD).
    pub is_head: bool,
    /// Share of the requests, relative to the other targets of the same address.
    pub weight: u32,
}

/// The expected response; any other is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    /// Its status; `None`: any 2xx or 3xx.
    pub status: Option<u16>,
    /// Length of its body.
    pub body_bytes: Option<u64>,
    /// The check of the body's bytes.
    pub checksum: Checksum,
    /// The body comes as gzip, with these contents; then its own bytes are not checked.
    pub gzip: Option<Gzip>,
}

/// The contents of a compressed body. Every response is checked by the trailer of its gzip stream; the first to each
/// target within a thread is decompressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gzip {
    /// Length of the contents.
    pub body_bytes: u64,
    /// Their CRC-32 (IEEE).
    pub crc32: u32,
}

/// The check of a body's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// Nothing.
    Ignored,
    /// This CRC-32 (IEEE).
    Crc32(u32),
    /// Equal to the first good response to the same target, within one thread.
    AsFirst,
}

/// A request without a body, in lines of HTTP/2; `:scheme` is the connection's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestLines {
    /// `:method`
    pub method: Vec<u8>,
    /// `:authority`
    pub authority: Vec<u8>,
    /// `:path`
    pub path: Vec<u8>,
    /// Further fields, their names in lower case.
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
}

/// HTTP/2 of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Http2Plan {
    /// Requests that a connection has under way at once, each on a stream of its own. A user of a closed loop keeps
    /// that many.
    pub streams: usize,
}

/// TLS of a load; [`TlsOptions::plan`](super::TlsOptions::plan) makes it.
#[derive(Debug, Clone)]
pub struct TlsPlan {
    /// Versions, ciphers and trust.
    pub config: Arc<rustls::ClientConfig>,
    /// Whether a user that connects again resumes its session; otherwise every handshake is a full one.
    pub resume: bool,
    /// The server name (SNI).
    pub server_name: ServerName<'static>,
    /// The required results of a handshake; a handshake with other results has failed.
    pub expect: Negotiated,
}

/// The results of a handshake; `None`: any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Negotiated {
    /// The version.
    pub version: Option<rustls::ProtocolVersion>,
    /// The cipher suite.
    pub suite: Option<rustls::CipherSuite>,
    /// The application's protocol (ALPN).
    pub protocol: Option<Vec<u8>>,
}

impl Checksum {
    /// Whether bodies must be read for it.
    pub fn is_wanted(self) -> bool {
        self != Self::Ignored
    }
}

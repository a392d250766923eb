//! The load generator: simulated users on a thread per core, closed loop or open loop.
//!
//! A load has phases. First it opens connections, evenly over the ramp if there is one. In a closed loop, every user
//! sends as soon as it is connected. When all connections have been tried, the schedule of an open loop starts; then
//! comes the warm-up, then the measurement. Without ramp and warm-up, a closed loop is measured from its first
//! connection on. At the end no request begins, and the load waits for open requests and counts them, so a server that
//! counts requests gets the same number. Rates refer to responses that are complete within the measurement; see
//! [`LoadOutcome`] for both ways of counting.

mod answer;
mod engine;
mod fault;
mod http2;
mod load_outcome;
mod pacing;
mod plan;
mod request;
mod response;
mod runner;
mod share;
mod tally;
mod targets;
mod tls;
mod tls_options;
pub mod udp;
mod under_way;
mod user;

pub use load_outcome::{
    ErrorKind, Handshakes, KEPT_SHARE_MIN, Latency, LoadOutcome, Moment, Window,
};
pub use plan::{
    CONNECTIONS_PER_THREAD_MAX, Checksum, Expectation, Extent, Gzip, Http2Plan, NegotiatedTls,
    Plan, RequestLines, Target, TlsPlan,
};
pub use request::RequestSpec;
pub use runner::{LoadError, NoObserver, Observer, Progress, run};
pub use tls_options::{CIPHERS, CURVES, TlsOptions};

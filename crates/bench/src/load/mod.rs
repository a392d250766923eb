//! The load generator: simulated users on a thread per core, closed loop or open loop.
//!
//! A load has phases. Connections are opened first, evenly over the ramp, if there is one; in a
//! closed loop every user sends as soon as it is connected. When all have been tried, the schedule of an
//! open loop starts, then the warm-up passes, then the measurement begins. A closed loop without ramp
//! and warm-up is measured from its first connection on. At the end no new requests are begun, and open ones are awaited
//! and counted: so a server that counts its requests counts the same number. The rate refers to responses that were
//! complete within the measurement's time; see [`Outcome`] for the two ways of counting.

mod answer;
mod engine;
mod fault;
mod http2;
mod outcome;
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

pub use outcome::{ErrorKind, Handshakes, KEPT_SHARE_MIN, Latency, Moment, Outcome, Window};
pub use plan::{
    CONNECTIONS_PER_THREAD_MAX, Checksum, Expectation, Extent, Gzip, Http2Plan, Negotiated, Plan,
    RequestLines, Target, TlsPlan,
};
pub use request::RequestSpec;
pub use runner::{LoadError, Observer, Progress, Unobserved, run};
pub use tls_options::{CIPHERS, CURVES, TlsOptions};

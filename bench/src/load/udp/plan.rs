//! The plan of a UDP load.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::load::Extent;

/// A complete and consistent load of queries.
#[derive(Debug, Clone)]
pub struct UdpPlan {
    /// The servers; flows rotate over them.
    pub targets: Vec<SocketAddr>,
    /// Number of concurrent flows, each with at most one open query.
    pub flows: usize,
    /// Queries of a flow before a new flow replaces it; `None`: unlimited.
    pub queries_per_flow: Option<u64>,
    /// Length of a query, from 14 to 1,452 bytes.
    pub query_bytes: u16,
    /// Length of the requested answer, in the same range.
    pub answer_bytes: u16,
    /// The duration of the measurement, or its number of queries.
    pub extent: Extent,
    /// Queries per second over all flows (open loop). `None`: closed loop.
    pub rate: Option<f64>,
    /// Duration of the load before the measurement; zero with a number of queries.
    pub warm_up: Duration,
    /// Time after which a query counts as lost.
    pub timeout: Duration,
    /// Source addresses, used in turn; empty: the system chooses.
    pub sources: Vec<IpAddr>,
    /// Number of threads, at most one per flow.
    pub threads: usize,
    /// Cores for the threads; empty: any.
    pub cores: Vec<usize>,
    /// Network namespace of the sockets (a file such as `/run/netns/client`).
    pub network_namespace: Option<PathBuf>,
    /// Set by another thread to end the load early, as if its duration had passed.
    pub stop: Arc<AtomicBool>,
}

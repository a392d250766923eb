//! The plan of a UDP load.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::load::Extent;

/// A load of queries, complete and consistent.
#[derive(Debug, Clone)]
pub struct UdpPlan {
    /// The servers; flows take turns over these.
    pub targets: Vec<SocketAddr>,
    /// Flows at a time, each with one query under way at most.
    pub flows: usize,
    /// Queries of a flow before it is closed and another one opened; `None`: endless.
    pub queries_per_flow: Option<u64>,
    /// Length of a query, from 14 to 1,452 bytes.
    pub query_bytes: u16,
    /// Length of the requested answer, likewise.
    pub answer_bytes: u16,
    /// How long to measure, or how much.
    pub extent: Extent,
    /// Queries per second over all flows: an open loop. `None`: a closed loop.
    pub rate: Option<f64>,
    /// The load runs this long before the measurement begins; nothing of a load that is counted.
    pub warm_up: Duration,
    /// A query without an answer for this long is lost.
    pub timeout: Duration,
    /// Addresses to ask from, in turn; empty: the system chooses.
    pub sources: Vec<IpAddr>,
    /// Threads, as many as there are flows at most.
    pub threads: usize,
    /// Cores to run on; empty: any.
    pub cores: Vec<usize>,
    /// Network namespace of the sockets (a file such as `/run/netns/client`).
    pub network_namespace: Option<PathBuf>,
    /// Set by another thread to end the load early: it then ends as if its time were up.
    pub stop: Arc<AtomicBool>,
}

//! How much is served: limits of virtual servers and of rules.

use std::sync::Arc;

use weir_core::expression::{Reads, Template};
use weir_core::keyed_hash::PrefixLengths;
use weir_core::limit::Rate;

/// `limits:` of a virtual server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Limits {
    /// Client connections at a time, over all workers.
    pub connections_max: Option<u32>,
    /// New client connections.
    pub connections: Option<Rate>,
    /// Requests under way at a time, over all workers.
    pub requests_max: Option<u32>,
    /// Requests.
    pub requests: Option<Rate>,
    /// On requests; indexes into [`Snapshot::key_limits`](super::Snapshot::key_limits).
    pub per_key: Vec<usize>,
    /// Limits per address on connections.
    pub per_key_connections: Vec<usize>,
}

/// A limit for each value of a key.
#[derive(Debug, Clone)]
pub struct KeyLimit {
    /// Its name in metrics: `virtual_servers.shop[0]`, `policies.api.3`.
    pub name: Arc<str>,
    /// The key.
    pub key: LimitKey,
    /// The counted events.
    pub counted: Counted,
    /// How many of them.
    pub measure: KeyMeasure,
    /// The treatment of a request above the limit.
    pub exceed: Exceed,
    /// Keys at a time.
    pub entries_max: u32,
}

/// The counted events of a limit per key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Requests.
    Requests,
    /// Connections.
    Connections,
}

/// How many of them a limit per key lets pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyMeasure {
    /// A rate.
    Rate(Rate),
    /// A number of simultaneous ones.
    AtATime(u32),
}

/// The key of a limit.
#[derive(Debug, Clone)]
pub enum LimitKey {
    /// The client's address, as far as the prefix goes.
    Address(PrefixLengths),
    /// The value of a template; an empty one is not limited.
    Text(Template),
}

impl LimitKey {
    /// The values that its text reads.
    pub fn reads(&self) -> Reads {
        match self {
            Self::Address(_) => Reads::default(),
            Self::Text(text) => text.reads(),
        }
    }
}

/// The treatment of a request above a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exceed {
    /// 429 with Retry-After.
    Reject,
    /// The request is delayed, at most this long.
    Delay {
        /// Longest wait.
        max_ms: u64,
    },
    /// The connection is closed.
    Close,
}

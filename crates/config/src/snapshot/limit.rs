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
    /// The same on connections, whose key is the address.
    pub per_key_connections: Vec<usize>,
}

/// A limit for each value of a key.
#[derive(Debug, Clone)]
pub struct KeyLimit {
    /// Whose it is, for metrics: `virtual_servers.shop[0]`, `policies.api.3`.
    pub name: Arc<str>,
    /// What is counted by.
    pub key: LimitKey,
    /// What is counted.
    pub counted: Counted,
    /// How many of them.
    pub measure: KeyMeasure,
    /// What happens to one more request.
    pub exceed: Exceed,
    /// Keys at a time.
    pub entries_max: u32,
}

/// What a limit per key counts.
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
    /// What comes in a time.
    Rate(Rate),
    /// What is there at a time, at most so many.
    AtATime(u32),
}

/// What a limit counts by.
#[derive(Debug, Clone)]
pub enum LimitKey {
    /// The client's address, as far as the prefix goes.
    Address(PrefixLengths),
    /// The value of a template; an empty one is not limited.
    Text(Template),
}

impl LimitKey {
    /// What its text reads.
    pub fn reads(&self) -> Reads {
        match self {
            Self::Address(_) => Reads::default(),
            Self::Text(text) => text.reads(),
        }
    }
}

/// What happens to a request beyond a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exceed {
    /// 429 with Retry-After.
    Reject,
    /// It waits, at most so long.
    Delay {
        /// Longest wait.
        max_ms: u64,
    },
    /// Its connection is closed.
    Close,
}

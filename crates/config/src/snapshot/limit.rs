//! Limits of virtual servers and of rules.

use std::sync::Arc;

use weir_core::expression::{Reads, Template};
use weir_core::keyed_hash::PrefixLengths;
use weir_core::limit::Rate;

/// `limits:` of a virtual server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Limits {
    /// Maximum number of client connections on all workers.
    pub connections_max: Option<u32>,
    /// Maximum rate of new client connections.
    pub connections: Option<Rate>,
    /// Maximum number of active requests on all workers.
    pub requests_max: Option<u32>,
    /// Maximum rate of requests.
    pub requests: Option<Rate>,
    /// Limits per key on requests: indexes into [`Snapshot::key_limits`](super::Snapshot::key_limits).
    pub per_key: Vec<usize>,
    /// Limits per address on connections.
    pub per_key_connections: Vec<usize>,
}

/// A limit for each value of a key.
#[derive(Debug, Clone)]
pub struct KeyLimit {
    /// The name in metrics: `virtual_servers.shop[0]`, `policies.api.3`.
    pub name: Arc<str>,
    /// The key.
    pub key: LimitKey,
    /// The counted events.
    pub counted: CountedEvents,
    /// The permitted amount.
    pub measure: KeyMeasure,
    /// The treatment of a request above the limit.
    pub exceed: LimitAction,
    /// Maximum number of tracked keys.
    pub entries_max: u32,
}

/// The counted events of a limit per key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountedEvents {
    /// Requests.
    Requests,
    /// Connections.
    Connections,
}

/// The permitted amount of a limit per key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyMeasure {
    /// A rate.
    Rate(Rate),
    /// A number of simultaneous events.
    AtATime(u32),
}

/// The key of a limit.
#[derive(Debug, Clone)]
pub enum LimitKey {
    /// The client's address, truncated to the prefix length.
    Address(PrefixLengths),
    /// The value of a template; an empty value is not limited.
    Text(Template),
}

impl LimitKey {
    /// The values that the key's template reads.
    pub fn reads(&self) -> Reads {
        match self {
            Self::Address(_) => Reads::default(),
            Self::Text(text) => text.reads(),
        }
    }
}

/// The treatment of a request above a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitAction {
    /// The request gets 429 with `Retry-After`.
    Reject,
    /// The request is delayed, at most this long.
    Delay {
        /// Maximum delay.
        max_ms: u64,
    },
    /// The connection is closed.
    Close,
}

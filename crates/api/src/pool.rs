//! Pools.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::health::Health;
use crate::member::Member;
use crate::responses::Latency;

/// A pool and its members.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Pool {
    /// The name.
    pub name: String,
    /// How well it serves.
    pub health: Health,
    /// The method of load balancing, as in the configuration.
    pub balance: String,
    /// The number of members that monitors and traffic find up, whatever their administrative state.
    pub members_up: usize,
    /// The number of members that accept new requests: up, enabled, and with a weight above 0.
    pub members_in_service: usize,
    /// Retries on another member.
    pub retries: u64,
    /// Requests that got 503 because no member was available.
    pub no_member: u64,
    /// Requests that wait in the queue now.
    pub queue_requests: u64,
    /// Requests that have waited in the queue.
    pub queued: u64,
    /// From the request handed to a member's socket to the response head.
    pub response_duration: Latency,
    /// The members, in the order of the configuration.
    pub members: Vec<Member>,
}

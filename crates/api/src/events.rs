//! Data of the events in streams.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An event of weir.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// The time.
    pub time: String,
    /// `info`, `warning` or `error`.
    pub level: String,
    /// The text of the event.
    pub text: String,
}

/// The reader or weir is too slow.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Missed {
    /// The number of requests and events that are missing here.
    pub count: u64,
}

/// The data of the event `end`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct StreamEnd {
    /// The reason for the end.
    pub reason: StreamEndReason,
}

/// The reason for the end of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamEndReason {
    /// There are no more events.
    Complete,
    /// The process ends.
    Stopped,
    /// Another process serves: connect again.
    HandedOver,
    /// The credentials of the request are no longer sufficient.
    Revoked,
}

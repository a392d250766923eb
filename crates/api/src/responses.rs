//! Responses: their classes and their times.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Responses by class of status.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Classes {
    /// Responses with 1xx.
    #[serde(rename = "1xx")]
    pub informational: u64,
    /// Responses with 2xx.
    #[serde(rename = "2xx")]
    pub successful: u64,
    /// Responses with 3xx.
    #[serde(rename = "3xx")]
    pub redirection: u64,
    /// Responses with 4xx.
    #[serde(rename = "4xx")]
    pub client_error: u64,
    /// Responses with 5xx.
    #[serde(rename = "5xx")]
    pub server_error: u64,
}

/// A latency distribution since the start. Quantiles are `null` without any values.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Latency {
    /// The number of values.
    pub count: u64,
    /// The mean in milliseconds.
    pub mean_ms: Option<f64>,
    /// The median in milliseconds.
    pub p50_ms: Option<f64>,
    /// The 90th percentile in milliseconds.
    pub p90_ms: Option<f64>,
    /// The 99th percentile in milliseconds.
    pub p99_ms: Option<f64>,
}

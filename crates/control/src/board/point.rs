//! A point of a chart.

use schemars::JsonSchema;
use serde::Serialize;

/// The figures between two samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "DashboardPoint")]
pub(crate) struct Point {
    /// Requests, or connections of other types, per second.
    pub requests: f32,
    /// Responses with 5xx per second.
    pub failed: f32,
    /// The mean response time in milliseconds; `null`: no responses.
    pub ms: Option<f32>,
    /// Open connections of clients.
    pub open: f32,
    /// Bytes sent to clients per second.
    pub sent: f32,
    /// Requests per second that the firewall blocked.
    pub blocked: f32,
    /// Complete TLS handshakes per second.
    pub handshakes: f32,
}

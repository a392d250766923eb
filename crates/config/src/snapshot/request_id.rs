//! `request_id:` of a virtual server.

use std::sync::Arc;

/// Settings of the request id that members get, and optionally clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestIdSettings {
    /// The header field with the id.
    pub header: Arc<str>,
    /// Whether responses contain it too.
    pub respond: bool,
}

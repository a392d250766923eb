//! `request_id:` of a virtual server.

use std::sync::Arc;

/// Members get the id of each request, and clients if wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestIdSettings {
    /// The field that it stands in.
    pub header: Arc<str>,
    /// Whether responses contain it too.
    pub respond: bool,
}

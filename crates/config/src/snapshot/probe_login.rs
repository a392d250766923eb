//! The server name and credentials of a probe.

use std::sync::Arc;

use crate::secret::Secret;

/// The login of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user name; empty if only a password is needed.
    pub user: Arc<str>,
    /// The password.
    pub password: Secret,
}

/// TLS of a monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeTls {
    /// Whether the certificate must be valid for the name.
    pub verify: bool,
    /// The server's name; `None`: the member's name or address.
    pub name: Option<Arc<str>>,
    /// The connection begins without TLS (STARTTLS).
    pub is_upgrade: bool,
}

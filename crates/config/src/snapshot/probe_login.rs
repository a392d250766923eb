//! The server name and credentials of a probe.

use std::sync::Arc;

use crate::secret::Secret;

/// The user as which a probe logs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Its name; empty where a password is enough.
    pub user: Arc<str>,
    /// Its password.
    pub password: Secret,
}

/// TLS of a monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeTls {
    /// Whether the certificate must be valid for the name.
    pub verify: bool,
    /// The server's name; `None`: the member's name or address.
    pub name: Option<Arc<str>>,
    /// The connection begins in clear (STARTTLS).
    pub is_upgrade: bool,
}

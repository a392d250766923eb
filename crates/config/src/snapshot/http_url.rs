//! URLs of servers that weir asks itself.

use std::fmt;

/// The URL of a server that weir asks itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HttpUrl {
    /// It is of `https`.
    pub is_secure: bool,
    /// Host and port as the URL has them.
    pub authority: String,
    /// The host, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Path and query.
    pub path: String,
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_secure { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.path)
    }
}

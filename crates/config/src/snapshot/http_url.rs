//! URLs of servers that weir connects to as a client.

use std::fmt;
use std::net::SocketAddr;

use super::Address;
use crate::endpoint::Endpoint;

/// The URL of a server that weir connects to as a client.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HttpUrl {
    /// The scheme is `https`.
    pub is_secure: bool,
    /// Host and port as written in the URL.
    pub authority: String,
    /// The host, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Path and query.
    pub path: String,
}

impl HttpUrl {
    /// Scheme, host and port, for events and problems, which every role sees: path and query may have keys.
    pub fn origin(&self) -> String {
        let scheme = if self.is_secure { "https" } else { "http" };
        format!("{scheme}://{}", self.authority)
    }

    /// The server of the URL.
    pub(crate) fn endpoint(&self) -> Endpoint {
        match self.host.parse() {
            Ok(ip) => Endpoint::Literal(Address::Socket(SocketAddr::new(ip, self.port))),
            Err(_) => Endpoint::Name { host: self.host.to_ascii_lowercase(), port: self.port },
        }
    }
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin(), self.path)
    }
}

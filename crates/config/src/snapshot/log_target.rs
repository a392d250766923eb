//! Where log lines go.

use std::path::PathBuf;
use std::sync::Arc;

use super::PoolTls;

/// Where log lines go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogTarget {
    /// Standard output.
    Stdout,
    /// A file, appended to; reopened on reload.
    File(PathBuf),
    /// A syslog server (RFC 5424).
    Syslog(Syslog),
}

/// A syslog server, and how messages to it begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Syslog {
    /// Where it is.
    pub server: SyslogServer,
    /// The number of the facility.
    pub facility: u8,
    /// The name of the program.
    pub tag: String,
}

/// Where a syslog server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SyslogServer {
    /// A unix datagram socket.
    Unix(PathBuf),
    /// UDP to this host and port.
    Udp(String),
    /// TCP to this host and port.
    Tcp(String),
    /// TCP with TLS.
    Tls(SyslogTls),
}

/// A syslog server that is reached over TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyslogTls {
    /// The host and port.
    pub server: String,
    /// The name that its certificate must be for.
    pub name: Arc<str>,
    /// Trusted authorities, and weir's certificate.
    pub tls: Arc<PoolTls>,
}

impl std::fmt::Display for SyslogServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
            Self::Udp(server) => write!(formatter, "{server} (udp)"),
            Self::Tcp(server) => write!(formatter, "{server} (tcp)"),
            Self::Tls(SyslogTls { server, .. }) => write!(formatter, "{server} (tls)"),
        }
    }
}

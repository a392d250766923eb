//! Targets of log lines.

use std::path::PathBuf;
use std::sync::Arc;

use super::PoolTls;

/// The target of log lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogTarget {
    /// Standard output.
    Stdout,
    /// A file, appended to; reopened on reload.
    File(PathBuf),
    /// A syslog server (RFC 5424).
    Syslog(Syslog),
}

/// A syslog server, and the header of messages to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Syslog {
    /// The server.
    pub server: SyslogServer,
    /// The number of the facility.
    pub facility: u8,
    /// The name of the program.
    pub tag: String,
}

/// The address of a syslog server.
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
    /// The required name in the server's certificate.
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

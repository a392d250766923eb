//! `log`: what is logged, and where.

use crate::endpoint::Endpoint;
use crate::raw::log_format::{AccessLogFormat, LogFormatOr};
use crate::raw::tls::PoolTls;
use crate::raw::waf::WafLog;
use crate::scalar::Name;
use crate::shapes::LogPath;

section! {
    /// Logs.
    Log at "log" {
        /// One line per request.
        optional access: AccessLog;
        /// Findings of the web application firewall.
        optional waf: WafLog;
        /// Changes requested over the admin listeners.
        optional audit: AuditLog;
    }
    later []
}

section! {
    /// The access log.
    AccessLog at "log.access" {
        /// `stdout`, a file (weir appends to it and reopens it at a reload), or a syslog server: `{ syslog: unix:/dev/log }`.
        default to: LogPath = LogPath::Stdout;
        /// The format of a line: a fixed one, or your own: `{ json: [ time, client, status ] }`, `{ text: "${client} ${status}" }`.
        default format: LogFormatOr = LogFormatOr::Word(AccessLogFormat::Json);
    }
    later []
}

section! {
    /// The audit log: one JSON line, with the user, for each change that was requested over the admin listeners, executed or refused. Without this section, weir writes the lines to its event log on standard error.
    AuditLog at "log.audit" {
        /// `stdout`, a file, or a syslog server, as for `log.access.to`.
        required to: LogPath;
    }
    later []
}

section! {
    /// A syslog server; each line becomes one message of RFC 5424.
    Syslog at "log.access.to" {
        /// The address of the syslog server: `unix:/dev/log`, or a host and a port. Default port: 514 (with `transport: tls`: 6514).
        required syslog: Endpoint;
        /// The transport to a host. Not used with a unix socket.
        default transport: SyslogTransport = SyslogTransport::Udp;
        /// With `transport: tls`: trusted authorities and a client certificate. The server's certificate must match its host in `syslog`, or `server_name`.
        optional tls: PoolTls;
        /// The facility of the messages.
        default facility: SyslogFacility = SyslogFacility::Local0;
        /// The name of the program in each message. Default: `weir`.
        optional tag: Name;
    }
    later []
}

choice! {
    /// The transport to a syslog server.
    SyslogTransport {
        /// One datagram for each line (RFC 5426).
        Udp = "udp",
        /// One connection; each message is preceded by its length (RFC 6587).
        Tcp = "tcp",
        /// As `tcp`, within TLS (RFC 5425).
        Tls = "tls",
    }
    later [] maps []
}

choice! {
    /// Syslog facilities.
    SyslogFacility {
        /// Facility 1: messages of users.
        User = "user",
        /// Facility 3: system services.
        Daemon = "daemon",
        /// Facility 4: security and authorisation.
        Auth = "auth",
        /// Facility 10: security and authorisation, private.
        Authpriv = "authpriv",
        /// Facility 13: audit.
        Audit = "audit",
        /// Facility 16: local use.
        Local0 = "local0",
        /// Facility 17: local use.
        Local1 = "local1",
        /// Facility 18: local use.
        Local2 = "local2",
        /// Facility 19: local use.
        Local3 = "local3",
        /// Facility 20: local use.
        Local4 = "local4",
        /// Facility 21: local use.
        Local5 = "local5",
        /// Facility 22: local use.
        Local6 = "local6",
        /// Facility 23: local use.
        Local7 = "local7",
    }
    later [] maps []
}

impl SyslogFacility {
    /// Its number (RFC 5424 section 6.2.1).
    pub fn number(self) -> u8 {
        match self {
            Self::User => 1,
            Self::Daemon => 3,
            Self::Auth => 4,
            Self::Authpriv => 10,
            Self::Audit => 13,
            Self::Local0 => 16,
            Self::Local1 => 17,
            Self::Local2 => 18,
            Self::Local3 => 19,
            Self::Local4 => 20,
            Self::Local5 => 21,
            Self::Local6 => 22,
            Self::Local7 => 23,
        }
    }
}

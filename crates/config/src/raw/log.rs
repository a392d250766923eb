//! `log`: what is logged, and where.

use crate::address::Endpoint;
use crate::raw::log_format::LogFormatOr;
use crate::raw::tls::PoolTls;
use crate::raw::waf::WafLog;
use crate::scalar::Name;
use crate::shapes::LogPath;

section! {
    /// What is logged.
    Log at "log" {
        /// One line per request.
        optional access: AccessLog;
        /// What the web application firewall finds.
        optional waf: WafLog;
    }
    later []
}

section! {
    /// The access log.
    AccessLog at "log.access" {
        /// `stdout`, a file that lines are appended to and that is opened anew on reload, or a syslog server: `{ syslog: unix:/dev/log }`.
        default to: LogPath = LogPath::Stdout;
        /// `json`: one object per line with timers and the reason why the request ended. `combined`: Apache's format. `off`: no access log. Or a form of your own: `{ json: [ time, client, status ] }`, `{ text: "${client} ${status}" }`.
        default format: LogFormatOr = LogFormatOr::Word(AccessLogFormat::Json);
    }
    later []
}

section! {
    /// A syslog server; each line is a message of RFC 5424.
    Syslog at "log.access.to" {
        /// Where it listens: `unix:/dev/log`, or a host and its port; if none is given 514, and 6514 over TLS.
        required syslog: Endpoint;
        /// How it is reached, unless by a unix socket.
        default transport: SyslogTransport = SyslogTransport::Udp;
        /// With `transport: tls`: whom to trust, and what to show. The server's certificate must be for its host in `syslog`, or for `server_name`.
        optional tls: PoolTls;
        /// What the messages are filed under.
        default facility: SyslogFacility = SyslogFacility::Local0;
        /// The name of the program in each message. Default: `weir`.
        optional tag: Name;
    }
    later []
}

choice! {
    /// How a syslog server is reached.
    SyslogTransport {
        /// One datagram for each line (RFC 5426).
        Udp = "udp",
        /// One connection; each message has its length in front (RFC 6587).
        Tcp = "tcp",
        /// The same within TLS (RFC 5425).
        Tls = "tls",
    }
    later [] maps []
}

choice! {
    /// What messages are filed under.
    SyslogFacility {
        /// Facility 1.
        User = "user",
        /// Facility 3.
        Daemon = "daemon",
        /// Facility 4.
        Auth = "auth",
        /// Facility 10.
        Authpriv = "authpriv",
        /// Facility 13.
        Audit = "audit",
        /// Facility 16.
        Local0 = "local0",
        /// Facility 17.
        Local1 = "local1",
        /// Facility 18.
        Local2 = "local2",
        /// Facility 19.
        Local3 = "local3",
        /// Facility 20.
        Local4 = "local4",
        /// Facility 21.
        Local5 = "local5",
        /// Facility 22.
        Local6 = "local6",
        /// Facility 23.
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

choice! {
    /// Form of an access log line.
    AccessLogFormat {
        /// One JSON object per line.
        Json = "json",
        /// The Apache combined format.
        Combined = "combined",
        /// No access log.
        Off = "off",
    }
    later [] maps []
}

//! Active health checks.

use std::sync::Arc;

use weir_core::monitor::Schedule;

use super::datagram_probe::{DnsProbe, UdpProbe};
use super::probe_answer::{BodyMatch, DrainAnswer};
use super::probe_login::{Credentials, ProbeTls};
use super::service_probe::{LdapProbe, RadiusProbe, RedisProbe, SmtpProbe, SqlProbe};
use crate::secret::Secret;

/// One active health check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Monitor {
    /// The request, and the expected answer.
    pub kind: MonitorKind,
    /// The schedule of probes.
    pub schedule: Schedule,
    /// The probed port, if it is not the member's.
    pub port: Option<u16>,
    /// Whether the member is up while the probe fails.
    pub is_reverse: bool,
}

/// The probe of a monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MonitorKind {
    /// A TCP connection; optionally with expected data.
    Tcp(TcpProbe),
    /// An HTTP request with an expected response.
    Http(HttpProbe),
    /// A gRPC health check, which must return SERVING.
    Grpc(GrpcProbe),
    /// A program, which must exit with 0.
    Script(ScriptProbe),
    /// A datagram with an expected answer.
    Udp(UdpProbe),
    /// A DNS query with an expected answer.
    Dns(DnsProbe),
    /// An ICMP echo.
    Icmp,
    /// A Redis server.
    Redis(RedisProbe),
    /// A mail server.
    Smtp(SmtpProbe),
    /// An LDAP directory with an expected entry.
    Ldap(LdapProbe),
    /// A MySQL or MariaDB server.
    Mysql(SqlProbe),
    /// A PostgreSQL server.
    Postgresql(SqlProbe),
    /// A RADIUS server.
    Radius(RadiusProbe),
}

/// Sent and expected data of a tcp monitor.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TcpProbe {
    /// Data to send after the connection is open.
    pub send: Option<Arc<[u8]>>,
    /// The required content of the first 64 KiB; `None`: no data is required.
    pub receive: Option<BodyMatch>,
    /// Content that requests a drain; checked before `receive`.
    pub drain_on: Option<BodyMatch>,
    /// `None`: without TLS.
    pub tls: Option<ProbeTls>,
}

/// The request of a grpc or grpcs monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrpcProbe {
    /// Name of the service; empty for the server as a whole.
    pub service: Arc<str>,
    /// `:authority`; `None`: the member's name or address.
    pub host: Option<Arc<str>>,
    /// `Some` for grpcs.
    pub tls: Option<ProbeTls>,
}

/// The command of a script monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptProbe {
    /// The program's path and its arguments; at least the path.
    pub command: Arc<[Arc<str>]>,
}

/// The request and expected response of an http or https monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpProbe {
    /// The method of the request.
    pub method: ProbeMethod,
    /// Origin-form target.
    pub path: Arc<str>,
    /// Host field; `None`: the member's name or address.
    pub host: Option<Arc<str>>,
    /// Further fields, which replace default fields of the same name.
    pub fields: Vec<(Arc<str>, Secret)>,
    /// Basic authentication.
    pub credentials: Option<Credentials>,
    /// The body of the request; possibly empty.
    pub body: Arc<[u8]>,
    /// `Some` for https.
    pub tls: Option<ProbeTls>,
    /// Inclusive ranges, at least one.
    pub expect_status: Vec<(u16, u16)>,
    /// The required contents of the body, in its first 64 KiB.
    pub expect_body: Option<BodyMatch>,
    /// The answer that requests a drain; checked before the expected one.
    pub drain_on: Option<DrainAnswer>,
}

/// The method of a monitor's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProbeMethod {
    /// The page, with its body.
    #[default]
    Get,
    /// Only the head.
    Head,
    /// The capabilities of the server.
    Options,
    /// Something is to be processed.
    Post,
    /// Something is to be stored.
    Put,
    /// Something is to be changed.
    Patch,
    /// Something is to be removed.
    Delete,
}

impl ProbeMethod {
    /// The word in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Options => "OPTIONS",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Whether a body may follow the head.
    pub fn takes_body(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch | Self::Delete)
    }
}

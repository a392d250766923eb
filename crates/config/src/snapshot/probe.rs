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
    /// When.
    pub schedule: Schedule,
    /// Another port than the member's.
    pub port: Option<u16>,
    /// Whether the member is up while the probe fails.
    pub is_reverse: bool,
}

/// The probe of a monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MonitorKind {
    /// The connection is accepted, and the data is as expected.
    Tcp(TcpProbe),
    /// A request gets the expected answer.
    Http(HttpProbe),
    /// The health service of gRPC says SERVING.
    Grpc(GrpcProbe),
    /// A program ends with 0.
    Script(ScriptProbe),
    /// A datagram is answered.
    Udp(UdpProbe),
    /// A question of DNS is answered.
    Dns(DnsProbe),
    /// The host answers an echo.
    Icmp,
    /// A Redis server serves.
    Redis(RedisProbe),
    /// A mail server greets.
    Smtp(SmtpProbe),
    /// A directory has an entry.
    Ldap(LdapProbe),
    /// MySQL or MariaDB serves.
    Mysql(SqlProbe),
    /// PostgreSQL serves.
    Postgresql(SqlProbe),
    /// A RADIUS server decides.
    Radius(RadiusProbe),
}

/// Sent and expected data of a tcp monitor.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TcpProbe {
    /// Sent when the connection stands.
    pub send: Option<Arc<[u8]>>,
    /// The required contents of the first 64 KiB; `None`: no data is required.
    pub receive: Option<BodyMatch>,
    /// Contents that mean a drain; checked before `receive`.
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

//! Probes of databases, mail servers, directories and access servers.

use std::sync::Arc;

use super::probe_login::{Credentials, ProbeTls};
use crate::secret::Secret;

/// The probe of a redis monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisProbe {
    /// The login; without a user name, the password of the default user.
    pub credentials: Option<Credentials>,
    /// The required role of the server.
    pub role: Option<RedisRole>,
    /// `None`: without TLS.
    pub tls: Option<ProbeTls>,
}

/// Roles of Redis servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedisRole {
    /// The server accepts writes.
    Master,
    /// The server follows a master.
    Replica,
}

/// The probe of an smtp monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmtpProbe {
    /// The name in EHLO.
    pub name: Arc<str>,
    /// `None`: without TLS.
    pub tls: Option<ProbeTls>,
}

/// The probe of an ldap monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LdapProbe {
    /// The credentials of the bind; `None`: anonymous.
    pub credentials: Option<Credentials>,
    /// The required entry; empty: the root DSE.
    pub base: Arc<str>,
    /// The required attribute.
    pub attribute: Arc<str>,
    /// `None`: without TLS.
    pub tls: Option<ProbeTls>,
}

/// The probe of a mysql or postgresql monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlProbe {
    /// The login; `None`: no login. The password may be empty.
    pub user: Option<Credentials>,
    /// The database of the login.
    pub database: Option<Arc<str>>,
    /// The query.
    pub query: Option<SqlQuery>,
    /// `None`: without TLS.
    pub tls: Option<ProbeTls>,
}

/// A query and its expected answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlQuery {
    /// One statement.
    pub text: Arc<str>,
    /// The required first value of the first row; `None`: any answer but an error.
    pub value: Option<Arc<str>>,
}

/// The probe of a radius monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RadiusProbe {
    /// The login: a user name of 1 to 253 bytes, and a password of at most 128 bytes.
    pub credentials: Credentials,
    /// The secret shared with the server.
    pub secret: Secret,
    /// The answer that counts as a pass.
    pub reply: RadiusReply,
}

/// Answers of a RADIUS server that count as a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RadiusReply {
    /// Access-Accept.
    Accept,
    /// Access-Reject.
    Reject,
    /// Any of the answers.
    Any,
}

//! What is asked of servers of databases, mail, directories and access.

use std::sync::Arc;

use super::probe_login::{Credentials, ProbeTls};
use crate::secret::Secret;

/// What a redis monitor asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisProbe {
    /// Without a name, the default user's password.
    pub credentials: Option<Credentials>,
    /// What the server must be.
    pub role: Option<RedisRole>,
    /// `None`: without TLS.
    pub tls: Option<ProbeTls>,
}

/// Roles of Redis servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedisRole {
    /// It takes writes.
    Master,
    /// It follows a master.
    Replica,
}

/// What an smtp monitor says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmtpProbe {
    /// What it calls itself.
    pub name: Arc<str>,
    /// `None`: without TLS.
    pub tls: Option<ProbeTls>,
}

/// What an ldap monitor asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LdapProbe {
    /// Whom it binds as; `None`: nobody.
    pub credentials: Option<Credentials>,
    /// The entry that must be there; empty: the server's own.
    pub base: Arc<str>,
    /// The attribute that it must have.
    pub attribute: Arc<str>,
    /// `None`: without TLS.
    pub tls: Option<ProbeTls>,
}

/// What a mysql or postgresql monitor asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlProbe {
    /// `None`: there is no login. The password may be empty.
    pub user: Option<Credentials>,
    /// What the user logs in to.
    pub database: Option<Arc<str>>,
    /// What is asked then.
    pub query: Option<SqlQuery>,
    /// `None`: without TLS.
    pub tls: Option<ProbeTls>,
}

/// A query, and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlQuery {
    /// One statement.
    pub text: Arc<str>,
    /// What the first value of the first row must be; `None`: the answer is no error.
    pub value: Option<Arc<str>>,
}

/// What a radius monitor asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RadiusProbe {
    /// Who wants access; 1 to 253 bytes, and a password of at most 128.
    pub credentials: Credentials,
    /// What is shared with the server.
    pub secret: Secret,
    /// The answer that passes.
    pub reply: RadiusReply,
}

/// Answers of a RADIUS server that pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RadiusReply {
    /// Access-Accept.
    Accept,
    /// Access-Reject.
    Reject,
    /// Any of them.
    Any,
}

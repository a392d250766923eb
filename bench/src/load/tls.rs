//! TLS sessions of a thread's users: new and resumed ones, and checks of the negotiated values.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::client::Resumption;
use weir_tls::{HandshakeResult, Session, TlsError};

use super::plan::TlsPlan;

/// Tickets that a user keeps: more than servers usually send at once.
const TICKETS_MAX: usize = 8;

/// Sessions of one thread.
pub struct Sessions {
    plan: TlsPlan,
    /// One configuration for all users, or with resumption one per user: a user resumes only its own sessions.
    configs: Vec<Arc<ClientConfig>>,
}

impl Sessions {
    /// Creates the sessions for this many users.
    pub fn new(plan: &TlsPlan, users: usize) -> Self {
        let config = |resumption| {
            let mut config = (*plan.config).clone();
            config.resumption = resumption;
            Arc::new(config)
        };
        let configs = match plan.resume {
            true => {
                (0..users).map(|_| config(Resumption::in_memory_sessions(TICKETS_MAX))).collect()
            }
            false => vec![config(Resumption::disabled())],
        };
        Self { plan: plan.clone(), configs }
    }

    /// A session for a new connection of that user.
    pub fn session(&self, user: u32) -> Result<Session, TlsError> {
        let config = &self.configs[user as usize % self.configs.len()];
        Session::client(config, self.plan.server_name.clone())
    }

    /// Describes a handshake result that differs from the plan; `None` if all match.
    pub fn mismatch(&self, established: &HandshakeResult) -> Option<String> {
        let expect = &self.plan.expect;
        let (version, suite) = (established.version, established.suite.suite());
        if let Some(expected) = expect.version.filter(|expected| *expected != version) {
            return Some(format!("{version:?} instead of {expected:?}"));
        }
        if let Some(expected) = expect.suite.filter(|expected| *expected != suite) {
            return Some(format!("{suite:?} instead of {expected:?}"));
        }
        let protocol = established.alpn.as_deref();
        let expected = expect.protocol.as_deref()?;
        (protocol != Some(expected)).then(|| {
            let told = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
            let found = protocol.map_or("no protocol".to_owned(), told);
            format!("{found} instead of {} (ALPN)", told(expected))
        })
    }
}

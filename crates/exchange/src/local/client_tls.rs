//! What a client's handshake has settled, for conditions, logs and members.

use std::sync::Arc;

use weir_core::expression::TlsFacts;
use weir_tls::identity::subject_of;
use weir_tls::server::suite_name;
use weir_tls::{Established, ProtocolVersion};

/// What a client's handshake has settled.
#[derive(Debug)]
pub struct ClientTls {
    version: &'static str,
    cipher: &'static str,
    sni: Box<str>,
    subject: Box<str>,
    /// Which clients were let in when its handshake began; `None`: its TLS is another's.
    lets_in: Option<Arc<[u8]>>,
}

impl ClientTls {
    /// Of a client that asked for this name.
    pub fn new(server_name: &str, established: &Established, lets_in: Option<Arc<[u8]>>) -> Self {
        let version = match established.version {
            ProtocolVersion::TLSv1_2 => "1.2",
            _ => "1.3",
        };
        let subject = established.peer_certificates.first().and_then(subject_of);
        Self {
            version,
            cipher: suite_name(&established.suite),
            sni: server_name.into(),
            subject: subject.unwrap_or_default().into(),
            lets_in,
        }
    }

    /// Of a client whose TLS is another's: nothing is known but the name that it asked for.
    pub fn asked(server_name: &str) -> Self {
        Self { version: "", cipher: "", sni: server_name.into(), subject: "".into(), lets_in: None }
    }

    /// Whether its handshake has shown that it is let in where now others are.
    #[inline]
    pub fn is_of_others(&self, lets_in: &Arc<[u8]>) -> bool {
        let passed = self.lets_in.as_ref();
        passed.is_some_and(|passed| !Arc::ptr_eq(passed, lets_in) && passed != lets_in)
    }

    /// The same for expressions.
    pub fn facts(&self) -> TlsFacts<'_> {
        TlsFacts {
            version: self.version,
            sni: &self.sni,
            cipher: self.cipher,
            client_certificate_subject: &self.subject,
        }
    }
}

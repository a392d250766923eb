//! Results of a client's TLS handshake, for conditions, logs and members.

use std::cell::OnceCell;
use std::fmt;
use std::sync::Arc;

use weir_core::expression::{CertificateFacts, CertificateName, ClientCertificate, TlsFacts};
use weir_tls::certificate::{self, AlternativeName};
use weir_tls::identity::subject_of;
use weir_tls::server::suite_name;
use weir_tls::{CertificateDer, HandshakeResult, ProtocolVersion};

/// Results of a client's TLS handshake.
#[derive(Debug)]
pub struct ClientTls {
    version: &'static str,
    cipher: &'static str,
    sni: Box<str>,
    subject: Box<str>,
    certificate: Option<Box<Certificate>>,
    /// Identifies the accepted client certificates when the handshake began; `None`: TLS was not terminated here.
    lets_in: Option<Arc<[u8]>>,
}

/// TLS properties of a client, for use by another thread after the connection.
#[derive(Debug, Clone)]
pub struct SeenTls {
    version: &'static str,
    cipher: &'static str,
    /// The requested server name; empty: none.
    pub server_name: Box<str>,
    /// The subject of the client certificate; empty: none.
    pub subject: Box<str>,
    certificate: Option<CertificateDer<'static>>,
}

impl SeenTls {
    /// The heap memory that it uses.
    pub fn bytes(&self) -> usize {
        let certificate = self.certificate.as_ref().map_or(0, |der| der.len());
        self.server_name.len() + self.subject.len() + certificate
    }
}

/// The certificate of a client.
struct Certificate {
    der: CertificateDer<'static>,
    /// The parsed certificate; parsed when it is first needed.
    facts: OnceCell<CertificateFacts>,
}

impl ClientTls {
    /// The results for a client that requested this name.
    pub fn new(
        server_name: &str,
        established: &HandshakeResult,
        lets_in: Option<Arc<[u8]>>,
    ) -> Self {
        let version = match established.version {
            ProtocolVersion::TLSv1_2 => "1.2",
            _ => "1.3",
        };
        let first = established.peer_certificates.first();
        let certificate =
            first.map(|der| Box::new(Certificate { der: der.clone(), facts: OnceCell::new() }));
        Self {
            version,
            cipher: suite_name(&established.suite),
            sni: server_name.into(),
            subject: first.and_then(subject_of).unwrap_or_default().into(),
            certificate,
            lets_in,
        }
    }

    /// A client whose TLS is passed through: only the requested name is known.
    pub fn asked(server_name: &str) -> Self {
        Self {
            version: "",
            cipher: "",
            sni: server_name.into(),
            subject: "".into(),
            certificate: None,
            lets_in: None,
        }
    }

    /// A supposed client: it requests this name with the newest version, and has no certificate.
    pub fn supposed(server_name: &str, lets_in: Option<Arc<[u8]>>) -> Self {
        let (version, cipher) = ("1.3", "TLS_AES_256_GCM_SHA384");
        Self { version, cipher, lets_in, ..Self::asked(server_name) }
    }

    /// Returns the properties for later use.
    pub fn seen(&self) -> SeenTls {
        SeenTls {
            version: self.version,
            cipher: self.cipher,
            server_name: self.sni.clone(),
            subject: self.subject.clone(),
            certificate: self.certificate.as_ref().map(|it| it.der.clone()),
        }
    }

    /// Restores a client from stored properties.
    pub fn seen_before(seen: &SeenTls, lets_in: Option<Arc<[u8]>>) -> Self {
        let certificate = seen.certificate.as_ref();
        let certificate = certificate
            .map(|der| Box::new(Certificate { der: der.clone(), facts: OnceCell::new() }));
        let SeenTls { version, cipher, server_name, subject, .. } = seen;
        Self {
            version,
            cipher,
            sni: server_name.clone(),
            subject: subject.clone(),
            certificate,
            lets_in,
        }
    }

    /// Whether the handshake accepted other client certificates than the current settings do.
    #[inline]
    pub fn is_of_others(&self, lets_in: &Arc<[u8]>) -> bool {
        let passed = self.lets_in.as_ref();
        passed.is_some_and(|passed| !Arc::ptr_eq(passed, lets_in) && passed != lets_in)
    }

    /// The same facts for expressions.
    pub fn facts(&self) -> TlsFacts<'_> {
        let certificate = self.certificate.as_deref();
        TlsFacts {
            version: self.version,
            sni: &self.sni,
            cipher: self.cipher,
            client_certificate_subject: &self.subject,
            client_certificate: certificate.map(|it| it as &dyn ClientCertificate),
        }
    }
}

impl ClientCertificate for Certificate {
    fn read(&self) -> &CertificateFacts {
        self.facts.get_or_init(|| {
            let found = certificate::details(&self.der);
            let names = found.names.into_iter().map(|(kind, name)| {
                let kind = match kind {
                    AlternativeName::Dns => CertificateName::Dns,
                    AlternativeName::Email => CertificateName::Email,
                    AlternativeName::Uri => CertificateName::Uri,
                    AlternativeName::Ip => CertificateName::Ip,
                };
                (kind, name.into())
            });
            CertificateFacts {
                serial: found.serial.into(),
                fingerprint: found.fingerprint.into(),
                names: names.collect(),
            }
        })
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Certificate").finish_non_exhaustive()
    }
}

//! The `acme:` section of the file.

use weir_tls::CertificateDer;
use weir_tls::challenges::Challenges;
use weir_tls::identity::Identity;
use weir_tls::managed_certificate::ManagedCertificate;

use super::{Arc, HttpUrl, Snapshot};
use crate::secret::Secret;

/// Certificates by ACME.
#[derive(Debug, Clone)]
pub struct AcmeConfiguration {
    /// The authority.
    pub authority: Arc<Acme>,
    /// Pending challenges; set by the control plane.
    pub challenges: Option<Arc<Challenges>>,
}

/// The authority that issues certificates, and the settings of orders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acme {
    /// The URL of the authority's directory.
    pub directory: HttpUrl,
    /// The contact mailbox of the account.
    pub email: Option<String>,
    /// Trusted root certificates for connections to the authority; `None`: those of the system.
    pub authorities: Option<Vec<CertificateDer<'static>>>,
    /// The challenge that proves control of a name.
    pub challenge: Challenge,
    /// The type of private keys.
    pub key: KeyKind,
    /// The certificate profile; `None`: the authority's default.
    pub profile: Option<String>,
    /// External account binding.
    pub external: Option<ExternalAccount>,
}

/// The challenge that proves control of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Challenge {
    /// `http-01`: an answer to a plain HTTP request.
    Http01,
    /// `tls-alpn-01`: a certificate in a TLS handshake.
    TlsAlpn01,
}

impl Challenge {
    /// The challenge name in RFC 8555 and RFC 8737.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http01 => "http-01",
            Self::TlsAlpn01 => "tls-alpn-01",
        }
    }
}

/// The type of a private key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// ECDSA with P-256.
    EcdsaP256,
    /// ECDSA with P-384.
    EcdsaP384,
    /// RSA with 2048 bits.
    Rsa2048,
    /// RSA with 3072 bits.
    Rsa3072,
    /// RSA with 4096 bits.
    Rsa4096,
}

/// External account binding (RFC 8555 section 7.3.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalAccount {
    /// The key identifier.
    pub id: String,
    /// The HMAC key, in base64url.
    pub key: Secret,
}

impl Snapshot {
    /// The slots of ACME certificates. A certificate that several virtual servers use appears several times.
    pub fn managed(&self) -> impl Iterator<Item = &Arc<ManagedCertificate>> {
        let servers = self.virtual_servers.iter().filter_map(|server| server.tls.as_ref());
        servers.flat_map(|tls| tls.managed())
    }

    /// The certificates that clients get now, without those of the admin listeners.
    pub fn shown(&self) -> impl Iterator<Item = Arc<Identity>> {
        let servers = self.virtual_servers.iter().filter_map(|server| server.tls.as_ref());
        servers.flat_map(|tls| tls.shown())
    }
}

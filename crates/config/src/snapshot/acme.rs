//! `acme:` of the file.

use weir_tls::CertificateDer;
use weir_tls::challenges::Challenges;
use weir_tls::identity::Identity;
use weir_tls::managed::Managed;

use super::{Arc, HttpUrl, Snapshot};
use crate::secret::Secret;

/// Certificates by ACME.
#[derive(Debug, Clone)]
pub struct Issuing {
    /// The authority.
    pub authority: Arc<Acme>,
    /// Pending challenges; the control plane provides them.
    pub challenges: Option<Arc<Challenges>>,
}

/// The authority that issues certificates, and how they are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acme {
    /// The URL of its directory.
    pub directory: HttpUrl,
    /// The mailbox for its messages.
    pub email: Option<String>,
    /// Authorities for connections to it; `None`: those of the system.
    pub authorities: Option<Vec<CertificateDer<'static>>>,
    /// How a name is proved.
    pub challenge: Challenge,
    /// The kind of private keys.
    pub key: KeyKind,
    /// The kind of certificate; `None`: the authority's default.
    pub profile: Option<String>,
    /// An account outside of ACME.
    pub external: Option<ExternalAccount>,
}

/// How weir proves that it serves a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Challenge {
    /// By an answer to a plain request.
    Http01,
    /// By the certificate of a handshake.
    TlsAlpn01,
}

impl Challenge {
    /// Its name in RFC 8555 and RFC 8737.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http01 => "http-01",
            Self::TlsAlpn01 => "tls-alpn-01",
        }
    }
}

/// The kind of a private key.
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

/// An account outside of ACME (RFC 8555 section 7.3.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalAccount {
    /// The key identifier.
    pub id: String,
    /// The HMAC key, in base64url.
    pub key: Secret,
}

impl Snapshot {
    /// The places of certificates that are obtained by ACME; one that several virtual servers show comes several times.
    pub fn managed(&self) -> impl Iterator<Item = &Arc<Managed>> {
        let servers = self.virtual_servers.iter().filter_map(|server| server.tls.as_ref());
        servers.flat_map(|tls| tls.managed())
    }

    /// The certificates that clients are shown now, those of the admin listeners apart.
    pub fn shown(&self) -> impl Iterator<Item = Arc<Identity>> {
        let servers = self.virtual_servers.iter().filter_map(|server| server.tls.as_ref());
        servers.flat_map(|tls| tls.shown())
    }
}

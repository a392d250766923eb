//! Certificates that can be replaced while they are in use.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rustls::SignatureAlgorithm;
use rustls::sign::CertifiedKey;

use crate::identity::Identity;

/// A certificate that is presented to clients.
#[derive(Debug, Clone)]
pub enum Credential {
    /// Loaded with the configuration.
    Fixed(Arc<Identity>),
    /// Issued by an authority while weir runs.
    Managed(Arc<ManagedCertificate>),
}

impl Credential {
    /// The current certificate; `None`: there is none yet.
    pub fn current(&self) -> Option<Arc<Identity>> {
        match self {
            Self::Fixed(identity) => Some(Arc::clone(identity)),
            Self::Managed(managed) => managed.current(),
        }
    }

    /// The server names for which the certificate is used.
    pub fn names(&self) -> &[String] {
        match self {
            Self::Fixed(identity) => &identity.names,
            Self::Managed(managed) => &managed.names,
        }
    }

    /// The signature algorithm.
    pub(crate) fn algorithm(&self) -> SignatureAlgorithm {
        match self {
            Self::Fixed(identity) => identity.algorithm,
            Self::Managed(managed) => managed.algorithm,
        }
    }

    /// Passes the current certificate and its OCSP response to `take`.
    pub(crate) fn with_certified<T>(&self, take: impl FnOnce(&Identity) -> T) -> Option<T> {
        match self {
            Self::Fixed(identity) => Some(take(identity)),
            Self::Managed(managed) => managed.current.load().as_deref().map(take),
        }
    }
}

/// A place for a certificate that the control plane sets and replaces. Handshakes read it without a lock.
pub struct ManagedCertificate {
    names: Vec<String>,
    algorithm: SignatureAlgorithm,
    fetches_ocsp: bool,
    given: Option<Arc<Identity>>,
    current: ArcSwapOption<Identity>,
}

impl ManagedCertificate {
    /// Creates a place for these names, which are in lower case. `given`: the certificate until the first one is issued.
    pub fn new(
        names: Vec<String>,
        algorithm: SignatureAlgorithm,
        fetches_ocsp: bool,
        given: Option<Arc<Identity>>,
    ) -> Self {
        let current = ArcSwapOption::new(given.clone());
        Self { names, algorithm, fetches_ocsp, given, current }
    }

    /// The names of the certificate, in the order of the configuration.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The signature algorithm of issued certificates.
    pub fn algorithm(&self) -> SignatureAlgorithm {
        self.algorithm
    }

    /// Whether OCSP responses are fetched from the authority.
    pub fn fetches_ocsp(&self) -> bool {
        self.fetches_ocsp
    }

    /// The certificate from the configuration, which is used until the first one is issued.
    pub fn given(&self) -> Option<&Arc<Identity>> {
        self.given.as_ref()
    }

    /// The current certificate.
    pub fn current(&self) -> Option<Arc<Identity>> {
        self.current.load_full()
    }

    /// Sets the certificate for later handshakes.
    pub fn set(&self, identity: Arc<Identity>) {
        self.current.store(Some(identity));
    }
}

impl fmt::Debug for ManagedCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Managed").field("names", &self.names).finish_non_exhaustive()
    }
}

/// The certificate for a handshake, with its OCSP response if there is one.
pub(crate) fn certified(identity: &Identity) -> Arc<CertifiedKey> {
    match &identity.staple {
        Some(staple) => staple.certified(),
        None => Arc::clone(&identity.certified),
    }
}

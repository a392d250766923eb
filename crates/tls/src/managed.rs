//! Certificates that are replaced while they are in use.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rustls::SignatureAlgorithm;
use rustls::sign::CertifiedKey;

use crate::identity::Identity;

/// A certificate that clients are shown.
#[derive(Debug, Clone)]
pub enum Credential {
    /// Read with the configuration.
    Fixed(Arc<Identity>),
    /// Obtained from an authority while weir runs.
    Managed(Arc<Managed>),
}

impl Credential {
    /// The certificate that clients are shown now; `None`: it is not there yet.
    pub fn current(&self) -> Option<Arc<Identity>> {
        match self {
            Self::Fixed(identity) => Some(Arc::clone(identity)),
            Self::Managed(managed) => managed.current(),
        }
    }

    /// The names of clients that get it.
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

    /// Gives the certificate and its OCSP response to `take`.
    pub(crate) fn with_certified<T>(&self, take: impl FnOnce(&Identity) -> T) -> Option<T> {
        match self {
            Self::Fixed(identity) => Some(take(identity)),
            Self::Managed(managed) => managed.current.load().as_deref().map(take),
        }
    }
}

/// The place of a certificate that the control plane puts in and replaces. Handshakes read it without a lock.
pub struct Managed {
    names: Vec<String>,
    algorithm: SignatureAlgorithm,
    fetches_ocsp: bool,
    given: Option<Arc<Identity>>,
    current: ArcSwapOption<Identity>,
}

impl Managed {
    /// The place of a certificate for these names, in lower case. `given`: what clients are shown until there is another.
    pub fn new(
        names: Vec<String>,
        algorithm: SignatureAlgorithm,
        fetches_ocsp: bool,
        given: Option<Arc<Identity>>,
    ) -> Self {
        let current = ArcSwapOption::new(given.clone());
        Self { names, algorithm, fetches_ocsp, given, current }
    }

    /// The names that the certificate is for, in the order of the configuration.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The signature algorithm of the certificates to come.
    pub fn algorithm(&self) -> SignatureAlgorithm {
        self.algorithm
    }

    /// Whether its OCSP responses are fetched from the authority.
    pub fn fetches_ocsp(&self) -> bool {
        self.fetches_ocsp
    }

    /// The certificate of the configuration, shown until there is another.
    pub fn given(&self) -> Option<&Arc<Identity>> {
        self.given.as_ref()
    }

    /// The certificate that clients are shown.
    pub fn current(&self) -> Option<Arc<Identity>> {
        self.current.load_full()
    }

    /// Handshakes that begin after this show this certificate.
    pub fn set(&self, identity: Arc<Identity>) {
        self.current.store(Some(identity));
    }
}

impl fmt::Debug for Managed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Managed").field("names", &self.names).finish_non_exhaustive()
    }
}

/// What a handshake sends: the certificate, with its OCSP response if there is one.
pub(crate) fn certified(identity: &Identity) -> Arc<CertifiedKey> {
    match &identity.staple {
        Some(staple) => staple.certified(),
        None => Arc::clone(&identity.certified),
    }
}

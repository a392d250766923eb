//! TLS settings of a virtual server: certificates by name, versions, cipher suites, session resumption.

use std::fmt;
use std::sync::Arc;

use ::aws_lc_rs::digest;
use rustls::crypto::aws_lc_rs::{self, cipher_suite, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use rustls::server::{
    ClientHello as RustlsHello, NoServerSessionStorage, ProducesTickets, ResolvesServerCert,
    WebPkiClientVerifier,
};
use rustls::sign::CertifiedKey;
use rustls::{
    RootCertStore, ServerConfig, SignatureAlgorithm, SignatureScheme, SupportedCipherSuite,
    SupportedProtocolVersion, version,
};

use crate::challenges::Challenges;
use crate::client_hello::{ClientHello, NameForm};
use crate::error::Alert;
use crate::identity::Identity;
use crate::managed_certificate::{Credential, certified};
use crate::names::Names;
use crate::session_cache::SessionCache;
use crate::tickets::TicketKeys;

/// Number of tickets that a TLS 1.3 client receives after a handshake. Each is used for one connection (RFC 8446 section
/// C.4).
const TICKETS: usize = 2;

/// Maximum size of early data in bytes: enough for a few requests. More is refused.
pub const EARLY_DATA_BYTES_MAX: u32 = 16 * 1024;

/// Versions of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// TLS 1.2
    Tls12,
    /// TLS 1.3
    Tls13,
}

/// The supported cipher suites in order of preference; names as in OpenSSL, and as in RFC 8446 section B.4 and RFC 5289.
pub const SUITES: [(&str, &str, &SupportedCipherSuite); 9] = [
    ("TLS_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256", &cipher_suite::TLS13_AES_128_GCM_SHA256),
    ("TLS_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384", &cipher_suite::TLS13_AES_256_GCM_SHA384),
    (
        "TLS_CHACHA20_POLY1305_SHA256",
        "TLS_CHACHA20_POLY1305_SHA256",
        &cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
    ),
    (
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        &cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    ),
    (
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        &cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    ),
    (
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        &cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
    (
        "ECDHE-RSA-AES128-GCM-SHA256",
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        &cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    ),
    (
        "ECDHE-RSA-AES256-GCM-SHA384",
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        &cipher_suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    ),
    (
        "ECDHE-RSA-CHACHA20-POLY1305",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        &cipher_suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
];

/// The supported key exchange groups in order of preference.
pub const GROUPS: [(&str, &dyn SupportedKxGroup); 5] = [
    ("X25519MLKEM768", kx_group::X25519MLKEM768),
    ("X25519", kx_group::X25519),
    ("P-256", kx_group::SECP256R1),
    ("P-384", kx_group::SECP384R1),
    ("SECP256R1MLKEM768", kx_group::SECP256R1MLKEM768),
];

/// Whether clients present a certificate.
#[derive(Debug, Clone)]
pub enum ClientCertificates {
    /// Clients are not asked for a certificate.
    Off,
    /// Clients are asked for a certificate. A connection without one is accepted.
    Request(Trust),
    /// Clients are asked for a certificate. A connection without one fails.
    Require(Trust),
}

/// The conditions for trust in client certificates.
#[derive(Debug, Clone)]
pub struct Trust {
    /// The trusted authorities.
    pub authorities: Vec<CertificateDer<'static>>,
    /// The lists of revoked certificates.
    pub revocations: Vec<CertificateRevocationListDer<'static>>,
}

impl ClientCertificates {
    /// A digest of these settings. A session that was started with other settings must not be resumed.
    pub fn digest(&self) -> [u8; 32] {
        let (mode, trust) = match self {
            Self::Off => (0, None),
            Self::Request(trust) => (1, Some(trust)),
            Self::Require(trust) => (2, Some(trust)),
        };
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(&[mode]);
        let authorities = trust.iter().flat_map(|trust| &trust.authorities);
        let revocations = trust.iter().flat_map(|trust| &trust.revocations);
        let parts = authorities.map(|it| it.as_ref()).chain(revocations.map(|it| it.as_ref()));
        for part in parts {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        let mut out = [0; 32];
        out.copy_from_slice(context.finish().as_ref());
        out
    }
}

/// The settings for clients that request some names.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The oldest accepted version.
    pub version_min: Version,
    /// The newest accepted version.
    pub version_max: Version,
    /// The cipher suites in order of preference.
    pub suites: Vec<SupportedCipherSuite>,
    /// The key exchange groups in order of preference.
    pub groups: Vec<&'static dyn SupportedKxGroup>,
    /// The application protocols in order of preference; empty: a client may offer any.
    pub alpn: Vec<Vec<u8>>,
    /// Whether clients present a certificate.
    pub client_certificates: ClientCertificates,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            version_min: Version::Tls12,
            version_max: Version::Tls13,
            suites: SUITES.iter().map(|(_, _, suite)| **suite).collect(),
            groups: GROUPS[..4].iter().map(|(_, group)| *group).collect(),
            alpn: Vec::new(),
            client_certificates: ClientCertificates::Off,
        }
    }
}

/// The kind of session resumption.
#[derive(Debug, Clone)]
pub enum Sessions {
    /// No resumption: every connection has a full handshake.
    Off,
    /// Tickets, which clients store.
    Tickets(Arc<TicketKeys>),
    /// Sessions that weir stores.
    Stateful {
        /// The stored sessions. With TLS 1.3, a lookup removes the session, so it is used for one connection.
        cache: Arc<SessionCache>,
        /// Whether a client may send early data (0-RTT).
        early_data: bool,
    },
}

/// The reason why settings cannot be combined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsError(pub String);

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SettingsError {}

/// Certificates by name, with one per name and signature algorithm.
#[derive(Debug, Default)]
pub struct Certificates {
    by_name: Names<Choices>,
    /// The certificates for clients without SNI, or with an unknown name.
    default: Choices,
    is_strict: bool,
}

/// The certificates for one name.
#[derive(Debug, Default, Clone)]
struct Choices {
    /// All certificates in the order of the configuration.
    all: Vec<Credential>,
}

impl Choices {
    /// Adds a certificate, unless there is one with the same signature algorithm.
    fn add(&mut self, credential: &Credential) {
        let algorithm = credential.algorithm();
        if !self.all.iter().any(|other| other.algorithm() == algorithm) {
            self.all.push(credential.clone());
        }
    }

    /// Selects a certificate that the client can verify. ECDSA and Ed25519 are preferred to RSA, whose signatures cost ten
    /// times as much. If it can verify none, rustls finds that out with any of them, and sends the alert handshake_failure;
    /// without one it would send access_denied.
    fn pick(&self, schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let is_cheap = |it: &&Credential| it.algorithm() != SignatureAlgorithm::RSA;
        let cheap = self.all.iter().filter(is_cheap);
        let cheap = cheap.filter_map(|it| fitting(it, schemes)).next();
        let fits = cheap.or_else(|| self.all.iter().find_map(|it| fitting(it, schemes)));
        fits.or_else(|| self.all.iter().find_map(|it| it.with_certified(certified)))
    }
}

/// The certificate with its OCSP response, if the client can verify its signatures.
fn fitting(credential: &Credential, schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
    let fits = |it: &Identity| it.certified.key.choose_scheme(schemes).is_some();
    credential.with_certified(|it| fits(it).then(|| certified(it))).flatten()
}

impl Certificates {
    /// A table of these certificates. The first is used for clients without SNI or with an unknown name, unless `is_strict`.
    pub fn new(credentials: &[Credential], is_strict: bool) -> Self {
        let mut certificates = Self { is_strict, ..Self::default() };
        for credential in credentials {
            for name in credential.names() {
                certificates.by_name.entry(name, Choices::default).add(credential);
            }
        }
        // The default also has certificates for the same names with other signature algorithms.
        if let Some((first, others)) = credentials.split_first() {
            certificates.default.add(first);
            for other in others {
                if other.names() == first.names() {
                    certificates.default.add(other);
                }
            }
        }
        certificates
    }

    /// The number of names with a certificate.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there are no names with a certificate.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Whether there is a certificate for clients that request this name, which is in lower case; empty: without SNI.
    pub fn are_for(&self, name: &str) -> bool {
        !self.is_strict || self.by_name.find(name).is_some()
    }

    fn find(&self, name: Option<&str>, schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let found = name.and_then(|name| self.by_name.find(name));
        let choices = match found {
            Some(choices) => choices,
            None if self.is_strict => return None,
            None => &self.default,
        };
        choices.pick(schemes)
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: RustlsHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().map(|name| name.trim_end_matches('.').to_ascii_lowercase());
        self.find(name.as_deref(), hello.signature_schemes())
    }
}

/// The TLS settings for the connections of a virtual server.
#[derive(Debug)]
pub struct Acceptor {
    default: Offer,
    by_name: Names<Offer>,
    /// The challenges that handshakes answer; `None`: none.
    challenges: Option<Arc<Challenges>>,
}

/// Settings for clients, with their certificates.
#[derive(Debug, Clone)]
pub struct Offer {
    /// The rustls configuration from [`server_config`] for these certificates.
    pub config: Arc<ServerConfig>,
    /// The certificates: all of a virtual server, or some of them.
    pub certificates: Arc<Certificates>,
}

impl Offer {
    /// The same settings and certificates, with this kind of session resumption.
    pub fn with_sessions(&self, sessions: &Sessions) -> Self {
        let config = with_sessions(&self.config, sessions);
        Self { config, certificates: Arc::clone(&self.certificates) }
    }
}

impl Acceptor {
    /// An acceptor with the same settings for all clients.
    pub fn new(default: Offer) -> Self {
        Self { default, by_name: Names::new(), challenges: None }
    }

    /// Makes handshakes also answer these challenges.
    pub fn answer(&mut self, challenges: &Arc<Challenges>) {
        self.challenges = Some(Arc::clone(challenges));
    }

    /// Adds settings for clients that request this name.
    pub fn add(&mut self, name: &str, offer: &Offer) {
        *self.by_name.entry(name, || offer.clone()) = offer.clone();
    }

    /// Selects the settings for a client with this ClientHello. An error is the alert that refuses the client.
    pub fn choose(&self, hello: &ClientHello) -> Result<Arc<ServerConfig>, Alert> {
        // A client without the newer extensions would get the alert handshake_failure.
        if hello.is_old {
            return Err(Alert::ProtocolVersion);
        }
        let challenge = self.challenges.as_ref().and_then(|it| it.handshake(hello));
        if let Some(config) = challenge {
            return Ok(config);
        }
        let offer = self.of(&hello.server_name);
        // Without a certificate, rustls would send the alert access_denied, and for an invalid name illegal_parameter.
        let is_known =
            hello.name_form != NameForm::Odd && offer.certificates.are_for(&hello.server_name);
        if is_known { Ok(Arc::clone(&offer.config)) } else { Err(Alert::UnrecognizedName) }
    }

    /// The certificate for a client that supports all signature algorithms and requests this name, which is in lower case
    /// (empty: without SNI); `None`: the client is refused.
    pub fn certificate_for(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let algorithms = rustls::crypto::aws_lc_rs::default_provider();
        let schemes = algorithms.signature_verification_algorithms.supported_schemes();
        let asked = (!name.is_empty()).then_some(name);
        self.of(name).certificates.find(asked, &schemes)
    }

    /// Whether some names have their own settings.
    pub fn has_names(&self) -> bool {
        !self.by_name.is_empty()
    }

    /// Whether two names, which are in lower case, have the same settings.
    pub fn is_same(&self, one: &str, other: &str) -> bool {
        Arc::ptr_eq(&self.of(one).config, &self.of(other).config)
    }

    fn of(&self, name: &str) -> &Offer {
        self.by_name.find(name).unwrap_or(&self.default)
    }
}

/// Creates the rustls configuration for these settings. It has no session resumption.
pub fn server_config(
    settings: &Settings,
    certificates: Arc<Certificates>,
) -> Result<Arc<ServerConfig>, SettingsError> {
    let provider = Arc::new(CryptoProvider {
        cipher_suites: settings.suites.clone(),
        kx_groups: settings.groups.clone(),
        ..aws_lc_rs::default_provider()
    });
    let all: [(Version, &'static SupportedProtocolVersion); 2] =
        [(Version::Tls13, &version::TLS13), (Version::Tls12, &version::TLS12)];
    let range = settings.version_min..=settings.version_max;
    let versions: Vec<_> =
        all.iter().filter(|(it, _)| range.contains(it)).map(|(_, it)| *it).collect();
    let failed = |error: rustls::Error| SettingsError(error.to_string());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions)
        .map_err(failed)?;
    let builder = match &settings.client_certificates {
        ClientCertificates::Off => builder.with_no_client_auth(),
        ClientCertificates::Request(trust) | ClientCertificates::Require(trust) => {
            let is_required =
                matches!(settings.client_certificates, ClientCertificates::Require(_));
            builder.with_client_cert_verifier(trust.verifier(is_required, provider)?)
        }
    };
    let mut config = builder.with_cert_resolver(certificates);
    config.alpn_protocols.clone_from(&settings.alpn);
    // A connection's session encrypts and decrypts its records itself.
    config.enable_secret_extraction = true;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.ticketer = Arc::new(NoTickets);
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// Creates the same configuration with this kind of session resumption.
pub fn with_sessions(config: &ServerConfig, sessions: &Sessions) -> Arc<ServerConfig> {
    let mut config = config.clone();
    match sessions {
        Sessions::Off => {}
        Sessions::Tickets(keys) => config.ticketer = Arc::clone(keys) as _,
        Sessions::Stateful { cache, early_data } => {
            config.session_storage = Arc::clone(cache) as _;
            if *early_data {
                config.max_early_data_size = EARLY_DATA_BYTES_MAX;
                // Otherwise, responses to early requests would wait for the end of the handshake.
                config.send_half_rtt_data = true;
            }
        }
    }
    if !matches!(sessions, Sessions::Off) {
        config.send_tls13_tickets = TICKETS;
    }
    Arc::new(config)
}

impl Trust {
    fn verifier(
        &self,
        is_required: bool,
        provider: Arc<CryptoProvider>,
    ) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, SettingsError> {
        let mut roots = RootCertStore::empty();
        for authority in &self.authorities {
            roots.add(authority.clone()).map_err(|error| SettingsError(error.to_string()))?;
        }
        let mut builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .with_crls(self.revocations.iter().cloned());
        if !is_required {
            builder = builder.allow_unauthenticated();
        }
        // A revocation list applies only to certificates of its issuer, so certificates without a list are accepted.
        builder
            .allow_unknown_revocation_status()
            .enforce_revocation_expiration()
            .build()
            .map_err(|error| SettingsError(error.to_string()))
    }
}

/// Disables tickets.
#[derive(Debug)]
struct NoTickets;

impl ProducesTickets for NoTickets {
    fn enabled(&self) -> bool {
        false
    }
    fn lifetime(&self) -> u32 {
        0
    }
    fn encrypt(&self, _plain: &[u8]) -> Option<Vec<u8>> {
        None
    }
    fn decrypt(&self, _cipher: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

/// The registered name of a cipher suite.
pub fn suite_name(suite: &SupportedCipherSuite) -> &'static str {
    let known = SUITES.iter().find(|(_, _, known)| known.suite() == suite.suite());
    known.map_or("", |(_, name, _)| *name)
}

//! A certificate with its chain and its key, which are read and validated once, when a configuration is loaded.

use std::fmt;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys, SignatureAlgorithm};
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, KeyUsage, anchor_from_trusted_cert};
use x509_parser::prelude::{FromDer, GeneralName, ParsedExtension, X509Certificate};

use crate::client_hello::canonical_name;
use crate::ocsp::Staple;

/// Maximum number of certificates in a chain.
pub const CHAIN_LENGTH_MAX: usize = 16;

/// The access method for the issuer's certificate (RFC 5280 section 4.2.2.1).
const CA_ISSUERS: &str = "1.3.6.1.5.5.7.48.2";

/// A certificate, its chain and its key.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The certificate and key for handshakes.
    pub certified: Arc<CertifiedKey>,
    /// The current OCSP response, which is replaced over time; `None`: `certified` contains the response from a file, if
    /// any.
    pub staple: Option<Arc<Staple>>,
    /// Whether the OCSP response is fetched from the authority.
    pub fetches_ocsp: bool,
    /// The names in the certificate, in lower case. Wildcards start with `*.`.
    pub names: Vec<String>,
    /// The signature algorithm.
    pub algorithm: SignatureAlgorithm,
    /// The subject as text.
    pub subject: String,
    /// The earliest end of validity in the chain, in seconds since 1970.
    pub not_after_unix_s: i64,
    /// The latest start of validity in the chain, in seconds since 1970.
    pub not_before_unix_s: i64,
    /// Unusual properties.
    pub oddities: Vec<Oddity>,
}

/// A property of a usable certificate that clients may refuse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Oddity {
    /// The certificate at this index of the chain was not issued by the next one.
    ChainBroken {
        /// The index, from 0.
        place: usize,
    },
    /// The signatures of the chain cannot be verified from the certificate to the last one; the value is the error.
    ChainUnverified(String),
    /// The certificate contains no host name. Clients check only subjectAltName.
    NoNames,
}

impl fmt::Display for Oddity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ChainBroken { place } => {
                write!(
                    f,
                    "certificate {} of the chain is not issued by the one after it",
                    place + 1
                )
            }
            Self::ChainUnverified(why) => write!(f, "the chain does not verify: {why}"),
            Self::NoNames => f.write_str("the certificate names no host (subjectAltName)"),
        }
    }
}

/// The reason why a certificate or a key cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdentityError {
    /// The file is not PEM.
    NotPem(String),
    /// The file contains no certificate.
    NoCertificate,
    /// The file contains no revocation list. For PEM: the label of its contents.
    NoRevocations(Option<String>),
    /// The file contains too many certificates.
    ChainTooLong,
    /// The certificate at this index cannot be parsed.
    BadCertificate {
        /// The index, from 0.
        place: usize,
        /// The mistake.
        why: String,
    },
    /// The file contains no private key.
    NoKey,
    /// The private key is encrypted.
    KeyEncrypted,
    /// The private key cannot be used.
    BadKey(String),
    /// The private key does not belong to the certificate.
    KeyOfAnother,
}

impl IdentityError {
    /// Whether the key is invalid or does not belong to the certificate.
    pub fn is_of_key(&self) -> bool {
        matches!(self, Self::NoKey | Self::KeyEncrypted | Self::BadKey(_) | Self::KeyOfAnother)
    }
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPem(why) => write!(f, "not PEM: {why}"),
            Self::NoCertificate => f.write_str("no certificate in it"),
            Self::NoRevocations(Some(kind)) => {
                write!(
                    f,
                    "no list of revoked certificates in it: it is PEM of {kind}, not of X509 CRL"
                )
            }
            Self::NoRevocations(None) => {
                f.write_str("no list of revoked certificates, neither in PEM (X509 CRL) nor in DER")
            }
            Self::ChainTooLong => write!(f, "more than {CHAIN_LENGTH_MAX} certificates in it"),
            Self::BadCertificate { place, why } => {
                write!(f, "certificate {} cannot be read: {why}", place + 1)
            }
            Self::NoKey => f.write_str("no private key in it"),
            Self::KeyEncrypted => f.write_str("the private key is encrypted"),
            Self::BadKey(why) => write!(f, "the private key cannot be used: {why}"),
            Self::KeyOfAnother => f.write_str("the private key is not the certificate's"),
        }
    }
}

impl std::error::Error for IdentityError {}

/// Reads the certificates of a PEM file, in order.
pub fn read_certificates(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let found = found.map_err(|error| IdentityError::NotPem(error.to_string()))?;
    match found.len() {
        0 => Err(IdentityError::NoCertificate),
        1..=CHAIN_LENGTH_MAX => Ok(found),
        _ => Err(IdentityError::ChainTooLong),
    }
}

/// Reads the authorities of a PEM file.
pub fn read_authorities(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let found = found.map_err(|error| IdentityError::NotPem(error.to_string()))?;
    if found.is_empty() { Err(IdentityError::NoCertificate) } else { Ok(found) }
}

/// Reads the first private key of a PEM file.
pub fn read_key(text: &[u8]) -> Result<PrivateKeyDer<'static>, IdentityError> {
    const ENCRYPTED: &[u8] = b"ENCRYPTED";
    match PrivateKeyDer::from_pem_slice(text) {
        Ok(key) => Ok(key),
        Err(_) if text.windows(ENCRYPTED.len()).any(|window| window == ENCRYPTED) => {
            Err(IdentityError::KeyEncrypted)
        }
        Err(pem::Error::NoItemsFound) => Err(IdentityError::NoKey),
        Err(error) => Err(IdentityError::NotPem(error.to_string())),
    }
}

impl Identity {
    /// Combines a chain, which starts with the certificate, with its key.
    pub fn new(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, IdentityError> {
        let key =
            any_supported_type(&key).map_err(|error| IdentityError::BadKey(error.to_string()))?;
        let facts = Facts::read(&chain)?;
        let algorithm = key.algorithm();
        let certified = CertifiedKey::new(chain, key);
        match certified.keys_match() {
            Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
            Err(_) => return Err(IdentityError::KeyOfAnother),
        }
        Ok(Self {
            certified: Arc::new(certified),
            staple: None,
            fetches_ocsp: false,
            names: facts.names,
            algorithm,
            subject: facts.subject,
            not_after_unix_s: facts.not_after_unix_s,
            not_before_unix_s: facts.not_before_unix_s,
            oddities: facts.oddities,
        })
    }
}

/// The properties of a chain.
struct Facts {
    names: Vec<String>,
    subject: String,
    not_after_unix_s: i64,
    not_before_unix_s: i64,
    oddities: Vec<Oddity>,
}

impl Facts {
    fn read(chain: &[CertificateDer<'static>]) -> Result<Self, IdentityError> {
        let mut parsed = Vec::with_capacity(chain.len());
        for (place, der) in chain.iter().enumerate() {
            let bad = |why: String| IdentityError::BadCertificate { place, why };
            let (rest, certificate) =
                X509Certificate::from_der(der).map_err(|error| bad(error.to_string()))?;
            if !rest.is_empty() {
                return Err(bad("bytes behind its end".into()));
            }
            parsed.push(certificate);
        }
        let first = parsed.first().ok_or(IdentityError::NoCertificate)?;
        let names = names(first);
        let mut oddities = Vec::new();
        if names.is_empty() {
            oddities.push(Oddity::NoNames);
        }
        let broken = parsed.windows(2).position(|two| two[0].issuer() != two[1].subject());
        oddities.extend(broken.map(|place| Oddity::ChainBroken { place }));
        let valid = parsed.iter().map(|certificate| certificate.validity());
        let not_before = valid.clone().map(|it| it.not_before.timestamp()).max().unwrap_or(0);
        let not_after = valid.map(|it| it.not_after.timestamp()).min().unwrap_or(0);
        if broken.is_none() {
            oddities.extend(unverified(chain, not_before));
        }
        Ok(Self {
            names,
            subject: first.subject().to_string(),
            not_after_unix_s: not_after,
            not_before_unix_s: not_before,
            oddities,
        })
    }
}

/// The DNS names of subjectAltName.
fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(extension)) = certificate.subject_alternative_name() else {
        return Vec::new();
    };
    let names = extension.value.general_names.iter();
    names
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => match name.strip_prefix("*.") {
                Some(parent) => canonical_name(parent.as_bytes()).map(|name| format!("*.{name}")),
                None => canonical_name(name.as_bytes()),
            },
            _ => None,
        })
        .collect()
}

/// Verifies the signatures from the first certificate to the last, at a time when all are valid. Returns the error.
fn unverified(chain: &[CertificateDer<'static>], at_unix_s: i64) -> Option<Oddity> {
    let [first, between @ .., last] = chain else {
        return None;
    };
    let failed = |error: webpki::Error| Some(Oddity::ChainUnverified(error.to_string()));
    let leaf = match EndEntityCert::try_from(first) {
        Ok(leaf) => leaf,
        Err(error) => return failed(error),
    };
    let anchor = match anchor_from_trusted_cert(last) {
        Ok(anchor) => anchor,
        Err(error) => return failed(error),
    };
    let at = UnixTime::since_unix_epoch(std::time::Duration::from_secs(at_unix_s.max(0) as u64));
    let usage = KeyUsage::server_auth();
    let anchors = [anchor];
    let verified =
        leaf.verify_for_usage(ALL_VERIFICATION_ALGS, &anchors, between, at, usage, None, None);
    verified.err().and_then(failed)
}

/// Maximum length of a PEM label in an error message.
const LABEL_BYTES_MAX: usize = 40;

/// Reads revocation lists from a file in PEM or DER.
pub fn read_revocations(
    bytes: &[u8],
) -> Result<Vec<CertificateRevocationListDer<'static>>, IdentityError> {
    let lists: Result<Vec<_>, _> = CertificateRevocationListDer::pem_slice_iter(bytes).collect();
    let lists = lists.map_err(|error| IdentityError::NotPem(error.to_string()))?;
    if !lists.is_empty() {
        return Ok(lists);
    }
    match x509_parser::parse_x509_crl(bytes) {
        Ok(_) => Ok(vec![CertificateRevocationListDer::from(bytes.to_vec())]),
        Err(_) => Err(IdentityError::NoRevocations(first_label(bytes))),
    }
}

/// The label of the first section in a PEM file.
fn first_label(text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    let label = text.lines().find_map(|line| line.strip_prefix("-----BEGIN "))?;
    let label = label.trim_end().strip_suffix("-----")?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b' ';
    (label.len() <= LABEL_BYTES_MAX && label.bytes().all(is_plain)).then(|| label.to_owned())
}

/// The issuer of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issuer {
    /// The distinguished name in DER.
    pub name: Vec<u8>,
    /// The distinguished name as text.
    pub text: String,
    /// Whether the certificate is self-issued: issuer and subject are the same.
    pub is_itself: bool,
    /// Whether the certificate contains a URL of its issuer's certificate, as certificates of public authorities do.
    pub is_published: bool,
}

impl Issuer {
    /// Reads the issuer of a certificate; `None`: the certificate cannot be parsed.
    pub fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
        let (issuer, subject) = (certificate.issuer(), certificate.subject());
        let is_published = certificate.extensions().iter().any(|extension| {
            let ParsedExtension::AuthorityInfoAccess(access) = extension.parsed_extension() else {
                return false;
            };
            access.accessdescs.iter().any(|it| it.access_method.to_id_string() == CA_ISSUERS)
        });
        Some(Self {
            name: issuer.as_raw().to_vec(),
            text: issuer.to_string(),
            is_itself: issuer.as_raw() == subject.as_raw(),
            is_published,
        })
    }

    /// The subject of a certificate, in DER.
    pub fn subject_of(certificate: &CertificateDer<'_>) -> Option<Vec<u8>> {
        let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
        Some(certificate.subject().as_raw().to_vec())
    }
}

/// The subject of a certificate, as text (the reverse order of RFC 4514, as in OpenSSL).
pub fn subject_of(certificate: &CertificateDer<'_>) -> Option<String> {
    X509Certificate::from_der(certificate).ok().map(|(_, it)| it.subject().to_string())
}

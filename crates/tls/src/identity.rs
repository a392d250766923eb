//! A certificate with its chain and its key, which are read and validated once, when a configuration is loaded.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys, SignatureAlgorithm};
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, KeyUsage, anchor_from_trusted_cert};
use x509_parser::prelude::{FromDer, GeneralName, ParsedExtension, X509Certificate};

use crate::client_hello::canonical_name;
use crate::ocsp::Staple;
use crate::pem::{Block, Label, Mistake, PemError, blocks};
use crate::words::in_words;

/// Maximum number of certificates in a chain.
pub const CHAIN_LENGTH_MAX: usize = 16;

/// The access method for the issuer's certificate (RFC 5280 section 4.2.2.1).
const CA_ISSUERS: &str = "1.3.6.1.5.5.7.48.2";

/// The issuing distribution point of a revocation list (RFC 5280 section 5.2.5).
const DISTRIBUTION_POINT: &str = "2.5.29.28";

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
    /// A line of the file is neither part of a block, nor white space, nor a comment; or a block cannot be used.
    Pem(PemError),
    /// The file contains no certificate.
    NoCertificate,
    /// The file contains no revocation list.
    NoRevocations,
    /// The file is a revocation list in DER that cannot be used.
    BadRevocations(String),
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
    /// The private key cannot be used.
    BadKey(String),
    /// The private key does not belong to the certificate.
    KeyOfAnother,
}

impl IdentityError {
    /// Whether the key is invalid or does not belong to the certificate.
    pub fn is_of_key(&self) -> bool {
        matches!(self, Self::NoKey | Self::BadKey(_) | Self::KeyOfAnother)
    }
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pem(error) => error.fmt(f),
            Self::NoCertificate => f.write_str("no certificate in it"),
            Self::NoRevocations => {
                f.write_str("no list of revoked certificates, neither in PEM (X509 CRL) nor in DER")
            }
            Self::BadRevocations(why) => f.write_str(why),
            Self::ChainTooLong => write!(f, "more than {CHAIN_LENGTH_MAX} certificates in it"),
            Self::BadCertificate { place, why } => {
                write!(f, "certificate {}: {why}", place + 1)
            }
            Self::NoKey => f.write_str("no private key in it"),
            Self::BadKey(why) => write!(f, "the private key cannot be used: {why}"),
            Self::KeyOfAnother => f.write_str("the private key is not the certificate's"),
        }
    }
}

impl std::error::Error for IdentityError {}

/// Reads the certificates of a PEM file, in order. The file may contain their key, too.
pub fn read_certificates(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let is_beside = |label| matches!(label, Label::Key(_) | Label::Parameters);
    let found = read(text, (Label::Certificate, is_beside), |block| {
        parsed(&block.content)?;
        Ok(CertificateDer::from(block.content))
    })?;
    match found.len() {
        0 => Err(IdentityError::NoCertificate),
        1..=CHAIN_LENGTH_MAX => Ok(found),
        _ => Err(IdentityError::ChainTooLong),
    }
}

/// Reads the authorities of a PEM file.
pub fn read_authorities(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let found = read(text, (Label::Certificate, |_| false), |block| {
        parsed(&block.content)?;
        let authority = CertificateDer::from(block.content);
        match anchor_from_trusted_cert(&authority) {
            Ok(_) => Ok(authority.into_owned()),
            Err(error) => Err(format!("the certificate is no authority: {}", in_words(&error))),
        }
    })?;
    if found.is_empty() { Err(IdentityError::NoCertificate) } else { Ok(found) }
}

/// The lines and subjects of the certificates among authorities that are none: they can issue nothing, and have an issuer,
/// so no chain ends with them. A certificate that issued itself stands for itself.
pub fn leaves(text: &[u8]) -> Vec<(usize, String)> {
    let blocks = blocks(text).unwrap_or_default();
    let leaf = |block: &Block| {
        let certificate = parsed(&block.content).ok()?;
        let is_own = certificate.subject() == certificate.issuer();
        let is_leaf = !certificate.is_ca() && !is_own;
        is_leaf.then(|| (block.line, certificate.subject().to_string()))
    };
    blocks.iter().filter_map(leaf).collect()
}

/// Reads the private key of a PEM file. The file may contain its certificate, too.
pub fn read_key(text: &[u8]) -> Result<PrivateKeyDer<'static>, IdentityError> {
    let mut key = None;
    for block in blocks(text).map_err(IdentityError::Pem)? {
        let line = block.line;
        let refused = |what| Err(IdentityError::Pem(PemError { line, what }));
        match block.label {
            Label::Certificate | Label::Parameters => continue,
            Label::RevocationList => {
                return refused(Mistake::Misplaced(block.label.name(), "a private key"));
            }
            Label::Key(_) if key.is_some() => return refused(Mistake::SecondKey),
            Label::Key(kind) => key = PrivateKeyDer::from_pem(kind, block.content),
        }
    }
    key.ok_or(IdentityError::NoKey)
}

/// The blocks with this label, made into what they are; blocks for which the function is true may be between them.
fn read<T>(
    text: &[u8],
    (wanted, is_beside): (Label, impl Fn(Label) -> bool),
    make: impl Fn(Block) -> Result<T, String>,
) -> Result<Vec<T>, IdentityError> {
    let mut found = Vec::new();
    for block in blocks(text).map_err(IdentityError::Pem)? {
        let (label, line) = (block.label, block.line);
        let failed = |what| IdentityError::Pem(PemError { line, what });
        if label == wanted {
            found.push(make(block).map_err(|why| failed(Mistake::Content(why)))?);
        } else if !is_beside(label) {
            return Err(failed(Mistake::Misplaced(label.name(), wanted.name())));
        }
    }
    Ok(found)
}

/// A certificate, or the reason why it cannot be read.
fn parsed(der: &[u8]) -> Result<X509Certificate<'_>, String> {
    match X509Certificate::from_der(der) {
        Ok(([], certificate)) => Ok(certificate),
        Ok(_) => Err("there are bytes behind the end of the certificate".into()),
        Err(x509_parser::nom::Err::Error(error) | x509_parser::nom::Err::Failure(error)) => {
            Err(format!("the certificate cannot be read: {error}"))
        }
        Err(x509_parser::nom::Err::Incomplete(_)) => Err("the certificate is cut".into()),
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
        let mut certificates = Vec::with_capacity(chain.len());
        for (place, der) in chain.iter().enumerate() {
            let bad = |why: String| IdentityError::BadCertificate { place, why };
            certificates.push(parsed(der).map_err(bad)?);
        }
        let first = certificates.first().ok_or(IdentityError::NoCertificate)?;
        let names = names(first);
        let mut oddities = Vec::new();
        if names.is_empty() {
            oddities.push(Oddity::NoNames);
        }
        let broken = certificates.windows(2).position(|two| two[0].issuer() != two[1].subject());
        oddities.extend(broken.map(|place| Oddity::ChainBroken { place }));
        let valid = certificates.iter().map(|certificate| certificate.validity());
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
    let failed = |error: webpki::Error| Some(Oddity::ChainUnverified(in_words(&error)));
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

/// Reads revocation lists from a file in PEM or DER.
pub fn read_revocations(
    bytes: &[u8],
) -> Result<Vec<CertificateRevocationListDer<'static>>, IdentityError> {
    // DER starts with the tag of SEQUENCE, the digit 0, and a length that is no text.
    if matches!(bytes, [0x30, 0x80..=0xff, ..]) {
        usable_list(bytes).map_err(IdentityError::BadRevocations)?;
        return Ok(vec![CertificateRevocationListDer::from(bytes.to_vec())]);
    }
    let lists = read(bytes, (Label::RevocationList, |_| false), |block| {
        usable_list(&block.content)?;
        Ok(CertificateRevocationListDer::from(block.content))
    })?;
    if lists.is_empty() { Err(IdentityError::NoRevocations) } else { Ok(lists) }
}

/// The newest list of each issuer and scope, in the given order, and the others. Verification uses the first list that it
/// finds for an issuer.
pub fn newest(lists: Vec<CertificateRevocationListDer<'static>>) -> (Lists, Lists) {
    let keys: Vec<_> = lists.iter().map(|list| scope_and_time(list)).collect();
    let mut latest = HashMap::new();
    for (index, (scope, time)) in keys.iter().enumerate() {
        let best = latest.entry(scope).or_insert((*time, index));
        if *time > best.0 {
            *best = (*time, index);
        }
    }
    let used: HashSet<usize> = latest.values().map(|(_, index)| *index).collect();
    let (used, others): (Vec<_>, Vec<_>) =
        lists.into_iter().enumerate().partition(|(index, _)| used.contains(index));
    let plain = |lists: Vec<(usize, _)>| lists.into_iter().map(|(_, list)| list).collect();
    (plain(used), plain(others))
}

/// Revocation lists.
pub type Lists = Vec<CertificateRevocationListDer<'static>>;

/// What a list is about, its issuer and its distribution point, and when it was made.
fn scope_and_time(list: &[u8]) -> ((Vec<u8>, Vec<u8>), i64) {
    let Ok((_, list)) = x509_parser::parse_x509_crl(list) else { return Default::default() };
    let point = list.extensions().iter().find(|it| it.oid.to_id_string() == DISTRIBUTION_POINT);
    let point = point.map_or_else(Vec::new, |it| it.value.to_vec());
    ((list.issuer().as_raw().to_vec(), point), list.last_update().timestamp())
}

/// Whether a revocation list in DER can be used.
fn usable_list(der: &[u8]) -> Result<(), String> {
    match x509_parser::parse_x509_crl(der) {
        Ok(([], _)) => {}
        Ok(_) => return Err("there are bytes behind the end of the revocation list".into()),
        Err(_) => return Err("it is no list of revoked certificates (CRL)".into()),
    }
    match webpki::BorrowedCertRevocationList::from_der(der) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("the revocation list cannot be used: {}", in_words(&error))),
    }
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

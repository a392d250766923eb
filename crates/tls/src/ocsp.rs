//! OCSP (RFC 6960): requests for the status of a certificate, verification of responses, and stapling of valid responses.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwapOption;
use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::sign::CertifiedKey;
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, KeyUsage, anchor_from_trusted_cert};
use x509_parser::prelude::{FromDer, GeneralName, ParsedExtension, X509Certificate};

use crate::der::{self, Der};

/// Maximum size of a response in bytes.
pub const RESPONSE_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of responder certificates that are read from a response.
const RESPONDERS_MAX: usize = 8;
/// Maximum time in seconds by which a responder's clock may be ahead.
const CLOCK_SKEW_S: i64 = 300;
/// Validity in seconds of a response without a time of the next update.
const UNBOUNDED_S: i64 = 3_600;

const ID_PKIX_OCSP_BASIC: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 48, 1, 1];
const ID_KP_OCSP_SIGNING: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 9];
const ID_SHA1: &[u8] = &[0x2b, 14, 3, 2, 26];
/// The access method of OCSP responders, in dotted form as in x509-parser.
const ACCESS_OCSP: &str = "1.3.6.1.5.5.7.48.1";
const TLS_FEATURE: &str = "1.3.6.1.5.5.7.1.24";

/// The URL of the authority's OCSP responder in a certificate.
pub fn responder_url(certificate: &CertificateDer<'_>) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    certificate.extensions().iter().find_map(|extension| {
        let ParsedExtension::AuthorityInfoAccess(access) = extension.parsed_extension() else {
            return None;
        };
        access.accessdescs.iter().find_map(|it| match &it.access_location {
            GeneralName::URI(url) if it.access_method.to_id_string() == ACCESS_OCSP => {
                Some((*url).to_owned())
            }
            _ => None,
        })
    })
}

/// Whether a certificate requires a stapled response (RFC 7633). Clients that support this refuse the certificate without
/// one.
pub fn must_be_stapled(certificate: &CertificateDer<'_>) -> bool {
    const STATUS_REQUEST: &[u8] = &[5];
    let Ok((_, certificate)) = X509Certificate::from_der(certificate) else {
        return false;
    };
    let feature = certificate.extensions().iter().find(|it| it.oid.to_id_string() == TLS_FEATURE);
    let mut numbers = feature.and_then(|it| Der::new(it.value).sequence());
    std::iter::from_fn(|| numbers.as_mut()?.take(der::INTEGER)).any(|it| it == STATUS_REQUEST)
}

/// The identification of a certificate in OCSP: CertID of RFC 6960 section 4.1.1, with SHA-1, which all responders support.
struct CertId {
    issuer_name: Vec<u8>,
    issuer_key: Vec<u8>,
    serial: Vec<u8>,
}

impl CertId {
    fn of(certificate: &CertificateDer<'_>, issuer: &CertificateDer<'_>) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
        let (_, issuer) = X509Certificate::from_der(issuer).ok()?;
        let hash = |bytes| digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes).as_ref().to_vec();
        Some(Self {
            issuer_name: hash(certificate.issuer().as_raw()),
            issuer_key: hash(&issuer.public_key().subject_public_key.data),
            serial: certificate.raw_serial().to_vec(),
        })
    }

    fn is_at(&self, mut at: Der<'_>) -> Option<bool> {
        let algorithm = at.sequence()?.take(der::OBJECT_IDENTIFIER)?;
        let (name, key) = (at.take(der::OCTET_STRING)?, at.take(der::OCTET_STRING)?);
        let serial = at.take(der::INTEGER)?;
        let is_same = (name, key, serial) == (&self.issuer_name, &self.issuer_key, &self.serial);
        Some(algorithm == ID_SHA1 && is_same)
    }
}

/// Creates the request for the status of a certificate that `issuer` has signed.
pub fn request(certificate: &CertificateDer<'_>, issuer: &CertificateDer<'_>) -> Option<Vec<u8>> {
    let id = CertId::of(certificate, issuer)?;
    let sequence = |parts: &[&[u8]]| der::value(der::SEQUENCE, parts);
    let oid = der::value(der::OBJECT_IDENTIFIER, &[ID_SHA1]);
    let cert_id = sequence(&[
        &sequence(&[&oid, &der::value(der::NULL, &[])]),
        &der::value(der::OCTET_STRING, &[&id.issuer_name]),
        &der::value(der::OCTET_STRING, &[&id.issuer_key]),
        &der::value(der::INTEGER, &[&id.serial]),
    ]);
    let list = sequence(&[&sequence(&[&cert_id])]);
    Some(sequence(&[&sequence(&[&list])]))
}

/// The reason why a response cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OcspError {
    /// The response is malformed.
    Malformed,
    /// The responder refused the request, with this status.
    Refused(u8),
    /// The response is about other certificates.
    OfAnother,
    /// The response is not signed by the issuer or by a delegated responder.
    Unsigned,
    /// The response is not valid yet, or has expired.
    OutOfDate,
    /// The certificate is revoked.
    Revoked,
    /// The authority does not know the certificate.
    Unknown,
}

impl fmt::Display for OcspError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "it is no OCSP response",
            // RFC 6960 section 4.2.1.
            Self::Refused(1) => "the responder takes the request for malformed",
            Self::Refused(2) => "the responder has an internal error",
            Self::Refused(3) => "the responder asks for a later try",
            Self::Refused(number) => return write!(f, "the responder refuses (status {number})"),
            Self::OfAnother => "it is about another certificate",
            Self::Unsigned => {
                "it is not signed by the certificate's issuer or a delegated responder"
            }
            Self::OutOfDate => "it is out of date",
            Self::Revoked => "the certificate is revoked",
            Self::Unknown => "the authority does not know the certificate",
        })
    }
}

impl std::error::Error for OcspError {}

/// The validity of a response, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// The time for which the status is stated.
    pub from_unix_s: i64,
    /// The time at which the response expires.
    pub until_unix_s: i64,
}

/// Verifies that a response states the status "good" for a certificate that `issuer` has signed. Returns its validity.
pub fn verify(
    response: &[u8],
    certificate: &CertificateDer<'_>,
    issuer: &CertificateDer<'_>,
    now_unix_s: i64,
) -> Result<Validity, OcspError> {
    let id = CertId::of(certificate, issuer).ok_or(OcspError::Malformed)?;
    let basic = basic_response(response)?;
    let parts = Basic::read(basic).ok_or(OcspError::Malformed)?;
    if !parts.is_signed_for(issuer, now_unix_s) {
        return Err(OcspError::Unsigned);
    }
    single(parts.responses, |at| id.is_at(at))?.judged(now_unix_s)
}

/// Like [`verify`], for a certificate whose issuer is not known: reads the status and its time, but verifies neither
/// signature nor key.
pub fn read(
    response: &[u8],
    certificate: &CertificateDer<'_>,
    now_unix_s: i64,
) -> Result<Validity, OcspError> {
    found(response, certificate)?.judged(now_unix_s)
}

/// The time for which a response about this certificate is valid, whatever its status and its signature.
pub fn period(response: &[u8], certificate: &CertificateDer<'_>) -> Option<Validity> {
    let Single { from_unix_s, until_unix_s, .. } = found(response, certificate).ok()?;
    Some(Validity { from_unix_s, until_unix_s: until_unix_s? })
}

/// The status of a certificate whose issuer is not known.
fn found<'r>(
    response: &'r [u8],
    certificate: &CertificateDer<'_>,
) -> Result<Single<'r>, OcspError> {
    let (_, parsed) = X509Certificate::from_der(certificate).map_err(|_| OcspError::Malformed)?;
    let name = digest(&SHA1_FOR_LEGACY_USE_ONLY, parsed.issuer().as_raw());
    let serial = parsed.raw_serial();
    let is_meant = |mut at: Der<'_>| {
        at.sequence()?;
        let (issuer_name, _) = (at.take(der::OCTET_STRING)?, at.take(der::OCTET_STRING)?);
        Some(issuer_name == name.as_ref() && at.take(der::INTEGER)? == serial)
    };
    let parts = Basic::read(basic_response(response)?).ok_or(OcspError::Malformed)?;
    single(parts.responses, is_meant)
}

/// The status of the certificate for which `is_meant` returns true.
fn single<'r>(
    mut responses: Der<'r>,
    is_meant: impl Fn(Der<'r>) -> Option<bool>,
) -> Result<Single<'r>, OcspError> {
    while !responses.is_empty() {
        let single = Single::read(&mut responses).ok_or(OcspError::Malformed)?;
        if is_meant(single.id).ok_or(OcspError::Malformed)? {
            return Ok(single);
        }
    }
    Err(OcspError::OfAnother)
}

/// The BasicOCSPResponse in a successful response.
fn basic_response(response: &[u8]) -> Result<&[u8], OcspError> {
    let malformed = OcspError::Malformed;
    let mut all = Der::new(response);
    let mut parts = all.sequence().filter(|_| all.is_empty()).ok_or(malformed)?;
    match parts.take(der::ENUMERATED).ok_or(malformed)? {
        [0] => {}
        &[number] => return Err(OcspError::Refused(number)),
        _ => return Err(malformed),
    }
    let bytes = parts.take(der::tagged(0)).ok_or(malformed)?;
    let mut bytes = Der::new(bytes).sequence().ok_or(malformed)?;
    if bytes.take(der::OBJECT_IDENTIFIER) != Some(ID_PKIX_OCSP_BASIC) {
        return Err(malformed);
    }
    bytes.take(der::OCTET_STRING).ok_or(malformed)
}

/// BasicOCSPResponse (RFC 6960 section 4.2.1).
struct Basic<'a> {
    /// The signed part.
    signed: &'a [u8],
    /// The signature's AlgorithmIdentifier, without its tag and length.
    algorithm: &'a [u8],
    signature: &'a [u8],
    /// The certificates of responders.
    certificates: Vec<CertificateDer<'a>>,
    responses: Der<'a>,
}

impl<'a> Basic<'a> {
    fn read(basic: &'a [u8]) -> Option<Self> {
        let mut all = Der::new(basic);
        let mut parts = all.sequence().filter(|_| all.is_empty())?;
        let signed = parts.any().filter(|it| it.tag == der::SEQUENCE)?;
        let algorithm = parts.take(der::SEQUENCE)?;
        let (0, signature) = parts.take(der::BIT_STRING)?.split_first()? else { return None };
        let mut certificates = Vec::new();
        if let Some(list) = parts.optional(der::tagged(0)) {
            let mut all = Der::new(list);
            let mut list = all.sequence().filter(|_| all.is_empty())?;
            while !list.is_empty() && certificates.len() < RESPONDERS_MAX {
                certificates.push(CertificateDer::from(list.any()?.whole));
            }
        }
        if !parts.is_empty() {
            return None;
        }
        let mut data = Der::new(signed.content);
        data.optional(der::tagged(0)); // version
        data.any()?; // responder ID: not needed, because signatures are verified with the key
        data.take(der::GENERALIZED_TIME)?; // producedAt
        let responses = data.sequence()?;
        Some(Self { signed: signed.whole, algorithm, signature, certificates, responses })
    }

    /// Whether the response is signed by the issuer, or by a responder with a certificate of the issuer for this purpose
    /// (RFC 6960 section 4.2.2.2).
    fn is_signed_for(&self, issuer: &CertificateDer<'_>, now_unix_s: i64) -> bool {
        if self.is_signed_by(issuer) {
            return true;
        }
        let Ok(anchor) = anchor_from_trusted_cert(issuer) else {
            return false;
        };
        let anchors = [anchor];
        let now = UnixTime::since_unix_epoch(Duration::from_secs(now_unix_s.max(0) as u64));
        self.certificates.iter().any(|certificate| {
            let usage = KeyUsage::required(ID_KP_OCSP_SIGNING);
            let is_appointed = EndEntityCert::try_from(certificate).is_ok_and(|responder| {
                responder
                    .verify_for_usage(ALL_VERIFICATION_ALGS, &anchors, &[], now, usage, None, None)
                    .is_ok()
            });
            is_appointed && self.is_signed_by(certificate)
        })
    }

    fn is_signed_by(&self, certificate: &CertificateDer<'_>) -> bool {
        let Ok(signer) = EndEntityCert::try_from(certificate) else {
            return false;
        };
        // Several algorithms have the same identifier and support different types of keys.
        ALL_VERIFICATION_ALGS
            .iter()
            .filter(|algorithm| algorithm.signature_alg_id().as_ref() == self.algorithm)
            .any(|algorithm| {
                signer.verify_signature(*algorithm, self.signed, self.signature).is_ok()
            })
    }
}

/// The status of one certificate (SingleResponse).
struct Single<'a> {
    id: Der<'a>,
    status: Status,
    from_unix_s: i64,
    until_unix_s: Option<i64>,
}

enum Status {
    Good,
    Revoked,
    Unknown,
}

impl<'a> Single<'a> {
    fn read(responses: &mut Der<'a>) -> Option<Self> {
        let mut parts = responses.sequence()?;
        let id = parts.sequence()?;
        let status = match parts.any()?.tag {
            0x80 => Status::Good,
            0xa1 => Status::Revoked,
            0x82 => Status::Unknown,
            _ => return None,
        };
        let from_unix_s = der::unix_s(parts.take(der::GENERALIZED_TIME)?)?;
        let until_unix_s = match parts.optional(der::tagged(0)) {
            None => None,
            Some(next) => Some(der::unix_s(Der::new(next).take(der::GENERALIZED_TIME)?)?),
        };
        Some(Self { id, status, from_unix_s, until_unix_s })
    }

    /// The validity, if the status is good now.
    fn judged(&self, now_unix_s: i64) -> Result<Validity, OcspError> {
        let until_unix_s = self.until_unix_s.unwrap_or(now_unix_s + UNBOUNDED_S);
        if self.from_unix_s > now_unix_s + CLOCK_SKEW_S || until_unix_s <= now_unix_s {
            return Err(OcspError::OutOfDate);
        }
        match self.status {
            Status::Good => Ok(Validity { from_unix_s: self.from_unix_s, until_unix_s }),
            Status::Revoked => Err(OcspError::Revoked),
            Status::Unknown => Err(OcspError::Unknown),
        }
    }
}

/// The OCSP response of a certificate, which is replaced while the certificate is in use.
pub struct Staple {
    plain: Arc<CertifiedKey>,
    stapled: ArcSwapOption<StapledCertificate>,
}

struct StapledCertificate {
    certified: Arc<CertifiedKey>,
    until_unix_s: i64,
}

impl Staple {
    /// A certificate without a response.
    pub fn new(plain: &Arc<CertifiedKey>) -> Self {
        Self { plain: Arc::clone(plain), stapled: ArcSwapOption::empty() }
    }

    /// Sets the response that is sent with the certificate until it expires.
    pub fn set(&self, response: &[u8], validity: Validity) {
        let ocsp = Some(response.to_vec());
        let certified = Arc::new(CertifiedKey { ocsp, ..(*self.plain).clone() });
        let until_unix_s = validity.until_unix_s;
        self.stapled.store(Some(Arc::new(StapledCertificate { certified, until_unix_s })));
    }

    /// The time at which the response expires; `None`: there is no response.
    pub fn until_unix_s(&self) -> Option<i64> {
        self.stapled.load().as_ref().map(|it| it.until_unix_s)
    }

    /// The certificate, with the response if it has not expired.
    pub fn certified(&self) -> Arc<CertifiedKey> {
        let stapled = self.stapled.load();
        match &*stapled {
            Some(stapled) if now_unix_s() < stapled.until_unix_s => Arc::clone(&stapled.certified),
            _ => Arc::clone(&self.plain),
        }
    }
}

impl fmt::Debug for Staple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Staple").field("until_unix_s", &self.until_unix_s()).finish()
    }
}

fn now_unix_s() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;

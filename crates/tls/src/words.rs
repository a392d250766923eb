//! Errors of TLS libraries in words, without lists of bytes or names of types.

use rustls::pki_types::UnixTime;
use rustls::{
    AlertDescription, CertRevocationListError, CertificateError, Error, OtherError,
    PeerIncompatible,
};

use crate::der::{self, Der};

const DAY_S: u64 = 24 * 60 * 60;

/// Signature algorithms that old certificates have, by the contents of their identifiers.
const ALGORITHMS: [(&[u8], &str); 6] = [
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 2], "MD2 with RSA"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 4], "MD5 with RSA"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 5], "SHA-1 with RSA"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 14], "SHA-224 with RSA"),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1], "SHA-1 with ECDSA"),
    (&[0x2a, 0x86, 0x48, 0xce, 0x38, 4, 3], "SHA-1 with DSA"),
];

/// Describes the error of a handshake, with a fix if there is one.
pub fn explain(error: &Error) -> String {
    match error {
        Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "it requires a client certificate".into()
        }
        Error::AlertReceived(received) => alert(u8::from(*received)),
        Error::InvalidCertificate(why) => certificate(why),
        Error::InvalidCertRevocationList(why) => {
            format!("the revocation list (CRL) cannot be used: {}", revocations(why))
        }
        Error::NoCertificatesPresented => "it showed no certificate, which is required".into(),
        Error::NoApplicationProtocol => "no common application protocol (ALPN)".into(),
        Error::PeerIncompatible(why) => incompatible(why).into(),
        _ => error.to_string(),
    }
}

/// Describes an alert of the peer.
pub fn alert(number: u8) -> String {
    match alert_name(number) {
        Some(name) => format!("the peer sent the alert {name}"),
        None => format!("the peer sent the alert {number}"),
    }
}

fn alert_name(number: u8) -> Option<&'static str> {
    Some(match number {
        0 => "close_notify",
        10 => "unexpected_message",
        20 => "bad_record_mac",
        22 => "record_overflow",
        40 => "handshake_failure",
        42 => "bad_certificate",
        43 => "unsupported_certificate",
        44 => "certificate_revoked",
        45 => "certificate_expired",
        46 => "certificate_unknown",
        47 => "illegal_parameter",
        48 => "unknown_ca",
        49 => "access_denied",
        50 => "decode_error",
        51 => "decrypt_error",
        70 => "protocol_version",
        71 => "insufficient_security",
        80 => "internal_error",
        86 => "inappropriate_fallback",
        90 => "user_canceled",
        109 => "missing_extension",
        112 => "unrecognized_name",
        113 => "bad_certificate_status_response",
        116 => "certificate_required",
        120 => "no_application_protocol",
        _ => return None,
    })
}

fn certificate(why: &CertificateError) -> String {
    let plain = match why {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "the certificate is not signed by a trusted authority"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the certificate has expired"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the certificate is not valid yet"
        }
        CertificateError::Revoked => "the certificate is revoked",
        CertificateError::ExpiredRevocationList => {
            "the revocation list (CRL) of the certificate's authority has expired; get a new one"
        }
        CertificateError::ExpiredRevocationListContext { time, next_update } => {
            let days = days_between(*next_update, *time);
            return format!(
                "the revocation list (CRL) of the certificate's authority has expired{days}; get a new one"
            );
        }
        CertificateError::UnknownRevocationStatus => {
            "no revocation list (CRL) tells whether the certificate is revoked"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the certificate is not for this name"
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "the certificate is for another purpose (extendedKeyUsage)"
        }
        CertificateError::BadEncoding => "the certificate cannot be read",
        CertificateError::UnhandledCriticalExtension => {
            "the certificate has a critical extension that is not supported"
        }
        CertificateError::UnsupportedSignatureAlgorithmContext {
            signature_algorithm_id, ..
        }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext {
            signature_algorithm_id,
            ..
        } => {
            let name = algorithm(signature_algorithm_id);
            return format!("the certificate is signed with {name}, which is not supported");
        }
        CertificateError::Other(OtherError(error)) => {
            return match error.downcast_ref::<webpki::Error>() {
                // `openssl req -x509` creates such certificates by default. They are refused even if they are trusted.
                Some(webpki::Error::CaUsedAsEndEntity) => {
                    "the certificate is an authority's own, as self-signed ones often are: \
                     make it with basicConstraints=CA:FALSE and trust it, or set `verify: false`"
                        .into()
                }
                Some(error) => format!("the certificate cannot be used: {}", in_words(error)),
                None => format!("the certificate cannot be used: {error}"),
            };
        }
        _ => return format!("the certificate cannot be used: {why}"),
    };
    plain.into()
}

/// The time from one moment to a later one, in words, with a space before it.
fn days_between(from: UnixTime, to: UnixTime) -> String {
    match to.as_secs().saturating_sub(from.as_secs()) / DAY_S {
        0 => String::new(),
        1 => " one day ago".into(),
        days => format!(" {days} days ago"),
    }
}

fn revocations(why: &CertRevocationListError) -> String {
    match why {
        CertRevocationListError::BadSignature => "it is not signed by the certificate's authority",
        CertRevocationListError::IssuerInvalidForCrl => {
            "the authority may not sign one (keyUsage without cRLSign)"
        }
        CertRevocationListError::ParseError => "it cannot be read",
        CertRevocationListError::UnsupportedCrlVersion => "it is not of version 2",
        CertRevocationListError::UnsupportedDeltaCrl => "it is a delta list, not a whole one",
        CertRevocationListError::UnsupportedIndirectCrl => "it is of another issuer (indirect)",
        CertRevocationListError::UnsupportedRevocationReason => {
            "it has a reason that is not supported"
        }
        CertRevocationListError::UnsupportedSignatureAlgorithmContext {
            signature_algorithm_id,
            ..
        } => return format!("it is signed with {}", algorithm(signature_algorithm_id)),
        _ => "it has a feature that is not supported",
    }
    .into()
}

fn incompatible(why: &PeerIncompatible) -> &'static str {
    match why {
        PeerIncompatible::NoCipherSuitesInCommon => "no common cipher suite",
        PeerIncompatible::NoKxGroupsInCommon | PeerIncompatible::KeyShareExtensionRequired => {
            "no common key exchange group (curve), or no cipher suite that uses one"
        }
        PeerIncompatible::NamedGroupsExtensionRequired
        | PeerIncompatible::EcPointsExtensionRequired
        | PeerIncompatible::UncompressedEcPointsRequired
        | PeerIncompatible::NoEcPointFormatsInCommon => "it offers no elliptic curves",
        PeerIncompatible::NoSignatureSchemesInCommon
        | PeerIncompatible::NoCertificateRequestSignatureSchemesInCommon
        | PeerIncompatible::SignatureAlgorithmsExtensionRequired => {
            "no common signature algorithm for the certificate"
        }
        PeerIncompatible::ServerDoesNotSupportTls12Or13
        | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
        | PeerIncompatible::SupportedVersionsExtensionRequired
        | PeerIncompatible::Tls12NotOffered
        | PeerIncompatible::Tls12NotOfferedOrEnabled => "no common TLS version",
        PeerIncompatible::ExtendedMasterSecretExtensionRequired => {
            "it does not offer the extended master secret"
        }
        PeerIncompatible::NullCompressionRequired => "it requires compression, which is unsafe",
        _ => "it needs a feature of TLS that is not supported",
    }
}

/// Describes an error of a certificate or a revocation list.
pub fn in_words(error: &webpki::Error) -> String {
    use webpki::Error as E;
    match error {
        E::BadDer | E::TrailingData(_) => "it is damaged (DER)",
        E::BadDerTime => "it has an invalid time",
        E::CaUsedAsEndEntity => "it is an authority's own certificate (basicConstraints CA:TRUE)",
        E::EndEntityUsedAsCa => "its issuer is no authority (basicConstraints without CA:TRUE)",
        E::CertDistrusted => "its key is distrusted",
        E::CertExpired { .. } => "it has expired",
        E::CertNotValidYet { .. } => "it is not valid yet",
        E::CertNotValidForName(_) => "it is not for this name",
        E::CertRevoked => "it is revoked",
        E::CrlExpired { .. } => "the revocation list has expired",
        E::EmptyEkuExtension => "its extendedKeyUsage is empty",
        E::ExtensionValueInvalid | E::MalformedExtensions => {
            "an extension that it needs is missing or damaged"
        }
        E::InvalidCertValidity => "its validity ends before it starts",
        E::InvalidCrlNumber => "its number (cRLNumber) is invalid",
        E::InvalidSerialNumber => "its serial number is negative, too long or damaged",
        E::InvalidNetworkMaskConstraint | E::MalformedNameConstraint => {
            "its name constraints are damaged"
        }
        E::InvalidSignatureForPublicKey | E::InvalidCrlSignatureForPublicKey => {
            "its signature is not of the issuer's key"
        }
        E::IssuerNotCrlSigner => "the issuer may not sign revocation lists",
        E::MalformedDnsIdentifier => "a name in it is invalid",
        E::NameConstraintViolation => "its name is outside the name constraints of an authority",
        E::PathLenConstraintViolated => "the chain is longer than an authority allows",
        E::MaximumNameConstraintComparisonsExceeded
        | E::MaximumPathBuildCallsExceeded
        | E::MaximumPathDepthExceeded
        | E::MaximumSignatureChecksExceeded => "its chain is too complex",
        E::RequiredEkuNotFoundContext(_) => "it is for another purpose (extendedKeyUsage)",
        E::SignatureAlgorithmMismatch => "it names two signature algorithms",
        E::UnknownIssuer => "its issuer is not in the chain",
        E::UnknownRevocationStatus => "no revocation list tells about it",
        E::UnsupportedCertVersion => "it is not a certificate of X.509 version 3",
        E::UnsupportedCriticalExtension => "it has a critical extension that is not supported",
        E::UnsupportedCrlIssuingDistributionPoint => {
            "its issuing distribution point is not supported"
        }
        E::UnsupportedCrlVersion => "it is not of version 2",
        E::UnsupportedDeltaCrl => "it is a delta list, not a whole one",
        E::UnsupportedIndirectCrl => "it is of another issuer (indirect)",
        E::UnsupportedRevocationReason | E::UnsupportedRevocationReasonsPartitioning => {
            "it has reasons that are not supported"
        }
        E::UnsupportedSignatureAlgorithmContext(it)
        | E::UnsupportedCrlSignatureAlgorithmContext(it) => {
            return signed_with(&it.signature_algorithm_id);
        }
        E::UnsupportedSignatureAlgorithmForPublicKeyContext(it)
        | E::UnsupportedCrlSignatureAlgorithmForPublicKeyContext(it) => {
            return signed_with(&it.signature_algorithm_id);
        }
        _ => return error.to_string(),
    }
    .into()
}

fn signed_with(identifier: &[u8]) -> String {
    format!("it is signed with {}, which is not supported", algorithm(identifier))
}

/// The name of a signature algorithm: the contents of an AlgorithmIdentifier.
fn algorithm(identifier: &[u8]) -> String {
    let Some(oid) = Der::new(identifier).take(der::OBJECT_IDENTIFIER) else {
        return "an unknown algorithm".into();
    };
    match ALGORITHMS.iter().find(|(known, _)| *known == oid) {
        Some((_, name)) => (*name).into(),
        None => format!("the algorithm {}", dotted(oid)),
    }
}

/// An object identifier in dotted form.
fn dotted(oid: &[u8]) -> String {
    let mut numbers = Vec::new();
    let mut number = 0_u64;
    for byte in oid {
        number = (number << 7) | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            numbers.push(std::mem::take(&mut number));
        }
    }
    let Some((first, rest)) = numbers.split_first() else { return String::new() };
    let top = (first / 40).min(2);
    let parts = [top, first - 40 * top].into_iter().chain(rest.iter().copied());
    parts.map(|part| part.to_string()).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn errors_have_no_lists_of_bytes() {
        let at = |day: u64| UnixTime::since_unix_epoch(Duration::from_secs(day * DAY_S));
        let sha1 = vec![6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 5, 5, 0];
        let other = vec![6, 3, 0x2b, 0x65, 0x71];
        let unsupported = |signature_algorithm_id| {
            Error::InvalidCertificate(CertificateError::UnsupportedSignatureAlgorithmContext {
                signature_algorithm_id,
                supported_algorithms: Vec::new(),
            })
        };
        let expired = |time, next_update| {
            let why = CertificateError::ExpiredRevocationListContext { time, next_update };
            Error::InvalidCertificate(why)
        };
        for (error, expected) in [
            (
                unsupported(sha1),
                "the certificate is signed with SHA-1 with RSA, which is not supported",
            ),
            (
                unsupported(other),
                "the certificate is signed with the algorithm 1.3.101.113, which is not supported",
            ),
            (
                unsupported(vec![1, 2]),
                "the certificate is signed with an unknown algorithm, which is not supported",
            ),
            (
                expired(at(20), at(10)),
                "the revocation list (CRL) of the certificate's authority has expired 10 days ago; \
                 get a new one",
            ),
            (
                expired(at(10), at(10)),
                "the revocation list (CRL) of the certificate's authority has expired; get a new one",
            ),
            (
                Error::AlertReceived(AlertDescription::UnknownCA),
                "the peer sent the alert unknown_ca",
            ),
            (
                Error::PeerIncompatible(PeerIncompatible::NoCipherSuitesInCommon),
                "no common cipher suite",
            ),
            (Error::NoCertificatesPresented, "it showed no certificate, which is required"),
            (
                Error::InvalidCertRevocationList(CertRevocationListError::IssuerInvalidForCrl),
                "the revocation list (CRL) cannot be used: the authority may not sign one (keyUsage \
                 without cRLSign)",
            ),
        ] {
            assert_eq!(explain(&error), expected);
        }
    }
}

//! The contents of a certificate, except its subject.

use std::net::IpAddr;

use aws_lc_rs::digest::{SHA256, digest};
use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

/// The contents of a certificate, except its subject. An unreadable certificate has only the fingerprint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// The serial number in lowercase hexadecimal digits, two per byte.
    pub serial: String,
    /// The SHA-256 hash of the whole certificate, in the same format.
    pub fingerprint: String,
    /// The alternative names of these types, in the order of the certificate.
    pub names: Vec<(AlternativeName, String)>,
}

/// Types of alternative names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlternativeName {
    /// A host name.
    Dns,
    /// An email address.
    Email,
    /// A URI.
    Uri,
    /// An IP address.
    Ip,
}

/// Reads the contents of a certificate.
pub fn details(certificate: &CertificateDer<'_>) -> Details {
    let fingerprint = hex(digest(&SHA256, certificate).as_ref());
    let Ok((_, found)) = X509Certificate::from_der(certificate) else {
        return Details { fingerprint, ..Details::default() };
    };
    let names = found.subject_alternative_name().ok().flatten();
    let names = names.iter().flat_map(|names| &names.value.general_names).filter_map(name);
    Details { serial: serial(found.raw_serial()), fingerprint, names: names.collect() }
}

/// The names of the holder of a certificate: the common names of its subject, and its alternative names except IP addresses.
pub fn holder_names(certificate: &CertificateDer<'_>) -> Vec<String> {
    let mut names: Vec<String> = match X509Certificate::from_der(certificate) {
        Ok((_, found)) => {
            let common = found.subject().iter_common_name();
            common.filter_map(|name| name.as_str().ok().map(str::to_owned)).collect()
        }
        Err(_) => Vec::new(),
    };
    let others = details(certificate).names.into_iter();
    names.extend(others.filter(|(kind, _)| *kind != AlternativeName::Ip).map(|(_, name)| name));
    names
}

/// A serial number in hexadecimal digits, without the leading zero byte that marks it as positive.
fn serial(bytes: &[u8]) -> String {
    match bytes {
        [0, rest @ ..] if !rest.is_empty() => hex(rest),
        bytes => hex(bytes),
    }
}

fn name(found: &GeneralName<'_>) -> Option<(AlternativeName, String)> {
    Some(match found {
        GeneralName::DNSName(name) => (AlternativeName::Dns, (*name).to_owned()),
        GeneralName::RFC822Name(name) => (AlternativeName::Email, (*name).to_owned()),
        GeneralName::URI(uri) => (AlternativeName::Uri, (*uri).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let address = match bytes.len() {
                4 => IpAddr::from(<[u8; 4]>::try_from(*bytes).ok()?),
                _ => IpAddr::from(<[u8; 16]>::try_from(*bytes).ok()?),
            };
            (AlternativeName::Ip, address.to_string())
        }
        _ => return None,
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    fn certificate(serial: Vec<u8>, names: Vec<rcgen::SanType>) -> CertificateDer<'static> {
        let key = rcgen::KeyPair::generate().expect("a key");
        let mut params = rcgen::CertificateParams::new(Vec::new()).expect("no names");
        params.serial_number = Some(serial.into());
        params.subject_alt_names = names;
        params.self_signed(&key).expect("a certificate").der().clone()
    }

    #[test]
    fn details_are_read() {
        let text = |text: &str| text.try_into().expect("ASCII");
        let der = certificate(
            vec![0x9f, 0x01, 0x00],
            vec![
                rcgen::SanType::DnsName(text("a.example")),
                rcgen::SanType::Rfc822Name(text("joe@a.example")),
                rcgen::SanType::URI(text("spiffe://a.example/web")),
                rcgen::SanType::IpAddress([192, 0, 2, 7].into()),
                rcgen::SanType::IpAddress(Ipv6Addr::LOCALHOST.into()),
                rcgen::SanType::DnsName(text("b.example")),
            ],
        );
        let found = details(&der);
        assert_eq!(found.serial, "9f0100");
        let expected = [
            (AlternativeName::Dns, "a.example"),
            (AlternativeName::Email, "joe@a.example"),
            (AlternativeName::Uri, "spiffe://a.example/web"),
            (AlternativeName::Ip, "192.0.2.7"),
            (AlternativeName::Ip, "::1"),
            (AlternativeName::Dns, "b.example"),
        ];
        assert_eq!(found.names, expected.map(|(kind, name)| (kind, name.to_owned())));
        assert_eq!(found.fingerprint, hex(digest(&SHA256, &der).as_ref()));
        assert!(
            found.fingerprint.len() == 64
                && found.fingerprint != details(&certificate(vec![1], vec![])).fingerprint
        );
    }

    #[test]
    fn what_is_no_certificate_has_a_fingerprint() {
        let found = details(&CertificateDer::from(b"x".to_vec()));
        let fingerprint = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
        assert_eq!(found, Details { fingerprint: fingerprint.into(), ..Details::default() });
        assert_eq!((serial(&[0]).as_str(), serial(&[0, 0x80]).as_str()), ("00", "80"));
    }
}

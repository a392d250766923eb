//! The time in which authorities and revocation lists are valid.

use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use x509_parser::prelude::{FromDer, X509Certificate};

/// The validity of an authority or of a revocation list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Period {
    /// The subject of the authority, or the issuer of the revocation list, as text.
    pub name: String,
    /// The start, in seconds since 1970.
    pub from_unix_s: i64,
    /// The end, in seconds since 1970; `None`: no end.
    pub until_unix_s: Option<i64>,
}

impl Period {
    /// The validity of each certificate.
    pub fn of_certificates(certificates: &[CertificateDer<'_>]) -> Vec<Self> {
        let parsed = certificates.iter().filter_map(|it| X509Certificate::from_der(it).ok());
        let period = |certificate: X509Certificate<'_>| Self {
            name: certificate.subject().to_string(),
            from_unix_s: certificate.validity().not_before.timestamp(),
            until_unix_s: Some(certificate.validity().not_after.timestamp()),
        };
        parsed.map(|(_, certificate)| period(certificate)).collect()
    }

    /// The validity of each revocation list.
    pub fn of_revocations(lists: &[CertificateRevocationListDer<'_>]) -> Vec<Self> {
        let parsed = lists.iter().filter_map(|it| x509_parser::parse_x509_crl(it).ok());
        let period =
            |(_, list): (_, x509_parser::revocation_list::CertificateRevocationList<'_>)| Self {
                name: list.issuer().to_string(),
                from_unix_s: list.last_update().timestamp(),
                until_unix_s: list.next_update().map(|end| end.timestamp()),
            };
        parsed.map(period).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(name: &str, this: i32, next: i32) -> CertificateRevocationListDer<'static> {
        let key = rcgen::KeyPair::generate().expect("a key");
        let mut params = rcgen::CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.key_usages = vec![rcgen::KeyUsagePurpose::CrlSign];
        let issuer = rcgen::Issuer::new(params, key);
        let list = rcgen::CertificateRevocationListParams {
            this_update: rcgen::date_time_ymd(this, 1, 1),
            next_update: rcgen::date_time_ymd(next, 1, 1),
            crl_number: vec![1].into(),
            issuing_distribution_point: None,
            revoked_certs: Vec::new(),
            key_identifier_method: rcgen::KeyIdMethod::Sha256,
        };
        list.signed_by(&issuer).expect("a list").der().clone()
    }

    /// Verification uses the first list of an issuer that it finds.
    #[test]
    fn the_newest_list_of_each_issuer_is_used() {
        let lists = vec![
            list("a", 2001, 2005),
            list("b", 2002, 2006),
            list("a", 2003, 2004),
            list("a", 2002, 2009),
        ];
        let (used, others) = crate::identity::newest(lists.clone());
        assert_eq!(used, [lists[1].clone(), lists[2].clone()]);
        assert_eq!(others, [lists[0].clone(), lists[3].clone()]);
        let periods = Period::of_revocations(&used);
        let names: Vec<&str> = periods.iter().map(|it| &*it.name).collect();
        assert!(names[0].contains("CN=b") && names[1].contains("CN=a"), "{names:?}");
        assert_eq!(periods[1].from_unix_s, 1_041_379_200);
        assert_eq!(periods[1].until_unix_s, Some(1_072_915_200));
    }

    #[test]
    fn validity_is_read() {
        let root = include_bytes!("../../../examples/tls/root.crt");
        let root = crate::identity::read_authorities(root).expect("an authority");
        let [period] = &Period::of_certificates(&root)[..] else { panic!("one") };
        assert!(period.name.contains("CN="), "{period:?}");
        assert!(period.until_unix_s.is_some_and(|end| end > period.from_unix_s));
        assert_eq!(Period::of_certificates(&[CertificateDer::from(vec![1])]), []);
    }
}

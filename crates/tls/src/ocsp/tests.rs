//! The OCSP response of the examples, created with OpenSSL: complete, and with changes.

use rustls::pki_types::pem::PemObject;

use super::*;

static RESPONSE: &[u8] = include_bytes!("../../../../examples/tls/shop-ec.ocsp");

fn chain(text: &[u8]) -> [CertificateDer<'static>; 2] {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    all.expect("PEM").try_into().expect("two")
}

fn shop() -> [CertificateDer<'static>; 2] {
    chain(include_bytes!("../../../../examples/tls/shop-ec.crt"))
}

#[test]
fn the_example_is_good_for_its_certificate_and_time() {
    let [certificate, issuer] = shop();
    let now = now_unix_s();
    let validity = verify(RESPONSE, &certificate, &issuer, now).expect("good");
    assert!(validity.from_unix_s <= now && validity.until_unix_s > now);
    let at = |unix_s| verify(RESPONSE, &certificate, &issuer, unix_s);
    assert_eq!(at(validity.until_unix_s), Err(OcspError::OutOfDate));
    assert_eq!(at(validity.from_unix_s - CLOCK_SKEW_S - 1), Err(OcspError::OutOfDate));
    assert_eq!(at(validity.until_unix_s - 1), Ok(validity));
    let [other, _] = chain(include_bytes!("../../../../examples/tls/shop-rsa.crt"));
    assert_eq!(verify(RESPONSE, &other, &issuer, now), Err(OcspError::OfAnother));
    let root = CertificateDer::from_pem_slice(include_bytes!("../../../../examples/tls/root.crt"));
    let root = root.expect("PEM");
    assert_eq!(verify(RESPONSE, &certificate, &root, now), Err(OcspError::Unsigned));
}

/// A changed byte makes the signature invalid, or the response malformed.
#[test]
fn one_that_was_changed_is_refused() {
    let [certificate, issuer] = shop();
    let now = now_unix_s();
    // The optional certificates of the responder follow the signature.
    let basic = Basic::read(basic_response(RESPONSE).expect("one")).expect("one");
    let unsigned = basic.signature.as_ptr_range().end as usize - RESPONSE.as_ptr() as usize;
    for at in 0..RESPONSE.len() {
        for change in [1, 0x80] {
            let mut changed = RESPONSE.to_vec();
            changed[at] ^= change;
            let verified = verify(&changed, &certificate, &issuer, now);
            assert!(verified.is_err() || at >= unsigned, "byte {at}");
        }
        assert!(verify(&RESPONSE[..at], &certificate, &issuer, now).is_err());
    }
    let refused = [0x30, 3, 0x0a, 1, 3];
    assert_eq!(verify(&refused, &certificate, &issuer, now), Err(OcspError::Refused(3)));
}

#[test]
fn a_staple_ends_with_its_time() {
    let [certificate, issuer] = shop();
    let key = include_bytes!("../../../../examples/tls/shop-ec.key");
    let key = crate::identity::read_key(key).expect("a key");
    let chain = vec![certificate.clone(), issuer.clone()];
    let identity = crate::identity::Identity::new(chain, key).expect("a pair");
    let staple = Staple::new(&identity.certified);
    assert_eq!((staple.certified().ocsp.clone(), staple.until_unix_s()), (None, None));
    let validity = verify(RESPONSE, &certificate, &issuer, now_unix_s()).expect("good");
    staple.set(RESPONSE, validity);
    assert_eq!(staple.certified().ocsp.as_deref(), Some(RESPONSE));
    staple.set(RESPONSE, Validity { until_unix_s: now_unix_s(), ..validity });
    assert_eq!(staple.certified().ocsp, None, "never one that is out of date");
}

#[test]
fn what_certificates_say() {
    let [certificate, _] = shop();
    assert_eq!(responder_url(&certificate), None);
    assert!(!must_be_stapled(&certificate));
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut params = rcgen::CertificateParams::new(vec!["a.example".into()]).expect("names");
    let feature = [1, 3, 6, 1, 5, 5, 7, 1, 24];
    let feature = rcgen::CustomExtension::from_oid_content(&feature, vec![0x30, 3, 2, 1, 5]);
    let url = "http://ocsp.example/a";
    let description = der::value(
        der::SEQUENCE,
        &[
            &der::value(der::OBJECT_IDENTIFIER, &[&[0x2b, 6, 1, 5, 5, 7, 48, 1]]),
            &der::value(0x86, &[url.as_bytes()]),
        ],
    );
    let access = [1, 3, 6, 1, 5, 5, 7, 1, 1];
    let access = rcgen::CustomExtension::from_oid_content(
        &access,
        der::value(der::SEQUENCE, &[&description]),
    );
    params.custom_extensions = vec![feature, access];
    let made = params.self_signed(&key).expect("a certificate");
    assert!(must_be_stapled(made.der()));
    assert_eq!(responder_url(made.der()).as_deref(), Some(url));
}

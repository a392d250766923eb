//! Private keys, certificate signing requests, and the two kinds of certificates that weir signs itself: a temporary one until
//! the authority has issued the first, and those that answer challenges.

use std::time::{Duration, SystemTime};

use rcgen::{
    CertificateParams, CustomExtension, DistinguishedName, DnType, KeyPair, RsaKeySize,
    SignatureAlgorithm,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use weir_config::snapshot::KeyKind;
use weir_tls::identity::{Identity, IdentityError, read_certificates, read_key};

/// Lifetime of a temporary certificate: long enough to remove the cause of failed orders.
const STAND_IN_LIFETIME: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The start of the validity is earlier by this time, because clocks of clients may be slow.
const BACKDATED: Duration = Duration::from_secs(60 * 60);
/// The subject of a temporary certificate.
pub const STAND_IN: &str = "weir: no certificate of an authority yet";

/// Generates a private key, in PEM. RSA takes seconds.
pub fn generate(kind: KeyKind) -> Result<String, rcgen::Error> {
    let rsa = |size| KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, size);
    let key = match kind {
        KeyKind::EcdsaP256 => KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256),
        KeyKind::EcdsaP384 => KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384),
        KeyKind::Rsa2048 => rsa(RsaKeySize::_2048),
        KeyKind::Rsa3072 => rsa(RsaKeySize::_3072),
        KeyKind::Rsa4096 => rsa(RsaKeySize::_4096),
    }?;
    Ok(key.serialize_pem())
}

/// Whether a key in PEM has this type.
pub fn is_of_kind(key_pem: &str, kind: KeyKind) -> bool {
    let Ok(key) = KeyPair::from_pem(key_pem) else { return false };
    let is = |algorithm: &'static SignatureAlgorithm| key.algorithm() == algorithm;
    // The modulus, without the rest of RFC 8017's structure around it.
    let bits = |bits: usize| key.public_key_raw().len() / 16 * 128 == bits;
    match kind {
        KeyKind::EcdsaP256 => is(&rcgen::PKCS_ECDSA_P256_SHA256),
        KeyKind::EcdsaP384 => is(&rcgen::PKCS_ECDSA_P384_SHA384),
        KeyKind::Rsa2048 => is(&rcgen::PKCS_RSA_SHA256) && bits(2048),
        KeyKind::Rsa3072 => is(&rcgen::PKCS_RSA_SHA256) && bits(3072),
        KeyKind::Rsa4096 => is(&rcgen::PKCS_RSA_SHA256) && bits(4096),
    }
}

/// The request for a certificate for these names (PKCS #10), in DER.
pub fn request(names: &[String], key_pem: &str) -> Result<Vec<u8>, rcgen::Error> {
    let key = KeyPair::from_pem(key_pem)?;
    let mut params = CertificateParams::new(names.to_vec())?;
    // All names are alternative names; a common name would have to be short.
    params.distinguished_name = DistinguishedName::new();
    Ok(params.serialize_request(&key)?.der().to_vec())
}

/// A chain and a key in PEM, joined.
pub fn identity(chain_pem: &str, key_pem: &str) -> Result<Identity, IdentityError> {
    Identity::new(read_certificates(chain_pem.as_bytes())?, read_key(key_pem.as_bytes())?)
}

/// A self-signed, temporary certificate.
pub fn stand_in(names: &[String], now: SystemTime) -> Result<Identity, String> {
    let made = self_signed(names, now, STAND_IN, None);
    let (chain, key) = made.map_err(|error| error.to_string())?;
    identity(&chain, &key).map_err(|error| error.to_string())
}

/// The certificate that answers a TLS-ALPN-01 challenge (RFC 8737 section 3), and its key.
pub fn challenge(
    name: &str,
    digest: &[u8; 32],
    now: SystemTime,
) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), String> {
    let extension = CustomExtension::new_acme_identifier(digest);
    let made = self_signed(&[name.to_owned()], now, "weir: ACME challenge", Some(extension));
    let (chain, key) = made.map_err(|error| error.to_string())?;
    let certificate = read_certificates(chain.as_bytes()).map_err(|error| error.to_string())?;
    let key = read_key(key.as_bytes()).map_err(|error| error.to_string())?;
    let certificate = certificate.into_iter().next().ok_or("there is none")?;
    Ok((certificate, key))
}

fn self_signed(
    names: &[String],
    now: SystemTime,
    subject: &str,
    extension: Option<CustomExtension>,
) -> Result<(String, String), rcgen::Error> {
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
    let mut params = CertificateParams::new(names.to_vec())?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, subject);
    params.not_before = (now - BACKDATED).into();
    params.not_after = (now + STAND_IN_LIFETIME).into();
    params.custom_extensions.extend(extension);
    Ok((params.self_signed(&key)?.pem(), key.serialize_pem()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [KeyKind; 3] = [KeyKind::EcdsaP256, KeyKind::EcdsaP384, KeyKind::Rsa2048];

    #[test]
    fn keys_are_of_their_kind_and_no_other() {
        for kind in KINDS {
            let key = generate(kind).expect("a key");
            for other in KINDS.into_iter().chain([KeyKind::Rsa3072, KeyKind::Rsa4096]) {
                assert_eq!(is_of_kind(&key, other), kind == other, "{kind:?} {other:?}");
            }
            let names = ["shop.example".to_owned(), "www.shop.example".to_owned()];
            assert!(!request(&names, &key).expect("a request").is_empty());
        }
        assert!(!is_of_kind("no key", KeyKind::EcdsaP256));
    }

    #[test]
    fn what_stands_in_has_the_names_and_a_short_life() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let names = ["shop.example".to_owned(), "www.shop.example".to_owned()];
        let identity = stand_in(&names, now).expect("a certificate");
        assert_eq!(identity.names, names);
        assert_eq!(identity.subject, format!("CN={STAND_IN}"));
        assert_eq!(identity.not_after_unix_s, 1_800_000_000 + 7 * 86_400);
        assert_eq!(identity.not_before_unix_s, 1_800_000_000 - 3_600);
    }

    #[test]
    fn a_challenge_has_its_digest() {
        let (certificate, _) = challenge("shop.example", &[7; 32], SystemTime::now()).expect("one");
        // The identifier of the extension, critical, and the digest in its octet strings.
        let oid = [6, 8, 0x2b, 6, 1, 5, 5, 7, 1, 31, 1, 1, 0xff, 4, 34, 4, 32, 7, 7];
        assert!(certificate.windows(oid.len()).any(|window| window == oid), "no acmeIdentifier");
        let names = weir_tls::certificate::details(&certificate).names;
        assert_eq!(
            names,
            [(weir_tls::certificate::AlternativeName::Dns, "shop.example".to_owned())]
        );
    }
}

//! Issuers of tokens, and one request with a token.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
    RsaKeyPair,
};
use data_encoding::BASE64URL_NOPAD;

use super::{Algorithm, Keys, TokenPlace, TokenReader, TokenSettings};

/// Signs tokens.
pub enum Issuer {
    Rsa(Box<RsaKeyPair>),
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

impl Issuer {
    pub fn new(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Rs256 => Self::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap().into()),
            Algorithm::Es256 => {
                Self::Ec(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap())
            }
            Algorithm::EdDsa => Self::ed(7),
        }
    }

    pub fn ed(seed: u8) -> Self {
        Self::Ed(Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap())
    }

    /// The public key as a JWK, with further members.
    pub fn jwk(&self, more: &str) -> String {
        let text = |bytes: &[u8]| BASE64URL_NOPAD.encode(bytes);
        let key = match self {
            Self::Rsa(pair) => {
                // RSAPublicKey: two lengths and a zero are ahead of a modulus of 2048 bits, and the exponent is 65537.
                let n = &pair.public_key().as_ref()[9..][..256];
                format!(r#""kty":"RSA","n":"{}","e":"AQAB""#, text(n))
            }
            Self::Ec(pair) => {
                let point = &pair.public_key().as_ref()[1..];
                let (x, y) = point.split_at(32);
                format!(r#""kty":"EC","crv":"P-256","x":"{}","y":"{}""#, text(x), text(y))
            }
            Self::Ed(pair) => {
                let x = pair.public_key().as_ref();
                format!(r#""kty":"OKP","crv":"Ed25519","x":"{}""#, text(x))
            }
        };
        format!("{{{key}{more}}}")
    }

    pub fn sign(&self, header: &str, claims: &str) -> String {
        let signed = format!(
            "{}.{}",
            BASE64URL_NOPAD.encode(header.as_bytes()),
            BASE64URL_NOPAD.encode(claims.as_bytes())
        );
        let message = signed.as_bytes();
        let random = SystemRandom::new();
        let signature = match self {
            Self::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).unwrap();
                signature
            }
            Self::Ec(pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Self::Ed(pair) => pair.sign(message).as_ref().to_vec(),
        };
        format!("{signed}.{}", BASE64URL_NOPAD.encode(&signature))
    }
}

pub fn keys(all: &[String]) -> Keys {
    Keys::parse(format!(r#"{{"keys":[{}]}}"#, all.join(",")).as_bytes()).unwrap()
}

/// Settings for tokens in `Authorization`, of any issuer.
pub fn settings() -> TokenSettings {
    TokenSettings {
        place: TokenPlace::Authorization,
        algorithms: Algorithm::ALL.to_vec(),
        issuers: Vec::new(),
        audiences: Vec::new(),
        leeway_s: 0,
    }
}

/// A reader for tokens of the issuer `Issuer::ed(7)`.
pub fn reader() -> TokenReader {
    TokenReader::new(settings(), Some(keys(&[Issuer::ed(7).jwk("")])))
}

//! The client's side of SCRAM-SHA-256 (RFC 5802, RFC 7677), without channel binding.

use std::io;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use aws_lc_rs::{pbkdf2, rand};
use data_encoding::BASE64;
use std::num::NonZeroU32;
use weir_config::snapshot::Secret;

/// The name of the SASL method.
pub(super) const METHOD: &str = "SCRAM-SHA-256";

/// The `gs2-header`: no channel binding, no authorization identity. Then the same in Base64.
const HEADER: &str = "n,,";
const HEADER_BASE64: &str = "biws";
/// Size of the client's nonce, before Base64.
const NONCE_BYTES: usize = 18;
/// Maximum number of hash iterations, because the probes of all members share a thread. PostgreSQL's default is 4096.
const ITERATIONS_MAX: u32 = 100_000;
/// Maximum size of a server's message in bytes.
const WORDS_BYTES_MAX: usize = 1_024;
const HASH_BYTES: usize = 32;

/// A SCRAM exchange.
pub(super) struct Exchange {
    password: Secret,
    /// The client's first message, without the header.
    first: String,
    nonce: String,
    /// The signature that the server must send at the end.
    signature: Option<[u8; HASH_BYTES]>,
    is_done: bool,
}

impl Exchange {
    /// Begins an exchange. Returns the client's first message. It contains no user name, because PostgreSQL ignores that.
    pub fn begin(password: &Secret) -> Result<(Self, String), io::Error> {
        let mut nonce = [0; NONCE_BYTES];
        rand::fill(&mut nonce).map_err(|_| io::Error::other("no random numbers"))?;
        Ok(Self::with_nonce(password, "", BASE64.encode(&nonce)))
    }

    fn with_nonce(password: &Secret, user: &str, nonce: String) -> (Self, String) {
        let first = format!("n={user},r={nonce}");
        let words = format!("{HEADER}{first}");
        let password = password.clone();
        (Self { password, first, nonce, signature: None, is_done: false }, words)
    }

    /// Whether the server has proved that it knows the password.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// The client's answer to the server's first message.
    pub fn answer(&mut self, words: &[u8]) -> Result<String, &'static str> {
        let wrong = "the server's words are not those of SCRAM";
        let words = text(words).ok_or(wrong)?;
        let mut parts = words.split(',');
        let mut part =
            |name: &str| parts.next().and_then(|part| part.strip_prefix(name)).ok_or(wrong);
        let (nonce, salt, iterations) = (part("r=")?, part("s=")?, part("i=")?);
        if self.signature.is_some() || !nonce.starts_with(&*self.nonce) || nonce == self.nonce {
            return Err(wrong);
        }
        let salt = BASE64.decode(salt.as_bytes()).map_err(|_| wrong)?;
        let iterations = iterations.parse().ok().and_then(NonZeroU32::new).ok_or(wrong)?;
        if iterations.get() > ITERATIONS_MAX {
            return Err("the server asks for more rounds of hashing than 100000");
        }
        let mut salted = [0; HASH_BYTES];
        let password = self.password.expose().as_bytes();
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, &salt, password, &mut salted);
        let without_proof = format!("c={HEADER_BASE64},r={nonce}");
        let all = format!("{},{words},{without_proof}", self.first);
        let client_key = hmac(&salted, b"Client Key");
        let stored_key = digest(&SHA256, &client_key);
        let signature = hmac(stored_key.as_ref(), all.as_bytes());
        let proof: Vec<u8> = client_key.iter().zip(signature).map(|(key, bit)| key ^ bit).collect();
        self.signature = Some(hmac(&hmac(&salted, b"Server Key"), all.as_bytes()));
        Ok(format!("{without_proof},p={}", BASE64.encode(&proof)))
    }

    /// Verifies the server's final message.
    pub fn finish(&mut self, words: &[u8]) -> Result<(), &'static str> {
        let wrong = "the server does not know the password";
        let expected = self.signature.as_ref().ok_or(wrong)?;
        let signature = text(words).and_then(|words| words.strip_prefix("v="));
        let signature = signature.and_then(|found| BASE64.decode(found.as_bytes()).ok());
        let signature = signature.ok_or(wrong)?;
        verify_slices_are_equal(&signature, expected).map_err(|_| wrong)?;
        self.is_done = true;
        Ok(())
    }
}

fn text(words: &[u8]) -> Option<&str> {
    std::str::from_utf8(words).ok().filter(|words| words.len() <= WORDS_BYTES_MAX)
}

fn hmac(key: &[u8], text: &[u8]) -> [u8; HASH_BYTES] {
    let tag = sign(&Key::new(HMAC_SHA256, key), text);
    let mut bytes = [0; HASH_BYTES];
    bytes.copy_from_slice(tag.as_ref());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: &str = "rOprNGfwEbeRWgbNEkqO";
    const SERVER_FIRST: &str =
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";

    fn begun() -> Exchange {
        let (exchange, words) = Exchange::with_nonce(&Secret::new("pencil"), "user", NONCE.into());
        assert_eq!(words, format!("n,,n=user,r={NONCE}"));
        exchange
    }

    /// The example of RFC 7677 section 3.
    #[test]
    fn the_example_of_the_rfc() {
        let mut exchange = begun();
        let expected = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                        p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        assert_eq!(exchange.answer(SERVER_FIRST.as_bytes()).as_deref(), Ok(expected));
        assert!(!exchange.is_done());
        let last = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";
        assert_eq!(exchange.finish(last), Ok(()));
        assert!(exchange.is_done());
    }

    #[test]
    fn hostile_servers() {
        let long = format!("r={NONCE}x,s={},i=1", "A".repeat(2_000));
        for words in [
            "",
            "r=,s=AA==,i=1",
            "r=other,s=AA==,i=1",
            &format!("r={NONCE},s=AA==,i=1"),
            &format!("r={NONCE}x"),
            &format!("r={NONCE}x,s=AA==,i=0"),
            &format!("r={NONCE}x,s=AA==,i=-1"),
            &format!("r={NONCE}x,s=AA==,i=100001"),
            &format!("r={NONCE}x,s=AA==,i=99999999999"),
            &format!("r={NONCE}x,s=A,i=1"),
            &format!("s=AA==,r={NONCE}x,i=1"),
            &long,
        ] {
            assert!(begun().answer(words.as_bytes()).is_err(), "{words}");
        }
        assert!(begun().answer(b"r=\xff").is_err());
        // A final message that is too early, a repeated message, a wrong signature.
        assert!(begun().finish(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=").is_err());
        let mut exchange = begun();
        assert!(exchange.answer(SERVER_FIRST.as_bytes()).is_ok());
        assert!(exchange.answer(SERVER_FIRST.as_bytes()).is_err());
        for last in [&b""[..], b"v=", b"v=AAAA", b"e=other-error", b"v=\xff"] {
            assert!(exchange.finish(last).is_err() && !exchange.is_done(), "{last:?}");
        }
    }
}

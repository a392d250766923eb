//! Tokens of users of the admin listeners.
//!
//! The prefix makes tokens recognisable for people and for secret scanners. The rest is 256 random bits.

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};

/// The prefix of every token.
const PREFIX: &str = "weir_";

/// Number of random bytes in a token.
const RANDOM_BYTES: usize = 32;

/// A new token. It is shown once; the configuration contains its hash.
pub struct Token(String);

/// The system provided no random numbers.
#[derive(Debug)]
pub struct NoRandomNumbers;

impl fmt::Display for NoRandomNumbers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the system gave no random numbers")
    }
}

impl std::error::Error for NoRandomNumbers {}

impl Token {
    /// Generates a random token.
    pub fn generate() -> Result<Self, NoRandomNumbers> {
        let mut random = [0; RANDOM_BYTES];
        aws_lc_rs::rand::fill(&mut random).map_err(|_| NoRandomNumbers)?;
        Ok(Self(format!("{PREFIX}{}", BASE64URL_NOPAD.encode(&random))))
    }

    /// The text of the token, to be shown to its owner.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The value of `token_hash` in the configuration.
    pub fn hash(&self) -> String {
        format!("sha256:{}", HEXLOWER.encode(digest(&SHA256, self.0.as_bytes()).as_ref()))
    }
}

/// Does not show the token.
impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_are_not_shown() {
        let (one, other) = (Token::generate().unwrap(), Token::generate().unwrap());
        assert_ne!(one.expose(), other.expose());
        assert_eq!(one.expose().len(), PREFIX.len() + 43);
        assert!(!format!("{one:?}").contains(&one.expose()[PREFIX.len()..]));
    }

    #[test]
    fn hashes_are_those_of_the_whole_text() {
        let token = Token("weir_abc".to_owned());
        // printf weir_abc | sha256sum
        let hash = "sha256:299b31987dfddb9af3fb2a947a6f74f01e899ccbea7b7a14fcc7554473765150";
        assert_eq!(token.hash(), hash);
    }
}

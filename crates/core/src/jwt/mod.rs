//! Verification of signed JSON Web Tokens (RFC 7519, RFC 7515), and their claims.
//!
//! Only signatures with a public key are accepted: RS256, ES256 and EdDSA with Ed25519. The key determines the algorithm,
//! regardless of the token's header. `none`, HMAC and encrypted tokens (JWE) are refused.
//!
//! ```text
//! token ─ place ─▶ header.claims.signature ─ keys ─▶ signature is good ─ claims ─▶ time, issuer, audience ─▶ Claims
//! ```

mod cache;
mod claims;
mod json;
mod keys;
mod place;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use data_encoding::BASE64URL_NOPAD;
use serde_json::Value;

pub use cache::TokenCache;
pub use claims::Claims;
pub use keys::{Algorithm, Keys, KeysError};
pub use place::TokenPlace;

/// Maximum length of a token.
pub const TOKEN_BYTES_MAX: usize = 16 * 1024;
/// Maximum number of claims of a token, and of parameters in its header.
pub const CLAIMS_MAX: usize = 256;
/// Maximum size of a set of keys.
pub const JWKS_BYTES_MAX: usize = 256 * 1024;
/// Maximum number of used keys in a set.
pub const KEYS_MAX: usize = 64;
/// Maximum length of a key id.
pub const KEY_ID_BYTES_MAX: usize = 256;
/// Maximum number of keys that are tried for a token without a key id.
pub const KEYS_TRIED_MAX: usize = 4;

// A head with the longest token can be received.
const _: () = assert!(KEYS_TRIED_MAX <= KEYS_MAX && TOKEN_BYTES_MAX < JWKS_BYTES_MAX);

/// The requirements on tokens.
#[derive(Debug)]
pub struct TokenSettings {
    /// The place of the token in a request.
    pub place: TokenPlace,
    /// The accepted signature algorithms.
    pub algorithms: Vec<Algorithm>,
    /// Accepted issuers; empty: any issuer with one of the keys.
    pub issuers: Vec<Box<str>>,
    /// Accepted audiences; a token must have one of them. Empty: any audience.
    pub audiences: Vec<Box<str>>,
    /// Maximum difference between the clocks of issuer and weir.
    pub leeway_s: u64,
}

/// Reads tokens of one kind. The keys may change at any time.
#[derive(Debug)]
pub struct TokenReader {
    /// The requirements on tokens.
    pub settings: TokenSettings,
    keys: ArcSwapOption<Keys>,
}

/// The reason why a token is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The request has no token.
    Missing,
    /// There are several tokens.
    Several,
    /// The token is malformed.
    Malformed,
    /// The token exceeds the maximum length.
    TooLong,
    /// The signature algorithm is not accepted.
    Algorithm,
    /// The token requires an extension that weir does not support.
    Critical,
    /// No known key can have signed the token.
    UnknownKey,
    /// The signature is invalid.
    Signature,
    /// The token has no expiry.
    Endless,
    /// The token has expired.
    Expired,
    /// The token is not valid yet.
    NotYet,
    /// The token is from another issuer.
    Issuer,
    /// The token is for another audience.
    Audience,
    /// No keys are available yet.
    NoKeys,
    /// The time is unknown at this place.
    NoTime,
}

impl Refusal {
    /// The reason as text that is safe inside a quoted string of a header field.
    pub fn text(self) -> &'static str {
        match self {
            Self::Missing => "there is no token",
            Self::Several => "there are several tokens",
            Self::Malformed => "the token is malformed",
            Self::TooLong => "the token is too long",
            Self::Algorithm => "the token is signed with an algorithm that is not accepted",
            Self::Critical => "the token has a critical header parameter that is not supported",
            Self::UnknownKey => "the key of the token is not known",
            Self::Signature => "the signature of the token is wrong",
            Self::Endless => "the token has no expiration time",
            Self::Expired => "the token has expired",
            Self::NotYet => "the token is not valid yet",
            Self::Issuer => "the token has another issuer",
            Self::Audience => "the token is for another audience",
            Self::NoKeys => "there are no keys to verify tokens with",
            Self::NoTime => "the time is not known",
        }
    }

    /// Whether the cause is weir's own state, not the token.
    pub fn is_own(self) -> bool {
        matches!(self, Self::NoKeys | Self::NoTime)
    }
}

impl TokenReader {
    /// A reader with these keys; `None`: they are not known yet, and no token is accepted.
    pub fn new(settings: TokenSettings, keys: Option<Keys>) -> Self {
        Self { settings, keys: ArcSwapOption::from_pointee(keys) }
    }

    /// Replaces the keys.
    pub fn set_keys(&self, keys: Arc<Keys>) {
        self.keys.store(Some(keys));
    }

    /// The current keys.
    pub fn keys(&self) -> Option<Arc<Keys>> {
        self.keys.load_full()
    }

    /// The claims of a token, if it is valid at this time, in seconds since 1970. The time is checked for each token,
    /// the signature only if it is not in `cache`.
    ///
    /// # Errors
    /// The reason why the token is not accepted.
    pub fn read(
        &self,
        token: &[u8],
        now_s: u64,
        cache: &mut TokenCache,
    ) -> Result<Arc<Claims>, Refusal> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(Refusal::TooLong);
        }
        let guard = self.keys.load();
        let keys = guard.as_ref().ok_or(Refusal::NoKeys)?;
        let claims = cache.get(token, keys, || self.verify(token, keys).map(Arc::new))?;
        self.accept(&claims, now_s)?;
        Ok(claims)
    }

    /// Verifies the signature of a token and returns its claims.
    fn verify(&self, token: &[u8], keys: &Keys) -> Result<Claims, Refusal> {
        let parts = Parts::of(token).ok_or(Refusal::Malformed)?;
        let header = json::object(&decode(parts.header)?).ok_or(Refusal::Malformed)?;
        let algorithm = match header.get("alg") {
            Some(Value::String(name)) => Algorithm::named(name).ok_or(Refusal::Algorithm)?,
            _ => return Err(Refusal::Malformed),
        };
        if !self.settings.algorithms.contains(&algorithm) {
            return Err(Refusal::Algorithm);
        }
        if header.contains_key("crit") {
            return Err(Refusal::Critical);
        }
        let id = match header.get("kid") {
            None => None,
            Some(Value::String(id)) if id.len() <= KEY_ID_BYTES_MAX => Some(id.as_str()),
            Some(_) => return Err(Refusal::Malformed),
        };
        let signature = decode(parts.signature)?;
        let mut candidates = keys.candidates(algorithm, id).take(KEYS_TRIED_MAX).peekable();
        if candidates.peek().is_none() {
            return Err(Refusal::UnknownKey);
        }
        if !candidates.any(|key| key.verifies(parts.signed, &signature)) {
            return Err(Refusal::Signature);
        }
        let claims = json::object(&decode(parts.claims)?).ok_or(Refusal::Malformed)?;
        Claims::new(claims).ok_or(Refusal::Malformed)
    }

    /// Checks the claims: issuer, audience and time (RFC 7519 section 4.1).
    fn accept(&self, claims: &Claims, now_s: u64) -> Result<(), Refusal> {
        let TokenSettings { leeway_s, issuers, audiences, .. } = &self.settings;
        let until_s = claims.expires_s.ok_or(Refusal::Endless)?;
        if now_s >= until_s.saturating_add(*leeway_s) {
            return Err(Refusal::Expired);
        }
        if claims.not_before_s.is_some_and(|from_s| now_s.saturating_add(*leeway_s) < from_s) {
            return Err(Refusal::NotYet);
        }
        let is_text = |value: &Value, text: &str| value.as_str() == Some(text);
        let issuer = claims.whole("iss");
        if !issuers.is_empty()
            && !issuers.iter().any(|known| issuer.is_some_and(|it| is_text(it, known)))
        {
            return Err(Refusal::Issuer);
        }
        let is_meant = |known: &str| match claims.whole("aud") {
            Some(Value::Array(several)) => several.iter().any(|it| is_text(it, known)),
            Some(one) => is_text(one, known),
            None => false,
        };
        if !audiences.is_empty() && !audiences.iter().any(|known| is_meant(known)) {
            return Err(Refusal::Audience);
        }
        Ok(())
    }
}

/// The parts of a token (RFC 7515 section 7.1).
struct Parts<'t> {
    header: &'t [u8],
    claims: &'t [u8],
    signature: &'t [u8],
    /// The signed part: header and claims.
    signed: &'t [u8],
}

impl<'t> Parts<'t> {
    fn of(token: &'t [u8]) -> Option<Self> {
        let mut parts = token.split(|byte| *byte == b'.');
        let (header, claims, signature) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        let signed = &token[..header.len() + 1 + claims.len()];
        Some(Self { header, claims, signature, signed })
    }
}

fn decode(part: &[u8]) -> Result<Vec<u8>, Refusal> {
    BASE64URL_NOPAD.decode(part).map_err(|_| Refusal::Malformed)
}

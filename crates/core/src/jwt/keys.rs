//! Sets of public keys (RFC 7517, RFC 7518 section 6, RFC 8037 section 2).

use std::fmt;

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256,
    RsaPublicKeyComponents,
};
use data_encoding::BASE64URL_NOPAD;
use serde_json::{Map, Value};

use super::{JWKS_BYTES_MAX, KEY_ID_BYTES_MAX, KEYS_MAX, json};

/// Permitted lengths of an RSA modulus, in bits.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;
/// Maximum length of an RSA exponent.
const RSA_EXPONENT_BYTES_MAX: usize = 8;
/// Length of a P-256 coordinate.
const P256_COORDINATE_BYTES: usize = 32;
/// Length of an Ed25519 public key.
const ED25519_BYTES: usize = 32;
/// The first byte of a point with both coordinates (SEC 1 section 2.3.3).
const UNCOMPRESSED: u8 = 4;

/// A signature algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// EdDSA on Ed25519.
    EdDsa,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Self; 3] = [Self::Rs256, Self::Es256, Self::EdDsa];

    /// The registered name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
        }
    }

    /// The algorithm with this name; `Ed25519` means EdDSA (RFC 9864).
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "Ed25519" => Some(Self::EdDsa),
            _ => Self::ALL.into_iter().find(|algorithm| algorithm.name() == name),
        }
    }
}

/// The keys of an issuer.
pub struct Keys {
    keys: Vec<Key>,
    skipped: Vec<(usize, String)>,
}

/// A public key, which verifies signatures of a single algorithm.
pub(super) struct Key {
    id: Option<Box<str>>,
    algorithm: Algorithm,
    public: ParsedPublicKey,
}

impl Key {
    /// Whether the signature over a message was made with this key.
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        self.public.verify_sig(message, signature).is_ok()
    }
}

/// An error in a set of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeysError {
    /// The document exceeds the maximum size.
    TooLong,
    /// The document begins with a byte order mark.
    ByteOrderMark,
    /// The document is not a JSON object.
    NoObject,
    /// The document has no list `keys`.
    NoList,
    /// The document has too many usable keys.
    TooMany,
    /// A key is invalid: its number, from 1, and the reason.
    Key(usize, &'static str),
    /// The set has no usable key.
    NoneUsable,
}

impl fmt::Display for KeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "the key set is longer than {JWKS_BYTES_MAX} bytes"),
            Self::ByteOrderMark => f.write_str(
                "the key set begins with a byte order mark (EF BB BF); save it as UTF-8 without one",
            ),
            Self::NoObject => f.write_str("the key set is not a JSON object"),
            Self::NoList => f.write_str("the key set has no list `keys`"),
            Self::TooMany => write!(f, "the key set has more than {KEYS_MAX} usable keys"),
            Self::Key(number, why) => write!(f, "key {number} of the key set {why}"),
            Self::NoneUsable => f.write_str(
                "the key set has no key for RS256, ES256 or EdDSA (kty RSA, EC with P-256, OKP with Ed25519)",
            ),
        }
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = self.keys.iter().map(|key| (key.algorithm.name(), key.id.as_deref()));
        formatter.debug_list().entries(ids).finish()
    }
}

impl Keys {
    /// The keys of a JWK Set. Keys of other kinds, and for other uses, are skipped.
    ///
    /// # Errors
    /// The reason why the set is invalid.
    pub fn parse(text: &[u8]) -> Result<Self, KeysError> {
        Self::read(text, Err)
    }

    /// The keys of a published JWK Set: invalid keys are skipped (RFC 7517 section 5).
    ///
    /// # Errors
    /// The error in the whole set, or in its first key if no key is valid.
    pub fn parse_published(text: &[u8]) -> Result<Self, KeysError> {
        let mut first = None;
        let read = Self::read(text, |error| {
            first.get_or_insert(error);
            Ok(())
        });
        match (read, first) {
            (Err(KeysError::NoneUsable), Some(first)) => Err(first),
            (read, _) => read,
        }
    }

    fn read(
        text: &[u8],
        mut mistake: impl FnMut(KeysError) -> Result<(), KeysError>,
    ) -> Result<Self, KeysError> {
        if text.len() > JWKS_BYTES_MAX {
            return Err(KeysError::TooLong);
        }
        if text.starts_with(b"\xef\xbb\xbf") {
            return Err(KeysError::ByteOrderMark);
        }
        let set = json::object(text).ok_or(KeysError::NoObject)?;
        let Some(Value::Array(items)) = set.get("keys") else { return Err(KeysError::NoList) };
        let (mut keys, mut skipped) = (Vec::new(), Vec::new());
        for (index, item) in items.iter().enumerate() {
            match item.as_object().map_or(Err("is not a JSON object"), key) {
                Ok(Item::Key(_)) if keys.len() == KEYS_MAX => return Err(KeysError::TooMany),
                Ok(Item::Key(found)) => keys.push(found),
                Ok(Item::OfOtherUse) => {}
                Ok(Item::OfOtherKind(kind)) => skipped.push((index + 1, kind)),
                Err(why) => mistake(KeysError::Key(index + 1, why))?,
            }
        }
        if keys.is_empty() { Err(KeysError::NoneUsable) } else { Ok(Self { keys, skipped }) }
    }

    /// The keys for signatures of other kinds, which are skipped: their numbers, from 1, and their kinds.
    pub fn skipped(&self) -> &[(usize, String)] {
        &self.skipped
    }

    /// The number of keys.
    pub fn count(&self) -> usize {
        self.keys.len()
    }

    /// The keys that may have signed a token: keys of its algorithm with its key id, followed by keys without an id, which
    /// match every token.
    pub(super) fn candidates<'k>(
        &'k self,
        algorithm: Algorithm,
        id: Option<&'k str>,
    ) -> impl Iterator<Item = &'k Key> {
        let of_algorithm = move || self.keys.iter().filter(move |key| key.algorithm == algorithm);
        let named =
            of_algorithm().filter(move |key| id.is_some_and(|id| key.id.as_deref() == Some(id)));
        let others = of_algorithm().filter(move |key| id.is_none() || key.id.is_none());
        named.chain(others)
    }
}

/// An item of `keys`.
enum Item {
    Key(Key),
    /// A key that is not for signatures.
    OfOtherUse,
    /// A key for signatures of another kind or algorithm, and what it is.
    OfOtherKind(String),
}

/// Maximum length of a text from a key in a message.
const SHOWN_BYTES_MAX: usize = 40;

/// The key in an item of `keys`.
fn key(item: &Map<String, Value>) -> Result<Item, &'static str> {
    let text = |name: &str| item.get(name).and_then(Value::as_str);
    let (kty, curve) = (text("kty").ok_or("has no `kty`")?, text("crv"));
    if !is_for_signatures(item) {
        return Ok(Item::OfOtherUse);
    }
    let plain = |text: &str| -> String {
        text.chars().filter(char::is_ascii_graphic).take(SHOWN_BYTES_MAX).collect()
    };
    let algorithm = match (kty, curve) {
        ("RSA", _) => Algorithm::Rs256,
        ("EC", Some("P-256")) => Algorithm::Es256,
        ("OKP", Some("Ed25519")) => Algorithm::EdDsa,
        (kty, Some(curve)) => {
            return Ok(Item::OfOtherKind(format!("{} with {}", plain(kty), plain(curve))));
        }
        (kty, None) => return Ok(Item::OfOtherKind(plain(kty))),
    };
    // A key for another algorithm cannot verify a supported one.
    if let Some(named) = item.get("alg")
        && named.as_str().and_then(Algorithm::named) != Some(algorithm)
    {
        let named = named.as_str().unwrap_or("no text");
        return Ok(Item::OfOtherKind(format!("{} for {}", plain(kty), plain(named))));
    }
    let id = match item.get("kid") {
        None => None,
        Some(Value::String(id)) if id.len() <= KEY_ID_BYTES_MAX => Some(id.as_str().into()),
        Some(Value::String(_)) => return Err("has a `kid` of more than 256 bytes"),
        Some(_) => return Err("has a `kid` that is not text"),
    };
    let public = match algorithm {
        Algorithm::Rs256 => rsa(item),
        Algorithm::Es256 => p256(item),
        Algorithm::EdDsa => ed25519(item),
    }?;
    Ok(Item::Key(Key { id, algorithm, public }))
}

/// Whether `use` and `key_ops` permit signatures (RFC 7517 sections 4.2 and 4.3).
fn is_for_signatures(item: &Map<String, Value>) -> bool {
    let is_used = item.get("use").is_none_or(|it| it.as_str() == Some("sig"));
    let verifies = match item.get("key_ops") {
        None => true,
        Some(Value::Array(all)) => all.iter().any(|it| it.as_str() == Some("verify")),
        Some(_) => false,
    };
    is_used && verifies
}

fn rsa(item: &Map<String, Value>) -> Result<ParsedPublicKey, &'static str> {
    let n = bytes(item, "n").ok_or("has no modulus `n` in base64url")?;
    let e = bytes(item, "e").ok_or("has no exponent `e` in base64url")?;
    // Some issuers write leading zeros.
    let zeros = n.iter().take_while(|byte| **byte == 0).count();
    let n = &n[zeros..];
    let bits = n.first().map_or(0, |first| n.len() * 8 - first.leading_zeros() as usize);
    if !RSA_BITS.contains(&bits) {
        return Err("has a modulus that is not of 2048 to 8192 bits");
    }
    if e.is_empty() || e.len() > RSA_EXPONENT_BYTES_MAX || e[0] == 0 {
        return Err("has an exponent that RSA does not use");
    }
    let components = RsaPublicKeyComponents { n, e: &e[..] };
    let parsed = components.to_parsed_public_key(&RSA_PKCS1_2048_8192_SHA256);
    parsed.map_err(|_| "is not a public key of RSA")
}

fn p256(item: &Map<String, Value>) -> Result<ParsedPublicKey, &'static str> {
    let coordinate = |name| bytes(item, name).filter(|it| it.len() == P256_COORDINATE_BYTES);
    let (Some(x), Some(y)) = (coordinate("x"), coordinate("y")) else {
        return Err("has no coordinates `x` and `y` of 32 bytes in base64url");
    };
    let mut point = vec![UNCOMPRESSED];
    point.extend_from_slice(&x);
    point.extend_from_slice(&y);
    ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).map_err(|_| "is not a point of P-256")
}

fn ed25519(item: &Map<String, Value>) -> Result<ParsedPublicKey, &'static str> {
    let x = bytes(item, "x").filter(|it| it.len() == ED25519_BYTES);
    let x = x.ok_or("has no `x` of 32 bytes in base64url")?;
    ParsedPublicKey::new(&ED25519, x).map_err(|_| "is not a public key of Ed25519")
}

fn bytes(item: &Map<String, Value>, name: &str) -> Option<Vec<u8>> {
    BASE64URL_NOPAD.decode(item.get(name)?.as_str()?.as_bytes()).ok()
}

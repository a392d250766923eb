//! Persistence by weir's own cookie: the client has a token for each pool that it has used.
//!
//! ```text
//! value = token *( "." token )     ; at most TOKENS_MAX, the one that was set last in front
//! token = pool-id tag              ; 8 and 22 characters of base64url
//! ```
//!
//! A tag is the authentication code, 128 bits, of (pool name, member address) under the first key. Without the key, it
//! reveals nothing and cannot be forged. It is the same wherever the key, the pool's name and the address are the same:
//! after a restart, a reload, on another instance. So nothing is stored per client.
//!
//! The pool's id is 48 bits of the same kind. It identifies the pool of a token, even if its member is gone: a pool
//! reads and replaces its own tokens and returns the others unchanged ([`OtherTokens`]). They may be of another pool of
//! the virtual server, of another virtual server on the same host, of another instance, or of a pool that a reload will
//! bring back.
//!
//! All tokens are computed when a configuration is loaded; a request costs one lookup in a hash map.
//!
//! **Former cookies.** A token used to be the tag alone; and if policies selected pools, the cookie's name was followed
//! by `-` and the pool's id. Both are still read ([`TokenForm`]), and renewed with the response.
//!
//! **Timing attacks.** Tags are compared as 128-bit numbers, in a time that does not depend on how much matches. The
//! time of a look-up can only reveal whether some tag shares the bits of a keyed 64-bit hash that selected a slot of
//! the map; at least 64 bits of any tag stay unknown, and each attempt costs a request. An attacker with a token could
//! only choose its own member.

mod hidden;
mod others;
mod set;
#[cfg(test)]
mod tests;
mod tokens;

use data_encoding::BASE64URL_NOPAD;

pub use hidden::HiddenCookies;
pub use others::OtherTokens;
pub use set::SetCookieFields;
pub use tokens::{CookieTokens, TokenForm, TokenMember};

use super::keys::{Key, Keys, TAG_BYTES, Use};

/// Maximum number of tokens in a cookie: one for each pool in which the client has a member, of all pools that share the
/// cookie's name. With all tokens the value has 991 characters; user agents accept 4,096 per cookie.
pub const TOKENS_MAX: usize = 32;

/// Length of a token in characters.
pub const TOKEN_BYTES: usize = POOL_ID_BYTES + TAG_TEXT_BYTES;

/// Length of a member's tag in characters.
const TAG_TEXT_BYTES: usize = (TAG_BYTES * 8).div_ceil(6);

/// Length of a pool's id in characters.
const POOL_ID_BYTES: usize = 8;

/// The character between two tokens.
const SEPARATOR: u8 = b'.';

/// The id of a pool in tokens. It does not reveal the pool's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PoolId([u8; POOL_ID_BYTES]);

impl PoolId {
    /// The id of a pool under a key.
    fn new(key: &Key, pool_name: &str) -> Self {
        let tag = key.tag(Use::PoolId, &[pool_name]);
        let mut text = [0; POOL_ID_BYTES];
        BASE64URL_NOPAD.encode_mut(&tag[..POOL_ID_BYTES * 6 / 8], &mut text);
        Self(text)
    }

    /// The ids of the pool under all keys; the id under the signing key comes first.
    pub fn of(keys: &Keys, pool_name: &str) -> impl Iterator<Item = Self> {
        keys.iter().map(move |key| Self::new(key, pool_name))
    }

    /// The pool's id in a former cookie name: `NAME-ID`.
    fn of_former_name(cookie_name: &[u8], name: &str) -> Option<Self> {
        let (rest, id) = cookie_name.split_last_chunk()?;
        (rest.len() == name.len() + 1 && rest.ends_with(b"-") && rest.starts_with(name.as_bytes()))
            .then_some(Self(*id))
    }
}

/// A token as a client sends it, which may be unknown.
#[derive(Debug, Clone, Copy)]
struct Token<'a> {
    /// The id of the pool; `None`: the token is a tag alone, the former format.
    pool: Option<PoolId>,
    tag: &'a [u8; TAG_TEXT_BYTES],
    text: &'a [u8],
}

impl<'a> Token<'a> {
    fn parse(text: &'a [u8]) -> Option<Self> {
        let (pool, tag) = match text.len() {
            TOKEN_BYTES => {
                let (id, tag) = text.split_first_chunk()?;
                (Some(PoolId(*id)), tag)
            }
            _ => (None, text),
        };
        Some(Self { pool, tag: tag.try_into().ok()?, text })
    }

    /// The tokens in a cookie's value. Other text is skipped.
    fn all(value: &'a [u8]) -> impl Iterator<Item = Self> {
        pieces(value).filter_map(Self::parse)
    }
}

/// The parts between separators.
fn pieces(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(value);
    std::iter::from_fn(move || {
        let value = rest?;
        let Some(end) = memchr::memchr(SEPARATOR, value) else {
            return rest.take();
        };
        rest = Some(&value[end + 1..]);
        Some(&value[..end])
    })
}

//! Persistence by a cookie of ours: the client carries a token that stands for its member.
//!
//! A member's token is the authentication code of (pool name, member address) under the first key,
//! 128 bits as 22 characters of base64url. It tells nothing to who has not the key, cannot be made
//! without it, and is the same wherever the key, the pool's name and the address are the same: after
//! a restart, a reload, on another instance. So nothing is kept per client.
//!
//! All tokens are computed when a configuration is loaded; a request costs a look into a hash map.
//!
//! **Guessing by the clock.** A token is compared as two 128-bit numbers, each of which ends no sooner
//! when more of it fits. What the time of a look-up can still tell is whether some token shares the bits
//! of a keyed 64-bit hash that chose a slot of the map; at least 64 bits of any token stay unknown,
//! and a probe costs a request. Who had a token could choose the member that serves it, no more.

use std::collections::HashMap;

use data_encoding::BASE64URL_NOPAD;
use foldhash::quality::FixedState;
use weir_http::cookies::{SetCookie, SetCookieError, cookies};

use super::keys::{Key, Keys, TAG_BYTES, Use};

/// Characters of a token.
pub const TOKEN_BYTES: usize = (TAG_BYTES * 8).div_ceil(6);

/// Bytes of a pool's id before they become text: 8 characters.
const POOL_ID_BYTES: usize = 6;

/// The member that a token stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Its index in the labels that the tokens were made from.
    pub member: u32,
    /// Whether the token is of the key that signs; if not, the cookie is to be renewed.
    pub is_current_key: bool,
}

/// A token's text in two pieces that overlap. Each token has one spelling, so nothing needs to be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Spelling(u128, u128);

impl Spelling {
    fn of(token: &[u8]) -> Option<Self> {
        let token: &[u8; TOKEN_BYTES] = token.try_into().ok()?;
        let (start, end) = (token.first_chunk()?, token.last_chunk()?);
        Some(Self(u128::from_ne_bytes(*start), u128::from_ne_bytes(*end)))
    }
}

/// The tokens of a pool's members.
#[derive(Debug, Clone)]
pub struct CookieTokens {
    /// Of all keys.
    found: HashMap<Spelling, Found, FixedState>,
    /// Those of the key that signs, one behind the other.
    text: String,
}

impl CookieTokens {
    /// The tokens of the pool's members, which are told apart by their `labels` (addresses). Should a
    /// label come twice, its token leads to the first of them.
    ///
    /// Cost: two SHA-256 blocks or so per member and key.
    pub fn new<'a>(
        keys: &Keys,
        pool_name: &str,
        labels: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let seed = keys.hash("cookie tokens").bytes(pool_name.as_bytes());
        let mut found: HashMap<_, _, _> = HashMap::with_hasher(FixedState::with_seed(seed));
        let mut text = String::new();
        for (member, label) in (0..).zip(labels) {
            for (number, key) in keys.iter().enumerate() {
                let tag = key.tag(Use::Token, &[pool_name, label]);
                let is_current_key = number == 0;
                let token = BASE64URL_NOPAD.encode(&tag);
                let spelling = Spelling::of(token.as_bytes()).expect("the length of every token");
                if is_current_key {
                    text.push_str(&token);
                }
                found.entry(spelling).or_insert(Found { member, is_current_key });
            }
        }
        Self { found, text }
    }

    /// The member that the value of a cookie stands for.
    pub fn find(&self, value: &[u8]) -> Option<Found> {
        self.found.get(&Spelling::of(value)?).copied()
    }

    /// The member that the client's cookies name, given the values of its Cookie fields.
    ///
    /// A client can have several of the same name (set for other paths or domains, or under an older
    /// key's pool id): the first that is of the current key counts, else the first that is of any.
    pub fn find_in<'a>(
        &self,
        cookie_fields: impl IntoIterator<Item = &'a [u8]>,
        names: &CookieNames,
    ) -> Option<Found> {
        let mut older = None;
        for (name, value) in cookie_fields.into_iter().flat_map(cookies) {
            if !names.contains(name) {
                continue;
            }
            match self.find(value) {
                Some(found) if found.is_current_key => return Some(found),
                found => older = older.or(found),
            }
        }
        older
    }

    /// The token of a member.
    ///
    /// # Panics
    /// If `member` is not an index of the labels that the tokens were made from.
    pub fn token(&self, member: u32) -> &str {
        let start = member as usize * TOKEN_BYTES;
        &self.text[start..start + TOKEN_BYTES]
    }

    /// How many members there are.
    pub fn members(&self) -> usize {
        self.text.len() / TOKEN_BYTES
    }
}

/// A short name of a pool that does not tell the pool's name: 8 characters of base64url.
pub fn pool_id(key: &Key, pool_name: &str) -> String {
    BASE64URL_NOPAD.encode(&key.tag(Use::PoolId, &[pool_name])[..POOL_ID_BYTES])
}

/// What the persistence cookie of a pool is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CookieNames {
    /// The one that is set first, then those that are read too.
    names: Vec<String>,
}

impl CookieNames {
    /// The configured name as it is: for virtual servers with one pool.
    pub fn plain(name: &str) -> Self {
        Self { names: vec![name.to_owned()] }
    }

    /// The configured name with the pool's id behind it: where policies select pools, so that one
    /// pool's cookie does not replace another's. The id depends on the key, so what older keys named
    /// is read too.
    pub fn per_pool(name: &str, keys: &Keys, pool_name: &str) -> Self {
        let of_key = |key| format!("{name}-{}", pool_id(key, pool_name));
        Self { names: keys.iter().map(of_key).collect() }
    }

    /// The name to set.
    pub fn current(&self) -> &str {
        &self.names[0]
    }

    /// Whether a cookie of this name is to be read, or removed toward the member.
    pub fn contains(&self, name: &[u8]) -> bool {
        self.names.iter().any(|ours| ours.as_bytes() == name)
    }
}

/// The values of the Set-Cookie fields that give a client its member, ready to be copied.
#[derive(Debug, Clone, Default)]
pub struct SetCookieFields {
    /// All of one length, one behind the other.
    text: Vec<u8>,
    length: usize,
}

impl SetCookieFields {
    /// Those of `cookie`, which has the name [`CookieNames::current`] gives, for every member.
    pub fn new(cookie: &SetCookie, tokens: &CookieTokens) -> Result<Self, SetCookieError> {
        cookie.check()?;
        let mut fields = Self { text: Vec::new(), length: 0 };
        for member in 0..tokens.members() as u32 {
            let field = cookie.field_value(tokens.token(member).as_bytes())?;
            fields.length = field.len();
            fields.text.extend_from_slice(&field);
        }
        Ok(fields)
    }

    /// The field's value for a client of this member.
    ///
    /// # Panics
    /// If `member` is not an index of the labels that the tokens were made from.
    pub fn of(&self, member: u32) -> &[u8] {
        let start = member as usize * self.length;
        &self.text[start..start + self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABELS: [&str; 3] = ["10.0.0.1:80", "10.0.0.2:80", "[::1]:80"];

    fn key(byte: u8) -> Key {
        Key::new([byte; 32])
    }

    fn keys(bytes: &[u8]) -> Keys {
        let line = |byte: &u8| format!("{byte:02x}").repeat(32) + "\n";
        Keys::parse(&bytes.iter().map(line).collect::<String>()).unwrap()
    }

    fn tokens(keys: &Keys) -> CookieTokens {
        CookieTokens::new(keys, "web", LABELS)
    }

    #[test]
    fn a_token_is_the_same_everywhere_and_another_for_everyone() {
        let found = tokens(&keys(&[7]));
        assert_eq!(found.members(), 3);
        assert_eq!(found.token(0), "eiwvBCh6L54GqPLplvtM1g");
        // Another order, other members: the token stays.
        let reordered = CookieTokens::new(&keys(&[7]), "web", ["new:1", LABELS[0]]);
        assert_eq!(reordered.token(1), found.token(0));
        let mut all: Vec<String> = Vec::new();
        for (key_byte, pool) in [(7, "web"), (7, "api"), (8, "web")] {
            let found = CookieTokens::new(&keys(&[key_byte]), pool, LABELS);
            all.extend((0..3).map(|member| found.token(member).to_owned()));
        }
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 9);
    }

    #[test]
    fn only_tokens_are_found() {
        let found = tokens(&keys(&[7]));
        for member in 0..3 {
            let token = found.token(member).to_owned();
            assert_eq!(found.find(token.as_bytes()), Some(Found { member, is_current_key: true }));
            for at in 0..TOKEN_BYTES {
                for other in *b"A_-z9\0=\xff" {
                    let mut wrong = token.clone().into_bytes();
                    if wrong[at] != other {
                        wrong[at] = other;
                        assert_eq!(found.find(&wrong), None, "{}", wrong.escape_ascii());
                    }
                }
            }
            for wrong in [&token[1..], &format!("{token}="), &format!("\"{token}\""), ""] {
                assert_eq!(found.find(wrong.as_bytes()), None, "{wrong}");
            }
        }
        let other_pool = CookieTokens::new(&keys(&[7]), "api", LABELS);
        assert_eq!(found.find(other_pool.token(0).as_bytes()), None);
        assert_eq!(CookieTokens::new(&keys(&[7]), "web", []).find(&[b'A'; 22]), None);
    }

    #[test]
    fn a_token_has_one_spelling() {
        // 22 characters have four bits more than 16 bytes.
        let found = tokens(&keys(&[7]));
        let mut token = found.token(0).to_owned().into_bytes();
        assert_eq!(token.pop(), Some(b'g'));
        for last in *b"hijklmnopqrstuv" {
            assert_eq!(found.find(&[&token[..], &[last]].concat()), None);
        }
    }

    #[test]
    fn an_older_key_is_honoured() {
        let before = tokens(&keys(&[1]));
        let during = tokens(&keys(&[2, 1]));
        let after = tokens(&keys(&[2]));
        let old = before.token(1).as_bytes();
        let new = after.token(1).as_bytes();
        assert_eq!(during.token(1).as_bytes(), new);
        assert_eq!(during.find(old), Some(Found { member: 1, is_current_key: false }));
        assert_eq!(during.find(new), Some(Found { member: 1, is_current_key: true }));
        assert_eq!(after.find(old), None);
    }

    #[test]
    fn names_per_pool() {
        let plain = CookieNames::plain("WEIR");
        assert_eq!(plain.current(), "WEIR");
        assert!(plain.contains(b"WEIR") && !plain.contains(b"weir") && !plain.contains(b"WEIR-"));
        assert_eq!(pool_id(&key(7), "web"), "5_kQtrsS");
        let old = CookieNames::per_pool("WEIR", &keys(&[7]), "web");
        assert_eq!(old.current(), "WEIR-5_kQtrsS");
        let rotated = CookieNames::per_pool("WEIR", &keys(&[8, 7]), "web");
        assert_ne!(rotated.current(), old.current());
        assert!(rotated.contains(old.current().as_bytes()));
        assert!(rotated.contains(rotated.current().as_bytes()));
        let other = CookieNames::per_pool("WEIR", &keys(&[7]), "api");
        assert!(!old.contains(other.current().as_bytes()));
    }

    #[test]
    fn a_clients_cookies() {
        let names = CookieNames::plain("W");
        let found = tokens(&keys(&[2, 1]));
        let old = tokens(&keys(&[1])).token(0).to_owned();
        let new = found.token(2);
        let check = |fields: &[String], expected: Option<(u32, bool)>| {
            let expected =
                expected.map(|(member, is_current_key)| Found { member, is_current_key });
            assert_eq!(
                found.find_in(fields.iter().map(String::as_bytes), &names),
                expected,
                "{fields:?}"
            );
        };
        check(&[], None);
        check(&["a=b".into()], None);
        check(&[format!("w={new}")], None);
        check(&[format!("a=b; W={new}")], Some((2, true)));
        check(&[format!("W={old}")], Some((0, false)));
        check(&[format!("W={old}; W={new}")], Some((2, true)));
        check(&["W=forged".into(), format!("a=b; W={old}; W=x")], Some((0, false)));
    }

    #[test]
    fn set_cookie_fields_are_ready() {
        let found = tokens(&keys(&[7]));
        let cookie = SetCookie {
            name: "W".into(),
            path: Some("/".into()),
            domain: None,
            max_age_s: None,
            secure: false,
            http_only: true,
            same_site: None,
        };
        let fields = SetCookieFields::new(&cookie, &found).unwrap();
        for member in 0..3 {
            let expected = format!("W={}; Path=/; HttpOnly", found.token(member));
            assert_eq!(fields.of(member), expected.as_bytes());
        }
        let wrong = SetCookie { name: "a b".into(), ..cookie };
        let empty = CookieTokens::new(&keys(&[7]), "web", []);
        assert_eq!(SetCookieFields::new(&wrong, &empty).err(), Some(SetCookieError::Name));
    }
}

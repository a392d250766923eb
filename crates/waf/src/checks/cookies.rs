//! Cookies that come back: whether they are well-formed, and whether they are as they were set here.
//!
//! A cookie whose integrity is kept gets a tag behind its value, over its name and value, by a key that only weir has. Who changes the value, or
//! gives it another name, cannot make the tag. The application gets the value without the tag.

use super::{Check, Findings};
use crate::body;

/// Bytes of a tag.
pub const TAG_BYTES: usize = 16;
/// Characters of a tag, with the dot before them.
const TAG_TEXT_BYTES: usize = 1 + 22;
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Makes the tag of a cookie's name and value: a keyed hash (HMAC) of them.
pub trait Sealer {
    /// The tag by the key that signs now.
    fn tag(&self, message: &[u8]) -> [u8; TAG_BYTES];
    /// Whether it is the tag by any key that still holds. In constant time.
    fn is_tag(&self, message: &[u8], tag: &[u8; TAG_BYTES]) -> bool;
}

/// No cookie has a tag.
#[derive(Debug, Clone, Copy)]
pub struct Unsealed;

impl Sealer for Unsealed {
    fn tag(&self, _: &[u8]) -> [u8; TAG_BYTES] {
        [0; TAG_BYTES]
    }

    fn is_tag(&self, _: &[u8], _: &[u8; TAG_BYTES]) -> bool {
        false
    }
}

/// The value with its tag, as the client gets it.
pub fn seal(name: &[u8], value: &[u8], sealer: &impl Sealer) -> Vec<u8> {
    let tag = sealer.tag(&message(name, value));
    let mut sealed = Vec::with_capacity(value.len() + TAG_TEXT_BYTES);
    sealed.extend_from_slice(value);
    sealed.push(b'.');
    write_text(&tag, &mut sealed);
    sealed
}

/// The value without its tag; `None`: it was not set here.
pub fn open<'a>(name: &[u8], sealed: &'a [u8], sealer: &impl Sealer) -> Option<&'a [u8]> {
    let (value, tail) = sealed.split_at_checked(sealed.len().checked_sub(TAG_TEXT_BYTES)?)?;
    let tag = read_text(tail.strip_prefix(b".")?)?;
    sealer.is_tag(&message(name, value), &tag).then_some(value)
}

/// The length of the name stands first: no other name and value give the same bytes.
fn message(name: &[u8], value: &[u8]) -> Vec<u8> {
    let length = u32::try_from(name.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes()[..], name, value].concat()
}

fn write_text(tag: &[u8; TAG_BYTES], to: &mut Vec<u8>) {
    for three in tag.chunks(3) {
        let byte = |index: usize| u32::from(three.get(index).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        let digits =
            (0..=three.len()).map(|place| DIGITS[(word >> (18 - 6 * place) & 63) as usize]);
        to.extend(digits);
    }
}

/// The tag of a text; each tag has one text.
fn read_text(text: &[u8]) -> Option<[u8; TAG_BYTES]> {
    let mut bytes = Vec::with_capacity(TAG_BYTES + 2);
    for four in text.chunks(4) {
        let mut word = 0u32;
        for digit in four {
            let value = DIGITS.iter().position(|known| known == digit)?;
            word = word << 6 | value as u32;
        }
        word <<= 6 * (4 - four.len()) as u32;
        bytes.extend_from_slice(&word.to_be_bytes()[1..]);
    }
    let tag: [u8; TAG_BYTES] = bytes.get(..TAG_BYTES)?.try_into().ok()?;
    let mut again = Vec::with_capacity(TAG_TEXT_BYTES);
    write_text(&tag, &mut again);
    (again == text).then_some(tag)
}

/// Looks at the cookies of a request's Cookie headers. `is_sealed`: whether the cookie of this name has a tag.
pub fn cookies<S: Sealer>(
    headers: &[&[u8]],
    is_sealed: impl Fn(&[u8]) -> bool,
    sealer: &S,
    findings: &mut Findings<'_>,
) {
    let mut seen: Vec<&[u8]> = Vec::new();
    for (name, value) in headers.iter().flat_map(|header| body::cookies(header)) {
        let place = format!("cookie {}", name.escape_ascii());
        if !is_well_formed(name, value) {
            findings.add(Check::CookieMalformed, &place, value);
        }
        if seen.contains(&name) {
            findings.add(Check::CookieRepeated, &place, value);
        } else if seen.len() < COOKIES_SEEN_MAX {
            seen.push(name);
        }
        if is_sealed(name) && open(name, value, sealer).is_none() {
            findings.add(Check::CookieChanged, &place, value);
        }
    }
}

/// Names of cookies that are remembered to tell one that comes twice.
const COOKIES_SEEN_MAX: usize = 256;

/// RFC 6265, 4.1.1, and what browsers send beside it: blanks and commas within values.
fn is_well_formed(name: &[u8], value: &[u8]) -> bool {
    let is_token = |byte: &u8| byte.is_ascii_graphic() && !br#"()<>@,;:\"/[]?={}"#.contains(byte);
    let is_value = |byte: &u8| byte.is_ascii_graphic() && !br#";\"#.contains(byte) || *byte == b' ';
    let inner = value.strip_prefix(b"\"").and_then(|it| it.strip_suffix(b"\"")).unwrap_or(value);
    name.iter().all(is_token) && inner.iter().all(|byte| is_value(byte) && *byte != b'"')
}

/// A Set-Cookie value with these attributes, where it lacks them: `Secure`, `HttpOnly`, and `SameSite` with this word.
pub fn with_attributes(
    set_cookie: &[u8],
    secure: bool,
    http_only: bool,
    same_site: Option<&str>,
) -> Vec<u8> {
    let has = |wanted: &[u8]| {
        set_cookie.split(|byte| *byte == b';').skip(1).any(|attribute| {
            let name = attribute.split(|byte| *byte == b'=').next().unwrap_or_default();
            name.trim_ascii().eq_ignore_ascii_case(wanted)
        })
    };
    let mut out = set_cookie.trim_ascii_end().to_vec();
    if secure && !has(b"secure") {
        out.extend_from_slice(b"; Secure");
    }
    if http_only && !has(b"httponly") {
        out.extend_from_slice(b"; HttpOnly");
    }
    if let Some(word) = same_site.filter(|_| !has(b"samesite")) {
        out.extend_from_slice(b"; SameSite=");
        out.extend_from_slice(word.as_bytes());
    }
    out
}

//! Protects cookies against changes: weir seals cookies in responses and opens them in requests.
//!
//! A sealed cookie has a tag after its value: a keyed hash of its name and value, with a key that only weir has. Clients
//! cannot compute the tag of another value or name. The application receives the value without the tag.

use crate::inspection::decoded_path;

/// Length of a tag.
pub const TAG_BYTES: usize = 16;
/// Characters of a tag, including the dot before it.
const TAG_TEXT_BYTES: usize = 1 + 22;
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Computes the tag of a cookie's name and value: a keyed hash (HMAC).
pub trait Sealer {
    /// The tag by the current signing key.
    fn tag(&self, message: &[u8]) -> [u8; TAG_BYTES];
    /// Whether the tag is valid by any accepted key. In constant time.
    fn is_tag(&self, message: &[u8], tag: &[u8; TAG_BYTES]) -> bool;
}

/// The cookies of an application that are sealed, and those that are not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct CookieTerms {
    /// Sealed cookies.
    pub sealed: Vec<CookieNames>,
    /// Names of cookies that are not sealed: persistence uses them.
    pub others: Vec<Box<[u8]>>,
}

/// A name, or all names with a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CookieNames {
    name: Box<[u8]>,
    is_prefix: bool,
}

impl CookieNames {
    /// Parses the form of the configuration: `session`, `cart_*`, `*`.
    pub fn new(text: &str) -> Self {
        let (name, is_prefix) = match text.strip_suffix('*') {
            Some(prefix) => (prefix, true),
            None => (text, false),
        };
        Self { name: alike(name.as_bytes()).into(), is_prefix }
    }

    /// Whether these names contain a name. `name` must be normalised by [`alike`].
    fn have(&self, name: &[u8]) -> bool {
        if self.is_prefix { name.starts_with(&self.name) } else { *name == *self.name }
    }
}

/// The name as the most lenient servers interpret it: decoded, in lower case, and with PHP's underscores.
fn alike(name: &[u8]) -> Vec<u8> {
    let mut name = decoded_path(name);
    for byte in &mut name {
        *byte = match *byte {
            b'.' | b' ' | b'[' | b'+' => b'_',
            other => other.to_ascii_lowercase(),
        };
    }
    name
}

/// The name without leading and trailing bytes that servers may strip. Servers strip various Unicode blanks, so all bytes
/// other than printable ASCII characters are stripped.
fn stripped(name: &[u8]) -> &[u8] {
    let Some(start) = name.iter().position(u8::is_ascii_graphic) else { return &[] };
    let end = name.iter().rposition(u8::is_ascii_graphic).map_or(start, |last| last + 1);
    &name[start..end]
}

impl CookieTerms {
    /// Whether a cookie of this name is sealed.
    fn seals(&self, name: &[u8]) -> bool {
        if self.leave(name) {
            return false;
        }
        let name = stripped(name);
        let begins = name.split(|byte| *byte == b'[').next().unwrap_or_default();
        // PHP reads `session[x]` as an element of the array `session`.
        let (whole, begins) = (alike(name), alike(begins));
        self.sealed.iter().any(|names| names.have(&whole) || names.have(&begins))
    }

    /// Writes the value of a Cookie field without the tags of its sealed cookies. Returns whether the result differs. A
    /// sealed cookie with an invalid tag is copied unchanged, and its name is added to `changed`.
    pub fn open(
        &self,
        field: &[u8],
        sealer: &impl Sealer,
        changed: &mut Vec<Vec<u8>>,
        to: &mut Vec<u8>,
    ) -> bool {
        let mut is_opened = false;
        for (number, piece) in field.split(|byte| *byte == b';').enumerate() {
            if number > 0 {
                to.push(b';');
            }
            let (name, value) = divided(piece);
            let is_sealed = self.seals(name);
            if is_sealed && let Some(opened) = open(name, value.trim_ascii(), sealer) {
                let blanks = value.len() - value.trim_ascii_start().len();
                let kept = piece.len() - value.len() + blanks + opened.len();
                to.extend_from_slice(&piece[..kept]);
                is_opened = true;
                continue;
            }
            to.extend_from_slice(piece);
            if is_sealed {
                changed.push(name.to_owned());
            }
            self.note_hidden(piece, changed);
        }
        is_opened
    }

    /// Adds names of sealed cookies after commas to `changed`, because servers that follow RFC 2109 also split cookies at
    /// commas.
    fn note_hidden(&self, piece: &[u8], changed: &mut Vec<Vec<u8>>) {
        for piece in piece.split(|byte| *byte == b',').skip(1) {
            let (name, _) = divided(piece);
            if piece.contains(&b'=') && self.seals(name) {
                changed.push(name.to_owned());
            }
        }
    }

    /// Whether a cookie of the application is excluded from sealing.
    pub fn leave(&self, name: &[u8]) -> bool {
        self.others.iter().any(|other| **other == *name)
    }

    /// Writes the name and value of a cookie that the application sets, sealed if required. Returns whether it was sealed.
    pub fn set(&self, name: &[u8], pair: &[u8], sealer: &impl Sealer, to: &mut Vec<u8>) -> bool {
        let is_sealed = self.seals(name);
        if is_sealed {
            let (_, value) = divided(pair);
            to.extend_from_slice(name);
            to.push(b'=');
            seal(name, value.trim_ascii(), sealer, to);
        } else {
            to.extend_from_slice(pair);
        }
        is_sealed
    }
}

/// Splits a cookie into its name, without surrounding blanks, and its value, with blanks.
fn divided(piece: &[u8]) -> (&[u8], &[u8]) {
    let equals = memchr::memchr(b'=', piece).unwrap_or(piece.len());
    (piece[..equals].trim_ascii(), piece.get(equals + 1..).unwrap_or_default())
}

/// Appends the value with its tag, as sent to the client.
fn seal(name: &[u8], value: &[u8], sealer: &impl Sealer, to: &mut Vec<u8>) {
    let tag = sealer.tag(&message(name, value));
    to.extend_from_slice(value);
    to.push(b'.');
    write_text(&tag, to);
}

/// The value without its tag; `None`: the tag is invalid.
fn open<'a>(name: &[u8], sealed: &'a [u8], sealer: &impl Sealer) -> Option<&'a [u8]> {
    let (value, tail) = sealed.split_at_checked(sealed.len().checked_sub(TAG_TEXT_BYTES)?)?;
    let tag = read_text(tail.strip_prefix(b".")?)?;
    sealer.is_tag(&message(name, value), &tag).then_some(value)
}

/// The input of the tag. It begins with the length of the name, so that no other name and value produce the same bytes.
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

/// Parses the text of a tag. Each tag has exactly one valid text.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A keyed hash for tests, without security.
    struct Plain(u8);

    impl Sealer for Plain {
        fn tag(&self, message: &[u8]) -> [u8; TAG_BYTES] {
            let mut tag = [self.0; TAG_BYTES];
            for (index, byte) in message.iter().enumerate() {
                let place = index % tag.len();
                tag[place] = tag[place].rotate_left(3).wrapping_mul(31) ^ byte;
            }
            tag
        }

        fn is_tag(&self, message: &[u8], tag: &[u8; TAG_BYTES]) -> bool {
            self.tag(message) == *tag
        }
    }

    fn sealed(name: &[u8], value: &[u8]) -> Vec<u8> {
        let mut sealed = Vec::new();
        seal(name, value, &Plain(7), &mut sealed);
        sealed
    }

    #[test]
    fn cookies_come_back_as_they_were_set() {
        let sealer = Plain(7);
        for value in [&b""[..], b"a", b"a.b.c", b"\xff\x00;", b"0123456789012345678901234567890"] {
            let sealed = sealed(b"session", value);
            assert!(sealed.is_ascii() || !value.is_ascii());
            assert_eq!(open(b"session", &sealed, &sealer), Some(value));
            assert_eq!(open(b"sessions", &sealed, &sealer), None, "another name");
            assert_eq!(open(b"session", &sealed, &Plain(8)), None, "another key");
            for at in 0..sealed.len() {
                let mut changed = sealed.clone();
                changed[at] ^= 1;
                assert_eq!(open(b"session", &changed, &sealer), None, "byte {at}");
            }
            assert_eq!(open(b"session", value, &sealer), None);
        }
    }

    fn terms(sealed: &[&str]) -> CookieTerms {
        let sealed = sealed.iter().map(|text| CookieNames::new(text)).collect();
        CookieTerms { sealed, others: vec![b"WEIR"[..].into()] }
    }

    #[test]
    fn fields_are_opened() {
        let s = String::from_utf8(sealed(b"s", b"v")).expect("text");
        let cart = String::from_utf8(sealed(b"cart_1", b"x y")).expect("text");
        for (field, expected, changed) in [
            (format!("s={s}"), "s=v", &[][..]),
            (format!("a=1; s={s}; t=2"), "a=1; s=v; t=2", &[]),
            (format!(" s = {s} ;;x"), " s = v;;x", &[]),
            (format!("cart_1={cart}; s={s}"), "cart_1=x y; s=v", &[]),
            ("a=1; WEIR=x".to_owned(), "a=1; WEIR=x", &[]),
            ("s=v".to_owned(), "s=v", &["s"]),
            (format!("s={s}; s=v"), "s=v; s=v", &["s"]),
            ("s".to_owned(), "s", &["s"]),
            // Names that other servers interpret as the same name.
            (format!("S={s}"), "", &["S"]),
            (format!("%73={s}"), "", &["%73"]),
            ("cart.1=x".to_owned(), "", &["cart.1"]),
            ("a=1,s=v".to_owned(), "", &["s"]),
            ("a,s=v".to_owned(), "", &["s"]),
            ("s[x]=v".to_owned(), "", &["s[x]"]),
            ("s\u{85}=v".to_owned(), "", &["s\u{85}"]),
            ("\u{2003}s=v".to_owned(), "", &["\u{2003}s"]),
            ("a=1,t=v".to_owned(), "a=1,t=v", &[]),
        ] {
            let (mut names, mut to) = (Vec::new(), Vec::new());
            let is_opened =
                terms(&["s", "cart_*"]).open(field.as_bytes(), &Plain(7), &mut names, &mut to);
            let names: Vec<String> =
                names.into_iter().map(|name| String::from_utf8(name).expect("text")).collect();
            assert_eq!(names, changed, "{field}");
            let expected = if expected.is_empty() { &*field } else { expected };
            assert_eq!(String::from_utf8_lossy(&to), expected, "{field}");
            assert_eq!(is_opened, expected != field, "{field}");
        }
    }

    #[test]
    fn cookies_are_set() {
        let s = String::from_utf8(sealed(b"s", b"v")).expect("text");
        let some = terms(&["s", "cart_*"]);
        for (name, pair, expected) in [
            ("s", "s=v", format!("s={s}")),
            ("s", " s = v ", format!("s={s}")),
            ("a", " a = b ", " a = b ".into()),
            ("WEIR", "WEIR=x", "WEIR=x".into()),
        ] {
            let mut to = Vec::new();
            let is_sealed = some.set(name.as_bytes(), pair.as_bytes(), &Plain(7), &mut to);
            assert_eq!(String::from_utf8_lossy(&to), expected);
            assert_eq!(is_sealed, pair != expected, "{pair}");
        }
        assert!(some.leave(b"WEIR") && !some.leave(b"s"));
        let (none, mut to) = (terms(&[]), Vec::new());
        assert!(!none.set(b"a", b"a=b", &Plain(7), &mut to));
        let (every, mut to) = (terms(&["*"]), Vec::new());
        assert!(every.set(b"a", b"a=b", &Plain(7), &mut to));
        assert!(!every.open(b"WEIR=1", &Plain(7), &mut Vec::new(), &mut Vec::new()));
    }
}

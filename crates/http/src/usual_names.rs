//! Common field names. One table lookup tells that the name is valid, its length, and its field.

use crate::chars::{byte_mask, letters_to_lower};
use crate::fields::Kind;
use crate::message::FieldId;

/// Maximum length of a name in the table: the name and its colon must fit into two words.
const NAME_LENGTH_MAX: usize = 15;

/// Names with a meaning for an intermediary. Whether a name is in the table changes only the time that its line takes.
const KNOWN: [(&str, FieldId); 13] = [
    ("authorization", FieldId::Credentials),
    ("connection", FieldId::Connection),
    ("content-length", FieldId::ContentLength),
    ("date", FieldId::Date),
    ("expect", FieldId::Expect),
    ("host", FieldId::Host),
    ("http2-settings", FieldId::Http2Settings),
    ("keep-alive", FieldId::KeepAlive),
    ("max-forwards", FieldId::MaxForwards),
    ("proxy", FieldId::Proxy),
    ("te", FieldId::Te),
    ("trailer", FieldId::Trailer),
    ("upgrade", FieldId::Upgrade),
];

/// Other common names, in requests or in responses.
const OTHERS: [&str; 49] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "age",
    "allow",
    "alt-svc",
    "cache-control",
    "cf-ray",
    "content-range",
    "content-type",
    "cookie",
    "dnt",
    "etag",
    "expires",
    "forwarded",
    "if-match",
    "if-none-match",
    "if-range",
    "last-modified",
    "link",
    "location",
    "nel",
    "origin",
    "pragma",
    "priority",
    "range",
    "referer",
    "referrer-policy",
    "report-to",
    "retry-after",
    "sec-ch-ua",
    "sec-fetch-dest",
    "sec-fetch-mode",
    "sec-fetch-site",
    "sec-fetch-user",
    "server",
    "server-timing",
    "set-cookie",
    "user-agent",
    "vary",
    "via",
    "x-cache",
    "x-forwarded-for",
    "x-frame-options",
    "x-powered-by",
    "x-real-ip",
    "x-request-id",
];

/// A name in lower case and the colon after it as two words: the first byte is the lowest, and zeros follow the colon.
///
/// The colon marks the end of the name: without it, a name with zeros at its end would equal a shorter one.
type Words = [u64; 2];

#[derive(Clone, Copy)]
struct Entry {
    words: Words,
    kind: Kind,
    /// Length of the name in bytes.
    length: u8,
}

/// No name has these words, because their last byte is not a colon.
const NO_WORDS: Words = [u64::MAX; 2];

const SLOT_BITS: u32 = 8;

/// Found by search: every name has its own slot.
const MULTIPLIER: u64 = 0xda4d_64c3_295f_f017;

/// The slot of a name.
#[inline(always)]
const fn slot(words: Words) -> usize {
    let mixed = (words[0] ^ words[1].rotate_left(29)).wrapping_mul(MULTIPLIER);
    (mixed >> (u64::BITS - SLOT_BITS)) as usize
}

static TABLE: [Entry; 1 << SLOT_BITS] = {
    let empty = Entry { words: NO_WORDS, kind: Kind::of(FieldId::Other), length: 0 };
    let mut table = [empty; 1 << SLOT_BITS];
    let mut index = 0;
    while index < KNOWN.len() + OTHERS.len() {
        let (name, id) = if index < KNOWN.len() {
            KNOWN[index]
        } else {
            (OTHERS[index - KNOWN.len()], FieldId::Other)
        };
        let words = words_of(name.as_bytes());
        let entry = &mut table[slot(words)];
        assert!(entry.words[1] == NO_WORDS[1], "two names in one slot: take another multiplier");
        *entry = Entry { words, kind: Kind::of(id), length: name.len() as u8 };
        index += 1;
    }
    table
};

const fn words_of(name: &[u8]) -> Words {
    assert!(!name.is_empty() && name.len() <= NAME_LENGTH_MAX);
    let mut words = [0; 2];
    let mut at = 0;
    while at < name.len() {
        // Case folding does not distinguish other characters.
        assert!(matches!(name[at], b'a'..=b'z' | b'0'..=b'9' | b'-'));
        words[at / 8] |= (name[at] as u64) << (at % 8 * 8);
        at += 1;
    }
    words[at / 8] |= (b':' as u64) << (at % 8 * 8);
    words
}

/// The length and the kind of the name before the first colon of `line`, if it is in the table.
#[inline(always)]
pub(crate) fn usual_name(line: &[u8]) -> Option<(usize, Kind)> {
    let first = u64::from_le_bytes(*line.first_chunk()?);
    let colon = byte_mask(first, b':');
    let words = if colon != 0 {
        [letters_to_lower(first) & through(colon), 0]
    } else {
        let second = u64::from_le_bytes(*line.first_chunk::<16>()?.last_chunk()?);
        let colon = byte_mask(second, b':');
        if colon == 0 {
            return None;
        }
        [letters_to_lower(first), letters_to_lower(second) & through(colon)]
    };
    let entry = &TABLE[slot(words)];
    (entry.words == words).then_some((usize::from(entry.length), entry.kind))
}

/// A mask of all bytes up to and including the first byte whose high bit is set in `mask`.
#[inline(always)]
fn through(mask: u64) -> u64 {
    mask ^ (mask - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chars::is_token;
    use crate::fields::classify;

    const BEHIND: &str = ": a value that is long enough";

    fn names() -> impl Iterator<Item = &'static str> {
        KNOWN.iter().map(|(name, _)| *name).chain(OTHERS)
    }

    #[test]
    fn the_names_of_the_table_are_found_in_any_case() {
        for name in names() {
            assert!(is_token(name.as_bytes()));
            let expected = Some((name.len(), classify(name.as_bytes())));
            for spelling in [name.to_owned(), name.to_ascii_uppercase()] {
                assert_eq!(usual_name((spelling + BEHIND).as_bytes()), expected, "{name}");
            }
        }
    }

    /// Inserting or replacing any byte at any position turns a name into the same name in another case, or into a name
    /// outside the table.
    #[test]
    fn what_is_found_is_a_token_that_is_classified_alike() {
        for name in names() {
            for position in 0..=name.len() {
                for (byte, taken) in (0..=255_u8).flat_map(|byte| [(byte, 0), (byte, 1)]) {
                    let mut line = format!("{name}{BEHIND}").into_bytes();
                    line.splice(position..position + taken, [byte]);
                    check_found(&line);
                }
            }
            for byte in [0, b' ', b'\t', b'\r', b'\n', 0x1a, 0x80, 0xff] {
                for length in 1..=NAME_LENGTH_MAX {
                    let behind = vec![byte; length];
                    check_found(&[name.as_bytes(), &behind, BEHIND.as_bytes()].concat());
                    check_found(&[&behind, name.as_bytes(), BEHIND.as_bytes()].concat());
                }
            }
        }
    }

    fn check_found(line: &[u8]) {
        let Some((length, kind)) = usual_name(line) else { return };
        let found = &line[..length];
        assert!(is_token(found) && line[length] == b':', "{}", line.escape_ascii());
        assert!(names().any(|name| found.eq_ignore_ascii_case(name.as_bytes())));
        assert_eq!(kind, classify(found), "{}", line.escape_ascii());
    }

    #[test]
    fn lines_that_end_early_are_not_judged() {
        for line in
            ["", "Host: a", "Content-Length:", ":", "::::::::::::::::", "no colon within it"]
        {
            assert_eq!(usual_name(line.as_bytes()), None, "{line}");
        }
        assert!(usual_name(b"Host: ab").is_some());
    }
}

//! Byte classes of the HTTP grammars, and word-at-a-time search for control characters.

/// Whether a byte is allowed in a token (RFC 9110 section 5.6.2).
pub(crate) const fn is_token_byte(byte: u8) -> bool {
    TOKEN[byte as usize]
}

/// Whether a text is a token (RFC 9110 section 5.6.2): the name of a method or of a field.
pub fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|byte| is_token_byte(*byte))
}

static TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric()
            || matches!(
                byte as u8,
                b'!' | b'#'
                    | b'$'
                    | b'%'
                    | b'&'
                    | b'\''
                    | b'*'
                    | b'+'
                    | b'-'
                    | b'.'
                    | b'^'
                    | b'_'
                    | b'`'
                    | b'|'
                    | b'~'
            );
        byte += 1;
    }
    table
};

/// Length of the token at the start of `bytes`.
#[inline(always)]
pub(crate) fn token_length(bytes: &[u8]) -> usize {
    run_length(bytes, &TOKEN)
}

/// The number of bytes at the start of `bytes` that are in the class.
#[inline(always)]
pub(crate) fn run_length(bytes: &[u8], class: &[bool; 256]) -> usize {
    let is_in = |byte: u8| class[usize::from(byte)];
    let mut rest = bytes;
    // Fewer branches than one by one.
    while let [one, two, three, four, tail @ ..] = rest
        && is_in(*one) & is_in(*two) & is_in(*three) & is_in(*four)
    {
        rest = tail;
    }
    while let [byte, tail @ ..] = rest
        && is_in(*byte)
    {
        rest = tail;
    }
    bytes.len() - rest.len()
}

/// The high bit of every byte that is a letter; other bits have no meaning. No byte of the input may have its high bit set.
#[inline(always)]
fn letter_mask(low_bits: u64) -> u64 {
    range_mask(low_bits | (ONES * 0x20), b'a', b'z')
}

/// The high bit of every byte from `first` to `last`; otherwise as [`letter_mask`].
#[inline(always)]
fn range_mask(low_bits: u64, first: u8, last: u8) -> u64 {
    // Additions to seven-bit values carry into the byte's own high bit, and no further.
    let from_first = low_bits + ONES * (0x80 - u64::from(first));
    let past_last = low_bits + ONES * (0x7f - u64::from(last));
    from_first ^ past_last
}

/// The end of the path that starts with the slash at `start`, and whether its spelling may differ from
/// the canonical path. Examines each byte once, and eight common bytes at a time.
#[inline]
pub(crate) fn scan_path(input: &[u8], start: usize) -> (usize, bool) {
    if input.get(start + 1) == Some(&b' ') {
        return (start + 1, false);
    }
    let mut is_special = false;
    let mut at = start + 1;
    while let Some(bytes) = input[at - 1..].first_chunk::<9>() {
        let [first, word @ ..] = bytes;
        let word = u64::from_le_bytes(*word);
        let before = (word << 8) | u64::from(*first);
        let uncommon = uncommon_in_path_mask(word);
        let behind_slash = behind_slash_mask(before, word);
        if uncommon == 0 {
            is_special |= behind_slash != 0;
            at += 8;
            continue;
        }
        is_special |= behind_slash & (uncommon & uncommon.wrapping_neg()).wrapping_sub(1) != 0;
        at += uncommon.trailing_zeros() as usize / 8;
        match PATH[usize::from(input[at])] {
            PathByte::Plain | PathByte::Mark => {}
            PathByte::Special => is_special = true,
            PathByte::Query | PathByte::End | PathByte::Refused => return (at, is_special),
        }
        at += 1;
    }
    while let Some(byte) = input.get(at) {
        match PATH[usize::from(*byte)] {
            PathByte::Plain => {}
            PathByte::Mark => is_special |= input[at - 1] == b'/',
            PathByte::Special => is_special = true,
            PathByte::Query | PathByte::End | PathByte::Refused => break,
        }
        at += 1;
    }
    (at, is_special)
}

/// The high bit of every byte that is neither a letter nor a digit nor one of `-`, `.` and `/`.
#[inline(always)]
fn uncommon_in_path_mask(word: u64) -> u64 {
    let low_bits = word & !HIGH_BITS;
    // `-`, `.`, `/` and the digits follow one another.
    let common = letter_mask(low_bits) | range_mask(low_bits, b'-', b'9');
    (!common | word) & HIGH_BITS
}

/// The high bit of every dot or slash in `word` whose predecessor in `before` is a slash. Only for bytes below 0x80.
#[inline(always)]
fn behind_slash_mask(before: u64, word: u64) -> u64 {
    let not_slash = ((before & !HIGH_BITS) ^ (ONES * b'/' as u64)) + !HIGH_BITS;
    // Dot and slash differ in their lowest bit alone.
    let not_mark = ((word & !HIGH_BITS & !ONES) ^ (ONES * b'.' as u64)) + !HIGH_BITS;
    !(not_slash | not_mark) & HIGH_BITS
}

/// Whether `bytes` is `word`, ignoring case. The word consists of lower-case letters, digits and
/// hyphens, and `bytes` contain no control character: then setting one bit folds the case exactly, and
/// the comparison takes a few instructions, where a general one takes a dozen per byte.
#[inline]
pub(crate) fn is_word<const LENGTH: usize>(bytes: &[u8], word: &[u8; LENGTH]) -> bool {
    const CASE_BIT: u8 = 0x20;
    let Ok(bytes) = <&[u8; LENGTH]>::try_from(bytes) else {
        return false;
    };
    let mut difference = 0;
    for at in 0..LENGTH {
        difference |= (bytes[at] | CASE_BIT) ^ word[at];
    }
    difference == 0
}

/// Lower-case letters, and a hyphen for every character that is neither letter nor digit: a field name as CGI-like
/// members see it. `HTTP_X_USER` may have been `X-User`, `X_User` or `X.User` (Apache's `mod_cgi` and PHP fold all of
/// them, others only the underscore).
pub(crate) static FOLD: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let is_kept = (byte as u8).is_ascii_alphanumeric();
        table[byte] = if is_kept { (byte as u8).to_ascii_lowercase() } else { b'-' };
        byte += 1;
    }
    table
};

/// Whether two names are equal for servers that treat `-`, `_` and `.` alike and ignore case.
pub(crate) fn is_alike(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len()
        && std::iter::zip(one, other)
            .all(|(one, other)| FOLD[usize::from(*one)] == FOLD[usize::from(*other)])
}

/// The meaning of a byte inside the path of a request target.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathByte {
    /// Stands for itself.
    Plain,
    /// `/` and `.`: directly after a slash they make an empty segment or a dot segment.
    Mark,
    /// `%`, `;` and `\\`, and bytes that clients send raw although RFC 3986 requires them to be encoded.
    Special,
    /// `?` ends the path.
    Query,
    /// A space ends the target.
    End,
    /// A byte that is refused.
    Refused,
}

pub(crate) static PATH: [PathByte; 256] = {
    let mut table = [PathByte::Refused; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'/' | b'.' => PathByte::Mark,
            b'?' => PathByte::Query,
            b' ' => PathByte::End,
            b'%' | b';' | b'\\' => PathByte::Special,
            b'|' | b'^' | b'{' | b'}' | b'[' | b']' | b'`' => PathByte::Special,
            byte if is_raw_byte(byte) => PathByte::Special,
            b'#' => PathByte::Refused,
            0x21..=0x7e => PathByte::Plain,
            _ => PathByte::Refused,
        };
        byte += 1;
    }
    table
};

/// Whether a byte is not permitted in a target but accepted and encoded: see [`RawBytes`](crate::path::RawBytes).
pub(crate) const fn is_raw_byte(byte: u8) -> bool {
    matches!(byte, b'"' | b'<' | b'>' | 0x80..)
}

/// Appends `%` and two digits (RFC 3986 section 2.1).
pub(crate) fn push_escape(byte: u8, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let digits = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
    out.extend_from_slice(&[b'%', digits[0], digits[1]]);
}

/// Whether a byte is allowed unencoded in the query: the bytes allowed in the path, and `?`.
pub(crate) const fn is_query_byte(byte: u8) -> bool {
    !is_raw_byte(byte) && !matches!(PATH[byte as usize], PathByte::Refused | PathByte::End)
}

/// The length of the query bytes at the start of `bytes`.
pub(crate) fn query_length(bytes: &[u8]) -> usize {
    static QUERY: [bool; 256] = {
        let mut table = [false; 256];
        let mut byte = 0;
        while byte < 256 {
            table[byte] = is_query_byte(byte as u8);
            byte += 1;
        }
        table
    };
    run_length(bytes, &QUERY)
}

/// `ALPHA / DIGIT / "-" / "." / "_" / "~"` (RFC 3986 section 2.3).
pub(crate) const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Bytes allowed in a path segment that are neither unreserved nor the semicolon: `sub-delims`, `:` and `@` (RFC 3986
/// section 3.3).
pub(crate) const fn is_segment_delimiter(byte: u8) -> bool {
    matches!(
        byte,
        b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b'=' | b':' | b'@'
    )
}

/// Value of a hexadecimal digit.
pub(crate) const fn hex_value(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// Optional whitespace (RFC 9110 section 5.6.3).
pub(crate) const fn is_ows(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// `bytes` without optional whitespace at its ends.
pub fn trim_ows(mut bytes: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = bytes
        && is_ows(*first)
    {
        bytes = rest;
    }
    while let [rest @ .., last] = bytes
        && is_ows(*last)
    {
        bytes = rest;
    }
    bytes
}

/// The elements of a comma-separated list, without empty ones (RFC 9110 section 5.6.1.2).
pub fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(trim_ows).filter(|element| !element.is_empty())
}

const ONES: u64 = u64::MAX / 0xff;
const HIGH_BITS: u64 = ONES * 0x80;

/// The high bit of every byte that is `byte`. Bits above the lowest one set may be wrong (a borrow runs
/// upwards), so only the lowest may be used.
#[inline(always)]
pub(crate) fn byte_mask(word: u64, byte: u8) -> u64 {
    let difference = word ^ (ONES * u64::from(byte));
    difference.wrapping_sub(ONES) & !difference & HIGH_BITS
}

/// The bytes of `word` with its letters in lower case. Digits, hyphens and control characters stay unchanged; some
/// other bytes change, but never into one of those.
#[inline(always)]
pub(crate) const fn letters_to_lower(word: u64) -> u64 {
    word | ((word & (ONES * 0x40)) >> 1)
}

/// The index of the first control character (0x00-0x1f except HTAB, 0x7f) at or after `from`.
#[inline(always)]
pub(crate) fn find_control(input: &[u8], from: usize) -> Option<usize> {
    let mut rest = input.get(from..)?;
    while let Some((chunk, tail)) = rest.split_first_chunk::<8>() {
        let mask = control_mask(u64::from_le_bytes(*chunk));
        if mask != 0 {
            let at = input.len() - rest.len() + mask.trailing_zeros() as usize / 8;
            if input[at] != b'\t' {
                return Some(at);
            }
            rest = &input[at + 1..];
        } else {
            rest = tail;
        }
    }
    let at = rest.iter().position(|byte| byte.is_ascii_control() && *byte != b'\t')?;
    Some(input.len() - rest.len() + at)
}

/// The high bit of every byte that is a control character. Bits above the lowest one set may be
/// wrong (a borrow runs upwards), so only the lowest may be used.
#[inline]
fn control_mask(word: u64) -> u64 {
    let below_space = word.wrapping_sub(ONES * 0x20) & !word;
    (below_space & HIGH_BITS) | byte_mask(word, 0x7f)
}

/// The bytes behind the first CR LF, if no other control character and no byte beyond ASCII precedes it. `None` says
/// nothing about the line.
#[inline(always)]
pub(crate) fn behind_plain_line(bytes: &[u8]) -> Option<&[u8]> {
    let mut rest = bytes;
    let mask = loop {
        let Some((chunk, tail)) = rest.split_first_chunk::<8>() else {
            // The rest is the end of the last eight bytes; those before it are plain.
            let last = u64::from_le_bytes(*bytes.last_chunk::<8>()?);
            break unusual_mask(last).checked_shr(u64::BITS - 8 * rest.len() as u32)?;
        };
        let mask = unusual_mask(u64::from_le_bytes(*chunk));
        if mask != 0 {
            break mask;
        }
        rest = tail;
    };
    rest.get(mask.trailing_zeros() as usize / 8..)?.strip_prefix(b"\r\n")
}

/// The high bit of every byte that is a control character or beyond ASCII. Only the lowest bit set may be
/// used, as with [`control_mask`].
#[inline(always)]
fn unusual_mask(word: u64) -> u64 {
    // A byte from which the subtraction borrows, or from which the addition carries, has its bit set.
    (word.wrapping_sub(ONES * 0x20) | word.wrapping_add(ONES)) & HIGH_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_tokens() {
        for (name, expected) in
            [("X-a_1", true), ("", false), ("a b", false), ("a:", false), ("é", false)]
        {
            assert_eq!(is_token(name.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn find_control_agrees_with_a_plain_search_on_every_byte_and_offset() {
        for byte in 0..=255_u8 {
            for length in 0..40 {
                for position in 0..length {
                    for filler in [b' ', b'~', 0x80, 0xff] {
                        let mut input = vec![filler; length];
                        input[position] = byte;
                        let expected =
                            (byte.is_ascii_control() && byte != b'\t').then_some(position);
                        assert_eq!(
                            find_control(&input, 0),
                            expected,
                            "{byte:#x} at {position} of {length}"
                        );
                    }
                }
            }
        }
        assert_eq!(find_control(b"\t\t\t\t\t\t\t\t\x7f\r", 0), Some(8));
        assert_eq!(find_control(b"\rabc\r", 1), Some(4));
        assert_eq!(find_control(b"\r", 2), None);
    }

    #[test]
    fn lines_that_are_plain_end_where_a_plain_search_ends_them() {
        for byte in 0..=255_u8 {
            for length in 0..40 {
                for position in 0..length {
                    let mut line = vec![b'~'; length];
                    line[position] = byte;
                    let is_plain = (b' '..=b'~').contains(&byte);
                    line.extend_from_slice(b"\r\n");
                    for behind in [b"".as_slice(), b"\r\n", b"\xff\0a\r\n more of it"] {
                        let input = [&line, behind].concat();
                        // Shorter inputs take another path.
                        let expected = (is_plain && input.len() >= 8).then_some(behind);
                        assert_eq!(
                            behind_plain_line(&input),
                            expected,
                            "{byte:#x} at {position} of {length}"
                        );
                    }
                    assert_eq!(behind_plain_line(&line[..length]), None);
                    assert_eq!(behind_plain_line(&line[..=length]), None);
                }
            }
        }
    }

    #[test]
    fn run_length_agrees_with_a_plain_search_on_every_byte_and_offset() {
        for byte in 0..=255_u8 {
            for length in 0..40 {
                for position in 0..length {
                    for filler in [b'a', b'Z', b'-', b'_', b'7'] {
                        let mut bytes = vec![filler; length];
                        bytes[position] = byte;
                        let expected = if is_token_byte(byte) { length } else { position };
                        assert_eq!(
                            token_length(&bytes),
                            expected,
                            "{byte:#x} at {position} of {length}"
                        );
                    }
                }
            }
        }
    }

    /// The same result, computed one byte at a time.
    fn plainly_scanned(path: &[u8]) -> (usize, bool) {
        let is_end = |byte: &u8| {
            matches!(PATH[usize::from(*byte)], PathByte::Query | PathByte::End | PathByte::Refused)
        };
        let end = path.iter().position(is_end).unwrap_or(path.len());
        let is_pair = |pair: &[u8]| pair[0] == b'/' && matches!(pair[1], b'/' | b'.');
        let is_special = |byte: &u8| PATH[usize::from(*byte)] == PathByte::Special;
        let path = &path[..end];
        (end, path.windows(2).any(is_pair) || path.iter().any(is_special))
    }

    #[test]
    fn scan_path_agrees_with_a_plain_search_on_every_pair_and_offset() {
        for filler in [b'a', b'7', b'_', b'/'] {
            for length in 2..28 {
                for position in 1..length - 1 {
                    for byte in 0..=255_u8 {
                        for next in [b'a', b'/', b'.', b' ', byte, filler] {
                            let mut path = vec![filler; length];
                            (path[0], path[position], path[position + 1]) = (b'/', byte, next);
                            assert_eq!(
                                scan_path(&path, 0),
                                plainly_scanned(&path),
                                "{}",
                                path.escape_ascii()
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn words_are_told_in_any_case() {
        assert!(is_word(b"keep-alive", b"keep-alive"));
        assert!(is_word(b"KEEP-Alive", b"keep-alive"));
        assert!(!is_word(b"keep_alive", b"keep-alive"));
        assert!(!is_word(b"keep-aliv", b"keep-alive"));
        for byte in (0..=255_u8).filter(|byte| !byte.is_ascii_control()) {
            for (word, want) in [([b'a'], b'a'), ([b'z'], b'z'), ([b'-'], b'-'), ([b'0'], b'0')] {
                assert_eq!(is_word(&[byte], &word), byte.eq_ignore_ascii_case(&want), "{byte:#x}");
            }
        }
    }

    #[test]
    fn lists_skip_empty_elements_and_whitespace() {
        let elements: Vec<_> = list(b" a ,, b\t,\t").collect();
        assert_eq!(elements, [b"a", b"b"]);
    }
}

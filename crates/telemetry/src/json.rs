//! Writes JSON and text in parts, for log lines.

use std::io::Write as _;

/// Maximum number of bytes of a request field in a line, such as the target or the host.
pub const SHOWN_BYTES_MAX: usize = 2048;

/// Appends formatted text. Writing to a `Vec` cannot fail.
pub fn put(out: &mut Vec<u8>, arguments: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(arguments);
}

/// Writes a comma and a key; the caller writes the value.
#[inline(always)]
pub fn put_text_key(out: &mut Vec<u8>, key: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(b"\":");
}

/// The two digits of every number below 100.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// Writes a number.
#[inline]
pub fn put_number(out: &mut Vec<u8>, number: u64) {
    // Nearly all numbers in a line are short. A constant length needs no copying loop.
    match number {
        0..10 => out.push(b'0' + number as u8),
        10..100 => out.extend_from_slice(&PAIRS[number as usize]),
        100..1_000 => put_three_digits(out, number),
        _ => put_long_number(out, number),
    }
}

fn put_long_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    while number >= 10 {
        start -= 2;
        digits[start..start + 2].copy_from_slice(&PAIRS[(number % 100) as usize]);
        number /= 100;
    }
    if number > 0 {
        start -= 1;
        digits[start] = b'0' + number as u8;
    }
    out.extend_from_slice(&digits[start..]);
}

/// Writes a number with leading zeros to at least three digits.
#[inline]
pub fn put_three_digits(out: &mut Vec<u8>, number: u64) {
    if number > 999 {
        return put_long_number(out, number);
    }
    let [tens, ones] = PAIRS[(number % 100) as usize];
    out.extend_from_slice(&[b'0' + (number / 100) as u8, tens, ones]);
}

/// Writes an id as 32 hexadecimal digits.
#[inline]
pub fn put_id(out: &mut Vec<u8>, id: u128) {
    let mut digits = [0; 32];
    for (part, place) in digits.chunks_exact_mut(8).zip([96, 64, 32, 0]) {
        part.copy_from_slice(&hexadecimal((id >> place) as u32));
    }
    out.extend_from_slice(&digits);
}

/// The eight hexadecimal digits of a number, computed in parallel in one word.
fn hexadecimal(number: u32) -> [u8; 8] {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let mut spread = u64::from(number);
    spread = (spread << 16 | spread) & 0x0000_FFFF_0000_FFFF;
    spread = (spread << 8 | spread) & 0x00FF_00FF_00FF_00FF;
    spread = (spread << 4 | spread) & 0x0F0F_0F0F_0F0F_0F0F;
    let is_letter = (spread + 6 * ONES) >> 4 & ONES;
    let to_letter = u64::from(b'a' - b'0' - 10);
    (spread + u64::from(b'0') * ONES + is_letter * to_letter).to_be_bytes()
}

/// Whether logs write a byte unchanged between quotation marks.
#[inline]
pub fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
}

/// The number of plain bytes at the start.
pub fn plain_length(shown: &[u8]) -> usize {
    if is_all_plain(shown) {
        return shown.len();
    }
    shown.iter().position(|byte| !is_plain(*byte)).unwrap_or(shown.len())
}

/// Whether all bytes are plain.
#[inline]
fn is_all_plain(shown: &[u8]) -> bool {
    // The last word overlaps the previous one, so that no byte is compared alone.
    if let Some(last) = shown.last_chunk::<8>() {
        let (words, _) = shown.as_chunks::<8>();
        return are_plain(*last) && words.iter().all(|word| are_plain(*word));
    }
    match (shown.first_chunk::<4>(), shown.last_chunk::<4>()) {
        (Some([a, b, c, d]), Some([e, f, g, h])) => are_plain([*a, *b, *c, *d, *e, *f, *g, *h]),
        _ => shown.iter().all(|byte| is_plain(*byte)),
    }
}

/// Whether eight bytes are all plain.
#[inline]
fn are_plain(word: [u8; 8]) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * ONES;
    let word = u64::from_le_bytes(word);
    // For bytes below 0x80, a borrow starts only at a byte that is not plain.
    let is_below = |limit: u8, word: u64| word.wrapping_sub(u64::from(limit) * ONES);
    let is_equal = |byte: u8| is_below(1, word ^ (u64::from(byte) * ONES));
    let found = word | is_below(b' ', word) | is_equal(b'"') | is_equal(b'\\') | is_equal(0x7F);
    found & HIGH == 0
}

/// Writes bytes that need not be UTF-8 as a JSON string. Each byte above ASCII is written as the code point with its value,
/// so that no byte is lost and every line is valid.
#[inline]
pub fn put_whole_string(out: &mut Vec<u8>, shown: &[u8]) {
    out.push(b'"');
    if is_all_plain(shown) {
        out.extend_from_slice(shown);
    } else {
        put_escaped(out, shown);
    }
    out.push(b'"');
}

/// Writes the content of a JSON string in which some bytes are escaped.
#[cold]
fn put_escaped(out: &mut Vec<u8>, shown: &[u8]) {
    let (plain, mut shown) = shown.split_at(plain_length(shown));
    out.extend_from_slice(plain);
    while let [byte, rest @ ..] = shown {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            _ => put(out, format_args!("\\u{byte:04x}")),
        }
        let (plain, next) = rest.split_at(plain_length(rest));
        out.extend_from_slice(plain);
        shown = next;
    }
}

/// Writes bytes as a JSON string, cut at [`SHOWN_BYTES_MAX`].
#[inline]
pub fn put_json_string(out: &mut Vec<u8>, value: &[u8]) {
    put_whole_string(out, &value[..value.len().min(SHOWN_BYTES_MAX)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_stay_valid_json() {
        for (value, json) in [
            (&b"plain"[..], r#""plain""#),
            (b"a\"b\\c", r#""a\"b\\c""#),
            (b"\x00\xff\n", r#""\u0000\u00ff\u000a""#),
            (b"", r#""""#),
        ] {
            let mut out = Vec::new();
            put_json_string(&mut out, value);
            assert_eq!(out, json.as_bytes());
        }
    }

    #[test]
    fn numbers() {
        for number in [0, 7, 9, 10, 42, 99, 100, 101, 999, 1_000, 1_234_567, u64::MAX] {
            let mut out = Vec::new();
            put_number(&mut out, number);
            assert_eq!(out, number.to_string().as_bytes());
            out.clear();
            put_three_digits(&mut out, number);
            assert_eq!(out, format!("{number:03}").as_bytes());
        }
    }

    #[test]
    fn ids() {
        for id in [0, 1, 0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210 << 64, u128::MAX] {
            let mut out = Vec::new();
            put_id(&mut out, id);
            assert_eq!(out, format!("{id:032x}").as_bytes());
        }
    }

    #[test]
    fn every_byte_at_every_place() {
        for byte in 0..=255 {
            for (place, length) in
                (0..20).flat_map(|length| (0..length).map(move |at| (at, length)))
            {
                let mut text = vec![b'~'; length];
                text[place] = byte;
                let expected = if is_plain(byte) { length } else { place };
                assert_eq!(plain_length(&text), expected, "{text:?}");
                assert_eq!(is_all_plain(&text), is_plain(byte), "{text:?}");
            }
        }
        // A borrow from a byte that is not plain must not hide another byte that is not plain.
        assert_eq!(plain_length(b"       \x1f \"      "), 7);
        assert_eq!(plain_length(b"\x1f\"\\\x7f\xff   "), 0);
    }
}

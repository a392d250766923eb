//! CSS 2 escapes (section 4.1.3).

use memchr::memchr;

use super::best_fit::is_full_width;
use super::digits::hex;
use super::replace::replace;
use super::whitespace::is_ascii_space;

/// Maximum number of digits in an escape.
const DIGITS_MAX: usize = 6;

/// Decodes `\` with one to six hexadecimal digits and one optional whitespace character after them. Of the number, the low
/// byte is used, and full-width forms become their ASCII characters, as in ModSecurity. Coraza (since 2026) writes UTF-8,
/// and U+FFFD for zero. The results for ASCII are the same, except that `\0` becomes a NUL here, which CRS removes in the
/// next step.
///
/// Before a line feed, the backslash is removed together with the line feed. Before any other byte and at the end, only the
/// backslash is removed.
pub(super) fn decode(input: &[u8], output: &mut Vec<u8>) -> bool {
    replace(
        input,
        output,
        |rest| memchr(b'\\', rest),
        |rest| {
            let (length, value) = escape(rest.get(1..).unwrap_or_default());
            (1 + length, Some(value))
        },
        |output, value| output.extend(value),
    )
}

/// The length of an escape after its backslash, and its byte if it encodes one.
fn escape(rest: &[u8]) -> (usize, Option<u8>) {
    let digits = rest.iter().take(DIGITS_MAX).map_while(|&byte| hex(byte));
    let (code, count) =
        digits.fold((0u32, 0), |(code, count), digit| (code << 4 | u32::from(digit), count + 1));
    if count > 0 {
        let space = rest.get(count).is_some_and(|&byte| is_ascii_space(byte));
        let low = code.to_le_bytes()[0];
        let full_width = u16::try_from(code).is_ok_and(is_full_width);
        let byte = if full_width { low + 0x20 } else { low };
        return (count + usize::from(space), Some(byte));
    }
    match rest {
        [] => (0, None),
        [b'\n', ..] => (1, None),
        [byte, ..] => (1, Some(*byte)),
    }
}

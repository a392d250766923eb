//! ASCII characters that lenient servers substitute for other characters ("best fit").

/// The mark of a letter without a best fit.
const NONE: u8 = b'.';

/// The letters from U+00C0 on, without diacritics.
const LETTERS: &[u8; 192] = b"AAAAAAACEEEEIIII\
DNOOOOO.OUUUUY..\
aaaaaaaceeeeiiii\
.nooooo.ouuuuy.y\
AaAaAaCcCcCcCcDd\
DdEeEeEeEeEeGgGg\
GgGgHhHhIiIiIiIi\
Ii..JjKk.LlLlLl.\
.LlNnNnNn...OoOo\
OoOoRrRrRrSsSsSs\
SsTtTtTtUuUuUuUu\
UuUuWwYyYZzZzZzs";

/// Whether this is the full-width form of a printable ASCII character. The code of that character is lower by 0xFEE0.
pub(super) fn is_full_width(code: u16) -> bool {
    matches!(code, 0xff01..=0xff5e)
}

/// The ASCII character that resembles this character: Latin letters lose their diacritics, and typographic quotes, dashes,
/// spaces and brackets become plain ones. ModSecurity uses the map that its recommended configuration loads (code page
/// 20127), and Coraza does the same. Without the map, a quote written as `%u02bc` becomes the byte 0xBC, which rules do not
/// match.
pub(super) fn best_fit(code: u16) -> Option<u8> {
    let ascii = match code {
        0x00..=0x7f => code.to_le_bytes()[0],
        0x00c0..=0x017f => {
            *LETTERS.get(usize::from(code - 0xc0)).filter(|&&letter| letter != NONE)?
        }
        0x00a0 | 0x2000..=0x200a | 0x202f | 0x205f | 0x3000 => b' ',
        0x02b9 | 0x02bc | 0x02c8 | 0x2018 | 0x2019 | 0x201b | 0x2032 => b'\'',
        0x02ba | 0x030e | 0x201c..=0x201f | 0x2033 => b'"',
        0x02cb | 0x0300 | 0x2035 => b'`',
        0x00ab | 0x2039 | 0x2329 | 0x3008 => b'<',
        0x00bb | 0x203a | 0x232a | 0x3009 => b'>',
        0x00ad | 0x2010..=0x2015 | 0x2212 => b'-',
        0x00b7 | 0x2022 | 0x2024 | 0x2026 => b'.',
        0x00b8 | 0x201a => b',',
        0x02cd | 0x0331 | 0x0332 => b'_',
        0x02c4 | 0x02c6 | 0x0302 => b'^',
        0x02dc | 0x0303 => b'~',
        0x2044 | 0x2215 => b'/',
        0x2216 => b'\\',
        0x00a6 | 0x2223 => b'|',
        0x2217 => b'*',
        0x2236 => b':',
        0x00a1 => b'!',
        0x00a4 => b'$',
        0x00a2 => b'c',
        0x00a5 => b'Y',
        0x00a9 => b'C',
        0x00aa => b'a',
        0x00ae => b'R',
        0x00ba => b'o',
        0x00b9 => b'1',
        0x00b2 => b'2',
        0x00b3 => b'3',
        _ => return None,
    };
    Some(ascii)
}

//! HTML character references.

use memchr::memchr;

use super::digits::hex;
use super::replace::replace;

/// A number above all code points. Larger numbers are replaced by it.
const CODE_BEYOND: u32 = 0x11_0000;

/// The non-breaking space of Latin-1.
const NBSP: u8 = 0xa0;

/// The names in ModSecurity, accepted in any case, with or without a semicolon.
const SHORT_NAMES: [(&[u8], u8); 5] =
    [(b"quot", b'"'), (b"amp", b'&'), (b"lt", b'<'), (b"gt", b'>'), (b"nbsp", NBSP)];

/// The other HTML names of ASCII characters. As in browsers, they need the semicolon and this case.
const LONG_NAMES: [(&[u8], u8); 37] = [
    (b"Tab", b'\t'),
    (b"NewLine", b'\n'),
    (b"excl", b'!'),
    (b"num", b'#'),
    (b"dollar", b'$'),
    (b"percnt", b'%'),
    (b"apos", b'\''),
    (b"lpar", b'('),
    (b"rpar", b')'),
    (b"ast", b'*'),
    (b"midast", b'*'),
    (b"plus", b'+'),
    (b"comma", b','),
    (b"period", b'.'),
    (b"sol", b'/'),
    (b"colon", b':'),
    (b"semi", b';'),
    (b"equals", b'='),
    (b"quest", b'?'),
    (b"commat", b'@'),
    (b"lsqb", b'['),
    (b"lbrack", b'['),
    (b"bsol", b'\\'),
    (b"rsqb", b']'),
    (b"rbrack", b']'),
    (b"Hat", b'^'),
    (b"lowbar", b'_'),
    (b"UnderBar", b'_'),
    (b"grave", b'`'),
    (b"DiacriticalGrave", b'`'),
    (b"lcub", b'{'),
    (b"lbrace", b'{'),
    (b"verbar", b'|'),
    (b"vert", b'|'),
    (b"VerticalLine", b'|'),
    (b"rcub", b'}'),
    (b"rbrace", b'}'),
];

const LONG_NAME_LEN_MAX: usize = b"DiacriticalGrave".len();

/// The decoded value of a reference.
enum Value {
    Byte(u8),
    Character(char),
}

/// Decodes decimal and hexadecimal numbers with any number of leading zeros (tests of CRS rule 944150 need them), and names.
/// The semicolon is optional.
///
/// A number below 256 becomes the byte with this value, as in ModSecurity. A larger number becomes its character in UTF-8,
/// as in Coraza: ModSecurity uses only a part of the digits, so that letters of other scripts become quotes and brackets. A
/// name without a semicolon ends when it is complete, as in browsers and Coraza: ModSecurity drops the letters after it, so
/// `&ltscript` would lose its `script`.
pub(super) fn decode(input: &[u8], output: &mut Vec<u8>) -> bool {
    replace(
        input,
        output,
        |rest| memchr(b'&', rest),
        |rest| match reference(rest) {
            Some((value, length)) => {
                let semicolon = usize::from(rest.get(length) == Some(&b';'));
                (length + semicolon, Some(value))
            }
            None => (1, None),
        },
        |output, value| match value {
            Value::Byte(byte) => output.push(byte),
            Value::Character(character) => {
                output.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
        },
    )
}

/// The reference at the start of `rest`, and its length without a semicolon.
fn reference(rest: &[u8]) -> Option<(Value, usize)> {
    match rest {
        [b'&', b'#', b'x' | b'X', digits @ ..] => {
            number(digits, 16).map(|(value, n)| (value, n + 3))
        }
        [b'&', b'#', digits @ ..] => number(digits, 10).map(|(value, n)| (value, n + 2)),
        [b'&', name @ ..] => named(name).map(|(byte, n)| (Value::Byte(byte), n + 1)),
        _ => None,
    }
}

fn number(input: &[u8], radix: u8) -> Option<(Value, usize)> {
    let digits = input.iter().map_while(|&byte| hex(byte).filter(|&digit| digit < radix));
    let (code, count) = digits.fold((0, 0), |(code, count), digit| {
        // The previous value is at most 0x110000, so this does not overflow.
        let code: u32 = code * u32::from(radix) + u32::from(digit);
        (code.min(CODE_BEYOND), count + 1)
    });
    if count == 0 {
        return None;
    }
    let value = match u8::try_from(code) {
        Ok(byte) => Value::Byte(byte),
        Err(_) => Value::Character(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)),
    };
    Some((value, count))
}

fn named(input: &[u8]) -> Option<(u8, usize)> {
    let short = SHORT_NAMES.iter().find(|(name, _)| {
        input.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
    });
    if let Some(&(name, byte)) = short {
        return Some((byte, name.len()));
    }
    let end = input.iter().take(LONG_NAME_LEN_MAX + 1).position(|&byte| byte == b';')?;
    let candidate = input.get(..end)?;
    let &(_, byte) = LONG_NAMES.iter().find(|(name, _)| *name == candidate)?;
    Some((byte, end))
}

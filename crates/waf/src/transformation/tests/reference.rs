//! Simple and slow versions of some transformations, for comparison.

use super::super::Transformation;
use super::super::best_fit::best_fit;

/// The result of the simple version; `None`: there is no simple version of the transformation.
pub(super) fn reference(transformation: Transformation, input: &[u8]) -> Option<Vec<u8>> {
    let plain: fn(&[u8]) -> Vec<u8> = match transformation {
        Transformation::UrlDecodeUni => url_decode_uni,
        Transformation::HtmlEntityDecode => html_entity_decode,
        Transformation::JsDecode => js_decode,
        Transformation::CssDecode => css_decode,
        Transformation::Lowercase => |input| input.iter().map(u8::to_ascii_lowercase).collect(),
        Transformation::RemoveNulls => {
            |input| input.iter().copied().filter(|&byte| byte != 0).collect()
        }
        Transformation::CompressWhitespace => |input| spaces(input, true),
        Transformation::RemoveWhitespace => |input| spaces(input, false),
        Transformation::CmdLine => cmd_line,
        Transformation::ReplaceComments => replace_comments,
        Transformation::SqlHexDecode => sql_hex_decode,
        _ => return None,
    };
    Some(plain(input))
}

/// The value of a text of digits; `None`: it is empty or contains another byte.
fn number(text: &[u8], radix: u32) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    if text.is_empty() || !text.chars().all(|character| character.is_digit(radix)) {
        return None;
    }
    // A number too large for the type is also too large for a character.
    Some(u64::from_str_radix(text.trim_start_matches('0'), radix).unwrap_or(
        match text.trim_matches('0') {
            "" => 0,
            _ => u64::MAX,
        },
    ))
}

/// The number of the `len` digits at `from`.
fn digits(input: &[u8], from: usize, len: usize, radix: u32) -> Option<u64> {
    number(input.get(from..from + len)?, radix)
}

fn full_width(code: u64) -> u8 {
    if (0xff01..=0xff5e).contains(&code) { (code - 0xfee0) as u8 } else { code as u8 }
}

fn url_decode_uni(input: &[u8]) -> Vec<u8> {
    let mut output = Vec::new();
    let mut at = 0;
    while at < input.len() {
        let escaped = input[at] == b'%';
        let unicode =
            escaped && input.get(at + 1).is_some_and(|&byte| byte == b'u' || byte == b'U');
        if unicode && let Some(code) = digits(input, at + 2, 4, 16) {
            output.push(best_fit(code as u16).unwrap_or(full_width(code)));
            at += 6;
        } else if escaped && let Some(code) = digits(input, at + 1, 2, 16) {
            output.push(code as u8);
            at += 3;
        } else {
            output.push(if input[at] == b'+' { b' ' } else { input[at] });
            at += 1;
        }
    }
    output
}

fn html_entity_decode(input: &[u8]) -> Vec<u8> {
    const NAMES: [(&str, u8); 5] =
        [("quot", b'"'), ("amp", b'&'), ("lt", b'<'), ("gt", b'>'), ("nbsp", 0xa0)];
    let mut output = Vec::new();
    let mut at = 0;
    while at < input.len() {
        let rest = input[at..].to_ascii_lowercase();
        let mut length = 0;
        if rest.starts_with(b"&#") {
            let (start, radix) = if rest.starts_with(b"&#x") { (3, 16) } else { (2, 10) };
            let count = (0..)
                .find(|count| digits(&rest, start + count, 1, radix).is_none())
                .expect("the input ends");
            if let Some(code) = digits(&rest, start, count, radix) {
                match code {
                    0..=255 => output.push(code as u8),
                    _ => {
                        let character = u32::try_from(code).ok().and_then(char::from_u32);
                        output.extend(character.unwrap_or('\u{fffd}').to_string().as_bytes());
                    }
                }
                length = start + count;
            }
        } else if let Some((name, byte)) =
            NAMES.iter().find(|(name, _)| rest.starts_with(format!("&{name}").as_bytes()))
        {
            output.push(*byte);
            length = 1 + name.len();
        } else if input[at..].starts_with(b"&colon;") {
            output.push(b':');
            length = b"&colon".len();
        }
        if length > 0 {
            at += length + usize::from(rest.get(length) == Some(&b';'));
        } else {
            output.push(input[at]);
            at += 1;
        }
    }
    output
}

fn js_decode(input: &[u8]) -> Vec<u8> {
    let mut output = Vec::new();
    let mut at = 0;
    while at < input.len() {
        let Some(&kind) = input.get(at + 1).filter(|_| input[at] == b'\\') else {
            output.push(input[at]);
            at += 1;
            continue;
        };
        let octal = (1..=3).rev().find_map(|len| {
            digits(input, at + 1, len, 8).filter(|&code| code < 256).map(|code| (code, len))
        });
        let (byte, length) = match kind {
            b'u' if digits(input, at + 2, 4, 16).is_some() => {
                (full_width(digits(input, at + 2, 4, 16).unwrap_or(0)), 6)
            }
            b'x' if digits(input, at + 2, 2, 16).is_some() => {
                (digits(input, at + 2, 2, 16).unwrap_or(0) as u8, 4)
            }
            b'0'..=b'7' => {
                let (code, len) = octal.expect("one digit at least");
                (code as u8, 1 + len)
            }
            b'a' => (7, 2),
            b'b' => (8, 2),
            b't' => (9, 2),
            b'n' => (10, 2),
            b'v' => (11, 2),
            b'f' => (12, 2),
            b'r' => (13, 2),
            other => (other, 2),
        };
        output.push(byte);
        at += length;
    }
    output
}

fn css_decode(input: &[u8]) -> Vec<u8> {
    let mut output = Vec::new();
    let mut at = 0;
    while at < input.len() {
        if input[at] != b'\\' {
            output.push(input[at]);
            at += 1;
            continue;
        }
        at += 1;
        let longest =
            (1..=6).rev().find_map(|len| digits(input, at, len, 16).map(|code| (code, len)));
        if let Some((code, len)) = longest {
            output.push(full_width(code));
            at += len;
            if input.get(at).is_some_and(|byte| b" \t\n\x0b\x0c\r".contains(byte)) {
                at += 1;
            }
        } else if let Some(&byte) = input.get(at) {
            if byte != b'\n' {
                output.push(byte);
            }
            at += 1;
        }
    }
    output
}

/// Removes whitespace, or replaces each run of it by one space.
fn spaces(input: &[u8], one_stays: bool) -> Vec<u8> {
    let mut output = Vec::new();
    let mut before = false;
    let mut take = |part: &[u8], space: bool| {
        if !space {
            output.extend_from_slice(part);
        } else if one_stays && !before {
            output.push(b' ');
        }
        before = space;
    };
    for chunk in input.utf8_chunks() {
        for character in chunk.valid().chars() {
            take(character.to_string().as_bytes(), character.is_whitespace());
        }
        for &byte in chunk.invalid() {
            take(&[byte], byte == 0xa0);
        }
    }
    output
}

fn cmd_line(input: &[u8]) -> Vec<u8> {
    let mut text: Vec<u8> = input
        .iter()
        .filter(|byte| !b"\"'\\^".contains(byte))
        .map(|byte| if b",;\t\r\n".contains(byte) { b' ' } else { byte.to_ascii_lowercase() })
        .collect();
    text.dedup_by(|next, byte| *next == b' ' && *byte == b' ');
    let mut output = Vec::new();
    for (at, &byte) in text.iter().enumerate() {
        let tight = matches!(text.get(at + 1), Some(b'/' | b'('));
        if byte != b' ' || !tight {
            output.push(byte);
        }
    }
    output
}

fn replace_comments(input: &[u8]) -> Vec<u8> {
    let find = |text: &[u8], mark: &[u8]| text.windows(2).position(|window| window == mark);
    let mut output = Vec::new();
    let mut rest = input;
    while let Some(start) = find(rest, b"/*") {
        output.extend_from_slice(&rest[..start]);
        output.push(b' ');
        let comment = &rest[start + 2..];
        rest = find(comment, b"*/").map_or(&b""[..], |end| &comment[end + 2..]);
    }
    output.extend_from_slice(rest);
    output
}

fn sql_hex_decode(input: &[u8]) -> Vec<u8> {
    let mut output = Vec::new();
    let mut at = 0;
    while at < input.len() {
        let marked = input[at..].to_ascii_lowercase().starts_with(b"0x");
        if !marked || digits(input, at + 2, 2, 16).is_none() {
            output.push(input[at]);
            at += 1;
            continue;
        }
        at += 2;
        while let Some(code) = digits(input, at, 2, 16) {
            output.push(code as u8);
            at += 2;
        }
    }
    output
}

//! JSON and text, piece by piece, for lines of logs.

use std::io::Write as _;

/// Bytes of one request field (target, host, …) that a line shows.
pub const SHOWN_BYTES_MAX: usize = 2048;

/// Writing to a `Vec` cannot fail.
pub fn put(out: &mut Vec<u8>, arguments: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(arguments);
}

/// A comma and a key, for a value that follows.
pub fn put_text_key(out: &mut Vec<u8>, key: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(b"\":");
}

/// A number.
pub fn put_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

/// A JSON string of bytes that need not be UTF-8: each byte above ASCII is shown as the code point
/// of its value, so that no byte is lost and every line is valid.
pub fn put_whole_string(out: &mut Vec<u8>, shown: &[u8]) {
    out.push(b'"');
    let mut plain_from = 0;
    for (index, &byte) in shown.iter().enumerate() {
        if matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&shown[plain_from..index]);
        plain_from = index + 1;
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            _ => put(out, format_args!("\\u{byte:04x}")),
        }
    }
    out.extend_from_slice(&shown[plain_from..]);
    out.push(b'"');
}

/// A JSON string, cut at [`SHOWN_BYTES_MAX`].
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
        for number in [0, 7, 10, 1_234_567, u64::MAX] {
            let mut out = Vec::new();
            put_number(&mut out, number);
            assert_eq!(out, number.to_string().as_bytes());
        }
    }
}

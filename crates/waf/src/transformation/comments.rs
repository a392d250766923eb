//! Comments of C, HTML, SQL and the shell.

use memchr::{memchr, memchr2_iter};

use super::replace::replace;
use super::scan::{self, tail};

/// The position of the next `/*`. It searches for the asterisk, which is rarer than the slash.
fn opening(input: &[u8]) -> Option<usize> {
    let mut from = 1;
    loop {
        let star = from + memchr(b'*', tail(input, from))?;
        if input.get(star - 1) == Some(&b'/') {
            return Some(star - 1);
        }
        from = star + 1;
    }
}

/// Replaces each `/* … */` by one space. A comment without an end extends to the end of the value.
pub(super) fn replace_by_space(input: &[u8], output: &mut Vec<u8>) -> bool {
    replace(
        input,
        output,
        opening,
        |rest| {
            let text = tail(rest, 2);
            let length = closing(text).unwrap_or(text.len());
            (2 + length, Some(()))
        },
        |output, ()| output.push(b' '),
    )
}

/// The length of a C comment, including its end.
fn closing(text: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let star = from + memchr(b'*', tail(text, from))?;
        if text.get(star + 1) == Some(&b'/') {
            return Some(star + 2);
        }
        from = star + 1;
    }
}

/// Removes `/* … */` and `<!-- … -->`, and everything from `--` or `#` on. Either end closes either comment, as in
/// ModSecurity. A comment without an end becomes a space.
///
/// ModSecurity copies the byte after a comment, and a NUL at the end of the value, without inspecting them. Here they are
/// handled like any other byte.
pub(super) fn remove(input: &[u8], output: &mut Vec<u8>) -> bool {
    replace(
        input,
        output,
        |rest| {
            scan::position(rest, |byte| {
                (byte == b'/') | (byte == b'<') | (byte == b'-') | (byte == b'#')
            })
        },
        |rest| {
            let opening = match rest {
                [b'/', b'*', ..] => 2,
                [b'<', b'!', b'-', b'-', ..] => 4,
                [b'#', ..] | [b'-', b'-', ..] => return (rest.len(), Some(&b""[..])),
                _ => return (1, None),
            };
            match closing_of_any(tail(rest, opening)) {
                Some(length) => (opening + length, Some(&b""[..])),
                None => (rest.len(), Some(&b" "[..])),
            }
        },
        |output, text| output.extend_from_slice(text),
    )
}

/// The length of a C or HTML comment, including its end.
fn closing_of_any(text: &[u8]) -> Option<usize> {
    memchr2_iter(b'*', b'-', text).find_map(|at| {
        let rest = tail(text, at);
        let length = if rest.starts_with(b"*/") {
            2
        } else if rest.starts_with(b"-->") {
            3
        } else {
            return None;
        };
        Some(at + length)
    })
}

/// Removes `/*`, `*/`, `<!--`, `-->`, `--` and `#`, but not the text between them.
pub(super) fn remove_marks(input: &[u8], output: &mut Vec<u8>) -> bool {
    // `<!--` and `-->` contain `--`.
    let candidate = scan::any_pair(input, |byte, next| {
        (byte == b'#')
            | (byte == b'-') & (next == b'-')
            | (byte == b'/') & (next == b'*')
            | (byte == b'*') & (next == b'/')
    });
    candidate
        && replace(
            input,
            output,
            |rest| rest.iter().position(|byte| matches!(byte, b'/' | b'*' | b'<' | b'-' | b'#')),
            |rest| match rest {
                [b'<', b'!', b'-', b'-', ..] => (4, Some(())),
                [b'-', b'-', b'>', ..] => (3, Some(())),
                [b'/', b'*', ..] | [b'*', b'/', ..] | [b'-', b'-', ..] => (2, Some(())),
                [b'#', ..] => (1, Some(())),
                _ => (1, None),
            },
            |_, ()| {},
        )
}

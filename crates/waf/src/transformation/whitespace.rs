//! ASCII and other whitespace.
//!
//! Other whitespace consists of the characters with the Unicode property White_Space in well-formed UTF-8, and the byte 0xA0
//! (the non-breaking space of Latin-1) outside a character. ModSecurity inspects single bytes, so it splits letters such as
//! `à` (C3 A0). Coraza inspects characters, but its `compressWhitespace` recognises fewer of them.

use super::replace::replace;
use super::scan;
use super::utf8;

/// Whether the byte is whitespace by C's `isspace`.
pub(super) const fn is_ascii_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

/// 1 for each byte that is not whitespace in C; 0 for whitespace.
static STAYS: [u8; 256] = {
    let mut stays = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        stays[byte] = !is_ascii_space(byte as u8) as u8;
        byte += 1;
    }
    stays
};

/// A fast test for bytes that can begin a whitespace character.
fn may_be_space(byte: u8) -> bool {
    (byte <= b' ') | (byte >= 0x80)
}

/// The length of the first character (one byte if it is malformed), and whether it is whitespace.
fn first_character(input: &[u8]) -> (usize, bool) {
    match input.first() {
        Some(&byte) if byte < 0x80 => (1, is_ascii_space(byte)),
        Some(&byte) => match utf8::character(input) {
            Some(character) => (character.len_utf8(), character.is_whitespace()),
            None => (1, byte == 0xa0),
        },
        None => (1, false),
    }
}

/// The end of a run of non-ASCII characters without whitespace. `length`: the length of its first character. Text in other
/// scripts is skipped as one run.
fn without_space(input: &[u8], mut length: usize) -> usize {
    while input.get(length).is_some_and(|&byte| byte >= 0x80) {
        let (next, space) = first_character(scan::tail(input, length));
        if space {
            break;
        }
        length += next;
    }
    length
}

/// Removes all whitespace. It is idempotent only for well-formed UTF-8: removing a space can join bytes to a character.
pub(super) fn remove(input: &[u8], output: &mut Vec<u8>) -> bool {
    output.resize(input.len(), 0);
    let mut rest = input;
    let mut written = 0;
    while !rest.is_empty() {
        let ascii = scan::position(rest, |byte| byte >= 0x80).unwrap_or(rest.len());
        let (words, other) = rest.split_at_checked(ascii).unwrap_or((rest, &[]));
        // Whitespace is also written, and then overwritten: a branch would be mispredicted at most words.
        for &byte in words {
            if let Some(place) = output.get_mut(written) {
                *place = byte;
            }
            written += usize::from(STAYS[usize::from(byte)]);
        }
        let (length, is_space) = first_character(other);
        let length = if is_space { length } else { without_space(other, length) };
        let (character, behind) = other.split_at_checked(length).unwrap_or((other, &[]));
        if !is_space {
            if let Some(places) = output.get_mut(written..written + character.len()) {
                places.copy_from_slice(character);
            }
            written += character.len();
        }
        rest = behind;
    }
    let is_changed = written < input.len();
    output.truncate(if is_changed { written } else { 0 });
    is_changed
}

/// Replaces each run of whitespace by one space.
pub(super) fn compress(input: &[u8], output: &mut Vec<u8>) -> bool {
    // Single spaces are frequent in text, so they are not candidates.
    let candidate = scan::any_pair(input, |byte, next| {
        (byte != b' ') & may_be_space(byte) | (byte == b' ') & (next == b' ')
    });
    candidate
        && replace(
            input,
            output,
            |rest| scan::position(rest, may_be_space),
            run,
            |output, ()| {
                output.push(b' ');
            },
        )
}

fn run(rest: &[u8]) -> (usize, Option<()>) {
    let (mut length, space) = first_character(rest);
    if !space {
        return (without_space(rest, length), None);
    }
    loop {
        let (next, space) = first_character(scan::tail(rest, length));
        if !space {
            break;
        }
        length += next;
    }
    let single = length == 1 && rest.first() == Some(&b' ');
    (length, (!single).then_some(()))
}

/// Removes ASCII whitespace at both ends.
pub(super) fn trim(input: &[u8], output: &mut Vec<u8>) -> bool {
    keep(input, without_end(without_start(input)), output)
}

/// Removes ASCII whitespace at the start.
pub(super) fn trim_start(input: &[u8], output: &mut Vec<u8>) -> bool {
    keep(input, without_start(input), output)
}

/// Removes ASCII whitespace at the end.
pub(super) fn trim_end(input: &[u8], output: &mut Vec<u8>) -> bool {
    keep(input, without_end(input), output)
}

fn without_start(mut input: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = input
        && is_ascii_space(*first)
    {
        input = rest;
    }
    input
}

fn without_end(mut input: &[u8]) -> &[u8] {
    while let [rest @ .., last] = input
        && is_ascii_space(*last)
    {
        input = rest;
    }
    input
}

fn keep(input: &[u8], part: &[u8], output: &mut Vec<u8>) -> bool {
    if part.len() == input.len() {
        return false;
    }
    output.extend_from_slice(part);
    true
}

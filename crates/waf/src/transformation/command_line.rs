//! Command lines of Unix and Windows shells.

use std::ops::Range;

use super::scan::{self, BLOCK, NO_NEIGHBOUR};

/// Removes `"`, `'`, `\` and `^`. Replaces each run of spaces, `,`, `;`, tabs and line breaks by one space, or removes it
/// before `/` and `(`. Converts letters to lower case.
pub(super) fn normalize(input: &[u8], output: &mut Vec<u8>) -> bool {
    if !scan::any_pair(input, changes) {
        return false;
    }
    output.extend(input.iter().map(|byte| becomes(*byte)));
    let (mut at, mut written) = (0, 0usize);
    while let Some(block) = chunk(output, at)
        && let Some(next) = chunk(output, at + 1)
    {
        let before = written.checked_sub(1).and_then(|last| output.get(last)).copied();
        let pairs = block.iter().zip(&next);
        let stays = !goes(before.unwrap_or(NO_NEIGHBOUR), block[0])
            & (pairs.fold(0, |found, (byte, next)| found | u8::from(goes(*byte, *next))) == 0);
        if stays && let Some(places) = output.get_mut(written..written + BLOCK) {
            places.copy_from_slice(&block);
            written += BLOCK;
        } else {
            written = compact(output, at..at + BLOCK, written);
        }
        at += BLOCK;
    }
    let end = output.len();
    written = compact(output, at..end, written);
    output.truncate(written);
    true
}

fn chunk(bytes: &[u8], at: usize) -> Option<[u8; BLOCK]> {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied()
}

/// The mark of a removed byte. It is not the replacement of any other byte.
const REMOVED: u8 = b'"';

/// The replacement of a byte, without a branch.
fn becomes(byte: u8) -> u8 {
    if is_removed(byte) {
        REMOVED
    } else if separates(byte) {
        b' '
    } else {
        byte.to_ascii_lowercase()
    }
}

/// Whether a byte after replacement is removed: always, or because of the next byte.
fn goes(byte: u8, next: u8) -> bool {
    (byte == REMOVED) | (byte == b' ') & is_behind_no_space(next)
}

/// Moves the remaining bytes of `places` behind the bytes already written. Returns the new length.
fn compact(bytes: &mut [u8], places: Range<usize>, mut written: usize) -> usize {
    for at in places {
        let Some(&byte) = bytes.get(at) else { break };
        let last = written.checked_sub(1);
        let is_behind_space = last.and_then(|last| bytes.get(last)) == Some(&b' ');
        if byte == REMOVED || is_behind_space && byte == b' ' {
            continue;
        }
        if is_behind_space && is_behind_no_space(byte) {
            written -= 1;
        }
        if let Some(place) = bytes.get_mut(written) {
            *place = byte;
        }
        written += 1;
    }
    written
}

fn is_removed(byte: u8) -> bool {
    (byte == b'"') | (byte == b'\'') | (byte == b'\\') | (byte == b'^')
}

/// Separators other than the space.
fn separates(byte: u8) -> bool {
    (byte == b',') | (byte == b';') | (byte == b'\t') | (byte == b'\r') | (byte == b'\n')
}

/// Whether a space is removed before this byte.
fn is_behind_no_space(byte: u8) -> bool {
    (byte == b' ') | (byte == b'/') | (byte == b'(')
}

/// Whether this byte changes, or is removed because of the next byte.
fn changes(byte: u8, next: u8) -> bool {
    let spare_space = (byte == b' ') & is_behind_no_space(next);
    byte.is_ascii_uppercase() | is_removed(byte) | separates(byte) | spare_space
}

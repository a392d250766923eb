//! Command lines of shells, of Unix and Windows.

use super::scan;

/// Removes `"`, `'`, `\` and `^`; a run of space, `,`, `;`, tab and line breaks becomes one space, and goes before `/` and `(`; letters
/// become lower case.
pub(super) fn normalize(input: &[u8], output: &mut Vec<u8>) -> bool {
    if !scan::any_pair(input, changes) {
        return false;
    }
    output.resize(input.len(), 0);
    let (mut written, mut space) = (0, false);
    for &byte in input {
        let becomes = BECOMES[usize::from(byte)];
        if becomes == REMOVED || (space && becomes == b' ') {
            continue;
        }
        // The space is the last byte written.
        if space && matches!(byte, b'/' | b'(') {
            written -= 1;
        }
        space = becomes == b' ';
        if let Some(place) = output.get_mut(written) {
            *place = becomes;
        }
        written += 1;
    }
    output.truncate(written);
    true
}

/// What stands for a byte that is removed, which no byte becomes.
const REMOVED: u8 = b'"';

/// What becomes of each byte.
static BECOMES: [u8; 256] = {
    let mut becomes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        becomes[byte] = match byte as u8 {
            b'"' | b'\'' | b'\\' | b'^' => REMOVED,
            b' ' | b',' | b';' | b'\t' | b'\r' | b'\n' => b' ',
            other => other.to_ascii_lowercase(),
        };
        byte += 1;
    }
    becomes
};

/// Whether this byte changes, or the next one because of it.
fn changes(byte: u8, next: u8) -> bool {
    let removed = (byte == b'"') | (byte == b'\'') | (byte == b'\\') | (byte == b'^');
    let to_space =
        (byte == b',') | (byte == b';') | (byte == b'\t') | (byte == b'\r') | (byte == b'\n');
    let spare_space = (byte == b' ') & ((next == b' ') | (next == b'/') | (next == b'('));
    byte.is_ascii_uppercase() | removed | to_space | spare_space
}

//! Command lines of shells, of Unix and Windows.

use super::scan;

/// Removes `"`, `'`, `\` and `^`; a run of space, `,`, `;`, tab and line breaks becomes one space, and goes before `/` and `(`; letters
/// become lower case.
pub(super) fn normalize(input: &[u8], output: &mut Vec<u8>) -> bool {
    if !scan::any_pair(input, changes) {
        return false;
    }
    output.reserve(input.len());
    let mut space = false;
    for &byte in input {
        match byte {
            b'"' | b'\'' | b'\\' | b'^' => continue,
            b' ' | b',' | b';' | b'\t' | b'\r' | b'\n' => {
                if !space {
                    output.push(b' ');
                }
                space = true;
                continue;
            }
            // The space is the last byte written.
            b'/' | b'(' if space => {
                output.pop();
            }
            _ => {}
        }
        output.push(byte.to_ascii_lowercase());
        space = false;
    }
    true
}

/// Whether this byte changes, or the next one because of it.
fn changes(byte: u8, next: u8) -> bool {
    let removed = (byte == b'"') | (byte == b'\'') | (byte == b'\\') | (byte == b'^');
    let to_space =
        (byte == b',') | (byte == b';') | (byte == b'\t') | (byte == b'\r') | (byte == b'\n');
    let spare_space = (byte == b' ') & ((next == b' ') | (next == b'/') | (next == b'('));
    byte.is_ascii_uppercase() | removed | to_space | spare_space
}

//! The path for decisions.

use crate::chars::{hex_value, is_segment_delimiter};

/// Appends the path for decisions, which servers resolve from the member's canonical path.
pub(super) fn write(out: &mut Vec<u8>) {
    let end = out.len();
    let mut at = 0;
    while at < end {
        match out[at] {
            b';' => {
                at = memchr::memchr(b'/', &out[at..end]).map_or(end, |length| at + length);
                continue;
            }
            b'/' => push_slash(out, end),
            b'%' => {
                // The path is canonical, so two hexadecimal digits follow.
                let digit = |at: usize| out.get(at).and_then(|digit| hex_value(*digit));
                let decoded = digit(at + 1).unwrap_or(0) << 4 | digit(at + 2).unwrap_or(0);
                if decoded == b'/' {
                    push_slash(out, end);
                } else if is_segment_delimiter(decoded) {
                    out.push(decoded);
                } else {
                    out.extend_from_within(at..at + 3);
                }
                at += 3;
                continue;
            }
            byte => out.push(byte),
        }
        at += 1;
    }
}

/// Appends a slash, unless the path that starts at `start` ends in one.
fn push_slash(out: &mut Vec<u8>, start: usize) {
    if out.len() == start || out.last() != Some(&b'/') {
        out.push(b'/');
    }
}

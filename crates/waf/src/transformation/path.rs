//! File paths.

use memchr::memrchr;

use super::scan;

/// Resolves empty segments, `.` and `..`. An absolute path cannot leave its root. A relative path retains each `..` that
/// leads out of it. A final slash is retained.
///
/// Whole segments are compared, as in Coraza: ModSecurity treats `foo..` as `..`.
pub(super) fn normalize(input: &[u8], output: &mut Vec<u8>) -> bool {
    let candidate = input.first() == Some(&b'.')
        || scan::any_pair(input, |left, right| {
            (left == b'/') & ((right == b'/') | (right == b'.'))
        });
    candidate && resolve(input, output, |byte| byte == b'/')
}

/// Like [`normalize`], but `\` is also a separator and becomes `/`.
pub(super) fn normalize_windows(input: &[u8], output: &mut Vec<u8>) -> bool {
    let candidate = input.first() == Some(&b'.')
        || scan::any_pair(input, |left, right| {
            (left == b'\\') | (left == b'/') & ((right == b'/') | (right == b'.'))
        });
    candidate && resolve(input, output, |byte| matches!(byte, b'/' | b'\\'))
}

fn resolve(input: &[u8], output: &mut Vec<u8>, is_separator: impl Fn(u8) -> bool) -> bool {
    let at_separator = |byte: Option<&u8>| byte.is_some_and(|&byte| is_separator(byte));
    let absolute = at_separator(input.first());
    output.reserve(input.len());
    if absolute {
        output.push(b'/');
    }
    let root = output.len();
    // `..` removes nothing before this position.
    let mut floor = root;
    for segment in input.split(|&byte| is_separator(byte)) {
        match segment {
            b"" | b"." => {}
            b".." if output.len() > floor => {
                let parent = memrchr(b'/', scan::tail(output, floor)).unwrap_or(0);
                output.truncate(floor + parent);
            }
            b".." if absolute => {}
            b".." => {
                append(segment, root, output);
                floor = output.len();
            }
            _ => append(segment, root, output),
        }
    }
    if at_separator(input.last()) && output.len() > root {
        output.push(b'/');
    }
    if output == input {
        output.clear();
        return false;
    }
    true
}

fn append(segment: &[u8], root: usize, output: &mut Vec<u8>) {
    if output.len() > root {
        output.push(b'/');
    }
    output.extend_from_slice(segment);
}

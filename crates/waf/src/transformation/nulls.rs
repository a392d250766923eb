//! NUL bytes.

use memchr::memchr;

use super::replace::replace;

/// Removes NUL bytes.
pub(super) fn remove(input: &[u8], output: &mut Vec<u8>) -> bool {
    replace(input, output, |rest| memchr(0, rest), |_| (1, Some(())), |_, ()| {})
}

/// Replaces each NUL byte by a space.
pub(super) fn replace_by_space(input: &[u8], output: &mut Vec<u8>) -> bool {
    replace(
        input,
        output,
        |rest| memchr(0, rest),
        |_| (1, Some(())),
        |output, ()| output.push(b' '),
    )
}

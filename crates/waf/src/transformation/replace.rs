//! The one loop that all decoders share: find a candidate, judge it, replace it.

use super::scan::tail;

/// Replaces parts of the input; false without writing anything if there is none to replace.
///
/// `find` tells where the next candidate stands in what is left. `judge` gets the input from there on and tells how many bytes it has
/// looked at (at least one), and what to put in their place: `None` leaves them. `write` puts it there.
pub(super) fn replace<'a, V>(
    input: &'a [u8],
    output: &mut Vec<u8>,
    find: impl Fn(&[u8]) -> Option<usize>,
    judge: impl Fn(&'a [u8]) -> (usize, Option<V>),
    write: impl Fn(&mut Vec<u8>, V),
) -> bool {
    let mut copied = 0;
    let mut searched = 0;
    while let Some(at) = find(tail(input, searched)) {
        let at = searched + at;
        let (length, value) = judge(tail(input, at));
        debug_assert!(length > 0, "the search must advance");
        searched = at + length.max(1);
        let Some(value) = value else { continue };
        if copied == 0 {
            output.reserve(input.len());
        }
        output.extend_from_slice(input.get(copied..at).unwrap_or_default());
        write(output, value);
        copied = searched;
    }
    if copied == 0 {
        return false;
    }
    output.extend_from_slice(tail(input, copied));
    true
}

/// [`replace`] for escapes that stand for one byte; `judge` tells `None` where there is no escape.
pub(super) fn replace_escapes(
    input: &[u8],
    output: &mut Vec<u8>,
    find: impl Fn(&[u8]) -> Option<usize>,
    judge: impl Fn(&[u8]) -> Option<(u8, usize)>,
) -> bool {
    replace(
        input,
        output,
        find,
        |rest| match judge(rest) {
            Some((byte, length)) => (length, Some(byte)),
            None => (1, None),
        },
        |output, byte| output.push(byte),
    )
}

//! The common loop of all decoders: find a candidate, decide, replace.

use super::scan::tail;

/// Replaces parts of the input. Returns `false` and writes nothing if there is no part to replace.
///
/// `find` returns the position of the next candidate in the remaining input. `judge` gets the input from that position on
/// and returns the number of bytes consumed (at least one) and their replacement; `None` leaves them unchanged. `write`
/// writes the replacement.
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

/// [`replace`] for escapes that encode one byte. `judge` returns `None` for bytes that are not an escape.
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

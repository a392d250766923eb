//! Fast scans of a value, in loops that the compiler vectorises. Tests of bytes combine comparisons with `|` and `&`, which
//! do not branch.

/// Number of bytes scanned between two branches if the position of a hit is not needed.
const STRETCH: usize = 256;

/// Number of bytes scanned between two branches if the position of a hit is needed.
pub(super) const BLOCK: usize = 16;

/// The neighbour of the last byte in [`any_pair`]: a letter, which no test of pairs accepts.
pub(super) const NO_NEIGHBOUR: u8 = b'a';

/// The input from position `from` on.
pub(super) fn tail(input: &[u8], from: usize) -> &[u8] {
    input.get(from..).unwrap_or_default()
}

/// Whether any byte passes the test.
pub(super) fn any(input: &[u8], test: impl Fn(u8) -> bool) -> bool {
    input.chunks(STRETCH).any(|stretch| any_at_once(stretch, &test))
}

/// Whether any byte and its right neighbour pass the test. The neighbour of the last byte is a letter.
pub(super) fn any_pair(input: &[u8], test: impl Fn(u8, u8) -> bool) -> bool {
    let Some((&last, lefts)) = input.split_last() else { return false };
    let mut stretches = lefts.chunks(STRETCH).zip(tail(input, 1).chunks(STRETCH));
    test(last, NO_NEIGHBOUR)
        || stretches.any(|(lefts, rights)| {
            let pairs = lefts.iter().zip(rights);
            pairs.fold(0, |found, (&left, &right)| found | u8::from(test(left, right))) != 0
        })
}

/// The position of the first byte that passes the test.
pub(super) fn position(input: &[u8], test: impl Fn(u8) -> bool) -> Option<usize> {
    if input.first().is_some_and(|&first| test(first)) {
        return Some(0);
    }
    let (blocks, _) = input.as_chunks::<BLOCK>();
    let clean = blocks.iter().take_while(|block| !any_at_once(*block, &test)).count() * BLOCK;
    tail(input, clean).iter().position(|&byte| test(byte)).map(|at| clean + at)
}

fn any_at_once(input: &[u8], test: impl Fn(u8) -> bool) -> bool {
    input.iter().fold(0, |found, &byte| found | u8::from(test(byte))) != 0
}

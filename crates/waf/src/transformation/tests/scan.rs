//! Fast scans find a hit at any position.

use super::super::scan::{any, any_pair, position};

/// Lengths close to multiples of blocks and stretches.
fn lengths() -> impl Iterator<Item = usize> {
    (0..35).chain(254..260).chain(510..515)
}

#[test]
fn a_byte_is_found_at_every_place() {
    for len in lengths() {
        let plain = vec![b'a'; len];
        assert!(!any(&plain, |byte| byte == b'x'));
        assert_eq!(position(&plain, |byte| byte == b'x'), None);
        for at in 0..len {
            let mut input = plain.clone();
            input[at..].fill(b'x');
            assert_eq!(position(&input, |byte| byte == b'x'), Some(at), "{at} of {len}");
            input[at + 1..].fill(b'a');
            assert!(any(&input, |byte| byte == b'x'), "{at} of {len}");
            assert_eq!(position(&input, |byte| byte == b'x'), Some(at), "{at} of {len}");
        }
    }
}

#[test]
fn a_pair_is_found_at_every_place() {
    let pair = |left, right| (left == b'x') & (right == b'y');
    for len in lengths() {
        for at in 0..len {
            let mut input = vec![b'y'; len];
            input[at] = b'x';
            let has_neighbour = at + 1 < len;
            assert_eq!(any_pair(&input, pair), has_neighbour, "{at} of {len}");
            assert!(any_pair(&input, |left, _| left == b'x'), "{at} of {len}");
            input[at] = b'y';
            assert!(!any_pair(&input, pair), "{at} of {len}");
        }
    }
}

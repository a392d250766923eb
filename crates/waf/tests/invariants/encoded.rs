//! The result of an encoded body does not depend on how it is split, and equals the result of other decoders.

use weir_waf::coding::{Coding, Inflater, codings};

/// A limit that small inputs can reach.
const INFLATED_BYTES_MAX: u64 = 1 << 16;

/// Checks an input: a byte for the codings, a byte for the split, and the body.
pub fn check(input: &[u8]) {
    let [choice, cut, body @ ..] = input else { return };
    let names = ["gzip", "deflate", "br", "zstd", "gzip, br", "zstd, gzip", "br, deflate"];
    let name = names[usize::from(*choice) % names.len()];
    let chain = codings(name.as_bytes()).expect("they are known");
    let whole = inflated(&chain, [body, b""]);
    let at = usize::from(*cut).min(body.len());
    assert_eq!(inflated(&chain, [&body[..at], &body[at..]]), whole, "{name}, cut at {at}");
    let Some(plain) = whole else { return };
    if !name.contains([',', 'd']) && !body.is_empty() {
        assert_eq!(weir_testing::decode(name, body), (plain, true), "{name}");
    }
}

/// The output of an inflater for a body in pieces; `None`: the body is invalid.
fn inflated(codings: &[Coding], pieces: [&[u8]; 2]) -> Option<Vec<u8>> {
    let (mut inflater, mut out) = (Inflater::new(codings, INFLATED_BYTES_MAX), Vec::new());
    let mut to = |bytes: &[u8]| out.extend_from_slice(bytes);
    let fed = pieces.into_iter().try_for_each(|piece| inflater.feed(piece, &mut to));
    let ended = fed.and_then(|()| inflater.finish(&mut to));
    assert!(out.len() as u64 <= INFLATED_BYTES_MAX, "{}", out.len());
    ended.ok().map(|()| out)
}

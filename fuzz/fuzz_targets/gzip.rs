#![no_main]
//! The project's own encoder for fast levels of gzip: its output decodes to the input. The body repeats the input, so that
//! there are distant matches.

use libdeflater::Decompressor;
use weir_compression::{Coding, Encoder, Flush, Level};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let [slice, flush, repeats, text @ ..] = input else {
        return;
    };
    let mut body = text.to_vec();
    for number in 0..u32::from(repeats % 64) {
        body.extend_from_slice(text);
        // These bytes occur only once.
        body.extend_from_slice(&number.wrapping_mul(0x9e37_79b1).to_le_bytes());
    }
    let slice_bytes = 1 + usize::from(*slice) * usize::from(*slice);
    let level = Level::new(1 + repeats / 128).expect("one of ours");
    let mut encoder = Encoder::new(Coding::Gzip, level).expect("memory");
    let mut out = Vec::new();
    for (number, slice) in body.chunks(slice_bytes).enumerate() {
        let is_flush = flush.rotate_left(number as u32 % 8) & 1 == 1;
        let flush = if is_flush { Flush::Sync } else { Flush::None };
        encoder.encode(slice, flush, &mut out).expect("it goes on");
    }
    encoder.encode(&[], Flush::Finish, &mut out).expect("it ends");
    let mut found = vec![0; body.len() + 1];
    let length = Decompressor::new().gzip_decompress(&out, &mut found);
    assert_eq!(length, Ok(body.len()));
    assert!(found[..body.len()] == body);
});

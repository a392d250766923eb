//! The part of WebSocket that HTTP/2 has not and HTTP/1.1 wants.

use std::hash::{BuildHasher, RandomState};

/// Bytes of a key (RFC 6455 section 4.1).
const KEY_BYTES: usize = 16;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Writes a new Sec-WebSocket-Key: 16 bytes that nobody can tell in advance, in Base64 (RFC 4648 section 4).
pub fn write_key(out: &mut Vec<u8>) {
    // Each state has keys of its own, made from the system's random numbers.
    let random = RandomState::new();
    let mut bytes = [0; KEY_BYTES];
    bytes[..8].copy_from_slice(&random.hash_one(0u8).to_le_bytes());
    bytes[8..].copy_from_slice(&random.hash_one(1u8).to_le_bytes());
    write_base64(&bytes, out);
}

fn write_base64(bytes: &[u8], out: &mut Vec<u8>) {
    for group in bytes.chunks(3) {
        let [first, second, third] =
            [0, 1, 2].map(|at| u32::from(group.get(at).copied().unwrap_or(0)));
        let bits = first << 16 | second << 8 | third;
        for place in 0..4 {
            let letter = ALPHABET[(bits >> (18 - 6 * place) & 63) as usize];
            out.push(if place <= group.len() { letter } else { b'=' });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_as_rfc_4648_section_10_has_it() {
        let cases = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, encoded) in cases {
            let mut out = Vec::new();
            write_base64(plain.as_bytes(), &mut out);
            assert_eq!(out, encoded.as_bytes(), "{plain}");
        }
    }

    #[test]
    fn keys_differ_and_are_of_16_bytes() {
        let (mut one, mut other) = (Vec::new(), Vec::new());
        write_key(&mut one);
        write_key(&mut other);
        assert_ne!(one, other);
        assert_eq!((one.len(), &one[22..]), (24, &b"=="[..]));
    }
}

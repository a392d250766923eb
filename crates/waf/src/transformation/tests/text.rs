//! Case, lengths and digests.

use super::super::Transformation;
use super::{check, transformed};

#[test]
fn lowercase() {
    check(
        Transformation::Lowercase,
        [
            (&b""[..], &b""[..]),
            (b"plain 0", b"plain 0"),
            (b"A", b"a"),
            (b"AZaz", b"azaz"),
            (b"@[`{", b"@[`{"),
            (b"SeLeCt * FROM", b"select * from"),
            ("É \u{212a}".as_bytes(), "É \u{212a}".as_bytes()),
            (b"\xc1\xff\x80", b"\xc1\xff\x80"),
            (b"\0A\0", b"\0a\0"),
            (b"0123456789abcdeF", b"0123456789abcdef"),
            (b"0123456789abcdefG", b"0123456789abcdefg"),
            (b"G123456789abcdef0123456789abcdef", b"g123456789abcdef0123456789abcdef"),
        ],
    );
}

#[test]
fn uppercase() {
    check(
        Transformation::Uppercase,
        [
            (&b""[..], &b""[..]),
            (b"PLAIN 0", b"PLAIN 0"),
            (b"a", b"A"),
            (b"AZaz", b"AZAZ"),
            (b"@[`{", b"@[`{"),
            (b"select * from", b"SELECT * FROM"),
            ("é ß".as_bytes(), "é ß".as_bytes()),
            (b"\xe1\xff\x80", b"\xe1\xff\x80"),
            (b"\0a\0", b"\0A\0"),
            (b"0123456789ABCDEf", b"0123456789ABCDEF"),
            (b"0123456789ABCDEFg", b"0123456789ABCDEFG"),
            (b"%u00e9", b"%U00E9"),
        ],
    );
}

#[test]
fn length() {
    for (len, expected) in [
        (0, "0"),
        (1, "1"),
        (2, "2"),
        (9, "9"),
        (10, "10"),
        (11, "11"),
        (99, "99"),
        (100, "100"),
        (101, "101"),
        (1000, "1000"),
        (65_535, "65535"),
        (100_000, "100000"),
    ] {
        let found = transformed(Transformation::Length, &vec![0xff; len]);
        assert_eq!(found, (true, expected.as_bytes().to_vec()));
    }
}

/// The digest in hexadecimal digits, as used by rules.
fn digest(transformation: Transformation, input: &[u8]) -> String {
    let (changed, raw) = transformed(transformation, input);
    assert!(changed);
    assert_eq!(raw.len(), transformation.output_len_max(input.len()));
    let (_, text) = transformed(Transformation::HexEncode, &raw);
    text.escape_ascii().to_string()
}

#[test]
fn md5() {
    // RFC 1321 section A.5.
    for (input, expected) in [
        (&b""[..], "d41d8cd98f00b204e9800998ecf8427e"),
        (b"a", "0cc175b9c0f1b6a831c399e269772661"),
        (b"abc", "900150983cd24fb0d6963f7d28e17f72"),
        (b"message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
        (b"abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"),
        // Hostile bytes, and the edges of a block.
        (b"\0", "93b885adfe0da089cdf634904fd59f71"),
        (b"\xff\x80\0", "1c3de5a5ff8863c6c9731b06d1702e10"),
        (b"<script>alert(1)</script>", "38fff51cb7248a06d6142c6bdf846831"),
        (&[b'a'; 55], "ef1772b6dff9a122358552954ad0df65"),
        (&[b'a'; 56], "3b0c8ac703f828b04c6c197006d17218"),
        (&[b'a'; 63], "b06521f39153d618550606be297466d5"),
        (&[b'a'; 64], "014842d480b571495a4a0363793f7367"),
        (&[b'a'; 65], "c743a45e0d2e6a95cb859adae0248435"),
        (&[0; 1000], "ede3d3b685b4e137ba4cb2521329a75e"),
    ] {
        assert_eq!(digest(Transformation::Md5, input), expected);
    }
}

#[test]
fn sha1() {
    // RFC 3174 section 7.3.
    for (input, expected) in [
        (&b""[..], "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
        (b"abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
        (
            b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1",
        ),
        // Hostile bytes, and the edges of a block.
        (b"\0", "5ba93c9db0cff93f52b521d7420e43f6eda2784f"),
        (b"\xff\x80\0", "2323f47623403ba4df16b1732c4a6d722e33442e"),
        (b"<script>alert(1)</script>", "d5f936942ce9128c48c06d488663b224e56f3df7"),
        (&[b'a'; 55], "c1c8bbdc22796e28c0e15163d20899b65621d65a"),
        (&[b'a'; 56], "c2db330f6083854c99d4b5bfb6e8f29f201be699"),
        (&[b'a'; 63], "03f09f5b158a7a8cdad920bddc29b81c18a551f5"),
        (&[b'a'; 64], "0098ba824b5c16427bd7a1122a5a442a25ec644d"),
        (&[b'a'; 65], "11655326c708d70319be2610e8a57d9a5b959d3b"),
        (&[0; 1000], "c577f7a37657053275f3e3ecc06ec22e6b909366"),
    ] {
        assert_eq!(digest(Transformation::Sha1, input), expected);
    }
}

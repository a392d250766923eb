//! Whitespace and NUL bytes.

use super::super::Transformation;
use super::check;

#[test]
fn compress_whitespace() {
    check(
        Transformation::CompressWhitespace,
        [
            (&b""[..], &b""[..]),
            (b"plain", b"plain"),
            (b" ", b" "),
            (b" a b c ", b" a b c "),
            (b"a  b", b"a b"),
            (b"  ", b" "),
            (b"\t", b" "),
            (b"a\t\n\x0b\x0c\r b", b"a b"),
            (b"a\nb", b"a b"),
            (b"a\xa0b", b"a b"),
            (b"a\xa0\xa0 b", b"a b"),
            (b"a\xc2\xa0b\xc2\x85c", b"a b c"),
            ("a\u{3000}\u{2003} b".as_bytes(), b"a b"),
            // The byte A0 is a part of these letters.
            ("à la Å".as_bytes(), "à la Å".as_bytes()),
            ("你  好".as_bytes(), "你 好".as_bytes()),
            (b"\xc2 \xa0", b"\xc2 "),
            (b"a\0\0b", b"a\0\0b"),
            (b"\x85\xff\xc2", b"\x85\xff\xc2"),
            (b"0123456789abcde  f", b"0123456789abcde f"),
            (b"0123456789abcdef  ", b"0123456789abcdef "),
        ],
    );
}

#[test]
fn remove_whitespace() {
    check(
        Transformation::RemoveWhitespace,
        [
            (&b""[..], &b""[..]),
            (b"plain", b"plain"),
            (b" ", b""),
            (b" a b c ", b"abc"),
            (b"a\t\n\x0b\x0c\r b", b"ab"),
            (b"a\xa0b\xc2\xa0c\xc2\x85d", b"abcd"),
            ("\u{3000}\u{2028}x".as_bytes(), b"x"),
            ("à la Å".as_bytes(), "àlaÅ".as_bytes()),
            (b"a\0b\x01\x1f\x7f", b"a\0b\x01\x1f\x7f"),
            (b"\x85\xff\xc2", b"\x85\xff\xc2"),
            (b"\xc3\xa0", b"\xc3\xa0"),
            (b"\xe2\xa0x", b"\xe2x"),
            (b"0123456789abcdef \xc3\xa9", b"0123456789abcdef\xc3\xa9"),
        ],
    );
}

const BOTH_ENDS: [&str; 6] = ["", "a", "a b", "a\tb", "\0", "\u{a0}a\u{a0}"];

#[test]
fn trim() {
    let own = [
        (" ", ""),
        (" \t\n\x0b\x0c\r", ""),
        (" a ", "a"),
        ("a ", "a"),
        (" a", "a"),
        ("\r\na b\r\n", "a b"),
        (" \0 ", "\0"),
    ];
    check(Transformation::Trim, BOTH_ENDS.map(|same| (same, same)).into_iter().chain(own));
}

#[test]
fn trim_left() {
    let own = [
        (" ", ""),
        (" \t\n\x0b\x0c\r", ""),
        (" a ", "a "),
        ("a ", "a "),
        (" a", "a"),
        ("\r\na b\r\n", "a b\r\n"),
        (" \0 ", "\0 "),
    ];
    check(Transformation::TrimLeft, BOTH_ENDS.map(|same| (same, same)).into_iter().chain(own));
}

#[test]
fn trim_right() {
    let own = [
        (" ", ""),
        (" \t\n\x0b\x0c\r", ""),
        (" a ", " a"),
        ("a ", "a"),
        (" a", " a"),
        ("\r\na b\r\n", "\r\na b"),
        (" \0 ", " \0"),
    ];
    check(Transformation::TrimRight, BOTH_ENDS.map(|same| (same, same)).into_iter().chain(own));
}

const NULLS: [(&[u8], &[u8], &[u8]); 12] = [
    (b"", b"", b""),
    (b"plain", b"plain", b"plain"),
    (b"\0", b"", b" "),
    (b"\0\0\0", b"", b"   "),
    (b"a\0b", b"ab", b"a b"),
    (b"\0a", b"a", b" a"),
    (b"a\0", b"a", b"a "),
    (b"a\0\0b\0c", b"abc", b"a  b c"),
    (b" \x01\xff", b" \x01\xff", b" \x01\xff"),
    (b"\xff\0\xfe", b"\xff\xfe", b"\xff \xfe"),
    (b"%00\\0", b"%00\\0", b"%00\\0"),
    (
        b"0123456789abcdef0123456789abcdef\0",
        b"0123456789abcdef0123456789abcdef",
        b"0123456789abcdef0123456789abcdef ",
    ),
];

#[test]
fn remove_nulls() {
    check(Transformation::RemoveNulls, NULLS.map(|(input, removed, _)| (input, removed)));
}

#[test]
fn replace_nulls() {
    check(Transformation::ReplaceNulls, NULLS.map(|(input, _, replaced)| (input, replaced)));
}

//! Base64 and hexadecimal digits.

use super::super::Transformation;
use super::check;

#[test]
fn base64_decode() {
    check(
        Transformation::Base64Decode,
        [
            (&b""[..], &b""[..]),
            (b"Zg==", b"f"),
            (b"Zm8=", b"fo"),
            (b"Zm9v", b"foo"),
            (b"Zm9vYg", b"foob"),
            (b"Zm9vYmE", b"fooba"),
            (b"Zm9vY", b"foo"),
            (b"Zm9v\r\nYmFy", b"foobar"),
            (b"Zm9v Ymk=", b"foo"),
            (b"Zm9v=YmFy", b"foo"),
            (b"Zm9-YmFy", b"fo"),
            (b"Zm9v\0YmFy", b"foo"),
            (b"Zm9v\xff", b"foo"),
            (b"=", b""),
            (b"!Zm9v", b""),
            (b"+/+/", b"\xfb\xff\xbf"),
            (b"AAAA", b"\0\0\0"),
            (b"/w", b"\xff"),
            (b"A", b""),
        ],
    );
}

#[test]
fn base64_decode_ext() {
    check(
        Transformation::Base64DecodeExt,
        [
            (&b""[..], &b""[..]),
            (b"Zg==", b"f"),
            (b"Zm9v", b"foo"),
            (b"Zm9vYg", b"foob"),
            (b"Zm9vYmE", b"fooba"),
            (b"Z.m9v", b"foo"),
            (b" Z m\t9\nv ", b"foo"),
            (b"Zm9v=YmFy", b"foobar"),
            (b"Zm9v\0\xff!YmFy", b"foobar"),
            (b"-_-_", b"\xfb\xff\xbf"),
            (b"+/+/", b"\xfb\xff\xbf"),
            (b"!?", b""),
            (b"A", b""),
        ],
    );
}

#[test]
fn base64_encode() {
    check(
        Transformation::Base64Encode,
        [
            (&b""[..], &b""[..]),
            (b"f", b"Zg=="),
            (b"fo", b"Zm8="),
            (b"foo", b"Zm9v"),
            (b"foob", b"Zm9vYg=="),
            (b"fooba", b"Zm9vYmE="),
            (b"foobar", b"Zm9vYmFy"),
            (b"\0", b"AA=="),
            (b"\0\0\0", b"AAAA"),
            (b"\xff", b"/w=="),
            (b"\xff\xff\xff", b"////"),
            (b"\xfb\xff\xbf", b"+/+/"),
        ],
    );
}

#[test]
fn hex_decode() {
    check(
        Transformation::HexDecode,
        [
            (&b""[..], &b""[..]),
            (b"41", b"A"),
            (b"4a4A", b"JJ"),
            (b"00ff", b"\0\xff"),
            (b"414", b"A"),
            (b"4", b""),
            (b"41zz41", b"A"),
            (b"4z41", b""),
            (b"z", b""),
            (b"41 41", b"A"),
            (b"41\0", b"A"),
            (b"41\xff1", b"A"),
            (b"3c7363726970743e", b"<script>"),
        ],
    );
}

#[test]
fn hex_encode() {
    check(
        Transformation::HexEncode,
        [
            (&b""[..], &b""[..]),
            (b"A", b"41"),
            (b"J", b"4a"),
            (b"\0", b"00"),
            (b"\xff", b"ff"),
            (b"\x0f\xf0", b"0ff0"),
            (b"<script>", b"3c7363726970743e"),
            (b"\r\n", b"0d0a"),
            (b" ", b"20"),
            (b"41", b"3431"),
            (b"\x7f\x80", b"7f80"),
            (b"\xc3\xa9", b"c3a9"),
        ],
    );
}

#[test]
fn sql_hex_decode() {
    check(
        Transformation::SqlHexDecode,
        [
            (&b""[..], &b""[..]),
            (b"plain x", b"plain x"),
            (b"0x41", b"A"),
            (b"0X4a4A", b"JJ"),
            (b"select 0x414243 from", b"select ABC from"),
            (b"0x", b"0x"),
            (b"0x4", b"0x4"),
            (b"0xg1", b"0xg1"),
            (b"0x414", b"A4"),
            (b"0x41g", b"Ag"),
            (b"00x41", b"0A"),
            (b"0x0x41", b"0xA"),
            (b"0x410x42", b"AB"),
            // The second zero belongs to the first string.
            (b"0x4100x42", b"A\0x42"),
            (b"x41", b"x41"),
            (b"0x00\xff", b"\0\xff"),
            (b"0\0x41", b"0\0x41"),
        ],
    );
}

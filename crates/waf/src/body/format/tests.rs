use super::*;

/// The first bytes of files, as programs write them.
const FILES: [(&str, &[u8]); 33] = [
    ("image/png", b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\x06"),
    ("image/jpeg", b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0"),
    ("image/gif", b"GIF89a\x01\0\x01\0\x80\0\0\xff\xff\xff\0\0\0"),
    ("image/webp", b"RIFF\x24\0\0\0WEBPVP8 \x18\0\0\0"),
    ("image/bmp", b"BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x02\0\0\0"),
    ("image/tiff", b"II*\0\x08\0\0\0"),
    ("image/x-icon", b"\0\0\x01\0\x01\0\x10\x10\0\0\x01\0\x20\0"),
    ("image/avif", b"\0\0\0\x20ftypavif\0\0\0\0avifmif1"),
    ("image/heic", b"\0\0\0\x18ftypheic\0\0\0\0"),
    ("audio/mpeg", b"ID3\x04\0\0\0\0\x02\x01TIT2\0\0\0\x05\0\0\x03"),
    ("audio/mpeg", b"\xff\xfb\x90\x64\0\0\0\0"),
    ("audio/wav", b"RIFF\x24\x08\0\0WAVEfmt \x10\0\0\0\x01\0"),
    ("audio/flac", b"fLaC\0\0\0\x22\x10\0\x10\0"),
    ("audio/ogg", b"OggS\0\x02\0\0\0\0\0\0\0\0"),
    ("video/mp4", b"\0\0\0<ftypisom\0\0\x02\0isomiso2"),
    ("video/mp4", b"\0\0\0{ftypisom\0\0\x02\0isomiso2"),
    ("video/mp4", b"\0\0\0\x20ftypisom\0\0\x02\0isomiso2"),
    ("video/webm", b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01"),
    ("font/woff2", b"wOF2\0\x01\0\0\0\0\x10\0"),
    ("font/ttf", b"\0\x01\0\0\0\x0c\0\x80\0\x03\0\x40"),
    ("application/pdf", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<</Type/Catalog>>"),
    ("application/zip", b"PK\x03\x04\x14\0\0\0\x08\0\x21\x5a"),
    ("application/gzip", b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x4b\x4c"),
    ("application/zstd", b"\x28\xb5\x2f\xfd\x04\x58\x61\0\0"),
    ("application/wasm", b"\0asm\x01\0\0\0"),
    ("application/msword", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0\0\0"),
    ("application/grpc", b"\0\0\0\0\x07\x0a\x05hello"),
    ("application/grpc-web-text", b"AAAAAAcKBWhlbGxv"),
    ("application/x-protobuf", b"\x0a\x24550e8400-e29b-41d4-a716-446655440000\x10\x01"),
    ("application/x-protobuf", b"\x0a\x05hello\x12\x03abc"),
    ("application/cbor", b"\xa2\x61a\x01\x61b\x82\x02\x03\xfb\x3f\xf1\x99\x99\x99\x99\x99\x9a"),
    ("application/msgpack", b"\x82\xa7compact\xc3\xa6schema\0"),
    (
        "application/x-git-upload-pack-request",
        b"0032want 0a53e9ddeaddad63ad106860237bbf53411d11a7\n00000009done\n",
    ),
];

#[test]
fn files_and_messages_are_recognised() {
    for (content_type, bytes) in FILES {
        assert!(is_binary(content_type.as_bytes(), bytes), "{content_type}: {bytes:?}");
    }
    let packed: Vec<u8> = (0..300u32).map(|at| (at * at * 7 + at / 3) as u8).collect();
    assert!(is_binary(b"application/octet-stream", &packed));
    // A file of another format than its type names.
    assert!(is_binary(b"image/png", FILES[1].1));
}

#[test]
fn texts_are_no_binary_format() {
    let long = ["x".repeat(64).as_bytes(), b"\0\xff\0\xff\0\xff\0\xff\0\xff"].concat();
    for bytes in [
        &b"{\"id\":\"1' or 1=1\"}"[..],
        b"\xef\xbb\xbf{\"a\":1}",
        b"\n\n[1, 2]",
        b"\x0b\xc2\xa0<?xml version=\"1.0\"?>",
        b"\0{\"a\":\"attack\"}",
        b"\0\0\x01\0\x01\0\x10\x10\0\0\x01\0{\"a\":\"attack\"}\0\xff",
        b"\0\0\x01\0\x01\0\x10\x10<!DOCTYPE a>\0\xff",
        b"{\"a\":\"attack\"}\0\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8\xf7",
        b"<a>attack</a>\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        b"id=1' or 1=1",
        b"caf\xe9 cr\xe8me",
        b"\xe9t\xe9",
        "\u{4f60}\u{597d}".as_bytes(),
        b"{\0\"\0a\0\"\0:\x001\0}\0",
        b"GIF89a",
        b"GIF89a&id=attack",
        b"BM&id=attack",
        b"RIFF&id=attack&x=WEBP",
        b"%PDF&id=attack",
        b"%PDF-1.4&id=attack",
        b"II&id=attack",
        b"MZ&id=attack and more text to come",
        b"ID3&id=attack",
        b"\n{\"a\":\"a text that is as long as its field says, and then goes on: 0123456789 0123456789 0123456789 0123456789 0123\",\"b\":1}",
        &long,
    ] {
        for content_type in [
            "", "image/png", "application/octet-stream", "application/grpc", "application/x-protobuf",
            "application/x-git-upload-pack-request",
        ] {
            assert!(!is_binary(content_type.as_bytes(), bytes), "{content_type}: {}", bytes.escape_ascii());
        }
    }
}

#[test]
fn calls_begin_with_messages() {
    for (bytes, expected) in [
        (&b""[..], Call::Unknown),
        (b"\0\0\0", Call::Unknown),
        (b"\0\0\0\0\x07", Call::Unknown),
        (b"\0\0\0\0\0", Call::Yes),
        (b"\0\0\0\0\x07\x0a", Call::Yes),
        (b"\x01\0\0\0\x07\x1f", Call::Yes),
        (b"\0\0\0\0\x02\x08\x01\0\0\0\0\x02", Call::Yes),
        (b"\0\0\0\0\x02\x82\x01", Call::Yes),
        (b"\0\0\0\0\x02\x08\x01&id=attack", Call::No),
        (b"\0\0\0\0\x02&id=attack", Call::No),
        (b"\0\xff\0\0\x02\x08", Call::No),
        (b"{\"id\"", Call::No),
        (b"id=attack", Call::No),
        (b"<a>", Call::No),
        (b"AAAAAAcKBWhlbGxv", Call::Yes),
        (b"AAAAAAc", Call::Unknown),
        (b"id=att", Call::Unknown),
        (b"id=attack&a", Call::No),
        (b"eyJpZCI6ImEifQ==", Call::No),
    ] {
        assert_eq!(call(bytes), expected, "{}", bytes.escape_ascii());
    }
}

#[test]
fn arguments_are_found_between_other_bytes() {
    for (bytes, expected) in [
        (
            &b"\x89PNG\r\n\x1a\n\0\0&id=1' or 1=1&x=a\0b"[..],
            &[("id", "1' or 1=1"), ("x", "a b")][..],
        ),
        (b"\x89PNG&id=\xc3\xa91' or 1=1\xff\x01", &[("id", "\u{e9}1' or 1=1")]),
        (
            b"\x89PNG&id=%80\x80%80%80%80%80%80%80%80%80%80%80%80%80%80%80%801' or 1=1 or 2",
            &[("id", " 1' or 1=1 or 2")],
        ),
        (b"\x89PNG&id=\xff\xfe\xfd\xfcabc\xfb\xfa\xf9\xf8\xf7\xf6", &[("id", "")]),
        (b"GIF89a=attack", &[("GIF89a", "attack")]),
        (b"\xff\xd8\xff\0=attack&\0a=attack&=attack", &[]),
        (b"\x0a\x05a=b%27", &[]),
        (b"\x0a\x05&a=b%27", &[("a", "b'")]),
        (&[&[b' '; 129][..], b"=attack"].concat(), &[]),
    ] {
        let found = arguments_in(bytes, &Settings::DEFAULT);
        let found: Vec<_> =
            found.iter().map(|(name, value)| (name.as_slice(), value.as_slice())).collect();
        let expected: Vec<_> =
            expected.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
        assert_eq!(found, expected, "{}", bytes.escape_ascii());
    }
}

#[test]
fn invisible_characters_come_before_a_text() {
    for before in [
        "",
        " \r\n\t",
        "\u{b}\u{c}\u{1c}",
        "\u{feff}",
        " \u{feff}\u{200b}",
        "\u{a0}\u{3000}\u{2028}\u{85}",
        "\0\u{1}",
    ] {
        assert_eq!(significant(format!("{before}<a>").as_bytes()), b"<a>", "{before:?}");
    }
    assert_eq!(significant(b"\xe2\x80\x94 a"), b"\xe2\x80\x94 a");
}

use super::*;

const XML: &str =
    "<?xml version=\"1.0\"?><!DOCTYPE a [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><a>&x;</a>";

fn units(text: &str, size: usize, is_little: bool) -> Vec<u8> {
    let one = |it: u32| {
        let mut bytes = it.to_be_bytes()[4 - size..].to_vec();
        if is_little {
            bytes.reverse();
        }
        bytes
    };
    match size {
        2 => text.encode_utf16().flat_map(|it| one(it.into())).collect(),
        _ => text.chars().flat_map(|it| one(it.into())).collect(),
    }
}

/// The text in the code page of EBCDIC with this number.
pub(crate) fn in_ebcdic(text: &str, page: usize) -> Vec<u8> {
    let differing = ebcdic::PAGES[page];
    let of = |character: u8| {
        let own = differing.iter().find(|(_, it)| *it == character).map(|(byte, _)| *byte);
        let common = ebcdic::common();
        own.unwrap_or_else(|| match character {
            b'?' => 0x6f,
            _ => common.iter().position(|it| *it == character).expect("a character") as u8,
        })
    };
    text.bytes().map(of).collect()
}

#[test]
fn texts_are_read_in_their_encoding() {
    for text in [
        XML,
        "{\"id\":\"1' or 1=1\"}",
        "[1]",
        "\u{feff}<a>\u{4e2d}\u{6587}</a>",
        "an ordinary text",
    ] {
        for (size, is_little) in [(2, true), (2, false), (4, true), (4, false)] {
            let encoded = units(text, size, is_little);
            let expected = match size {
                2 => Encoding::Utf16 { is_little },
                _ => Encoding::Utf32 { is_little },
            };
            assert_eq!(encoding_of(&encoded), Some(expected), "{text}: {size} {is_little}");
            let plain = text.trim_start_matches(MARK).as_bytes().to_vec();
            assert_eq!(readings(expected, &encoded), [plain]);
        }
    }
    let blanks = format!("\r\n\t {XML}");
    assert!(encoding_of(&units(&blanks, 2, true)).is_some());
}

#[test]
fn code_pages_of_ebcdic_are_read() {
    for text in [XML, "  \n<!DOCTYPE a>", "SELECT password FROM users WHERE id = 1"] {
        for page in 0..ebcdic::PAGES.len() {
            let encoded = in_ebcdic(text, page);
            assert_eq!(encoding_of(&encoded), Some(Encoding::Ebcdic), "{text}: {page}");
            let all = readings(Encoding::Ebcdic, &encoded);
            let is_read = all.iter().any(|reading| reading == text.as_bytes());
            assert!(is_read, "{text}: {page}");
        }
    }
}

#[test]
fn other_bytes_are_in_no_such_encoding() {
    for bytes in [
        &b""[..],
        b"a",
        b"an ordinary text",
        b"{\"a\":1}",
        b"@@@@@@@@@@@@@@@@",
        "\u{431}\u{443}\u{43a}\u{432}\u{44b} \u{438} \u{446}\u{438}\u{444}\u{440}\u{44b}"
            .as_bytes(),
        b"caf\xe9 cr\xe8me, s'il vous pla\xeet",
        b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01",
        b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01",
        b"PK\x03\x04\x14\0\0\0\x08\0",
        b"\x01\0\x02\0\x03\0\x04\0\x05\0",
        b"\xff\xfe\x01\xd8\x02\xd8\x03\xd8\x04\xd8",
    ] {
        assert_eq!(encoding_of(bytes), None, "{bytes:?}");
    }
}

//! ClientHello messages written by hand: complete, truncated and malformed.

use super::*;

fn vector_8(content: &[u8]) -> Vec<u8> {
    [&[content.len() as u8], content].concat()
}

fn vector_16(content: &[u8]) -> Vec<u8> {
    [&(content.len() as u16).to_be_bytes(), content].concat()
}

fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &vector_16(content)].concat()
}

fn name_extension(name: &[u8]) -> Vec<u8> {
    extension(SERVER_NAME, &vector_16(&[&[HOST_NAME], &vector_16(name)[..]].concat()))
}

/// A complete message with these extensions.
fn message(extensions: &[u8]) -> Vec<u8> {
    let body = [
        &[3, 3][..],
        &[7; 32],
        &vector_8(&[9; 32]),
        &vector_16(&[0x13, 1, 0x13, 2]),
        &vector_8(&[0]),
        &vector_16(extensions),
    ]
    .concat();
    let length = body.len() as u32;
    [&[CLIENT_HELLO], &length.to_be_bytes()[1..], &body].concat()
}

/// The message in records with at most this many bytes.
fn records(message: &[u8], fragment_bytes: usize) -> Vec<u8> {
    let record = |fragment: &[u8]| [&[22, 3, 1][..], &vector_16(fragment)].concat();
    message.chunks(fragment_bytes).flat_map(record).collect()
}

fn hello(extensions: &[u8]) -> Peek {
    peek(&records(&message(extensions), 1 << 14))
}

fn named(name: &str) -> Peek {
    let name_form = NameForm::Sound;
    Peek::Hello(ClientHello { server_name: name.into(), name_form, ..ClientHello::default() })
}

/// The result for a name in a form that no handshake accepts.
fn oddly_named(name: &str) -> Peek {
    let name_form = NameForm::Odd;
    Peek::Hello(ClientHello { server_name: name.into(), name_form, ..ClientHello::default() })
}

fn unnamed() -> Peek {
    Peek::Hello(ClientHello::default())
}

#[test]
fn names() {
    let check = |name: &[u8], expected: &str| {
        assert_eq!(hello(&name_extension(name)), named(expected), "{name:?}");
    };
    check(b"shop.example", "shop.example");
    check(b"SHOP.Example.", "shop.example");
    check(b"a_b-c.d1", "a_b-c.d1");
    check(b"xn--bcher-kva.example", "xn--bcher-kva.example");
    check(&[b'a'; 63], &"a".repeat(63));
    check(b"192.0.2.1", "192.0.2.1");
    let long = ["abcdefghi."; 26].concat();
    check(&long.as_bytes()[..249], &long[..249]);
    assert_eq!(hello(&[]), unnamed());
}

#[test]
fn odd_names() {
    let check = |name: &[u8], expected: &str| {
        assert_eq!(hello(&name_extension(name)), oddly_named(expected), "{name:?}");
    };
    check(b"shop.example:443", "shop.example");
    check(b"SHOP.Example.:8443", "shop.example");
    check(b"shop.example:0", "shop.example");
    check(b"a-:443", "a-");
    check(b"a-", "a-");
    check(b"shop.example:", "");
    check(b"shop.example:443443", "");
    check(b"shop.example:44x", "");
    check(b"shop.example:443:443", "");
    check(b"shop:example:443", "");
    check(b":443", "");
    check(b"[2001:db8::1]:443", "");
    check(&[b'a'; 64], "");
    check(b".", "");
    check(b"a..b", "");
    check(b"a b", "");
    check(b"a/b", "");
    check(b"a\0b", "");
    check(b"*.example", "");
    check("b\u{fc}cher.example".as_bytes(), "");
    check(["abcdefghi."; 26].concat().as_bytes(), "");
    let malformed = Peek::Malformed("a ClientHello that cannot be read", Alert::DecodeError);
    assert_eq!(hello(&name_extension(b"")), malformed);
    assert_eq!(hello(&extension(SERVER_NAME, &[0, 0])), malformed);
}

#[test]
fn what_else_is_read() {
    let all = [
        extension(10, &[0, 2, 0, 29]),
        name_extension(b"a.example"),
        extension(ALPN, &vector_16(&[vector_8(b"h2"), vector_8(b"http/1.1")].concat())),
        extension(SUPPORTED_VERSIONS, &vector_8(&[0x0a, 0x0a, 3, 4, 3, 3])),
        extension(EARLY_DATA, &[]),
    ]
    .concat();
    let Peek::Hello(found) = hello(&all) else { panic!() };
    assert_eq!(found.server_name, "a.example");
    assert_eq!(found.protocols().collect::<Vec<_>>(), [&b"h2"[..], b"http/1.1"]);
    assert!(found.offers_13 && found.has_early_data);
    let only_12 = extension(SUPPORTED_VERSIONS, &vector_8(&[3, 3]));
    let Peek::Hello(found) = hello(&only_12) else { panic!() };
    assert!(!found.offers_13 && !found.has_early_data);
    assert_eq!(found.protocols().count(), 0);
}

#[test]
fn without_extensions() {
    let body = [&[3, 3][..], &[7; 32], &[0], &vector_16(&[0, 0x2f]), &vector_8(&[0])].concat();
    let length = body.len() as u32;
    let message = [&[CLIENT_HELLO], &length.to_be_bytes()[1..], &body[..]].concat();
    assert_eq!(peek(&records(&message, 1 << 14)), unnamed());
}

#[test]
fn every_cut_waits_for_what_is_missing() {
    let whole = message(&name_extension(b"shop.example"));
    for fragment_bytes in [1_000, 60, 10, 4, 3] {
        let input = records(&whole, fragment_bytes);
        let mut looks = 0;
        let mut wanted = 1;
        for cut in 0..input.len() {
            let Peek::Partial(next) = peek(&input[..cut]) else { panic!("cut at {cut}") };
            assert!(next > cut && next <= input.len(), "{next} at {cut}");
            if cut >= wanted {
                (wanted, looks) = (next, looks + 1);
            }
        }
        assert_eq!(peek(&input), named("shop.example"));
        assert!(looks <= 2 * CLIENT_HELLO_RECORDS_MAX, "{looks} looks");
    }
}

#[test]
fn what_is_no_client_hello() {
    use Alert::{
        DecodeError, IllegalParameter, ProtocolVersion, RecordOverflow, UnexpectedMessage,
    };
    let check = |input: &[u8], expected, alert| {
        assert_eq!(peek(input), Peek::Malformed(expected, alert), "{input:?}");
    };
    check(b"GET / HTTP/1.1\r\n", "not a record of TLS", UnexpectedMessage);
    check(b"G", "not a record of TLS", UnexpectedMessage);
    check(&[22, 2, 0, 0, 5], "not a record of TLS", ProtocolVersion);
    check(&[22, 3, 1, 0xff, 0xff], "a record that is too long", RecordOverflow);
    check(&[22, 3, 1, 0x40, 1], "a record that is too long", RecordOverflow);
    check(&[21, 3, 1, 0, 2, 1, 0], "a record before the ClientHello", UnexpectedMessage);
    check(&[23, 3, 1, 0, 2], "a record before the ClientHello", UnexpectedMessage);
    check(&[22, 3, 1, 0, 0], "an empty record before the ClientHello", UnexpectedMessage);
    check(&[22, 3, 1, 0, 9, 2], "not a ClientHello", UnexpectedMessage);
    check(&[22, 3, 1, 0, 2, 12, 22], "not a ClientHello", UnexpectedMessage);
    check(&records(&[2, 0, 0, 1, 0], 100), "not a ClientHello", UnexpectedMessage);
    check(&records(&[1, 1, 0, 1, 0], 100), "a ClientHello that is too long", IllegalParameter);
    check(&records(&[1, 0, 0, 1, 0], 100), "a ClientHello that cannot be read", DecodeError);
    let whole = message(&name_extension(b"shop.example"));
    check(&records(&whole, 1), "a ClientHello in too many records", DecodeError);
    let unreadable = |extensions: &[u8]| {
        let expected = Peek::Malformed("a ClientHello that cannot be read", DecodeError);
        assert_eq!(hello(extensions), expected);
    };
    unreadable(&[0]);
    unreadable(&[0, 0, 0, 1]);
    unreadable(&extension(SERVER_NAME, &[0, 5, 0, 0, 9]));
    unreadable(&extension(ALPN, &[0]));
    unreadable(&extension(SUPPORTED_VERSIONS, &[3, 3]));
}

/// In any division into records, the number of bytes that are awaited is limited.
#[test]
fn what_is_collected_has_a_bound() {
    let long = message(&extension(21, &vec![0; CLIENT_HELLO_BYTES_MAX - 200]));
    for fragment_bytes in [1 << 14, 9_000, 520] {
        let input = records(&long, fragment_bytes);
        assert!(input.len() <= COLLECTED_BYTES_MAX);
        let mut bytes = 0;
        while let Peek::Partial(next) = peek(&input[..bytes]) {
            assert!(next > bytes && next <= COLLECTED_BYTES_MAX);
            bytes = next;
        }
        assert_eq!(peek(&input), unnamed());
    }
    let too_long = message(&extension(21, &vec![0; CLIENT_HELLO_BYTES_MAX]));
    let expected = Peek::Malformed("a ClientHello that is too long", Alert::IllegalParameter);
    assert_eq!(peek(&records(&too_long, 1 << 14)), expected);
}

/// No truncated or changed message causes a panic or a read beyond the input.
#[test]
fn changed_bytes_are_looked_at_without_harm() {
    let whole = records(
        &message(
            &[name_extension(b"shop.example"), extension(ALPN, &vector_16(&vector_8(b"h2")))]
                .concat(),
        ),
        40,
    );
    for at in 0..whole.len() {
        for value in [0, 1, 3, 22, 0x7f, 0x80, 0xff] {
            let mut changed = whole.clone();
            changed[at] = value;
            let _ = peek(&changed);
            let _ = peek(&changed[..at]);
        }
    }
}

/// The list of versions counts; without one, the version in front.
#[test]
fn clients_of_old_are_known() {
    let is_old = |front: [u8; 2], extensions: &[u8]| {
        let mut message = message(extensions);
        message[MESSAGE_HEADER_BYTES..][..2].copy_from_slice(&front);
        match peek(&records(&message, 1 << 14)) {
            Peek::Hello(hello) => hello.is_old,
            other => panic!("{other:?}"),
        }
    };
    let versions = |list: &[u8]| extension(SUPPORTED_VERSIONS, &vector_8(list));
    for (front, list, expected) in [
        ([3, 1], None, true),
        ([3, 2], None, true),
        ([3, 3], None, false),
        ([3, 3], Some(&[0x0a, 0x0a, 3, 4][..]), false),
        ([3, 3], Some(&[3, 3, 3, 2]), false),
        ([3, 3], Some(&[3, 2, 3, 1]), true),
        ([3, 1], Some(&[3, 4]), false),
    ] {
        let extensions = list.map(versions).unwrap_or_default();
        assert_eq!(is_old(front, &extensions), expected, "{front:?} {list:?}");
    }
}

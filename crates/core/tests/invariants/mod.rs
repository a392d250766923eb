//! Invariants of every datagram: asserted for random mutations of valid ones, and by the fuzz
//! targets, which include this file.
#![allow(dead_code, reason = "each test binary uses a part")]

use weir_core::datagram::quic::{Header, LongHeader};
use weir_core::datagram::{quic, radius, sip};

/// A QUIC header, written again, equals the input; bytes after the header do not matter, and a truncated header is invalid.
pub fn quic(datagram: &[u8]) {
    for short_id_bytes in [0, 1, 8, 20] {
        let found = Header::parse(datagram, short_id_bytes);
        let Ok(header) = found else { continue };
        let id = header.destination().of(datagram);
        let written = match header {
            Header::Short { .. } => {
                assert_eq!((datagram[0] & 0x80, id.len()), (0, short_id_bytes));
                [&datagram[..1], id].concat()
            }
            Header::Long(LongHeader { version, source, .. }) => {
                assert_ne!(version, 0);
                let is_bounded = [quic::VERSION_1, quic::VERSION_2].contains(&version);
                let longest = id.len().max(source.len());
                assert!(!is_bounded || longest <= quic::CONNECTION_ID_BYTES_MAX);
                long(datagram[0], version, id, source.of(datagram))
            }
            Header::VersionNegotiation(it) => {
                let versions = it.versions.of(datagram);
                assert!(!versions.is_empty() && versions.len().is_multiple_of(4));
                assert_eq!(it.versions.end as usize, datagram.len());
                [long(datagram[0], 0, id, it.source.of(datagram)), versions.to_vec()].concat()
            }
        };
        assert!(datagram.starts_with(&written));
        for length in 0..written.len() {
            let cut = Header::parse(&datagram[..length], short_id_bytes);
            let is_shorter_list = matches!(cut, Ok(Header::VersionNegotiation(_)));
            assert!(cut.is_err() || is_shorter_list, "{length} bytes of {written:?}");
        }
        if !matches!(header, Header::VersionNegotiation(_)) {
            let longer = [datagram, b"more"].concat();
            assert_eq!(Header::parse(&longer, short_id_bytes), found);
        }
    }
}

fn long(first: u8, version: u32, destination: &[u8], source: &[u8]) -> Vec<u8> {
    let length = |id: &[u8]| [u8::try_from(id.len()).expect("at most 255 bytes")];
    let version = version.to_be_bytes();
    [&[first][..], &version, &length(destination), destination, &length(source), source].concat()
}

/// A SIP value is before the empty line, has no space around it, and is the same by its long and its short name.
pub fn sip(datagram: &[u8]) {
    for (name, other) in [("Call-ID", "i"), ("v", "via"), ("X-Other", "x-OTHER"), ("", "")] {
        let found = sip::header(datagram, name);
        assert_eq!(found, sip::header(datagram, other));
        let Some(value) = found else { continue };
        let raw = value.span.of(datagram);
        assert_eq!(raw, raw.trim_ascii());
        assert_eq!(value.is_folded, raw.contains(&b'\n'));
        let before = &datagram[..value.span.start as usize];
        let is_empty_line = |window: &[u8]| window == b"\n\n";
        assert!(!before.windows(2).any(is_empty_line), "{name} behind the empty line");
        let mut line = Vec::new();
        sip::unfold(raw, &mut line);
        assert!(!line.contains(&b'\n') && line.len() <= raw.len());
        // Bytes after the value do not matter.
        let longer = [datagram, b"more: 1\r\n\r\n"].concat();
        assert_eq!(sip::header(&longer, name), found);
    }
}

/// The attributes of RADIUS equal those found by a simple reference implementation.
pub fn radius(datagram: &[u8]) {
    let attributes = walk(datagram);
    for number in 0..=u8::MAX {
        let found = radius::attribute(datagram, number).map(|value| value.of(datagram));
        let expected = attributes.iter().find(|(other, _)| *other == number);
        assert_eq!(found, expected.map(|(_, value)| *value), "{number}");
    }
    for (vendor, number) in [(9, 1), (311, 11), (0, 0)] {
        let found = radius::vendor_attribute(datagram, vendor, number);
        let Some(value) = found.map(|value| value.of(datagram)) else { continue };
        let inside = attributes.iter().filter(|(number, _)| *number == 26).any(|(_, of_vendor)| {
            of_vendor.starts_with(&vendor.to_be_bytes())
                && of_vendor.as_ptr_range().contains(&value.as_ptr())
                || of_vendor.ends_with(value)
        });
        assert!(inside, "{vendor}:{number}");
    }
}

fn walk(datagram: &[u8]) -> Vec<(u8, &[u8])> {
    let [code, _, high, low, ..] = datagram else { return Vec::new() };
    let length = usize::from(*high) << 8 | usize::from(*low);
    if *code == 0 || !(20..=4096).contains(&length) || datagram.len() < length {
        return Vec::new();
    }
    let mut rest = &datagram[20..length];
    let mut found = Vec::new();
    while let [number, length, ..] = rest {
        let length = usize::from(*length);
        if length < 2 || length > rest.len() {
            break;
        }
        found.push((*number, &rest[2..length]));
        rest = &rest[length..];
    }
    found
}

/// Valid datagrams to start from.
pub const QUIC: [&[u8]; 5] = [
    b"\xc0\x00\x00\x00\x01\x08\x83\x94\xc8\xf0\x3e\x51\x57\x08\x00\x00\x44\x9e",
    b"\xcf\x00\x00\x00\x01\x00\x08\xf0\x67\xa5\x50\x2a\x42\x62\xb5\x00\x40\x75",
    b"\x80\x00\x00\x00\x00\x01\xaa\x01\xbb\x00\x00\x00\x01\x6b\x33\x43\xcf",
    b"\x4c\xfe\x41\x89\x65\x5e\x5c\xd5\x5c\x41\xf6\x90\x80\x57\x5d\x79\x99\xc2\x5a\x5b\xfb",
    b"\xd7\x6b\x33\x43\xcf\x08\x83\x94\xc8\xf0\x3e\x51\x57\x08\x00\x00",
];
/// See [`QUIC`].
pub const SIP: [&[u8]; 3] = [
    b"BYE sip:b SIP/2.0\r\nVia: a\r\nX-Other: 1\r\n 2\r\nCall-ID: a@b\r\n\r\nbody",
    b"SIP/2.0 200 OK\nv: a\ni : b\r\n\tc\n\n",
    b"INVITE sip:a SIP/2.0\r\n: x\r\nx-other:\r\n\r\n\r\n",
];
/// See [`QUIC`].
pub const RADIUS: [&[u8]; 2] = [
    b"\x04\x01\x00\x26aaaaaaaaaaaaaaaa\x2c\x05one\x1a\x0d\0\0\0\x09\x01\x07a=b,c",
    b"\x01\x00\x00\x26aaaaaaaaaaaaaaaa\x01\x06nemo\x1a\x0c\0\0\x01\x37\x0b\x06xyzwmore",
];

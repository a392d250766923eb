use super::*;

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

fn proxied(source: &str, destination: &str) -> ProxiedConnection<'static> {
    ProxiedConnection {
        transport: Transport::Stream,
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
        authority: None,
        unique_id: None,
    }
}

/// Assembles a version 2 header from its parts.
fn v2(version_command: u8, kind: u8, body: &[u8]) -> Vec<u8> {
    let mut header = SIGNATURE.to_vec();
    header.extend_from_slice(&[version_command, kind]);
    header.extend_from_slice(&(body.len() as u16).to_be_bytes());
    header.extend_from_slice(body);
    header
}

/// IPv4 addresses and ports, then `records`.
fn inet(records: &[u8]) -> Vec<u8> {
    [&[10, 0, 0, 1, 10, 0, 0, 2, 0x1f, 0x90, 0, 80], records].concat()
}

/// Checks that every prefix of the header is partial, and that bytes after the header have no effect.
fn check_whole(input: &[u8], expected: ProxyHeader<'_>) {
    let name = input.escape_ascii();
    for cut in 0..input.len() {
        assert_eq!(parse(&input[..cut]), Ok(ParsedHeader::Partial), "{name} cut at {cut}");
    }
    let complete = Ok(ParsedHeader::Complete { length: input.len(), header: expected });
    assert_eq!(parse(input), complete, "{name}");
    let followed = [input, b"GET / HTTP/1.1\r\n"].concat();
    assert_eq!(parse(&followed), complete, "{name}");
}

#[test]
fn version_1_headers() {
    let v4 = ProxyHeader::Proxied(proxied("192.0.2.1:56324", "198.51.100.2:443"));
    check_whole(b"PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n", v4);
    let v6 = ProxyHeader::Proxied(proxied("[2001:db8::1]:0", "[::1]:65535"));
    check_whole(b"PROXY TCP6 2001:db8::1 ::1 0 65535\r\n", v6);
    check_whole(b"PROXY UNKNOWN\r\n", ProxyHeader::Unknown);
    check_whole(b"PROXY UNKNOWN ffff::1 what ever 1\r\n", ProxyHeader::Unknown);
    let longest = "PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff \
                   ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n";
    assert_eq!(longest.len(), V1_BYTES_MAX);
    check_whole(longest.as_bytes(), ProxyHeader::Unknown);
}

#[test]
fn hostile_version_1() {
    use ProxyError::*;
    for (line, error) in [
        ("GET / HTTP/1.1\r\n", Signature),
        ("proxy TCP4 1.2.3.4 1.2.3.4 1 2\r\n", Signature),
        (" PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n", Signature),
        ("PROXY\r\n", Signature),
        ("PROXY \r\n", Line),
        ("PROXY TCP4\r\n", Line),
        ("PROXY TCP5 1.2.3.4 1.2.3.4 1 2\r\n", Line),
        ("PROXY tcp4 1.2.3.4 1.2.3.4 1 2\r\n", Line),
        ("PROXY UDP4 1.2.3.4 1.2.3.4 1 2\r\n", Line),
        ("PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n", Line),
        ("PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n", Line),
        ("PROXY TCP4 1.2.3.4 1.2.3.4 1 2 \r\n", Line),
        ("PROXY TCP4  1.2.3.4 1.2.3.4 1 2\r\n", Line),
        ("PROXY TCP4\t1.2.3.4 1.2.3.4 1 2\r\n", Line),
        ("PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n", Line),
        ("PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\r\n", Line),
        ("PROXY TCP4 1.2.3.04 1.2.3.4 1 2\r\n", Line),
        ("PROXY TCP4 1.2.3 1.2.3.4 1 2\r\n", Line),
        ("PROXY TCP4 1.2.3.256 1.2.3.4 1 2\r\n", Line),
        ("PROXY TCP4 ::1 1.2.3.4 1 2\r\n", Line),
        ("PROXY TCP6 1.2.3.4 ::1 1 2\r\n", Line),
        ("PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n", Line),
        ("PROXY TCP6 [::1] ::1 1 2\r\n", Line),
        ("PROXY TCP4 1.2.3.4 1.2.3.4 65536 2\r\n", Line),
        ("PROXY TCP4 1.2.3.4 1.2.3.4 -1 2\r\n", Line),
        ("PROXY TCP4 1.2.3.4 1.2.3.4 +1 2\r\n", Line),
        ("PROXY TCP4 1.2.3.4 1.2.3.4 01 2\r\n", Line),
        ("PROXY TCP4 1.2.3.4 1.2.3.4  2\r\n", Line),
        ("PROXY UNKNOWN a\rb\r\n", Line),
        ("PROXY UNKNOWN a\0b\r\n", Line),
    ] {
        assert_eq!(parse(line.as_bytes()), Err(error), "{}", line.escape_debug());
    }
    assert_eq!(parse(b"PROXY UNKNOWN \xff\r\n"), Err(Line));
    let endless = [b"PROXY UNKNOWN".to_vec(), vec![b' '; 200]].concat();
    assert_eq!(parse(&endless[..V1_BYTES_MAX - 1]), Ok(ParsedHeader::Partial));
    assert_eq!(parse(&endless[..V1_BYTES_MAX]), Err(TooLong));
    let one_too_long = [&endless[..V1_BYTES_MAX - 1], b"\r\n"].concat();
    assert_eq!(parse(&one_too_long), Err(TooLong));
}

#[test]
fn version_2_headers() {
    let plain = proxied("10.0.0.1:8080", "10.0.0.2:80");
    check_whole(&v2(0x21, 0x11, &inet(b"")), ProxyHeader::Proxied(plain));
    let datagram = ProxiedConnection { transport: Transport::Datagram, ..plain };
    check_whole(&v2(0x21, 0x12, &inet(b"")), ProxyHeader::Proxied(datagram));
    // An ALPN record, a no-op and a record of unknown type are skipped.
    let records = b"\x01\0\x02h2\x04\0\0\xe3\0\x01x\x02\0\x03a.b\x05\0\x02id";
    let named = ProxiedConnection { authority: Some(b"a.b"), unique_id: Some(b"id"), ..plain };
    check_whole(&v2(0x21, 0x11, &inet(records)), ProxyHeader::Proxied(named));
    let v6 = [[1; 16], [2; 16]].concat();
    let v6 = [&v6[..], &[0, 1, 0, 2]].concat();
    let expected =
        proxied("[101:101:101:101:101:101:101:101]:1", "[202:202:202:202:202:202:202:202]:2");
    check_whole(&v2(0x21, 0x21, &v6), ProxyHeader::Proxied(expected));
    check_whole(&v2(0x21, 0x31, &[0; 216]), ProxyHeader::Unknown);
    check_whole(&v2(0x21, 0x00, b""), ProxyHeader::Unknown);
    check_whole(&v2(0x21, 0x00, b"anything"), ProxyHeader::Unknown);
    check_whole(&v2(0x20, 0x00, b""), ProxyHeader::Local);
    check_whole(&v2(0x20, 0x11, b"not even addresses"), ProxyHeader::Local);
}

#[test]
fn hostile_version_2() {
    use ProxyError::*;
    let check = |header: &[u8], error: ProxyError| {
        assert_eq!(parse(header), Err(error), "{}", header.escape_ascii());
    };
    check(b"\r\n\r\n\0\r\nQUIT\r", Signature);
    check(&v2(0x11, 0x11, &inet(b"")), Kind);
    check(&v2(0x31, 0x11, &inet(b"")), Kind);
    check(&v2(0x22, 0x11, &inet(b"")), Kind);
    for kind in [0x01, 0x10, 0x13, 0x20, 0x30, 0x33, 0x41, 0xff] {
        check(&v2(0x21, kind, &inet(b"")), Kind);
    }
    check(&v2(0x21, 0x11, b""), TooShort);
    check(&v2(0x21, 0x11, &inet(b"")[..11]), TooShort);
    check(&v2(0x21, 0x21, &[0; 35]), TooShort);
    check(&v2(0x21, 0x31, &[0; 215]), TooShort);
    check(&v2(0x21, 0x11, &inet(b"\x04")), Record);
    check(&v2(0x21, 0x11, &inet(b"\x04\0")), Record);
    check(&v2(0x21, 0x11, &inet(b"\x04\0\x01")), Record);
    check(&v2(0x21, 0x11, &inet(b"\x04\xff\xffabc")), Record);
    check(&v2(0x21, 0x31, &[&[0; 216][..], b"\x04\0\x01"].concat()), Record);
    check(&v2(0x21, 0x11, &inet(b"\x02\0\x01a\x02\0\x01a")), Record);
    check(&v2(0x21, 0x11, &inet(b"\x05\0\x01a\x05\0\x01b")), Record);
    check(&v2(0x21, 0x11, &inet(&[b"\x05\0\x81", &[b'a'; 129][..]].concat())), Record);
    check(&v2(0x21, 0x11, &inet(&[b"\x02\x01\0", &[b'a'; 256][..]].concat())), Record);
    check(&v2(0x21, 0x11, &inet(b"\x03\0\x03abc")), Record);
    check(&v2(0x21, 0x11, &inet(b"\x03\0\x04\0\0\0\0")), Checksum);
    // The length field alone exceeds the maximum; the parser does not wait for the rest.
    check(&v2(0x21, 0x11, &vec![0; V2_BYTES_MAX - 15])[..16], TooLong);
    check(&v2(0x20, 0x00, &vec![0; 65_535])[..16], TooLong);
}

#[test]
fn a_checksum_covers_every_byte() {
    let named =
        ProxiedConnection { authority: Some(b"a.b"), ..proxied("10.0.0.1:1", "10.0.0.2:2") };
    let mut header = Vec::new();
    write_v2(&ProxyHeader::Proxied(named), true, &mut header).unwrap();
    check_whole(&header, ProxyHeader::Proxied(named));
    for at in 0..header.len() {
        for bit in 0..8 {
            let mut damaged = header.clone();
            damaged[at] ^= 1 << bit;
            let outcome = parse(&damaged);
            let became_local =
                matches!(outcome, Ok(ParsedHeader::Complete { header: ProxyHeader::Local, .. }));
            let undamaged = matches!(outcome, Ok(ParsedHeader::Complete { .. })) && !became_local;
            // Without the checksum's own record the header would be valid; then the type was
            // changed.
            let type_hit = at == header.len() - 7;
            assert!(!undamaged || type_hit, "bit {bit} of byte {at}: {outcome:?}");
        }
    }
}

#[test]
fn what_is_written_reads_back() {
    let mut cases = vec![ProxyHeader::Local, ProxyHeader::Unknown];
    for (source, destination) in
        [("1.2.3.4:5", "255.255.255.255:65535"), ("[::1]:0", "[2001:db8:ffff::1]:443")]
    {
        for transport in [Transport::Stream, Transport::Datagram] {
            for authority in [None, Some(&b""[..]), Some(&[b'h'; AUTHORITY_BYTES_MAX][..])] {
                for unique_id in [None, Some(&[0xff; UNIQUE_ID_BYTES_MAX][..])] {
                    let ends = proxied(source, destination);
                    cases.push(ProxyHeader::Proxied(ProxiedConnection {
                        transport,
                        authority,
                        unique_id,
                        ..ends
                    }));
                }
            }
        }
    }
    for header in cases {
        for with_checksum in [false, true] {
            let mut out = Vec::new();
            write_v2(&header, with_checksum, &mut out).unwrap();
            check_whole(&out, header);
        }
        let mut out = Vec::new();
        write_v1(&header, &mut out);
        assert!(out.len() <= V1_BYTES_MAX);
        let expected = match header {
            ProxyHeader::Proxied(stream) if stream.transport == Transport::Stream => {
                ProxyHeader::Proxied(ProxiedConnection {
                    authority: None,
                    unique_id: None,
                    ..stream
                })
            }
            _ => ProxyHeader::Unknown,
        };
        check_whole(&out, expected);
    }
}

#[test]
fn families_are_made_one() {
    let mixed = ProxyHeader::Proxied(proxied("1.2.3.4:5", "[::1]:6"));
    let expected = ProxyHeader::Proxied(proxied("[::ffff:1.2.3.4]:5", "[::1]:6"));
    let (mut v1, mut v2) = (Vec::new(), Vec::new());
    write_v1(&mixed, &mut v1);
    write_v2(&mixed, false, &mut v2).unwrap();
    check_whole(&v1, expected);
    check_whole(&v2, expected);
}

#[test]
fn what_is_too_long_is_not_written() {
    let id = [b'a'; UNIQUE_ID_BYTES_MAX + 1];
    let host = [b'a'; AUTHORITY_BYTES_MAX + 1];
    let ends = proxied("1.2.3.4:5", "1.2.3.4:6");
    let mut out = Vec::new();
    let with_id = ProxyHeader::Proxied(ProxiedConnection { unique_id: Some(&id), ..ends });
    assert_eq!(write_v2(&with_id, true, &mut out), Err(WriteError::UniqueId));
    let with_host = ProxyHeader::Proxied(ProxiedConnection { authority: Some(&host), ..ends });
    assert_eq!(write_v2(&with_host, true, &mut out), Err(WriteError::Authority));
    assert!(out.is_empty());
}

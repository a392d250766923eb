use super::*;

/// 10.0.0.0/8 and fd00::/8 are our proxies.
fn is_trusted(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.octets()[0] == 10,
        IpAddr::V6(ip) => ip.octets()[0] == 0xfd,
    }
}

fn client(peer: &str, source: Source, fields: &[&str]) -> String {
    let fields = fields.iter().map(|field| field.as_bytes());
    client_address(peer.parse().unwrap(), source, fields, is_trusted).to_string()
}

#[test]
fn addresses() {
    let check = |text: &str, expected: Option<(&str, Option<u16>)>| {
        let expected = expected.map(|(ip, port)| (ip.parse().unwrap(), port));
        assert_eq!(parse_address(text.as_bytes()), expected, "{text}");
    };
    check("1.2.3.4", Some(("1.2.3.4", None)));
    check("1.2.3.4:80", Some(("1.2.3.4", Some(80))));
    check("::1", Some(("::1", None)));
    check("1::2:80", Some(("1::2:80", None)));
    check("[::1]", Some(("::1", None)));
    check("[::1]:65535", Some(("::1", Some(65535))));
    check("::ffff:1.2.3.4", Some(("::ffff:1.2.3.4", None)));
    for wrong in [
        "",
        "1.2.3",
        "1.2.3.4:",
        "1.2.3.4:x",
        "1.2.3.4:+1",
        "1.2.3.4:65536",
        "1.2.3.4 ",
        "[1.2.3.4]",
        "[::1",
        "[::1]80",
        "[::1]:",
        "[::1]:-1",
        "fe80::1%eth0",
        "unknown",
        "_hidden",
        "host.example",
        "1.2.3.04",
    ] {
        check(wrong, None);
    }
    assert_eq!(parse_address(&[b'1'; NODE_BYTES_MAX + 1]), None);
    assert_eq!(parse_address(b"\xff"), None);
}

#[test]
fn x_forwarded_for() {
    let check = |peer, fields: &[&str], expected| {
        assert_eq!(client(peer, Source::XForwardedFor, fields), expected, "{fields:?}");
    };
    // No trusted proxy: the peer's claims about others do not count.
    check("192.0.2.1", &["203.0.113.9"], "192.0.2.1");
    check("10.0.0.1", &[], "10.0.0.1");
    check("10.0.0.1", &[""], "10.0.0.1");
    check("10.0.0.1", &["203.0.113.9"], "203.0.113.9");
    check("10.0.0.1", &["203.0.113.9, 10.0.0.2"], "203.0.113.9");
    check("10.0.0.1", &["203.0.113.9 ,, 10.0.0.2,"], "203.0.113.9");
    // Addresses invented by the client are left of its own.
    check("10.0.0.1", &["10.0.0.9, 203.0.113.9"], "203.0.113.9");
    check("10.0.0.1", &["1.1.1.1, 203.0.113.9, 10.0.0.2"], "203.0.113.9");
    // Several fields are one list.
    check("10.0.0.1", &["1.1.1.1, 203.0.113.9", "10.0.0.3", "", "10.0.0.2"], "203.0.113.9");
    check("10.0.0.1", &["203.0.113.9", "198.51.100.1"], "198.51.100.1");
    // All are trusted: the furthest known address.
    check("10.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3");
    // Ports, brackets, mapped addresses.
    check("10.0.0.1", &["203.0.113.9:4711, [fd00::1]:80, 10.0.0.2:1"], "203.0.113.9");
    check("::ffff:10.0.0.1", &["2001:db8::1, ::ffff:10.0.0.2"], "2001:db8::1");
    // Everything behind a malformed element is ignored.
    check("10.0.0.1", &["203.0.113.9, unknown, 10.0.0.2"], "10.0.0.2");
    check("10.0.0.1", &["203.0.113.9", "10.0.0.2 10.0.0.3"], "10.0.0.1");
}

#[test]
fn the_walk_is_bounded() {
    let list = |proxies: usize| format!("203.0.113.9{}", ", 10.0.0.2".repeat(proxies));
    let check = |proxies, expected| {
        assert_eq!(client("10.0.0.1", Source::XForwardedFor, &[&list(proxies)]), expected);
        let elements = list(proxies).replace(", ", ", for=");
        assert_eq!(client("10.0.0.1", Source::Forwarded, &[&format!("for={elements}")]), expected);
    };
    check(HOPS_MAX - 1, "203.0.113.9");
    check(HOPS_MAX, "10.0.0.2");
    check(100_000, "10.0.0.2");
}

#[test]
fn forwarded() {
    let check = |peer, fields: &[&str], expected| {
        assert_eq!(client(peer, Source::Forwarded, fields), expected, "{fields:?}");
    };
    check("192.0.2.1", &["for=203.0.113.9"], "192.0.2.1");
    check("10.0.0.1", &["for=203.0.113.9"], "203.0.113.9");
    check("10.0.0.1", &["For=\"[2001:db8::1]:4711\";proto=https, for=10.0.0.2"], "2001:db8::1");
    check("10.0.0.1", &["for=\"203.0.113.9:_port\""], "203.0.113.9");
    check("10.0.0.1", &["for=1.1.1.1", "proto=http;for=203.0.113.9;by=10.0.0.1"], "203.0.113.9");
    // Hidden, unknown, missing, unbracketed: the furthest known address is that of the proxy that
    // says so.
    for node in
        ["for=_hidden", "for=unknown", "proto=http", "for=\"::1\"", "for=\"1.2.3.4:_\"", "for=a.b"]
    {
        check("10.0.0.1", &[&format!("for=1.1.1.1, {node}, for=10.0.0.2")], "10.0.0.2");
    }
    // An open quote of the client swallows the proxy's element: all of it is ignored.
    check("10.0.0.1", &["for=\"1.1.1.1, for=203.0.113.9"], "10.0.0.1");
    check("10.0.0.1", &["for=\"1.1.1.1", "for=203.0.113.9"], "203.0.113.9");
    check("10.0.0.1", &["for=1.1.1.1 for=2.2.2.2, for=203.0.113.9"], "10.0.0.1");
}

/// An element as text, `None` where it is malformed.
fn shown(value: &str) -> Vec<Option<String>> {
    let text = |part: &Option<std::borrow::Cow<'_, [u8]>>| match part {
        Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        None => "-".to_owned(),
    };
    let shown = elements(value.as_bytes()).map(|element| {
        let Element { client, by, host, proto } = &element.ok()?;
        Some([client, by, host, proto].map(text).join(" "))
    });
    shown.collect()
}

#[test]
fn elements_are_read_as_the_rfc_says() {
    let check = |value: &str, expected: &[Option<&str>]| {
        let found = shown(value);
        let found: Vec<_> = found.iter().map(Option::as_deref).collect();
        assert_eq!(found, expected, "{value}");
    };
    // Section 4, the examples.
    check("for=\"_gazonk\"", &[Some("_gazonk - - -")]);
    check("For=\"[2001:db8:cafe::17]:4711\"", &[Some("[2001:db8:cafe::17]:4711 - - -")]);
    check("for=192.0.2.60;proto=http;by=203.0.113.43", &[Some("192.0.2.60 203.0.113.43 - http")]);
    check(
        "for=192.0.2.43, for=198.51.100.17",
        &[Some("192.0.2.43 - - -"), Some("198.51.100.17 - - -")],
    );
    // Quoted pairs, separators within quotes, other parameters.
    check("host=\"a\\\"b\\\\,;c\";x=y", &[Some("- - a\"b\\,;c -")]);
    check("host=\"\"", &[Some("- -  -")]);
    check("secret=\"a,b;c\";for=a", &[Some("a - - -")]);
    // Empty elements and pairs, white space.
    check("", &[]);
    check(" , ,", &[]);
    check(",for=a,,\tfor=b , ", &[Some("a - - -"), Some("b - - -")]);
    check(";for=a; ;host=b ;", &[Some("a - b -")]);
    // Unquoted where it should be quoted.
    check("for=1.2.3.4:80;host=a:80", &[Some("1.2.3.4:80 - a:80 -")]);
    check("for=[::1]:80", &[Some("[::1]:80 - - -")]);
    // Malformed.
    for value in [
        "for",
        "for=",
        "for =a",
        "for= a",
        "=a",
        "for=a b",
        "for=\"a",
        "for=\"a\\",
        "for=\"a\"b",
        "for=a;for=b",
        "for=a;FOR=b",
        "for=\u{e9}",
        "for=a/b",
        "f@r=a",
    ] {
        check(value, &[None]);
    }
    check("for=a, for=\"b, for=c", &[Some("a - - -"), None]);
}

#[test]
fn elements_are_written() {
    let check = |client: &str, host: Option<&str>, proto: &str, expected: &str| {
        let mut out = Vec::new();
        let host_bytes = host.map(str::as_bytes);
        write_element(client.parse().unwrap(), host_bytes, proto.as_bytes(), &mut out);
        assert_eq!(String::from_utf8(out.clone()).unwrap(), expected);
        let read: Vec<_> = elements(&out).map(Result::unwrap).collect();
        assert_eq!(read.len(), 1);
        let ip = client.parse::<std::net::SocketAddr>().unwrap().ip();
        assert_eq!(read[0].client_ip(), Some(ip));
        assert_eq!(read[0].host.as_deref(), host_bytes);
        assert_eq!(read[0].proto.as_deref(), Some(proto.as_bytes()));
    };
    check("1.2.3.4:0", None, "http", "for=1.2.3.4;proto=http");
    check("1.2.3.4:5", Some("a.example"), "https", "for=\"1.2.3.4:5\";host=a.example;proto=https");
    check("[::1]:0", Some("a:80"), "http", "for=\"[::1]\";host=\"a:80\";proto=http");
    check("[::1]:5", Some("\"\\"), "http", "for=\"[::1]:5\";host=\"\\\"\\\\\";proto=http");
    check("1.2.3.4:0", Some(""), "http", "for=1.2.3.4;host=\"\";proto=http");
}

#[test]
fn lists_are_continued() {
    let check = |existing: &[&str], expected: &str| {
        let mut out = b"X: ".to_vec();
        let values = existing.iter().map(|value| value.as_bytes());
        write_existing(values, &mut out);
        out.extend_from_slice(b"1.2.3.4");
        assert_eq!(String::from_utf8(out).unwrap(), format!("X: {expected}"));
    };
    check(&[], "1.2.3.4");
    check(&[" ", ""], "1.2.3.4");
    check(&["a, b"], "a, b, 1.2.3.4");
    check(&["a ", "", "\tb"], "a, b, 1.2.3.4");
}

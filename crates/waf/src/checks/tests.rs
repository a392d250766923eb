use super::cookies::cookies;
use super::*;
use crate::body::{Body, Processor, Settings};
use crate::inspection::{BodyLength, Request};

const HERE: (std::net::IpAddr, u16) = (std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 80);

/// A policy with all checks on, including those that are off by default.
fn strict() -> Policy {
    let mut policy = Policy::default();
    Check::ALL.into_iter().for_each(|check| policy.set(check, Action::Block));
    policy
}

fn names(findings: Findings<'_>) -> Vec<&'static str> {
    let mut names: Vec<_> = findings.into_all().iter().map(|it| it.check.name()).collect();
    names.sort_unstable();
    names
}

/// A check, with inputs that have the finding and similar inputs that do not.
type Case<'a> = (&'a str, [&'a [u8]; 3], [&'a [u8]; 3]);

fn table(of: impl Fn(&[u8]) -> Vec<&'static str>, cases: &[Case<'_>]) {
    for (check, bad, near) in cases {
        Check::named(check).expect("a check");
        for input in bad {
            let found = of(input);
            assert!(found.contains(check), "{check}: {}: {found:?}", input.escape_ascii());
        }
        for input in near {
            let found = of(input);
            assert!(!found.contains(check), "{check}: {}: {found:?}", input.escape_ascii());
        }
    }
}

#[test]
fn evasion_of_targets() {
    let of = |input: &[u8]| {
        let policy = strict();
        let mut findings = Findings::new(&policy);
        target(input, &mut findings);
        names(findings)
    };
    table(
        of,
        &[
            (
                "multiple_decoding",
                [b"/%25252e", b"/?a=%252525", b"/%25%32%35%32%35x"],
                [b"/%2e", b"/?u=http%253A%252F", b"/100%25"],
            ),
            (
                "percent_u",
                [b"/%u0041", b"/?a=%u00e9", b"/%U002f"],
                [b"/u0041", b"/?a=%25u0041", b"/%u00"],
            ),
            (
                "iis_unicode",
                [b"/%uff0e", b"/%u2215a", b"/?x=%uff1cscript"],
                [b"/%u00e9", b"/%u4e2d", b"/uff0e"],
            ),
            (
                "iis_stream",
                [b"/a.asp::$DATA", b"/a.asp%3a%3a%24data", b"/dir::$INDEX_ALLOCATION"],
                [b"/a::b", b"/data", b"/?x=::$DATA"],
            ),
            (
                "utf8_overlong",
                [b"/%c0%af", b"/%e0%80%af", b"/?x=%c0%bcscript"],
                [b"/%c3%a9", b"/%e2%82%ac", b"/%c2%80"],
            ),
            (
                "utf8_invalid",
                [b"/%ff", b"/%c3", b"/?x=%e2%82"],
                [b"/%c3%a9", b"/%f0%9f%98%80", b"/a"],
            ),
            (
                "directory_traversal",
                [b"/../etc/passwd", b"/a/%2e%2e%2fb", b"/a/%252e%252e/b"],
                [b"/a..b/c", b"/..a", b"/?f=../x"],
            ),
            (
                "directory_traversal",
                [b"/%c0%ae%c0%ae/x", b"/a/..%5cb", b"/%uff0e%uff0e/x"],
                [b"/a/.../b.", b"/.well-known/x", b"/a./b"],
            ),
            ("backslash", [b"/a\\b", b"/a%5cb", b"/a%255cb"], [b"/a/b", b"/?f=c:\\x", b"/a%2fb"]),
            ("nul_byte", [b"/a%00.jpg", b"/?x=%00", b"/\0"], [b"/a0", b"/%0a0", b"/%30"]),
            ("bad_escape", [b"/%", b"/%zz", b"/?x=50%&y=1"], [b"/%20", b"/?x=50%25", b"/%u0041"]),
            ("bare_byte", [b"/\xc3\xa9", b"/?x=\xff", b"/a\x80"], [b"/%c3%a9", b"/a", b"/?x=%ff"]),
            (
                "control_in_path",
                [b"/a%0d%0ab", b"/a%09b", b"/%7f"],
                [b"/a%20b", b"/?x=%0a", b"/a%00b"],
            ),
            ("multiple_slashes", [b"//a", b"/a//b", b"/a%2f/b"], [b"/a/b", b"/?u=http://x", b"/"]),
            ("semicolon_in_path", [b"/a;b=1/c", b"/;x", b"/a%3bb"], [b"/a,b", b"/?a;b", b"/a"]),
            (
                "semicolon_traversal",
                [b"/..;/manager", b"/a/..;x=1/b", b"/a/%2e%2e%3b/b"],
                [b"/a;x/b", b"/../b", b"/..a;/b"],
            ),
            ("trailing_dot", [b"/a.php.", b"/x.", b"/a%2e"], [b"/a.php", b"/a/.", b"/a./b"]),
        ],
    );
}

/// A head with this target and further header lines.
fn with_head(
    lines: &[u8],
    look: impl Fn(&Request<'_>, &mut Findings<'_>),
    policy: &Policy,
) -> Vec<&'static str> {
    let mut lines = lines.split(|byte| *byte == b'\n');
    let mut first = lines.next().unwrap_or_default().splitn(3, |byte| *byte == b' ');
    let mut word = || first.next().unwrap_or_default();
    let (method, target, protocol) = (word(), word(), word());
    let headers: Vec<(&[u8], &[u8])> = lines
        .map(|line| {
            let at = line.iter().position(|byte| *byte == b':').expect("a header");
            (&line[..at], line[at + 1..].trim_ascii_start())
        })
        .collect();
    let request = Request {
        client: HERE,
        server: HERE,
        method,
        received_target: target,
        target,
        protocol: if protocol.is_empty() { b"HTTP/1.1" } else { protocol },
        headers: &headers,
        body: BodyLength::None,
        changed_cookies: &[],
        unique_id: b"",
    };
    let mut findings = Findings::new(policy);
    look(&request, &mut findings);
    names(findings)
}

const HEADS: &[Case<'static>] = &[
    (
        "host_missing",
        [b"GET /", b"GET / HTTP/1.1\nHosts: a", b"POST / HTTP/2\nA: b"],
        [b"GET / HTTP/1.1\nHost: a", b"GET / HTTP/1.0", b"GET / HTTP/2\nhost: a"],
    ),
    (
        "host_repeated",
        [b"GET /\nHost: a\nHost: b", b"GET /\nHost: a\nhost: a", b"GET /\nHost: a\nX: y\nHOST: b"],
        [b"GET /\nHost: a", b"GET /\nHost: a\nX-Host: b", b"GET /\nHost: a.b"],
    ),
    (
        "host_malformed",
        [b"GET /\nHost: a b", b"GET /\nHost: a:x", b"GET /\nHost: a..b"],
        [b"GET /\nHost: a-b.example.", b"GET /\nHost: a:8080", b"GET /\nHost: [::1]:80"],
    ),
    (
        "host_malformed",
        [b"GET /\nHost: a/b", b"GET /\nHost: a:99999", b"GET /\nHost: [::1"],
        [b"GET /\nHost: 10.0.0.1", b"GET /\nHost: a_b", b"GET /\nHost: localhost"],
    ),
    (
        "host_is_address",
        [b"GET /\nHost: 10.0.0.1", b"GET /\nHost: [::1]:80", b"GET /\nHost: 127.0.0.1:80"],
        [b"GET /\nHost: 10.example", b"GET /\nHost: a", b"GET /\nHost: 10.0.0.1.nip.io"],
    ),
    (
        "content_length_repeated",
        [
            b"POST /\nContent-Length: 1\nContent-Length: 1",
            b"POST /\nContent-Length: 1, 2",
            b"POST /\ncontent-length: 1\nContent-Length: 3",
        ],
        [
            b"POST /\nContent-Length: 1",
            b"POST /\nContent-Length: 10",
            b"POST /\nX-Content-Length: 1\nContent-Length: 1",
        ],
    ),
    (
        "content_length_malformed",
        [
            b"POST /\nContent-Length: -1",
            b"POST /\nContent-Length: 0x10",
            b"POST /\nContent-Length: +5",
        ],
        [
            b"POST /\nContent-Length: 0",
            b"POST /\nContent-Length: 12345",
            b"POST /\nContent-Length: 007",
        ],
    ),
    (
        "content_length_with_chunked",
        [
            b"POST /\nContent-Length: 1\nTransfer-Encoding: chunked",
            b"POST /\nTransfer-Encoding: x\nContent-Length: 1",
            b"POST /\nContent-Length: 0\ntransfer-encoding: chunked",
        ],
        [
            b"POST /\nContent-Length: 1",
            b"POST /\nTransfer-Encoding: chunked",
            b"POST /\nContent-Length: 1\nTE: trailers",
        ],
    ),
    (
        "body_in_get",
        [b"GET /\nContent-Length: 1", b"HEAD /\nContent-Length: 9", b"GET /x\nContent-Length: 2"],
        [b"GET /", b"POST /\nContent-Length: 1", b"OPTIONS /\nContent-Length: 1"],
    ),
    (
        "content_type_malformed",
        [
            b"POST /\nContent-Type: json",
            b"POST /\nContent-Type: a/b; c",
            b"POST /\nContent-Type: a/b\nContent-Type: c/d",
        ],
        [
            b"POST /\nContent-Type: text/html; charset=utf-8",
            b"POST /\nContent-Type: application/json",
            b"POST /\nContent-Type: multipart/form-data; boundary=\"a b\"",
        ],
    ),
    (
        "content_type_missing",
        [
            b"POST /\nContent-Length: 1",
            b"PUT /\nContent-Length: 5",
            b"PATCH /\nContent-Length: 1\nAccept: */*",
        ],
        [b"POST /\nContent-Type: a/b\nContent-Length: 1", b"GET /", b"POST /"],
    ),
    (
        "header_control",
        [b"GET /\nX: a\x01b", b"GET /\nX: a\rb", b"GET /\nX: \x7f"],
        [b"GET /\nX: a\tb", b"GET /\nX: \xc3\xa9", b"GET /\nX: a b"],
    ),
];

#[test]
fn compliance_of_heads() {
    let policy = strict();
    let of = |input: &[u8]| {
        let has_body = memchr::memmem::find(input, b"Length").is_some();
        with_head(input, |request, findings| compliance(request, has_body, findings), &policy)
    };
    table(of, HEADS);
}

#[test]
fn lengths_of_heads() {
    let mut policy = strict();
    policy.limits = Limits {
        url_bytes_max: 10,
        query_bytes_max: 5,
        request_bytes_max: 90,
        body_bytes_max: 70,
        header_bytes_max: 40,
        headers_max: 3,
        cookie_bytes_max: 12,
        cookies_max: 2,
        ..Limits::default()
    };
    let of = |input: &[u8]| {
        let at = memchr::memmem::find(input, b"Content-Length: ");
        let body_bytes = at.map(|at| crate::value::number_of(&input[at + 16..]).unsigned_abs());
        with_head(input, |request, findings| lengths(request, body_bytes, findings), &policy)
    };
    table(of, &[
        ("method", [b"TRACE /", b"CONNECT a:1", b"get /"], [b"GET /", b"OPTIONS *", b"DELETE /x"]),
        ("file_type", [b"GET /a.bak", b"GET /a.SQL", b"GET /a.b%61k"], [b"GET /bak", b"GET /a.html", b"GET /abak/b"]),
        ("file_type", [b"GET /x.key;v=1", b"GET /x.pem.", b"GET /d/.conf"], [b"GET /?f=a.bak", b"GET /a.keys", b"GET /"]),
        ("url_length", [b"GET /1234567890", b"GET /%20%20%20%20", b"GET /aaaaaaaaaaaaaaaa?x"], [b"GET /123456789", b"GET /?1234567890123", b"GET /a"]),
        ("query_length", [b"GET /?123456", b"GET /?a=1&b=2", b"GET /x?%20%20"], [b"GET /?12345", b"GET /123456", b"GET /"]),
        ("body_length", [b"POST /\nContent-Length: 71", b"PUT /\nContent-Length: 999999", b"POST /\nContent-Length: 100"], [b"POST /\nContent-Length: 70", b"GET /", b"POST /\nContent-Length: 0"]),
        ("header_length", [b"GET /\nX: 1234567890123456789012345678901234567890", b"GET /\nReferer: 1234567890123456789012345678901234", b"GET /\nCookie: a=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"], [b"GET /\nX: 123456789012345678901234567890123456789", b"GET /\nX: 1", b"GET /"]),
        ("header_count", [b"GET /\nA: 1\nB: 1\nC: 1\nD: 1", b"GET /\nA: 1\nA: 1\nA: 1\nA: 1", b"GET /\na: b\nc: d\ne: f\ng: h\ni: j"], [b"GET /\nA: 1\nB: 1\nC: 1", b"GET /", b"GET /\nA: b"]),
        ("request_length", [b"POST /\nContent-Length: 75", b"GET /\nA: 12345678901234567890123456789012345\nB: 123456789012345678901234567890123456\nC: 12345678901234567890", b"POST /\nA: 12345678901234567890\nContent-Length: 60"], [b"POST /\nContent-Length: 60", b"GET /\nA: b", b"GET /"]),
        ("cookie_length", [b"GET /\nCookie: a=123456789012", b"GET /\nCookie: x=1; name=123456789", b"GET /\nCookie: 1234567890123"], [b"GET /\nCookie: a=12345678901", b"GET /\nCookie: x=1; n=2", b"GET /\nX: a=1234567890123"]),
        ("cookie_count", [b"GET /\nCookie: a=1; b=2; c=3", b"GET /\nCookie: a=1; b=2\nCookie: c=3", b"GET /\nCookie: a=1;a=1;a=1"], [b"GET /\nCookie: a=1; b=2", b"GET /\nCookie: a=1;;", b"GET /"]),
    ]);
}

#[test]
fn kinds_of_files_have_limits_of_their_own() {
    let mut policy = strict();
    policy.file_types = FileTypes::Only(vec![
        FileType {
            extension: "php".into(),
            url_bytes_max: Some(8),
            query_bytes_max: Some(3),
            body_bytes_max: Some(5),
        },
        FileType {
            extension: "".into(),
            url_bytes_max: None,
            query_bytes_max: None,
            body_bytes_max: None,
        },
    ]);
    for (target, body_bytes, expected) in [
        ("GET /a.php?x=1", None, &[][..]),
        ("GET /a.html", None, &["file_type"]),
        ("GET /abcdef.php", None, &["url_length"]),
        ("GET /a.php?x=12", None, &["query_length"]),
        ("POST /a.php", Some(6), &["body_length"]),
        ("POST /a", Some(6), &[]),
    ] {
        let found = with_head(
            target.as_bytes(),
            |request, findings| lengths(request, body_bytes, findings),
            &policy,
        );
        assert_eq!(found, expected, "{target}");
    }
}

#[test]
fn parameters_have_limits() {
    let mut policy = strict();
    policy.limits = Limits {
        parameter_bytes_max: 5,
        parameter_name_bytes_max: 4,
        parameters_max: 3,
        ..Limits::default()
    };
    policy.parameter_limits = vec![("long".into(), 10)];
    for (name, value, count, expected) in [
        ("a", "12345", 1, &[][..]),
        ("a", "123456", 1, &["parameter_length"]),
        ("long", "1234567890", 1, &[]),
        ("long", "12345678901", 1, &["parameter_length"]),
        ("abcde", "", 1, &["parameter_name_length"]),
        ("a", "", 3, &[]),
        ("a", "", 4, &["parameter_count"]),
    ] {
        let mut findings = Findings::new(&policy);
        parameter(name.as_bytes(), value.as_bytes(), count, &mut findings);
        assert_eq!(names(findings), expected, "{name} {value} {count}");
    }
    let mut findings = Findings::new(&policy);
    argument(b"a", b"x\0y", &mut findings);
    argument(b"b\0", b"", &mut findings);
    argument(b"c", b"0", &mut findings);
    assert_eq!(names(findings), ["nul_byte", "nul_byte"]);
}

#[test]
fn cookies_of_requests() {
    let policy = strict();
    for (header, changed, expected) in [
        ("s=v; t=1", &[][..], &[][..]),
        ("s=v", &["s"], &["cookie_changed"]),
        ("s=v; t=1", &["s", "t"], &["cookie_changed", "cookie_changed"]),
        ("a=1; a=2", &[], &["cookie_repeated"]),
        ("a=1; b=\"c d\"", &[], &[]),
        ("a=\"b; c=1", &[], &["cookie_malformed"]),
        ("a(b)=1", &[], &["cookie_malformed"]),
        ("a=b\\c", &[], &["cookie_malformed"]),
        ("a=\u{e9}", &[], &["cookie_malformed"]),
        ("a=b,c d", &[], &[]),
    ] {
        let changed: Vec<Vec<u8>> = changed.iter().map(|name| name.as_bytes().to_vec()).collect();
        let mut findings = Findings::new(&policy);
        cookies(&[header.as_bytes()], &changed, &mut findings);
        assert_eq!(names(findings), expected, "{header}");
    }
}

const JSON: &[Case<'static>] = &[
    ("json_malformed", [b"{", b"{'a':1}", b"[1,]"], [b"{}", b"[1]", b"\"a\""]),
    (
        "json_depth",
        [b"[[[[[1]]]]]", b"{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":1}}}}}", b"[[[[[["],
        [b"[[[1]]]", b"[1,[2],[3]]", b"{}"],
    ),
    (
        "json_size",
        [
            b"[1,2,3,4,5,6]",
            b"[1,2,3,4,5,6,7,8]",
            b"{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1}",
        ],
        [b"[1,2,3]", b"{\"a\":1}", b"1"],
    ),
    (
        "json_repeated_key",
        [b"{\"a\":1,\"a\":2}", b"{\"x\":{\"a\":1,\"a\":1}}", b"{\"a\":1,\"\\u0061\":2}"],
        [b"{\"a\":1,\"b\":2}", b"[{\"a\":1},{\"a\":2}]", b"{\"a\":{\"a\":1}}"],
    ),
];

const XML: &[Case<'static>] = &[
    (
        "xml_malformed",
        [b"<a>", b"<a></b>", b"<a b=c/>"],
        [b"<a/>", b"<a>b</a>", b"<?xml version=\"1.0\"?><a b='c'/>"],
    ),
    (
        "xml_depth",
        [
            b"<a><a><a><a><a/></a></a></a></a>",
            b"<a><b><c><d><e><f>",
            b"<a><a><a><a><a>x</a></a></a></a></a>",
        ],
        [b"<a><b/></a>", b"<a><b/><c/><d/><e/></a>", b"<a/>"],
    ),
    (
        "xml_doctype",
        [b"<!DOCTYPE a><a/>", b"<!DOCTYPE html><a/>", b"<!DOCTYPE a SYSTEM 'x'><a/>"],
        [b"<a/>", b"<!-- <!DOCTYPE a> --><a/>", b"<a>DOCTYPE</a>"],
    ),
    (
        "xml_entity",
        [
            b"<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>",
            b"<!DOCTYPE a [<!ENTITY x 'y'>]><a/>",
            b"<a>&unknown;</a>",
        ],
        [b"<a>&amp;&lt;</a>", b"<a>&#65;</a>", b"<a>ENTITY</a>"],
    ),
    (
        "xml_size",
        [
            b"<a b='1' c='1' d='1' e='1' f='1' g='1'/>",
            b"<a>1<b/>2<b/>3<b/>4<b/>5<b/>6</a>",
            b"<a b='1' c='2' d='3'>1<x/>2<x/>3</a>",
        ],
        [b"<a b='1'/>", b"<a>1</a>", b"<a/>"],
    ),
];

#[test]
fn bodies_and_what_is_wrong_with_them() {
    let policy = strict();
    let settings = Settings {
        limits: crate::body::Limits {
            depth_max: 4,
            arguments_max: 5,
            ..crate::body::Limits::DEFAULT
        },
        ..Settings::DEFAULT
    };
    let of = |processor, content_type: &[u8], bytes: &[u8]| {
        let mut body = Body::new(processor, content_type, &settings);
        body.feed(bytes, &mut ());
        body.finish(&mut ());
        let mut findings = Findings::new(&policy);
        of_body(&body, &mut findings);
        names(findings)
    };
    table(|input| of(Processor::Json, b"", input), JSON);
    table(|input| of(Processor::Xml, b"", input), XML);
    let multipart =
        |input: &[u8]| of(Processor::Multipart, b"multipart/form-data; boundary=xx", input);
    const PART: &str = "--xx\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nv\r\n";
    let whole = format!("{PART}--xx--\r\n");
    let other = whole.replace("name=\"a\"", "name=\"b c\"");
    let two = format!("{PART}{PART}--xx--\r\n");
    let near = [whole.as_bytes(), other.as_bytes(), two.as_bytes()];
    let nameless = whole.replace("; name=\"a\"", "");
    let twice = whole.replace("name=\"a\"", "name=\"a\"; name=\"b\"");
    let single = whole.replace("\"a\"", "'a'");
    let extended = whole.replace("name=\"a\"", "name=\"a\"; filename=\"x\"; filename=\"y\"");
    let both = whole.replace("name=\"a\"", "name=\"a\"; filename=\"x\"; filename*=utf-8''y");
    table(
        multipart,
        &[
            (
                "multipart_malformed",
                [b"no boundary", nameless.as_bytes(), b"--xx\r\nfoo\r\n\r\nv\r\n--xx--\r\n"],
                near,
            ),
            (
                "multipart_ambiguous",
                [twice.as_bytes(), single.as_bytes(), extended.as_bytes()],
                // Both names are inspected.
                [whole.as_bytes(), other.as_bytes(), both.as_bytes()],
            ),
        ],
    );
}

#[test]
fn graphql_queries() {
    let mut policy = strict();
    policy.limits.graphql_depth_max = 3;
    policy.limits.graphql_batch_max = 2;
    let of = |input: &[u8]| {
        let mut findings = Findings::new(&policy);
        graphql(input, 1, &mut findings);
        names(findings)
    };
    table(
        of,
        &[
            (
                "graphql_depth",
                [b"{a{b{c{d}}}}", b"query Q { a { b { c { d } } } }", b"{a(x:{y:1}){b{c{d}}}}"],
                [b"{a{b{c}}}", b"{a{b}c{d}e{f}}", b"{a(x:\"{{{{{\")}"],
            ),
            (
                "graphql_depth",
                [
                    b"{a{b{...F}}} fragment F on T {c{d}}",
                    b"fragment F on T {c{...G}} query {a{...F}} fragment G on U {d{e}}",
                    b"{...F} fragment F on T {a{...F}}",
                ],
                [
                    b"{a{...F}} fragment F on T {c{d}}",
                    b"{a{b{c}}} fragment F on T {c{d}}",
                    b"{a{...on}} fragment on on T {c{d{e}}}",
                ],
            ),
            (
                "graphql_batch",
                [b"{a:x b:x c:x}", b"{a:x(i:1){y} b:x c:x}", b"query{x{a:y b:y c:y}}"],
                [b"{a:x b:x}", b"{x(a:1,b:2,c:3,d:4)}", b"{a b c d}"],
            ),
            (
                "graphql_introspection",
                [
                    b"{__schema{types{name}}}",
                    b"{__type(name:\"A\"){name}}",
                    b"query I{a:__schema{queryType{name}}}",
                ],
                [b"{__typename}", b"{a(x:\"__schema\")}", b"{schema}"],
            ),
        ],
    );
    let mut findings = Findings::new(&policy);
    graphql(b"{a}", 3, &mut findings);
    assert_eq!(names(findings), ["graphql_batch"]);
}

/// Blocking findings are stored and come first, regardless of the number of alarms.
#[test]
fn alarms_do_not_push_out_what_blocks() {
    let mut policy = strict();
    policy.set(Check::CookieMalformed, Action::Alarm);
    let mut findings = Findings::new(&policy);
    for number in 0..2 * FINDINGS_MAX {
        findings.add(Check::CookieMalformed, &format!("cookie {number}"), b"");
    }
    findings.add(Check::CookieChanged, "cookie session", b"");
    findings.add(Check::NulByte, "parameter a", b"");
    let all = findings.all();
    assert_eq!(all.len(), FINDINGS_MAX);
    let first = [Check::CookieChanged, Check::NulByte, Check::CookieMalformed];
    assert_eq!(all.iter().map(|it| it.check).take(3).collect::<Vec<_>>(), first);
    for number in 0..2 * FINDINGS_MAX {
        findings.add(Check::NulByte, &format!("parameter {number}"), b"");
    }
    assert_eq!(findings.all().len(), FINDINGS_MAX);
    assert!(findings.all().iter().all(Finding::blocks));
}

#[test]
fn forbidden_files_are_found_wherever_they_stand() {
    let mut policy = strict();
    policy.file_types = FileTypes::AllBut(vec!["bak".into(), "sql".into()]);
    for (target, is_found) in [
        ("/a.bak", true),
        ("/a.bak/", true),
        ("/a.bak/x", true),
        ("/a.sql~", true),
        ("/a.SQL;x", true),
        ("/a%2ebak", true),
        ("/bak", false),
        ("/a.bak.txt", false),
        ("/a.sqlx/b.html", false),
    ] {
        let found = with_head(
            format!("GET {target}").as_bytes(),
            |request, findings| lengths(request, None, findings),
            &policy,
        );
        assert_eq!(found == ["file_type"], is_found, "{target}: {found:?}");
    }
}

#[test]
fn graphql_is_found_by_each_spelling_of_its_path() {
    let mut policy = strict();
    policy.limits.graphql_depth_max = 3;
    let checks = Checks { policy, interface: None };
    for (target, is_found) in [
        ("/graphql", true),
        ("/graphql/", true),
        ("/api/GraphQL;x/v1", true),
        ("/graphql.html", false),
    ] {
        let text = format!("GET {target}");
        let found = with_head(
            text.as_bytes(),
            |request, findings| {
                for finding in checks.head(request, &[(b"query", b"{a{b{c{d}}}}")]) {
                    findings.add(finding.check, &finding.place, b"");
                }
            },
            &checks.policy,
        );
        assert_eq!(found.contains(&"graphql_depth"), is_found, "{target}: {found:?}");
    }
}

#[test]
fn what_is_off_finds_nothing_and_one_place_is_told_once() {
    let mut policy = strict();
    policy.set(Check::NulByte, Action::Off);
    policy.set(Check::BadEscape, Action::Alarm);
    let mut findings = Findings::new(&policy);
    target(b"/%00%zz%zz", &mut findings);
    assert!(findings.blocks().is_none(), "{:?}", findings.all());
    assert_eq!(names(findings), ["bad_escape"]);
}

#[test]
fn names_are_one_each() {
    let names: std::collections::BTreeSet<_> =
        Check::ALL.iter().map(|check| check.name()).collect();
    assert_eq!(names.len(), Check::ALL.len());
    for check in Check::ALL {
        assert_eq!(Check::named(check.name()), Some(check));
        assert!(check.sentence().ends_with('.'));
    }
}

/// The table in docs/waf.md lists each check with its properties.
#[test]
fn all_checks_are_documented() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/waf.md");
    let text = std::fs::read_to_string(path).expect("docs/waf.md");
    let rows = Check::ALL.map(|check| {
        let action = check.default_action().name();
        format!("| `{}` | {action} | {} |", check.name(), check.sentence())
    });
    let missing: Vec<_> = rows.iter().filter(|row| !text.contains(*row)).collect();
    assert!(missing.is_empty(), "missing in docs/waf.md: {missing:#?}");
}

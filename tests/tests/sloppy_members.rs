//! Members whose responses are not quite valid HTTP: which of them weir accepts, how weir forwards them, and which it
//! rejects.

use std::io::Read as _;
use std::time::Duration;

use weir_tests::http2::{Http2Member, Peer};
use weir_tests::member::{Member, Then};
use weir_tests::proxy::{Proxy, Setup};

/// A path, and the response of the member to it.
struct Case {
    path: &'static str,
    sends: &'static str,
    /// The response that an HTTP/1 client receives if weir accepts the flaw, without Date.
    becomes: &'static str,
    /// The kinds of flaws in the metric.
    kinds: &'static [&'static str],
    /// Whether the connection to the member is reused.
    is_kept: bool,
}

const LENGTH: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";

const fn case(
    path: &'static str,
    sends: &'static str,
    becomes: &'static str,
    kinds: &'static [&'static str],
) -> Case {
    Case { path, sends, becomes, kinds, is_kept: true }
}

/// Flaws that weir accepts from all members.
const USUAL: &[Case] = &[
    case(
        "/length-twice",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
        LENGTH,
        &["repeated_content_length"],
    ),
    case(
        "/length-list",
        "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello",
        LENGTH,
        &["repeated_content_length"],
    ),
    case(
        "/chunk-spaces",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5   \r\nhello\r\n0   \r\n\r\n",
        CHUNKED,
        &["chunk_size_spaces"],
    ),
    Case {
        is_kept: false,
        ..case(
            "/both",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            CHUNKED,
            &["both_framings"],
        )
    },
];

/// Flaws that weir accepts only if the pool lists them.
const NAMED: &[Case] = &[
    case(
        "/line-feeds",
        "HTTP/1.1 200 OK\nX-A: b\nContent-Length: 5\n\nhello",
        "HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: 5\r\n\r\nhello",
        &["bare_line_feeds"],
    ),
    case(
        "/line-feeds-in-chunks",
        "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n5\nhello\n0\nX-B: 1\n\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-B: 1\r\n\r\n",
        &["bare_line_feeds"],
    ),
    case(
        "/controls",
        "HTTP/1.1 200 O\x01K\r\nX-A: b\rSet-Cookie: c=d\0\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 O K\r\nX-A: b Set-Cookie: c=d\r\nContent-Length: 5\r\n\r\nhello",
        &["control_characters"],
    ),
    case(
        "/control-in-trailer",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-B: 1\x7f2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-B: 1 2\r\n\r\n",
        &["control_characters"],
    ),
    case(
        "/interim",
        "HTTP/1.1 103 Early\nLink: </a>\n\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        &["bare_line_feeds"],
    ),
    case(
        "/status",
        "HTTP/1.1 999 Request denied\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 999 Request denied\r\nContent-Length: 5\r\n\r\nhello",
        &["unknown_status"],
    ),
    Case {
        is_kept: false,
        ..case(
            "/everything",
            "HTTP/1.1 600 \x02\nX-A:\x03b\nContent-Length: 2, 2\nTransfer-Encoding: chunked\n\n5 \nhello\n0\n\n",
            "HTTP/1.1 600  \r\nX-A: b\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            // Chunks that are announced twice, beside a length, are refused.
            &[
                "repeated_content_length",
                "both_framings",
                "chunk_size_spaces",
                "bare_line_feeds",
                "control_characters",
                "unknown_status",
            ],
        )
    },
    case(
        "/chunked-twice",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        CHUNKED,
        &["repeated_chunked"],
    ),
    case(
        "/chunked-list",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        CHUNKED,
        &["repeated_chunked"],
    ),
];

const LENIENT: &str =
    "lenient: [ bare_line_feeds, control_characters, unknown_status, repeated_chunked ]";

/// A member that sends the bytes of the case for a path, with a pause after each byte. Other responses contain the path.
fn member(pause: Option<Duration>) -> Member {
    Member::new(move |exchange| {
        let path = exchange.request.target().to_owned();
        let known = USUAL.iter().chain(NAMED).find(|case| case.path == path);
        let Some(case) = known else {
            return exchange.answer(path);
        };
        match pause {
            None => exchange.send(case.sends)?,
            Some(pause) => {
                for byte in case.sends.bytes() {
                    exchange.send([byte])?;
                    std::thread::sleep(pause);
                }
            }
        }
        Ok(Then::KeepAlive)
    })
}

fn start(member: &Member, pool: &str) -> Proxy {
    let setup = Setup::new(&[member.address()]).pool("retries: 0").http("http2: true");
    let setup = if pool.is_empty() { setup } else { setup.pool(pool) };
    Proxy::start(&setup.top("data_plane: { workers: 1 }"))
}

/// All bytes of the response, without Date and Connection.
fn raw(proxy: &Proxy, path: &str) -> String {
    let mut client = proxy.client();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"));
    let mut bytes = Vec::new();
    client.stream().read_to_end(&mut bytes).expect("an end");
    let text = String::from_utf8(bytes).expect("text");
    let is_ours = |line: &&str| line.starts_with("Date: ") || line.starts_with("Connection: ");
    text.split_inclusive("\r\n").filter(|line| !is_ours(line)).collect()
}

fn counted(proxy: &Proxy, kind: &str) -> f64 {
    proxy.metric("weir_member_flawed_responses_total", &[&format!("kind=\"{kind}\"")])
}

/// Checks that weir corrects and counts a flawed response, and that the state of the connection is correct afterwards.
#[track_caller]
fn check_taken(proxy: &Proxy, member: &Member, case: &Case) {
    let about = case.path;
    let before: Vec<f64> = case.kinds.iter().map(|kind| counted(proxy, kind)).collect();
    let all = proxy.metric("weir_member_flawed_responses_total", &[]);
    assert_eq!(raw(proxy, case.path), case.becomes, "{about}");
    for (kind, before) in case.kinds.iter().zip(before) {
        assert_eq!(counted(proxy, kind), before + 1.0, "{about}: {kind}");
    }
    let more = proxy.metric("weir_member_flawed_responses_total", &[]) - all;
    assert_eq!(more, case.kinds.len() as f64, "{about}: no other kind");
    // The next response must be for the next request, on the same connection or on another.
    let connections = member.connection_count();
    assert_eq!(proxy.client().get("/next").assert_status(200).text(), "/next", "{about}");
    assert_eq!(member.connection_count() == connections, case.is_kept, "{about}");
    // The same over HTTP/2.
    let status: u16 = case.becomes[case.becomes.rfind("HTTP/1.1 ").expect("a status") + 9..][..3]
        .parse()
        .expect("a number");
    let mut peer = Peer::connect(proxy.address());
    let got = peer.get(case.path);
    assert_eq!(got.assert_status(status).text(), "hello", "{about}");
    for (name, value) in got.head.iter().chain(&got.trailers) {
        assert!(!value.bytes().any(|byte| byte.is_ascii_control()), "{about}: {name}: {value:?}");
    }
}

#[test]
fn what_leaves_no_doubt_is_taken_from_any_member() {
    let member = member(None);
    let proxy = start(&member, "");
    for case in USUAL {
        check_taken(&proxy, &member, case);
    }
    for case in NAMED {
        let before = proxy.metric("weir_member_flawed_responses_total", &[]);
        let got = raw(&proxy, case.path);
        // A flaw after the head cuts the response, whose head was sent already.
        let is_cut = got.starts_with("HTTP/1.1 200") && !got.ends_with("0\r\n\r\n");
        assert!(got.starts_with("HTTP/1.1 502 ") || is_cut, "{}: {got}", case.path);
        assert_eq!(
            proxy.metric("weir_member_flawed_responses_total", &[]),
            before,
            "{}",
            case.path
        );
    }
}

#[test]
fn a_pool_names_what_else_is_taken_from_its_members() {
    let member = member(None);
    let proxy = start(&member, LENIENT);
    for case in USUAL.iter().chain(NAMED) {
        check_taken(&proxy, &member, case);
    }
    assert_eq!(proxy.metric("weir_virtual_server_responses_total", &["class=\"5xx\""]), 4.0);
}

/// Each setting accepts only its own flaw.
#[test]
fn each_word_is_for_itself() {
    let member = member(None);
    for (word, path) in [
        ("bare_line_feeds", "/line-feeds"),
        ("control_characters", "/controls"),
        ("unknown_status", "/status"),
    ] {
        let proxy = start(&member, &format!("lenient: [ {word} ]"));
        for case in
            NAMED.iter().filter(|case| ["/line-feeds", "/controls", "/status"].contains(&case.path))
        {
            let got = raw(&proxy, case.path);
            if case.path == path {
                assert_eq!(got, case.becomes, "{word}");
            } else {
                assert!(got.starts_with("HTTP/1.1 502 "), "{word} {}: {got}", case.path);
            }
        }
    }
}

/// weir forwards a chunk that arrives in pieces as several chunks. The rest of the response is the same.
#[test]
fn flaws_that_come_byte_by_byte() {
    let member = member(Some(Duration::from_micros(200)));
    let proxy = start(&member, LENIENT);
    for case in USUAL.iter().chain(NAMED) {
        let about = case.path;
        let before: Vec<f64> = case.kinds.iter().map(|kind| counted(&proxy, kind)).collect();
        let mut client = proxy.client();
        let response = client.get(about);
        assert_eq!((response.text().as_str(), response.complete), ("hello", true), "{about}");
        let mut seen = vec![&response.head, &response.trailers];
        seen.extend(&response.interim);
        for (name, value) in seen.iter().flat_map(|head| &head.fields) {
            let line = format!("\r\n{name}: {value}\r\n");
            assert!(name == "Date" || case.becomes.contains(&line), "{about}: {line:?}");
        }
        assert_eq!(client.get("/next").text(), "/next", "{about}");
        for (kind, before) in case.kinds.iter().zip(before) {
            assert_eq!(counted(&proxy, kind), before + 1.0, "{about}: {kind}");
        }
    }
}

/// With compression, weir processes heads and bodies differently.
#[test]
fn flawed_responses_are_compressed() {
    const BODY_BYTES: usize = 3_000;
    let member = Member::new(|exchange| {
        let body = "word ".repeat(BODY_BYTES / 5);
        let head = "HTTP/1.1 200 OK\nContent-Type: text/plain\nX-A: \x01\n";
        let message = match exchange.request.target() {
            "/length" => format!("{head}Content-Length: {BODY_BYTES}, {BODY_BYTES}\n\n{body}"),
            _ => format!("{head}Transfer-Encoding: chunked\n\n{BODY_BYTES:x} \n{body}\n0\n\n"),
        };
        // In two pieces, so that weir waits for the rest of the short body.
        let (first, rest) = message.split_at(200);
        exchange.send(first)?;
        std::thread::sleep(Duration::from_millis(20));
        exchange.send(rest).map(|()| Then::KeepAlive)
    });
    let setup = Setup::new(&[member.address()]).pool(LENIENT);
    let proxy = Proxy::start(&setup.virtual_server("compression: { gzip: { level: 5 } }"));
    for path in ["/length", "/chunked", "/length"] {
        let mut client = proxy.client();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\nAccept-Encoding: gzip\r\n\r\n"));
        let response = client.response();
        assert_eq!(response.assert_status(200).head.field("content-encoding"), Some("gzip"));
        assert_eq!(response.head.field("x-a"), Some(""));
        assert!(response.body.len() < 200, "{} bytes", response.body.len());
        let plain = proxy.client().get(path);
        assert_eq!(plain.text().len(), BODY_BYTES, "{path}");
    }
}

/// An ambiguous response is rejected with all settings, and its bytes are never the response to another request.
#[test]
fn doubt_is_never_taken() {
    const DOUBTFUL: &[&str] = &[
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        "HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\nhello!",
        "HTTP/1.1 200 OK\nContent-Length: 5\nContent-Length : 6\n\nhello!",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n Content-Length: 6\r\n\r\nhello!",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: gzip\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\x01\r\n\r\nhello",
        "HTTP/1.0 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nX: \0\r\nContent-Length\0: 5\r\n\r\nhello",
        "HTTP/1.1 099 Low\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\n\r\r\nContent-Length: 5\r\n\r\nhello",
    ];
    let member = Member::new(|exchange| {
        let target = exchange.request.target().to_owned();
        match target.strip_prefix("/doubtful/").and_then(|number| number.parse::<usize>().ok()) {
            Some(number) => exchange.send(DOUBTFUL[number]).map(|()| Then::KeepAlive),
            None => exchange.answer(target),
        }
    });
    let proxy = start(&member, LENIENT);
    for (number, sends) in DOUBTFUL.iter().enumerate() {
        let got = raw(&proxy, &format!("/doubtful/{number}"));
        assert!(got.starts_with("HTTP/1.1 502 "), "{}: {got}", sends.escape_default());
        assert_eq!(proxy.client().get("/next").assert_status(200).text(), "/next");
    }
    assert_eq!(proxy.metric("weir_member_flawed_responses_total", &[]), 0.0);
}

/// HTTP/2 members may repeat Content-Length, too.
#[test]
fn flaws_of_members_of_http2() {
    let member = Http2Member::new(&[], |peer, _| {
        while let Some(stream) = peer.next_request() {
            let request = peer.response(stream);
            let length = ("content-length", "5");
            let head: &[(&str, &str)] = match request.path() {
                "/twice" => &[(":status", "200"), length, length],
                "/list" => &[(":status", "200"), ("content-length", "5, 5")],
                "/different" => &[(":status", "200"), length, ("content-length", "6")],
                "/status" => &[(":status", "999"), length],
                _ => &[(":status", "200"), length],
            };
            peer.headers(stream, head, false).data(stream, b"hello", true);
        }
        Ok(())
    });
    let setup = Setup::new(&[member.address()]).pool("http2: true").pool("retries: 0");
    for (pool, status) in [(None, 502), (Some("lenient: [ unknown_status ]"), 999)] {
        let setup = pool.map_or(setup.clone(), |line| setup.clone().pool(line));
        let proxy = Proxy::start(&setup);
        let get = |path: &str| proxy.client().get(path);
        assert_eq!(get("/twice").assert_status(200).text(), "hello");
        assert_eq!(get("/list").assert_status(200).head.field("content-length"), Some("5"));
        get("/different").assert_status(502);
        get("/status").assert_status(status);
        get("/sound").assert_status(200);
        assert_eq!(counted(&proxy, "repeated_content_length"), 2.0);
        assert_eq!(counted(&proxy, "unknown_status"), f64::from(u8::from(status == 999)));
    }
}

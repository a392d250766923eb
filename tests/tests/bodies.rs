//! Rules that replace text in the bodies of responses.

use std::io::{self, Read as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use weir_testing::decode;
use weir_tests::http2::Peer;
use weir_tests::member::{Exchange, Member, Then};
use weir_tests::nginx::Nginx;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::{STEP_TIMEOUT, require};

/// The replacement that most scenarios use.
const STRINGS: &str = "{ then: [ { replace_response_body: { strings: { \"http://inner\": \"https://outer.example\", inner: outer }, types: [ \"text/*\" ], size_max: 1MiB } } ] }";

const BODY: &str = "<a href='http://inner/x'>inn</a> inner inn http://inne";
const REWRITTEN: &str = "<a href='https://outer.example/x'>inn</a> outer inn http://inne";

fn with_rule(setup: Setup, rule: &str) -> Setup {
    let policies = format!("policies:\n  p: {{ strategy: all_match, rules: [ {rule} ] }}");
    setup.http("http2: true").virtual_server("policies: [ p ]").top(&policies)
}

/// Sends a body as the target `/HOW/PIECE` requests: with this framing, in pieces of this number of bytes.
fn send(exchange: &mut Exchange, how: &str, piece: usize, body: &[u8]) -> io::Result<Then> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nETag: \"a\"\r\n\
        Accept-Ranges: bytes\r\nContent-Digest: sha-256=:aaaa:\r\n";
    let is_head = exchange.request.method() == "HEAD";
    let framing = match how {
        "length" => format!("Content-Length: {}\r\n", body.len()),
        "chunked" => "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n".to_owned(),
        _ => String::new(),
    };
    exchange.send(format!("{head}{framing}\r\n"))?;
    if is_head {
        return Ok(Then::KeepAlive);
    }
    exchange.stream().set_nodelay(true)?;
    for piece in body.chunks(piece) {
        match how {
            "chunked" => {
                let length = format!("{:x}\r\n", piece.len());
                exchange.send([length.as_bytes(), piece, b"\r\n"].concat())?;
            }
            _ => exchange.send(piece)?,
        }
    }
    if how == "chunked" {
        exchange.send("0\r\nX-Sum: 1\r\nContent-Digest: sha-256=:aaaa:\r\n\r\n")?;
    }
    Ok(if how == "close" { Then::Close } else { Then::KeepAlive })
}

fn member() -> Member {
    Member::new(|exchange| {
        let target = exchange.request.target().to_owned();
        let parts: Vec<&str> = target.split('/').skip(1).collect();
        let [how, piece] = parts[..] else { return exchange.answer("") };
        let piece = piece.parse().expect("a number");
        send(exchange, how, piece, BODY.as_bytes())
    })
}

/// A proxy whose member uses HTTP/1, or HTTP/2 through a second proxy.
fn before(member: &Member, by_http2: bool, rule: &str) -> (Proxy, Option<Proxy>) {
    let inner =
        by_http2.then(|| Proxy::start(&Setup::new(&[member.address()]).http("http2: true")));
    let address = inner.as_ref().map_or(member.address(), Proxy::address);
    let setup = with_rule(Setup::new(&[address]), rule);
    let setup = if by_http2 { setup.pool("http2: true") } else { setup };
    (Proxy::start(&setup), inner)
}

fn get(path: &str, fields: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n")
}

#[test]
fn bodies_are_rewritten_wherever_they_are_cut_whichever_versions_are_spoken() {
    let member = member();
    for by_http2 in [false, true] {
        let (proxy, _inner) = before(&member, by_http2, STRINGS);
        let (mut client, mut peer) = (proxy.client(), Peer::connect(proxy.address()));
        for how in ["length", "chunked", "close"] {
            for piece in [1, 5, 13, 1000] {
                let about = format!("{how} in {piece}, members of HTTP/2: {by_http2}");
                let path = format!("/{how}/{piece}");
                client.send(get(&path, ""));
                let response = client.response();
                assert_eq!(response.assert_status(200).text(), REWRITTEN, "{about}");
                let field = |name| response.head.field(name);
                assert_eq!(field("transfer-encoding"), Some("chunked"), "{about}");
                assert_eq!(field("content-length"), None, "{about}");
                assert_eq!(field("etag"), Some("W/\"a\""), "{about}");
                assert_eq!(field("accept-ranges"), None, "{about}");
                assert_eq!(field("content-digest"), None, "{about}");
                let trailers = response.trailers.fields;
                let sum = (how == "chunked").then(|| ("x-sum".to_owned(), "1".to_owned()));
                let lower = trailers.into_iter().map(|(name, value)| (name.to_lowercase(), value));
                assert_eq!(lower.collect::<Vec<_>>(), Vec::from_iter(sum.clone()), "{about}");
                let response = peer.get(&path);
                assert_eq!(response.assert_status(200).text(), REWRITTEN, "{about}");
                assert_eq!(response.field("content-length"), None, "{about}");
                assert_eq!(response.field("etag"), Some("W/\"a\""), "{about}");
                assert_eq!(response.trailers, Vec::from_iter(sum), "{about}");
            }
        }
        let metric = "weir_virtual_server_rewritten_bodies_total";
        assert_eq!(proxy.metric(metric, &["\"rewritten\""]), 24.0);
    }
    // weir requests only codings that it can decode.
    for request in member.requests() {
        assert_eq!(request.head.field("accept-encoding"), Some("identity"));
    }
}

#[test]
fn heads_alone_and_old_clients() {
    let member = member();
    let (proxy, _) = before(&member, false, STRINGS);
    let mut client = proxy.client();
    client.send("HEAD /length/10 HTTP/1.1\r\nHost: a\r\n\r\n");
    let response = client.head_response();
    response.assert_status(200);
    assert_eq!(response.head.field("content-length"), None);
    assert_eq!(response.head.field("etag"), Some("W/\"a\""));
    assert_eq!(response.head.field("accept-ranges"), None);
    // The connection can be reused.
    assert_eq!(client.get("/length/10").text(), REWRITTEN);
    let mut client = proxy.client();
    client.send("GET /length/10 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    let response = client.response();
    assert_eq!(response.assert_status(200).text(), REWRITTEN);
    assert!(response.until_close && response.head.field("content-length").is_none());
}

/// A member that sends the head for the request's path, and a body.
fn answering(heads: &'static [(&'static str, &'static str)]) -> Member {
    Member::new(move |exchange| {
        let target = exchange.request.target().to_owned();
        let head = heads.iter().find(|(path, _)| *path == target).map(|(_, head)| *head);
        let head = head.unwrap_or("200 OK\r\nContent-Type: text/html");
        let has_none = head.starts_with("304") || head.starts_with("204");
        let body = if has_none { "" } else { BODY };
        let length = format!("Content-Length: {}\r\n", body.len());
        let length = if has_none { "" } else { &length };
        exchange.send(format!("HTTP/1.1 {head}\r\n{length}\r\n{body}"))?;
        Ok(Then::KeepAlive)
    })
}

#[test]
fn what_cannot_be_rewritten_passes_as_it_is_and_is_counted() {
    let long = Member::new(|exchange| {
        let body = BODY.repeat(40_000);
        if exchange.request.target() == "/length" {
            return send(exchange, "length", usize::MAX, body.as_bytes());
        }
        send(exchange, "chunked", 100_000, body.as_bytes())
    });
    let heads = &[
        ("/encoded", "200 OK\r\nContent-Type: text/html\r\nContent-Encoding: br\r\nETag: \"a\""),
        ("/part", "206 Partial Content\r\nContent-Type: text/html\r\nContent-Range: bytes 0-53/99"),
        ("/image", "200 OK\r\nContent-Type: image/png\r\nETag: \"a\"\r\nAccept-Ranges: bytes"),
        ("/untyped", "200 OK\r\nETag: \"a\""),
        ("/known", "304 Not Modified\r\nETag: \"a\""),
        ("/nothing", "204 No Content\r\nETag: \"a\""),
        ("/call", "200 OK\r\nContent-Type: application/grpc"),
    ];
    let member = answering(heads);
    let everything = STRINGS.replace("\"text/*\"", "\"text/*\", application/grpc");
    let (proxy, _) = before(&member, false, &everything);
    let outcome = |proxy: &Proxy, outcome: &str| {
        proxy.metric("weir_virtual_server_rewritten_bodies_total", &[outcome])
    };
    let mut client = proxy.client();
    for (path, head) in heads {
        let response = client.get(path);
        let expected = if path == &"/known" || path == &"/nothing" { "" } else { BODY };
        assert_eq!(response.text(), expected, "{path}");
        let tag =
            head.contains("ETag").then_some(if *path == "/known" { "W/\"a\"" } else { "\"a\"" });
        assert_eq!(response.head.field("etag"), tag, "{path}");
        let has_length = response.head.field("content-length").is_some();
        assert_eq!(has_length, !expected.is_empty(), "{path}");
    }
    for (label, count) in [("rewritten", 0.0), ("encoded", 1.0), ("part", 1.0), ("too_long", 0.0)] {
        assert_eq!(outcome(&proxy, &format!("\"{label}\"")), count, "{label}");
    }
    let (proxy, _) = before(&long, false, STRINGS);
    let mut client = proxy.client();
    let plain = BODY.repeat(40_000);
    let response = client.get("/length");
    assert!(response.text() == plain, "a body that is too long passes as it is");
    assert_eq!(response.head.field("etag"), Some("\"a\""));
    // Bytes beyond 1 MiB are not replaced.
    let got = client.get("/chunked").text();
    assert!(got.starts_with(REWRITTEN) && got.ends_with(BODY));
    let (first, rest) = got.split_at(1000 * REWRITTEN.len());
    assert_eq!(first, REWRITTEN.repeat(1000));
    let longer = "https://outer.example".len() - "http://inner".len();
    assert_eq!(got.len() - plain.len(), got.matches("https://outer").count() * longer);
    assert!(rest.contains("http://inner/"));
    assert_eq!(outcome(&proxy, "\"too_long\""), 2.0);
    assert_eq!(outcome(&proxy, "\"rewritten\""), 1.0);
}

#[test]
fn what_is_rewritten_is_compressed_then() {
    let member = member();
    let rule = STRINGS.replace("inner: outer", "inner: outer, \"</a>\": \"</a><p>more</p>\"");
    let setup = with_rule(Setup::new(&[member.address()]), &rule)
        .virtual_server("compression: { min_size: 1B }");
    let proxy = Proxy::start(&setup);
    let expected = REWRITTEN.replace("</a>", "</a><p>more</p>");
    let mut client = proxy.client();
    for coding in ["gzip", "br", "zstd"] {
        for path in ["/length/1000", "/length/7", "/chunked/3", "/chunked/1000"] {
            client.send(get(path, &format!("Accept-Encoding: {coding}\r\n")));
            let response = client.response();
            response.assert_status(200);
            assert_eq!(response.head.field("content-encoding"), Some(coding), "{path}");
            assert_eq!(response.head.field("etag"), Some("W/\"a\""), "{path}");
            let (decoded, is_whole) = decode(coding, &response.body);
            assert_eq!(String::from_utf8_lossy(&decoded), expected, "{coding} {path}");
            assert!(is_whole, "{coding} {path}");
        }
    }
    client.send(get("/length/1000", ""));
    assert_eq!(client.response().text(), expected);
    client.send(get("/length/1000", "If-Match: W/\"a\"\r\n"));
    assert_eq!(client.response().text(), expected);
    let requests = member.requests();
    let last = requests.last().expect("a request");
    assert_eq!(last.head.field("if-match"), Some("\"a\", W/\"a\""));
    assert!(requests.iter().all(|it| it.head.field("accept-encoding") == Some("identity")));
}

#[test]
fn patterns_and_rules_that_look_at_responses() {
    let member = member();
    let rule = "{ when: 'response.status == 200', then: [ { replace_response_body: { regex: \"href='http://([a-z]+)/(?<rest>[^']*)'\", to: \"data-to='$1' href='/$${rest}'\", match_size_max: 64B } }, { replace_response_body: { strings: { href: HREF } } } ] }"
        .replace("$${rest}", "${rest}");
    let (proxy, _) = before(&member, false, &rule);
    let mut client = proxy.client();
    for path in ["/length/1", "/chunked/20", "/length/1000"] {
        let expected = "<a data-to='inner' HREF='/x'>inn</a> inner inn http://inne";
        assert_eq!(client.get(path).text(), expected, "{path}");
    }
    assert!(
        member.requests().iter().all(|it| it.head.field("accept-encoding") == Some("identity"))
    );
}

/// A partial response is not changed, so weir does not request one from members.
#[test]
fn clients_do_not_get_around_it_by_asking_for_a_part() {
    let member = member();
    let of_responses = STRINGS.replacen("{ then", "{ when: 'response.status < 300', then", 1);
    let fields = "Range: bytes=0-\r\nIf-Range: \"a\"\r\nRequest-Range: bytes=0-\r\n";
    for rule in [STRINGS, &of_responses] {
        let (proxy, _) = before(&member, false, rule);
        let response = proxy.client().send(get("/length/1000", fields)).response();
        assert_eq!(response.assert_status(200).text(), REWRITTEN);
    }
    for request in member.requests() {
        for name in ["range", "if-range", "request-range"] {
            assert_eq!(request.head.field(name), None, "{name}");
        }
    }
    // Requests to which the rule does not apply keep their headers.
    let other = STRINGS.replacen("{ then", "{ when: 'request.path == \"/\"', then", 1);
    let (proxy, _) = before(&member, false, &other);
    proxy.client().send(get("/length/1000", fields)).response().assert_status(200);
    let requests = member.requests();
    assert_eq!(requests.last().expect("a request").head.field("range"), Some("bytes=0-"));
}

/// An event is sent at once. If its end may be the start of a match, only the bytes before that are sent.
#[test]
fn events_are_not_held_back() {
    let told = Arc::new(AtomicUsize::new(0));
    let gate = Arc::clone(&told);
    let events = ["data: inner 1\n\n", "data: 2 inn", "er\n\n", "data: http://in", "side\n\n"];
    let member = Member::new(move |exchange| {
        exchange.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")?;
        for (index, event) in events.iter().enumerate() {
            exchange.send(event)?;
            let deadline = Instant::now() + STEP_TIMEOUT;
            while gate.load(Ordering::Acquire) <= index && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        Ok(Then::Close)
    });
    for (rule, seen) in [
        (
            STRINGS.to_owned(),
            ["data: outer 1\n\n", "data: 2 ", "outer\n\n", "data: ", "http://inside\n\n"],
        ),
        (
            "{ then: [ { replace_response_body: { regex: \"in(n)er|http://inner\", to: \"[$1]\", types: [ text/event-stream ] } } ] }".to_owned(),
            ["data: [n] 1\n\n", "data: 2 ", "[n]\n\n", "data: ", "http://inside\n\n"],
        ),
    ] {
        told.store(0, Ordering::Release);
        let (proxy, _) = before(&member, false, &rule);
        let mut client = proxy.client();
        client.send("GET / HTTP/1.0\r\n\r\n");
        let mut received = Vec::new();
        let mut expected = String::new();
        for (index, part) in seen.iter().enumerate() {
            expected.push_str(part);
            let mut buffer = [0; 4096];
            // The member continues only when the client has received this, so a held event would stall the test.
            while !received.ends_with(expected.as_bytes()) {
                let count = client.stream().read(&mut buffer).expect("a part");
                assert!(count > 0, "the end before {part:?}");
                received.extend_from_slice(&buffer[..count]);
            }
            told.store(index + 1, Ordering::Release);
        }
    }
}

#[test]
fn pages_of_nginx() {
    require!("nginx");
    let nginx = Nginx::start("one");
    let page = format!("<html>{}{}</html>\n", BODY, "<p>inner</p>\n".repeat(20_000));
    std::fs::write(nginx.files().join("page.html"), &page).expect("a page");
    let rewritten = page.replace("http://inner", "https://outer.example").replace("inner", "outer");
    let proxy = Proxy::start(&with_rule(Setup::new(&[nginx.address()]), STRINGS));
    let mut client = proxy.client();
    client.send(get("/page.html", "Accept-Encoding: gzip\r\n"));
    let response = client.response();
    assert!(response.assert_status(200).text() == rewritten);
    let tag = response.head.field("etag").expect("nginx tells a tag").to_owned();
    assert!(tag.starts_with("W/\""), "{tag}");
    client.send(get("/page.html", &format!("If-None-Match: {tag}\r\n")));
    let response = client.response();
    response.assert_status(304);
    assert_eq!(response.head.field("etag"), Some(&*tag));
    // weir does not change partial responses, so it removes these headers.
    for fields in ["Range: bytes=0-\r\n", "If-Range: \"a\"\r\nrange: bytes=0-99\r\n"] {
        client.send(get("/page.html", fields));
        assert!(client.response().assert_status(200).text() == rewritten, "{fields}");
    }
    let response = Peer::connect(proxy.address()).get("/page.html");
    assert!(response.assert_status(200).text() == rewritten);
}

/// A match must not span the end of one body and the start of the next one, or the bytes of another body in flight.
#[test]
fn bodies_are_apart() {
    let member = Member::new(|exchange| {
        let number: usize = exchange.request.target()[1..].parse().expect("a number");
        let body = format!("er {number} http://inn");
        match number % 4 {
            0 => send(exchange, "length", 3, body.as_bytes()),
            1 => send(exchange, "chunked", 4, body.as_bytes()),
            2 => send(exchange, "close", 1000, body.as_bytes()),
            _ => {
                // The body is cut while weir holds the start of a possible match.
                let head =
                    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1000\r\n\r\n";
                exchange.send(format!("{head}{body}"))?;
                Ok(Then::Close)
            }
        }
    });
    for by_http2 in [false, true] {
        let (proxy, _inner) = before(&member, by_http2, STRINGS);
        let mut peer = Peer::connect(proxy.address());
        let streams: Vec<(usize, u32)> = (0..60)
            .map(|number| (number, peer.request("GET", &format!("/{number}"), &[], true)))
            .collect();
        let mut client = proxy.client();
        for (number, stream) in streams {
            let whole = format!("er {number} http://inn");
            if number % 4 == 3 {
                let response = peer.response(stream);
                assert!(whole.starts_with(&response.text()) && !response.ended, "{number}");
                let mut other = proxy.client();
                let response = other.send(get(&format!("/{number}"), "")).response();
                assert!(whole.starts_with(&response.text()) && !response.complete, "{number}");
                continue;
            }
            assert_eq!(peer.response(stream).text(), whole);
            assert_eq!(client.get(&format!("/{number}")).text(), whole);
        }
    }
}

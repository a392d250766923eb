//! Streaming bodies, upgrades and HTTP/2 with a handover.

use weir_tests::client::Client;
use weir_tests::http2::{Http2Member, Peer};
use weir_tests::member::Member;
use weir_tests::ports::Lease;
use weir_tests::proxy::Proxy;
use weir_tests::{require, tls, websocket};

use super::{Bed, count, wait_for_log};

#[test]
fn a_body_waits_for_100_and_streams() {
    let mut bed = Bed::new();
    bed.rule = "{ set_header: { X-Way: over } },".into();
    bed.member = Member::streaming(|exchange| {
        exchange.send("HTTP/1.1 100 Continue\r\n\r\n")?;
        let mut all = Vec::new();
        exchange.read_body(|piece| all.extend_from_slice(piece))?;
        let way = exchange.request.head.field("x-way").unwrap_or_default().to_owned();
        exchange.answer([way.as_bytes(), b" ", &all].concat())
    });
    let proxy = bed.start();
    let mut client = proxy.client();
    for round in 0..3 {
        client.send("POST /app HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n");
        let interim = client.reader().head().expect("a head").expect("it goes on");
        assert_eq!(interim.start, "HTTP/1.1 100 Continue");
        client.send("5\r\nhello\r\n");
        client.send(format!("2\r\n {round}\r\n0\r\n\r\n"));
        assert_eq!(client.response().assert_status(200).text(), format!("over hello {round}"));
    }
}

#[test]
fn bodies_are_as_large_as_the_other_allows() {
    for (of_main, of_app, size, status) in [(10, 20, 15, 200), (10, 20, 25, 413), (20, 10, 15, 413)]
    {
        let mut bed = Bed::new();
        bed.app = format!(", http: {{ body_size_max: {of_app}B }}");
        let proxy =
            Proxy::start(&bed.setup().http(&format!("http2: true, body_size_max: {of_main}B")));
        let body = "x".repeat(size);
        let told = format!("Content-Length: {size}\r\n\r\n{body}");
        let chunked = format!("Transfer-Encoding: chunked\r\n\r\n{size:x}\r\n{body}\r\n0\r\n\r\n");
        for rest in [told, chunked] {
            let mut client = proxy.client();
            client.send(format!("POST /app HTTP/1.1\r\nHost: a\r\n{rest}"));
            client.response().assert_status(status);
        }
        let mut peer = Peer::connect(proxy.address());
        let stream = peer.request("POST", "/app", &[], false);
        peer.data(stream, body.as_bytes(), true);
        peer.response(stream).assert_status(status);
    }
}

#[test]
fn a_websocket_is_handed_over() {
    let mut bed = Bed::new();
    bed.rule = "{ rewrite_path: /socket },".into();
    bed.member = websocket::echo_member();
    bed.other = Member::named("of main");
    // All requests are handed over.
    bed.main = "policies: [ all ]".into();
    bed.policies =
        "  all: { rules: [ { then: [ { rewrite_path: /socket }, { virtual_server: app } ] } ] }\n"
            .into();
    let mut proxy = bed.start();
    let mut socket = websocket::WebSocket::connect(proxy.address());
    for text in ["one", "two"] {
        assert_eq!(socket.echo(text).expect("an echo"), text);
    }
    assert!(socket.close());
    wait_for_log(&mut proxy, "\"virtual_server\":\"app\",\"entered_at\":\"main\"");
    assert_eq!(count(&proxy, "tunnels", "app"), 1.0);
}

#[test]
fn streams_of_one_connection_go_to_both() {
    let mut bed = Bed::new();
    bed.other = Member::echo();
    bed.rule =
        "{ set_header: { X-Way: over } }, { rewrite_path: { regex: \"^/app\", to: \"/new\" } },"
            .into();
    bed.main = "policies: [ routing ]".into();
    let setup = bed.setup().http("http2: true");
    let proxy = Proxy::start(&setup);
    let mut peer = Peer::connect(proxy.address());
    let mut streams = Vec::new();
    for number in 0..20 {
        let path = if number % 2 == 0 { "/app" } else { "/own" };
        let tag = format!("{number}");
        let stream =
            peer.request("POST", &format!("{path}/{number}"), &[("x-tag", tag.as_str())], false);
        streams.push((stream, number));
    }
    // The bodies arrive in pieces, in turn.
    for piece in 0..3 {
        for (stream, number) in &streams {
            peer.data(*stream, format!("<{number}.{piece}>").as_bytes(), piece == 2);
        }
    }
    for (stream, number) in streams {
        let text = peer.response(stream).assert_status(200).text();
        let is_over = number % 2 == 0;
        let path = if is_over { "/new" } else { "/own" };
        assert!(text.starts_with(&format!("POST {path}/{number} HTTP/1.1\r\n")), "{text}");
        assert!(text.to_lowercase().contains(&format!("x-tag: {number}\r\n")), "{text}");
        assert_eq!(text.contains("X-Way: over"), is_over, "{text}");
        let body: String = (0..3).map(|piece| format!("<{number}.{piece}>")).collect();
        assert!(text.ends_with(&body), "{text}");
    }
    assert_eq!(count(&proxy, "requests", "app"), 10.0);
    assert_eq!(count(&proxy, "requests", "main"), 10.0);
}

#[test]
fn a_pool_of_http2_gets_what_was_rewritten() {
    let mut bed = Bed::new();
    bed.rule =
        "{ set_header: { X-Way: Over } }, { rewrite_path: /new }, { rewrite_host: inner.example },"
            .into();
    let member = Http2Member::new(&[], |peer, _| {
        while let Some(stream) = peer.next_request() {
            let head = peer.streams[&stream].head.clone();
            let text: String =
                head.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
            peer.answer_with(stream, text.as_bytes())?;
        }
        Ok(())
    });
    bed.app = ", policies: [ of-app ]".into();
    bed.policies = "  of-app:\n    rules:\n      - then: [ { pool: modern } ]\n".into();
    let modern = format!("modern: {{ http2: true, members: [ \"{}\" ] }}", member.address());
    let proxy = Proxy::start(&bed.setup().also_pool(&modern));
    let text = proxy.client().get("/app/x").assert_status(200).text();
    for line in [":path: /new\n", ":authority: inner.example\n", "x-way: Over\n"] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn what_is_of_the_connection_stays_with_the_one_that_was_entered() {
    require!("curl");
    let mut bed = Bed::new();
    bed.main = format!("policies: [ routing ]\nhsts: {{}}\n{}", tls::shop(""));
    bed.app = ", policies: [ of-app ], client_address: { x_forwarded_proto: true }".into();
    bed.policies = "  of-app:\n    strategy: all_match\n    rules:\n      - when: \"tls.sni == 'shop.example' && request.scheme == 'https'\"\n        then: [ { set_header: { X-Name: \"${tls.sni}\" } }, { set_cookie: { name: a, value: b } } ]\n"
        .into();
    let mut proxy = bed.start();
    for version in ["--http1.1", "--http2"] {
        let text = tls::get(proxy.address(), "/app", &["--include", version]);
        let lower = text.to_lowercase();
        for line in [
            "strict-transport-security: max-age=31536000",
            "set-cookie: a=b; path=/; httponly; secure",
            "x-name: shop.example",
            "x-forwarded-proto: https",
        ] {
            assert!(lower.contains(line), "{line}: {text}");
        }
    }
    wait_for_log(&mut proxy, "\"tls_version\":\"1.3\"");
    assert_eq!(count(&proxy, "requests", "app"), 2.0);
}

#[test]
fn one_that_listens_no_more_serves_no_clients_of_its_own() {
    let lease = Lease::new();
    let mut bed = Bed::new();
    bed.app = format!(", listen: \"{}\"", lease.address());
    let proxy = bed.start();
    let mut direct = Client::connect(lease.address());
    direct.get("/app").assert_status(200);
    bed.app = String::new();
    proxy.reload_and_wait(&bed.setup());
    let answer = direct.try_send("GET /app HTTP/1.1\r\nHost: a\r\n\r\n");
    let answer = answer.and_then(|()| direct.try_response(false));
    assert!(answer.is_err(), "it is closed: {answer:?}");
    proxy.client().get("/app").assert_status(200);
}

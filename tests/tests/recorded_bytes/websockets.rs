//! WebSockets over HTTP/2 (extended CONNECT, RFC 8441): their records and spans have a head.

use weir_tests::http2::Peer;
use weir_tests::otlp::Collector;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::{STEP_TIMEOUT, eventually, websocket};

use crate::told::{Reader, check_tags, tag, tag_of_target};

/// Number of WebSockets at a time.
const SOCKETS: usize = 8;

#[test]
fn a_websocket_over_http2_is_recorded_and_traced_with_its_head() {
    let (member, collector) = (websocket::echo_member(), Collector::new());
    let setup = Setup::new(&[member.address()])
        .http("http2: true")
        .virtual_server("tracing: { sample: 100% }")
        .top(&collector.section(""))
        .top("recent_requests: {}")
        .admin_socket();
    let proxy = Proxy::start(&setup);
    let mut peer = Peer::connect(proxy.address());
    let tags: Vec<String> = (0..SOCKETS).map(|number| tag(0, number)).collect();
    let paths: Vec<String> = tags.iter().map(|tag| format!("/chat/{tag}?q={tag}")).collect();
    let mut streams = Vec::new();
    for (tag, path) in tags.iter().zip(&paths) {
        let lines = [
            (":method", "CONNECT"),
            (":protocol", "websocket"),
            (":scheme", "http"),
            (":path", path.as_str()),
            (":authority", "shop.example"),
            ("sec-websocket-version", "13"),
            ("x-tag", tag.as_str()),
        ];
        streams.push(peer.open(&lines, false));
    }
    for stream in &streams {
        assert_eq!(peer.response_head(*stream).status(), 200);
        peer.data(*stream, b"\x88\x80\0\0\0\0", false);
        peer.response(*stream);
        peer.data(*stream, b"", true);
    }
    let mut reader = Reader::new(&proxy);
    let mut records = Vec::new();
    eventually("all are recorded", STEP_TIMEOUT, || {
        records = reader.all();
        records.len() == SOCKETS
    });
    for record in &records {
        let id = record["id"].as_str().expect("an id");
        let one = reader.one(&format!("/v1/requests/{id}"));
        let own = tag_of_target(&one).unwrap_or_else(|| panic!("no target: {one:#}"));
        check_tags(&one, Some(&own)).expect("its own bytes");
        assert!(tags.contains(&own), "{one:#}");
        for key in ["method", "host", "target", "version"] {
            assert!(one[key].is_string(), "{key}: {one:#}");
        }
        assert_eq!((&one["version"], &one["host"]), (&"2".into(), &"shop.example".into()));
        assert!(one["headers"].as_array().is_some_and(|fields| !fields.is_empty()), "{one:#}");
        let why = reader.one(&format!("/v1/requests/{id}/explanation"));
        assert!(why["again"].is_object(), "it can be decided again: {why:#}");
        assert_eq!(why["differences"], serde_json::json!([]), "{why:#}");
    }
    // Each has a span of its own, and one of its attempt.
    let spans = collector.wait_for(2 * SOCKETS);
    for span in spans.iter().filter(|span| span.is_server()) {
        let path = span.get("url.path");
        assert!(tags.iter().any(|tag| path == format!("/chat/{tag}")), "{span:#?}");
        assert!(span.get("url.query").starts_with("q=tag-"), "{span:#?}");
        assert_eq!(span.get("server.address"), "shop.example", "{span:#?}");
        assert!(!span.name.is_empty() && !span.get("http.request.method").is_empty());
        assert_eq!(span.get("network.protocol.version"), "2", "{span:#?}");
    }
}

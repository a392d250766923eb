//! The native checks, each by its name.

use weir_tests::http2::Peer;
use weir_tests::member::Member;
use weir_tests::proxy::Proxy;

use crate::setup::{ask, form, get, guarded, wait_for_lines, with_type};

/// A `waf` with this action for one check.
fn only(check: &str, action: &str) -> String {
    format!(
        "waf: {{ mode: block, variables: {{ inbound_anomaly_score_threshold: \"100000\" }}, checks: {{ actions: {{ {check}: {action} }} }} }}"
    )
}

#[test]
fn checks_block_alarm_or_are_off() {
    let member = Member::echo();
    for (action, status, outcome) in
        [("block", 403, Some("blocked")), ("alarm", 200, Some("passed")), ("off", 200, None)]
    {
        let mut proxy = Proxy::start(&guarded(&member, &only("multiple_slashes", action)));
        assert_eq!(ask(&proxy, get("/a//b")).status, status, "{action}");
        assert_eq!(ask(&proxy, get("/a/b")).status, 200, "{action}");
        if let Some(outcome) = outcome {
            let line = &wait_for_lines(&mut proxy, 1)[0];
            assert_eq!(line["outcome"], outcome, "{line}");
            assert_eq!(line["checks"][0]["name"], "multiple_slashes", "{line}");
            assert_eq!(line["checks"][0]["action"], action, "{line}");
        }
    }
}

#[test]
fn checks_are_done_without_being_asked_for() {
    let member = Member::echo();
    let proxy = Proxy::start(&guarded(&member, "waf: { mode: block }"));
    let json = |body: &str| with_type("/graphql", "application/json", body);
    let deep = format!("{{\"query\":\"{}{}\"}}", "{a".repeat(20), "}".repeat(20));
    for (request, status) in [
        (get("/?a=%u0061"), 403),
        (get("/backup.sql"), 403),
        (get("/").replace("GET", "TRACK"), 405),
        (get(&format!("/?{}", "a".repeat(5_000))), 414),
        (json("{\"a\":1,\"a\":2}"), 400),
        (json(&deep), 400),
        (json("{\"query\":\"{ shop { name } }\"}"), 200),
        (get("/shop?id=5"), 200),
    ] {
        assert_eq!(ask(&proxy, &request).status, status, "{request}");
    }
    assert_eq!(member.request_count(), 2);
}

/// The size of a body without Content-Length is checked when the body has arrived.
#[test]
fn lengths_of_bodies_are_those_that_came() {
    let member = Member::echo();
    let waf = "waf: { mode: block, checks: { body_size_max: 20B } }";
    let proxy = Proxy::start(&guarded(&member, waf).http("http2: true"));
    for (bytes, status) in [(20, 200), (21, 413)] {
        let body = format!("a={}", "b".repeat(bytes - 2));
        assert_eq!(ask(&proxy, form("/", &body)).status, status);
        let head = form("/", "").replace("Content-Length: 0", "Transfer-Encoding: chunked");
        let chunked = format!("{head}{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
        assert_eq!(ask(&proxy, chunked).status, status);
        let mut peer = Peer::connect(proxy.address());
        let fields =
            [("content-type", "application/x-www-form-urlencoded"), ("user-agent", "test")];
        let stream = peer.request("POST", "/", &fields, false);
        peer.data(stream, body.as_bytes(), true);
        assert_eq!(peer.response(stream).status(), status);
    }
}

#[test]
fn what_only_detects_blocks_by_no_check() {
    let member = Member::echo();
    let mut proxy = Proxy::start(&guarded(&member, "waf: { mode: detect }"));
    assert_eq!(ask(&proxy, get("/?a=%u0061")).status, 200);
    let line = &wait_for_lines(&mut proxy, 1)[0];
    assert_eq!((&line["outcome"], &line["check"]), (&"detected".into(), &"percent_u".into()));
}

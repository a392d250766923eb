//! Responses of weir itself: changes by rules and error pages, and responses before any rule runs.

use weir_tests::client::{Client, Response};
use weir_tests::http2::{Frame, Peer};
use weir_tests::member::Member;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;
use weir_tests::{require, tls};

/// Changes of responses by three rules: one without condition, which follows rules that end requests; one with a condition
/// on the request; and one with a condition on the response.
const POLICIES: &str = r#"policies:
  answers:
    rules:
      - { when: 'request.path == "/moved"', then: [ { redirect: { to: "/new", status: 302 } } ] }
      - { when: 'request.path == "/told"', then: [ { respond: { status: 403, body: "told" } } ] }
      - { when: 'request.path == "/bare"', then: [ { respond: { status: 503 } } ] }
      - { when: 'request.path == "/closed"', then: [ close ] }
  edits:
    strategy: all_match
    rules:
      - then: [ { set_response_header: { X-Always: "1" } } ]
      - { when: 'request.path != "/"', then: [ { set_response_header: { X-Path: "${request.path}" } } ] }
      - { when: 'response.status >= 300', then: [ { set_response_header: { X-Status: "${response.status}" } } ] }"#;

fn ruled(member: &Member) -> Setup {
    Setup::new(&[member.address()]).virtual_server("policies: [ answers, edits ]").top(POLICIES)
}

fn ask(client: &mut Client, head: &str) -> Response {
    client.send(head);
    client.response()
}

/// The three changes in a response.
fn edits(response: &Response) -> [&str; 3] {
    ["x-always", "x-path", "x-status"].map(|name| response.head.field(name).unwrap_or_default())
}

#[test]
fn rules_edit_every_response() {
    let member = Member::named("here");
    let setup = ruled(&member)
        .http("header_timeout: 300ms")
        .http("body_size_max: 1KiB")
        .http("head_size_max: 1KiB");
    let proxy = Proxy::start(&setup);
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    let upload = "POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n".to_owned();
    for (request, status, path) in [
        (get("/"), 200, ""),
        (get("/x"), 200, "/x"),
        (get("/moved"), 302, "/moved"),
        (get("/told"), 403, "/told"),
        (get("/bare"), 503, "/bare"),
        (upload, 413, "/up"),
        // A malformed request has no path. Rules without condition apply, and rules for responses.
        ("GET /x HTTP/1.1\r\n\r\n".to_owned(), 400, ""),
        (get(&"/x".repeat(1_000)), 414, ""),
        ("GET /x HT".to_owned(), 408, ""),
    ] {
        let response = ask(&mut proxy.client(), &request);
        assert_eq!(response.status, status, "{request}: {response:?}");
        let status = if status == 200 { String::new() } else { status.to_string() };
        assert_eq!(edits(&response), ["1", path, &status], "{request}");
    }
    let mut client = proxy.client();
    client.send(get("/closed"));
    client.assert_closed();
}

#[test]
fn rules_edit_what_limits_refuse() {
    let member = Member::named("here");
    let setup =
        ruled(&member).virtual_server("limits: { requests_per_second: 1/m, connections: 1 }");
    let proxy = Proxy::start(&setup);
    proxy.settle();
    let mut client = proxy.client();
    let mut statuses = Vec::new();
    for _ in 0..5 {
        let response = client.get("/x");
        assert_eq!(edits(&response)[..2], ["1", "/x"], "{response:?}");
        statuses.push(response.status);
    }
    assert!(statuses.contains(&429), "{statuses:?}");
    let refused = proxy.client().response();
    assert_eq!((refused.status, edits(&refused)), (503, ["1", "", "503"]));
}

#[test]
fn rules_edit_every_response_on_streams() {
    let member = Member::named("here");
    let proxy = Proxy::start(&ruled(&member).http("http2: true").http("headers_max: 20"));
    let mut peer = Peer::connect(proxy.address());
    let response = peer.get("/moved");
    assert_eq!((response.status(), response.field("x-always")), (302, Some("1")));
    let many: Vec<(String, &str)> = (0..30).map(|number| (format!("x-{number}"), "1")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (&**name, *value)).collect();
    let stream = peer.request("GET", "/x", &many, true);
    let response = peer.response(stream);
    assert_eq!((response.status(), response.field("x-always")), (431, Some("1")));
}

/// Strict-Transport-Security is in every response over TLS, and in none without TLS.
#[test]
fn hsts_is_on_every_response() {
    require!("curl", "openssl");
    let member = Member::named("here");
    let setup = Setup::new(&[member.address()])
        .virtual_server(&tls::shop(""))
        .virtual_server("hsts: {}")
        .virtual_server("policies: [ answers ]")
        .top(POLICIES);
    let proxy = Proxy::start(&setup.top("").also_pool("unused: { members: [ 127.0.0.1:1 ] }"));
    for (path, more) in [
        ("/", &[][..]),
        ("/moved", &[]),
        ("/told", &[]),
        ("/bare", &[]),
        ("/", &["-H", "X-Long: ", "-H", "Bad Name: 1", "--http1.1"]),
    ] {
        let answer = tls::get(proxy.address(), path, &[&["-i"], more].concat());
        let has_it = answer.to_ascii_lowercase().contains("strict-transport-security: max-age=");
        assert!(has_it, "{path} {more:?}: {answer}");
    }
    let plain = ask(&mut proxy.client(), "GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    assert_eq!(plain.status, 400, "{plain:?}");
    assert_eq!(plain.head.field("strict-transport-security"), None);
}

#[test]
fn a_rule_without_a_body_gets_the_page_for_its_status() {
    let member = Member::named("here");
    let folder = TempDir::new("pages");
    let page = folder.write("down.html", b"<p>back soon</p>");
    let setup = ruled(&member)
        .virtual_server(&format!("error_pages: {{ 5xx: {{ file: {} }} }}", page.display()));
    let proxy = Proxy::start(&setup);
    let response = proxy.client().get("/bare");
    assert_eq!((response.status, response.text()), (503, "<p>back soon</p>".to_owned()));
    assert_eq!(response.head.field("content-type"), Some("text/html; charset=utf-8"));
    let response = proxy.client().get("/told");
    assert_eq!((response.status, response.text()), (403, "told".to_owned()));
}

/// After a handshake for one name, requests on the connection for another name get neither rules nor error pages of that
/// name.
#[test]
fn a_misdirected_request_meets_no_rule() {
    require!("curl", "openssl");
    let member = Member::named("here");
    let folder = TempDir::new("pages");
    let page = folder.write("page.html", b"of partner.example");
    let more = "by_name: [ { names: [ partner.example ], profile: partner } ]";
    let setup = Setup::new(&[member.address()])
        .virtual_server(&tls::shop(more))
        .virtual_server("policies: [ secret, edits ]")
        .virtual_server(&format!("error_pages: {{ 4xx: {{ file: {} }} }}", page.display()))
        .top(&format!(
            "profiles: {{ tls: {{ partner: {{ certificates: [ {} ] }} }} }}",
            tls::pair("partner")
        ))
        .top(
            r#"policies:
  secret:
    rules:
      - { when: 'request.host == "partner.example"', then: [ { respond: { status: 200, body: "secret" } } ] }
  edits:
    strategy: all_match
    rules:
      - then: [ { set_response_header: { X-Always: "1" } } ]
      - { when: 'request.host == "partner.example"', then: [ { set_response_header: { X-Of-Partner: "1" } } ] }
      - { when: 'response.status == 421 && request.host == "partner.example"', then: [ { set_response_header: { X-Of-Partner: "2" } } ] }"#,
        );
    let proxy = Proxy::start(&setup);
    for version in ["--http1.1", "--http2"] {
        let host = ["-i", version, "-H", "Host: partner.example"];
        let answer = tls::get(proxy.address(), "/", &host).to_ascii_lowercase();
        assert!(answer.contains(" 421"), "{answer}");
        assert!(!answer.contains("secret") && !answer.contains("partner"), "{answer}");
        assert!(answer.contains("x-always: 1"), "{answer}");
    }
    assert_eq!(member.request_count(), 0);
}

/// HEADERS and another frame of the stream in one write. A rule closes or resets the connection, so the second frame is for
/// a connection that has ended.
#[test]
fn frames_behind_a_request_that_ends_its_connection_do_no_harm() {
    let member = Member::named("here");
    for ending in ["close", "reset"] {
        let rule = format!(
            "policies:\n  ends:\n    rules:\n      - {{ when: 'request.path == \"/end\"', then: [ {ending} ] }}"
        );
        let setup = Setup::new(&[member.address()])
            .http("http2: true")
            .virtual_server("policies: [ ends ]")
            .top("data_plane: { workers: 1 }")
            .top(&rule);
        let proxy = Proxy::start(&setup);
        let mut bystander = proxy.client();
        bystander.get("/").assert_status(200);
        let lines: [(&[u8], &[u8]); 4] = [
            (b":method", b"GET"),
            (b":scheme", b"http"),
            (b":path", b"/end"),
            (b":authority", b"a"),
        ];
        for second in [
            Frame::new(0x10, 0, 0, [&[0, 0, 0, 1][..], b"u=0"].concat()),
            Frame::window_update(1, 100),
        ] {
            let mut peer = Peer::connect(proxy.address());
            let both = [Frame::headers(1, &lines, true).bytes(), second.bytes()].concat();
            peer.send_bytes(both).expect("the connection is open");
            peer.rest();
        }
        bystander.get("/").assert_status(200);
        assert_eq!(proxy.metric("weir_worker_panics_total", &[]), 0.0, "{ending}");
    }
}

//! Rules that replace responses.

use std::time::Duration;

use weir_tests::http2::Peer;
use weir_tests::member::{Member, Then};
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::{STEP_TIMEOUT, eventually};

const RULES: &str = "policies:
  p:
    strategy: all_match
    rules:
      - { then: [ { set_response_header: { X-Always: a } }, { remove_response_header: [ X-Gone ] } ] }
      - { name: sorry, when: 'response.status >= 500', then: [ { respond: { status: 503, body: \"sorry ${response.status} ${response.headers['x-why']}\\n\", headers: { Retry-After: '5', X-Gone: b } } } ] }
      - { name: lost, when: 'response.status == 404', then: [ { redirect: { to: '/search?q=${request.path}' } } ] }
      - { when: 'response.status == 410', then: [ { respond: { status: 403 } } ] }
      - { then: [ { replace_response_header: { X-Why: { regex: '^', to: 'because ' } } }, { rewrite_location: { regex: '^http:', to: 'https:' } }, { set_cookie: { name: seen, value: '1' } } ] }";

/// A member that responds to `/STATUS/BYTES` with this status and body size.
fn member() -> Member {
    Member::new(|exchange| {
        let target = exchange.request.target().to_owned();
        let parts: Vec<&str> = target.split('/').skip(1).collect();
        let [status, bytes] = parts[..] else { return exchange.answer("") };
        let head = format!(
            "HTTP/1.1 {status} X\r\nX-Why: member\r\nX-Gone: c\r\nSet-Cookie: secret=1\r\nETag: \"a\"\r\n\
             Location: http://inner/\r\nContent-Type: text/html\r\n"
        );
        if bytes == "endless" {
            exchange.send(format!("{head}Transfer-Encoding: chunked\r\n\r\n"))?;
            loop {
                exchange.send("1000\r\n".to_owned() + &"secret ".repeat(586)[..4096] + "\r\n")?;
            }
        }
        let bytes: usize = bytes.parse().expect("a number");
        let body = if exchange.request.method() == "HEAD" { 0 } else { bytes };
        exchange.send(format!("{head}Content-Length: {bytes}\r\n\r\n{}", "s".repeat(body)))?;
        Ok(Then::KeepAlive)
    })
}

fn setup(address: std::net::SocketAddr) -> Setup {
    let page = "error_pages: { 403: { body: \"<p>no</p>\", content_type: text/html } }";
    let setup = Setup::new(&[address]).http("http2: true").virtual_server("policies: [ p ]");
    setup.virtual_server(page).top(RULES).access_log()
}

#[test]
fn a_rule_answers_in_the_place_of_a_member() {
    let member = member();
    let inner = Proxy::start(&Setup::new(&[member.address()]).http("http2: true"));
    for by_http2 in [false, true] {
        let setup = match by_http2 {
            true => setup(inner.address()).pool("http2: true"),
            false => setup(member.address()),
        };
        let mut proxy = Proxy::start(&setup);
        let (mut client, mut peer) = (proxy.client(), Peer::connect(proxy.address()));
        for (path, status, body, more) in [
            (
                "/200/10",
                200,
                "ssssssssss",
                [("x-why", "because member"), ("location", "https://inner/")],
            ),
            (
                "/500/10",
                503,
                "sorry 500 member\n",
                [("retry-after", "5"), ("content-length", "17")],
            ),
            ("/502/0", 503, "sorry 502 member\n", [("retry-after", "5"), ("x-always", "a")]),
            ("/404/10", 302, "", [("location", "/search?q=/404/10"), ("content-length", "0")]),
            ("/410/10", 403, "<p>no</p>", [("content-type", "text/html"), ("x-always", "a")]),
            ("/500/endless", 503, "sorry 500 member\n", [("retry-after", "5"), ("x-always", "a")]),
        ] {
            let response = client.get(path);
            assert_eq!(response.assert_status(status).text(), body, "{path}");
            let other = peer.get(path);
            assert_eq!(other.assert_status(status).text(), body, "{path}");
            let fields = response.head.fields.iter();
            let fields: Vec<(String, String)> =
                fields.map(|(name, value)| (name.to_lowercase(), value.clone())).collect();
            for fields in [&fields, &other.head] {
                let all = |name: &str| -> Vec<&str> {
                    let named = fields.iter().filter(|(it, _)| it == name);
                    named.map(|(_, value)| value.as_str()).collect()
                };
                for (name, value) in more {
                    assert_eq!(all(name), [value], "{path} {name}");
                }
                assert_eq!((all("x-always"), all("x-gone")), (vec!["a"], vec![]), "{path}");
                if status != 200 {
                    assert_eq!(all("set-cookie"), ["seen=1; Path=/; HttpOnly"], "{path}");
                    assert_eq!((all("etag"), all("x-why")), (vec![], vec![]), "{path}");
                }
            }
        }
        let metric = |name: &str, labels: &[&str]| proxy.metric(name, labels);
        assert_eq!(metric("weir_virtual_server_responses_replaced_total", &[]), 10.0);
        // Each rule is counted once per request.
        assert_eq!(metric("weir_policy_rule_followed_total", &["\"sorry\""]), 6.0);
        assert_eq!(metric("weir_policy_rule_followed_total", &["\"lost\""]), 2.0);
        assert_eq!(metric("weir_member_responses_total", &["\"5xx\""]), 6.0);
        assert_eq!(metric("weir_virtual_server_responses_total", &["\"5xx\""]), 6.0);
        eventually("the log tells it", STEP_TIMEOUT, || {
            let output = proxy.process().output();
            let is_told = |line: &str| {
                let parts =
                    ["/404/10", "\"status\":302", "\"termination\":\"policy\"", "\"member\":\"127"];
                parts.iter().all(|part| line.contains(part))
            };
            output.lines().filter(|line| is_told(line)).count() == 2
        });
    }
}

#[test]
fn a_connection_to_a_member_is_used_again_if_its_response_is_whole() {
    let member = member();
    let proxy = Proxy::start(&setup(member.address()));
    let mut client = proxy.client();
    for path in ["/500/10", "/404/0", "/500/10"] {
        client.get(path);
    }
    client.send("HEAD /500/9999 HTTP/1.1\r\nHost: a\r\n\r\n");
    client.head_response().assert_status(503);
    client.get("/200/3").assert_status(200);
    let connections = || member.requests().iter().map(|it| it.connection).collect::<Vec<_>>();
    assert_eq!(connections(), [0, 0, 0, 0, 0]);
    // The response is too long to read to its end, so weir closes the member's connection.
    client.get("/500/endless").assert_status(503);
    client.get("/200/3").assert_status(200);
    assert_eq!(connections(), [0, 0, 0, 0, 0, 0, 1]);
}

#[test]
fn a_rule_answers_in_the_place_of_weir_and_while_an_upload_comes() {
    let rules = RULES.replace("${response.headers['x-why']}", "");
    let gone = Setup::new(&["127.0.0.1:1".parse().expect("an address")]).pool("retries: 0");
    let proxy = Proxy::start(&gone.virtual_server("policies: [ p ]").top(&rules));
    let mut client = proxy.client();
    for _ in 0..2 {
        let response = client.get("/");
        assert_eq!(response.assert_status(503).text(), "sorry 502 \n");
        assert_eq!(response.head.field("retry-after"), Some("5"));
    }
    let early = Member::streaming(|exchange| {
        exchange.send("HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n")?;
        std::thread::sleep(Duration::from_millis(1));
        Ok(Then::Close)
    });
    let proxy = Proxy::start(&setup(early.address()));
    let mut client = proxy.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nsome");
    let response = client.response();
    assert_eq!(response.assert_status(503).text(), "sorry 500 \n");
    assert_eq!(response.head.field("connection"), Some("close"));
}

/// weir does not send the response that it holds for inspection in addition to the replacement.
#[test]
fn a_rule_answers_in_the_place_of_a_response_that_was_judged() {
    let member = member();
    let waf = "waf: { mode: block, responses: {} }";
    let proxy = Proxy::start(&setup(member.address()).virtual_server(waf));
    let mut client = proxy.client();
    for bytes in [10, 3_000] {
        let response = client.get(&format!("/404/{bytes}"));
        assert_eq!(response.assert_status(302).text(), "");
        assert_eq!(response.head.field("location"), Some(&*format!("/search?q=/404/{bytes}")));
    }
    client.get("/200/3").assert_status(200);
}

//! Policies as operators write them, and their effect on clients and members.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use weir_tests::client::{Client, Response};
use weir_tests::member::Member;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;

/// A virtual server with one policy that has these rules, which are list items.
fn with_rules(setup: Setup, strategy: &str, rules: &[&str]) -> Setup {
    let rules: String = rules.iter().map(|rule| format!("      - {rule}\n")).collect();
    setup.virtual_server("policies: [ test ]").top(&format!(
        "policies:\n  test:\n    strategy: {strategy}\n    rules:\n{}",
        rules.trim_end_matches('\n')
    ))
}

/// A member that echoes, and a proxy with these rules and the strategy `all_match`.
fn echo(rules: &[&str]) -> (Member, Proxy) {
    let member = Member::echo();
    let proxy = Proxy::start(&with_rules(Setup::new(&[member.address()]), "all_match", rules));
    (member, proxy)
}

/// The response to a GET request with further headers.
fn get(client: &mut Client, target: &str, fields: &str) -> Response {
    client.send(format!("GET {target} HTTP/1.1\r\nHost: Shop.Example:8080\r\n{fields}\r\n"));
    client.response()
}

/// The lines of the request that the member received.
fn lines(response: &Response) -> Vec<String> {
    response.assert_status(200).text().lines().map(str::to_owned).collect()
}

#[test]
fn content_is_switched_by_path_host_method_header_query_and_cookie() {
    let [web, images, mobile, api] = ["web", "images", "mobile", "api"].map(Member::named);
    let setup = with_rules(
        Setup::new(&[web.address()])
            .also_pool(&format!("images: {{ members: [ {} ] }}", images.address()))
            .also_pool(&format!("mobile: {{ members: [ {} ] }}", mobile.address()))
            .also_pool(&format!("api: {{ members: [ {} ] }}", api.address())),
        "first_match",
        &[
            r#"{ name: images, when: 'request.path.endsWith(".png") || request.path.startsWith("/img/")', then: [ { pool: images } ] }"#,
            r#"{ name: api, when: 'request.host == "api.example" && request.method in ["POST", "PUT"]', then: [ { pool: api } ] }"#,
            r#"{ name: mobile, when: 'request.headers["User-Agent"].contains("Mobile") || request.query["view"] == "mobile" || request.cookies["view"] == "mobile"', then: [ { pool: mobile } ] }"#,
        ],
    );
    let proxy = Proxy::start(&setup);
    let mut client = proxy.client();
    let mut check = |request: &str, expected: &str| {
        client.send(request);
        assert_eq!(client.response().assert_status(200).text(), expected, "{request}");
    };
    check("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "web");
    check("GET /a.png HTTP/1.1\r\nHost: a\r\n\r\n", "images");
    check("GET /a.png?b=c HTTP/1.1\r\nHost: a\r\n\r\n", "images");
    check("GET /%69mg/x HTTP/1.1\r\nHost: a\r\n\r\n", "images");
    check("GET /other/../img/x HTTP/1.1\r\nHost: a\r\n\r\n", "images");
    check("POST / HTTP/1.1\r\nHost: API.example:80\r\nContent-Length: 0\r\n\r\n", "api");
    check("GET / HTTP/1.1\r\nHost: api.example\r\n\r\n", "web");
    check("GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: x Mobile y\r\n\r\n", "mobile");
    check("GET /?a=b&view=mobile HTTP/1.1\r\nHost: a\r\n\r\n", "mobile");
    check("GET /?view=other&view=mobile HTTP/1.1\r\nHost: a\r\n\r\n", "web");
    check("GET / HTTP/1.1\r\nHost: a\r\nCookie: x=1; view=mobile\r\n\r\n", "mobile");
}

#[test]
fn first_match_ends_its_own_policy_and_all_match_does_not() {
    for (strategy, expected) in
        [("first_match", vec!["x-1: a"]), ("all_match", vec!["x-1: a", "x-2: b"])]
    {
        let member = Member::echo();
        let rules = [
            "{ when: 'request.method == \"GET\"', then: [ { set_header: { x-1: a } } ] }",
            "{ then: [ { set_header: { x-2: b } } ] }",
        ];
        let setup = with_rules(Setup::new(&[member.address()]), strategy, &rules);
        let proxy = Proxy::start(&setup);
        let got = lines(&proxy.client().get("/"));
        let ours: Vec<&String> = got.iter().filter(|line| line.starts_with("x-")).collect();
        assert_eq!(ours, expected, "{strategy}");
    }
}

#[test]
fn paths_queries_and_hosts_are_rewritten_and_the_rest_stays() {
    let (_member, proxy) = echo(&[
        r#"{ when: 'request.path.startsWith("/old/")', then: [ { rewrite_path: { regex: "^/old/(.*)$", to: "/new/$1" } } ] }"#,
        r#"{ when: 'request.path == "/to"', then: [ { rewrite_path: "/x/${request.method}/y z?from=${request.path}" } ] }"#,
        r#"{ when: 'request.path == "/q"', then: [ { rewrite_query: { regex: "secret=[^&]*", to: "secret=gone" } } ] }"#,
        r#"{ when: 'request.path == "/h"', then: [ { rewrite_host: "inner.example" } ] }"#,
        r#"{ when: 'request.method == "OPTIONS"', then: [ { rewrite_query: "a=b" } ] }"#,
    ]);
    let mut client = proxy.client();
    let mut check = |target: &str, first: &str, host: &str| {
        let got = lines(&get(&mut client, target, ""));
        assert_eq!((got[0].as_str(), got[1].as_str()), (first, host), "{target}");
    };
    let host = "Host: Shop.Example:8080";
    check("/old/a/b?c=d", "GET /new/a/b?c=d HTTP/1.1", host);
    check("/older/a", "GET /older/a HTTP/1.1", host);
    check("/to?gone=1", "GET /x/GET/y%20z?from=/to HTTP/1.1", host);
    check("/q?a=1&secret=2&b=3", "GET /q?a=1&secret=gone&b=3 HTTP/1.1", host);
    check("/h", "GET /h HTTP/1.1", "Host: inner.example");
    // `OPTIONS *` is for the server as a whole and has no query (RFC 9112 section 3.2.4).
    for (target, first) in [("*", "OPTIONS * HTTP/1.1"), ("/o", "OPTIONS /o?a=b HTTP/1.1")] {
        client.send(format!("OPTIONS {target} HTTP/1.1\r\nHost: shop.example\r\n\r\n"));
        assert_eq!(lines(&client.response())[0], first);
    }
}

#[test]
fn fields_are_set_added_removed_and_replaced_on_the_way_to_the_member() {
    let (_member, proxy) = echo(&[concat!(
        "{ then: [ { set_header: { X-Client: \"${client.ip}\", X-Is: \"${request.host}:${size(request.path)}\" } },",
        " { add_header: { X-More: two } }, { remove_header: [ X-Secret, x-token ] },",
        " { replace_header: { X-Path: { regex: \"^/a(.)\", to: \"/z$1\" } } }, { remove_cookie: tracking } ] }"
    )]);
    let got = lines(&get(
        &mut proxy.client(),
        "/four",
        "X-Client: forged\r\nX-More: one\r\nX-Secret: 1\r\nX-TOKEN: 2\r\nX-Path: /ab/c\r\nx-client: forged again\r\n\
         Cookie: a=1; tracking=2; b=3\r\n",
    ));
    let mut ours: Vec<&str> = got
        .iter()
        .filter(|line| !line.starts_with("GET ") && !line.is_empty())
        .map(String::as_str)
        .collect();
    ours.sort_unstable();
    assert_eq!(
        ours,
        [
            "Cookie: a=1; b=3",
            "Host: Shop.Example:8080",
            "X-Client: 127.0.0.1",
            "X-Is: shop.example:5",
            "X-More: one",
            "X-More: two",
            "X-Path: /zb/c",
        ]
    );
}

#[test]
fn what_a_client_says_cannot_split_a_head() {
    let (_member, proxy) = echo(&[
        "{ then: [ { set_header: { X-Q: \"${request.query['q']}\" } }, { set_response_header: { X-Q: \"${request.query['q']}\" } } ] }",
    ]);
    let response = get(&mut proxy.client(), "/?q=a%0d%0aX-Evil:%20b%00c", "");
    let got = lines(&response);
    assert!(got.iter().any(|line| line == "X-Q: a  X-Evil: b c"), "{got:?}");
    assert!(!got.iter().any(|line| line.starts_with("X-Evil")), "{got:?}");
    assert_eq!(response.head.field("x-q"), Some("a  X-Evil: b c"));
    assert_eq!(response.head.field("x-evil"), None);
}

#[test]
fn redirections_and_answers_end_the_policies() {
    let directory = TempDir::new("policies");
    let page = directory.path().join("sorry.html");
    std::fs::write(&page, "<h1>sorry</h1>").expect("a page");
    let file = format!(
        "{{ when: 'request.path == \"/page\"', then: [ {{ respond: {{ status: 503, file: {} }} }} ] }}",
        page.display()
    );
    let (member, proxy) = echo(&[
        r#"{ when: 'request.host == "shop.example" && request.path == "/moved"', then: [ { redirect: { to: "https://new.example${request.target}", status: 301 } } ] }"#,
        r#"{ when: 'request.method == "TRACE"', then: [ { respond: { status: 405, body: "no ${request.method}\n", headers: { Allow: GET } } } ] }"#,
        r#"{ when: 'request.path == "/here"', then: [ { redirect: { to: "/there?q=${request.query['q']}" } } ] }"#,
        &file,
        r#"{ when: 'request.path == "/moved"', then: [ { respond: { status: 500 } } ] }"#,
    ]);
    let mut client = proxy.client();
    let moved = get(&mut client, "/moved?a=b", "");
    moved.assert_status(301);
    assert_eq!(moved.head.field("location"), Some("https://new.example/moved?a=b"));
    let here = get(&mut client, "/here?q=%22%20%0a", "");
    here.assert_status(302);
    assert_eq!(here.head.field("location"), Some("/there?q=%22%20%0A"));
    client.send("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n");
    let trace = client.response();
    assert_eq!(
        (trace.assert_status(405).text().as_str(), trace.head.field("allow")),
        ("no TRACE\n", Some("GET"))
    );
    let page = get(&mut client, "/page", "");
    assert_eq!(
        (page.assert_status(503).text().as_str(), page.head.field("content-type")),
        ("<h1>sorry</h1>", Some("text/html; charset=utf-8"))
    );
    client.send("HEAD /page HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.head_response().assert_status(503).head.field("content-length"), Some("14"));
    get(&mut client, "/other", "").assert_status(200);
    assert_eq!(member.request_count(), 1);
}

#[test]
fn an_answer_to_a_request_with_a_body_ends_the_connection_in_order() {
    let (member, proxy) = echo(&["{ then: [ { respond: { status: 403, body: no } } ] }"]);
    let mut client = proxy.client();
    client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", 10 << 20));
    client.send(vec![b'x'; 1 << 16]);
    let response = client.response();
    response.assert_status(403);
    assert_eq!(response.head.field("connection"), Some("close"));
    assert_eq!(member.request_count(), 0);
}

#[test]
fn connections_are_closed_or_reset_without_an_answer() {
    let (_member, proxy) = echo(&[
        "{ when: 'request.path == \"/close\"', then: [ close ] }",
        "{ when: 'request.path == \"/reset\"', then: [ reset ] }",
    ]);
    for (path, is_reset) in [("/close", false), ("/reset", true)] {
        let mut client = proxy.client();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let mut rest = Vec::new();
        let ended = std::io::Read::read_to_end(client.stream(), &mut rest);
        assert!(rest.is_empty(), "{path}");
        assert_eq!(ended.is_err(), is_reset, "{path}: {ended:?}");
    }
}

#[test]
fn responses_are_changed_by_rules_of_either_phase_and_also_when_they_are_our_own() {
    let member = Member::script(
        "HTTP/1.1 404 Not Found\r\nServer: secret/1.0\r\nX-Powered-By: x\r\nX-Powered-By: y\r\n\
         Location: http://127.0.0.1:9001/a\r\nContent-Length: 0\r\n\r\n",
    );
    let proxy = Proxy::start(&with_rules(
        Setup::new(&[member.address()]).member("127.0.0.1:1").pool("retries: 0"),
        "all_match",
        &[
            "{ then: [ { set_response_header: { Server: weir, X-Method: \"${request.method}\" } }, { remove_response_header: X-Powered-By } ] }",
            "{ when: 'response.status == 404', then: [ { add_response_header: { X-Missing: \"${request.path}\" } } ] }",
            "{ when: 'response.status >= 500', then: [ { add_response_header: { X-Broken: \"${response.status}\" } } ] }",
            "{ then: [ { rewrite_location: { regex: '^http://127\\.0\\.0\\.1:9001/', to: 'https://shop.example/' } }, { set_cookie: { name: seen, value: \"${request.method}\" } } ] }",
        ],
    ));
    let (mut missing, mut broken) = (0, 0);
    for _ in 0..4 {
        let response = get(&mut proxy.client(), "/gone", "");
        assert_eq!(response.head.field("server"), Some("weir"));
        assert_eq!(response.head.field("x-method"), Some("GET"));
        assert_eq!(response.head.field("x-powered-by"), None);
        assert_eq!(response.head.field("set-cookie"), Some("seen=GET; Path=/; HttpOnly"));
        if response.status == 404 {
            missing += 1;
            assert_eq!(response.head.field("x-missing"), Some("/gone"));
            assert_eq!(response.head.field("location"), Some("https://shop.example/a"));
        } else {
            broken += 1;
            response.assert_status(502);
            assert_eq!(response.head.field("x-broken"), Some("502"));
            assert_eq!(response.head.field("location"), None);
        }
    }
    assert_eq!((missing, broken), (2, 2));
}

#[test]
fn a_rule_for_the_request_can_change_the_response_and_the_first_match_is_the_same_then() {
    let member = Member::script("HTTP/1.1 200 OK\r\nVia: inner\r\nContent-Length: 2\r\n\r\nok");
    let proxy = Proxy::start(&with_rules(
        Setup::new(&[member.address()]),
        "first_match",
        &[
            "{ when: 'request.path == \"/plain\"', then: [ { set_header: { X-A: b } } ] }",
            "{ when: 'request.path.startsWith(\"/\")', then: [ { set_header: { X-A: c } }, { replace_response_header: { Via: { regex: inner, to: outer } } } ] }",
        ],
    ));
    assert_eq!(proxy.client().get("/plain").head.field("via"), Some("inner"));
    assert_eq!(proxy.client().get("/other").head.field("via"), Some("outer"));
}

#[test]
fn data_sets_are_looked_into_and_read_anew_by_a_reload() {
    let directory = TempDir::new("data-sets");
    let file = directory.path().join("blocked.txt");
    std::fs::write(&file, "# who is out\n/admin\n\n/private\n").expect("a list");
    let member = Member::echo();
    let setup = with_rules(
        Setup::new(&[member.address()]).top(&format!(
            "data_sets:\n  blocked: {{ type: strings, file: {} }}\n  office: {{ type: addresses, items: [ 10.0.0.0/8, 127.0.0.0/9 ] }}\n  \
             targets: {{ type: map, items: {{ shop.example: /shop, other.example: /other }} }}",
            file.display()
        )),
        "all_match",
        &[
            "{ when: 'request.path.startsWithAny(data[\"blocked\"])', then: [ { respond: { status: 403 } } ] }",
            "{ when: 'client.ip in data[\"office\"]', then: [ { set_header: { X-Office: \"yes\" } } ] }",
            "{ when: 'data[\"targets\"][request.host] != \"\"', then: [ { rewrite_path: \"${data['targets'][request.host]}${request.path}\" } ] }",
        ],
    );
    let proxy = Proxy::start(&setup);
    let mut client = proxy.client();
    get(&mut client, "/admin/x", "").assert_status(403);
    let got = lines(&get(&mut client, "/public", ""));
    assert_eq!(got[0], "GET /shop/public HTTP/1.1");
    assert!(got.iter().any(|line| line == "X-Office: yes"), "{got:?}");
    std::fs::write(&file, "/public\n").expect("a list");
    proxy.reload_and_wait(&setup);
    get(&mut client, "/public", "").assert_status(403);
    get(&mut client, "/admin/x", "").assert_status(200);
}

#[test]
fn marks_and_pools_are_in_the_access_log() {
    let [web, images] = ["web", "images"].map(Member::named);
    let setup = with_rules(
        Setup::new(&[web.address()])
            .also_pool(&format!("images: {{ members: [ {} ] }}", images.address()))
            .access_log(),
        "all_match",
        &[
            "{ when: 'request.path.endsWith(\".png\")', then: [ { pool: images }, { trace: \"image ${request.path}\" } ] }",
            "{ then: [ { trace: every } ] }",
        ],
    );
    let mut proxy = Proxy::start(&setup);
    proxy.client().get("/a.png").assert_status(200);
    weir_tests::eventually("a log line", weir_tests::STEP_TIMEOUT, || {
        proxy.process().output().contains("\"marks\":[\"image /a.png\",\"every\"]")
    });
    assert!(proxy.process().output().contains("\"pool\":\"images\""));
}

#[test]
fn ten_thousand_rules_are_followed_in_order() {
    let member = Member::echo();
    let mut rules: Vec<String> = (0..10_000)
        .map(|number| {
            format!("{{ when: 'request.host == \"h{}.example\" && request.path.startsWith(\"/p{number}/\")', then: [ {{ respond: {{ body: \"{number}\" }} }} ] }}", number % 100)
        })
        .collect();
    rules.push(
        "{ when: 'request.path.startsWith(\"/p77/\")', then: [ { respond: { body: last } } ] }"
            .into(),
    );
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let proxy = Proxy::start(&with_rules(Setup::new(&[member.address()]), "first_match", &rules));
    let mut client = proxy.client();
    for (host, path, expected) in [
        ("h77.example", "/p77/x", "77"),
        ("h99.example", "/p9999/", "9999"),
        ("h1.example", "/p77/x", "last"),
    ] {
        client.send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(client.response().assert_status(200).text(), expected);
    }
}

/// Waits until the access log has this number of lines. Returns the lines.
fn logged(proxy: &mut Proxy, count: usize) -> Vec<serde_json::Value> {
    let mut lines = Vec::new();
    weir_tests::eventually("the access log has its lines", weir_tests::STEP_TIMEOUT, || {
        let output = proxy.process().output();
        let json = output.lines().filter_map(|line| serde_json::from_str(line).ok());
        lines = json.filter(|line: &serde_json::Value| line["status"].is_u64()).collect();
        lines.len() >= count
    });
    lines
}

#[test]
fn the_access_log_tells_which_rules_were_followed_and_what_persistence_did() {
    let [one, two] = ["one", "two"].map(Member::named);
    let setup = Setup::new(&[one.address(), two.address()])
        .virtual_server("persistence: stay")
        .top("persistence:\n  stay: { type: cookie, name: STAY }")
        .access_log();
    let setup = with_rules(
        setup,
        "all_match",
        &[
            "{ name: secret, when: \"request.path == '/secret'\", then: [ { respond: { status: 403 } } ] }",
            "{ when: 'request.path == \"/a\"', then: [ { set_header: { X-A: b } } ] }",
            "{ name: told, when: 'response.status == 200', then: [ { set_response_header: { X-T: u } } ] }",
        ],
    );
    let mut proxy = Proxy::start(&setup);
    let mut client = proxy.client();
    let first = get(&mut client, "/a", "");
    let cookie = first.head.field("Set-Cookie").expect("a cookie");
    let cookie = cookie.split(';').next().expect("its value").to_owned();
    get(&mut client, "/b", &format!("Cookie: {cookie}\r\n"));
    get(&mut client, "/secret", "");
    drop(client);
    let lines = logged(&mut proxy, 3);
    let of = |target: &str| lines.iter().find(|line| line["target"] == target).expect("a line");
    assert_eq!(of("/a")["rules"], serde_json::json!(["test/2", "test/told"]));
    assert_eq!(of("/a")["persistence"], "new");
    assert_eq!(of("/b")["rules"], serde_json::json!(["test/told"]));
    assert_eq!(of("/b")["persistence"], "kept");
    assert_eq!(of("/secret")["rules"], serde_json::json!(["test/secret"]));
    assert_eq!(of("/secret")["persistence"], serde_json::Value::Null);
}

#[test]
fn a_virtual_server_that_answers_by_rules_needs_no_pool() {
    let member = Member::named("shop");
    let rules = "policies:\n  answers:\n    rules:\n      \
         - { when: \"request.path == '/old'\", then: [ { redirect: { to: /new } } ] }\n      \
         - { when: \"request.path == '/shop'\", then: [ { pool: members } ] }";
    let lease = weir_tests::ports::Lease::new();
    let server = format!("alone: {{ listen: \"{}\", policies: [ answers ] }}", lease.address());
    let setup =
        Setup::new(&[member.address()]).also_virtual_server(&server).top(rules).access_log();
    let mut proxy = Proxy::start(&setup.admin_socket());
    let mut client = Client::connect(lease.address());
    assert_eq!(get(&mut client, "/old", "").head.field("Location"), Some("/new"));
    assert_eq!(get(&mut client, "/shop", "").text(), "shop");
    assert_eq!(get(&mut client, "/none", "").status, 503);
    drop(client);
    let lines = logged(&mut proxy, 3);
    let none = lines.iter().find(|line| line["target"] == "/none").expect("a line");
    assert_eq!(
        (&none["pool"], &none["termination"]),
        (&serde_json::Value::Null, &"no_member".into())
    );
    let status: serde_json::Value =
        serde_json::from_str(&proxy.admin_get("/v1/status")).expect("JSON");
    assert_eq!(status["problems"], serde_json::json!([]));
    assert_eq!(status["pools"].as_array().map(Vec::len), Some(1));
    let alone = &status["virtual_servers"][1];
    assert_eq!((&alone["pool"], &alone["pools"]), (&"".into(), &serde_json::json!(["members"])));
    assert!(!proxy.admin_get("/metrics").contains("pool=\"\""));
}

/// The equivalents of the iRules commands `getfield`, `substr`, `URI::decode` and `b64decode`.
#[test]
fn parts_of_texts_can_be_used() {
    let (_member, proxy) = echo(&[
        "{ then: [ { set_header: { X-Tenant: \"${request.path.segment(1)}\" } } ] }",
        "{ when: \"request.path.segment(2) == 'cart'\", then: [ { set_header: { X-Cart: \"${request.raw_query.part('=', 1).urlDecode()}\" } } ] }",
        "{ then: [ { set_header: { X-User: \"${request.headers['authorization'].substring(6).base64Decode().part(':', 0)}\" } } ] }",
        "{ when: \"request.host.hash(1) == 0\", then: [ { set_header: { X-Share: \"${request.host.replace('.', '-')}\" } } ] }",
    ]);
    let response = get(
        &mut proxy.client(),
        "/acme/cart?item=a%20b",
        "Authorization: Basic am9lOnNlY3JldA==\r\n",
    );
    let got = lines(&response);
    for line in ["X-Tenant: acme", "X-Cart: a b", "X-User: joe", "X-Share: shop-example"] {
        assert!(got.iter().any(|got| got == line), "{line} in {got:?}");
    }
}

#[test]
fn cookies_of_members_get_attributes() {
    let member = Member::script(
        "HTTP/1.1 200 OK\r\nSet-Cookie: session=1; Path=/; SameSite=None\r\nset-cookie: cart_a=2; secure\r\n\
         Set-Cookie: other=3\r\nSet-Cookie: nameless\r\nContent-Length: 0\r\n\r\n",
    );
    let proxy = Proxy::start(&with_rules(
        Setup::new(&[member.address()]).virtual_server("persistence: sticky").top(
            "persistence: { sticky: { type: cookie, name: WEIR, http_only: false, secure: false } }",
        ),
        "all_match",
        &[
            "{ then: [ { set_cookie: { name: cart_rule, value: '4', http_only: false } } ] }",
            "{ then: [ { set_cookie_attributes: { names: [ session, 'cart_*' ], secure: true, http_only: true, same_site: strict } } ] }",
            "{ when: 'request.path == \"/all\"', then: [ { set_cookie_attributes: { http_only: true } } ] }",
        ],
    ));
    for (path, other) in [("/", "other=3"), ("/all", "other=3; HttpOnly")] {
        let response = proxy.client().get(path);
        let cookies: Vec<&str> = response.head.all("set-cookie").collect();
        let (own, members): (Vec<&str>, Vec<&str>) =
            cookies.into_iter().partition(|it| it.starts_with("WEIR="));
        assert!(own.len() == 1 && !own[0].contains("HttpOnly"), "{own:?}");
        assert_eq!(
            members,
            [
                "cart_rule=4; Path=/; Secure; HttpOnly; SameSite=Strict",
                "session=1; Path=/; Secure; HttpOnly; SameSite=Strict",
                "cart_a=2; secure; HttpOnly; SameSite=Strict",
                other,
                "nameless",
            ],
            "{path}"
        );
    }
}

#[test]
fn chance_decides_about_each_request() {
    let (_member, proxy) = echo(&[
        "{ when: random(4) == 0, then: [ { set_header: { X-Fourth: a } } ] }",
        "{ when: random(4) == 0, then: [ { set_header: { X-Other: b } } ] }",
        "{ then: [ { set_header: { X-Number: \"${random(1000) + 1000}\" } } ] }",
    ]);
    let mut client = proxy.client();
    let (mut fourths, mut others, mut both) = (0, 0, 0);
    for _ in 0..400 {
        let got = lines(&get(&mut client, "/", ""));
        let has = |line: &str| got.iter().any(|got| got == line);
        let (is_fourth, is_other) = (has("X-Fourth: a"), has("X-Other: b"));
        fourths += u32::from(is_fourth);
        others += u32::from(is_other);
        both += u32::from(is_fourth && is_other);
        let number = got.iter().find_map(|got| got.strip_prefix("X-Number: ")).expect("a number");
        assert!((1_000..2_000).contains(&number.parse().expect("a number")), "{number}");
    }
    // A quarter of the requests, within seven standard deviations.
    assert!((40..160).contains(&fourths) && (40..160).contains(&others), "{fourths} {others}");
    assert!((1..70).contains(&both), "{both}: each rule draws for itself");
}

#[test]
fn the_time_is_that_of_the_zone_in_the_file() {
    let zones = [("UTC", 0), ("+14:00", 14 * 3_600), ("-05:30", -19_800)];
    let named = ["Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe"];
    let has_names = Path::new("/usr/share/zoneinfo/Europe/Berlin").exists();
    if !has_names {
        weir_tests::tools::skip("names of time zones need tzdata");
    }
    let named = named.iter().filter(|_| has_names).map(|zone| (*zone, offset_of(zone)));
    for (zone, offset_s) in zones.into_iter().chain(named) {
        let member = Member::echo();
        let now = "${time.date}T${time.clock} ${time.hour}:${time.minute} ${time.weekday}";
        let field = format!("{{ then: [ {{ set_header: {{ X-Time: \"{now}\" }} }} ] }}");
        let response = "{ when: response.status == 200, then: [ { set_response_header: { X-Time: \"${time.clock}\" } } ] }";
        let setup = Setup::new(&[member.address()]).top(&format!("time_zone: \"{zone}\""));
        let proxy = Proxy::start(&with_rules(setup, "all_match", &[&field, response]));
        let second = || {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
            now.as_secs().checked_add_signed(offset_s).expect("it is later than 1970")
        };
        let before = second();
        let response = get(&mut proxy.client(), "/", "");
        let after = second();
        let got = lines(&response);
        let time = got.iter().find_map(|got| got.strip_prefix("X-Time: ")).expect("a time");
        let expected = |second: u64| {
            let (hour, minute) = (second / 3_600 % 24, second / 60 % 60);
            let weekday = (second / 86_400 + 3) % 7 + 1;
            let clock = format!("{hour:02}:{minute:02}:{:02}", second % 60);
            (second / 86_400, format!("{clock} {hour}:{minute} {weekday}"))
        };
        let possible: Vec<(u64, String)> = (before..=after).map(expected).collect();
        let (date, rest) = time.split_once('T').expect("a date and a time");
        assert!(possible.contains(&(day_of(date), rest.to_owned())), "{time}: {possible:?}");
        let clock = response.head.field("x-time").expect("the time");
        assert_eq!(rest.split(' ').next(), Some(clock), "it is the time of the request");
    }
}

/// The current offset of a time zone from UTC in seconds, from the system.
fn offset_of(zone: &str) -> i64 {
    let mut date = std::process::Command::new("date");
    let text = weir_tests::tools::run(date.env("TZ", zone).arg("+%z"));
    let number: i64 = text.trim().parse().expect("an offset such as +0100");
    (number / 100 * 60 + number % 100) * 60
}

/// The number of days from 1970 to a date.
fn day_of(date: &str) -> u64 {
    let parts: Vec<u64> = date.split('-').map(|part| part.parse().expect("a number")).collect();
    let [year, month, day] = parts[..] else { panic!("{date}") };
    let is_leap =
        |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let years: u64 = (1970..year).map(|year| 365 + u64::from(is_leap(year))).sum();
    let february = 28 + u64::from(is_leap(year));
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let months: u64 = lengths[..month as usize - 1].iter().sum();
    years + months + day - 1
}

#[test]
fn rules_for_responses_know_the_member() {
    let (member, spare) = (Member::echo(), Member::echo());
    let rules = [
        "{ when: request.path == '/b', then: [ { pool: spare } ] }",
        "{ when: member.port > 0, then: [ { set_response_header: { X-Member: \"${member.name} ${member.ip} ${member.port} ${member.pool}\" } } ] }",
        "{ when: request.path == '/c', then: [ { respond: { status: 200 } } ] }",
        "{ when: response.status == 200 && member.name == '', then: [ { set_response_header: { X-Member: none } } ] }",
    ];
    let setup = with_rules(
        Setup::new(&[member.address()])
            .also_pool(&format!("spare: {{ members: [ {} ] }}", spare.address())),
        "all_match",
        &rules,
    );
    let proxy = Proxy::start(&setup);
    let mut client = proxy.client();
    for (target, member, pool) in [("/a", &member, "members"), ("/b", &spare, "spare")] {
        let address = member.address();
        let expected = format!("{address} {} {} {pool}", address.ip(), address.port());
        let response = get(&mut client, target, "");
        assert_eq!(response.assert_status(200).head.field("x-member"), Some(expected.as_str()));
    }
    assert_eq!(get(&mut client, "/c", "").head.field("x-member"), Some("none"));
}

#[test]
fn rules_ask_how_pools_are() {
    let (member, gate) = Member::gated("done");
    let spare = Member::named("spare");
    let state =
        "${pools['members'].up_members} ${pools['members'].connections} ${pools['off'].up_members}";
    let rules = [
        &format!(
            "{{ when: request.path == '/state', then: [ {{ respond: {{ status: 200, body: \"{state}\" }} }} ] }}"
        ),
        "{ when: \"pools['members'].connections >= 1 && pools['off'].up_members == 0\", then: [ { pool: spare } ] }",
    ];
    let pool = |name: &str, address: &str| format!("{name}: {{ members: [ {address} ] }}");
    let off = format!("{{ address: {}, state: disabled }}", spare.address());
    let setup = with_rules(
        Setup::new(&[member.address()])
            .also_pool(&pool("spare", &spare.address().to_string()))
            .also_pool(&pool("off", &off)),
        "first_match",
        &rules,
    );
    let proxy = Proxy::start(&setup);
    let mut client = proxy.client();
    assert_eq!(get(&mut client, "/state", "").assert_status(200).text(), "1 0 0");
    let mut waiting = proxy.client();
    waiting.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    member.wait_for_requests(1);
    assert_eq!(get(&mut client, "/state", "").assert_status(200).text(), "1 1 0");
    assert_eq!(get(&mut client, "/", "").assert_status(200).text(), "spare");
    gate.open();
    assert_eq!(waiting.response().assert_status(200).text(), "done");
    // The client may have its response before the worker counts the connection as idle.
    weir_tests::eventually("the pool has no connection", weir_tests::STEP_TIMEOUT, || {
        get(&mut client, "/state", "").assert_status(200).text() == "1 0 0"
    });
    assert_eq!(get(&mut client, "/", "").assert_status(200).text(), "done");
}

#[test]
fn fields_of_one_name_are_looked_at_one_by_one_and_numbers_are_added() {
    let (_member, proxy) = echo(&[
        "{ when: \"'gold' in request.headers.all('x-group')\", then: [ { set_header: { X-Gold: \"${request.headers.all('x-group')[1]}\" } } ] }",
        "{ then: [ { set_header: { X-Count: \"${request.headers.all('x-group').size() * 10 + int(request.headers['x-add'])}\" } } ] }",
    ]);
    let mut client = proxy.client();
    for (fields, gold, count) in [
        ("X-Group: a\r\nx-group: gold\r\nX-Add: 5\r\n", Some("X-Gold: gold"), "X-Count: 25"),
        ("X-Group: a, gold\r\nX-Add: none\r\n", None, "X-Count: 10"),
    ] {
        let got = lines(&get(&mut client, "/", fields));
        let found = got.iter().find(|got| got.starts_with("X-Gold:")).map(String::as_str);
        assert_eq!(found, gold, "{got:?}");
        assert!(got.iter().any(|got| got == count), "{got:?}");
    }
}

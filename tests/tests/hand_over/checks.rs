//! The checks of both virtual servers: a request must pass all of them.

use weir_tests::client::Client;
use weir_tests::member::Member;
use weir_tests::ports::Lease;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;

use weir_tests::{STEP_TIMEOUT, eventually};

use super::{Bed, count, get, wait_for_log};

const DENY: &str = "  of-app:\n    rules:\n      - name: deny\n        when: \"!cidr('10.0.0.0/8').containsIP(client.ip)\"\n        then: [ { respond: { status: 403, body: no } } ]\n";

#[test]
fn rules_of_the_other_refuse() {
    let mut bed = Bed::new();
    bed.app = ", policies: [ of-app ], error_pages: { 404: { body: mine } }".into();
    bed.policies = DENY.into();
    let mut proxy = bed.start();
    assert_eq!(get(&proxy, "/app", "").assert_status(403).text(), "no");
    assert_eq!(count(&proxy, "requests_ended_by_policy", "app"), 1.0);
    assert_eq!(count(&proxy, "requests_ended_by_policy", "main"), 0.0);
    assert_eq!(bed.member.request_count(), 0);
    wait_for_log(&mut proxy, "\"entered_at\":\"main\"");
}

/// The virtual server that accepted the connection determines the client's address.
#[test]
fn proxies_are_trusted_by_the_one_that_was_entered() {
    let mut bed = Bed::new();
    bed.main = "policies: [ routing ]\nclient_address: { trust: [ 127.0.0.1 ] }".into();
    bed.app = ", policies: [ of-app ], client_address: { x_forwarded_for: replace, x_forwarded_proto: true }, limits: { per_key: [ { requests_per_second: 1/m, burst: 1 } ] }".into();
    bed.policies = DENY.into();
    let mut proxy = bed.start();
    get(&proxy, "/app", "X-Forwarded-For: 192.0.2.1\r\n").assert_status(403);
    let told = "X-Forwarded-For: 10.1.2.3\r\nX-Forwarded-Proto: https\r\n";
    let text = get(&proxy, "/app", told).assert_status(200).text();
    assert!(text.contains("X-Forwarded-For: 10.1.2.3\r\nX-Forwarded-Proto: https\r\n"), "{text}");
    get(&proxy, "/app", told).assert_status(429);
    get(&proxy, "/app", "X-Forwarded-For: 10.1.2.4\r\n").assert_status(200);
    wait_for_log(&mut proxy, "\"client\":\"10.1.2.3\"");
}

/// Rules that change a forwarding header do not affect the client address for limits and rules of the other virtual server.
#[test]
fn rules_do_not_change_who_the_client_is() {
    for rule in ["remove_header: X-Forwarded-For", "set_header: { X-Forwarded-For: 10.1.2.3 }"] {
        let mut bed = Bed::new();
        bed.main = "policies: [ routing ]\nclient_address: { trust: [ 127.0.0.1 ] }".into();
        bed.rule = format!("{{ {rule} }},");
        bed.app = ", policies: [ of-app ]".into();
        bed.policies = DENY
            .replace("10.0.0.0/8')", "10.0.0.0/8').containsIP(client.ip) && !cidr('127.0.0.0/8')");
        let proxy = bed.start();
        get(&proxy, "/app", "X-Forwarded-For: 192.0.2.1\r\n").assert_status(403);
        assert_eq!(bed.member.request_count(), 0, "{rule}");
    }
}

#[test]
fn members_are_told_the_host_that_the_client_asked_for() {
    let mut bed = Bed::new();
    bed.rule = "{ rewrite_host: inner.example },".into();
    bed.app = ", client_address: { x_forwarded_proto: true, forwarded: replace }".into();
    let proxy = bed.start();
    let text = get(&proxy, "/app", "").assert_status(200).text();
    for part in ["Host: inner.example\r\n", "X-Forwarded-Host: a.example\r\n", "host=a.example"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// A client can list any header in `Connection`, which weir then does not forward. Rules of the other virtual server must
/// still see the changes of earlier rules to such headers, not the original values.
#[test]
fn what_the_connection_names_is_not_read_past_rules() {
    let mut bed = Bed::new();
    bed.rule =
        "{ remove_header: X-Role }, { set_header: { X-Tier: low } }, { remove_cookie: role },"
            .into();
    bed.app = ", policies: [ of-app ]".into();
    bed.policies = "  of-app:\n    strategy: all_match\n    rules:\n      - when: \"'x-role' in request.headers || request.cookies['role'] == 'admin'\"\n        then: [ { respond: { status: 418 } } ]\n      - then: [ { set_response_header: { X-Tier: \"${request.headers['x-tier']}\" } } ]\n".into();
    let proxy = bed.start();
    let fields = "X-Role: admin\r\nX-Tier: high\r\nCookie: role=admin\r\n";
    for named in ["", "Connection: X-Role, x-tier, cookie\r\n"] {
        let response = get(&proxy, "/app", &format!("{named}{fields}"));
        assert_eq!(response.assert_status(200).head.field("x-tier"), Some("low"), "{named}");
    }
}

#[test]
fn limits_of_both_count() {
    let mut bed = Bed::new();
    bed.main = "policies: [ routing ]\nlimits: { requests_per_second: 3/m, burst: 3 }".into();
    bed.app = ", limits: { requests_per_second: 1/m, burst: 1 }".into();
    let proxy = bed.start();
    get(&proxy, "/app", "").assert_status(200);
    get(&proxy, "/app", "").assert_status(429);
    assert_eq!(count(&proxy, "requests_limited", "app"), 1.0);
    get(&proxy, "/else", "").assert_status(200);
    get(&proxy, "/app", "").assert_status(429);
    assert_eq!(count(&proxy, "requests_limited", "main"), 1.0);
    assert_eq!(count(&proxy, "requests_limited", "app"), 1.0);
}

#[test]
fn places_at_a_time_are_held_and_given_back_in_both() {
    let (held, gate) = Member::gated("late");
    let mut bed = Bed::new();
    bed.member = held;
    bed.main = "policies: [ routing ]\nlimits: { requests: 1 }".into();
    let proxy = bed.start();
    let mut waits = proxy.client();
    waits.send("GET /app HTTP/1.1\r\nHost: a\r\n\r\n");
    bed.member.wait_for_requests(1);
    get(&proxy, "/else", "").assert_status(429);
    assert_eq!(count(&proxy, "requests_limited", "main"), 1.0);
    gate.open();
    waits.response().assert_status(200);
    // A worker gives the place back after it has sent the response: a client of another worker can come in between.
    eventually("the place is free", STEP_TIMEOUT, || get(&proxy, "/else", "").status == 200);

    let (held, gate) = Member::gated("late");
    bed.member = held;
    bed.main = "policies: [ routing ]\nlimits: { requests: 2 }".into();
    bed.app = ", limits: { requests: 1, per_key: [ { requests: 1 } ] }".into();
    let proxy = bed.start();
    let mut waits = proxy.client();
    waits.send("GET /app HTTP/1.1\r\nHost: a\r\n\r\n");
    bed.member.wait_for_requests(1);
    get(&proxy, "/app", "").assert_status(429);
    assert_eq!(count(&proxy, "requests_limited", "app"), 1.0);
    eventually("main has a place", STEP_TIMEOUT, || get(&proxy, "/else", "").status == 200);
    gate.open();
    waits.response().assert_status(200);
    for _ in 0..5 {
        // Finished requests do not count against limits.
        assert_eq!(waits.get("/app").assert_status(200).text(), "late");
        assert_eq!(waits.get("/else").assert_status(200).text(), "of main");
    }
}

/// The hash of `abc` from jBCrypt's tests.
const ABC: &str = "$2a$06$If6bvum7DFjUnE9p2uDeDu0YHzrHM6tf.iqN8.yx.jNN1ILEf7h0i";
const ANN: &str = "Authorization: Basic YW5uOmFiYw==\r\n";
const ANN_WRONG: &str = "Authorization: Basic YW5uOmFiZA==\r\n";
const EVE: &str = "Authorization: Basic ZXZlOmFiYw==\r\n";

/// Adds the authentications `front` with the user `ann`, and `app` with the user `eve`.
fn with_users(bed: &mut Bed, folder: &TempDir) {
    let file = |name: &str, user: &str| folder.write(name, format!("{user}:{ABC}\n"));
    bed.top.push(format!(
        "authentication:\n  front: {{ type: basic, users: {} }}\n  app: {{ type: basic, users: {} }}",
        file("front", "ann").display(),
        file("app", "eve").display()
    ));
}

#[test]
fn both_may_ask_who_it_is() {
    let directory = TempDir::new("hand-over");
    let mut bed = Bed::new();
    with_users(&mut bed, &directory);
    // Authentication only at the receiving virtual server.
    bed.main = "policies: [ routing ]\nauthenticate: front".into();
    bed.app = ", policies: [ of-app ]".into();
    bed.policies = "  of-app:\n    rules:\n      - then: [ { set_header: { X-User: \"<${request.user}>\" } } ]\n".into();
    let mut proxy = bed.start();
    get(&proxy, "/app", "").assert_status(401);
    get(&proxy, "/app", ANN_WRONG).assert_status(401);
    get(&proxy, "/app", EVE).assert_status(401);
    assert_eq!(bed.member.request_count(), 0);
    let text = get(&proxy, "/app", ANN).assert_status(200).text();
    // A user belongs to one authentication, so rules of the other virtual server do not get the user.
    assert!(text.contains("X-User: <>\r\n"), "{text}");
    wait_for_log(&mut proxy, "\"user\":\"ann\"");

    // Authentication only at the other virtual server.
    bed.main = String::new();
    bed.app = ", policies: [ of-app ], authenticate: app".into();
    proxy.reload_and_wait(&bed.setup());
    let before = bed.member.request_count();
    get(&proxy, "/app", "").assert_status(401);
    get(&proxy, "/app", ANN).assert_status(401);
    assert_eq!(bed.member.request_count(), before);
    let text = get(&proxy, "/app", EVE).assert_status(200).text();
    assert!(text.contains("X-User: <eve>\r\n"), "{text}");
    wait_for_log(&mut proxy, "\"user\":\"eve\"");

    // Authentication at both: no password is valid for both.
    bed.main = "policies: [ routing ]\nauthenticate: front".into();
    proxy.reload_and_wait(&bed.setup());
    let before = bed.member.request_count();
    for user in [ANN, EVE] {
        get(&proxy, "/app", user).assert_status(401);
    }
    assert_eq!(bed.member.request_count(), before);
}

/// A limit of the other virtual server may end a request before the receiving one has checked the password. Then the log
/// contains no user.
#[test]
fn whose_password_was_not_checked_is_nobody_in_the_log() {
    let directory = TempDir::new("hand-over");
    let mut bed = Bed::new();
    with_users(&mut bed, &directory);
    bed.main = "policies: [ routing ]\nauthenticate: front".into();
    bed.rule = "{ trace: \"of ${request.user}\" },".into();
    bed.app = ", limits: { requests_per_second: 1/h, burst: 1 }".into();
    let mut proxy = bed.start();
    get(&proxy, "/app", ANN_WRONG).assert_status(401);
    get(&proxy, "/app", ANN_WRONG).assert_status(429);
    wait_for_log(&mut proxy, "\"status\":429");
    let log = proxy.process().output();
    let line = log.lines().find(|line| line.contains("\"status\":429")).expect("it is there");
    assert!(!line.contains("ann"), "{line}");
}

#[test]
fn services_of_both_are_asked_one_after_the_other() {
    let service = |name: &'static str| {
        Member::new(move |exchange| {
            let cookie = exchange.request.head.field("cookie").unwrap_or_default().to_owned();
            let uri = exchange.request.head.field("x-forwarded-uri").unwrap_or_default().to_owned();
            let status = if cookie.contains(name) { "200 OK" } else { "403 No" };
            exchange.send(format!(
                "HTTP/1.1 {status}\r\nX-By-{name}: {uri}\r\nX-Name: of-{name}\r\nContent-Length: 0\r\n\r\n"
            ))?;
            Ok(weir_tests::member::Then::KeepAlive)
        })
    };
    let (front, app) = (service("front"), service("app"));
    let mut bed = Bed::new();
    bed.main = "policies: [ routing ]\nauthenticate: front".into();
    bed.rule = "{ rewrite_path: /inner },".into();
    bed.app = ", authenticate: app".into();
    bed.top.push(
        "authentication:\n  front: { type: external, pool: front, add_headers: [ X-By-front ], user_header: X-Name }\n  app: { type: external, pool: app, add_headers: [ X-By-app ], user_header: X-Name }"
            .into(),
    );
    let pools = |setup: Setup| {
        setup
            .also_pool(&format!("front: {{ members: [ \"{}\" ] }}", front.address()))
            .also_pool(&format!("app: {{ members: [ \"{}\" ] }}", app.address()))
    };
    let mut proxy = Proxy::start(&pools(bed.setup()));
    get(&proxy, "/app", "Cookie: app\r\n").assert_status(403);
    assert_eq!((front.request_count(), app.request_count()), (1, 0));
    get(&proxy, "/app", "Cookie: front\r\n").assert_status(403);
    assert_eq!((front.request_count(), app.request_count()), (2, 1));
    assert_eq!(bed.member.request_count(), 0);
    let forged = "Cookie: front; app\r\nX-By-front: me\r\nX-By-app: me\r\n";
    let text = get(&proxy, "/app", forged).assert_status(200).text();
    // Each service receives the request as its virtual server processes it.
    assert!(text.contains("X-By-front: /app\r\n"), "{text}");
    assert!(text.contains("X-By-app: /inner\r\n"), "{text}");
    assert!(!text.contains(": me"), "{text}");
    wait_for_log(&mut proxy, "\"user\":\"of-app\"");

    // The log contains the user of the receiving virtual server. Rules of the other one do not get this user, even rules
    // that read the response.
    bed.app = ", policies: [ late ]".into();
    bed.policies = "  late:\n    rules:\n      - when: 'response.status == 200'\n        then: [ { set_response_header: { X-Is: \"<${request.user}>\" } } ]\n".into();
    proxy.reload_and_wait(&pools(bed.setup()));
    let response = get(&proxy, "/app", "Cookie: front\r\n");
    assert_eq!(response.assert_status(200).head.field("x-is"), Some("<>"));
    wait_for_log(&mut proxy, "\"user\":\"of-front\"");
}

#[test]
fn what_is_held_back_where_it_came_in_waits() {
    let mut bed = Bed::new();
    bed.main = "policies: [ routing ]\nlimits: { per_key: [ { requests_per_second: 1/h, burst: 1, exceed: delay, delay_max: 10h } ] }".into();
    let proxy = bed.start();
    get(&proxy, "/app", "").assert_status(200);
    let mut waits = proxy.client();
    waits.send("GET /app HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("it is held back", STEP_TIMEOUT, || {
        count(&proxy, "requests_delayed", "main") == 1.0
    });
    let under_way = || proxy.metric("weir_virtual_server_requests_active", &["\"app\""]);
    eventually("it is of the other", STEP_TIMEOUT, || under_way() == 1.0);
    assert_eq!(bed.member.request_count(), 1);
    assert_eq!(count(&proxy, "requests_delayed", "app"), 0.0);
    waits.reset();
    eventually("it is gone", STEP_TIMEOUT, || under_way() == 0.0);
    assert_eq!(bed.member.request_count(), 1, "nobody got it");
}

#[test]
fn the_firewall_of_the_other_inspects_what_its_member_gets() {
    let directory = TempDir::new("hand-over");
    directory.write(
        "rules.conf",
        b"SecRule REQUEST_FILENAME|ARGS \"@rx bad\" \"id:1,phase:2,deny,status:406\"\n",
    );
    let rules = directory.path().join("rules.conf");
    let mut bed = Bed::new();
    bed.rule = "{ rewrite_query: \"a=${request.headers['x-query']}\" },".into();
    bed.app = format!(", waf: {{ mode: block, rules: [ {} ] }}", rules.display());
    let proxy = bed.start();
    get(&proxy, "/app", "X-Query: good\r\n").assert_status(200);
    get(&proxy, "/app", "X-Query: bad\r\n").assert_status(406);
    assert_eq!(bed.member.request_count(), 1);
    let body = b"a=bad";
    let mut client = proxy.client();
    client.send(format!(
        "POST /app HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n",
        body.len()
    ));
    client.send(body);
    client.response().assert_status(406);
    assert_eq!(bed.member.request_count(), 1);
    let inspected = proxy.metric(
        "weir_virtual_server_waf_requests_total",
        &["virtual_server=\"app\"", "outcome=\"blocked\""],
    );
    assert_eq!(inspected, 2.0);
}

#[test]
fn bodies_are_as_long_as_the_other_lets_them_be() {
    let mut bed = Bed::new();
    bed.app = ", http: { body_size_max: 1KiB }".into();
    let proxy = bed.start();
    let long = "x".repeat(2000);
    let mut client = proxy.client();
    client.post("/app", &long.as_bytes()[..1000]).assert_status(200);
    client.post("/app", long.as_bytes()).assert_status(413);
    // A body without Content-Length.
    let mut client = proxy.client();
    client.send(format!(
        "POST /app HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n{}\r\n",
        &long[..1000]
    ));
    client.send(format!("3e8\r\n{}\r\n0\r\n\r\n", &long[..1000]));
    client.response().assert_status(413);
    proxy.client().post("/else", long.as_bytes()).assert_status(200);
}

#[test]
fn trailers_obey_what_both_have_done_to_the_head() {
    let mut bed = Bed::new();
    bed.rule = "{ remove_header: X-Front },".into();
    bed.app = ", policies: [ of-app ], http: { request_trailers: forward }".into();
    bed.policies = "  of-app:\n    rules:\n      - then: [ { remove_header: X-App } ]\n".into();
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let found = std::sync::Arc::clone(&seen);
    bed.member = Member::streaming(move |exchange| {
        let trailers = exchange.read_body(|_| {})?;
        found.lock().expect("nobody panics").extend(trailers.fields);
        exchange.answer("done")
    });
    let proxy = bed.start();
    let mut client = proxy.client();
    client.send(
        "POST /app HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-Front: 1\r\nX-App: 2\r\nX-Kept: 3\r\n\r\n",
    );
    client.response().assert_status(200);
    let seen = seen.lock().expect("nobody panics").clone();
    assert_eq!(seen, [("X-Kept".to_owned(), "3".to_owned())]);
}

#[test]
fn cookies_of_each_keep_clients_and_no_member_gets_them() {
    let mut bed = Bed::new();
    bed.main = "policies: [ routing ]\npersistence: { type: cookie, name: FRONT }".into();
    bed.app = ", persistence: { type: cookie, name: APP }".into();
    let proxy = bed.start();
    let own = get(&proxy, "/else", "");
    let front = own
        .head
        .field("set-cookie")
        .expect("a cookie")
        .split(';')
        .next()
        .unwrap_or_default()
        .to_owned();
    let response = get(&proxy, "/app", &format!("Cookie: {front}; other=1\r\n"));
    let cookies: Vec<&str> = response.head.all("set-cookie").collect();
    assert!(cookies.len() == 1 && cookies[0].starts_with("APP="), "{cookies:?}");
    let app = cookies[0].split(';').next().unwrap_or_default();
    let response = get(&proxy, "/app", &format!("Cookie: {front}; {app}; other=1\r\n"));
    assert_eq!(response.head.field("set-cookie"), None, "it is known");
    assert!(response.text().contains("Cookie: other=1\r\n"), "{}", response.text());
    // Without persistence at `app`, weir still removes the cookie of `main`.
    bed.app = String::new();
    proxy.reload_and_wait(&bed.setup());
    let text = get(&proxy, "/app", &format!("Cookie: {front}; other=1\r\n")).text();
    assert!(text.contains("Cookie: other=1\r\n"), "{text}");
}

#[test]
fn locations_name_what_the_client_asked_for() {
    let mut bed = Bed::new();
    bed.rule = "{ rewrite_host: inner.example },".into();
    bed.app = ", http: { rewrite_location: true }".into();
    bed.member = Member::script(
        "HTTP/1.1 302 Found\r\nLocation: http://inner.example/next\r\nContent-Length: 0\r\n\r\n",
    );
    let proxy = bed.start();
    let response = get(&proxy, "/app", "");
    assert_eq!(response.head.field("location"), Some("http://a.example/next"));
}

#[test]
fn one_that_listens_is_the_same_for_its_own_clients() {
    let mut bed = Bed::new();
    let lease = Lease::new();
    let address = lease.address();
    bed.app = format!(", listen: \"{address}\", policies: [ of-app ]");
    bed.policies =
        "  of-app:\n    rules:\n      - then: [ { set_header: { X-App: \"1\" } } ]\n".into();
    let proxy = bed.start();
    let mut direct = Client::connect(address);
    for _ in 0..2 {
        let text = direct.get("/app/d").assert_status(200).text();
        assert!(text.contains("X-App: 1\r\n"), "{text}");
        let text = get(&proxy, "/app/o", "").assert_status(200).text();
        assert!(text.contains("X-App: 1\r\n"), "{text}");
    }
    assert_eq!(count(&proxy, "requests", "app"), 4.0);
    assert_eq!(count(&proxy, "connections", "app"), 1.0);
}

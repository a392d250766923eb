//! An external authorisation service, from the view of clients, members and the service.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use weir_tests::client::Response;
use weir_tests::http2::{Frame, Http2Member, Peer, code};
use weir_tests::member::{Exchange, Member, Then};
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;
use weir_tests::{STEP_TIMEOUT, eventually};

/// The service: it allows requests with a cookie, whose value is the user. Values that begin with `deny` select a kind of
/// denial.
fn judge(exchange: &mut Exchange<'_>) -> std::io::Result<Then> {
    let cookie = exchange.request.head.field("cookie").unwrap_or_default().to_owned();
    let uri = exchange.request.head.field("x-forwarded-uri").unwrap_or_default().to_owned();
    let answer = match cookie.as_str() {
        "" => format!(
            "HTTP/1.1 302 Found\r\nLocation: /login?for={uri}\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n\
             X-Internal: secret\r\nContent-Type: text/html\r\nContent-Length: 9\r\n\r\n<p>in</p>"
        ),
        "deny" => {
            "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"a\"\r\nContent-Length: 0\r\n\r\n"
                .into()
        }
        "deny-chunked" => {
            "HTTP/1.1 403 No\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nno!\r\n0\r\n\r\n".into()
        }
        "deny-long" => format!(
            "HTTP/1.1 403 No\r\nSet-Cookie: c=3\r\nContent-Type: text/html\r\nContent-Length: 200000\r\n\r\n{}",
            "x".repeat(200_000)
        ),
        "fail" => "HTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\noh".into(),
        "cut" => "HTTP/1.1 200 OK\r\nX-User: eve\r\nContent-Length: 10\r\n\r\nabc".into(),
        user => format!(
            "HTTP/1.1 200 OK\r\nX-User: {user}\r\nX-Groups: a\r\nX-Groups: b\r\nX-Other: no\r\nContent-Length: 2\r\n\r\nok"
        ),
    };
    exchange.send(answer)?;
    Ok(if cookie == "cut" { Then::Close } else { Then::KeepAlive })
}

fn setup(member: &Member, service: &Member, more: &str) -> Setup {
    let section = format!(
        "authentication:\n  portal: {{ type: external, pool: service, path: /verify, add_headers: [ X-User, X-Groups ], user_header: X-User{more} }}"
    );
    Setup::new(&[member.address()])
        .access_log()
        .virtual_server("authenticate: portal")
        .also_pool(&format!("service: {{ members: [ \"{}\" ] }}", service.address()))
        .top(&section)
}

fn get(proxy: &Proxy, path: &str, fields: &str) -> Response {
    let mut client = proxy.client();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: a.example\r\n{fields}\r\n"));
    client.response()
}

fn cookie(value: &str) -> String {
    format!("Cookie: {value}\r\n")
}

#[test]
fn a_service_lets_in_and_says_who_it_is() {
    let (member, service) = (Member::echo(), Member::new(judge));
    let mut proxy = Proxy::start(&setup(&member, &service, ""));
    let forged = "X-User: root\r\nx_user: root\r\nX-Groups: wheel\r\nX-Forwarded-Uri: /public\r\nX-Forwarded-Method: OPTIONS\r\nX-Original-URL: /public\r\nX-Real-IP: 10.0.0.1\r\nForwarded: for=10.0.0.1\r\nAccept-Encoding: gzip\r\nRange: bytes=0-1\r\n";
    let response = get(&proxy, "/a/../b?c=d", &(cookie("ann") + forged));
    let text = response.assert_status(200).text();
    let lines: Vec<&str> =
        text.lines().filter(|line| line.to_ascii_lowercase().starts_with("x-")).collect();
    // The headers that weir adds for the service are not sent to the member.
    let expected = [
        "X-User: ann",
        "X-Groups: a",
        "X-Groups: b",
        "X-Forwarded-Uri: /public",
        "X-Forwarded-Method: OPTIONS",
        "X-Original-URL: /public",
        "X-Real-IP: 10.0.0.1",
    ];
    assert_eq!(lines, expected, "{text}");
    assert!(!text.to_ascii_lowercase().contains("x_user"), "{text}");
    assert!(text.contains("Cookie: ann\r\n") && text.contains("Range: bytes=0-1\r\n"), "{text}");

    let asked = service.requests().remove(0);
    assert_eq!(asked.head.start, "GET /verify HTTP/1.1");
    let told = |name: &str| asked.head.field(name).unwrap_or_default().to_owned();
    for (name, expected) in [
        ("host", "a.example"),
        ("cookie", "ann"),
        ("x-forwarded-method", "GET"),
        ("x-forwarded-uri", "/b?c=d"),
        ("x-forwarded-host", "a.example"),
        ("x-forwarded-proto", "http"),
        ("x-forwarded-for", "127.0.0.1"),
        ("x-user", ""),
        ("x_user", ""),
        ("x-groups", ""),
        ("x-original-url", ""),
        ("x-real-ip", ""),
        ("forwarded", ""),
        ("range", ""),
        ("accept-encoding", ""),
    ] {
        assert_eq!(told(name), expected, "{name}");
    }
    assert_eq!(proxy.metric("weir_virtual_server_authorisations_total", &["\"allowed\""]), 1.0);
    assert_eq!(proxy.metric("weir_authorisation_duration_seconds_count", &[]), 1.0);
    assert_eq!(proxy.metric("weir_virtual_server_requests_total", &[]), 1.0, "one of a client");
    eventually("the log tells who it was, in one line", STEP_TIMEOUT, || {
        let log = proxy.process().output();
        log.contains("\"user\":\"ann\"") && log.matches("\"path\"").count() <= 1
    });
}

#[test]
fn a_denial_is_the_answer_of_the_service() {
    let (member, service) = (Member::echo(), Member::new(judge));
    let mut proxy = Proxy::start(&setup(&member, &service, ""));
    let login = get(&proxy, "/shop?a=b", "");
    assert_eq!(login.assert_status(302).text(), "<p>in</p>");
    assert_eq!(login.head.field("location"), Some("/login?for=/shop?a=b"));
    assert_eq!(login.head.field("content-type"), Some("text/html"));
    assert_eq!(login.head.field("x-internal"), None);
    let cookies =
        login.head.fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
    assert_eq!(cookies.map(|(_, value)| value.as_str()).collect::<Vec<_>>(), ["a=1", "b=2"]);

    let empty = get(&proxy, "/", &cookie("deny"));
    assert_eq!(empty.assert_status(401).head.field("www-authenticate"), Some("Basic realm=\"a\""));
    assert_eq!(get(&proxy, "/", &cookie("deny-chunked")).assert_status(403).text(), "no!");
    let long = get(&proxy, "/", &cookie("deny-long"));
    assert_eq!(long.assert_status(403).text(), "403 Forbidden\n", "it is left out");
    assert_eq!(long.head.field("set-cookie"), Some("c=3"));

    let mut client = proxy.client();
    client.send("HEAD / HTTP/1.1\r\nHost: a\r\nCookie: deny-chunked\r\n\r\n");
    client.head_response().assert_status(403);
    // The connection remains open after a denial.
    client.send("GET / HTTP/1.1\r\nHost: a\r\nCookie: ann\r\n\r\n");
    client.response().assert_status(200);
    assert_eq!(member.requests().len(), 1, "nobody else has come to the member");
    assert_eq!(proxy.metric("weir_virtual_server_authorisations_total", &["\"denied\""]), 5.0);
    eventually("the log tells why", STEP_TIMEOUT, || {
        proxy.process().output().contains("\"marks\":[\"authenticate portal: denied with 302\"]")
    });
}

#[test]
fn what_fails_is_refused_unless_it_is_to_be_let_in() {
    for (more, status) in [("", 503), (", on_error: allow", 200)] {
        let (member, service) = (Member::echo(), Member::new(judge));
        let mut proxy = Proxy::start(&setup(&member, &service, more));
        for how in ["fail", "cut"] {
            let response = get(&proxy, "/", &(cookie(how) + "X-User: root\r\n"));
            let text = response.assert_status(status).text();
            assert!(!text.contains("X-User") && !text.contains("root"), "{text}");
        }
        drop(service);
        // The service no longer listens.
        get(&proxy, "/", &cookie("ann")).assert_status(status);
        assert_eq!(member.requests().len(), if status == 200 { 3 } else { 0 });
        assert_eq!(proxy.metric("weir_virtual_server_authorisations_total", &["\"failed\""]), 3.0);
        eventually("the log tells why", STEP_TIMEOUT, || {
            let log = proxy.process().output();
            log.contains("the service answers 500") && log.contains("the service has not answered")
        });
    }
}

#[test]
fn a_service_that_is_silent_is_not_waited_for() {
    let (service, gate) = Member::gated("late");
    let member = Member::echo();
    let proxy = Proxy::start(&setup(&member, &service, ", timeout: 2s"));
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nCookie: ann\r\n\r\n");
    client.response().assert_status(503);
    gate.open();
    // The late response is dropped. It must not answer the next request on the same connection.
    for _ in 0..3 {
        let text = client.get("/").assert_status(200).text();
        assert!(text.starts_with("GET / HTTP/1.1"), "{text}");
    }
    assert_eq!(member.requests().len(), 3);
}

#[test]
fn a_client_that_leaves_takes_its_question_with_it() {
    let (service, gate) = Member::gated("late");
    let member = Member::echo();
    let proxy = Proxy::start(&setup(&member, &service, ""));
    let mut client = proxy.client();
    client.send("GET /gone HTTP/1.1\r\nHost: a\r\n\r\n");
    service.wait_for_requests(1);
    let active = || proxy.metric("weir_member_requests_active", &["service"]);
    assert_eq!(active(), 1.0);
    client.reset();
    eventually("the question is given up", STEP_TIMEOUT, || active() == 0.0);
    gate.open();
    get(&proxy, "/next", "").assert_status(200);
    let targets: Vec<String> = member.requests().iter().map(|it| it.target().to_owned()).collect();
    assert_eq!(targets, ["/next"]);
}

#[test]
fn bodies_wait_and_pipelined_requests_come_in_order() {
    let (member, service) = (Member::echo(), Member::new(judge));
    let proxy = Proxy::start(&setup(&member, &service, ""));
    let mut client = proxy.client();
    let long = "y".repeat(100_000);
    let mut all = String::new();
    for user in ["u0", "", "u2", "deny-chunked", "u4"] {
        let cookie = if user.is_empty() { String::new() } else { cookie(user) };
        all += &format!("GET /{user} HTTP/1.1\r\nHost: a\r\n{cookie}\r\n");
    }
    all += "POST /short HTTP/1.1\r\nHost: a\r\nCookie: u5\r\nContent-Length: 5\r\n\r\nhello";
    all += &format!(
        "POST /long HTTP/1.1\r\nHost: a\r\nCookie: u6\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{long}\r\n0\r\n\r\n",
        long.len()
    );
    client.send(all);
    for (status, user) in
        [(200, "u0"), (302, ""), (200, "u2"), (403, ""), (200, "u4"), (200, "u5"), (200, "u6")]
    {
        let text = client.response().assert_status(status).text();
        assert_eq!(text.contains(&format!("X-User: {user}\r\n")), status == 200, "{user}: {text}");
        if user == "u5" {
            assert!(text.ends_with("hello"), "{text}");
        }
        if user == "u6" {
            assert!(text.ends_with(&long), "all of it");
        }
    }
    assert_eq!(member.request_count(), 5);
    for asked in service.requests() {
        assert!(asked.body.is_empty() && asked.head.field("content-length").is_none(), "{asked:?}");
    }
}

#[test]
fn many_at_once_are_not_mixed_up() {
    const CLIENTS: usize = 16;
    const EACH: usize = 20;
    let (member, service) = (Member::echo(), Member::new(judge));
    let proxy = Arc::new(Proxy::start(&setup(&member, &service, "")));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let proxy = Arc::clone(&proxy);
            std::thread::spawn(move || {
                let mut client = proxy.client();
                for step in 0..EACH {
                    let user = format!("user-{number}-{step}");
                    let denied = step % 5 == 4;
                    let shown = if denied { "deny-chunked" } else { &user };
                    client.send(format!(
                        "GET /{user} HTTP/1.1\r\nHost: a\r\nCookie: {shown}\r\nX-User: root\r\n\r\n"
                    ));
                    let response = client.response();
                    if denied {
                        assert_eq!(response.assert_status(403).text(), "no!");
                        continue;
                    }
                    let text = response.assert_status(200).text();
                    assert!(text.starts_with(&format!("GET /{user} ")), "{text}");
                    let named = text.lines().filter(|line| line.starts_with("X-User: "));
                    assert_eq!(named.collect::<Vec<_>>(), [format!("X-User: {user}")]);
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().expect("a client that is served"));
    let total = (CLIENTS * EACH) as f64;
    assert_eq!(
        proxy.metric("weir_virtual_server_authorisations_total", &["\"allowed\""]),
        total * 0.8
    );
    assert_eq!(
        proxy.metric("weir_virtual_server_authorisations_total", &["\"denied\""]),
        total * 0.2
    );
}

#[test]
fn streams_of_http2_are_asked_about_one_by_one() {
    let (member, service) = (Member::echo(), Member::new(judge));
    let proxy = Proxy::start(&setup(&member, &service, "").http("http2: true"));
    let mut client = Peer::connect(proxy.address());
    let users = ["u0", "deny-chunked", "u2", "deny", "u4"];
    let streams: Vec<u32> = users
        .iter()
        .map(|user| {
            client.request(
                "POST",
                &format!("/{user}"),
                &[("cookie", user), ("x-user", "root")],
                false,
            )
        })
        .collect();
    for (stream, user) in streams.iter().zip(users) {
        client.body(*stream, format!("body of {user}").as_bytes(), true).expect("it is taken");
    }
    for (stream, user) in streams.iter().zip(users).rev() {
        let message = client.response(*stream);
        match user {
            "deny" => assert_eq!(
                message.assert_status(401).field("www-authenticate"),
                Some("Basic realm=\"a\"")
            ),
            "deny-chunked" => assert_eq!(message.assert_status(403).text(), "no!"),
            user => {
                let text = message.assert_status(200).text();
                assert!(text.contains(&format!("X-User: {user}\r\n")), "{text}");
                assert!(
                    text.ends_with(&format!("body of {user}")) && !text.contains("root"),
                    "{text}"
                );
            }
        }
    }
    assert_eq!(member.request_count(), 3);
}

#[test]
fn a_stream_that_is_reset_ends_its_question() {
    let (service, gate) = Member::gated("late");
    let member = Member::echo();
    let proxy = Proxy::start(&setup(&member, &service, "").http("http2: true"));
    let mut client = Peer::connect(proxy.address());
    let stream = client.request("GET", "/gone", &[], true);
    service.wait_for_requests(1);
    let active = || proxy.metric("weir_member_requests_active", &["service"]);
    assert_eq!(active(), 1.0);
    client.send(&Frame::reset(stream, code::CANCEL));
    eventually("the question is given up", STEP_TIMEOUT, || active() == 0.0);
    gate.open();
    client.get("/next").assert_status(200);
    assert_eq!(member.request_count(), 1);
}

#[test]
fn members_and_services_may_speak_http2() {
    let service = Http2Member::new(&[], |peer, _| {
        while let Some(stream) = peer.next_request() {
            let request = peer.response(stream);
            let user = request.field("cookie").unwrap_or_default();
            let lines: &[(&str, &str)] = match user {
                "deny" => &[(":status", "403"), ("content-type", "text/x")],
                user => &[(":status", "200"), ("x-user", user)],
            };
            peer.headers(stream, lines, false);
            peer.body(stream, b"no!", true)?;
        }
        Ok(())
    });
    let member = Http2Member::new(&[], |peer, _| {
        while let Some(stream) = peer.next_request() {
            let request = peer.response(stream);
            let text = format!("{:?}", request.head);
            peer.answer_with(stream, text.as_bytes())?;
        }
        Ok(())
    });
    let section =
        "authentication:\n  portal: { type: external, pool: service, add_headers: X-User }";
    let setup = Setup::new(&[member.address()])
        .pool("http2: true")
        .virtual_server("authenticate: portal")
        .also_pool(&format!("service: {{ http2: true, members: [ \"{}\" ] }}", service.address()))
        .top(section);
    let proxy = Proxy::start(&setup);
    for (user, status) in [("ann", 200), ("deny", 403), ("eve", 200)] {
        let response = get(&proxy, "/", &(cookie(user) + "X-User: root\r\n"));
        let text = response.assert_status(status).text();
        assert!(!text.contains("root"), "{text}");
        if status == 200 {
            let named = format!("(\"x-user\", \"{user}\")");
            assert!(text.contains(&named), "{text}");
        } else {
            assert_eq!(text, "no!");
        }
    }
}

#[test]
fn a_rule_asks_on_some_paths_alone() {
    let (member, service) = (Member::echo(), Member::new(judge));
    let section = r#"authentication:
  portal: { type: external, pool: service, path: "/check?a=b", request_headers: Cookie, answer_headers: [ X-Internal ] }
policies:
  test:
    strategy: all_match
    rules:
      - when: "request.path.startsWith('/admin/')"
        then: [ { authenticate: portal } ]
      - when: "request.path == '/admin/page'"
        then: [ { respond: { status: 200, body: "for ann" } } ]
      - then: [ { set_response_header: { X-Rule: "yes" } } ]"#;
    let setup = Setup::new(&[member.address()])
        .virtual_server("policies: [ test ]")
        .also_pool(&format!("service: {{ members: [ \"{}\" ] }}", service.address()))
        .top(section);
    let proxy = Proxy::start(&setup);
    get(&proxy, "/", "").assert_status(200);
    assert_eq!(service.request_count(), 0);
    // Responses of rules wait for the service, too.
    let denied = get(&proxy, "/admin/page", "Authorization: secret\r\n");
    assert_eq!(denied.assert_status(302).text(), "<p>in</p>");
    assert_eq!(denied.head.field("x-internal"), Some("secret"));
    assert_eq!(denied.head.field("location"), None);
    assert_eq!(denied.head.field("x-rule"), None, "what was decided is for whoever is let in");
    let page = get(&proxy, "/admin/page", &cookie("ann"));
    assert_eq!(page.assert_status(200).text(), "for ann");
    assert_eq!(page.head.field("x-rule"), Some("yes"));
    get(&proxy, "/admin/other", &cookie("ann")).assert_status(200);
    let asked = service.requests().remove(0);
    assert_eq!(asked.target(), "/check?a=b");
    assert_eq!(asked.head.field("authorization"), None);
    assert_eq!(member.request_count(), 2);
}

#[test]
fn requests_that_wait_survive_a_reload() {
    let (service, gate) = Member::gated("late");
    let member = Member::echo();
    let before = setup(&member, &service, "");
    let proxy = Proxy::start(&before);
    let mut client = proxy.client();
    client.send("GET /before HTTP/1.1\r\nHost: a\r\n\r\n");
    service.wait_for_requests(1);
    // The reload changes the index of the service's pool, and adds another pool.
    let other = Member::named("other");
    let after = setup(&other, &service, ", timeout: 40s")
        .also_pool(&format!("a-first: {{ members: [ \"{}\" ] }}", other.address()))
        .also_virtual_server("more: { listen: \"127.0.0.1:0\", pool: a-first }");
    proxy.reload_and_wait(&after);
    gate.open();
    let text = client.response().assert_status(200).text();
    assert!(text.starts_with("GET /before"), "as it was when it came: {text}");
    client.send("GET /after HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.response().assert_status(200).text(), "other");
    assert_eq!(service.request_count(), 2);
}

#[test]
fn what_the_firewall_blocks_no_service_sees() {
    let (member, service) = (Member::echo(), Member::new(judge));
    let folder = TempDir::new("authorisation-waf");
    let file = folder.path().join("own.conf");
    let rules = "SecRule REQUEST_URI \"@contains evil\" \"id:1,phase:1,deny,status:418\"\n\
                 SecRule ARGS_POST \"@contains evil\" \"id:2,phase:2,deny,status:418\"\n";
    std::fs::write(&file, rules).expect("a file");
    let waf = format!("waf: {{ mode: block, rules: [ {} ] }}", file.display());
    let proxy = Proxy::start(&setup(&member, &service, "").virtual_server(&waf));
    get(&proxy, "/evil", "").assert_status(418);
    assert_eq!(service.request_count(), 0);
    let post = |body: &str, user: &str| {
        let mut client = proxy.client();
        client.send(format!(
            "POST / HTTP/1.1\r\nHost: a\r\nCookie: {user}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ));
        client.response()
    };
    let text = post("a=good", "ann").assert_status(200).text();
    assert!(text.ends_with("a=good") && text.contains("X-User: ann\r\n"), "{text}");
    post("a=evil", "deny-chunked").assert_status(403);
    post("a=evil", "ann").assert_status(418);
    assert_eq!((service.request_count(), member.request_count()), (3, 1));
}

#[test]
fn a_service_is_tried_again_and_waited_for_in_line() {
    let broken = Member::new(|_| Ok(Then::Reset));
    let (service, member) = (Member::new(judge), Member::echo());
    let section =
        "authentication:\n  portal: { type: external, pool: service, add_headers: X-User }";
    let setup = Setup::new(&[member.address()])
        .virtual_server("authenticate: portal")
        .also_pool(&format!(
            "service: {{ members: [ \"{}\", {{ address: \"{}\", connections_max: 1 }} ], queue: {{ length_max: 100, timeout: 60s }} }}",
            broken.address(),
            service.address()
        ))
        .top(section);
    let proxy = Arc::new(Proxy::start(&setup));
    let clients: Vec<_> = (0..8)
        .map(|number| {
            let proxy = Arc::clone(&proxy);
            std::thread::spawn(move || {
                let user = format!("u{number}");
                let text = get(&proxy, "/", &cookie(&user)).assert_status(200).text();
                assert!(text.contains(&format!("X-User: {user}\r\n")), "{text}");
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().expect("a client that is served"));
    assert_eq!((service.request_count(), member.request_count()), (8, 8));
}

#[test]
fn a_request_at_its_member_is_not_sent_again_when_the_time_of_its_service_is_over() {
    // Longer than the timeout of the service, which has already answered.
    const SLOW: std::time::Duration = std::time::Duration::from_secs(3);
    let seen = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let member = || {
        let seen = Arc::clone(&seen);
        Member::new(move |exchange| {
            if seen.fetch_add(1, Ordering::SeqCst) == 0 {
                exchange.send("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")?;
            } else {
                std::thread::sleep(SLOW);
                exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhere")?;
            }
            Ok(Then::KeepAlive)
        })
    };
    let (one, other, service) = (member(), member(), Member::new(judge));
    let section = "authentication:\n  portal: { type: external, pool: service, timeout: 2s }";
    let setup = Setup::new(&[one.address(), other.address()])
        .virtual_server("authenticate: portal")
        .pool("retries: 3")
        .pool("retry_on: [ 503 ]")
        .also_pool(&format!("service: {{ members: [ \"{}\" ] }}", service.address()))
        .top(section);
    let proxy = Proxy::start(&setup);
    let response = get(&proxy, "/", &cookie("ann"));
    assert_eq!(response.assert_status(200).text(), "here");
    assert_eq!(seen.load(Ordering::SeqCst), 2, "requests of members");
    assert_eq!(service.request_count(), 1);
}

/// A member believes the fields of the service, on every path and whichever virtual server the request comes by. So a
/// client's own never reach it, also where no rule asks the service.
#[test]
fn fields_of_the_service_never_come_from_clients() {
    let (member, service) = (Member::echo(), Member::new(judge));
    let beside = weir_tests::ports::Lease::new();
    let section = "authentication:\n  portal: { type: external, pool: service, path: /verify, add_headers: [ X-User, X-Groups ] }\n\
        policies:\n  some: { strategy: all_match, rules: [ { when: \"request.path.startsWith('/private')\", then: [ { authenticate: portal } ] }, \
        { when: \"request.path == '/set'\", then: [ { set_header: { X-Groups: guests } } ] } ] }";
    let setup = Setup::new(&[member.address()])
        .http("http2: true")
        .virtual_server("policies: [ some ]")
        .also_pool(&format!("service: {{ members: [ \"{}\" ] }}", service.address()))
        .also_virtual_server(&format!(
            "beside: {{ listen: \"{}\", pool: members }}",
            beside.address()
        ))
        .top(section);
    let proxy = Proxy::start(&setup);
    let claims = "X-User: admin\r\nx_user: admin\r\nX-Groups: wheel\r\nCookie: ann\r\n";
    let text = get(&proxy, "/private", claims).assert_status(200).text();
    assert!(text.contains("X-User: ann") && !text.contains("admin"), "{text}");
    for path in ["/public", "/set"] {
        let text = get(&proxy, path, claims).assert_status(200).text();
        assert!(!text.contains("admin") && !text.contains("wheel"), "{path}: {text}");
        assert_eq!(text.contains("X-Groups: guests"), path == "/set", "{text}");
        let mut peer = Peer::connect(proxy.address());
        let stream = peer.request("GET", path, &[("x-user", "admin"), ("x-groups", "wheel")], true);
        let text = peer.response(stream).assert_status(200).text();
        assert!(!text.contains("admin") && !text.contains("wheel"), "{path}: {text}");
    }
    let mut client = weir_tests::client::Client::connect(beside.address());
    client.send(format!("GET /private HTTP/1.1\r\nHost: a\r\n{claims}\r\n"));
    let text = client.response().assert_status(200).text();
    assert!(!text.contains("admin") && !text.contains("wheel"), "{text}");
}

/// A virtual server that hands requests over may set such fields, as any rule may: only those of clients are withheld.
#[test]
fn fields_that_a_rule_has_set_stay_when_the_request_is_handed_over() {
    let (member, service) = (Member::echo(), Member::new(judge));
    let section = "authentication:\n  portal: { type: external, pool: service, path: /verify, add_headers: [ X-User, X-Groups ] }\n\
        policies:\n  hands_over: { strategy: all_match, rules: [ { then: [ { set_header: { X-User: partner } }, { virtual_server: app } ] } ] }\n  \
        asks: { strategy: all_match, rules: [ { when: \"request.path.startsWith('/private')\", then: [ { authenticate: portal } ] } ] }";
    let setup = Setup::new(&[member.address()])
        .virtual_server("policies: [ hands_over ]")
        .also_pool(&format!("service: {{ members: [ \"{}\" ] }}", service.address()))
        .also_virtual_server("app: { pool: members, policies: [ asks ] }")
        .top(section);
    let proxy = Proxy::start(&setup);
    let claims = "X-User: admin\r\nx_user: admin\r\nX-Groups: wheel\r\nCookie: ann\r\n";
    let text = get(&proxy, "/public", claims).assert_status(200).text();
    assert!(text.contains("X-User: partner"), "{text}");
    assert!(!text.contains("admin") && !text.contains("wheel"), "{text}");
    let text = get(&proxy, "/private", claims).assert_status(200).text();
    assert!(text.contains("X-User: ann"), "{text}");
    assert!(!text.contains("admin") && !text.contains("partner"), "{text}");
}

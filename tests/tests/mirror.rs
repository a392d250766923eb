//! Copies of requests for another pool, from the view of clients, members and that pool.

use weir_tests::http2::{Http2Member, Peer};
use weir_tests::member::{Member, Request, Then};
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::{STEP_TIMEOUT, eventually};

fn setup(member: &Member, copies: &str, share: &str, more: &str) -> Setup {
    copying(Setup::new(&[member.address()]), copies, share, more)
}

/// Requests for `/copied` go to the members, and their copies to the pool `copies`.
fn copying(setup: Setup, copies: &str, share: &str, more: &str) -> Setup {
    let section = format!(
        "policies:\n  test:\n    strategy: all_match\n    rules:\n      - when: \"request.path.startsWith('/copied')\"\n        then: [ {{ mirror: {{ pool: copies, share: {share} }} }}{more} ]"
    );
    setup
        .access_log()
        .virtual_server("policies: [ test ]")
        // Copies wait at a gate, and hundreds of connections are accepted slowly on a busy machine.
        .also_pool(&format!(
            "copies: {{ members: [ \"{copies}\" ], connect_timeout: 1h, response_timeout: 1h }}"
        ))
        .top(&section)
}

fn copied(proxy: &Proxy, result: &str) -> f64 {
    proxy.metric("weir_virtual_server_mirrored_requests_total", &[&format!("\"{result}\"")])
}

fn wait_for(proxy: &Proxy, result: &str, count: f64) {
    eventually("copies have come to their ends", STEP_TIMEOUT, || copied(proxy, result) == count);
}

fn fields(request: &Request, name: &str) -> Vec<String> {
    let fields = request.head.fields.iter().filter(|(it, _)| it.eq_ignore_ascii_case(name));
    fields.map(|(_, value)| value.clone()).collect()
}

#[test]
fn another_pool_gets_what_the_member_gets() {
    let (member, copies) = (Member::echo(), Member::named("thrown away"));
    let more = ", { set_header: { X-Rule: \"yes\" } }, { rewrite_path: \"/new\" }";
    let mut proxy = Proxy::start(&setup(&member, &copies.address().to_string(), "100%", more));
    let mut client = proxy.client();
    client.send("GET /copied?a=b HTTP/1.1\r\nHost: a.example\r\nCookie: c\r\nX-Mirrored: 0\r\nX-Rule: no\r\n\r\n");
    let text = client.response().assert_status(200).text();
    assert!(text.starts_with("GET /new?a=b HTTP/1.1") && text.contains("X-Rule: yes"), "{text}");
    for (head, body) in [
        ("Content-Length: 5", "hello"),
        ("Transfer-Encoding: chunked", "5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n"),
        ("Content-Length: 0", ""),
    ] {
        client.send(format!("POST /copied HTTP/1.1\r\nHost: a\r\n{head}\r\n\r\n{body}"));
        client.response().assert_status(200);
    }
    client.get("/other").assert_status(200);
    // What a client says of its request neither prevents the copy nor reaches the member.
    client.send("GET /copied HTTP/1.1\r\nHost: a\r\nX-Mirrored: 1\r\n\r\n");
    client.response().assert_status(200);
    wait_for(&proxy, "answered", 5.0);
    let mut seen = copies.requests();
    seen.sort_by_key(|it| it.body.len());
    let bodies: Vec<_> = seen.iter().map(|it| String::from_utf8_lossy(&it.body)).collect();
    assert_eq!(bodies, ["", "", "", "hello", "hello!"]);
    let is_first = |it: &&Request| it.target().ends_with("b") && it.method() == "GET";
    let get = seen.iter().find(is_first).expect("it is copied");
    assert_eq!(get.target(), "/new?a=b");
    for (name, expected) in
        [("host", "a.example"), ("cookie", "c"), ("x-mirrored", "1"), ("x-rule", "yes")]
    {
        assert_eq!(fields(get, name), [expected], "{name}");
    }
    assert_eq!(member.request_count(), 6);
    for request in member.requests() {
        assert_eq!(fields(&request, "x-mirrored"), [""; 0], "that one is no copy");
        assert_eq!(fields(&request, "x-mirrored-by"), [""; 0]);
    }
    assert_eq!(proxy.metric("weir_virtual_server_requests_total", &[]), 6.0);
    eventually("the log has the requests of clients", STEP_TIMEOUT, || {
        proxy.process().output().matches("\"termination\"").count() == 6
    });
}

#[test]
fn nobody_waits_for_copies() {
    let (copies, gate) = Member::gated("late");
    let member = Member::echo();
    let proxy = Proxy::start(&setup(&member, &copies.address().to_string(), "100%", ""));
    let mut client = proxy.client();
    for number in 0..20 {
        let text = client.get(&format!("/copied/{number}")).assert_status(200).text();
        assert!(text.starts_with(&format!("GET /copied/{number} ")), "{text}");
    }
    assert_eq!(copied(&proxy, "answered"), 0.0);
    gate.open();
    wait_for(&proxy, "answered", 20.0);
    assert_eq!(copies.request_count(), 20);
}

#[test]
fn only_so_many_are_under_way() {
    let (copies, gate) = Member::gated("late");
    let member = Member::named("here");
    let setup = setup(&member, &copies.address().to_string(), "100%", "");
    let proxy = Proxy::start(&setup.top("data_plane: { workers: 1 }"));
    let mut client = proxy.client();
    for _ in 0..300 {
        assert_eq!(client.get("/copied").assert_status(200).text(), "here");
    }
    assert_eq!(copied(&proxy, "dropped"), 300.0 - 256.0);
    gate.open();
    wait_for(&proxy, "answered", 256.0);
    // The queue has room again.
    client.get("/copied").assert_status(200);
    wait_for(&proxy, "answered", 257.0);
}

#[test]
fn what_fails_is_counted_and_no_client_learns_of_it() {
    let broken = Member::new(|_| Ok(Then::Reset));
    let member = Member::named("here");
    let nobody = Member::named("gone").address().to_string();
    for copies in [broken.address().to_string(), nobody] {
        let proxy = Proxy::start(&setup(&member, &copies, "100%", ""));
        let mut client = proxy.client();
        for _ in 0..3 {
            assert_eq!(client.get("/copied").assert_status(200).text(), "here");
        }
        wait_for(&proxy, "failed", 3.0);
        assert_eq!(copied(&proxy, "answered"), 0.0);
    }
}

#[test]
fn long_bodies_and_tunnels_have_no_copy() {
    let (member, copies) = (Member::echo(), Member::named("thrown away"));
    let proxy = Proxy::start(&setup(&member, &copies.address().to_string(), "100%", ""));
    let mut client = proxy.client();
    let long = "x".repeat(50_000);
    let text = client.post("/copied", long.as_bytes()).assert_status(200).text();
    assert!(text.ends_with(&long), "all of it");
    wait_for(&proxy, "dropped", 1.0);
    client.send("GET /copied HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x/1\r\n\r\n");
    client.response().assert_status(200);
    client.get("/copied").assert_status(200);
    wait_for(&proxy, "answered", 1.0);
    assert_eq!(copies.request_count(), 1);
}

/// Its body was held until it was judged, and not sent to a member yet when the request joined the queue.
#[test]
fn what_was_judged_and_waited_in_a_queue_has_a_copy() {
    let (member, gate) = Member::gated("here");
    let copies = Member::named("thrown away");
    let address = copies.address().to_string();
    let limited = format!("{{ address: {}, connections_max: 1 }}", member.address());
    let setup = Setup::new(&[]).member(&limited).pool("queue: { timeout: 60s }");
    let setup = copying(setup, &address, "100%", "").virtual_server("waf: { mode: block }");
    let proxy = Proxy::start(&setup);
    let (mut first, mut second) = (proxy.client(), proxy.client());
    first.send("GET /other HTTP/1.1\r\nHost: a\r\n\r\n");
    member.wait_for_requests(1);
    second.send("POST /copied HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 5\r\n\r\na=b&c");
    eventually("it waits", STEP_TIMEOUT, || {
        proxy.metric("weir_pool_queue_requests", &["\"members\""]) == 1.0
    });
    gate.open();
    first.response().assert_status(200);
    second.response().assert_status(200);
    wait_for(&proxy, "answered", 1.0);
    assert_eq!(copied(&proxy, "dropped"), 0.0);
    let bodies: Vec<_> = copies.requests().iter().map(|it| it.body.clone()).collect();
    assert_eq!(bodies, [b"a=b&c"]);
}

#[test]
fn a_share_is_copied() {
    let (member, copies) = (Member::named("here"), Member::named("thrown away"));
    let proxy = Proxy::start(&setup(&member, &copies.address().to_string(), "20%", ""));
    let mut client = proxy.client();
    const REQUESTS: u32 = 1_000;
    for _ in 0..REQUESTS {
        client.get("/copied").assert_status(200);
    }
    let count = || f64::from(copies.request_count() as u32);
    eventually("all copies are answered", STEP_TIMEOUT, || copied(&proxy, "answered") == count());
    // Within ten standard deviations.
    assert!((74.0..326.0).contains(&count()), "{}", count());
}

#[test]
fn both_versions_are_copied_to_both() {
    let member = Http2Member::telling(&[]);
    let copies = Member::named("thrown away");
    let copies2 = Http2Member::telling(&[]);
    let text = Member::echo();
    let section = "policies:\n  test:\n    strategy: all_match\n    rules:\n      - then: [ { mirror: { pool: copies } }, { mirror: { pool: copies2 } } ]";
    for (member, http2) in [(member.address(), true), (text.address(), false)] {
        let setup = Setup::new(&[member])
            .http("http2: true")
            .pool(&format!("http2: {http2}"))
            .virtual_server("policies: [ test ]")
            .also_pool(&format!("copies: {{ members: [ \"{}\" ] }}", copies.address()))
            .also_pool(&format!(
                "copies2: {{ http2: true, members: [ \"{}\" ] }}",
                copies2.address()
            ))
            .top(section);
        let proxy = Proxy::start(&setup);
        let mut client = Peer::connect(proxy.address());
        let before = copies.request_count();
        client.get("/one").assert_status(200);
        client.post("/two", b"tagged body").assert_status(200);
        wait_for(&proxy, "answered", 4.0);
        let mut seen = copies.requests();
        seen.drain(..before);
        seen.sort_by_key(|it| it.target().to_owned());
        let told: Vec<_> = seen
            .iter()
            .map(|it| {
                format!("{} {} {}", it.method(), it.target(), String::from_utf8_lossy(&it.body))
            })
            .collect();
        assert_eq!(told, ["GET /one ", "POST /two tagged body"]);
        assert!(seen.iter().all(|it| fields(it, "x-mirrored") == ["1"]), "{seen:?}");
        assert!(seen.iter().all(|it| fields(it, "host") == ["test"]), "{seen:?}");
    }
}

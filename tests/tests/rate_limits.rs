//! Limits on requests and connections, in total and by client.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use weir_tests::client::Client;
use weir_tests::member::Member;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::{STEP_TIMEOUT, eventually};

/// Sends requests from these clients in turn, each as soon as the previous one is answered, for this time. Returns the
/// numbers of responses with 200 and with 429.
fn ask(clients: &mut [Client], fields: &str, time: Duration) -> (u32, u32) {
    let (mut passed, mut refused) = (0, 0);
    let begun = Instant::now();
    while begun.elapsed() < time {
        for client in clients.iter_mut() {
            client.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
            let response = client.response();
            match response.status {
                200 => passed += 1,
                429 => {
                    refused += 1;
                    assert_eq!(response.head.field("retry-after"), Some("1"));
                }
                other => panic!("status {other}"),
            }
        }
    }
    (passed, refused)
}

/// All workers together keep the rate of a virtual server to within 5% over a second or longer.
#[test]
fn a_rate_is_exact_over_two_workers() {
    let member = Member::named("one");
    let proxy = Proxy::start(
        &Setup::new(&[member.address()])
            // The burst makes up for pauses of a busy machine.
            .virtual_server("limits: { requests_per_second: 200, burst: 40 }")
            .top("data_plane: { workers: 2 }"),
    );
    let mut clients = proxy.clients_of_each_worker(8);
    // A busy machine may need several attempts to reach the limit.
    for _ in 0..20 {
        let before = member.request_count() as u32;
        let begun = Instant::now();
        let (passed, refused) = ask(&mut clients, "", Duration::from_secs(3));
        let allowed = 200.0 * begun.elapsed().as_secs_f64();
        let reached = member.request_count() as u32 - before;
        assert_eq!(reached, passed, "nothing beyond the limit reached the member");
        assert!(
            f64::from(passed) <= 1.05 * allowed + 40.0,
            "{passed} of {allowed}, and 40 at once"
        );
        // A machine that pauses for longer than the burst loses some.
        if refused > passed && f64::from(passed) >= 0.95 * allowed {
            return;
        }
    }
    panic!("the load was never above the limit, or the rate never reached");
}

#[test]
fn a_burst_passes_and_then_the_rate() {
    let member = Member::named("one");
    let proxy = Proxy::start(
        &Setup::new(&[member.address()])
            .virtual_server("limits: { requests_per_second: 10/m, burst: 20 }"),
    );
    let mut client = proxy.client();
    let statuses: Vec<u16> = (0..30).map(|_| client.get("/").status).collect();
    assert_eq!(&statuses[..20], [200; 20]);
    assert!(statuses[20..].iter().filter(|status| **status == 429).count() >= 8, "{statuses:?}");
}

#[test]
fn each_client_has_its_own_limit() {
    let member = Member::named("one");
    let proxy = Proxy::start(&Setup::new(&[member.address()]).virtual_server(
        "limits: { per_key: [ { requests_per_second: 5/m, burst: 5, prefix_v4: 32 } ] }",
    ));
    for host in 1..5 {
        let mut client = Client::connect_from(proxy.address(), [127, 0, 9, host].into());
        let passed = (0..10).filter(|_| client.get("/").status == 200).count();
        assert!((5..=6).contains(&passed), "client {host}: {passed}");
    }
}

/// Five requests at once, and then one in twelve seconds.
#[test]
fn a_limit_may_be_of_less_than_one_in_a_second() {
    let member = Member::named("one");
    let proxy = Proxy::start(
        &Setup::new(&[member.address()])
            .virtual_server("limits: { per_key: [ { requests_per_second: 5/m } ] }"),
    );
    let mut client = proxy.client();
    let responses: Vec<_> = (0..8).map(|_| client.get("/")).collect();
    let statuses: Vec<u16> = responses.iter().map(|response| response.status).collect();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 429, 429, 429]);
    let wait = responses[7].head.field("Retry-After").expect("when to come again");
    assert!((10..=12).contains(&wait.parse::<u64>().expect("seconds")), "{wait}");
}

#[test]
fn any_text_of_the_request_can_be_the_key() {
    let member = Member::named("one");
    let proxy = Proxy::start(&Setup::new(&[member.address()]).virtual_server(
        "limits: { per_key: [ { key: \"${request.headers['x-api-key']}\", requests_per_second: 2/m, burst: 2 } ] }",
    ));
    let mut client = proxy.client();
    let mut passed = |fields: &str| {
        (0..6)
            .filter(|_| {
                client.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
                client.response().status == 200
            })
            .count()
    };
    assert!((2..=3).contains(&passed("X-Api-Key: a\r\n")));
    assert!((2..=3).contains(&passed("X-Api-Key: b\r\n")));
    assert_eq!(passed(""), 6, "an empty key is not limited");
}

#[test]
fn requests_beyond_a_limit_wait_or_lose_their_connection_if_that_is_wanted() {
    let member = Member::named("one");
    let limit = |exceed: &str| {
        Setup::new(&[member.address()]).virtual_server(&format!(
            "limits: {{ per_key: [ {{ requests_per_second: 10, burst: 1, exceed: {exceed} }} ] }}"
        ))
    };
    let proxy = Proxy::start(&limit("delay, delay_max: 5s"));
    let mut client = proxy.client();
    let begun = Instant::now();
    for _ in 0..6 {
        client.get("/").assert_status(200);
    }
    assert!(begun.elapsed() >= Duration::from_millis(450), "{:?}", begun.elapsed());
    let proxy = Proxy::start(&limit("close"));
    let mut client = proxy.client();
    client.get("/").assert_status(200);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(client.reader().rest().is_empty());
}

#[test]
fn a_rule_limits_what_it_holds_for() {
    let member = Member::named("one");
    let proxy =
        Proxy::start(&Setup::new(&[member.address()]).virtual_server("policies: [ login ]").top(
            "policies:\n  login: { rules: [ { when: 'request.path == \"/login\"', then: \
             [ { rate_limit: { requests_per_second: 3, burst: 3 } } ] } ] }",
        ));
    let mut client = proxy.client();
    let begun = Instant::now();
    let passed = (0..8).filter(|_| client.get("/login").status == 200).count();
    // The burst, and the requests of the time that has passed.
    let most = 3 + (3.0 * begun.elapsed().as_secs_f64()) as usize + 1;
    assert!((3..=most).contains(&passed), "{passed}");
    assert!((0..8).all(|_| client.get("/").status == 200));
}

#[test]
fn new_connections_are_limited_too() {
    let member = Member::named("one");
    let proxy = Proxy::start(
        &Setup::new(&[member.address()]).virtual_server("limits: { connections_per_second: 5 }"),
    );
    let begun = Instant::now();
    let answered = (0..20)
        .filter(|_| {
            // The connections are spread over a second. If all were opened at once, only the one allowed by the burst would
            // be accepted.
            std::thread::sleep(Duration::from_millis(50));
            let mut client = proxy.client();
            let sent = client.try_send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            sent.is_ok() && !client.reader().rest().is_empty()
        })
        .count();
    let most = 1 + (5.0 * begun.elapsed().as_secs_f64()) as usize + 1;
    assert!((3..=most).contains(&answered), "{answered} of 20, {most} allowed");
}

#[test]
fn requests_at_a_time_are_limited_over_two_workers() {
    let (member, gate) = Member::gated("done");
    let proxy = Proxy::start(
        &Setup::new(&[member.address()])
            .virtual_server("limits: { requests: 3 }")
            .top("data_plane: { workers: 2 }"),
    );
    let mut outside = proxy.clients_of_each_worker(4);
    let mut inside: Vec<Client> = outside.drain(..3).collect();
    for client in &mut inside {
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    member.wait_for_requests(3);
    for client in &mut outside {
        let refused = client.get("/");
        assert_eq!((refused.status, refused.head.field("retry-after")), (429, Some("1")));
    }
    gate.open();
    for client in &mut inside {
        client.response().assert_status(200);
    }
    // A worker gives a place back after it has sent the response: a client of another worker can come in between.
    let is_served = || proxy.client().get("/").status == 200;
    for _ in 0..8 {
        eventually("the places are free again", STEP_TIMEOUT, is_served);
    }
}

#[test]
fn requests_at_a_time_are_limited_per_key_and_over_a_reload() {
    let (member, gate) = Member::gated("done");
    let setup = |max: u32| {
        Setup::new(&[member.address()]).virtual_server(&format!(
            "limits: {{ per_key: [ {{ key: \"${{request.headers['x-user']}}\", requests: {max} }} ] }}"
        ))
    };
    let proxy = Proxy::start(&setup(1));
    let ask = |user: &str| {
        let mut client = proxy.client();
        client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nX-User: {user}\r\n\r\n"));
        client
    };
    let mut anna = ask("anna");
    member.wait_for_requests(1);
    ask("anna").response().assert_status(429);
    let mut ben = ask("ben");
    member.wait_for_requests(2);
    // After the reload with another maximum, requests in flight still count.
    proxy.reload_and_wait(&setup(2));
    let mut second = ask("anna");
    member.wait_for_requests(3);
    ask("anna").response().assert_status(429);
    gate.open();
    for client in [&mut anna, &mut ben, &mut second] {
        client.response().assert_status(200);
    }
    eventually("the places are free again", STEP_TIMEOUT, || ask("anna").response().status == 200);
}

#[test]
fn connections_are_limited_per_address() {
    let member = Member::named("one");
    let proxy = Proxy::start(
        &Setup::new(&[member.address()])
            .virtual_server("limits: { per_key: [ { connections: 2 } ] }")
            .top("data_plane: { workers: 2 }"),
    );
    let from = |host: u8| Client::connect_from(proxy.address(), [127, 0, 9, host].into());
    let is_served = |client: &mut Client| {
        let sent = client.try_send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        sent.is_ok() && client.try_response(false).is_ok_and(|response| response.status == 200)
    };
    let (mut first, mut second) = (from(1), from(1));
    assert!(is_served(&mut first) && is_served(&mut second));
    for attempt in 0..64 {
        assert!(!is_served(&mut from(1)));
        if attempt > 4 && proxy.has_used_all_workers() {
            break;
        }
    }
    assert!(proxy.has_used_all_workers());
    assert!(is_served(&mut from(2)), "another address has places of its own");
    drop(first);
    eventually("a place is free again", STEP_TIMEOUT, || is_served(&mut from(1)));
    assert!(is_served(&mut second));
}

#[test]
fn new_connections_are_limited_per_address() {
    let member = Member::named("one");
    let proxy = Proxy::start(
        &Setup::new(&[member.address()])
            .virtual_server("limits: { per_key: [ { connections_per_second: 1 } ] }"),
    );
    let served = |host: u8| {
        (0..10)
            .filter(|_| {
                let mut client = Client::connect_from(proxy.address(), [127, 0, 9, host].into());
                let sent = client.try_send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
                sent.is_ok() && client.try_response(false).is_ok()
            })
            .count()
    };
    let begun = Instant::now();
    let served = [served(1), served(2)];
    let most = 2 + begun.elapsed().as_secs() as usize;
    assert!(served.iter().all(|served| (1..=most).contains(served)), "{served:?} of 10");
}

#[test]
fn what_rules_answer_waits_for_its_time_and_429_has_its_page() {
    let member = Member::echo();
    let limit = |rest: &str| {
        let limits =
            format!("limits: {{ per_key: [ {{ burst: 1, requests_per_second: {rest} }} ] }}");
        Setup::new(&[member.address()])
            .virtual_server(&limits)
            .virtual_server("policies: [ p ]")
            .virtual_server("error_pages: { 429: { body: \"slowly\" } }")
            .top("policies:\n  p: { rules: [ { then: [ { respond: { status: 200, body: own } } ] } ] }")
    };
    let waiting = Proxy::start(&limit("10, exceed: delay, delay_max: 5s"));
    let begun = Instant::now();
    let mut client = waiting.client();
    for _ in 0..5 {
        assert_eq!(client.get("/").assert_status(200).text(), "own");
    }
    // The first request passes at once, and the others at intervals of 100 ms.
    assert!(begun.elapsed() >= Duration::from_millis(380), "{:?}", begun.elapsed());
    let refusing = Proxy::start(&limit("1"));
    let mut answers = (0..100).map(|_| refusing.client().get("/"));
    let refused = answers.find(|answer| answer.status == 429).expect("one too many");
    assert_eq!((refused.text().as_str(), refused.head.field("retry-after")), ("slowly", Some("1")));
}

/// A member receives a delayed request only once, even if the first connection to a member fails.
#[test]
fn a_request_that_waited_is_sent_once() {
    let leaving = TcpListener::bind(("127.0.0.1", 0)).expect("a listener");
    let dead = leaving.local_addr().expect("its address");
    // This member accepts connections and closes them before it receives a request.
    std::thread::spawn(move || leaving.incoming().for_each(drop));
    let member = Member::echo();
    let setup = Setup::new(&[dead, member.address()])
        .virtual_server(
            "limits: { per_key: [ { requests_per_second: 5, burst: 1, exceed: delay, delay_max: 5s } ] }",
        )
        .pool("retries: 4");
    let proxy = Proxy::start(&setup);
    let mut client = proxy.client();
    for number in 0..6 {
        client.send(format!("PUT /{number} HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n"));
        // The body arrives after the delay, when weir has already selected a member.
        std::thread::sleep(Duration::from_millis(400));
        client.send("0123456789");
        let response = client.response();
        assert!(response.assert_status(200).text().ends_with("\r\n\r\n0123456789"), "{number}");
    }
    let seen: Vec<String> =
        member.requests().iter().map(|request| request.target().to_owned()).collect();
    assert_eq!(seen, ["/0", "/1", "/2", "/3", "/4", "/5"]);
}

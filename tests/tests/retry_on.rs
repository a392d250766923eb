//! Retries at another member because of the status of a response (`retry_on`).

use std::net::SocketAddr;

use weir_tests::client::Client;
use weir_tests::http2::Peer;
use weir_tests::member::{Member, Then};
use weir_tests::proxy::{Proxy, Setup};

/// A member that responds with this status and the body of the request. For `/hints`, an interim response comes first.
fn answering(status: u16) -> Member {
    Member::new(move |exchange| {
        let body = exchange.request.body.clone();
        if exchange.request.target() == "/hints" {
            exchange.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")?;
        }
        let head = format!("HTTP/1.1 {status} X\r\nX-Status: {status}\r\n");
        let head = format!("{head}Content-Length: {}\r\n\r\nbody", body.len() + 4);
        exchange.send([head.as_bytes(), &body].concat())?;
        Ok(Then::KeepAlive)
    })
}

fn start(members: &[SocketAddr], lines: &[&str]) -> Proxy {
    let mut setup = Setup::new(members).http("http2: true").access_log();
    for line in lines {
        setup = setup.pool(line);
    }
    Proxy::start(&setup)
}

/// The numbers of responses with status 200 and with other statuses.
fn statuses(client: &mut Client, request: &str, count: usize) -> (usize, usize) {
    let mut good = 0;
    for _ in 0..count {
        client.send(request);
        good += usize::from(client.response().status == 200);
    }
    (good, count - good)
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
}

fn with_body(method: &str, body: &str) -> String {
    format!("{method} / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn another_member_answers_in_the_place_of_one_that_fails_by_its_status() {
    let (bad, busy, good) = (answering(503), answering(429), answering(200));
    let addresses = [bad.address(), busy.address(), good.address()];
    let mut proxy = start(&addresses, &["retries: 2", "retry_on: [ 503, 429 ]"]);
    let mut client = proxy.client();
    assert_eq!(statuses(&mut client, &get("/"), 30), (30, 0));
    assert_eq!(statuses(&mut client, &with_body("PUT", "some"), 6), (6, 0));
    assert!(good.requests().iter().rev().take(6).all(|it| it.body == b"some"));
    let (failed, tried) = (bad.request_count() + busy.request_count(), good.request_count());
    assert_eq!(tried, 36);
    assert!(failed >= 24, "{failed}");
    assert_eq!(proxy.metric("weir_pool_retries_total", &[]), failed as f64);
    let counted = |class: &str| proxy.metric("weir_member_responses_total", &[class]);
    assert_eq!(counted("\"5xx\"") + counted("\"4xx\""), failed as f64);
    assert_eq!(proxy.metric("weir_virtual_server_responses_total", &["\"2xx\""]), 36.0);
    // The connections with failed responses are reused.
    let connections = |member: &Member| member.requests().iter().map(|it| it.connection).max();
    assert_eq!((connections(&bad), connections(&busy)), (Some(0), Some(0)));
    weir_tests::eventually("the log tells it", weir_tests::STEP_TIMEOUT, || {
        proxy.process().output().contains("\"retries\":2")
    });
    // No retry for a status that is not listed.
    let other = answering(500);
    let proxy = start(&[other.address(), good.address()], &["retry_on: [ 502, 503 ]"]);
    assert_eq!(statuses(&mut proxy.client(), &get("/"), 10), (5, 5));
}

#[test]
fn members_and_clients_of_http2() {
    let (bad, good) = (answering(503), answering(200));
    let inner =
        [&bad, &good].map(|it| Proxy::start(&Setup::new(&[it.address()]).http("http2: true")));
    let addresses = inner.each_ref().map(Proxy::address);
    let proxy = start(&addresses, &["http2: true", "retry_on: [ 503 ]"]);
    let mut peer = Peer::connect(proxy.address());
    for _ in 0..10 {
        assert_eq!(peer.get("/").assert_status(200).text(), "body");
        let put = peer.request("PUT", "/", &[], false);
        peer.data(put, b" of a", false).data(put, b" client", true);
        assert_eq!(peer.response(put).assert_status(200).text(), "body of a client");
    }
    assert_eq!(statuses(&mut proxy.client(), &get("/"), 10), (10, 0));
    assert!(bad.request_count() >= 10);
}

/// The client gets the member's response if there is no other member to retry at.
#[test]
fn the_response_goes_out_if_there_is_nobody_else() {
    let (one, other) = (answering(503), answering(503));
    let proxy = start(&[one.address(), other.address()], &["retries: 5", "retry_on: [ 503 ]"]);
    let response = proxy.client().get("/");
    assert_eq!(response.assert_status(503).text(), "body");
    assert_eq!((one.request_count(), other.request_count()), (1, 1));
    // The budget of 10 retries counts only real retries, not the unsuccessful search for a third member.
    let budget = "retry_budget: { share: 1%, per_second_min: 1 }";
    let (one, other) = (answering(503), answering(503));
    let lines = ["retries: 5", "retry_on: [ 503 ]", budget];
    let proxy = start(&[one.address(), other.address()], &lines);
    assert_eq!(statuses(&mut proxy.client(), &get("/"), 10), (0, 10));
    assert_eq!((one.request_count(), other.request_count()), (10, 10));
    // No retry when the budget is used up.
    let good = answering(200);
    let budget = "retry_budget: { share: 1%, per_second_min: 0 }";
    let proxy = start(&[one.address(), good.address()], &["retry_on: [ 503 ]", budget]);
    assert_eq!(statuses(&mut proxy.client(), &get("/"), 10), (5, 5));
}

#[test]
fn what_must_not_be_repeated_is_not() {
    let (bad, good) = (answering(503), answering(200));
    let addresses = [bad.address(), good.address()];
    let proxy = start(&addresses, &["retry_on: [ 503 ]"]);
    let mut client = proxy.client();
    // No retry if the request may have had an effect, if its body is larger than the stored part, or if the client has
    // received interim responses.
    assert_eq!(statuses(&mut client, &with_body("POST", "some"), 10), (5, 5));
    assert_eq!(statuses(&mut client, &with_body("PUT", &"x".repeat(100_000)), 10), (5, 5));
    assert_eq!(statuses(&mut client, &get("/hints"), 10), (5, 5));
    let proxy = start(&addresses, &["retry_on: [ 503 ]", "retry_non_idempotent: true"]);
    assert_eq!(statuses(&mut proxy.client(), &with_body("POST", "some"), 10), (10, 0));
}

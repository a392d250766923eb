//! SIGTERM drains; a second one, or the deadline, stops.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use weir_tests::client::Client;
use weir_tests::member::{Member, Then};
use weir_tests::proxy::{Proxy, Setup};

/// A member that takes this long.
fn slow_member(seconds: u64) -> Member {
    Member::new(move |exchange| {
        std::thread::sleep(Duration::from_secs(seconds));
        exchange.answer("done")?;
        Ok(Then::KeepAlive)
    })
}

/// A proxy with one request under way.
fn with_a_request(member: &Member, setup: &Setup) -> (Proxy, Client) {
    let proxy = Proxy::start(setup);
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    weir_tests::eventually("the request is on the member", Duration::from_secs(5), || {
        member.request_count() == 1
    });
    (proxy, client)
}

#[test]
fn sigterm_lets_requests_end_and_takes_no_more() {
    let member = slow_member(1);
    let (mut proxy, mut client) = with_a_request(&member, &Setup::new(&[member.address()]));
    let mut idle = proxy.client();
    proxy.process().signal(Signal::TERM);
    weir_tests::eventually("new connections are refused", Duration::from_secs(5), || {
        Client::try_connect(proxy.address()).is_err()
    });
    assert!(idle.reader().rest().is_empty());
    let response = client.response();
    assert_eq!(response.assert_status(200).text(), "done");
    assert!(response.head.has_token("connection", "close"), "{response:?}");
    assert!(proxy.process().wait(Duration::from_secs(10)).success());
}

#[test]
fn a_drain_ends_at_its_deadline() {
    let member = slow_member(30);
    let setup = Setup::new(&[member.address()]).top("data_plane: { drain_timeout: 1s }");
    let (mut proxy, _client) = with_a_request(&member, &setup);
    let started = Instant::now();
    proxy.process().signal(Signal::TERM);
    proxy.process().wait(Duration::from_secs(5));
    assert!(started.elapsed() >= Duration::from_millis(900), "{:?}", started.elapsed());
}

#[test]
fn a_second_sigterm_stops_at_once() {
    let member = slow_member(30);
    let (mut proxy, _client) = with_a_request(&member, &Setup::new(&[member.address()]));
    proxy.process().signal(Signal::TERM);
    weir_tests::eventually("the drain has begun", Duration::from_secs(5), || {
        Client::try_connect(proxy.address()).is_err()
    });
    std::thread::sleep(Duration::from_millis(300));
    assert!(proxy.process().exited().is_none(), "it waits for the request");
    proxy.process().signal(Signal::TERM);
    proxy.process().wait(Duration::from_secs(3));
}

#[test]
fn a_reload_while_draining_is_refused_in_words() {
    let member = slow_member(30);
    let (mut proxy, _client) = with_a_request(&member, &Setup::new(&[member.address()]));
    proxy.process().signal(Signal::TERM);
    weir_tests::eventually("the drain has begun", Duration::from_secs(5), || {
        Client::try_connect(proxy.address()).is_err()
    });
    proxy.process().signal(Signal::HUP);
    weir_tests::eventually("the reload is refused", Duration::from_secs(5), || {
        proxy.process().output().contains("is not reloaded: weir drains")
    });
    proxy.process().signal(Signal::TERM);
    proxy.process().wait(Duration::from_secs(3));
}

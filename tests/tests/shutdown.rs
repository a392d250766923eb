//! SIGTERM drains. A second SIGTERM or the deadline ends the process. Connections in the queue of a listener are served
//! before it is closed.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use weir_tests::client::Client;
use weir_tests::member::Member;
use weir_tests::ports::Lease;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::stream::StreamMember;

/// A proxy with one request in flight.
fn with_a_request(member: &Member, setup: &Setup) -> (Proxy, Client) {
    let proxy = Proxy::start(setup);
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    weir_tests::eventually("the request is on the member", weir_tests::STEP_TIMEOUT, || {
        member.request_count() == 1
    });
    (proxy, client)
}

#[test]
fn sigterm_lets_requests_end_and_takes_no_more() {
    let (member, gate) = Member::gated("done");
    let (mut proxy, mut client) = with_a_request(&member, &Setup::new(&[member.address()]));
    let mut idle = proxy.client();
    proxy.process().signal(Signal::TERM);
    weir_tests::eventually("new connections are refused", weir_tests::STEP_TIMEOUT, || {
        Client::try_connect(proxy.address()).is_err()
    });
    assert!(idle.reader().rest().is_empty());
    gate.open();
    let response = client.response();
    assert_eq!(response.assert_status(200).text(), "done");
    assert!(response.head.has_token("connection", "close"), "{response:?}");
    assert!(proxy.process().wait(weir_tests::STEP_TIMEOUT).success());
}

#[test]
fn the_first_request_of_a_client_that_has_connected_is_answered() {
    let member = Member::named("hello");
    // Workers do not begin to drain at the same moment.
    let setup = Setup::new(&[member.address()]).top("data_plane: { workers: 1 }");
    let mut proxy = Proxy::start(&setup);
    let (mut new, mut silent, mut idle) = (proxy.client(), proxy.client(), proxy.client());
    idle.get("/").assert_status(200);
    let started = Instant::now();
    proxy.process().signal(Signal::TERM);
    // A client with an answered request is closed at once: the drain has begun.
    assert!(idle.reader().rest().is_empty());
    new.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    let response = new.response();
    assert_eq!(response.assert_status(200).text(), "hello");
    assert!(response.head.has_token("connection", "close"), "{response:?}");
    assert!(silent.reader().rest().is_empty());
    assert!(started.elapsed() >= Duration::from_millis(900), "{:?}", started.elapsed());
    drop((new, silent, idle));
    assert!(proxy.process().wait(weir_tests::STEP_TIMEOUT).success());
}

#[test]
fn a_drain_ends_at_its_deadline() {
    let (member, _closed) = Member::gated("done");
    let setup = Setup::new(&[member.address()]).top("data_plane: { drain_timeout: 1s }");
    let (mut proxy, _client) = with_a_request(&member, &setup);
    let started = Instant::now();
    proxy.process().signal(Signal::TERM);
    proxy.process().wait(weir_tests::STEP_TIMEOUT);
    assert!(started.elapsed() >= Duration::from_millis(900), "{:?}", started.elapsed());
}

#[test]
fn a_second_sigterm_stops_at_once() {
    let (member, _closed) = Member::gated("done");
    let (mut proxy, _client) = with_a_request(&member, &Setup::new(&[member.address()]));
    proxy.process().signal(Signal::TERM);
    weir_tests::eventually("the drain has begun", weir_tests::STEP_TIMEOUT, || {
        Client::try_connect(proxy.address()).is_err()
    });
    std::thread::sleep(Duration::from_millis(300));
    assert!(proxy.process().exited().is_none(), "it waits for the request");
    proxy.process().signal(Signal::TERM);
    proxy.process().wait(weir_tests::STEP_TIMEOUT);
}

#[test]
fn a_reload_while_draining_is_refused_in_words() {
    let (member, _closed) = Member::gated("done");
    let (mut proxy, _client) = with_a_request(&member, &Setup::new(&[member.address()]));
    proxy.process().signal(Signal::TERM);
    weir_tests::eventually("the drain has begun", weir_tests::STEP_TIMEOUT, || {
        Client::try_connect(proxy.address()).is_err()
    });
    proxy.process().signal(Signal::HUP);
    weir_tests::eventually("the reload is refused", weir_tests::STEP_TIMEOUT, || {
        proxy.process().output().contains("is not reloaded: weir drains")
    });
    proxy.process().signal(Signal::TERM);
    proxy.process().wait(weir_tests::STEP_TIMEOUT);
}

/// More connections than a worker accepts in several turns.
const QUEUED: usize = 300;

/// Stops the process, connects this number of clients that send requests, calls `then`, and continues the process.
fn queue(
    proxy: &mut Proxy,
    to: SocketAddr,
    request: &str,
    then: impl FnOnce(&mut Proxy),
) -> Vec<Client> {
    proxy.process().stop();
    let clients = (0..QUEUED).map(|_| {
        let mut client = Client::connect(to);
        client.send(request);
        client
    });
    let clients = clients.collect();
    then(proxy);
    proxy.process().signal(Signal::CONT);
    clients
}

#[test]
fn connections_that_wait_to_be_accepted_are_relayed_when_weir_drains() {
    let member = StreamMember::line("");
    let setup = Setup::new(&[member.address()]).virtual_server("type: tcp");
    let mut proxy = Proxy::start(&setup.top("data_plane: { workers: 1 }"));
    let to = proxy.address();
    let drain = |proxy: &mut Proxy| proxy.process().signal(Signal::TERM);
    for mut client in queue(&mut proxy, to, "hello\n", drain) {
        assert_eq!(String::from_utf8_lossy(&client.reader().rest()), "hello\n");
    }
    assert!(proxy.process().wait(weir_tests::STEP_TIMEOUT).success());
}

#[test]
fn connections_that_wait_to_be_accepted_are_served_when_their_listener_goes() {
    let member = Member::named("done");
    let setup = Setup::new(&[member.address()]).top("data_plane: { workers: 1 }");
    let (extra, other) = (Lease::new(), setup.clone());
    let mut proxy = Proxy::start(&setup.also_listen(extra.address()));
    let request = "GET / HTTP/1.1\r\nHost: test\r\n\r\n";
    let reload = |proxy: &mut Proxy| proxy.reload(&other);
    for mut client in queue(&mut proxy, extra.address(), request, reload) {
        assert_eq!(client.response().assert_status(200).text(), "done");
    }
    weir_tests::eventually("the listener is closed", weir_tests::STEP_TIMEOUT, || {
        Client::try_connect(extra.address()).is_err()
    });
}

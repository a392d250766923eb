//! Members that are added, changed and removed at run time: no request fails, and nothing of other pools is touched.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use weir_tests::client::{Client, Response};
use weir_tests::gate::Gate;
use weir_tests::load::{Load, Plan};
use weir_tests::member::{Member, Then};
use weir_tests::ports::Lease;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;
use weir_tests::{STEP_TIMEOUT, eventually};

/// The number of times that all kinds of changes are made under load.
const ROUNDS: usize = 12;

fn set(member: &Member, key: &str, value: impl Into<Value>) -> Value {
    let path = format!("/pools/members/members/{}{key}", member.address());
    json!({ "op": "set", "path": path, "value": value.into() })
}

fn remove(member: &Member) -> Value {
    json!({ "op": "remove", "path": format!("/pools/members/members/{}", member.address()) })
}

/// Makes changes, and waits until they are in force.
#[track_caller]
fn change(proxy: &Proxy, changes: &[Value]) {
    let body = json!({ "changes": changes }).to_string();
    let length = body.len();
    let mut client = proxy.admin_client();
    client.send(format!(
        "POST /v1/changes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    ));
    let response = client.response();
    response.assert_status(200);
    let answer: Value = serde_json::from_slice(&response.body).expect("JSON");
    assert_eq!(answer["state"], "in_force", "{changes:?}: {answer}");
}

/// The members that the status shows, by their addresses.
fn shown(proxy: &Proxy) -> BTreeSet<String> {
    let pool: Value = serde_json::from_str(&proxy.admin_get("/v1/pools/members")).expect("JSON");
    let members = pool["members"].as_array().expect("a list");
    members.iter().map(|it| it["address"].as_str().expect("a text").to_owned()).collect()
}

/// The members that have answered.
fn of(responses: impl Iterator<Item = Response>) -> BTreeSet<String> {
    let named = responses.map(|response| {
        response.assert_status(200);
        response.text()
    });
    named.collect()
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn no_request_fails_while_members_change_and_other_pools_do_not_notice() {
    let folder = TempDir::new("member-changes");
    let [one, two, three, other] = ["one", "two", "three", "other"].map(Member::named);
    let port = Lease::new();
    let (listen, address) = (port.address(), other.address());
    let setup = Setup::new(&[one.address(), two.address()])
        .top(&format!("state_dir: {}", folder.path().display()))
        .admin_socket()
        .top("data_plane: { workers: 2 }")
        .also_pool(&format!("other: {{ members: [ {address} ] }}"))
        .also_virtual_server(&format!("other: {{ listen: \"{listen}\", pool: other }}"));
    let proxy = Proxy::start(&setup);
    let mut of_other = Client::connect(listen);
    of_other.get("/").assert_status(200);
    let plan =
        Plan { connections: 8, pause: Duration::from_millis(1), requests_per_connection: None };
    let load = Load::start(proxy.address(), "/", plan);
    for round in 0..ROUNDS {
        change(&proxy, &[set(&three, "", json!({ "weight": 1 + round % 3 }))]);
        change(&proxy, &[set(&one, "/weight", 2 + round), set(&two, "/state", "drain")]);
        load.wait_for_good(10);
        change(&proxy, &[set(&two, "/state", "enabled"), remove(&one)]);
        load.wait_for_good(10);
        change(&proxy, &[set(&one, "", json!({})), remove(&three)]);
    }
    load.wait_for_good(50);
    let tally = load.stop();
    assert_eq!(tally.failed() + tally.lost_connections, 0, "{tally:?}");
    assert_eq!(proxy.metric("weir_worker_panics_total", &[]), 0.0);
    assert_eq!(shown(&proxy), [&one, &two].map(|it| it.address().to_string()).into());
    // The idle connections of a member that is gone are closed, those of another pool stay.
    eventually("nobody is connected to it", STEP_TIMEOUT, || three.open_connections() == 0);
    of_other.get("/").assert_status(200);
    assert_eq!((other.request_count(), other.connection_count()), (2, 1));
}

#[test]
fn a_change_of_members_holds_for_the_next_request_of_each_client() {
    let folder = TempDir::new("member-changes-hold");
    let [one, two] = ["one", "two"].map(Member::named);
    let setup = Setup::new(&[one.address()])
        .top(&format!("state_dir: {}", folder.path().display()))
        .admin_socket()
        .pool("monitors: [ { type: tcp, interval: 100ms, timeout: 90ms } ]");
    let proxy = Proxy::start(&setup);
    let mut client = proxy.client();
    assert_eq!(of((0..4).map(|_| client.get("/"))), names(&["one"]));
    change(&proxy, &[set(&two, "", json!({ "weight": 3 }))]);
    assert_eq!(of((0..12).map(|_| client.get("/"))), names(&["one", "two"]));
    let monitored = |member: &Member| {
        proxy.admin_get("/metrics").contains(&format!("member=\"{}\"", member.address()))
    };
    assert!(monitored(&one) && monitored(&two));
    change(&proxy, &[set(&one, "/weight", 0)]);
    assert_eq!(of((0..4).map(|_| client.get("/"))), names(&["two"]));
    change(&proxy, &[remove(&one)]);
    assert_eq!(of((0..4).map(|_| client.get("/"))), names(&["two"]));
    assert_eq!(shown(&proxy), [two.address().to_string()].into());
    eventually("its metrics are gone", STEP_TIMEOUT, || !monitored(&one));
    change(&proxy, &[set(&one, "", json!({ "state": "drain" }))]);
    assert_eq!(of((0..4).map(|_| client.get("/"))), names(&["two"]));
    change(&proxy, &[set(&one, "/state", "enabled")]);
    assert_eq!(of((0..12).map(|_| client.get("/"))), names(&["one", "two"]));
}

/// A request that waits in the queue while the labels of the members change gets its cookie.
#[test]
fn a_request_in_the_queue_keeps_its_persistence_while_members_change() {
    let folder = TempDir::new("member-changes-queue");
    let (slow, gate) = Member::gated("slow");
    let other = Member::named("other");
    let setup = Setup::new(&[])
        .member(&format!("{{ address: \"{}\", connections_max: 1 }}", slow.address()))
        .pool("queue: { timeout: 60s }")
        .virtual_server("persistence: { type: cookie }")
        .top(&format!("state_dir: {}", folder.path().display()))
        .admin_socket();
    let proxy = Proxy::start(&setup);
    let mut clients = [proxy.client(), proxy.client()];
    for (number, client) in clients.iter_mut().enumerate() {
        client.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
        eventually("it waits", STEP_TIMEOUT, || {
            slow.request_count() == 1
                && proxy.metric("weir_pool_queued_total", &[]) == number as f64
        });
    }
    change(&proxy, &[set(&other, "", json!({ "state": "disabled" }))]);
    change(&proxy, &[set(&slow, "/weight", 3), set(&other, "/weight", 2)]);
    gate.open();
    for client in &mut clients {
        let response = client.response();
        response.assert_status(200);
        assert!(response.head.field("set-cookie").is_some(), "{:?}", response.head);
    }
}

/// A member is removed while another one responds with a status of `retry_on`: the retry goes to a member that the pool has now.
#[test]
fn a_retry_by_status_finds_the_members_of_its_moment() {
    let folder = TempDir::new("member-changes-retry-on");
    let gate = Arc::new(Gate::default());
    let failing = || {
        let gate = Arc::clone(&gate);
        Member::new(move |exchange| {
            gate.pass();
            exchange.send("HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n")?;
            Ok(Then::KeepAlive)
        })
    };
    let members = [failing(), failing()];
    let good = Member::named("good");
    let setup = Setup::new(&members.each_ref().map(Member::address))
        .pool("retries: 1")
        .pool("retry_on: [ 503 ]")
        .top(&format!("state_dir: {}", folder.path().display()))
        .top("data_plane: { workers: 1 }")
        .admin_socket();
    let proxy = Proxy::start(&setup);
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    eventually("a member has it", STEP_TIMEOUT, || {
        members.iter().map(Member::request_count).sum::<usize>() == 1
    });
    let untried = members.iter().find(|it| it.request_count() == 0).expect("one of two");
    change(&proxy, &[remove(untried), set(&good, "", json!({}))]);
    // The worker was told before this, and has heard it when it answers what came to it later, in another turn.
    for _ in 0..2 {
        let mut other = proxy.client();
        other.send("TRACE / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
        other.response().assert_status(405);
    }
    gate.open();
    assert_eq!(of(std::iter::once(client.response())), names(&["good"]));
    assert_eq!(untried.request_count(), 0);
}

/// A login that is under way while the labels of the members change leads its client back to its member.
#[test]
fn what_a_response_teaches_is_known_after_members_have_changed() {
    let folder = TempDir::new("member-changes-login");
    let gate = Arc::new(Gate::default());
    let member = |name: &'static str| {
        let gate = Arc::clone(&gate);
        Member::new(move |exchange| {
            if exchange.request.target() != "/login" {
                return exchange.answer(name);
            }
            gate.pass();
            let length = name.len();
            exchange.send(format!(
                "HTTP/1.1 200 OK\r\nSet-Cookie: S=known\r\nContent-Length: {length}\r\n\r\n{name}"
            ))?;
            Ok(Then::KeepAlive)
        })
    };
    let members = ["one", "two", "three"].map(member);
    let further = Member::named("further");
    let learned =
        "{ type: learned, learn: \"${response.cookies['S']}\", of: \"${request.cookies['S']}\" }";
    let setup = Setup::new(&members.each_ref().map(Member::address))
        .virtual_server(&format!("persistence: {learned}"))
        .top(&format!("state_dir: {}", folder.path().display()))
        .admin_socket();
    let proxy = Proxy::start(&setup);
    let mut client = proxy.client();
    client.send("GET /login HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    eventually("a member has it", STEP_TIMEOUT, || {
        members.iter().map(Member::request_count).sum::<usize>() == 1
    });
    change(&proxy, &[set(&further, "", json!({}))]);
    gate.open();
    let login = client.response();
    login.assert_status(200);
    // The numbers of members that stay may change again.
    let others: Vec<Value> = members
        .iter()
        .zip(["one", "two", "three"])
        .filter(|(_, name)| **name != *login.text())
        .map(|(member, _)| remove(member))
        .collect();
    for changes in [&[][..], &others[..1], &others[1..]] {
        if !changes.is_empty() {
            change(&proxy, changes);
        }
        for _ in 0..6 {
            client.send("GET / HTTP/1.1\r\nHost: shop.example\r\nCookie: S=known\r\n\r\n");
            assert_eq!(client.response().text(), login.text());
        }
    }
}

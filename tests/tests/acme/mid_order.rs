//! A binary upgrade in the middle of an order: the new process continues the order.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use rustix::process::Pid;
use serde_json::Value;
use weir_tests::ports::Lease;
use weir_tests::proxy::{Proxy, weir_binary};
use weir_tests::{STEP_TIMEOUT, eventually, require};

use super::pebble::{self, Pebble};
use super::{EndedWithTest, Site, issuer, orders, report};

/// A relay between the authority and weir that holds connections until it is opened.
struct Gate {
    port: u16,
    state: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Default)]
struct State {
    held: usize,
    is_open: bool,
}

impl Gate {
    fn before(address: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let state: Arc<(Mutex<State>, Condvar)> = Arc::default();
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                thread::spawn(move || pass(client, address, &shared));
            }
        });
        Self { port, state }
    }

    fn held(&self) -> usize {
        self.state.0.lock().expect("the state").held
    }

    fn open(&self) {
        self.state.0.lock().expect("the state").is_open = true;
        self.state.1.notify_all();
    }
}

fn pass(client: TcpStream, to: SocketAddr, (state, opened): &(Mutex<State>, Condvar)) {
    let mut held = state.lock().expect("the state");
    held.held += 1;
    drop(opened.wait_while(held, |state| !state.is_open).expect("the state"));
    let server = TcpStream::connect(to).expect("weir listens");
    let (mut from_client, mut to_server) =
        (client.try_clone().expect("a socket"), server.try_clone().expect("a socket"));
    // Either side may end first. The authority checks the response.
    let requests = thread::spawn(move || io::copy(&mut from_client, &mut to_server));
    let (mut from_server, mut to_client) = (server, client);
    let _ = io::copy(&mut from_server, &mut to_client);
    let _ = to_client.shutdown(std::net::Shutdown::Both);
    let _ = requests.join();
}

#[test]
fn an_upgrade_goes_on_with_an_order() {
    require!("openssl", "curl");
    if !pebble::is_there() {
        return;
    }
    goes_on("http-01");
}

#[test]
fn an_upgrade_goes_on_with_an_order_by_handshakes() {
    require!("openssl", "curl");
    if !pebble::is_there() {
        return;
    }
    goes_on("tls-alpn-01");
}

/// weir is upgraded while the authority waits for the answer to a challenge.
fn goes_on(challenge: &str) {
    let (http, tls) = (Lease::new(), Lease::new());
    let (http_port, tls_port) = (http.address().port(), tls.address().port());
    let (gate, pebble) = if challenge == "http-01" {
        let gate = Gate::before(http.address());
        let pebble = Pebble::start(gate.port, tls_port);
        (gate, pebble)
    } else {
        let gate = Gate::before(tls.address());
        let pebble = Pebble::start(http_port, gate.port);
        (gate, pebble)
    };
    let site = Site::of(http, tls, pebble);
    let setup = site.setup(&format!("challenge: {challenge}"), "{ acme: [ shop.example ] }");
    let proxy = Proxy::start(&setup);
    eventually("the authority looks", STEP_TIMEOUT, || gate.held() > 0);
    assert_eq!((report(&proxy)["state"].as_str(), site.pebble.orders()), (Some("ordering"), 1));
    let output = Command::new(weir_binary())
        .args(["upgrade", "--json", "--admin", &proxy.admin_address()])
        .output()
        .expect("weir upgrade runs");
    assert!(output.status.success(), "{output:?}");
    let upgraded: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let pid = upgraded["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
    let _ended = EndedWithTest(pid.and_then(Pid::from_raw).expect("a process id"));
    // The new process has the answer from its start.
    gate.open();
    eventually("the certificate is there", STEP_TIMEOUT, || report(&proxy)["state"] == "ready");
    assert!(issuer(&site.shown()).contains("Pebble"));
    assert!(site.get(&site.pebble.root()));
    assert_eq!((orders(&proxy, "success"), orders(&proxy, "failure")), (1.0, 0.0));
    assert_eq!(site.pebble.orders(), 1, "the same order");
    assert_eq!(site.kept().len(), 1);
}

//! HTTP/2 clients: the scenarios of HTTP/1.1 on streams.

mod failures;
mod messages;
mod priorities;
mod websocket;

use std::net::SocketAddr;

use weir_tests::http2::Peer;
use weir_tests::member::Member;
use weir_tests::pattern;
use weir_tests::proxy::{Proxy, Setup};

/// A proxy with these members that accepts HTTP/2 without TLS.
fn h2c(members: &[&Member]) -> Setup {
    let addresses: Vec<SocketAddr> = members.iter().map(|member| member.address()).collect();
    Setup::new(&addresses).http("http2: true")
}

fn start(member: &Member) -> Proxy {
    Proxy::start(&h2c(&[member]))
}

/// A connection on which weir's SETTINGS have arrived.
fn connect(proxy: &Proxy) -> Peer {
    let mut peer = Peer::connect(proxy.address());
    peer.pump_until("its settings", |peer| !peer.settings.is_empty());
    peer
}

fn metric(proxy: &Proxy, name: &str) -> f64 {
    proxy.metric(&format!("weir_virtual_server_{name}"), &["\"main\""])
}

/// A member whose response body has the size in the path.
fn sized() -> Member {
    Member::new(|exchange| {
        let size = exchange.request.target()[1..].parse().unwrap_or(0);
        let mut body = vec![0; size];
        pattern::fill(&mut body, 0);
        exchange.answer(body)
    })
}

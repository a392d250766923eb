//! New client connections: limits and the first stage.

use std::net::SocketAddr;
use std::rc::Rc;

use rustix::io::Errno;
use weir_connection::client::http1::Http1;
use weir_core::limit::Admission;
use weir_event_loop::{Descriptor, EventLoop, Owner};
use weir_exchange::arena::{ClientKey, ListenerKey};
use weir_exchange::local::key_limits::ConnectionPlaces;
use weir_exchange::local::table::LocalServer;
use weir_exchange::termination::Termination;
use weir_http::proxy_protocol::{self, ProxyHeader};

use crate::owners::owner_key;
use crate::worker::client::gate;
use crate::worker::client::own_response::OwnBytes;
use crate::worker::edge::WorkerEdge;
use crate::worker::router::Router;
use crate::worker::state::client::{Client, Special};
use crate::worker::state::handshake_place::HandshakePlace;
use crate::worker::state::stage::Stage;

/// Whether the peer is a trusted proxy, so that the connection must begin with a PROXY header.
fn expects_proxy_header(server: &LocalServer, peer: Option<SocketAddr>) -> bool {
    let settings = &server.settings().client_address;
    settings.proxy_protocol && peer.is_some_and(|peer| settings.trust.contains(peer.ip()))
}

/// The time in which the first request must begin.
fn first_timeout_ms(server: &LocalServer) -> u64 {
    let relay = server.settings().service.relay();
    relay.map_or(server.http.header_timeout_ms, |relay| relay.hello_timeout_ms)
}

impl Router {
    /// Sets up an accepted connection, unless a limit or a policy refuses it.
    pub fn accept_client(
        &mut self,
        io: &mut EventLoop,
        listener: ListenerKey,
        socket: Descriptor,
        peer: Option<SocketAddr>,
    ) -> Result<(), Errno> {
        let Some(listener) = self.world.listeners.get(listener) else { return Ok(()) };
        let (server, destination) = (Rc::clone(&listener.server), listener.address.clone());
        let token = io.add(socket, Owner::Client(owner_key(self.world.clients.all.next_key())))?;
        let counters = &server.counters;
        counters.connections_accepted.add(1);
        self.world.counted.connections.add(1);
        let before = server.live.connection_opened(self.world.id);
        let limits = &server.settings().limits;
        let refused = limits.connections_max.is_some_and(|limit| before >= limit);
        let is_above_rate = limits.connections.as_ref().is_some_and(|rate| {
            let admission = server.live.used.connections.admit(rate, io.clock().now_us());
            matches!(admission, Admission::Refuse { .. })
        });
        let held = match (&server.traffic, peer) {
            (Some(traffic), Some(peer)) if !refused && !is_above_rate => {
                traffic.admit_connection(peer.ip(), io.clock())
            }
            _ => Some(ConnectionPlaces::default()),
        };
        let is_limited = is_above_rate || held.is_none();
        let key = self.world.clients.all.insert(Client {
            token,
            peer,
            server: Rc::clone(&server),
            generation: self.world.table.generation,
            destination,
            leave_by_ms: None,
            counted: !refused && !is_limited,
            held: held.unwrap_or_default(),
            proxied: None,
            awaits_proxy: expects_proxy_header(&server, peer),
            tls: None,
            handshake: HandshakePlace::take(&server),
            special: Special::default(),
            server_name: "".into(),
            hello_bytes: 0,
            stage: Stage::first(&server),
            ended: false,
            http1: Http1::new(server.http.http2 && server.tls.is_none()),
            http2: None,
        });
        if is_limited {
            counters.connections_limited.add(1);
            server.live.connection_closed(self.world.id);
            self.edge(io).close_client(key);
            return Ok(());
        }
        if refused {
            self.edge(io).turn_away(key, &server);
            return Ok(());
        }
        if server.gate.is_some() && !gate::admits_connection(&mut self.edge(io), key) {
            return Ok(());
        }
        let mut timeout_ms = first_timeout_ms(&server);
        if let Some(tls) = &server.settings().tls {
            if self.world.clients.all.get(key).is_some_and(|client| client.handshake.is_none()) {
                counters.handshakes_limited.add(1);
                self.edge(io).close_client(key);
                return Ok(());
            }
            timeout_ms = tls.handshake_timeout_ms;
        }
        io.set_deadline(token, io.now_ms() + timeout_ms);
        if self.world.clients.all.get(key).is_some_and(|client| client.stage == Stage::Preface) {
            // Most relays select the pool without any bytes of the client.
            self.client_input(io, key, b"");
        }
        Ok(())
    }

    /// Parses the PROXY header, and returns its length. `None`: more bytes are needed, or the connection ends.
    pub fn proxy_header(
        &mut self,
        io: &mut EventLoop,
        key: ClientKey,
        input: &[u8],
    ) -> Option<usize> {
        let client = self.world.clients.all.get_mut(key)?;
        match proxy_protocol::parse(input) {
            Ok(proxy_protocol::ParsedHeader::Partial) => {
                // The header is short, so it is parsed again together with the next bytes.
                None
            }
            Ok(proxy_protocol::ParsedHeader::Complete { length, header }) => {
                client.awaits_proxy = false;
                if let ProxyHeader::Proxied(proxied) = header {
                    client.proxied = Some(proxied.source);
                }
                gate::admits_connection(&mut self.edge(io), key).then_some(length)
            }
            Err(_) => {
                if client.server.is_tcp {
                    self.edge(io).refuse_relay(key, Termination::ClientMalformed);
                    return None;
                }
                // No response is sent: a client that does not send the configured header could not understand one.
                client.server.counters.requests_malformed.add(1);
                let (sent, why) = (OwnBytes::default(), Termination::ClientMalformed);
                self.edge(io).log_without_request(key, b"", sent, why);
                self.edge(io).close_client(key);
                None
            }
        }
    }
}

impl WorkerEdge<'_> {
    /// Refuses a client because the virtual server has the maximum number of connections.
    fn turn_away(&mut self, key: ClientKey, server: &LocalServer) {
        server.counters.connections_refused.add(1);
        server.live.connection_closed(self.world.id);
        match server.is_tcp {
            true => self.refuse_relay(key, Termination::ConnectionLimit),
            false => self.refuse(key, 503, Termination::ConnectionLimit),
        }
    }
}

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
use crate::worker::client::handler::ClientHandler;
use crate::worker::client::unserved_log::RefusalFacts;
use crate::worker::state::client::Client;
use crate::worker::state::client_end::ClientEnd;
use crate::worker::state::client_step::ClientStep;
use crate::worker::state::handshake_place::HandshakePlace;
use crate::worker::state::stage::Stage;
use crate::worker::world::World;

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

impl World {
    /// Sets up an accepted connection. Returns its key and what is to be done: it ends if a limit or a policy refuses it.
    pub fn accept_client(
        &mut self,
        io: &mut EventLoop,
        listener: ListenerKey,
        socket: Descriptor,
        peer: Option<SocketAddr>,
    ) -> Result<Option<(ClientKey, ClientStep)>, Errno> {
        let Some(listener) = self.listeners.get(listener) else { return Ok(None) };
        let (server, destination) = (Rc::clone(&listener.server), listener.address.clone());
        let token = io.add(socket, Owner::Client(owner_key(self.clients.all.next_key())))?;
        let counters = &server.counters;
        counters.connections_accepted.add(1);
        self.counted.connections.add(1);
        let before = server.live.connection_opened(self.id);
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
        let key = self.clients.all.insert(Client {
            token,
            peer,
            server: Rc::clone(&server),
            generation: self.table.generation,
            destination,
            leave_by_ms: None,
            counted: !refused && !is_limited,
            held: held.unwrap_or_default(),
            proxied: None,
            tls: None,
            handshake: HandshakePlace::take(&server),
            is_early: false,
            server_name: "".into(),
            hello_bytes: 0,
            stage: Stage::first(&server),
            ended: false,
            http1: Http1::new(
                expects_proxy_header(&server, peer),
                server.http.http2 && server.tls.is_none(),
            ),
            http2: None,
        });
        let handler = self.client_handler(io, key);
        let admitted = handler.map_or(Ok(()), |mut it| it.admit((refused, is_limited)));
        if let Err(how) = admitted {
            return Ok(Some((key, ClientStep::End(how))));
        }
        let tls = server.settings().tls.as_ref();
        let timeout_ms = tls.map_or(first_timeout_ms(&server), |tls| tls.handshake_timeout_ms);
        io.set_deadline(token, io.now_ms() + timeout_ms);
        let reads_preface = Stage::first(&server) == Stage::Preface;
        let step = if reads_preface { ClientStep::ReadPreface } else { ClientStep::Nothing };
        Ok(Some((key, step)))
    }
}

impl ClientHandler<'_> {
    /// Whether a new client is admitted; an error: the connection ends. `refused`: the virtual server has the maximum number of
    /// connections. `is_limited`: another limit is reached.
    fn admit(&mut self, (refused, is_limited): (bool, bool)) -> Result<(), ClientEnd> {
        let server = Rc::clone(&self.client.server);
        if is_limited {
            server.counters.connections_limited.add(1);
            server.live.connection_closed(self.worker);
            return Err(ClientEnd::Close);
        }
        if refused {
            server.counters.connections_refused.add(1);
            server.live.connection_closed(self.worker);
            return Err(match server.is_tcp {
                true => self.refuse_relay(Termination::ConnectionLimit),
                false => {
                    self.refuse(503, Termination::ConnectionLimit, None, RefusalFacts::default())
                }
            });
        }
        if server.gate.is_some() {
            self.pass_gate(None)?;
        }
        if server.settings().tls.is_some() && self.client.handshake.is_none() {
            server.counters.handshakes_limited.add(1);
            return Err(ClientEnd::Close);
        }
        Ok(())
    }

    /// Reads the PROXY header, and returns its length; `None`: more bytes are needed; an error: the connection ends.
    pub fn read_proxy_header(&mut self, input: &[u8]) -> Result<Option<usize>, ClientEnd> {
        match proxy_protocol::parse(input) {
            // The header is short, so it is parsed again together with the next bytes.
            Ok(proxy_protocol::ParsedHeader::Partial) => Ok(None),
            Ok(proxy_protocol::ParsedHeader::Complete { length, header }) => {
                self.client.http1.awaits_proxy = false;
                if let ProxyHeader::Proxied(proxied) = header {
                    self.client.proxied = Some(proxied.source);
                }
                self.pass_gate(None)?;
                Ok(Some(length))
            }
            Err(_) if self.client.server.is_tcp => {
                Err(self.refuse_relay(Termination::ClientMalformed))
            }
            Err(_) => {
                // No response is sent: a client that does not send the configured header could not understand one.
                self.client.server.counters.requests_malformed.add(1);
                let why = Termination::ClientMalformed;
                self.log.connection(self.client, self.io.clock(), b"", why);
                Err(ClientEnd::Close)
            }
        }
    }
}

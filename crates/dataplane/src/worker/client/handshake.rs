//! The start of TLS with a client: the ClientHello, the handshake, failures.

use std::io::IoSlice;
use std::rc::Rc;
use std::sync::Arc;

use weir_event_loop::EventLoop;
use weir_exchange::arena::ClientKey;
use weir_exchange::local::client_tls::ClientTls;
use weir_exchange::local::table::LocalServer;
use weir_exchange::termination::Termination;
use weir_http::message::RequestHead;
use weir_telemetry::access_log::PolicyFields;
use weir_tls::challenges::ACME_TLS;
use weir_tls::client_hello::{Peek, peek};
use weir_tls::{Alert, HandshakeResult, Session, TlsError};

use crate::worker::client::gate;
use crate::worker::client::own_response::{RefusalFacts, UnforwardedRequest, log_decided};
use crate::worker::edge::WorkerEdge;
use crate::worker::router::Router;
use crate::worker::state::stage::Stage;
use crate::worker::world::{DrainDeadlines, World};

/// The first bytes of unencrypted HTTP requests.
const METHODS: [&[u8]; 9] = [
    b"GET ",
    b"HEAD ",
    b"POST ",
    b"PUT ",
    b"DELETE ",
    b"CONNECT ",
    b"OPTIONS ",
    b"TRACE ",
    b"PATCH ",
];

/// Whether the input can be the start of an HTTP/1 request. No TLS record starts with a letter.
fn is_plain_http(input: &[u8]) -> bool {
    METHODS.iter().any(|method| input.starts_with(method) || method.starts_with(input))
}

impl Router {
    /// Parses the received part of a ClientHello. True: the handshake has begun.
    pub fn client_hello(&mut self, io: &mut EventLoop, key: ClientKey, input: &[u8]) -> bool {
        let Some(client) = self.world.clients.all.get_mut(key) else { return false };
        if input.len() < client.hello_bytes {
            return false;
        }
        let hello = match peek(input) {
            Peek::Partial(bytes) => {
                client.hello_bytes = bytes;
                return false;
            }
            Peek::Hello(hello) => hello,
            Peek::Malformed(_, _) if is_plain_http(input) && !client.server.is_tcp => {
                self.edge(io).refuse_plain_http(key);
                return false;
            }
            Peek::Malformed(why, alert) => {
                self.edge(io).refuse_hello(key, alert, why);
                return false;
            }
        };
        self.world.refresh_server(key);
        if !gate::admits_server_name(&mut self.edge(io), key, &hello.server_name) {
            return false;
        }
        let Some(client) = self.world.clients.all.get_mut(key) else { return false };
        let session = match client.server.tls.as_ref().map(|tls| tls.acceptor.choose(&hello)) {
            Some(Err(alert)) => {
                let why = match &*hello.server_name {
                    _ if hello.is_old => "the client offers no TLS version above 1.1".to_owned(),
                    "" => "no usable server name (SNI), which strict_sni requires".to_owned(),
                    name => format!("no certificate for {name} (strict_sni)"),
                };
                self.edge(io).refuse_hello(key, alert, &why);
                return false;
            }
            // An error means that the configuration is unusable. The connection ends.
            Some(Ok(config)) => Session::server(&config).map_err(|error| error.to_string()),
            None => Err("a reload has removed tls here".to_owned()),
        };
        let session = match session {
            Ok(session) => session,
            Err(why) => {
                self.edge(io).handshake_failed(key, &why);
                return false;
            }
        };
        client.server_name = hello.server_name.into();
        client.hello_bytes = input.len();
        client.stage = Stage::Handshake;
        io.sockets.secure(client.token, session, input);
        true
    }

    /// Handles the client's completed handshake: requests are read next.
    pub fn client_secured(
        &mut self,
        io: &mut EventLoop,
        key: ClientKey,
        established: &HandshakeResult,
    ) {
        let must_leave =
            self.world.is_draining() && !DrainDeadlines::spares_idle(self.world.draining);
        let Some(client) = self.world.clients.all.get_mut(key) else { return };
        let place = client.handshake.take();
        let counters = &client.server.counters;
        if established.is_resumed {
            counters.handshakes_resumed.add(1);
        } else {
            counters.handshakes_full.add(1);
        }
        let name = std::mem::take(&mut client.server_name);
        let lets_in = place.as_ref().map(|place| Arc::clone(&place.lets_in));
        drop(place);
        client.tls = Some(Rc::new(ClientTls::new(&name, established, lets_in)));
        client.stage = Stage::Idle;
        if established.alpn.as_deref() == Some(ACME_TLS) {
            // The authority needs only the handshake (RFC 8737 section 3).
            return self.edge(io).leave(key, true);
        }
        if client.server.is_tcp {
            return self.relay_secured(io, key, &name);
        }
        client.special.is_early = established.is_early;
        let timeout_ms = client.server.http.header_timeout_ms;
        io.set_deadline(client.token, io.now_ms() + timeout_ms);
        if must_leave || client.leave_by_ms.is_some() {
            self.edge(io).leave(key, true);
        } else if established.alpn.as_deref() == Some(b"h2") {
            self.edge(io).begin_http2(key);
        }
    }
}

impl World {
    /// Whether a request is for a host whose TLS settings differ from those of the client's handshake, such as a host that
    /// requires client certificates (RFC 9110 section 15.5.20).
    pub fn is_misdirected(
        &self,
        client: ClientKey,
        server: &LocalServer,
        head: &RequestHead,
        input: &[u8],
    ) -> bool {
        if server.tls.is_none() {
            return false;
        }
        let passed = self.clients.all.get(client).and_then(|client| client.tls.as_ref());
        passed.is_some_and(|passed| server.is_misdirected(passed, head, input))
    }
}

impl Router {
    /// Handles a TLS error caused by the client or the network. An alert is already queued.
    pub fn client_insecure(&mut self, io: &mut EventLoop, key: ClientKey, error: &TlsError) {
        let Some(client) = self.world.clients.all.get(key) else { return };
        match client.stage {
            Stage::Hello | Stage::Handshake => {
                self.edge(io).note_failed_handshake(key, &error.to_string());
                self.edge(io).leave(key, true);
            }
            Stage::Exchange(exchange) => {
                self.with_any(io, exchange, |it, at| it.abandon(at, Termination::ClientMalformed));
                self.edge(io).leave(key, true);
            }
            Stage::Streams => {
                self.abandon_streams(io, key, Termination::ClientMalformed);
                self.edge(io).leave(key, true);
            }
            Stage::Preface | Stage::Idle | Stage::Head => self.edge(io).leave(key, true),
            Stage::Leaving => {}
        }
    }
}

impl WorkerEdge<'_> {
    /// Sends an unencrypted alert, because the first bytes are not a ClientHello or the server name is unknown.
    fn refuse_hello(&mut self, key: ClientKey, alert: Alert, why: &str) {
        self.note_failed_handshake(key, why);
        let Some(client) = self.world.clients.all.get(key) else { return };
        let token = client.token;
        self.io.send_last(token, &[IoSlice::new(&alert.record())]);
        self.leave(key, true);
    }

    /// Sends a response to a client that uses plain HTTP, because the client cannot understand a TLS alert.
    fn refuse_plain_http(&mut self, key: ClientKey) {
        let Some(client) = self.world.clients.all.get_mut(key) else { return };
        client.handshake = None;
        client.server.counters.handshakes_failed.add(1);
        let line = b"400 A plain HTTP request was sent to an HTTPS port\n";
        let about = RefusalFacts { tls_error: "plain HTTP, not TLS", ..RefusalFacts::default() };
        self.refuse_about(key, 400, Termination::TlsHandshake, (Some(line), about));
    }

    /// Counts and logs a failed handshake, and closes the connection.
    pub fn handshake_failed(&mut self, key: ClientKey, why: &str) {
        self.note_failed_handshake(key, why);
        self.close_client(key);
    }

    fn note_failed_handshake(&mut self, key: ClientKey, why: &str) {
        let Some(client) = self.world.clients.all.get_mut(key) else { return };
        client.handshake = None;
        client.server.counters.handshakes_failed.add(1);
        let of = UnforwardedRequest { tls_error: why, ..UnforwardedRequest::default() };
        log_decided(self, key, of, PolicyFields::default(), Termination::TlsHandshake);
    }
}

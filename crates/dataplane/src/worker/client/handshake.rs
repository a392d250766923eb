//! The start of TLS with a client: the ClientHello, the handshake, failures.

use std::io::IoSlice;
use std::rc::Rc;
use std::sync::Arc;

use weir_exchange::arena::ClientKey;
use weir_exchange::local::client_tls::ClientTls;
use weir_exchange::local::table::LocalServer;
use weir_exchange::termination::Termination;
use weir_http::message::RequestHead;
use weir_telemetry::access_log::PolicyFields;
use weir_tls::challenges::ACME_TLS;
use weir_tls::client_hello::{ClientHello, Peek, peek};
use weir_tls::{Alert, HandshakeResult, Session};

use crate::worker::client::handler::ClientHandler;
use crate::worker::client::unserved_log::{RefusalFacts, UnforwardedRequest};
use crate::worker::edge::WorkerEdge;
use crate::worker::state::client_end::ClientEnd;
use crate::worker::state::client_step::ClientStep;
use crate::worker::state::drain_deadlines::DrainDeadlines;
use crate::worker::state::stage::Stage;
use crate::worker::world::World;

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

impl WorkerEdge<'_> {
    /// Reads the received part of a ClientHello. Returns whether the handshake has begun; an error: the connection ends.
    pub fn client_hello(&mut self, key: ClientKey, input: &[u8]) -> Result<bool, ClientEnd> {
        let Some(mut client) = self.world.client_handler(self.io, key) else { return Ok(false) };
        let Some(hello) = client.read_hello(input)? else { return Ok(false) };
        self.world.refresh_server(key);
        let Some(mut client) = self.world.client_handler(self.io, key) else { return Ok(false) };
        client.pass_gate(Some(&hello.server_name))?;
        client.begin_handshake(hello, input)?;
        Ok(true)
    }
}

impl ClientHandler<'_> {
    /// Reads the received part of a ClientHello; `None`: more bytes are needed; an error: the connection ends.
    fn read_hello(&mut self, input: &[u8]) -> Result<Option<ClientHello>, ClientEnd> {
        if input.len() < self.client.hello_bytes as usize {
            return Ok(None);
        }
        match peek(input) {
            Peek::Partial(bytes) => {
                self.client.hello_bytes = bytes as u32;
                Ok(None)
            }
            Peek::Hello(hello) => Ok(Some(hello)),
            Peek::Malformed(_, _) if is_plain_http(input) && !self.client.server.is_tcp => {
                Err(self.refuse_plain_http())
            }
            Peek::Malformed(why, alert) => Err(self.refuse_hello(alert, why)),
        }
    }

    /// Begins the handshake that the client asks for; an error: the connection ends.
    fn begin_handshake(&mut self, hello: ClientHello, input: &[u8]) -> Result<(), ClientEnd> {
        let tls = self.client.server.tls.as_ref();
        let session = match tls.map(|tls| tls.acceptor.choose(&hello)) {
            Some(Err(alert)) => {
                let why = match &*hello.server_name {
                    _ if hello.is_old => "the client offers no TLS version above 1.1".to_owned(),
                    "" => "no usable server name (SNI), which strict_sni requires".to_owned(),
                    name => format!("no certificate for {name} (strict_sni)"),
                };
                return Err(self.refuse_hello(alert, &why));
            }
            // An error means that the configuration is unusable. The connection ends.
            Some(Ok(config)) => Session::server(&config).map_err(|error| error.to_string()),
            None => Err("a reload has removed tls here".to_owned()),
        };
        let session = session.map_err(|why| self.handshake_failed(&why, ClientEnd::Close))?;
        self.client.server_name = hello.server_name.into();
        self.client.hello_bytes = input.len() as u32;
        self.client.stage = Stage::Handshake;
        self.io.sockets.secure(self.client.token, session, input);
        Ok(())
    }

    /// The handshake is complete: requests are read next. `draining`: the deadlines of the process, if it drains.
    pub fn secured(
        &mut self,
        established: &HandshakeResult,
        draining: Option<DrainDeadlines>,
    ) -> ClientStep {
        let must_leave = draining.is_some() && !DrainDeadlines::spares_idle(draining);
        let client = &mut *self.client;
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
            return ClientStep::End(ClientEnd::ORDERLY);
        }
        if client.server.is_tcp {
            return self.relay_by_name(name.into_string(), (None, Termination::UnknownServerName));
        }
        client.is_early = established.is_early;
        let timeout_ms = client.server.http.header_timeout_ms;
        self.io.set_deadline(client.token, self.io.now_ms() + timeout_ms);
        if must_leave || client.leave_by_ms.is_some() {
            return ClientStep::End(ClientEnd::ORDERLY);
        }
        if established.alpn.as_deref() == Some(b"h2") {
            client.begin_http2((self.io, self.agenda), self.key, draining.is_some());
        }
        ClientStep::Nothing
    }

    /// Sends an unencrypted alert, because the first bytes are not a ClientHello or the server name is unknown.
    fn refuse_hello(&mut self, alert: Alert, why: &str) -> ClientEnd {
        let end = self.handshake_failed(why, ClientEnd::ORDERLY);
        self.io.send_last(self.client.token, &[IoSlice::new(&alert.record())]);
        end
    }

    /// Sends a response to a client that uses plain HTTP, because the client cannot understand a TLS alert.
    fn refuse_plain_http(&mut self) -> ClientEnd {
        self.client.handshake = None;
        self.client.server.counters.handshakes_failed.add(1);
        let line = b"400 A plain HTTP request was sent to an HTTPS port\n";
        let about = RefusalFacts { tls_error: "plain HTTP, not TLS", ..RefusalFacts::default() };
        self.refuse(400, Termination::TlsHandshake, Some(line), about)
    }

    /// Counts and logs a failed handshake. The connection ends in this way.
    pub fn handshake_failed(&mut self, why: &str, how: ClientEnd) -> ClientEnd {
        self.client.handshake = None;
        self.client.server.counters.handshakes_failed.add(1);
        let of = UnforwardedRequest { tls_error: why, ..UnforwardedRequest::default() };
        let why = Termination::TlsHandshake;
        self.log.line(self.client, self.io.clock(), of, PolicyFields::default(), why);
        how
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

//! Virtual servers of `type: tcp`: a whole connection is forwarded to a member, with unchanged bytes.
//!
//! | step | done by |
//! |---|---|
//! | reads the first bytes, if needed: PROXY header, ClientHello | `read_preface` |
//! | looks for a member | `begin_relay`, [`Relay`] |
//! | member connected | `connected`: the relay becomes a tunnel |
//! | bytes, ends, idleness | `tunnel.rs`, as after a protocol change |
//! | end, also of a failed relay | `count_relay`, the access log |
//!
//! [`weir_exchange::transaction::relay`] selects the member.

use std::io::IoSlice;
use std::rc::Rc;

use weir_config::snapshot::AccessFormat;
use weir_event_loop::EventLoop;
use weir_exchange::arena::ClientKey;
use weir_exchange::local::client_tls::ClientTls;
use weir_exchange::parts::arrival::Registration;
use weir_exchange::termination::Termination;
use weir_exchange::transaction::Transaction;
use weir_exchange::transaction::relay::Relay;
use weir_tls::Alert;
use weir_tls::client_hello::{Peek, begins_a_handshake, peek};

use crate::worker::client::handler::ClientHandler;
use crate::worker::edge::WorkerEdge;
use crate::worker::router::Router;
use crate::worker::state::client_end::ClientEnd;
use crate::worker::state::client_step::ClientStep;
use crate::worker::state::stage::Stage;

impl ClientHandler<'_> {
    /// Reads a client's first bytes, if they are needed to select the pool; `None`: more are needed. The client has the virtual
    /// server of the latest table.
    pub fn read_preface(&mut self, input: &[u8]) -> Option<ClientStep> {
        let server = Rc::clone(&self.client.server);
        let Some(relay) = server.settings().service.relay().filter(|_| server.tls.is_none()) else {
            // A reload has changed the type of the virtual server, so the purpose of the bytes is unknown.
            return Some(ClientStep::End(ClientEnd::Close));
        };
        if relay.names.is_none() && !relay.reads_name {
            return Some(ClientStep::Relay(server.settings().pool, String::new()));
        }
        if input.len() < (self.client.hello_bytes as usize).max(1) {
            return None;
        }
        Some(match peek(input) {
            Peek::Partial(bytes) => {
                self.client.hello_bytes = bytes as u32;
                return None;
            }
            Peek::Hello(hello) => {
                let name = hello.server_name;
                self.client.tls = Some(Rc::new(ClientTls::asked(&name)));
                let refused = (Some(Alert::UnrecognizedName), Termination::UnknownServerName);
                self.relay_by_name(name, refused)
            }
            Peek::Malformed(_, alert) => {
                let alert = begins_a_handshake(input).then_some(alert);
                self.relay_by_name(String::new(), (alert, Termination::ClientMalformed))
            }
        })
    }

    /// Relays a client to the pool of this server name. Without a map from names to pools, that is the default pool. Policies decide
    /// about clients without a server name. If there is no pool, the client is refused, with an alert or with a reset.
    pub fn relay_by_name(
        &mut self,
        name: String,
        (alert, why): (Option<Alert>, Termination),
    ) -> ClientStep {
        let (settings, default) =
            (self.client.server.settings(), self.client.server.settings().pool);
        let names = settings.service.relay().and_then(|relay| relay.names.as_ref());
        if let Some(pool) = names.map_or(Some(default), |names| names.pool(&name, default)) {
            return ClientStep::Relay(pool, name);
        }
        self.log.unrelayed(self.client, self.io.clock(), &name, why);
        let Some(alert) = alert else {
            return ClientStep::End(ClientEnd::Cut { must_reset: true });
        };
        self.io.send(self.client.token, &[IoSlice::new(&alert.record())]);
        ClientStep::End(ClientEnd::ORDERLY)
    }

    /// Counts and logs a client that is not relayed. It is reset.
    pub fn refuse_relay(&mut self, why: Termination) -> ClientEnd {
        self.log.unrelayed(self.client, self.io.clock(), "", why);
        ClientEnd::Cut { must_reset: true }
    }

    /// The connection has ended or failed before a pool was selected.
    pub fn preface_ended(&mut self) -> ClientEnd {
        // A connection without any data is a port scan or a health check.
        if !self.client.has_input() {
            return ClientEnd::Close;
        }
        self.client.server.counters.client_aborts.add(1);
        self.refuse_relay(Termination::ClientAbort)
    }
}

impl Router {
    /// Begins the relay of a connection to a member of the pool at this index.
    pub fn begin_relay(&mut self, io: &mut EventLoop, key: ClientKey, pool: usize, name: &str) {
        let Some(client) = self.world.clients.all.get_mut(key) else { return };
        let server = Rc::clone(&client.server);
        client.learn_destination(io, &server);
        io.clear_deadline(client.token);
        let mut nothing = self.inbox.request_head.take().unwrap_or_default();
        nothing.clear();
        let logged = self.world.recorder.logged;
        let mut log_request = Vec::new();
        if logged.format() != AccessFormat::Off {
            log_request = io.spares.take();
            self.world.log.connection_part(name, &mut log_request);
        }
        let relay = self.exchanges.next_key();
        let registration =
            Registration { key: relay, client: key, stream: None, logged, log_request };
        let arrival = self.world.arrival_of_relay(key, &server, &nothing);
        let state = arrival.map(|arrival| {
            let mut edge = WorkerEdge { io: &mut *io, world: &mut self.world };
            Relay::begin(&mut edge, &arrival, registration, pool)
        });
        self.inbox.request_head = Some(nothing);
        let Some(state) = state else { return };
        self.exchanges.insert(Transaction::Relay(state));
        if let Some(client) = self.world.clients.all.get_mut(key) {
            client.stage = Stage::Exchange(relay);
        }
        self.with_any(io, relay, |it, at| it.resume(at));
    }
}

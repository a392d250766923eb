//! Virtual servers of `type: tcp`: a whole connection is forwarded to a member, with unchanged bytes.
//!
//! | step | done by |
//! |---|---|
//! | reads the first bytes, if needed: PROXY header, ClientHello | `relay_preface` |
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
use weir_exchange::transaction::relay::{Relay, count_relay};
use weir_tls::Alert;
use weir_tls::client_hello::{Peek, begins_a_handshake, peek};

use crate::worker::client::own_response::OwnBytes;
use crate::worker::edge::WorkerEdge;
use crate::worker::router::Router;
use crate::worker::state::stage::Stage;

impl Router {
    /// Parses a client's first bytes, if they are needed to select the pool. True: the relay has begun, or was refused.
    pub fn relay_preface(&mut self, io: &mut EventLoop, key: ClientKey, input: &[u8]) -> bool {
        self.world.refresh_server(key);
        let Some(client) = self.world.clients.all.get_mut(key) else { return false };
        let server = Rc::clone(&client.server);
        let Some(relay) = server.settings().service.relay().filter(|_| server.tls.is_none()) else {
            // A reload has changed the type of the virtual server, so the purpose of the bytes is unknown.
            self.edge(io).close_client(key);
            return false;
        };
        let default = server.settings().pool;
        if relay.names.is_none() && !relay.reads_name {
            self.begin_relay(io, key, default, "");
            return true;
        }
        // Without a map from names to pools, the default pool is used. Policies decide about clients without a server name.
        let pool_of = |name: &str| match &relay.names {
            Some(names) => names.pool(name, default),
            None => Some(default),
        };
        if input.len() < client.hello_bytes.max(1) {
            return false;
        }
        match peek(input) {
            Peek::Partial(bytes) => {
                client.hello_bytes = bytes;
                false
            }
            Peek::Hello(hello) => {
                let name = hello.server_name;
                client.tls = Some(Rc::new(ClientTls::asked(&name)));
                match pool_of(&name) {
                    Some(pool) => self.begin_relay(io, key, pool, &name),
                    None => {
                        let alert = Some(Alert::UnrecognizedName);
                        self.edge(io).refuse_unrelayed(
                            key,
                            alert,
                            &name,
                            Termination::UnknownServerName,
                        );
                    }
                }
                true
            }
            Peek::Malformed(_, alert) => {
                match pool_of("") {
                    Some(pool) => self.begin_relay(io, key, pool, ""),
                    None => {
                        let alert = begins_a_handshake(input).then_some(alert);
                        self.edge(io).refuse_unrelayed(
                            key,
                            alert,
                            "",
                            Termination::ClientMalformed,
                        );
                    }
                }
                true
            }
        }
    }
}

impl Router {
    /// Relays the decrypted data of a client whose TLS ends here. `name`: the server name of the handshake.
    pub fn relay_secured(&mut self, io: &mut EventLoop, key: ClientKey, name: &str) {
        let Some(client) = self.world.clients.all.get(key) else { return };
        let server = Rc::clone(&client.server);
        let default = server.settings().pool;
        let names = server.settings().service.relay().and_then(|relay| relay.names.as_ref());
        match names.map_or(Some(default), |names| names.pool(name, default)) {
            Some(pool) => self.begin_relay(io, key, pool, name),
            None => self.edge(io).refuse_unrelayed(key, None, name, Termination::UnknownServerName),
        }
    }

    /// Begins the relay of a connection to a member of the pool at this index.
    fn begin_relay(&mut self, io: &mut EventLoop, key: ClientKey, pool: usize, name: &str) {
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

impl WorkerEdge<'_> {
    /// Closes a client for which no pool was selected, with an alert or with a reset.
    fn refuse_unrelayed(
        &mut self,
        key: ClientKey,
        alert: Option<Alert>,
        name: &str,
        why: Termination,
    ) {
        self.note_unrelayed(key, name, why);
        let Some(client) = self.world.clients.all.get(key) else { return };
        let token = client.token;
        match alert {
            Some(alert) => {
                self.io.send(token, &[IoSlice::new(&alert.record())]);
                self.leave(key, true);
            }
            None => self.cut_client(key, true),
        }
    }

    /// Closes a client that was not relayed, with a reset.
    pub fn refuse_relay(&mut self, key: ClientKey, why: Termination) {
        self.note_unrelayed(key, "", why);
        self.cut_client(key, true);
    }

    /// Counts and logs a connection that was not relayed.
    fn note_unrelayed(&mut self, key: ClientKey, name: &str, why: Termination) {
        let Some(client) = self.world.clients.all.get(key) else { return };
        count_relay(&client.server.counters, why);
        let mut about = Vec::new();
        self.world.log.connection_part(name, &mut about);
        self.log_without_request(key, &about, OwnBytes::default(), why);
    }

    /// Handles a client connection that ended or failed before a pool was selected.
    pub fn preface_ended(&mut self, key: ClientKey) {
        // A connection without any data is a port scan or a health check.
        let Some(client) = self.world.clients.all.get(key) else { return };
        if !client.has_input() {
            return self.close_client(key);
        }
        let Some(client) = self.world.clients.all.get(key) else { return };
        client.server.counters.client_aborts.add(1);
        self.refuse_relay(key, Termination::ClientAbort);
    }
}

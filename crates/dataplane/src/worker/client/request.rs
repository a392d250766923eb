//! Starts the exchanges of clients' requests.

use std::rc::Rc;

use weir_config::snapshot::AccessFormat;
use weir_core::clock::Clock;
use weir_event_loop::EventLoop;
use weir_exchange::arena::{ClientKey, ExchangeKey};
use weir_exchange::local::client_address::named_client;
use weir_exchange::local::table::LocalServer;
use weir_exchange::parts::account::LogOutput;
use weir_exchange::parts::arrival::{Arrival, Registration, RequestOrigin};
use weir_exchange::transaction::Transaction;
use weir_exchange::transaction::exchange::Exchange;
use weir_exchange::transaction::stages;
use weir_http::message::RequestHead;
use weir_telemetry::records::recorder::RequestStart;

use crate::worker::agenda::Task;
use crate::worker::client::bound_connections;
use crate::worker::edge::WorkerEdge;
use crate::worker::router::Router;
use crate::worker::state::client::Client;
use crate::worker::state::stage::Stage;
use crate::worker::world::World;

impl Router {
    /// Begins the exchange of a request. `stream`: the stream of the client's connection; 0: HTTP/1. The client has the virtual server
    /// of the latest table.
    pub fn begin_request(
        &mut self,
        io: &mut EventLoop,
        key: ClientKey,
        stream: u32,
        head: &RequestHead,
        input: &[u8],
    ) {
        let Some(client) = self.world.clients.all.get_mut(key) else { return };
        let server = Rc::clone(&client.server);
        client.learn_destination(io, &server);
        client.http1.begin_body(head.framing, server.http.body_size_max);
        let Some(arrival) = self.world.arrival(key, &server, head, input) else { return };
        let text = io.spares.take();
        let exchange = self.exchanges.next_key();
        let mut log_request = Vec::new();
        let mut logged = self.world.recorder.logged;
        if !logged.is_nothing() {
            if logged.format() != AccessFormat::Off {
                log_request = io.spares.take();
                let settings = &server.settings().client_address;
                let address = self.world.clients.all.get(key).and_then(Client::address);
                let named = named_client(settings, address, head, input);
                self.world.log.request_part(named, head, input, &mut log_request);
            }
            if logged.is_recorded() {
                logged = begin_record(&mut self.world, (key, exchange), &arrival, io.clock());
            }
        }
        let on_stream = match stream {
            0 => None,
            stream => self.world.clients.take_stream(key, stream, exchange),
        };
        let registration =
            Registration { key: exchange, client: key, stream: on_stream, logged, log_request };
        let mut edge = WorkerEdge { io: &mut *io, world: &mut self.world };
        let verdict = stages::begin(&mut edge, &mut self.exchanges, &arrival, registration, text);
        if logged.is_recorded() {
            self.world.recorder.begun();
        }
        if stream == 0 {
            if let Some(client) = self.world.clients.all.get_mut(key) {
                client.stage = Stage::Exchange(exchange);
            }
            if !verdict.is_usual {
                let exchange = self.exchanges.get_mut(exchange).and_then(Transaction::http_mut);
                exchange.into_iter().for_each(|it| self.world.begun_unusually(key, it, head));
            }
        } else {
            if let (Some(http2), Some(stream)) = (self.world.clients.http2_mut(key), on_stream) {
                http2.begin_exchange(stream, exchange, head, input);
                if !head.framing.is_empty() {
                    self.world.agenda.add(Task::SendHead(exchange));
                }
            }
        }
        self.with(io, exchange, |it, at| it.enter(at, head, verdict));
    }
}

/// Starts the notes about a request, if a record may be needed.
#[cold]
#[inline(never)]
fn begin_record(
    world: &mut World,
    (client, key): (ClientKey, ExchangeKey),
    arrival: &Arrival<'_>,
    clock: Clock,
) -> LogOutput {
    let client = world.clients.all.get(client);
    let begun = RequestStart {
        key,
        head: arrival.head,
        input: arrival.input,
        server: arrival.server,
        peer: client.and_then(Client::address),
        listen: client.and_then(|client| client.destination.address()),
        tls: client.and_then(|client| client.tls.as_deref()),
    };
    let is_recorded = world.recorder.begin(&begun, clock);
    LogOutput::of(world.log.format(), is_recorded)
}

impl World {
    /// Continues with a request that was handed over to another virtual server, or whose client has member connections of its own.
    #[cold]
    #[inline(never)]
    fn begun_unusually(&mut self, key: ClientKey, exchange: &mut Exchange, head: &RequestHead) {
        // The body size limit is that of the virtual server to which the request was handed over.
        if let Some(client) = self.clients.all.get_mut(key) {
            client.http1.begin_body(head.framing, exchange.ends.server.http.body_size_max);
        }
        bound_connections::prefer(exchange, self, key);
    }

    /// A request, with the properties of its connection.
    #[inline(always)]
    fn arrival<'a>(
        &self,
        key: ClientKey,
        server: &'a Rc<LocalServer>,
        head: &'a RequestHead,
        input: &'a [u8],
    ) -> Option<Arrival<'a>> {
        let is_misdirected = self.is_misdirected(key, server, head, input);
        let client = self.clients.all.get(key)?;
        let is_looked_at = server.traffic.is_some() || server.waf.is_some();
        let from = is_looked_at.then(|| RequestOrigin {
            peer: client.address(),
            listen: client.destination.address(),
            tls: client.tls.clone(),
            entry: None,
        });
        Some(Arrival {
            head,
            input,
            server,
            from,
            is_early: client.is_early,
            is_bound: self.members.has_bound(key),
            is_misdirected,
            may_go_on: !self.is_draining() && client.leave_by_ms.is_none(),
        })
    }

    /// The properties of a relayed connection for policies. The host is the server name of the handshake.
    pub fn arrival_of_relay<'a>(
        &self,
        key: ClientKey,
        server: &'a Rc<LocalServer>,
        nothing: &'a RequestHead,
    ) -> Option<Arrival<'a>> {
        let arrival = self.arrival(key, server, nothing, b"")?;
        Some(Arrival { is_misdirected: false, ..arrival })
    }
}

//! What becomes of a request head, step by step.

use std::rc::Rc;

use weir_config::snapshot::AccessFormat;
use weir_event_loop::EventLoop;
use weir_http::h1::{BodyDecoder, write_request_head};
use weir_http::message::{Framing, Method};

use crate::access_log::Termination;
use crate::arena::ClientKey;
use crate::pool::Wish;
use crate::worker::Worker;
use crate::worker::client::early_data;
use crate::worker::client::stage::Stage;
use crate::worker::transaction::Transaction;
use crate::worker::transaction::considered::{Considered, Ending};
use crate::worker::transaction::exchange::Begin;
use crate::worker::transaction::pace::Pace;
use crate::worker::transaction::parked::Parked;
use crate::worker::transaction::request::Request;
use crate::worker::transaction::trailers;
use crate::worker::transaction::websocket;
use crate::worker::world::Desk;

impl Worker {
    /// Starts the exchange of a request, on `stream` of the client's connection; 0: on all of that (HTTP/1).
    pub fn begin_request(
        &mut self,
        io: &mut EventLoop,
        key: ClientKey,
        stream: u32,
        head: &weir_http::message::RequestHead,
        input: &[u8],
    ) {
        self.world.refresh_server(key);
        let draining = self.world.is_draining();
        let Some(client) = self.world.clients.get_mut(key) else { return };
        let server = Rc::clone(&client.server);
        // Where there are rules it is judged with them.
        let is_misdirected = server.traffic.is_none()
            && server.tls.is_some()
            && self.world.is_misdirected(key, &server, head, input);
        let Some(client) = self.world.clients.get_mut(key) else { return };
        let body_size_max = server.http.body_size_max;
        client.body = BodyDecoder::new(head.framing, body_size_max);
        let mut decision = self.world.decision.take().unwrap_or_default();
        let considered = server.traffic.as_ref().and_then(|traffic| {
            let request = (head, input);
            let mut desk = Desk { io: &mut *io, world: &mut self.world };
            let considered = desk.consider(key, &server, traffic, request, &mut decision)?;
            // As its own snapshot numbers it: the table in force may have another by now.
            Some((Rc::clone(traffic.pool(considered.pool)), considered))
        });
        let codings = self.world.note_codings(&server, head, input, &mut decision);
        if head.extended_connect {
            // RFC 8441 section 5: only HTTP/1.1 has a key, and its member wants one.
            decision.request.fields.add(b"Sec-WebSocket-Key", websocket::write_key);
        }
        let Some(client) = self.world.clients.get(key) else { return };
        early_data::tell_member(client.is_early, head, input, &mut decision.request);
        trailers::announce(&server, head, &mut decision.request);
        let mut text = io.take_buffer();
        write_request_head(head, input, &decision.request, &mut text);
        let mut log_request = Vec::new();
        let log_format = self.world.log.format();
        if log_format != AccessFormat::Off {
            log_request = io.take_buffer();
            self.world.log.request_part(head, input, &mut log_request);
        }
        let keep_alive = head.keep_alive && !draining && client.leave_by_ms.is_none();
        let client_closes = !head.keep_alive;
        let (pool, wish, not_before_us, extras, ending) = match considered {
            None => (Rc::clone(&server.pool), Wish::Any, 0, None, None),
            Some((pool, considered)) => {
                let Considered { wish, not_before_us, extras, ending, .. } = considered;
                (pool, wish, not_before_us, extras, ending)
            }
        };
        let extras = self.world.keep_request_edits(&server, head, &decision.request, extras);
        let on_stream = if stream == 0 { None } else { self.take_stream(key, stream) };
        let exchange = self.begin(
            io,
            Begin {
                client: key,
                stream: on_stream,
                pool,
                wish,
                extras,
                codings,
                server,
                keep_alive,
                client_closes,
                pace: Pace::of_request(head, input),
                request: Request::new(text, head, input),
                log_format,
                log_request,
            },
        );
        if stream == 0 {
            if let Some(client) = self.world.clients.get_mut(key) {
                client.stage = Stage::Exchange(exchange);
            }
        } else {
            self.take_to_stream(exchange, head, input);
        }
        let ending = if is_misdirected { Some(Ending::Misdirected) } else { ending };
        if let Some(ending) = ending {
            if not_before_us > io.clock().now_us() {
                if let Some(exchange) =
                    self.exchanges.get_mut(exchange).and_then(Transaction::http_mut)
                {
                    exchange.ends.parked = Parked::Until(Some((ending, decision)));
                }
                return self.with(io, exchange, |it, at| it.hold_back(at, not_before_us));
            }
            self.with(io, exchange, |it, at| it.end_early(at, ending, &mut decision));
        }
        decision.clear();
        self.world.decision = Some(decision);
        if ending.is_some() {
            return;
        }
        if let (Framing::Length(length), Some(limit)) = (head.framing, body_size_max)
            && length > limit
        {
            return self.with(io, exchange, |it, at| it.respond(at, 413, Termination::ClientLimit));
        }
        if head.max_forwards == Some(0) {
            // Weir is the final recipient: it knows no methods to list, and reflects no request.
            let status = if head.method == Method::Trace { 501 } else { 204 };
            return self.with(io, exchange, |it, at| it.respond(at, status, Termination::Complete));
        }
        if head.framing.is_empty() {
            self.with(io, exchange, |it, at| it.ends.clear_client_deadline(at));
        } else {
            self.with(io, exchange, |it, at| it.await_client(at));
        }
        if not_before_us > io.clock().now_us() {
            return self.with(io, exchange, |it, at| it.hold_back(at, not_before_us));
        }
        // A head with a body waits for the first bytes of it, which are often here already.
        if self.with(io, exchange, |it, at| it.dispatch(at)) && head.framing.is_empty() {
            self.with(io, exchange, |it, at| it.send_request_head(at));
        }
    }
}

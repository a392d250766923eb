//! Events of client connections: what is to be done is decided by the state of the connection, and done here.

use weir_event_loop::EventLoop;
use weir_exchange::arena::ClientKey;
use weir_exchange::termination::Termination;
use weir_tls::TlsError;

use crate::worker::client::handler::ClientHandler;
use crate::worker::client::unserved_log::RefusalFacts;
use crate::worker::edge::WorkerEdge;
use crate::worker::router::Router;
use crate::worker::state::client_end::ClientEnd;
use crate::worker::state::client_step::{ClientNews, ClientStep};
use crate::worker::state::stage::Stage;

impl Router {
    /// Handles an event of a client connection.
    pub fn client_event(
        &mut self,
        io: &mut EventLoop,
        key: ClientKey,
        decide: impl FnOnce(&mut ClientHandler<'_>) -> ClientStep,
    ) {
        let Some(mut client) = self.world.client_handler(io, key) else { return };
        let step = decide(&mut client);
        self.client_step(io, key, step);
    }

    /// Does what is to be done after an event.
    pub fn client_step(&mut self, io: &mut EventLoop, key: ClientKey, step: ClientStep) {
        match step {
            ClientStep::Nothing => {}
            ClientStep::End(how) => WorkerEdge::of(io, &mut self.world).end_client(key, how),
            ClientStep::Next => self.client_next(io, key),
            ClientStep::Tell(exchange, news) => {
                self.with_any(io, exchange, |it, at| match news {
                    ClientNews::Took => it.client_took(at),
                    ClientNews::Finished => it.client_finished(at),
                    ClientNews::TimedOut => it.client_timed_out(at),
                });
            }
            ClientStep::Abandon(exchange, why, how) => {
                self.with_any(io, exchange, |it, at| it.abandon(at, why));
                WorkerEdge::of(io, &mut self.world).end_client(key, how);
            }
            ClientStep::EndStreams(why, how) => {
                if let Some(http2) = self.world.clients.http2_mut(key) {
                    for exchange in http2.streams.exchanges() {
                        self.with_any(io, exchange, |it, at| it.abandon(at, why));
                    }
                }
                WorkerEdge::of(io, &mut self.world).end_client(key, how);
            }
            ClientStep::StreamsDrained => {
                self.send_waiting(io, key, None);
                let Some(http2) = self.world.clients.http2_mut(key) else { return };
                for exchange in http2.streams.exchanges() {
                    let Some(it) = self.exchanges.get(exchange) else { continue };
                    let is_stopped =
                        it.ends().caller.stream().is_some() && it.ends().is_member_stopped;
                    if is_stopped || it.is_tunnel() {
                        self.with_any(io, exchange, |it, at| {
                            if !it.ends().is_client_behind(at) {
                                it.client_took(at);
                            }
                        });
                    }
                }
            }
            ClientStep::CheckStreams => {
                let now_ms = io.now_ms();
                let Some(http2) = self.world.clients.http2_mut(key) else { return };
                for (stream, exchange) in http2.streams.keys() {
                    let Some(client) = self.world.clients.all.get_mut(key) else { return };
                    if client.stream_deadline_ms(stream) <= now_ms {
                        self.with_any(io, exchange, |it, at| it.client_timed_out(at));
                    }
                    let Some(client) = self.world.clients.all.get_mut(key) else { return };
                    client.arm(io, client.stream_deadline_ms(stream));
                }
                let Some(client) = self.world.clients.all.get_mut(key) else { return };
                client.list_for_flush(&mut self.world.agenda, key);
            }
            ClientStep::Relay(pool, name) => self.begin_relay(io, key, pool, &name),
            ClientStep::ReadPreface => {
                self.client_input(io, key, b"");
            }
        }
    }
}

impl ClientHandler<'_> {
    /// All queued data was sent.
    pub fn drained(&mut self) -> ClientStep {
        match self.client.stage {
            Stage::Leaving | Stage::Preface | Stage::Hello | Stage::Handshake => {
                ClientStep::Nothing
            }
            Stage::Idle | Stage::Head => ClientStep::Next,
            Stage::Exchange(exchange) => ClientStep::Tell(exchange, ClientNews::Took),
            Stage::Streams => {
                self.io.sockets.resume(self.client.token);
                if let Some(http2) = &mut self.client.http2 {
                    http2.held.note_drained(self.io.now_ms());
                    self.client.list_for_flush(self.agenda, self.key);
                }
                ClientStep::StreamsDrained
            }
        }
    }

    /// The client has sent FIN.
    pub fn ended(&mut self) -> ClientStep {
        self.client.ended = true;
        ClientStep::End(match self.client.stage {
            Stage::Preface => self.preface_ended(),
            // A connection without any data is a port scan or a health check.
            Stage::Hello if !self.client.has_input() => ClientEnd::Close,
            Stage::Hello | Stage::Handshake => {
                self.handshake_failed("the client closed the connection", ClientEnd::Close)
            }
            // Pipelined data is processed first, after the queued responses were sent.
            Stage::Idle if self.client.has_input() && !self.client.is_early => {
                return ClientStep::Nothing;
            }
            Stage::Idle => ClientEnd::Orderly { may_send: false },
            Stage::Head => self.end_in_head(),
            Stage::Exchange(exchange) => return ClientStep::Tell(exchange, ClientNews::Finished),
            Stage::Streams => {
                return ClientStep::EndStreams(Termination::ClientAbort, ClientEnd::Close);
            }
            Stage::Leaving => return ClientStep::Nothing,
        })
    }

    /// The connection has failed.
    pub fn failed(&mut self) -> ClientStep {
        ClientStep::End(match self.client.stage {
            Stage::Exchange(exchange) => {
                return ClientStep::Abandon(exchange, Termination::ClientAbort, ClientEnd::Close);
            }
            Stage::Streams => {
                return ClientStep::EndStreams(Termination::ClientAbort, ClientEnd::Close);
            }
            Stage::Preface => self.preface_ended(),
            Stage::Hello | Stage::Handshake if self.client.hello_bytes > 0 => {
                self.handshake_failed("the client reset the connection", ClientEnd::Close)
            }
            Stage::Head => self.end_in_head(),
            Stage::Hello | Stage::Handshake | Stage::Idle | Stage::Leaving => ClientEnd::Close,
        })
    }

    /// The client or the network has caused a TLS error. An alert is already queued.
    pub fn insecure(&mut self, error: &TlsError) -> ClientStep {
        let (why, how) = (Termination::ClientMalformed, ClientEnd::ORDERLY);
        match self.client.stage {
            Stage::Hello | Stage::Handshake => {
                ClientStep::End(self.handshake_failed(&error.to_string(), how))
            }
            Stage::Exchange(exchange) => ClientStep::Abandon(exchange, why, how),
            Stage::Streams => ClientStep::EndStreams(why, how),
            Stage::Preface | Stage::Idle | Stage::Head => ClientStep::End(how),
            Stage::Leaving => ClientStep::Nothing,
        }
    }

    /// The deadline of the client has passed.
    pub fn timed_out(&mut self) -> ClientStep {
        ClientStep::End(match self.client.stage {
            Stage::Leaving => return ClientStep::Nothing,
            Stage::Streams => return self.http2_timed_out(),
            Stage::Exchange(exchange) => return ClientStep::Tell(exchange, ClientNews::TimedOut),
            Stage::Preface => self.refuse_relay(Termination::HelloTimeout),
            Stage::Hello | Stage::Handshake => {
                self.handshake_failed("not complete within handshake_timeout", ClientEnd::Close)
            }
            Stage::Idle | Stage::Head if self.io.sockets.queued(self.client.token) > 0 => {
                if self.client.is_taking(self.io) {
                    return ClientStep::Nothing;
                }
                self.client.server.counters.body_timeouts.add(1);
                ClientEnd::Close
            }
            Stage::Idle if self.client.leaves_idle(self.io) => ClientEnd::ORDERLY,
            Stage::Idle => return ClientStep::Nothing,
            Stage::Head => {
                self.client.server.counters.header_timeouts.add(1);
                self.refuse(408, Termination::HeaderTimeout, None, RefusalFacts::default())
            }
        })
    }
}

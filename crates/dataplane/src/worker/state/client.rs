//! State of a client connection.

use crate::worker::state::streams::ClientStreams;
use crate::worker::state::streams::Stream;
use std::net::SocketAddr;
use std::rc::Rc;

use weir_config::snapshot::ListenPoint;
use weir_event_loop::{EventLoop, Token};
use weir_exchange::arena::ExchangeKey;
use weir_exchange::local::client_tls::ClientTls;
use weir_exchange::local::key_limits::ConnectionPlaces;
use weir_exchange::local::table::LocalServer;
use weir_http::h1::{BodyDecoder, HeadScan};
use weir_http::h2::frame::PREFACE;

use crate::worker::state::client_http2::Http2;
use crate::worker::state::destination::Destination;
use crate::worker::state::handshake_place::HandshakePlace;
use crate::worker::state::stage::Stage;

/// A client connection.
pub struct Client {
    /// The socket.
    pub token: Token,
    /// Where it came from; `None`: a unix socket.
    pub peer: Option<SocketAddr>,
    /// The client's address from a trusted proxy's PROXY header.
    pub proxied: Option<SocketAddr>,
    /// It has to begin with a header of the PROXY protocol.
    pub awaits_proxy: bool,
    /// The results of its handshake; `None`: no handshake, or not complete yet.
    pub tls: Option<Rc<ClientTls>>,
    /// Its place in the count of concurrent handshakes.
    pub handshake: Option<HandshakePlace>,
    /// Its data comes before the end of the handshake, and may be a replay.
    pub is_early: bool,
    /// The requested server name, until the handshake is complete.
    pub server_name: Box<str>,
    /// The first message is parsed again when this many bytes have arrived.
    pub hello_bytes: usize,
    /// The virtual server, as of `generation`.
    pub server: Rc<LocalServer>,
    /// The table that `server` is from; an older one when its virtual server is in no table any more.
    pub generation: u64,
    /// Where it has connected to.
    pub destination: Destination,
    /// No virtual server serves it any more, and it is ended then.
    pub leave_by_ms: Option<u64>,
    /// It is among the connections of its virtual server; one that was refused is not.
    pub counted: bool,
    /// Places under limits.
    pub held: ConnectionPlaces,
    /// The stage of the connection.
    pub stage: Stage,
    /// The client will send nothing more.
    pub ended: bool,
    /// Its bytes are being processed: further input is handled there.
    pub working: bool,
    /// `input` is part of a head or trailer section; `scan` finds its end.
    pub collecting: bool,
    /// Bytes that could not be used yet: part of a head or trailer section, or pipelined data. Empty on an idle
    /// connection.
    pub input: Vec<u8>,
    pub scan: HeadScan,
    /// The body of the request under way.
    pub body: BodyDecoder,
    /// It may turn out to begin with the preface of HTTP/2.
    pub may_be_http2: bool,
    /// State of HTTP/2, if the client speaks it.
    pub http2: Option<Box<Http2>>,
}

impl Client {
    /// The client's address: the connection's peer, or the address from a trusted proxy.
    pub fn address(&self) -> Option<SocketAddr> {
        self.proxied.or(self.peer)
    }

    /// The listener. The virtual server that listens there serves the client.
    pub fn listen(&self) -> &ListenPoint {
        self.destination.listen()
    }

    /// Learns where it has connected to, if something that `server` decides may read that.
    #[inline]
    pub fn learn_destination(&mut self, io: &mut EventLoop, server: &LocalServer) {
        if server.traffic.is_some() && server.snapshot.slots.read_server() {
            self.destination.learn(io, self.token);
        }
    }

    /// The exchange under way.
    pub fn exchange(&self) -> Option<ExchangeKey> {
        match self.stage {
            Stage::Exchange(key) => Some(key),
            _ => None,
        }
    }

    /// More bytes are needed before parsing `input` again is worth it.
    pub fn collect(&mut self, scan: HeadScan, input: &[u8]) {
        self.scan = scan;
        self.scan.scan(input, &self.server.limits);
        self.collecting = true;
    }

    /// Whether a connection that may begin with the preface of HTTP/2 (RFC 9113 section 3.4) does; `None`: so far.
    pub fn speaks_http2(&mut self, input: &[u8]) -> Option<bool> {
        let length = input.len().min(PREFACE.len());
        if input[..length] != PREFACE[..length] {
            self.may_be_http2 = false;
            return Some(false);
        }
        if length < PREFACE.len() {
            self.stage = Stage::Head;
            return None;
        }
        self.may_be_http2 = false;
        Some(true)
    }

    /// The streams of an HTTP/2 connection.
    pub fn streams(&self) -> Option<&ClientStreams> {
        self.http2.as_ref().map(|http2| &http2.streams)
    }

    /// The streams, for changes.
    pub fn streams_mut(&mut self) -> Option<&mut ClientStreams> {
        self.http2.as_mut().map(|http2| &mut http2.streams)
    }

    /// Where something waits for the window of a stream: until when the client has time to open it.
    pub fn window_until_ms(&self, stream: &Stream, timeout_ms: u64) -> Option<u64> {
        let connection = &self.http2.as_ref()?.frames.connection;
        let id = stream.out.id;
        let is_shut = stream.out.is_behind() && connection.data_allowance(id) == 0;
        is_shut.then(|| connection.stalled_since_ms(id).map_or(0, |since_ms| since_ms + timeout_ms))
    }

    /// Whether it waits for the next request, of which nothing has come.
    pub fn is_waiting(&self) -> bool {
        self.stage == Stage::Idle && !self.ended && !self.has_input()
    }

    /// Whether bytes wait to be worked on.
    pub fn has_input(&self) -> bool {
        !self.input.is_empty()
    }

    /// The exchange has ended; the connection may continue.
    pub fn exchange_ended(&mut self) {
        if matches!(self.stage, Stage::Exchange(_)) {
            self.stage = Stage::Idle;
        }
    }
}

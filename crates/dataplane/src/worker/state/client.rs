//! The state of a client connection.

use std::net::SocketAddr;
use std::rc::Rc;

use weir_config::snapshot::ListenPoint;
use weir_connection::client::http1::Http1;
use weir_connection::client::http2::Http2;
use weir_connection::client::streams::{ClientStreams, Stream};
use weir_event_loop::{EventLoop, Token};
use weir_exchange::arena::ExchangeKey;
use weir_exchange::local::client_tls::ClientTls;
use weir_exchange::local::key_limits::ConnectionPlaces;
use weir_exchange::local::table::LocalServer;

use crate::worker::state::destination::Destination;
use crate::worker::state::handshake_place::HandshakePlace;
use crate::worker::state::stage::Stage;

/// A client connection.
pub struct Client {
    /// The socket.
    pub token: Token,
    /// The address of the peer; `None`: a unix socket.
    pub peer: Option<SocketAddr>,
    /// The client's address from a trusted proxy's PROXY header.
    pub proxied: Option<SocketAddr>,
    /// Whether the connection must begin with a PROXY header.
    pub awaits_proxy: bool,
    /// The results of the TLS handshake; `None`: no TLS, or the handshake is not complete.
    pub tls: Option<Rc<ClientTls>>,
    /// The place in the count of concurrent handshakes, until the handshake is complete.
    pub handshake: Option<HandshakePlace>,
    /// What its requests may need.
    pub special: Special,
    /// The requested server name, until the handshake is complete.
    pub server_name: Box<str>,
    /// The number of received bytes at which the ClientHello is parsed again.
    pub hello_bytes: usize,
    /// The virtual server in the table with number `generation`.
    pub server: Rc<LocalServer>,
    /// The number of the table that `server` belongs to. It is an older table if the latest one does not have the virtual
    /// server.
    pub generation: u64,
    /// The address that the client connected to.
    pub destination: Destination,
    /// The deadline of a client whose virtual server was removed, or that needs another handshake after a reload.
    pub leave_by_ms: Option<u64>,
    /// Whether the connection is counted for its virtual server. A refused connection is not.
    pub counted: bool,
    /// The places of the connection under limits.
    pub held: ConnectionPlaces,
    /// The stage of the connection.
    pub stage: Stage,
    /// Whether the client has sent FIN.
    pub ended: bool,
    /// The state of HTTP/1, and bytes that wait before it begins.
    pub http1: Http1,
    /// The state of HTTP/2, if the client uses it.
    pub http2: Option<Box<Http2>>,
}

/// Properties of a client connection that its requests need, if there are any.
#[derive(Debug, Clone, Copy, Default)]
pub struct Special {
    /// The handshake is not complete, so that received data is early data and may be a replay.
    pub is_early: bool,
}

impl Client {
    /// The client's address: the connection's peer, or the address from a trusted proxy.
    pub fn address(&self) -> Option<SocketAddr> {
        self.proxied.or(self.peer)
    }

    /// The listener's address. The virtual server that listens there serves the client.
    pub fn listen(&self) -> &ListenPoint {
        self.destination.listen()
    }

    /// Asks the kernel for the address that the client connected to, if rules of `server` may read it.
    #[inline]
    pub fn learn_destination(&mut self, io: &mut EventLoop, server: &LocalServer) {
        if server.traffic.is_some() && server.snapshot.slots.read_server() {
            self.destination.learn(io, self.token);
        }
    }

    /// The exchange on an HTTP/1 connection.
    pub fn exchange(&self) -> Option<ExchangeKey> {
        match self.stage {
            Stage::Exchange(key) => Some(key),
            _ => None,
        }
    }

    /// Whether a stream of an HTTP/2 connection is open.
    pub fn has_open(&self, stream: u32) -> bool {
        let http2 = self.http2.as_ref().filter(|_| self.stage == Stage::Streams);
        http2.is_some_and(|http2| http2.frames.connection.tag(stream).is_some())
    }

    /// The streams of an HTTP/2 connection.
    pub fn streams(&self) -> Option<&ClientStreams> {
        self.http2.as_ref().map(|http2| &http2.streams)
    }

    /// The streams of an HTTP/2 connection, mutable.
    pub fn streams_mut(&mut self) -> Option<&mut ClientStreams> {
        self.http2.as_mut().map(|http2| &mut http2.streams)
    }

    /// The time by which the client must open the window, if data of the stream waits for the window.
    pub fn window_until_ms(&self, stream: &Stream, timeout_ms: u64) -> Option<u64> {
        let connection = &self.http2.as_ref()?.frames.connection;
        let id = stream.out.id;
        let is_shut = stream.out.is_behind() && connection.data_allowance(id) == 0;
        is_shut.then(|| connection.stalled_since_ms(id).map_or(0, |since_ms| since_ms + timeout_ms))
    }

    /// Whether the connection is idle and has received nothing of the next request.
    pub fn is_waiting(&self) -> bool {
        self.stage == Stage::Idle && !self.ended && !self.has_input()
    }

    /// Whether there is unprocessed input.
    pub fn has_input(&self) -> bool {
        self.http1.has_input()
    }

    /// Marks the connection as idle after its exchange has ended.
    pub fn exchange_ended(&mut self) {
        if matches!(self.stage, Stage::Exchange(_)) {
            self.stage = Stage::Idle;
        }
    }
}

//! The state of a client connection.

use std::net::SocketAddr;
use std::rc::Rc;

use weir_config::snapshot::ListenPoint;
use weir_connection::client::http1::Http1;
use weir_connection::client::http2::Http2;
use weir_event_loop::{EventLoop, Token};
use weir_exchange::arena::{ClientKey, ExchangeKey, StreamKey};
use weir_exchange::local::client_tls::ClientTls;
use weir_exchange::local::key_limits::ConnectionPlaces;
use weir_exchange::local::table::LocalServer;

use crate::worker::agenda::{Agenda, Task};
use crate::worker::state::destination::Destination;
use crate::worker::state::handshake_place::HandshakePlace;
use crate::worker::state::http2_memory::Http2Memory;
use crate::worker::state::stage::Stage;
use crate::worker::wire::Socket;

/// A client is paused when more bytes than this are queued for it, because further requests would add to them.
const UNTAKEN_BYTES_MAX: usize = 256 * 1024;

/// A client connection.
pub struct Client {
    /// The socket.
    pub token: Token,
    /// The address of the peer; `None`: a unix socket.
    pub peer: Option<SocketAddr>,
    /// The client's address from a trusted proxy's PROXY header.
    pub proxied: Option<SocketAddr>,
    /// The results of the TLS handshake; `None`: no TLS, or the handshake is not complete.
    pub tls: Option<Rc<ClientTls>>,
    /// The place in the count of concurrent handshakes, until the handshake is complete.
    pub handshake: Option<HandshakePlace>,
    /// The handshake is not complete, so that received data is early data and may be a replay.
    pub is_early: bool,
    /// The requested server name, until the handshake is complete.
    pub server_name: Box<str>,
    /// The number of received bytes at which the ClientHello is parsed again.
    pub hello_bytes: u32,
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

    /// Whether the connection is idle and has received nothing of the next request.
    pub fn is_waiting(&self) -> bool {
        self.stage == Stage::Idle && !self.ended && !self.has_input()
    }

    /// Whether there is unprocessed input.
    pub fn has_input(&self) -> bool {
        self.http1.has_input()
    }

    /// Begins HTTP/2. `is_draining`: whether the process is to end.
    pub fn begin_http2(
        &mut self,
        (io, agenda): (&mut EventLoop, &mut Agenda),
        key: ClientKey,
        is_draining: bool,
    ) {
        let server = &self.server;
        server.counters.http2_connections.add(1);
        self.http2 = Some(Box::new(Http2::new(server.http2_limits, io.now_ms())));
        self.stage = Stage::Streams;
        let until_ms = io.now_ms() + server.http.header_timeout_ms;
        io.clear_deadline(self.token);
        self.arm(io, until_ms);
        self.list_for_flush(agenda, key);
        if is_draining || self.leave_by_ms.is_some() {
            self.announce_end((io, agenda), key);
        }
    }

    /// Announces the end of an HTTP/2 connection (GOAWAY). Open requests are still answered.
    pub fn announce_end(&mut self, (io, agenda): (&mut EventLoop, &mut Agenda), key: ClientKey) {
        let Some(http2) = &mut self.http2 else { return };
        if let Some(until_ms) = http2.announce_end(io.now_ms()) {
            self.arm(io, until_ms);
            self.list_for_flush(agenda, key);
        }
    }

    /// Sets the timer of an HTTP/2 connection to `at_ms`, unless it is set to an earlier time.
    pub fn arm(&mut self, io: &mut EventLoop, at_ms: u64) {
        if let Some(http2) = &mut self.http2
            && at_ms < http2.timer_ms
            && self.stage == Stage::Streams
        {
            http2.timer_ms = at_ms;
            io.set_deadline(self.token, at_ms);
        }
    }

    /// Has the frames of an HTTP/2 connection sent at the end of the turn.
    pub fn list_for_flush(&mut self, agenda: &mut Agenda, key: ClientKey) {
        if let Some(http2) = &mut self.http2
            && !std::mem::replace(&mut http2.is_listed, true)
        {
            agenda.add(Task::FlushClient(key));
        }
    }

    /// Sends the collected frames of an HTTP/2 connection now if there are many, and otherwise at the end of the turn.
    pub fn flush_soon(
        &mut self,
        (io, agenda): (&mut EventLoop, &mut Agenda),
        key: ClientKey,
        memory: &mut Http2Memory,
    ) {
        if self.http2.as_ref().is_some_and(|http2| http2.frames.is_much()) {
            self.flush((io, agenda), memory);
        } else {
            self.bound_untaken_data(io);
            self.list_for_flush(agenda, key);
        }
    }

    /// Sends the collected frames of an HTTP/2 connection, and counts what it holds in memory.
    pub fn flush(&mut self, (io, agenda): (&mut EventLoop, &mut Agenda), memory: &mut Http2Memory) {
        let Some(http2) = &mut self.http2 else { return };
        http2.frames.flush(&mut Socket::of(io, self.token));
        self.bound_untaken_data(io);
        let Some(http2) = &mut self.http2 else { return };
        let bytes = http2.memory_bytes(io.sockets.queued(self.token));
        memory.count(agenda, &mut http2.held, bytes);
    }

    /// Sets a deadline for a client with queued data, and pauses the client if the amount is large.
    fn bound_untaken_data(&mut self, io: &mut EventLoop) {
        let queued = io.sockets.queued(self.token);
        if queued > 0 {
            let until_ms = io.now_ms() + self.server.http.body_timeout_ms;
            if queued > UNTAKEN_BYTES_MAX {
                io.sockets.pause(self.token);
            }
            self.arm(io, until_ms);
        }
    }

    /// Whether the time is over in which an HTTP/2 client must take some of the queued data. If not, its timer is set again.
    pub fn stops_taking(&mut self, io: &mut EventLoop) -> bool {
        let Some(http2) = &mut self.http2 else { return false };
        http2.timer_ms = u64::MAX;
        if io.sockets.queued(self.token) == 0 {
            return false;
        }
        let until_ms = io.patience_until_ms(self.token, self.server.http.body_timeout_ms);
        let is_late = until_ms <= io.now_ms();
        if is_late {
            self.server.counters.body_timeouts.add(1);
        } else {
            self.arm(io, until_ms);
        }
        is_late
    }

    /// The deadline of the client for a stream; `u64::MAX`: none.
    pub fn stream_deadline_ms(&self, stream: StreamKey) -> u64 {
        let http2 = self.http2.as_ref();
        let stream = http2.and_then(|http2| http2.streams.get(stream));
        stream.and_then(|stream| stream.deadline_ms).unwrap_or(u64::MAX)
    }

    /// Whether an HTTP/1 client with queued data has recently received some of it. If so, its deadline is extended.
    pub fn is_taking(&self, io: &mut EventLoop) -> bool {
        let until_ms = io.patience_until_ms(self.token, self.server.http.body_timeout_ms);
        let is_taking = until_ms > io.now_ms();
        if is_taking {
            io.set_deadline(self.token, until_ms);
        }
        is_taking
    }

    /// Whether a connection between requests ends now. If a request has arrived, it is served first.
    pub fn leaves_idle(&self, io: &mut EventLoop) -> bool {
        let has_arrived = io.sockets.has_arrived(self.token);
        if has_arrived {
            io.set_deadline(self.token, io.now_ms() + self.server.http.header_timeout_ms);
        }
        !has_arrived
    }

    /// Marks the connection as idle after its exchange has ended.
    pub fn exchange_ended(&mut self) {
        if matches!(self.stage, Stage::Exchange(_)) {
            self.stage = Stage::Idle;
        }
    }
}

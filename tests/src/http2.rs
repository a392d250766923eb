//! HTTP/2 without TLS for the harness, in either role, with the frames of a scenario.
//!
//! A [`Peer`] answers SETTINGS and PING, returns the window of received data unless the scenario disables that, and
//! records the frames of each stream. The scenario does everything else.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::hpack::{Decoder, Line};

pub use weir_testing::frame::{Frame, PREFACE, code, flag, kind, setting};

/// Initial window of a stream and of the connection.
const WINDOW_DEFAULT: i64 = 65_535;
/// Largest payload that every peer accepts.
const FRAME_BYTES_MAX: usize = 16_384;

/// The received frames of a stream.
#[derive(Debug, Clone, Default)]
pub struct Message {
    /// Pseudo-header fields and fields, as text.
    pub head: Vec<(String, String)>,
    /// The received data that the scenario has not taken yet.
    pub body: Vec<u8>,
    /// Trailers.
    pub trailers: Vec<(String, String)>,
    /// Heads of interim responses.
    pub interim: Vec<Vec<(String, String)>>,
    /// Whether the peer has ended the stream.
    pub ended: bool,
    /// The error code of the peer's RST_STREAM.
    pub reset: Option<u32>,
    /// Number of received bytes for which no window update was sent.
    pub withheld: u32,
}

impl Message {
    /// The value of the first header of this name.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.head.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    /// The status of a response; 0 if it has none.
    pub fn status(&self) -> u16 {
        self.field(":status").and_then(|status| status.parse().ok()).unwrap_or(0)
    }

    /// The path of a request.
    pub fn path(&self) -> &str {
        self.field(":path").unwrap_or_default()
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Panics unless this is a complete response with this status.
    #[track_caller]
    pub fn assert_status(&self, status: u16) -> &Self {
        assert_eq!(self.status(), status, "{self:?}");
        assert!(self.ended, "cut short: {self:?}");
        self
    }
}

/// One end of a connection.
#[derive(Debug)]
pub struct Peer {
    stream: TcpStream,
    buffer: Vec<u8>,
    decoder: Decoder,
    /// Received messages, by stream.
    pub streams: BTreeMap<u32, Message>,
    /// The last stream and the error code of each GOAWAY.
    pub goaways: Vec<(u32, u32)>,
    /// The peer's settings.
    pub settings: BTreeMap<u16, u32>,
    /// Number of answered PINGs.
    pub pongs: usize,
    /// Number of received pings.
    pub pings: usize,
    /// Whether the peer has acknowledged settings.
    pub acknowledged: bool,
    /// Whether the peer has closed the connection, cleanly or not.
    pub closed: bool,
    /// Whether window updates for received data are withheld.
    pub holds_windows: bool,
    /// Whether received data is only counted in `received`.
    pub drops_data: bool,
    /// Number of received data bytes.
    pub received: u64,
    is_server: bool,
    next_stream: u32,
    window: i64,
    windows: BTreeMap<u32, i64>,
    /// Streams in the order in which their heads arrived.
    arrived: VecDeque<u32>,
    /// Stream and length of each received DATA frame, in order.
    pub data_order: Vec<(u32, usize)>,
}

impl Peer {
    /// A client with default settings.
    #[track_caller]
    pub fn connect(address: SocketAddr) -> Self {
        Self::connect_with(address, &[])
    }

    /// A client with these settings.
    #[track_caller]
    pub fn connect_with(address: SocketAddr, settings: &[(u16, u32)]) -> Self {
        Self::try_connect(address, settings).unwrap_or_else(|error| panic!("{address}: {error}"))
    }

    /// Connects as a client with these settings; for scenarios that expect a possible refusal.
    pub fn try_connect(address: SocketAddr, settings: &[(u16, u32)]) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, crate::STEP_TIMEOUT)?;
        let mut peer = Self::over(stream, false)?;
        let mut hello = PREFACE.to_vec();
        Frame::settings(settings).write(&mut hello);
        peer.stream.write_all(&hello)?;
        Ok(peer)
    }

    fn over(stream: TcpStream, is_server: bool) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(crate::STEP_TIMEOUT))?;
        stream.set_write_timeout(Some(crate::STEP_TIMEOUT))?;
        Ok(Self {
            stream,
            buffer: Vec::new(),
            decoder: Decoder::default(),
            streams: BTreeMap::new(),
            goaways: Vec::new(),
            settings: BTreeMap::new(),
            pongs: 0,
            pings: 0,
            acknowledged: false,
            closed: false,
            holds_windows: false,
            drops_data: false,
            received: 0,
            is_server,
            next_stream: 1,
            window: WINDOW_DEFAULT,
            windows: BTreeMap::new(),
            arrived: VecDeque::new(),
            data_order: Vec::new(),
        })
    }

    /// The socket.
    pub fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Sends raw bytes.
    pub fn send_bytes(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref())
    }

    /// Sends a frame.
    #[track_caller]
    pub fn send(&mut self, frame: &Frame) -> &mut Self {
        self.send_bytes(frame.bytes()).expect("sending a frame");
        self
    }

    /// Allocates the id of the next stream.
    pub fn new_stream(&mut self) -> u32 {
        self.next_stream += 2;
        self.next_stream - 2
    }

    /// Sends a request's head, with these headers after the pseudo-header fields.
    #[track_caller]
    pub fn request(&mut self, method: &str, path: &str, fields: &[(&str, &str)], end: bool) -> u32 {
        let mut lines =
            vec![(":method", method), (":scheme", "http"), (":path", path), (":authority", "test")];
        lines.extend_from_slice(fields);
        self.open(&lines, end)
    }

    /// Opens a stream with exactly these header lines.
    #[track_caller]
    pub fn open(&mut self, lines: &[(&str, &str)], end: bool) -> u32 {
        let stream = self.new_stream();
        self.headers(stream, lines, end);
        stream
    }

    /// Sends a head, or trailers.
    #[track_caller]
    pub fn headers(&mut self, stream: u32, lines: &[(&str, &str)], end: bool) -> &mut Self {
        let lines: Vec<(&[u8], &[u8])> =
            lines.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
        self.send(&Frame::headers(stream, &lines, end))
    }

    /// Sends a GET request and returns its response; panics if that is incomplete.
    #[track_caller]
    pub fn get(&mut self, path: &str) -> Message {
        let stream = self.request("GET", path, &[], true);
        let response = self.response(stream);
        assert!(response.ended, "cut short: {response:?}");
        response
    }

    /// Sends a POST request and returns its response.
    #[track_caller]
    pub fn post(&mut self, path: &str, body: &[u8]) -> Message {
        let stream = self.request("POST", path, &[], false);
        self.body(stream, body, true).expect("sending a body");
        self.response(stream)
    }

    /// Sends one DATA frame without regard to the windows.
    #[track_caller]
    pub fn data(&mut self, stream: u32, data: &[u8], end: bool) -> &mut Self {
        self.spend(stream, data.len());
        let flags = if end { flag::END_STREAM } else { 0 };
        self.send(&Frame::new(kind::DATA, flags, stream, data))
    }

    fn window_initial(&self) -> i64 {
        let setting = self.settings.get(&setting::INITIAL_WINDOW_SIZE);
        setting.map_or(WINDOW_DEFAULT, |value| i64::from(*value))
    }

    /// Counts this many data bytes as sent on a stream.
    pub fn spend(&mut self, stream: u32, length: usize) {
        let initial = self.window_initial();
        self.window -= length as i64;
        *self.windows.entry(stream).or_insert(initial) -= length as i64;
    }

    /// Number of bytes that the connection's window allows.
    pub fn allowance_of_connection(&self) -> usize {
        usize::try_from(self.window).unwrap_or(0)
    }

    /// Number of bytes that the windows of stream and connection allow.
    pub fn allowance(&self, stream: u32) -> usize {
        let of_stream = self.windows.get(&stream).copied().unwrap_or(self.window_initial());
        usize::try_from(of_stream.min(self.window)).unwrap_or(0)
    }

    /// Sends data as far as the windows allow, and reads meanwhile. An error if the stream or the connection ends.
    pub fn body(&mut self, stream: u32, mut data: &[u8], end: bool) -> io::Result<()> {
        loop {
            let length = self.allowance(stream).min(data.len()).min(FRAME_BYTES_MAX);
            if length > 0 || data.is_empty() {
                let (part, rest) = data.split_at(length);
                let is_last = rest.is_empty();
                self.spend(stream, length);
                if length > 0 || end {
                    let flags = if is_last && end { flag::END_STREAM } else { 0 };
                    self.send_bytes(Frame::new(kind::DATA, flags, stream, part).bytes())?;
                }
                if is_last {
                    return Ok(());
                }
                data = rest;
                continue;
            }
            let is_reset = self.streams.get(&stream).is_some_and(|it| it.reset.is_some());
            if is_reset || !self.pump() {
                return Err(io::Error::other("the stream has ended"));
            }
        }
    }

    /// The next received frame, without answering it; `None` if the peer has closed.
    pub fn frame(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.buffered_frame() {
                return Some(frame);
            }
            if self.closed {
                return None;
            }
            let mut bytes = vec![0; 64 * 1024];
            match self.stream.read(&mut bytes) {
                Ok(0) => self.closed = true,
                Ok(count) => self.buffer.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    panic!("nothing came for {:?}", crate::STEP_TIMEOUT)
                }
                Err(_) => self.closed = true,
            }
        }
    }

    fn buffered_frame(&mut self) -> Option<Frame> {
        let header = self.buffer.get(..9)?;
        let length = u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize;
        let payload = self.buffer.get(9..9 + length)?.to_vec();
        let stream = u32::from_be_bytes([header[5] & 0x7f, header[6], header[7], header[8]]);
        let frame = Frame { kind: header[3], flags: header[4], stream, payload };
        self.buffer.drain(..9 + length);
        Some(frame)
    }

    /// Reads one frame and answers it if necessary. Returns false if the peer has closed.
    pub fn pump(&mut self) -> bool {
        let Some(frame) = self.frame() else { return false };
        self.heed(frame);
        true
    }

    /// Reads for this time, or until the peer closes.
    pub fn pump_for(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while !self.closed {
            if let Some(frame) = self.buffered_frame() {
                self.heed(frame);
                continue;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let _ = self.stream.set_read_timeout(Some(left));
            let mut bytes = vec![0; 64 * 1024];
            match self.stream.read(&mut bytes) {
                Ok(0) => self.closed = true,
                Ok(count) => self.buffer.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => self.closed = true,
            }
        }
        let _ = self.stream.set_read_timeout(Some(crate::STEP_TIMEOUT));
    }

    /// Takes the data received on a stream since the last call. Also returns whether the stream has ended.
    pub fn take_body(&mut self, stream: u32) -> (Vec<u8>, bool) {
        let message = self.streams.get_mut(&stream);
        message.map_or((Vec::new(), false), |it| (std::mem::take(&mut it.body), it.ended))
    }

    /// Returns all withheld windows. From then on, windows are returned at once.
    pub fn release_windows(&mut self) {
        self.holds_windows = false;
        let held: Vec<(u32, u32)> = self
            .streams
            .iter_mut()
            .map(|(stream, message)| (*stream, std::mem::take(&mut message.withheld)))
            .collect();
        for (stream, bytes) in held.into_iter().filter(|(_, bytes)| *bytes > 0) {
            self.answer(&Frame::window_update(0, bytes));
            self.answer(&Frame::window_update(stream, bytes));
        }
    }

    /// Reads until the condition holds; panics if the peer closes before.
    #[track_caller]
    pub fn pump_until(&mut self, what: &str, mut condition: impl FnMut(&Self) -> bool) {
        while !condition(self) {
            assert!(self.pump(), "closed before {what}: {:?}", self.goaways);
        }
    }

    fn heed(&mut self, frame: Frame) {
        match frame.kind {
            kind::HEADERS => self.heed_headers(frame),
            kind::DATA => self.heed_data(&frame),
            kind::RST_STREAM => {
                self.streams.entry(frame.stream).or_default().reset = Some(frame.word(0));
            }
            kind::SETTINGS if frame.flags & flag::ACK == 0 => {
                for setting in frame.payload.chunks_exact(6) {
                    let id = u16::from_be_bytes([setting[0], setting[1]]);
                    let value =
                        u32::from_be_bytes([setting[2], setting[3], setting[4], setting[5]]);
                    if id == setting::INITIAL_WINDOW_SIZE {
                        let more = i64::from(value) - self.window_initial();
                        self.windows.values_mut().for_each(|window| *window += more);
                    }
                    self.settings.insert(id, value);
                }
                self.answer(&Frame::new(kind::SETTINGS, flag::ACK, 0, []));
            }
            kind::SETTINGS => self.acknowledged = true,
            kind::PING if frame.flags & flag::ACK == 0 => {
                self.pings += 1;
                self.answer(&Frame::new(kind::PING, flag::ACK, 0, frame.payload));
            }
            kind::PING => self.pongs += 1,
            kind::GOAWAY => self.goaways.push((frame.word(0), frame.word(4))),
            kind::WINDOW_UPDATE if frame.stream == 0 => self.window += i64::from(frame.word(0)),
            kind::WINDOW_UPDATE => {
                let initial = self.window_initial();
                *self.windows.entry(frame.stream).or_insert(initial) += i64::from(frame.word(0));
            }
            _ => {}
        }
    }

    /// Sends a frame; the peer may have closed meanwhile.
    fn answer(&mut self, frame: &Frame) {
        let _ = self.stream.write_all(&frame.bytes());
    }

    fn heed_headers(&mut self, frame: Frame) {
        let mut block = match frame.flags & flag::PRIORITY {
            0 => frame.payload,
            _ => frame.payload[5..].to_vec(),
        };
        let mut flags = frame.flags;
        while flags & flag::END_HEADERS == 0 {
            let Some(more) = self.frame() else { return };
            assert_eq!((more.kind, more.stream), (kind::CONTINUATION, frame.stream));
            block.extend_from_slice(&more.payload);
            flags |= more.flags;
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let read: Vec<Line> = self.decoder.read(&block);
        let lines: Vec<_> = read.iter().map(|(name, value)| (text(name), text(value))).collect();
        let message = self.streams.entry(frame.stream).or_default();
        let is_interim = message.status() / 100 == 1;
        if message.head.is_empty() || is_interim {
            if is_interim {
                message.interim.push(std::mem::take(&mut message.head));
            }
            message.head = lines;
            if self.is_server {
                self.arrived.push_back(frame.stream);
            }
        } else {
            message.trailers = lines;
        }
        message.ended |= frame.flags & flag::END_STREAM != 0;
    }

    fn heed_data(&mut self, frame: &Frame) {
        let length = frame.payload.len() as u32;
        self.received += u64::from(length);
        self.data_order.push((frame.stream, frame.payload.len()));
        let message = self.streams.entry(frame.stream).or_default();
        if !self.drops_data {
            message.body.extend_from_slice(&frame.payload);
        }
        message.ended |= frame.flags & flag::END_STREAM != 0;
        if self.holds_windows {
            message.withheld += length;
        } else if length > 0 {
            let mut updates = Frame::window_update(0, length).bytes();
            if !message.ended {
                Frame::window_update(frame.stream, length).write(&mut updates);
            }
            let _ = self.stream.write_all(&updates);
        }
    }

    /// Waits until a stream's message is complete or reset, or the peer has closed. Returns the message.
    pub fn response(&mut self, stream: u32) -> Message {
        loop {
            if let Some(message) = self.streams.get(&stream)
                && (message.ended || message.reset.is_some())
            {
                return message.clone();
            }
            if !self.pump() {
                return self.streams.get(&stream).cloned().unwrap_or_default();
            }
        }
    }

    /// Waits until the head of a stream's message has arrived. Returns the message.
    #[track_caller]
    pub fn response_head(&mut self, stream: u32) -> Message {
        self.pump_until("a head", |peer| {
            peer.streams.get(&stream).is_some_and(|it| it.status() >= 200 || it.reset.is_some())
        });
        self.streams[&stream].clone()
    }

    /// Waits for the answer to a PING: the peer has then processed all earlier frames.
    #[track_caller]
    pub fn settle(&mut self) {
        let before = self.pongs;
        self.send(&Frame::new(kind::PING, 0, 0, *b"settled?"));
        self.pump_until("the answer to a PING", |peer| peer.pongs > before);
    }

    /// Reads to the end. Returns the last GOAWAY.
    pub fn rest(&mut self) -> Option<(u32, u32)> {
        while self.pump() {}
        self.goaways.last().copied()
    }

    /// As a server, waits for the head of the next request. Returns its stream.
    pub fn next_request(&mut self) -> Option<u32> {
        while self.arrived.is_empty() {
            if !self.pump() {
                return None;
            }
        }
        self.arrived.pop_front()
    }

    /// As a server, the stream of the next request whose head has already arrived.
    pub fn try_next_request(&mut self) -> Option<u32> {
        self.arrived.pop_front()
    }

    /// Responds with a body, as far as the windows allow without waiting.
    pub fn answer_with(&mut self, stream: u32, body: &[u8]) -> io::Result<()> {
        let length = body.len().to_string();
        let lines: [(&[u8], &[u8]); 2] =
            [(b":status", b"200"), (b"content-length", length.as_bytes())];
        self.send_bytes(Frame::headers(stream, &lines, body.is_empty()).bytes())?;
        if body.is_empty() { Ok(()) } else { self.body(stream, body, true) }
    }
}

/// An HTTP/2 member scripted by a scenario, with one thread per connection.
#[derive(Debug)]
pub struct Http2Member {
    address: SocketAddr,
    seen: Arc<Seen>,
    acceptor: Option<thread::JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Seen {
    connections: AtomicUsize,
    open: AtomicUsize,
    stopping: AtomicBool,
    sockets: Mutex<Vec<TcpStream>>,
}

impl Http2Member {
    /// A member with these settings. The handler is called for each connection after the preface, with the connection's
    /// number.
    pub fn new(
        settings: &[(u16, u32)],
        handler: impl Fn(&mut Peer, usize) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self::greeting(Frame::settings(settings).bytes(), handler)
    }

    /// A member that does not send SETTINGS by itself: the handler sends them.
    pub fn without_settings(
        handler: impl Fn(&mut Peer, usize) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self::greeting(Vec::new(), handler)
    }

    fn greeting(
        hello: Vec<u8>,
        handler: impl Fn(&mut Peer, usize) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a listener");
        let address = listener.local_addr().expect("the listener's address");
        let seen = Arc::new(Seen::default());
        let (shared, handler) = (Arc::clone(&seen), Arc::new(handler));
        let acceptor = thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.stopping.load(Ordering::Acquire) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let number = shared.connections.fetch_add(1, Ordering::AcqRel);
                shared.open.fetch_add(1, Ordering::AcqRel);
                if let Ok(second) = stream.try_clone() {
                    let mut sockets = shared.sockets.lock().unwrap_or_else(PoisonError::into_inner);
                    sockets.push(second);
                }
                let (shared, handler, hello) =
                    (Arc::clone(&shared), Arc::clone(&handler), hello.clone());
                thread::spawn(move || {
                    // An error means that the proxy closed. The scenario checks the recorded frames.
                    let _ = serve(stream, &hello, number, &*handler);
                    shared.open.fetch_sub(1, Ordering::AcqRel);
                });
            }
        });
        Self { address, seen, acceptor: Some(acceptor) }
    }

    /// A member that responds to each complete request with the number of its connection, the method and the path.
    pub fn telling(settings: &[(u16, u32)]) -> Self {
        Self::new(settings, |peer, number| {
            while let Some(stream) = peer.next_request() {
                let request = peer.response(stream);
                if request.ended {
                    let method = request.field(":method").unwrap_or_default();
                    peer.answer_with(
                        stream,
                        format!("{number} {method} {}", request.path()).as_bytes(),
                    )?;
                }
            }
            Ok(())
        })
    }

    /// The address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Number of connections so far.
    pub fn connection_count(&self) -> usize {
        self.seen.connections.load(Ordering::Acquire)
    }

    /// Number of open connections.
    pub fn open_connections(&self) -> usize {
        self.seen.open.load(Ordering::Acquire)
    }
}

impl Drop for Http2Member {
    fn drop(&mut self) {
        self.seen.stopping.store(true, Ordering::Release);
        if let Some(acceptor) = self.acceptor.take() {
            // Wakes up the accepting thread.
            let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
            let _ = acceptor.join();
        }
        for socket in self.seen.sockets.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

fn serve(
    stream: TcpStream,
    hello: &[u8],
    number: usize,
    handler: &(impl Fn(&mut Peer, usize) -> io::Result<()> + ?Sized),
) -> io::Result<()> {
    let mut peer = Peer::over(stream, true)?;
    let mut preface = [0; PREFACE.len()];
    peer.stream.read_exact(&mut preface)?;
    assert_eq!(preface, PREFACE);
    peer.stream.write_all(hello)?;
    let result = handler(&mut peer, number);
    let _ = peer.stream.shutdown(Shutdown::Both);
    result
}

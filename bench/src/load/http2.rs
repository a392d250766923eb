//! HTTP/2 of one client connection, without the socket: requests go onto streams, and responses come from them.

use weir_http::flaws::Flaws;
use weir_http::h2::hpack::HeaderBlock;
use weir_http::h2::message::{AnsweredRequest, read_response};
use weir_http::h2::{Answer as Expected, Connection, Event, HeadersKind, Limits, OpenError};
use weir_http::message::{Method, ResponseHead};

use super::answer::{Answer, FirstSeen};
use super::fault::Fault;
use super::plan::{Expectation, RequestLines};
use super::under_way::Request;

/// Flow control windows, large enough that they never stop a server.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 64 << 20;

/// One connection.
#[derive(Debug)]
pub struct Http2Client {
    connection: Connection,
    /// Ids of the open streams; `streams` has their requests in the same order.
    ids: Vec<u32>,
    streams: Vec<Stream>,
    /// Outgoing data.
    pub out: Vec<u8>,
    /// Whether the connection is in the engine's list of connections with output.
    pub is_listed: bool,
}

/// An open request.
#[derive(Debug)]
pub struct Stream {
    /// The request.
    pub request: Request,
    /// The received part of the response.
    pub answer: Answer,
    is_head: bool,
}

/// The result of received bytes.
#[derive(Debug)]
pub enum ReceiveResult {
    /// All input is processed.
    Nothing,
    /// An event that completes no response.
    Part,
    /// A response is complete.
    Done(Box<Stream>),
    /// A request ended without a complete response.
    Lost(Box<Stream>, Fault),
}

/// Scratch space for response heads, shared by all connections.
#[derive(Debug)]
pub struct Scratch {
    block: HeaderBlock,
    head: ResponseHead,
}

impl Scratch {
    /// Empty.
    pub fn new() -> Self {
        Self { block: HeaderBlock::new(), head: ResponseHead::new() }
    }
}

impl Http2Client {
    /// A connection with at most this many concurrent streams.
    pub fn new(streams: usize) -> Self {
        let limits = Limits {
            streams_max: streams as u32,
            stream_window_size: STREAM_WINDOW_BYTES,
            connection_window_size: CONNECTION_WINDOW_BYTES,
            ..Limits::DEFAULT
        };
        let (mut connection, mut out) = (Connection::client(limits), Vec::new());
        connection.start(&mut out);
        Self { connection, ids: Vec::new(), streams: Vec::new(), out, is_listed: false }
    }

    /// Number of open requests.
    pub fn stream_count(&self) -> usize {
        self.ids.len()
    }

    /// Whether the connection accepts no more requests.
    pub fn is_closing(&self) -> bool {
        self.connection.is_closing()
    }

    /// Sends a request.
    pub fn send(
        &mut self,
        lines: &RequestLines,
        scheme: &[u8],
        request: Request,
        (expect, first): (&Expectation, &FirstSeen),
    ) -> Result<(), OpenError> {
        let is_head = lines.method == b"HEAD";
        let expected = if is_head { Expected::HeadOnly } else { Expected::Usual };
        let id = self.connection.open_stream(expected, true, &mut self.out, |block| {
            block.field(b":method", &lines.method);
            block.field(b":scheme", scheme);
            block.field(b":authority", &lines.authority);
            block.field(b":path", &lines.path);
            lines.fields.iter().for_each(|(name, value)| block.field(name, value));
        })?;
        let mut answer = Answer::default();
        answer.restart(expect, first);
        self.ids.push(id);
        self.streams.push(Stream { request, answer, is_head });
        Ok(())
    }

    /// Processes `input[*at..]` up to the first event and moves `at` past it. An error ends the connection.
    pub fn receive(
        &mut self,
        input: &[u8],
        at: &mut usize,
        now_ms: u64,
        scratch: &mut Scratch,
    ) -> Result<ReceiveResult, Fault> {
        let rest = &input[*at..];
        let received = self
            .connection
            .receive(rest, now_ms, &mut scratch.block, &mut self.out)
            .map_err(Fault::Http2)?;
        *at += received.consumed;
        Ok(match received.event {
            Event::NeedMore => ReceiveResult::Nothing,
            Event::Headers { kind: HeadersKind::Response, stream, end_stream, .. } => {
                self.take_head(stream, end_stream, scratch)
            }
            Event::Headers { stream, end_stream: true, .. } => self.done(stream),
            Event::Data { stream, start, end, end_stream, .. } => {
                let place = self.place(stream);
                if let Some(stream) = place.map(|place| &mut self.streams[place]) {
                    stream.answer.data(&rest[start..end]);
                }
                self.connection.release(stream, (end - start) as u32, &mut self.out);
                if end_stream { self.done(stream) } else { ReceiveResult::Part }
            }
            Event::StreamReset { stream, code, .. } => self.lost(stream, Fault::StreamReset(code)),
            _ => ReceiveResult::Part,
        })
    }

    /// After the server announced the end of the connection: a request that the server will not process.
    pub fn abandoned(&mut self) -> Option<Stream> {
        if !self.is_closing() {
            return None;
        }
        let connection = &self.connection;
        let place = self.ids.iter().position(|id| connection.tag(*id).is_none())?;
        Some(self.take(place))
    }

    /// Any open request.
    pub fn take_any(&mut self) -> Option<Stream> {
        let last = self.ids.len().checked_sub(1)?;
        Some(self.take(last))
    }

    fn take_head(&mut self, stream: u32, end_stream: bool, scratch: &mut Scratch) -> ReceiveResult {
        let Some(place) = self.place(stream) else { return ReceiveResult::Part };
        let Scratch { block, head } = scratch;
        let method = if self.streams[place].is_head { Method::Head } else { Method::Get };
        let answered = AnsweredRequest { method, protocol: None };
        if let Err(error) = read_response(block, end_stream, answered, Flaws::NONE, head) {
            return self.lost(stream, Fault::StreamHead(error));
        }
        self.streams[place].answer.begin(head, block.text());
        if end_stream { self.done(stream) } else { ReceiveResult::Part }
    }

    fn done(&mut self, stream: u32) -> ReceiveResult {
        self.place(stream)
            .map_or(ReceiveResult::Part, |place| ReceiveResult::Done(Box::new(self.take(place))))
    }

    fn lost(&mut self, stream: u32, fault: Fault) -> ReceiveResult {
        self.place(stream).map_or(ReceiveResult::Part, |place| {
            ReceiveResult::Lost(Box::new(self.take(place)), fault)
        })
    }

    fn place(&self, stream: u32) -> Option<usize> {
        self.ids.iter().position(|id| *id == stream)
    }

    fn take(&mut self, place: usize) -> Stream {
        self.ids.swap_remove(place);
        self.streams.swap_remove(place)
    }
}

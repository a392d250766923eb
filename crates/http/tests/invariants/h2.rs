//! Invariants of HTTP/2: header blocks, the messages in them, and connections.

use weir_http::edits::{FieldEdits, RequestEdits, TrailerEdits};
use weir_http::flaws::Flaws;
use weir_http::h1::ResponseForward;
use weir_http::h2::frame::{self, FrameHeader, kind};
use weir_http::h2::hpack::{Decoder, Encoder, HeaderBlock, ListLimits};
use weir_http::h2::message::{
    AnsweredRequest, RequestForward, read_request, read_response, read_trailers, write_request,
    write_response,
};
use weir_http::h2::{
    Allowance, Answer, Connection, ConnectionError, Event, HeadersKind, Limits, ReceiveResult,
    Role, SendKind,
};
use weir_http::message::{Method, RequestHead, ResponseHead, Scheme, Version};
use weir_http::path::{PathForm, RawBytes, TargetForm};

use super::{forwarded, paths, request, response};

const LISTS: ListLimits =
    ListLimits { size_max: 16 * 1024, lines_max: 100, hard_size_max: 64 * 1024 };

const TIGHT_LISTS: ListLimits = ListLimits { size_max: 200, lines_max: 3, hard_size_max: 1000 };

/// Checks all invariants of header blocks. The input consists of blocks, each after a byte with its length.
pub fn check_blocks(input: &[u8]) {
    let (mut decoder, mut tight) = (Decoder::new(), Decoder::new());
    let (mut encoder, mut mirror) = (Encoder::new(4096), Decoder::new());
    let (mut block, mut cut, mut again) =
        (HeaderBlock::new(), HeaderBlock::new(), HeaderBlock::new());
    let mut rest = input;
    let mut is_tight_alive = true;
    while let Some((length, tail)) = rest.split_first() {
        let (part, tail) = tail.split_at(tail.len().min(usize::from(*length)));
        rest = tail;
        let outcome = decoder.decode(part, &LISTS, &mut block);
        if is_tight_alive {
            let tight_outcome = tight.decode(part, &TIGHT_LISTS, &mut cut);
            is_tight_alive = tight_outcome.is_ok();
            assert!(cut.lines().len() <= usize::from(TIGHT_LISTS.lines_max));
            assert!(cut.memory_size() < 8 * 1024, "a bomb costs {}", cut.memory_size());
            if is_tight_alive {
                tight.check_invariants();
                let same = block.lines() == cut.lines();
                assert!(same || cut.excess().is_some());
            }
        }
        if outcome.is_err() {
            return;
        }
        decoder.check_invariants();
        check_again(&block, &mut encoder, &mut mirror, &mut again);
        check_messages(&mut block);
    }
}

fn list(block: &HeaderBlock) -> Vec<(Vec<u8>, Vec<u8>)> {
    let line = |name: &[u8], value: &[u8]| (name.to_ascii_lowercase(), value.to_vec());
    let text = block.text();
    block.lines().iter().map(|found| line(found.name.of(text), found.value.of(text))).collect()
}

/// Checks that decoding, encoding and decoding again yields the same list.
fn check_again(
    block: &HeaderBlock,
    encoder: &mut Encoder,
    mirror: &mut Decoder,
    again: &mut HeaderBlock,
) {
    let mut out = Vec::new();
    let mut lines = encoder.block(&mut out);
    for line in block.lines() {
        let (name, value) = (line.name.of(block.text()), line.value.of(block.text()));
        lines.field_of_any_case(name, value, line.never_indexed);
    }
    encoder.check_invariants();
    let limits = ListLimits { size_max: u32::MAX, lines_max: u16::MAX, hard_size_max: u32::MAX };
    assert_eq!(mirror.decode(&out, &limits, again), Ok(()));
    mirror.check_invariants();
    assert_eq!(list(block), list(again));
    for (one, other) in std::iter::zip(block.lines(), again.lines()) {
        assert!(other.never_indexed || !one.never_indexed);
    }
}

/// Checks a list as a request, as a response and as trailers: an accepted message has the same meaning when it is forwarded
/// by HTTP/1 or HTTP/2.
pub fn check_messages(block: &mut HeaderBlock) {
    for end_stream in [true, false] {
        let mut copy = block.clone();
        let mut head = RequestHead::new();
        let form = PathForm::default();
        if read_request(&mut copy, end_stream, paths::encoding(form), &mut head).is_ok() {
            let input = copy.text();
            request::check_head(&head, input, form);
            request::check_forwarding(&head, input, form);
            check_request_again(&head, input, end_stream);
        }
        let modes = [Flaws::NONE, Flaws::ALL];
        let requests = [Method::Get, Method::Head].into_iter();
        for (method, taken) in requests.flat_map(|method| modes.map(|taken| (method, taken))) {
            let mut copy = block.clone();
            let mut head = ResponseHead::new();
            let request = AnsweredRequest { method, protocol: None };
            if read_response(&mut copy, end_stream, request, taken, &mut head).is_ok() {
                assert_eq!(head.flaws.without(taken), Flaws::NONE);
                let input = copy.text();
                for version in [Version::Http10, Version::Http11] {
                    if !head.is_interim() {
                        response::check_forwarding(&head, input, method, version);
                    }
                }
                check_response_again(&head, input, method, end_stream);
            }
        }
    }
    let _ = read_trailers(block, TrailerEdits::Keep, &mut Vec::new());
}

fn recode(write: impl FnOnce(&mut weir_http::h2::hpack::BlockEncoder<'_>)) -> HeaderBlock {
    let mut out = Vec::new();
    write(&mut Encoder::new(4096).block(&mut out));
    let limits = ListLimits { size_max: u32::MAX, lines_max: u16::MAX, hard_size_max: u32::MAX };
    let mut block = HeaderBlock::new();
    assert_eq!(Decoder::new().decode(&out, &limits, &mut block), Ok(()));
    block
}

/// Checks a request that is forwarded over HTTP/2.
fn check_request_again(head: &RequestHead, input: &[u8], end_stream: bool) {
    let protocol =
        if head.extended_connect { head.upgrade.map(|span| span.of(input)) } else { None };
    let forward = RequestForward { scheme: head.scheme.unwrap_or(Scheme::Https), protocol };
    let mut block =
        recode(|lines| write_request(head, input, &RequestEdits::NONE, &forward, lines));
    let mut again = RequestHead::new();
    let strict = TargetForm { raw_bytes: RawBytes::Refuse, ..TargetForm::default() };
    let outcome = read_request(&mut block, end_stream, strict, &mut again);
    assert_eq!(outcome, Ok(()), "{}", block.text().escape_ascii());
    let text = block.text();
    assert_eq!(again.method, head.method);
    assert_eq!(again.method_text.of(text), head.method_text.of(input));
    assert_eq!(again.path(text), head.path(input));
    assert_eq!(again.query(text), head.query(input));
    assert_eq!(again.authority(text), head.authority(input));
    assert_eq!(again.framing, head.framing);
    assert_eq!(again.extended_connect, head.extended_connect);
    assert_eq!(again.te_trailers, head.te_trailers);
    assert_eq!(again.upgrade.map(|span| span.of(text)), head.upgrade.map(|span| span.of(input)));
    assert_eq!(forwarded(&again.fields, text), forwarded(&head.fields, input));
}

/// Checks a response that is forwarded over HTTP/2.
fn check_response_again(head: &ResponseHead, input: &[u8], method: Method, end_stream: bool) {
    let forward = ResponseForward {
        framing: head.framing.toward(Version::Http2),
        client_version: Version::Http2,
        persistence: weir_http::h1::Persistence::KeepAlive,
        date: None,
    };
    let mut block = recode(|lines| write_response(head, input, &forward, &FieldEdits::NONE, lines));
    let mut again = ResponseHead::new();
    let request = AnsweredRequest { method, protocol: None };
    let taken = response::unknown_status(head);
    assert_eq!(read_response(&mut block, end_stream, request, taken, &mut again), Ok(()));
    let text = block.text();
    assert_eq!((again.status, again.framing), (head.status, head.framing));
    assert_eq!(again.content_length.unwrap_or(0), head.content_length.unwrap_or(0));
    assert_eq!(forwarded(&again.fields, text), forwarded(&head.fields, input));
}

/// The events of a connection. Data in consecutive events of a stream is joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    Headers { stream: u32, kind: HeadersKind, end_stream: bool, list: Vec<(Vec<u8>, Vec<u8>)> },
    Data { stream: u32, bytes: Vec<u8>, end_stream: bool },
    Other(Event),
    Failed(ConnectionError),
}

/// The actions of a connection's caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Habits {
    /// Whether every complete request is answered.
    pub answers: bool,
    /// Whether window is returned for received data.
    pub releases: bool,
    /// Whether every request is answered when its head arrives, without reading the rest.
    pub answers_early: bool,
}

/// A connection whose events are recorded.
pub struct Listener {
    pub connection: Connection,
    pub told: Vec<Told>,
    pub out: Vec<u8>,
    pub habits: Habits,
    block: HeaderBlock,
}

impl Listener {
    pub fn new(role: Role, limits: Limits, habits: Habits) -> Self {
        let mut connection = match role {
            Role::Server => Connection::server(limits),
            Role::Client => Connection::client(limits),
        };
        let mut out = Vec::new();
        connection.start(&mut out);
        Self { connection, told: Vec::new(), out, habits, block: HeaderBlock::new() }
    }

    /// Opens streams, as a client.
    pub fn open(&mut self, count: usize) {
        for number in 0..count {
            let answer = [Answer::Usual, Answer::HeadOnly, Answer::Tunnel][number % 3];
            // Small limits permit fewer streams.
            let _ = self.connection.open_stream(answer, number % 2 == 0, &mut self.out, |lines| {
                lines.field(b":method", b"GET");
            });
        }
    }

    /// Processes bytes. Returns whether the connection is still open.
    pub fn feed(&mut self, mut input: &[u8]) -> bool {
        loop {
            let received = self.connection.receive(input, 0, &mut self.block, &mut self.out);
            self.connection.check_invariants();
            let ReceiveResult { consumed, event } = match received {
                Ok(received) => received,
                Err(error) => {
                    if self.told.last() != Some(&Told::Failed(error)) {
                        self.told.push(Told::Failed(error));
                    }
                    return false;
                }
            };
            self.note(event, input);
            input = &input[consumed..];
            if event == Event::NeedMore {
                assert!(input.is_empty());
                return true;
            }
        }
    }

    fn note(&mut self, event: Event, input: &[u8]) {
        match event {
            Event::NeedMore => {}
            Event::Headers { stream, kind, end_stream, .. } => {
                let list = list(&self.block);
                self.told.push(Told::Headers { stream, kind, end_stream, list });
                let is_request = kind == HeadersKind::Request;
                if self.habits.answers_early && is_request {
                    self.answer(stream);
                    self.connection.leave_answered(stream, 403, 0, &mut self.out);
                } else if self.habits.answers
                    && end_stream
                    && self.connection.role() == Role::Server
                {
                    self.answer(stream);
                }
            }
            Event::Data { stream, start, end, end_stream, .. } => {
                let data = &input[start..end];
                match self.told.last_mut() {
                    Some(Told::Data { stream: last, bytes, end_stream: ended })
                        if *last == stream && !*ended =>
                    {
                        bytes.extend_from_slice(data);
                        *ended = end_stream;
                    }
                    _ => self.told.push(Told::Data { stream, bytes: data.to_vec(), end_stream }),
                }
                if self.habits.releases {
                    self.connection.release(stream, data.len() as u32, &mut self.out);
                }
                if self.habits.answers && end_stream && self.connection.role() == Role::Server {
                    self.answer(stream);
                }
            }
            event => self.told.push(Told::Other(event)),
        }
    }

    fn answer(&mut self, stream: u32) {
        // This fails if the stream was closed by an error, which is reported next.
        let _ = self.connection.send_headers(
            stream,
            SendKind::Response,
            true,
            &mut self.out,
            |lines| {
                lines.field(b":status", b"200");
            },
        );
    }
}

/// Expands frames in a short form. Each frame has one byte each for type, flags, stream and length, followed by the payload.
/// If the highest bit of the stream is set, the frame header has a wrong length.
pub fn frames_of(script: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = script;
    while let [kind, flags, stream, length, tail @ ..] = rest {
        let (payload, tail) = tail.split_at(tail.len().min(usize::from(*length)));
        rest = tail;
        let lie = u32::from(stream >> 7);
        let length = payload.len() as u32 + lie;
        let header =
            FrameHeader { length, kind: *kind, flags: *flags, stream: u32::from(stream & 0x7f) };
        header.write(&mut out);
        out.extend_from_slice(payload);
    }
    out
}

/// Checks that a connection that receives arbitrary bytes yields the same events and output, however the bytes are cut.
///
/// Bits of the first byte: 0 selects the role, 1 adds the preface, 2 expands the input into frames, 3 answers requests, 4
/// sets small limits, 5 answers requests before they end. The second byte selects the cuts.
pub fn check_connection(input: &[u8]) {
    let [mode, seed, rest @ ..] = input else { return };
    let role = if mode & 1 == 0 { Role::Server } else { Role::Client };
    let mut bytes = Vec::new();
    if mode & 2 != 0 {
        if role == Role::Server {
            bytes.extend_from_slice(frame::PREFACE);
        }
        FrameHeader { length: 0, kind: kind::SETTINGS, flags: 0, stream: 0 }.write(&mut bytes);
    }
    if mode & 4 != 0 {
        bytes.extend_from_slice(&frames_of(rest));
    } else {
        bytes.extend_from_slice(rest);
    }
    let limits = if mode & 16 != 0 { TIGHT } else { Limits::DEFAULT };
    let habits = Habits { answers: mode & 8 != 0, releases: false, answers_early: mode & 32 != 0 };
    let run = |habits: Habits, mut length: Box<dyn FnMut() -> usize>| {
        let mut listener = Listener::new(role, limits, habits);
        if role == Role::Client {
            listener.open(3);
        }
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (piece, tail) = rest.split_at(length().min(rest.len()));
            rest = tail;
            if !listener.feed(piece) {
                break;
            }
        }
        (listener.told, listener.out)
    };
    let whole = run(habits, Box::new(|| usize::MAX));
    assert_eq!(run(habits, Box::new(|| 1)), whole, "byte by byte");
    let mut random = u32::from(*seed);
    let some = Box::new(move || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        1 + (random >> 24) as usize % 23
    });
    assert_eq!(run(habits, some), whole, "in pieces");
    // The size of the output is limited by the size of the input.
    assert!(whole.1.len() <= 4096 + 4 * bytes.len());
    run(Habits { releases: true, ..habits }, Box::new(|| 7));
}

/// Limits that small inputs can reach.
pub const TIGHT: Limits = Limits {
    streams_max: 2,
    header_list_size_max: 100,
    headers_max: 3,
    header_list_hard_size_max: 300,
    header_block_size_max: 200,
    continuations_max: 2,
    decoder_table_size: 64,
    encoder_table_size_max: 64,
    stream_window_size: 16,
    resets: FEW,
    stream_errors: FEW,
    closed_streams: FEW,
    refused_streams: FEW,
    window_updates: FEW,
    empty_data: FEW,
    tiny_data: FEW,
    unwanted_size_max: 20,
    ..Limits::DEFAULT
};

const FEW: Allowance = Allowance { burst: 2, per_second: 0 };

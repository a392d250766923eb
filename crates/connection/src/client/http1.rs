//! A client's connection with HTTP/1: its bytes become requests, one at a time; pipelined data waits.
//!
//! The owner of the connection asks for what it can use at that moment: a request, or a part of the body of the request under way.
//! Bytes that are too few, or too early, are kept here.

use weir_exchange::parts::end::End;
use weir_exchange::parts::pieces::{self, AfterData, Pieces};
use weir_http::edits::TrailerEdits;
use weir_http::h1::{
    BodyDecoder, BodyError, HeadLimits, HeadScan, ParseProgress, RequestError, parse_request,
    parse_trailers,
};
use weir_http::h2::frame::PREFACE;
use weir_http::message::{Field, Framing, RequestHead};
use weir_http::path::TargetForm;

use crate::wire::Buffers;

/// A client's connection with HTTP/1. Before the first request, it keeps the beginning of what comes before: of a PROXY header, or of
/// a ClientHello.
pub struct Http1 {
    /// Bytes that cannot be processed yet: a part of a head or trailer section, or pipelined data. Empty on an idle connection.
    input: Vec<u8>,
    /// Searches `input` for the end of a head or trailer section.
    scan: HeadScan,
    /// Whether `input` is an incomplete head or trailer section.
    is_collecting: bool,
    /// Whether the connection must begin with a PROXY header.
    pub awaits_proxy: bool,
    /// Whether the first bytes may be the HTTP/2 preface.
    may_be_http2: bool,
    /// Whether input is being processed. The code that does so also continues with the next request.
    is_working: bool,
    /// The decoder for the body of the current request.
    body: BodyDecoder,
}

/// What a connection begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstBytes {
    /// A request.
    Request,
    /// The HTTP/2 preface (RFC 9113 section 3.4).
    Preface,
    /// A part of the preface: more bytes are needed.
    More,
}

/// The result of reading a request head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadEvent {
    /// The head is complete.
    Head {
        /// Its length in bytes.
        length: usize,
    },
    /// More bytes are needed.
    More,
    /// The head is malformed, or larger than allowed.
    Malformed(RequestError),
}

/// The result of reading a part of a body.
pub enum BodyEvent<'a> {
    /// Data, which may be empty.
    Data {
        /// The end of the body, if it follows the data.
        end: End<'a>,
        /// The number of bytes used.
        consumed: usize,
    },
    /// The body is larger than allowed.
    TooLarge,
    /// The body or its trailer section is malformed.
    Malformed,
}

impl Http1 {
    /// A connection that has received nothing. `may_be_http2`: the client may begin with the HTTP/2 preface.
    pub fn new(awaits_proxy: bool, may_be_http2: bool) -> Self {
        Self {
            input: Vec::new(),
            scan: HeadScan::request(),
            is_collecting: false,
            awaits_proxy,
            may_be_http2,
            is_working: false,
            body: BodyDecoder::new(Framing::None, None),
        }
    }

    /// The bytes that wait.
    #[inline]
    pub fn input(&self) -> &[u8] {
        &self.input
    }

    /// Whether bytes wait.
    #[inline]
    pub fn has_input(&self) -> bool {
        !self.input.is_empty()
    }

    /// Adds received bytes to those that wait. Returns whether they should be processed now; false: the head or trailer section is
    /// still incomplete.
    pub fn add(&mut self, bytes: &[u8], limits: &HeadLimits) -> bool {
        self.input.extend_from_slice(bytes);
        !self.is_collecting || self.scan.scan(&self.input, limits)
    }

    /// Keeps bytes that cannot be processed yet, behind those that wait.
    #[inline]
    pub fn keep(&mut self, buffers: &mut impl Buffers, rest: &[u8]) {
        if rest.is_empty() {
            return;
        }
        if self.input.capacity() == 0 {
            self.input = buffers.take();
        }
        self.input.extend_from_slice(rest);
    }

    /// Takes the bytes that wait, to process them.
    pub fn take_input(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.input)
    }

    /// Takes back the bytes of [`Self::take_input`], of which so many were processed. Returns the buffer if nothing is left.
    pub fn put_back(&mut self, mut input: Vec<u8>, consumed: usize) -> Option<Vec<u8>> {
        if consumed >= input.len() {
            return Some(input);
        }
        input.drain(..consumed);
        self.input = input;
        None
    }

    /// Notes that input is being processed. What is incomplete is found to be so again.
    #[inline]
    pub fn begin_work(&mut self) {
        self.is_working = true;
        self.is_collecting = false;
    }

    /// Notes that no input is being processed.
    #[inline]
    pub fn end_work(&mut self) {
        self.is_working = false;
    }

    /// Whether input is being processed.
    #[inline]
    pub fn is_working(&self) -> bool {
        self.is_working
    }

    /// Whether [`Self::first_bytes`] has to be asked before the first request is read.
    #[inline]
    pub fn may_be_http2(&self) -> bool {
        self.may_be_http2
    }

    /// What the connection begins with.
    pub fn first_bytes(&mut self, input: &[u8]) -> FirstBytes {
        let length = input.len().min(PREFACE.len());
        let begins_alike = input[..length] == PREFACE[..length];
        if begins_alike && length < PREFACE.len() {
            return FirstBytes::More;
        }
        self.may_be_http2 = false;
        if begins_alike { FirstBytes::Preface } else { FirstBytes::Request }
    }

    /// Reads the head of a request from `input` into `head`, which refers to `input`.
    #[inline]
    pub fn read_head(
        &mut self,
        input: &[u8],
        limits: &HeadLimits,
        form: TargetForm,
        head: &mut RequestHead,
    ) -> HeadEvent {
        match parse_request(input, limits, form, head) {
            Ok(ParseProgress::Complete { length }) => HeadEvent::Head { length },
            Ok(ParseProgress::Partial) => {
                self.collect(HeadScan::request(), input, limits);
                HeadEvent::More
            }
            Err(error) => HeadEvent::Malformed(error),
        }
    }

    /// Begins the body of a request. `size_max`: the maximum number of its data bytes.
    #[inline]
    pub fn begin_body(&mut self, framing: Framing, size_max: Option<u64>) {
        self.body = BodyDecoder::new(framing, size_max);
    }

    /// Reads a part of the body of a request from `input`. The places of the data go into `pieces`, which must be [`Pieces::none`],
    /// and the fields of a trailer section, without those that `edits` removes, into `trailers`.
    pub fn read_body<'a>(
        &mut self,
        input: &'a [u8],
        (limits, edits): (&HeadLimits, TrailerEdits<'_>),
        pieces: &mut Pieces,
        trailers: &'a mut Vec<Field>,
    ) -> BodyEvent<'a> {
        match pieces::gather(&mut self.body, input, pieces) {
            Ok(()) => {}
            Err(BodyError::TooLarge) => return BodyEvent::TooLarge,
            Err(_) => return BodyEvent::Malformed,
        }
        let consumed = pieces.consumed;
        match pieces.next {
            AfterData::Done => return BodyEvent::Data { end: End::Data, consumed },
            AfterData::Again | AfterData::More => {
                return BodyEvent::Data { end: End::No, consumed };
            }
            AfterData::Trailers => {}
        }
        let section = &input[consumed..];
        match parse_trailers(section, limits, edits, trailers) {
            Ok(ParseProgress::Complete { length }) => {
                self.body.trailers_done();
                let end = End::Trailers(trailers, section);
                BodyEvent::Data { end, consumed: consumed + length }
            }
            Ok(ParseProgress::Partial) => {
                self.collect(HeadScan::section(), section, limits);
                BodyEvent::Data { end: End::No, consumed }
            }
            Err(_) => BodyEvent::Malformed,
        }
    }

    /// Begins to collect a head or trailer section. It is parsed again when its end has arrived.
    fn collect(&mut self, scan: HeadScan, input: &[u8], limits: &HeadLimits) {
        self.scan = scan;
        self.scan.scan(input, limits);
        self.is_collecting = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: HeadLimits = HeadLimits { head_size_max: 256, headers_max: 8 };
    const BODY_SIZE_MAX: u64 = 20;

    /// Buffers that keep nothing.
    struct NoBuffers;

    impl Buffers for NoBuffers {
        fn take(&mut self) -> Vec<u8> {
            Vec::new()
        }

        fn give(&mut self, _: Vec<u8>) {}
    }

    /// A client's connection whose owner takes all that it can get, and writes it down.
    struct Reader {
        http1: Http1,
        is_in_body: bool,
        is_over: bool,
        seen: String,
    }

    impl Reader {
        fn receive(&mut self, bytes: &[u8]) {
            if !self.http1.has_input() {
                let consumed = self.read(bytes);
                return self.http1.keep(&mut NoBuffers, &bytes[consumed..]);
            }
            if self.http1.add(bytes, &LIMITS) {
                let input = self.http1.take_input();
                let consumed = self.read(&input);
                self.http1.put_back(input, consumed);
            }
        }

        fn read(&mut self, input: &[u8]) -> usize {
            let mut at = 0;
            while !self.is_over {
                self.http1.begin_work();
                let rest = &input[at..];
                let used =
                    if self.is_in_body { self.read_body(rest) } else { self.read_head(rest) };
                if used == 0 {
                    break;
                }
                at += used;
            }
            self.http1.end_work();
            at
        }

        fn read_head(&mut self, input: &[u8]) -> usize {
            if input.is_empty() {
                return 0;
            }
            if self.http1.may_be_http2() {
                match self.http1.first_bytes(input) {
                    FirstBytes::Request => {}
                    FirstBytes::More => return 0,
                    FirstBytes::Preface => return self.end("preface"),
                }
            }
            let mut head = RequestHead::new();
            match self.http1.read_head(input, &LIMITS, TargetForm::default(), &mut head) {
                HeadEvent::More => 0,
                HeadEvent::Malformed(error) => self.end(&format!("{}", error.status())),
                HeadEvent::Head { length } => {
                    self.seen += std::str::from_utf8(head.path(input)).expect("a path");
                    self.http1.begin_body(head.framing, Some(BODY_SIZE_MAX));
                    self.is_in_body = !head.framing.is_empty();
                    length
                }
            }
        }

        fn read_body(&mut self, input: &[u8]) -> usize {
            let (mut pieces, mut trailers) = (Pieces::none(), Vec::new());
            let rules = (&LIMITS, TrailerEdits::OfClient(None));
            match self.http1.read_body(input, rules, &mut pieces, &mut trailers) {
                BodyEvent::TooLarge => self.end("too large"),
                BodyEvent::Malformed => self.end("malformed"),
                BodyEvent::Data { end, consumed } => {
                    let data: Vec<u8> = pieces.of(input).flatten().copied().collect();
                    self.seen += std::str::from_utf8(&data).expect("text");
                    if let End::Trailers(fields, text) = end {
                        for field in fields {
                            self.seen += std::str::from_utf8(field.value.of(text)).expect("text");
                        }
                    }
                    if !matches!(end, End::No) {
                        self.seen += ";";
                        self.is_in_body = false;
                    }
                    consumed
                }
            }
        }

        fn end(&mut self, how: &str) -> usize {
            self.seen += how;
            self.is_over = true;
            0
        }
    }

    fn seen(parts: &[&[u8]]) -> (String, usize) {
        let (http1, seen) = (Http1::new(false, true), String::new());
        let mut reader = Reader { http1, is_in_body: false, is_over: false, seen };
        parts.iter().for_each(|part| reader.receive(part));
        (reader.seen, reader.http1.input().len())
    }

    /// `expected`: what is read, and the number of bytes that wait afterwards if no request was refused.
    #[track_caller]
    fn check(input: &[u8], expected: (&str, usize)) {
        let is_refused = |seen: &str| !(seen.ends_with(['/', ';']) || seen.is_empty());
        let whole = seen(&[input]);
        assert_eq!(whole.0, expected.0);
        assert!(is_refused(&whole.0) || whole.1 == expected.1, "{} bytes wait", whole.1);
        for at in 1..input.len() {
            let cut = seen(&[&input[..at], &input[at..]]);
            assert_eq!(cut.0, expected.0, "cut at {at}");
            assert!(is_refused(&cut.0) || cut.1 == expected.1, "cut at {at}: {} wait", cut.1);
        }
        let bytes: Vec<&[u8]> = input.chunks(1).collect();
        assert_eq!(seen(&bytes).0, expected.0, "byte by byte");
    }

    #[test]
    fn requests_are_read_however_their_bytes_are_cut() {
        const GET: &[u8] = b"GET /a/ HTTP/1.1\r\nHost: a\r\n\r\n";
        check(GET, ("/a/", 0));
        check(&[GET, GET].concat(), ("/a//a/", 0));
        check(&[GET, b"GET /b"].concat(), ("/a/", 6));
        check(b"POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", ("/phello;", 0));
        let chunks = b"POST /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                       3\r\none\r\n4\r\nfour\r\n0\r\n";
        check(&[chunks, &b"\r\n"[..], GET].concat(), ("/ponefour;/a/", 0));
        check(&[chunks, &b"X-Sum: 9\r\n\r\n"[..], GET].concat(), ("/ponefour9;/a/", 0));
    }

    #[test]
    fn what_is_malformed_or_too_large_is_refused_however_its_bytes_are_cut() {
        const CHUNKED: &[u8] = b"POST /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        check(b"GET /a/ HTTP/1.1\r\nHost a\r\n\r\n", ("400", 0));
        let long = [&b"GET /"[..], &[b'a'; 300], b" HTTP/1.1\r\n\r\n"].concat();
        check(&long, ("414", 0));
        check(&[CHUNKED, b"x\r\n"].concat(), ("/pmalformed", 0));
        check(&[CHUNKED, b"0\r\nX y\r\n\r\n"].concat(), ("/pmalformed", 0));
        check(&[CHUNKED, b"15\r\n"].concat(), ("/ptoo large", 0));
    }

    #[test]
    fn the_preface_is_found_however_its_bytes_are_cut() {
        check(PREFACE, ("preface", 0));
        check(b"PRI / HTTP/1.1\r\nHost: a\r\n\r\n", ("/", 0));
        check(b"P / HTTP/1.1\r\nHost: a\r\n\r\n", ("/", 0));
        check(&PREFACE[..20], ("", 20));
    }
}

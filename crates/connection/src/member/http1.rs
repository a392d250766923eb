//! HTTP/1 on a connection to a member: bytes become the parts of a response. What follows the response is not read.

use weir_exchange::parts::encoding::HeldBytes;
use weir_exchange::parts::end::End;
use weir_exchange::parts::pieces::{self, AfterData, Pieces};
use weir_http::edits::TrailerEdits;
use weir_http::flaws::Flaws;
use weir_http::h1::{
    BodyDecoder, HeadLimits, HeadScan, ParseProgress, parse_response_of_member,
    parse_trailers_of_member,
};
use weir_http::message::{Field, Framing, Method, ResponseHead};

use crate::wire::Buffers;

/// Safety margin: a connection is closed this long before the idle timeout that the member has announced (Keep-Alive).
const KEEP_ALIVE_MARGIN_MS: u64 = 1_000;

/// The state of HTTP/1 on a connection to a member.
pub struct MemberHttp1 {
    /// Unprocessed input: a part of a head or trailer section, or a response that is collected.
    input: Vec<u8>,
    scan: HeadScan,
    /// The memory of a response that is collected: as much as `input` has when it is complete.
    collected: Option<HeldBytes>,
    /// The decoder for the body of the current response.
    body: BodyDecoder,
    persistence: MemberPersistence,
}

/// Whether a connection can carry another request after this response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MemberPersistence {
    Close,
    /// With the idle timeout that the member has announced.
    KeepAlive(Option<u32>),
}

/// What received bytes are a part of.
pub enum ReceivedBytes {
    /// Nothing was stored: the bytes can be read as they are.
    Alone,
    /// The bytes were stored. More are needed.
    Stored,
    /// The bytes were stored. A response is collected, and more of it is needed.
    Collected,
    /// All stored bytes, which can be read. The buffer goes back to the [`Buffers`].
    Joined(Vec<u8>),
}

/// How to read a response.
#[derive(Clone, Copy)]
pub struct ResponseRules<'a> {
    /// The limits of heads and trailers.
    pub limits: &'a HeadLimits,
    /// The method of the request.
    pub method: Method,
    /// The flaws that are tolerated.
    pub taken: Flaws,
}

/// Memory for the head or the trailers of a response that is being read.
pub struct SectionMemory {
    /// The trailers.
    pub fields: Vec<Field>,
    /// The text of a head or of trailers, if it was repaired.
    repaired: Vec<u8>,
}

impl SectionMemory {
    /// Memory with a list for trailers, whose contents do not matter.
    pub fn with(fields: Vec<Field>) -> Self {
        Self { fields, repaired: Vec::new() }
    }

    /// The text that the ranges of a head refer to, which was read from `received`.
    pub fn text<'a>(&'a self, received: &'a [u8]) -> &'a [u8] {
        if self.repaired.is_empty() { received } else { &self.repaired }
    }
}

/// The head at the start of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadRead {
    /// The head is not complete.
    More,
    /// An interim response with a head of this length; another head follows.
    Interim(usize),
    /// Status 101, with a head of this length: bytes of another protocol follow.
    ProtocolChanged(usize),
    /// A response with a head of this length; its body follows.
    Final(usize),
    /// The input is not valid HTTP.
    Malformed,
}

/// The part of a body at the start of the input, beside its data.
pub struct BodyRead<'a> {
    /// What follows the data.
    pub end: End<'a>,
    /// The number of bytes that were read.
    pub consumed: usize,
    /// Tolerated flaws that were not reported before.
    pub flaws: Flaws,
}

/// The input is not valid HTTP. It has the tolerated flaws that were found before, and not reported.
pub struct Malformed(pub Flaws);

/// Reads the head of a response at the start of `input`.
#[inline]
pub fn read_head(
    input: &[u8],
    rules: ResponseRules<'_>,
    memory: &mut SectionMemory,
    head: &mut ResponseHead,
) -> HeadRead {
    let ResponseRules { limits, method, taken } = rules;
    match parse_response_of_member(input, limits, method, taken, &mut memory.repaired, head) {
        Ok(ParseProgress::Partial) => HeadRead::More,
        Ok(ParseProgress::Complete { length }) if head.is_interim() => HeadRead::Interim(length),
        Ok(ParseProgress::Complete { length }) if head.status == 101 => {
            HeadRead::ProtocolChanged(length)
        }
        Ok(ParseProgress::Complete { length }) => HeadRead::Final(length),
        Err(_) => HeadRead::Malformed,
    }
}

impl MemberHttp1 {
    /// The state of a connection that is opening.
    pub fn opening() -> Self {
        Self {
            input: Vec::new(),
            scan: HeadScan::section(),
            collected: None,
            body: BodyDecoder::new(Framing::None, None),
            persistence: MemberPersistence::Close,
        }
    }

    /// How long the member lets the connection be idle, by its own words; `None`: it has not said.
    #[inline]
    pub fn announced_idle_ms(&self) -> Option<u64> {
        let MemberPersistence::KeepAlive(Some(seconds)) = self.persistence else { return None };
        Some((u64::from(seconds) * 1_000).saturating_sub(KEEP_ALIVE_MARGIN_MS))
    }

    /// Whether the connection can carry another request after this response.
    #[inline]
    pub fn is_persistent(&self) -> bool {
        self.persistence != MemberPersistence::Close
    }

    /// The member has ended the connection: this response is the last.
    pub fn ended(&mut self) {
        self.persistence = MemberPersistence::Close;
    }

    /// Takes received bytes: they are stored if bytes before them were.
    #[inline]
    pub fn received(&mut self, bytes: &[u8], limits: &HeadLimits) -> ReceivedBytes {
        if self.input.is_empty() {
            return ReceivedBytes::Alone;
        }
        self.input.extend_from_slice(bytes);
        match &self.collected {
            Some(whole) if self.input.len() < whole.count() => return ReceivedBytes::Collected,
            None if !self.scan.scan(&self.input, limits) => return ReceivedBytes::Stored,
            _ => {}
        }
        ReceivedBytes::Joined(std::mem::take(&mut self.input))
    }

    /// Has the response collected: it is read when it is complete.
    pub fn collect(&mut self, whole: HeldBytes) {
        self.collected = Some(whole);
    }

    /// Whether the input is a response that was collected. It is not collected again.
    pub fn was_collected(&mut self) -> bool {
        self.collected.take().is_some()
    }

    /// Stores the end of the input, which could not be read yet.
    pub fn store(&mut self, rest: &[u8], rules: ResponseRules<'_>, buffers: &mut impl Buffers) {
        if rest.is_empty() {
            return;
        }
        if self.input.capacity() == 0 {
            self.input = buffers.take();
        }
        self.input.reserve(self.collected.as_ref().map_or(0, HeldBytes::count));
        self.input.extend_from_slice(rest);
        self.scan = HeadScan::section_of_member(rules.taken);
        self.scan.scan(&self.input, rules.limits);
    }

    /// Begins the body behind the head of a response.
    #[inline]
    pub fn begin_body(&mut self, head: &ResponseHead, taken: Flaws) {
        self.body = BodyDecoder::of_member(head.framing, taken);
        self.body.note_flaws(head.flaws);
        self.persistence = match head.keep_alive {
            true => MemberPersistence::KeepAlive(head.keep_alive_timeout_s),
            false => MemberPersistence::Close,
        };
    }

    /// Reads a part of the body. `pieces`, which must be [`Pieces::none`], gets the data.
    #[inline]
    pub fn read_body<'a>(
        &mut self,
        input: &'a [u8],
        pieces: &mut Pieces,
        (rules, edits): (ResponseRules<'_>, TrailerEdits<'_>),
        memory: &'a mut SectionMemory,
    ) -> Result<BodyRead<'a>, Malformed> {
        if pieces::gather(&mut self.body, input, pieces).is_err() {
            return Err(Malformed(Flaws::NONE));
        }
        let (end, length) = match pieces.next {
            AfterData::Trailers => {
                self.read_trailers(&input[pieces.consumed..], (rules, edits), memory)?
            }
            AfterData::Done => (End::Data, 0),
            AfterData::Again | AfterData::More => (End::No, 0),
        };
        Ok(BodyRead { end, consumed: pieces.consumed + length, flaws: self.body.new_flaws() })
    }

    /// Reads the trailer section. Returns it with its length, or no end if it is not complete.
    fn read_trailers<'a>(
        &mut self,
        section: &'a [u8],
        (rules, edits): (ResponseRules<'_>, TrailerEdits<'_>),
        memory: &'a mut SectionMemory,
    ) -> Result<(End<'a>, usize), Malformed> {
        let SectionMemory { fields, repaired } = memory;
        let mut flaws = Flaws::NONE;
        let by_member = (rules.taken, &mut flaws);
        let into = (&mut *repaired, &mut *fields);
        match parse_trailers_of_member(section, rules.limits, edits, by_member, into) {
            Ok(ParseProgress::Complete { length }) => {
                self.body.note_flaws(flaws);
                self.body.trailers_done();
                let text = if repaired.is_empty() { section } else { &*repaired };
                Ok((End::Trailers(fields, text), length))
            }
            Ok(ParseProgress::Partial) => Ok((End::No, 0)),
            Err(_) => Err(Malformed(self.body.new_flaws())),
        }
    }

    /// Whether the end of the connection is the proper end of the response, and not a truncation.
    pub fn may_end(&self) -> bool {
        self.body.may_end_at_eof()
    }

    /// Gives the memory back when the connection is closed.
    pub fn give_back(self, buffers: &mut impl Buffers) {
        buffers.give(self.input);
    }
}

#[cfg(test)]
mod tests {
    use weir_exchange::local::surroundings::Sources;
    use weir_exchange::parts::tools::Tools;

    use super::*;
    use crate::testing::NoSpares;

    const LIMITS: HeadLimits = HeadLimits { head_size_max: 200, headers_max: 10 };
    const RULES: ResponseRules<'_> =
        ResponseRules { limits: &LIMITS, method: Method::Get, taken: Flaws::NONE };

    /// A member connection, and what was read on it.
    struct Reader {
        http1: MemberHttp1,
        head: ResponseHead,
        memory: SectionMemory,
        is_in_body: bool,
        /// The parts of the response, in short.
        read: String,
        is_over: bool,
    }

    impl Reader {
        fn new() -> Self {
            Self {
                http1: MemberHttp1::opening(),
                head: ResponseHead::default(),
                memory: SectionMemory::with(Vec::new()),
                is_in_body: false,
                read: String::new(),
                is_over: false,
            }
        }

        fn receive(&mut self, bytes: &[u8]) {
            match self.http1.received(bytes, &LIMITS) {
                ReceivedBytes::Alone => self.read_all(bytes),
                ReceivedBytes::Joined(input) => self.read_all(&input),
                ReceivedBytes::Stored | ReceivedBytes::Collected => {}
            }
        }

        fn read_all(&mut self, input: &[u8]) {
            let mut at = 0;
            while !self.is_over {
                match self.read_part(&input[at..]) {
                    (consumed, true) => at += consumed,
                    (consumed, false) => {
                        at += consumed;
                        return self.http1.store(&input[at..], RULES, &mut NoSpares);
                    }
                }
            }
        }

        /// Reads the next part. Returns how many bytes were used, and whether the rest can be read.
        fn read_part(&mut self, input: &[u8]) -> (usize, bool) {
            if self.is_in_body {
                return self.read_body(input);
            }
            match read_head(input, RULES, &mut self.memory, &mut self.head) {
                HeadRead::More => (0, false),
                HeadRead::Interim(length) => {
                    self.read += &format!("{} ", self.head.status);
                    (length, true)
                }
                HeadRead::ProtocolChanged(length) => {
                    self.read += "101, and another protocol";
                    self.is_over = true;
                    (length, true)
                }
                HeadRead::Final(length) => {
                    self.read += &format!("{} ", self.head.status);
                    self.http1.begin_body(&self.head, Flaws::NONE);
                    self.is_in_body = true;
                    (length, true)
                }
                HeadRead::Malformed => self.malformed(),
            }
        }

        fn read_body(&mut self, input: &[u8]) -> (usize, bool) {
            let mut pieces = Pieces::none();
            let how = (RULES, TrailerEdits::Keep);
            let read = self.http1.read_body(input, &mut pieces, how, &mut self.memory);
            let Ok(BodyRead { end, consumed, .. }) = read else { return self.malformed() };
            for data in pieces.of(input) {
                self.read += &String::from_utf8_lossy(data);
            }
            match end {
                End::No => return (consumed, pieces.next == AfterData::Again),
                End::Data => self.read += ".",
                End::Trailers(fields, _) => {
                    self.read += &format!(" and {} trailers.", fields.len())
                }
            }
            self.is_over = true;
            (consumed, true)
        }

        fn malformed(&mut self) -> (usize, bool) {
            self.read += "malformed";
            self.is_over = true;
            (0, true)
        }
    }

    /// What is read of a response that arrives in these parts.
    fn read<'a>(parts: impl Iterator<Item = &'a [u8]>) -> String {
        let mut reader = Reader::new();
        parts.for_each(|part| reader.receive(part));
        reader.read
    }

    /// What is read of a response in one or two parts, and byte by byte.
    fn each_cut(response: &str) -> impl Iterator<Item = String> {
        let response = response.as_bytes();
        let cut = |at| read([&response[..at], &response[at..]].into_iter());
        (0..response.len()).map(cut).chain([read(response.chunks(1))])
    }

    #[track_caller]
    fn check(response: &str, expected: &str) {
        for (cut, read) in each_cut(response).enumerate() {
            assert_eq!(read, expected, "cut at {cut}");
        }
    }

    /// How much of the body before the error is read depends on the parts.
    #[track_caller]
    fn check_malformed(response: &str) {
        for (cut, read) in each_cut(response).enumerate() {
            assert!(read.ends_with("malformed"), "cut at {cut}: {read}");
        }
    }

    #[test]
    fn responses_are_read_in_any_parts() {
        check("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "200 hello.");
        check("HTTP/1.1 204 No Content\r\n\r\n", "204 .");
        check(
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            "103 200 ok.",
        );
        check("HTTP/1.1 200 OK\r\n\r\nto the end", "200 to the end");
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
            "200 abcde.",
        );
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nOne: 1\r\nTwo: 2\r\n\r\n",
            "200 a and 2 trailers.",
        );
        check(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: upgrade\r\n\r\nbytes",
            "101, and another protocol",
        );
    }

    #[test]
    fn what_is_no_response_is_malformed() {
        check_malformed("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx");
        check_malformed(&format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "a".repeat(200)));
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n";
        check_malformed(&format!("{chunked}ab\r\n"));
        check_malformed(&format!("{chunked}a\r\n0\r\nOne 1\r\n\r\n"));
    }

    #[test]
    fn a_response_may_be_collected() {
        let mut reader = Reader::new();
        let sources = Sources { unix_s: || 0, fill_randomly: |_| {} };
        let mut tools = Tools::new(|| 0, sources);
        reader.http1.collect(tools.encoders.hold(12).expect("there is room"));
        reader.http1.store(b"HTTP", RULES, &mut NoSpares);
        assert!(matches!(reader.http1.received(b"/1.", &LIMITS), ReceivedBytes::Collected));
        let ReceivedBytes::Joined(input) = reader.http1.received(b"1 200", &LIMITS) else {
            panic!("all of it has arrived")
        };
        assert_eq!(input, b"HTTP/1.1 200");
        assert!(reader.http1.was_collected() && !reader.http1.was_collected());
        assert_eq!(tools.encoders.taken_bytes(), 0);
    }

    #[test]
    fn the_member_says_how_long_a_connection_is_kept() {
        let check = |field: &str, keep, idle_ms| {
            let mut reader = Reader::new();
            reader.receive(format!("HTTP/1.1 204 No Content\r\n{field}\r\n\r\n").as_bytes());
            assert_eq!(
                (reader.http1.is_persistent(), reader.http1.announced_idle_ms()),
                (keep, idle_ms),
                "{field}"
            );
        };
        check("Server: any", true, None);
        check("Connection: close", false, None);
        check("Keep-Alive: timeout=5", true, Some(4_000));
        check("Keep-Alive: timeout=1", true, Some(0));
    }
}

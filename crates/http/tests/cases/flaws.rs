//! Flawed responses of members: the strict parser's error, the flaws that must be tolerated, and the resulting response.

use weir_http::flaws::{Flaw, Flaws};
use weir_http::h1::{BodyError as B, FieldError as F, FramingError as R, ResponseError as E};
use weir_http::h1::{CHUNK_EXTENSION_SIZE_MAX, TrailerError};
use weir_http::message::{Framing, Method};

/// A response head and the expected outcomes.
pub struct HeadCase {
    pub name: &'static str,
    pub method: Method,
    pub received: Vec<u8>,
    /// The error of the strict parser.
    pub strict: E,
    pub lenient: HeadExpected,
}

/// The outcome if all flaws are tolerated.
pub enum HeadExpected {
    /// An HTTP/1.1 client receives this head. The response has exactly these flaws, and is refused if one of them is not
    /// tolerated.
    Sent { flaws: Flaws, head: &'static str, framing: Framing, keep_alive: bool },
    /// The response is refused with any settings.
    Refused(E),
}

const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const LENGTH: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
const EMPTY: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

fn sent(
    name: &'static str,
    received: &[u8],
    strict: E,
    flaws: &[Flaw],
    (head, framing): (&'static str, Framing),
) -> HeadCase {
    let flaws = flaws.iter().fold(Flaws::NONE, |flaws, flaw| flaws.with(*flaw));
    let lenient = HeadExpected::Sent { flaws, head, framing, keep_alive: true };
    HeadCase { name, method: Method::Get, received: received.to_vec(), strict, lenient }
}

fn refused(name: &'static str, received: &[u8], strict: E, lenient: E) -> HeadCase {
    let lenient = HeadExpected::Refused(lenient);
    HeadCase { name, method: Method::Get, received: received.to_vec(), strict, lenient }
}

impl HeadCase {
    fn then_closed(mut self) -> Self {
        if let HeadExpected::Sent { keep_alive, .. } = &mut self.lenient {
            *keep_alive = false;
        }
        self
    }

    fn to(self, method: Method) -> Self {
        Self { method, ..self }
    }
}

/// All response heads.
pub fn heads() -> Vec<HeadCase> {
    [lengths(), both_framings(), repeated_chunked(), line_feeds(), controls(), statuses()]
        .into_iter()
        .flatten()
        .collect()
}

fn with_lines(lines: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\n{lines}\r\n").into_bytes()
}

fn lengths() -> Vec<HeadCase> {
    const FLAW: &[Flaw] = &[Flaw::RepeatedContentLength];
    let length = (LENGTH, Framing::Length(2));
    let list = E::Framing(R::ContentLength);
    let lines = E::Framing(R::ContentLengthRepeated);
    let taken = |name, text: &str, strict| sent(name, &with_lines(text), strict, FLAW, length);
    let bad = |name, text: &str, error| refused(name, &with_lines(text), error, error);
    vec![
        taken("the same length twice", "Content-Length: 2\r\nContent-Length: 2\r\n", lines),
        taken("three times", &"Content-Length: 2\r\n".repeat(3), lines),
        taken("in other digits", "Content-Length: 2\r\ncontent-length: 02\r\n", lines),
        taken("list of the same", "Content-Length: 2, 2\r\n", list),
        taken("longer list", "Content-Length: 2,2 ,\t2\r\n", list),
        taken("list and line", "Content-Length: 2, 2\r\nContent-Length: 2\r\n", list),
        taken("line and list", "Content-Length: 2\r\nContent-Length: 2, 2\r\n", lines),
        sent(
            "in answer to HEAD",
            &with_lines("Content-Length: 2\r\nContent-Length: 2\r\n"),
            lines,
            FLAW,
            (LENGTH, Framing::None),
        )
        .to(Method::Head),
        bad("different lengths", "Content-Length: 2\r\nContent-Length: 3\r\n", lines),
        bad(
            "different at last",
            "Content-Length: 2\r\nContent-Length: 2\r\nContent-Length: 3\r\n",
            lines,
        ),
        bad("different in a list", "Content-Length: 2, 3\r\n", list),
        bad("list with nothing", "Content-Length: 2,\r\n", list),
        bad("list with nothing before", "Content-Length: ,2\r\n", list),
        bad("list without commas", "Content-Length: 2 2\r\n", list),
        bad("list of signs", "Content-Length: +2, +2\r\n", list),
        bad("no number", "Content-Length: x\r\n", list),
        bad("no number, twice", "Content-Length: 2\r\nContent-Length: x\r\n", lines),
        bad("empty and a number", "Content-Length:\r\nContent-Length: 2\r\n", list),
        refused(
            "different from a list",
            &with_lines("Content-Length: 2, 2\r\nContent-Length: 3\r\n"),
            list,
            lines,
        ),
    ]
}

fn both_framings() -> Vec<HeadCase> {
    let both = E::Framing(R::Both);
    let taken = |name, text: &str| {
        let expected = (CHUNKED, Framing::Chunked);
        sent(name, &with_lines(text), both, &[Flaw::BothFramings], expected).then_closed()
    };
    let bad = |name, text: &str, error| refused(name, &with_lines(text), both, error);
    vec![
        taken("length, then encoding", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
        taken("encoding, then length", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"),
        taken("length of nothing", "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n"),
        taken(
            "in spite of keep-alive",
            "Connection: keep-alive\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        ),
        sent(
            "in answer to HEAD",
            &with_lines("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
            both,
            &[Flaw::BothFramings],
            ("HTTP/1.1 200 OK\r\n\r\n", Framing::None),
        )
        .to(Method::Head)
        .then_closed(),
        sent(
            "length twice, and encoding",
            &with_lines("Transfer-Encoding: chunked\r\nContent-Length: 5\r\nContent-Length: 5\r\n"),
            both,
            &[Flaw::BothFramings, Flaw::RepeatedContentLength],
            (CHUNKED, Framing::Chunked),
        )
        .then_closed(),
        bad("another encoding", "Content-Length: 5\r\nTransfer-Encoding: gzip, chunked\r\n", both),
        bad(
            "encoding twice",
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            both,
        ),
        bad("length that is none", "Transfer-Encoding: chunked\r\nContent-Length: x\r\n", both),
        bad(
            "different lengths",
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\nContent-Length: 6\r\n",
            E::Framing(R::ContentLengthRepeated),
        ),
        refused(
            "in HTTP/1.0",
            b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            E::Framing(R::TransferEncodingInHttp10),
            E::Framing(R::TransferEncodingInHttp10),
        ),
        refused(
            "in an interim response",
            b"HTTP/1.1 103 x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            both,
            E::InterimWithBody,
        ),
    ]
}

fn repeated_chunked() -> Vec<HeadCase> {
    let coding = E::Framing(R::TransferEncoding);
    let taken = |name, text: &str| {
        let expected = (CHUNKED, Framing::Chunked);
        sent(name, &with_lines(text), coding, &[Flaw::RepeatedChunked], expected)
    };
    let bad = |name, text: &str| refused(name, &with_lines(text), coding, coding);
    vec![
        taken("two lines", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
        taken(
            "three lines",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: Chunked\r\nTransfer-Encoding: chunked\r\n",
        ),
        taken("a list", "Transfer-Encoding: chunked,chunked\r\n"),
        bad("another coding before", "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"),
        bad("another coding behind", "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n"),
        bad("a list with another coding", "Transfer-Encoding: chunked, gzip, chunked\r\n"),
        bad("an empty element", "Transfer-Encoding: chunked,\r\n"),
    ]
}

fn line_feeds() -> Vec<HeadCase> {
    const FLAW: &[Flaw] = &[Flaw::BareLineFeed];
    let taken = |name, received: &[u8], strict| {
        sent(name, received, strict, FLAW, (EMPTY, Framing::Length(0)))
    };
    let lf = E::Field(F::BareLf);
    vec![
        taken("everywhere", b"HTTP/1.1 200 OK\nContent-Length: 0\n\n", E::LineEnd),
        taken("behind the status line", b"HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n", E::LineEnd),
        taken("behind a field", b"HTTP/1.1 200 OK\r\nContent-Length: 0\n\r\n", lf),
        taken("at the end", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\n", lf),
        sent(
            "several fields",
            b"HTTP/1.1 200 OK\nA: b \nX:\nContent-Length: 0\n\n",
            E::LineEnd,
            FLAW,
            ("HTTP/1.1 200 OK\r\nA: b\r\nX: \r\nContent-Length: 0\r\n\r\n", Framing::Length(0)),
        ),
        sent(
            "together with a list",
            b"HTTP/1.1 200 OK\nContent-Length: 2, 2\n\n",
            E::LineEnd,
            &[Flaw::BareLineFeed, Flaw::RepeatedContentLength],
            (LENGTH, Framing::Length(2)),
        ),
        // A repaired head is checked as strictly as any other head.
        refused(
            "space before a colon",
            b"HTTP/1.1 200 OK\nA : b\n\n",
            E::LineEnd,
            E::Field(F::SpaceBeforeColon),
        ),
        refused("folded line", b"HTTP/1.1 200 OK\nA: b\n c\n\n", E::LineEnd, E::Field(F::Folded)),
        refused("no colon", b"HTTP/1.1 200 OK\nA\n\n", E::LineEnd, E::Field(F::Name)),
        refused("empty line before", b"\nHTTP/1.1 200 OK\n\n", E::Version, E::Version),
        refused(
            "different lengths",
            b"HTTP/1.1 200 OK\nContent-Length: 1\nContent-Length: 2\n\n",
            E::LineEnd,
            E::Framing(R::ContentLengthRepeated),
        ),
    ]
}

fn controls() -> Vec<HeadCase> {
    const FLAW: &[Flaw] = &[Flaw::ControlCharacter];
    let value = |name, value: &[u8], strict, head| {
        let received =
            [b"HTTP/1.1 200 OK\r\nA: ".as_slice(), value, b"\r\nContent-Length: 0\r\n\r\n"]
                .concat();
        sent(name, &received, strict, FLAW, (head, Framing::Length(0)))
    };
    const B_C: &str = "HTTP/1.1 200 OK\r\nA: b c\r\nContent-Length: 0\r\n\r\n";
    const B: &str = "HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 0\r\n\r\n";
    let control = E::Field(F::Value);
    let bad = |name, received: &[u8], strict, lenient| refused(name, received, strict, lenient);
    vec![
        value("NUL", b"b\0c", control, B_C),
        value("escape", b"b\x1bc", control, B_C),
        value("DEL", b"b\x7fc", control, B_C),
        value("bare CR", b"b\rc", E::Field(F::BareCr), B_C),
        value("at the end", b"b\0", control, B),
        value("at the start", b"\x01b", control, B),
        value("CR CR LF", b"b\r", E::Field(F::BareCr), B),
        value(
            "a line that CR would make",
            b"b\rSet-Cookie: c=d",
            E::Field(F::BareCr),
            "HTTP/1.1 200 OK\r\nA: b Set-Cookie: c=d\r\nContent-Length: 0\r\n\r\n",
        ),
        sent(
            "in the reason",
            b"HTTP/1.1 200 O\0K\r\nContent-Length: 0\r\n\r\n",
            E::Reason,
            FLAW,
            ("HTTP/1.1 200 O K\r\nContent-Length: 0\r\n\r\n", Framing::Length(0)),
        ),
        sent(
            "together with bare line feeds",
            b"HTTP/1.1 200 OK\nA: b\rc\nContent-Length: 0\n\n",
            E::LineEnd,
            &[Flaw::BareLineFeed, Flaw::ControlCharacter],
            (B_C, Framing::Length(0)),
        ),
        bad(
            "in a name",
            b"HTTP/1.1 200 OK\r\nA\0: b\r\n\r\n",
            E::Field(F::Name),
            E::Field(F::Name),
        ),
        bad(
            "in a name behind another",
            b"HTTP/1.1 200 OK\r\nA: \0\r\nB\0: b\r\n\r\n",
            control,
            E::Field(F::SpaceBeforeColon),
        ),
        bad("in a length", b"HTTP/1.1 200 OK\r\nContent-Length: 12\0\r\n\r\n", control, control),
        bad(
            "in an encoding",
            b"HTTP/1.1 200 OK\r\nA: \0\r\nTransfer-Encoding: \x01chunked\r\n\r\n",
            control,
            control,
        ),
        bad(
            "in what the connection is told",
            b"HTTP/1.1 200 OK\r\nConnection: clo\0se\r\n\r\n",
            control,
            control,
        ),
        bad(
            "instead of an empty line",
            b"HTTP/1.1 200 OK\r\nA: b\r\n\r\r\n\r\n",
            E::Field(F::BareCr),
            E::Field(F::Folded),
        ),
        bad("in the version", b"HTTP/1.1\x00200 OK\r\n\r\n", E::Status, E::Status),
        bad("in the status", b"HTTP/1.1 2\x000 OK\r\n\r\n", E::Status, E::Status),
    ]
}

fn statuses() -> Vec<HeadCase> {
    let taken = |name, received: &[u8], head| {
        let expected = (head, Framing::Length(0));
        sent(name, received, E::Status, &[Flaw::UnknownStatus], expected)
    };
    let bad = |name, received: &[u8]| refused(name, received, E::Status, E::Status);
    vec![
        taken(
            "600",
            b"HTTP/1.1 600 x\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 600 x\r\nContent-Length: 0\r\n\r\n",
        ),
        taken(
            "999",
            b"HTTP/1.1 999 Request denied\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 999 Request denied\r\nContent-Length: 0\r\n\r\n",
        ),
        bad("099", b"HTTP/1.1 099 x\r\nContent-Length: 0\r\n\r\n"),
        bad("000", b"HTTP/1.1 000 x\r\nContent-Length: 0\r\n\r\n"),
        bad("1000", b"HTTP/1.1 1000 x\r\nContent-Length: 0\r\n\r\n"),
        bad("60", b"HTTP/1.1 60 x\r\nContent-Length: 0\r\n\r\n"),
        bad("6xx", b"HTTP/1.1 6xx x\r\nContent-Length: 0\r\n\r\n"),
    ]
}

/// A chunked body and the expected outcomes.
pub struct BodyCase {
    pub name: &'static str,
    pub received: Vec<u8>,
    /// The error of the strict decoder.
    pub strict: BodyRefused,
    pub lenient: BodyExpected,
}

/// The reason for which a body or its trailer section is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyRefused {
    Body(B),
    Trailers(TrailerError),
}

/// The outcome if all flaws are tolerated.
pub enum BodyExpected {
    /// The body has this data and these forwarded trailers after repair. It is refused if one of the flaws is not tolerated.
    Whole { flaws: Flaws, data: &'static str, trailers: Vec<(&'static str, &'static str)> },
    /// The body is refused with any settings.
    Refused(BodyRefused),
}

/// All bodies.
pub fn bodies() -> Vec<BodyCase> {
    let whole = |name, received: &[u8], strict, flaws: &[Flaw], data| BodyCase {
        name,
        received: received.to_vec(),
        strict: BodyRefused::Body(strict),
        lenient: BodyExpected::Whole {
            flaws: flaws.iter().fold(Flaws::NONE, |flaws, flaw| flaws.with(*flaw)),
            data,
            trailers: Vec::new(),
        },
    };
    let trailers =
        |name, received: &[u8], strict, flaw, trailers: &[(&'static str, &'static str)]| BodyCase {
            name,
            received: received.to_vec(),
            strict: BodyRefused::Trailers(TrailerError::Field(strict)),
            lenient: BodyExpected::Whole {
                flaws: Flaws::NONE.with(flaw),
                data: "",
                trailers: trailers.to_vec(),
            },
        };
    let bad = |name, received: &[u8], error| BodyCase {
        name,
        received: received.to_vec(),
        strict: BodyRefused::Body(error),
        lenient: BodyExpected::Refused(BodyRefused::Body(error)),
    };
    let later = |name, received: &[u8], strict, error| BodyCase {
        name,
        received: received.to_vec(),
        strict: BodyRefused::Body(strict),
        lenient: BodyExpected::Refused(BodyRefused::Body(error)),
    };
    let (space, lf) = ([Flaw::ChunkSizeSpace], [Flaw::BareLineFeed]);
    let most = usize::from(CHUNK_EXTENSION_SIZE_MAX);
    let spaces =
        |count: usize| [b"5".as_slice(), &vec![b' '; count], b"\r\nhello\r\n0\r\n\r\n"].concat();
    vec![
        whole("space behind the size", b"5 \r\nhello\r\n0\r\n\r\n", B::ChunkSize, &space, "hello"),
        whole(
            "spaces up to a width",
            b"5     \r\nhello\r\n0     \r\n\r\n",
            B::ChunkSize,
            &space,
            "hello",
        ),
        whole("tab behind the size", b"5\t \r\nhello\r\n0\r\n\r\n", B::ChunkSize, &space, "hello"),
        whole("space behind the last one", b"0 \r\n\r\n", B::ChunkSize, &space, ""),
        whole(
            "space before an extension",
            b"5 ;a=b\r\nhello\r\n0\r\n\r\n",
            B::ChunkSize,
            &space,
            "hello",
        ),
        whole("as many as an extension may have", &spaces(most), B::ChunkSize, &space, "hello"),
        later("more than those", &spaces(most + 1), B::ChunkSize, B::ChunkExtensionTooLong),
        bad("space before the size", b" 5\r\nhello\r\n0\r\n\r\n", B::ChunkSize),
        bad("space alone", b" \r\n\r\n", B::ChunkSize),
        bad("two sizes", b"5 5\r\nhello\r\n0\r\n\r\n", B::ChunkSize),
        bad("vertical tab behind the size", b"5\x0b\r\nhello\r\n0\r\n\r\n", B::ChunkSize),
        bad("NUL behind the size", b"5 \0\r\nhello\r\n0\r\n\r\n", B::ChunkSize),
        later("no name behind the space", b"5 ;\r\nhello\r\n", B::ChunkSize, B::ChunkExtension),
        later(
            "space behind the semicolon",
            b"5; a\r\nhello\r\n",
            B::ChunkExtension,
            B::ChunkExtension,
        ),
        whole("bare line feeds everywhere", b"5\nhello\n0\n\n", B::ChunkSize, &lf, "hello"),
        whole("behind a size", b"5\nhello\r\n0\r\n\r\n", B::ChunkSize, &lf, "hello"),
        whole("behind data", b"5\r\nhello\n0\r\n\r\n", B::ChunkEnd, &lf, "hello"),
        whole("behind an extension", b"5;a\nhello\r\n0\r\n\r\n", B::ChunkExtension, &lf, "hello"),
        whole(
            "behind a quoted one",
            b"5;a=\"b\"\nhello\r\n0;c=d\n\r\n",
            B::ChunkExtension,
            &lf,
            "hello",
        ),
        whole(
            "behind a size with a space",
            b"5 \nhello\r\n0\r\n\r\n",
            B::ChunkSize,
            &[Flaw::ChunkSizeSpace, Flaw::BareLineFeed],
            "hello",
        ),
        bad("line feed within quotes", b"5;a=\"\nb\"\r\nhello\r\n", B::ChunkExtension),
        bad("line feed for a name", b"5;\nhello\r\n", B::ChunkExtension),
        bad("line feed for a size", b"\n5\r\nhello\r\n", B::ChunkSize),
        bad("bare CR behind the size", b"5\rhello\r\n0\r\n\r\n", B::ChunkEnd),
        bad("bare CR behind data", b"5\r\nhello\r0\r\n\r\n", B::ChunkEnd),
        bad("bare CR at the end", b"0\r\n\rX", B::ChunkEnd),
        trailers(
            "trailers behind bare line feeds",
            b"0\r\nX: 1\nHost: b\nY: 2 \n\n",
            F::BareLf,
            Flaw::BareLineFeed,
            &[("X", "1"), ("Y", "2")],
        ),
        trailers("bare line feed at the end", b"0\r\n\n", F::BareLf, Flaw::BareLineFeed, &[]),
        trailers(
            "control character in a trailer",
            b"0\r\nX: 1\x002\r\n\r\n",
            F::Value,
            Flaw::ControlCharacter,
            &[("X", "1 2")],
        ),
        BodyCase {
            name: "folded trailer behind a bare line feed",
            received: b"0\r\nX: 1\n 2\n\n".to_vec(),
            strict: BodyRefused::Trailers(TrailerError::Field(F::BareLf)),
            lenient: BodyExpected::Refused(BodyRefused::Trailers(TrailerError::Field(F::Folded))),
        },
    ]
}

//! Cases for bodies with every framing, and for trailer sections.

use weir_http::h1::{BodyError as E, CHUNK_EXTENSION_SIZE_MAX, FieldError as F, TrailerError};
use weir_http::message::Framing;

/// A body and the expected outcome.
pub struct BodyCase {
    pub name: &'static str,
    pub section: &'static str,
    pub framing: Framing,
    pub size_max: Option<u64>,
    pub received: Vec<u8>,
    pub expected: BodyExpected,
}

/// The outcome of decoding a body.
pub enum BodyExpected {
    /// The body is complete, with this data and these forwarded trailer fields. `left`: the number of bytes that follow it.
    Whole {
        data: Vec<u8>,
        trailers: Vec<(&'static str, &'static str)>,
        left: usize,
    },
    /// More data is expected after this. `may_end_at_eof`: the end of the connection would end the body; otherwise, it would
    /// truncate the body.
    Open {
        data: Vec<u8>,
        may_end_at_eof: bool,
    },
    Refused(E),
    TrailersRefused(TrailerError),
}

/// All body cases.
pub fn cases() -> Vec<BodyCase> {
    [unchunked(), chunks(), sizes(), ends(), extensions(), extension_limits(), trailers(), limits()]
        .into_iter()
        .flatten()
        .collect()
}

fn chunked(
    name: &'static str,
    section: &'static str,
    received: &[u8],
    expected: BodyExpected,
) -> BodyCase {
    BodyCase {
        name,
        section,
        framing: Framing::Chunked,
        size_max: None,
        received: received.to_vec(),
        expected,
    }
}

/// A case of complete chunks that decode to `data`.
fn whole(name: &'static str, section: &'static str, received: &[u8], data: &[u8]) -> BodyCase {
    chunked(
        name,
        section,
        received,
        BodyExpected::Whole { data: data.to_vec(), trailers: Vec::new(), left: 0 },
    )
}

/// A case of incomplete chunks.
fn open(name: &'static str, received: &[u8], data: &[u8]) -> BodyCase {
    chunked(name, "8", received, BodyExpected::Open { data: data.to_vec(), may_end_at_eof: false })
}

fn refused(name: &'static str, section: &'static str, received: &[u8], error: E) -> BodyCase {
    chunked(name, section, received, BodyExpected::Refused(error))
}

fn unchunked() -> Vec<BodyCase> {
    let body = |name, framing, received: &[u8], expected| BodyCase {
        name,
        section: "6.3",
        framing,
        size_max: None,
        received: received.to_vec(),
        expected,
    };
    let whole =
        |data: &[u8], left| BodyExpected::Whole { data: data.to_vec(), trailers: Vec::new(), left };
    let open =
        |data: &[u8], may_end_at_eof| BodyExpected::Open { data: data.to_vec(), may_end_at_eof };
    vec![
        body("no body", Framing::None, b"GET", whole(b"", 3)),
        body("no body and no byte", Framing::None, b"", whole(b"", 0)),
        body("length of nothing", Framing::Length(0), b"GET", whole(b"", 3)),
        body("length", Framing::Length(5), b"hello", whole(b"hello", 0)),
        body("length and the next message", Framing::Length(5), b"helloGET", whole(b"hello", 3)),
        body(
            "less than the length is a truncation",
            Framing::Length(6),
            b"hello",
            open(b"hello", false),
        ),
        body("nothing of the length", Framing::Length(1), b"", open(b"", false)),
        body("until close", Framing::UntilClose, b"hello", open(b"hello", true)),
        body("nothing until close", Framing::UntilClose, b"", open(b"", true)),
        body(
            "until close looks like chunks",
            Framing::UntilClose,
            b"0\r\n\r\n",
            open(b"0\r\n\r\n", true),
        ),
    ]
}

fn chunks() -> Vec<BodyCase> {
    vec![
        whole("last chunk alone", "7.1", b"0\r\n\r\n", b""),
        whole("one chunk", "7.1", b"5\r\nhello\r\n0\r\n\r\n", b"hello"),
        whole("two chunks", "7.1", b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", b"hello world"),
        whole("line ends in the data", "7.1", b"4\r\n\r\n\r\n\r\n0\r\n\r\n", b"\r\n\r\n"),
        whole("last chunk in the data", "7.1", b"5\r\n0\r\n\r\n\r\n0\r\n\r\n", b"0\r\n\r\n"),
        whole("lower-case size", "7.1", b"a\r\n0123456789\r\n0\r\n\r\n", b"0123456789"),
        whole("upper-case size", "7.1", b"A\r\n0123456789\r\n0\r\n\r\n", b"0123456789"),
        whole("leading zeros", "7.1", b"0005\r\nhello\r\n0\r\n\r\n", b"hello"),
        whole(
            "as many digits as allowed",
            "7.1",
            b"0000000000000005\r\nhello\r\n0\r\n\r\n",
            b"hello",
        ),
        whole("last chunk of several zeros", "7.1", b"1\r\na\r\n000\r\n\r\n", b"a"),
        whole("two-digit size", "7.1", b"10\r\n0123456789abcdef\r\n0\r\n\r\n", b"0123456789abcdef"),
        chunked(
            "the next message follows",
            "7.1",
            b"1\r\na\r\n0\r\n\r\nGET",
            BodyExpected::Whole { data: b"a".to_vec(), trailers: Vec::new(), left: 3 },
        ),
        open("nothing yet", b"", b""),
        open("part of a size", b"5", b""),
        open("CR of a size", b"5\r", b""),
        open("size", b"5\r\n", b""),
        open("part of the data", b"5\r\nhel", b"hel"),
        open("the data", b"5\r\nhello", b"hello"),
        open("CR after the data", b"5\r\nhello\r", b"hello"),
        open("no last chunk", b"5\r\nhello\r\n", b"hello"),
        open("last chunk's line", b"0\r\n", b""),
        open("CR after the last chunk", b"0\r\n\r", b""),
        open("huge size", b"7fffffffffffffff\r\na", b"a"),
    ]
}

fn sizes() -> Vec<BodyCase> {
    let bad = |name, received: &[u8]| refused(name, "7.1", received, E::ChunkSize);
    vec![
        bad("no size", b"\r\n"),
        bad("no size but data", b"\r\nhello\r\n0\r\n\r\n"),
        bad("no hexadecimal digit", b"g\r\n"),
        bad("prefix", b"0x5\r\nhello\r\n0\r\n\r\n"),
        bad("plus sign", b"+5\r\nhello\r\n0\r\n\r\n"),
        bad("minus sign", b"-5\r\nhello\r\n0\r\n\r\n"),
        bad("space before", b" 5\r\nhello\r\n0\r\n\r\n"),
        bad("space after", b"5 \r\nhello\r\n0\r\n\r\n"),
        bad("tab after", b"5\t\r\nhello\r\n0\r\n\r\n"),
        bad("space inside", b"1 0\r\n"),
        bad("underscore", b"1_0\r\n"),
        bad("fraction", b"5.0\r\n"),
        bad("comma", b"5,5\r\n"),
        bad("quoted", b"\"5\"\r\n"),
        bad("NUL", b"5\0\r\n"),
        bad("extension without a size", b";a\r\n"),
        bad("after a chunk", b"5\r\nhello\r\nx\r\n"),
        bad("empty line between chunks", b"5\r\nhello\r\n\r\n0\r\n\r\n"),
        bad("bare LF after the size", b"5\nhello\r\n0\r\n\r\n"),
        bad("bare LF after the last size", b"0\n\n"),
        refused("17 digits", "7.1", b"00000000000000005\r\n", E::ChunkSizeOverflow),
        refused("65 bits", "7.1", b"10000000000000000\r\n", E::ChunkSizeOverflow),
        refused("64 bits", "7.1", b"ffffffffffffffff\r\n", E::ChunkSizeOverflow),
        refused("would wrap to 5", "7.1", b"10000000000000005\r\nhello\r\n", E::ChunkSizeOverflow),
        refused("sum of 64 bits", "7.1", b"1\r\na\r\n7fffffffffffffff\r\n", E::ChunkSizeOverflow),
    ]
}

fn ends() -> Vec<BodyCase> {
    let bad = |name, received: &[u8]| refused(name, "7.1", received, E::ChunkEnd);
    vec![
        bad("bare CR after the size", b"5\rhello\r\n0\r\n\r\n"),
        bad("CR CR LF after the size", b"5\r\r\nhello\r\n"),
        bad("bare LF after the data", b"5\r\nhello\n0\r\n\r\n"),
        bad("bare CR after the data", b"5\r\nhello\r0\r\n\r\n"),
        bad("nothing after the data", b"5\r\nhello0\r\n\r\n"),
        bad("data longer than the size", b"4\r\nhello\r\n0\r\n\r\n"),
        bad("data shorter than the size", b"6\r\nhello\r\n0\r\n\r\n"),
        bad("two other bytes after the data", b"5\r\nhelloXX0\r\n\r\n"),
        bad("bare CR after the last chunk", b"0\r\n\rGET"),
        bad("bare CR in the last chunk's line", b"0\rGET"),
    ]
}

fn extensions() -> Vec<BodyCase> {
    let good = |name, line: &[u8]| {
        whole(name, "7.1.1", &[line, b"\r\nhello\r\n0\r\n\r\n"].concat(), b"hello")
    };
    let bad = |name, line: &[u8]| {
        refused(name, "7.1.1", &[line, b"\r\nhello\r\n0\r\n\r\n"].concat(), E::ChunkExtension)
    };
    vec![
        good("name", b"5;a"),
        good("name and value", b"5;chunk-signature=0123abc"),
        good("several", b"5;a;b=c;d"),
        good("quoted value", b"5;a=\"b c;d=\te\xff\""),
        good("quoted pair", b"5;a=\"\\\"\\\\\""),
        good("empty quoted value", b"5;a=\"\""),
        good("one after a quoted value", b"5;a=\"b\";c"),
        whole("on the last chunk", "7.1.1", b"0;a=b\r\n\r\n", b""),
        bad("no name", b"5;"),
        bad("no name between", b"5;a;;b"),
        bad("no name before the value", b"5;=b"),
        bad("no value", b"5;a="),
        bad("two values", b"5;a=b=c"),
        bad("space before the name", b"5; a"),
        bad("space after the name", b"5;a "),
        bad("space around the equals sign", b"5;a = b"),
        bad("space in the value", b"5;a=b c"),
        bad("text after a quoted value", b"5;a=\"b\"c"),
        bad("quote left open", b"5;a=\"b"),
        bad("quoted CR", b"5;a=\"b\rc\""),
        bad("quoted LF", b"5;a=\"b\nc\""),
        bad("CR in a quoted pair", b"5;a=\"\\\r\""),
        bad("bare LF after the name", b"5;a\nhello\r\n0\r\n\r\n"),
        bad("bare LF after the value", b"5;a=b\n"),
        bad("bare LF at once", b"5;\n"),
        bad("NUL", b"5;a\0"),
        bad("obs-text in the name", b"5;\xff"),
        refused("bare CR after the name", "7.1.1", b"5;a\rb\r\n", E::ChunkEnd),
        refused("space before the semicolon", "7.1.1", b"5 ;a\r\nhello\r\n", E::ChunkSize),
    ]
}

fn extension_limits() -> Vec<BodyCase> {
    let line = |size: u16| [b"1;".as_slice(), &vec![b'a'; usize::from(size) - 1], b"\r\n"].concat();
    let chunk = |size: u16| [line(size).as_slice(), b"x\r\n"].concat();
    // Each chunk has 256 bytes and 1 byte of data. The 65th chunk exceeds 16 KiB plus the data.
    let many = chunk(CHUNK_EXTENSION_SIZE_MAX).repeat(64);
    let too_many = chunk(CHUNK_EXTENSION_SIZE_MAX).repeat(65);
    // In signed uploads, the extensions are smaller than the data.
    let signed =
        [format!("200;chunk-signature={}\r\n", "f".repeat(64)).as_bytes(), &[b'x'; 512], b"\r\n"]
            .concat();
    vec![
        whole(
            "longest extension",
            "policy",
            &[chunk(CHUNK_EXTENSION_SIZE_MAX).as_slice(), b"0\r\n\r\n"].concat(),
            b"x",
        ),
        refused(
            "extension too long",
            "policy",
            &line(CHUNK_EXTENSION_SIZE_MAX + 1),
            E::ChunkExtensionTooLong,
        ),
        refused(
            "endless extension",
            "policy",
            &[b"1;".as_slice(), &[b'a'; 1000]].concat(),
            E::ChunkExtensionTooLong,
        ),
        refused(
            "endless quoted extension",
            "policy",
            &[b"1;a=\"".as_slice(), &[b' '; 1000]].concat(),
            E::ChunkExtensionTooLong,
        ),
        whole(
            "as many extensions as allowed",
            "policy",
            &[many.as_slice(), b"0\r\n\r\n"].concat(),
            &[b'x'; 64],
        ),
        refused("too many extensions", "policy", &too_many, E::ChunkExtensionTooLong),
        whole(
            "signed chunks",
            "policy",
            &[signed.repeat(400).as_slice(), b"0\r\n\r\n"].concat(),
            &[b'x'; 512 * 400],
        ),
    ]
}

fn trailers() -> Vec<BodyCase> {
    let with = |name, section, lines: &[u8], trailers: &[(&'static str, &'static str)]| {
        let received = [b"1\r\na\r\n0\r\n".as_slice(), lines, b"\r\n"].concat();
        chunked(
            name,
            section,
            &received,
            BodyExpected::Whole { data: b"a".to_vec(), trailers: trailers.to_vec(), left: 0 },
        )
    };
    let bad = |name, section, lines: &[u8], error| {
        let received = [b"0\r\n".as_slice(), lines, b"\r\n"].concat();
        chunked(name, section, &received, BodyExpected::TrailersRefused(TrailerError::Field(error)))
    };
    let large = [b"0\r\nA: ".as_slice(), &[b'b'; 20_000]].concat();
    vec![
        with("one field", "7.1.2", b"X-Sum: 1\r\n", &[("X-Sum", "1")]),
        with(
            "several fields",
            "7.1.2",
            b"A:1\r\ngrpc-status: 0 \r\nA: 2\r\n",
            &[("A", "1"), ("grpc-status", "0"), ("A", "2")],
        ),
        with(
            "framing fields do not travel",
            "9110 6.5.1",
            b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\nA: 1\r\n",
            &[("A", "1")],
        ),
        with(
            "nor their look-alikes",
            "policy",
            b"Content_Length: 5\r\nContent.Length: 5\r\nX~Forwarded.For: b\r\n",
            &[],
        ),
        with("nor what a request must not have", "policy", b"Proxy: b\r\nEarly-Data: 1\r\n", &[]),
        with("routing fields do not", "9110 6.5.1", b"Host: b\r\nTE: trailers\r\n", &[]),
        with(
            "hop-by-hop fields do not",
            "9110 7.6.1",
            b"Connection: close\r\nKeep-Alive: x\r\nUpgrade: x\r\n",
            &[],
        ),
        with(
            "credentials and cookies do not",
            "9110 6.5.1",
            b"Authorization: x\r\nCookie: x\r\nSet-Cookie: x\r\n",
            &[],
        ),
        with("conditions do not", "9110 6.5.1", b"If-Match: x\r\nRange: x\r\n", &[]),
        with(
            "descriptions of the content do not",
            "9110 6.5.1",
            b"Content-Type: x\r\ncontent-encoding: gzip\r\n",
            &[],
        ),
        with(
            "claims about the client do not",
            "policy",
            b"X-Forwarded-For: 1.2.3.4\r\nForwarded: x\r\n",
            &[],
        ),
        with("Trailer does not", "9110 6.5.1", b"Trailer: A\r\n", &[]),
        chunked(
            "the next message follows",
            "7.1.2",
            b"0\r\nA: 1\r\n\r\nGET",
            BodyExpected::Whole { data: Vec::new(), trailers: vec![("A", "1")], left: 3 },
        ),
        open("part of a trailer field", b"0\r\nA: 1", b""),
        open("no empty line", b"0\r\nA: 1\r\n", b""),
        bad("space before the colon", "5.1", b"A : 1\r\n", F::SpaceBeforeColon),
        bad("folded line", "5.2", b"A: 1\r\n 2\r\n", F::Folded),
        bad("space first", "5.2", b" A: 1\r\n", F::Folded),
        bad("bare LF", "2.2", b"A: 1\nB: 2\r\n", F::BareLf),
        bad("bare LF at once", "2.2", b"\n", F::BareLf),
        bad("bare CR", "2.2", b"A: 1\rB: 2\r\n", F::BareCr),
        bad("NUL", "9110 5.5", b"A: \0\r\n", F::Value),
        bad("no colon", "5", b"GET / HTTP/1.1\r\n", F::SpaceBeforeColon),
        bad("empty name", "5.1", b": 1\r\n", F::NameEmpty),
        bad("data after the last chunk", "7.1", b"hello\r\n", F::Name),
        bad("too many fields", "9110 5.4", &b"A: 1\r\n".repeat(101), F::TooMany),
        chunked(
            "too large",
            "9110 5.4",
            &large,
            BodyExpected::TrailersRefused(TrailerError::TooLarge),
        ),
    ]
}

fn limits() -> Vec<BodyCase> {
    let limited = |name, framing, received: &[u8], expected| BodyCase {
        name,
        section: "9110 15.5.14",
        framing,
        size_max: Some(5),
        received: received.to_vec(),
        expected,
    };
    let hello = || BodyExpected::Whole { data: b"hello".to_vec(), trailers: Vec::new(), left: 0 };
    vec![
        limited("length at the limit", Framing::Length(5), b"hello", hello()),
        limited(
            "length over the limit",
            Framing::Length(6),
            b"hello!",
            BodyExpected::Refused(E::TooLarge),
        ),
        limited(
            "length over the limit before any byte",
            Framing::Length(6),
            b"",
            BodyExpected::Refused(E::TooLarge),
        ),
        limited(
            "chunks at the limit",
            Framing::Chunked,
            b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
            hello(),
        ),
        limited(
            "chunk over the limit",
            Framing::Chunked,
            b"6\r\n",
            BodyExpected::Refused(E::TooLarge),
        ),
        limited(
            "chunks over the limit",
            Framing::Chunked,
            b"5\r\nhello\r\n1\r\n",
            BodyExpected::Refused(E::TooLarge),
        ),
        limited(
            "until close at the limit",
            Framing::UntilClose,
            b"hello",
            BodyExpected::Open { data: b"hello".to_vec(), may_end_at_eof: true },
        ),
        limited(
            "until close over the limit",
            Framing::UntilClose,
            b"hello!",
            BodyExpected::Refused(E::TooLarge),
        ),
    ]
}

//! Cases for the framing of response bodies (RFC 9112 section 6.3).

use weir_http::h1::{FramingError as R, ResponseError as E};

use super::*;

pub fn cases() -> Vec<ResponseCase> {
    [bodies(), no_bodies(), content_length(), transfer_encoding()].into_iter().flatten().collect()
}

const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

fn bodies() -> Vec<ResponseCase> {
    const LENGTH: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    vec![
        answered("length", "6.3 6", LENGTH, Framing::Length(5), LENGTH),
        answered(
            "leading zeros are written anew",
            "6.2",
            b"HTTP/1.1 200 OK\r\nContent-Length: 005\r\n\r\n",
            Framing::Length(5),
            LENGTH,
        ),
        answered("chunks", "6.3 4", CHUNKED, Framing::Chunked, CHUNKED),
        answered(
            "chunks in capitals",
            "7",
            b"HTTP/1.1 200 OK\r\nTransfer-encoding:CHUNKED\r\n\r\n",
            Framing::Chunked,
            CHUNKED,
        ),
        answered(
            "Trailer with chunks",
            "9110 6.6.2",
            b"HTTP/1.1 200 OK\r\nTrailer: A\r\nTransfer-Encoding: chunked\r\n\r\n",
            Framing::Chunked,
            b"HTTP/1.1 200 OK\r\nTrailer: A\r\nTransfer-Encoding: chunked\r\n\r\n",
        ),
        answered(
            "until close goes on in chunks",
            "6.3 8",
            b"HTTP/1.1 200 OK\r\n\r\n",
            Framing::UntilClose,
            CHUNKED,
        )
        .then_closed(),
        answered(
            "until close in spite of keep-alive",
            "6.3 8",
            b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\n",
            Framing::UntilClose,
            CHUNKED,
        )
        .then_closed(),
        answered(
            "until close in 1.0",
            "6.3 8",
            b"HTTP/1.0 200 OK\r\n\r\n",
            Framing::UntilClose,
            CHUNKED,
        )
        .then_closed(),
        answered(
            "length in 1.0",
            "6.3 6",
            b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n",
            Framing::Length(5),
            LENGTH,
        )
        .then_closed(),
        answered(
            "error with a body until close",
            "6.3 8",
            b"HTTP/1.1 500 x\r\n\r\n",
            Framing::UntilClose,
            b"HTTP/1.1 500 x\r\nTransfer-Encoding: chunked\r\n\r\n",
        )
        .then_closed(),
        answered(
            "205 with a length of nothing",
            "9110 15.3.6",
            b"HTTP/1.1 205 x\r\nContent-Length: 0\r\n\r\n",
            Framing::Length(0),
            b"HTTP/1.1 205 x\r\nContent-Length: 0\r\n\r\n",
        ),
        answered("answer to POST", "6.3 6", LENGTH, Framing::Length(5), LENGTH).to(Method::Post),
        answered("answer to OPTIONS", "6.3 4", CHUNKED, Framing::Chunked, CHUNKED)
            .to(Method::Options),
    ]
}

fn no_bodies() -> Vec<ResponseCase> {
    let none = |name, section, received: &[u8], head: &[u8]| {
        answered(name, section, received, Framing::None, head)
    };
    const OK: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n";
    const LENGTH: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    vec![
        none("HEAD", "6.3 1", OK, OK).to(Method::Head),
        none("HEAD with a length", "9110 8.6", LENGTH, LENGTH).to(Method::Head),
        none(
            "HEAD with a length of nothing",
            "9110 8.6",
            b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        )
        .to(Method::Head),
        none("HEAD with chunks", "6.1", CHUNKED, OK).to(Method::Head),
        none("HEAD in 1.0", "6.3 1", b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", LENGTH)
            .to(Method::Head)
            .then_closed(),
        bad(
            "HEAD with both",
            "6.3",
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            E::Framing(R::Both),
        )
        .to(Method::Head),
        none(
            "304",
            "6.3 1",
            b"HTTP/1.1 304 x\r\nETag: a\r\n\r\n",
            b"HTTP/1.1 304 x\r\nETag: a\r\n\r\n",
        ),
        none(
            "304 with a length",
            "9110 8.6",
            b"HTTP/1.1 304 x\r\nContent-Length: 5\r\n\r\n",
            b"HTTP/1.1 304 x\r\nContent-Length: 5\r\n\r\n",
        ),
        none(
            "304 with chunks",
            "6.1",
            b"HTTP/1.1 304 x\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"HTTP/1.1 304 x\r\n\r\n",
        ),
        none("304 to HEAD", "6.3 1", b"HTTP/1.1 304 x\r\n\r\n", b"HTTP/1.1 304 x\r\n\r\n")
            .to(Method::Head),
        none("204", "6.3 1", b"HTTP/1.1 204 x\r\n\r\n", b"HTTP/1.1 204 x\r\n\r\n"),
        none(
            "204 with a length of nothing",
            "9110 8.6",
            b"HTTP/1.1 204 x\r\nContent-Length: 0\r\n\r\n",
            b"HTTP/1.1 204 x\r\n\r\n",
        ),
        none(
            "204 with a length is not trusted further",
            "9110 8.6",
            b"HTTP/1.1 204 x\r\nContent-Length: 5\r\n\r\n",
            b"HTTP/1.1 204 x\r\n\r\n",
        )
        .then_closed(),
        none(
            "204 with chunks is not trusted further",
            "6.1",
            b"HTTP/1.1 204 x\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"HTTP/1.1 204 x\r\n\r\n",
        )
        .then_closed(),
        bad("tunnel to CONNECT", "6.3 2", OK, E::Connect).to(Method::Connect),
    ]
}

fn content_length() -> Vec<ResponseCase> {
    let wrong = |name, value: &str| {
        let lines = format!("Content-Length: {value}\r\n");
        bad_fields(name, "6.3 5", lines.as_bytes(), E::Framing(R::ContentLength))
    };
    vec![
        wrong("empty length", ""),
        wrong("plus sign", "+5"),
        wrong("minus sign", "-5"),
        wrong("hexadecimal", "0x5"),
        wrong("letters", "a"),
        wrong("list of equal values", "5, 5"),
        wrong("list of different values", "5,6"),
        wrong("space inside", "5 5"),
        wrong("more than 63 bits", "9223372036854775808"),
        wrong("more than 64 bits", "18446744073709551616"),
        bad_fields(
            "repeated and equal",
            "6.3 5",
            b"Content-Length: 5\r\nContent-Length: 5\r\n",
            E::Framing(R::ContentLengthRepeated),
        ),
        bad_fields(
            "repeated and different",
            "6.3 5",
            b"Content-Length: 5\r\nContent-Length: 6\r\n",
            E::Framing(R::ContentLengthRepeated),
        ),
        bad(
            "wrong in a 204",
            "6.3 5",
            b"HTTP/1.1 204 x\r\nContent-Length: x\r\n\r\n",
            E::Framing(R::ContentLength),
        ),
        bad(
            "wrong in answer to HEAD",
            "6.3 5",
            b"HTTP/1.1 200 x\r\nContent-Length: 1,1\r\n\r\n",
            E::Framing(R::ContentLength),
        )
        .to(Method::Head),
        bad(
            "wrong in a 304",
            "6.3 5",
            b"HTTP/1.1 304 x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            E::Framing(R::ContentLengthRepeated),
        ),
    ]
}

fn transfer_encoding() -> Vec<ResponseCase> {
    let wrong = |name, value: &str| {
        let lines = format!("Transfer-Encoding: {value}\r\n");
        bad_fields(name, "6.1", lines.as_bytes(), E::Framing(R::TransferEncoding))
    };
    vec![
        wrong("empty encoding", ""),
        wrong("identity", "identity"),
        wrong("gzip", "gzip"),
        wrong("gzip and chunked", "gzip, chunked"),
        wrong("chunked twice", "chunked, chunked"),
        wrong("chunked not last", "chunked, gzip"),
        wrong("parameter", "chunked;q=1"),
        wrong("longer word", "xchunked"),
        wrong("trailing comma", "chunked,"),
        bad_fields(
            "repeated",
            "6.1",
            b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            E::Framing(R::TransferEncoding),
        ),
        bad_fields(
            "length, then encoding",
            "6.3 3",
            b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            E::Framing(R::Both),
        ),
        bad_fields(
            "encoding, then length",
            "6.3 3",
            b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
            E::Framing(R::Both),
        ),
        bad(
            "in HTTP/1.0",
            "6.1",
            b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            E::Framing(R::TransferEncodingInHttp10),
        ),
        bad_fields(
            "space before the colon",
            "5.1",
            b"Transfer-Encoding : chunked\r\n",
            E::Field(FieldError::SpaceBeforeColon),
        ),
    ]
}

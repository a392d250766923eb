//! Cases for the framing of request bodies.

use weir_http::h1::{FramingError as R, RequestError as E};

use super::*;

pub fn cases() -> Vec<RequestCase> {
    [content_length(), transfer_encoding(), both(), look_alikes()].into_iter().flatten().collect()
}

/// A POST with these field lines, which reaches the member with `sent_lines`.
fn post(name: &'static str, section: &'static str, lines: &[u8], sent_lines: &[u8]) -> RequestCase {
    let wrap = |lines| [b"POST / HTTP/1.1\r\nHost: a\r\n".as_slice(), lines, b"\r\n"].concat();
    sent(name, section, &wrap(lines), &wrap(sent_lines))
}

fn post_refused(name: &'static str, section: &'static str, lines: &[u8], error: R) -> RequestCase {
    let received = [b"POST / HTTP/1.1\r\nHost: a\r\n".as_slice(), lines, b"\r\n"].concat();
    refused(name, section, &received, 400, in_framing(error))
}

fn content_length() -> Vec<RequestCase> {
    let bad = |name, value: &str| {
        let line = format!("Content-Length: {value}\r\n");
        post_refused(name, "6.3", line.as_bytes(), R::ContentLength)
    };
    vec![
        post("Content-Length", "6.2", b"Content-Length: 5\r\n", b"Content-Length: 5\r\n"),
        post("of nothing", "6.2", b"content-length:0\r\n", b"Content-Length: 0\r\n"),
        post(
            "leading zeros are written anew",
            "6.2",
            b"Content-Length: 007\r\n",
            b"Content-Length: 7\r\n",
        ),
        post(
            "the largest",
            "6.2",
            b"Content-Length: 9223372036854775807\r\n",
            b"Content-Length: 9223372036854775807\r\n",
        ),
        post("none at all", "6.3", b"", b""),
        fields("GET with a body", "9110 9.3.1", b"Content-Length: 5\r\n", b"Content-Length: 5\r\n"),
        refused(
            "TRACE with a body",
            "9110 9.3.8",
            b"TRACE / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n",
            400,
            E::TraceWithBody,
        ),
        bad("empty", ""),
        bad("plus sign", "+5"),
        bad("minus sign", "-5"),
        bad("minus zero", "-0"),
        bad("hexadecimal", "0x5"),
        bad("letters", "five"),
        bad("fraction", "5.0"),
        bad("exponent", "5e1"),
        bad("underscore", "1_000"),
        bad("space inside", "5 5"),
        bad("quoted", "\"5\""),
        bad("list of equal values", "1000,1000"),
        bad("list of equal values with space", "5, 5"),
        bad("list of different values", "5, 6"),
        bad("list with an empty element", "5,"),
        bad("parameter", "5;a"),
        bad("more than 63 bits", "9223372036854775808"),
        bad("more than 64 bits", "18446744073709551621"),
        bad("very much more", "100000000000000000000000000000005"),
        bad("full-width digits", "\u{ff15}"),
        post_refused(
            "repeated and equal",
            "6.3",
            b"Content-Length: 5\r\nContent-Length: 5\r\n",
            R::ContentLengthRepeated,
        ),
        post_refused(
            "repeated and different",
            "6.3",
            b"Content-Length: 5\r\ncontent-length: 6\r\n",
            R::ContentLengthRepeated,
        ),
        fields_refused(
            "repeated in a GET",
            "6.3",
            b"Content-Length: 0\r\nContent-Length: 0\r\n",
            400,
            in_framing(R::ContentLengthRepeated),
        ),
    ]
}

fn transfer_encoding() -> Vec<RequestCase> {
    let bad = |name, value: &str| {
        let line = format!("Transfer-Encoding: {value}\r\n");
        post_refused(name, "6.1", line.as_bytes(), R::TransferEncoding)
    };
    const CHUNKED: &[u8] = b"Transfer-Encoding: chunked\r\n";
    vec![
        post("chunked", "6.1", CHUNKED, CHUNKED),
        post("capitals", "7", b"TRANSFER-ENCODING: CHUNKED\r\n", CHUNKED),
        post("whitespace around", "5.1", b"Transfer-Encoding: \t chunked \t\r\n", CHUNKED),
        fields("GET with chunks", "9110 9.3.1", CHUNKED, CHUNKED),
        bad("empty", ""),
        bad("identity", "identity"),
        bad("gzip", "gzip"),
        bad("gzip and chunked", "gzip, chunked"),
        bad("chunked and gzip", "chunked, gzip"),
        bad("chunked twice in a list", "chunked, chunked"),
        bad("chunked and identity", "chunked, identity"),
        bad("empty element before", ", chunked"),
        bad("empty element after", "chunked,"),
        bad("parameter", "chunked;a=b"),
        bad("quoted", "\"chunked\""),
        bad("longer word", "chunkedx"),
        bad("shorter word", "chunke"),
        bad("letter before", "xchunked"),
        bad("two words", "chunked foo"),
        bad("no-break space", "chunked\u{a0}"),
        refused(
            "vertical tab before",
            "9110 5.5",
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0bchunked\r\n\r\n",
            400,
            in_fields(FieldError::Value),
        ),
        post_refused(
            "repeated",
            "6.1",
            b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            R::TransferEncoding,
        ),
        post_refused(
            "repeated with identity",
            "6.1",
            b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
            R::TransferEncoding,
        ),
        post_refused(
            "gzip in a field of its own",
            "6.1",
            b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
            R::TransferEncoding,
        ),
        refused(
            "in HTTP/1.0",
            "6.1",
            b"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
            400,
            in_framing(R::TransferEncodingInHttp10),
        ),
        refused(
            "any in HTTP/1.0",
            "6.1",
            b"GET / HTTP/1.0\r\nTransfer-Encoding: x\r\n\r\n",
            400,
            in_framing(R::TransferEncodingInHttp10),
        ),
        refused(
            "TRACE with chunks",
            "9110 9.3.8",
            b"TRACE / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
            400,
            E::TraceWithBody,
        ),
    ]
}

fn both() -> Vec<RequestCase> {
    vec![
        post_refused(
            "length, then encoding",
            "6.3",
            b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            R::Both,
        ),
        post_refused(
            "encoding, then length",
            "6.3",
            b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
            R::Both,
        ),
        post_refused(
            "length of nothing",
            "6.3",
            b"Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
            R::Both,
        ),
        post_refused(
            "other encoding",
            "6.3",
            b"Content-Length: 5\r\nTransfer-Encoding: identity\r\n",
            R::Both,
        ),
    ]
}

fn look_alikes() -> Vec<RequestCase> {
    vec![
        fields("Content_Length does not travel", "policy", b"Content_Length: 5\r\n", b""),
        fields(
            "Transfer_Encoding does not travel",
            "policy",
            b"transfer_encoding: chunked\r\n",
            b"",
        ),
        post(
            "nor beside the real one",
            "policy",
            b"Content_Length: 5\r\nContent-Length: 6\r\n",
            b"Content-Length: 6\r\n",
        ),
        fields("Keep_Alive neither", "policy", b"Keep_Alive: x\r\n", b""),
        fields("other underscores travel", "policy", b"X_Foo: 1\r\n", b"X_Foo: 1\r\n"),
        fields(
            "longer names are other fields",
            "9110 5.1",
            b"Content-Lengths: x\r\nX-Transfer-Encoding: y\r\n",
            b"Content-Lengths: x\r\nX-Transfer-Encoding: y\r\n",
        ),
    ]
}

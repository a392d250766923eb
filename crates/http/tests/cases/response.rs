//! Cases for status lines and for fields of responses.

use weir_http::h1::{FieldError as F, ResponseError as E};

use super::*;

pub fn cases() -> Vec<ResponseCase> {
    [
        status_lines(),
        statuses(),
        beginnings(),
        syntax(),
        connection(),
        dates(),
        interim_and_upgrade(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A case of a response without a body, for which only the status line and the fields matter.
fn empty(
    name: &'static str,
    section: &'static str,
    lines: &[u8],
    sent_lines: &[u8],
) -> ResponseCase {
    let received =
        [b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n".as_slice(), lines, b"\r\n"].concat();
    let head =
        [b"HTTP/1.1 200 OK\r\n".as_slice(), sent_lines, b"Content-Length: 0\r\n\r\n"].concat();
    answered(name, section, &received, Framing::Length(0), &head)
}

fn status_lines() -> Vec<ResponseCase> {
    let line = |name, section, line: &[u8], sent_line: &[u8]| {
        let received = [line, b"\r\nContent-Length: 0\r\n\r\n"].concat();
        let head = [sent_line, b"\r\nContent-Length: 0\r\n\r\n"].concat();
        answered(name, section, &received, Framing::Length(0), &head)
    };
    let line_bad = |name, section, line: &[u8], error| {
        bad(name, section, &[line, b"\r\nContent-Length: 0\r\n\r\n"].concat(), error)
    };
    vec![
        line("plain response", "4", b"HTTP/1.1 200 OK", b"HTTP/1.1 200 OK"),
        line(
            "reason of several words",
            "4",
            b"HTTP/1.1 404 Not \t Found ",
            b"HTTP/1.1 404 Not \t Found ",
        ),
        line("obs-text in the reason", "4", b"HTTP/1.1 200 \xc3\xa9", b"HTTP/1.1 200 \xc3\xa9"),
        line("empty reason", "4", b"HTTP/1.1 200 ", b"HTTP/1.1 200 "),
        line("no space after the status", "policy", b"HTTP/1.1 200", b"HTTP/1.1 200 "),
        line("reason of spaces", "4", b"HTTP/1.1 200   ", b"HTTP/1.1 200   "),
        line("HTTP/1.0", "2.3", b"HTTP/1.0 200 OK", b"HTTP/1.1 200 OK").then_closed(),
        line("higher minor version", "2.3", b"HTTP/1.7 200 OK", b"HTTP/1.1 200 OK"),
        line_bad("HTTP/2.0", "2.3", b"HTTP/2.0 200 OK", E::Version),
        line_bad("HTTP/0.9", "2.3", b"HTTP/0.9 200 OK", E::Version),
        line_bad("lower case", "2.3", b"http/1.1 200 OK", E::Version),
        line_bad("no minor version", "2.3", b"HTTP/1 200 OK", E::Version),
        line_bad("two-digit minor version", "2.3", b"HTTP/1.10 200 OK", E::Status),
        line_bad("another protocol", "2.3", b"ICY 200 OK", E::Version),
        line_bad("not HTTP at all", "4", b"SSH-2.0-OpenSSH_9.2", E::Version),
        line_bad("a body instead", "4", b"<html>", E::Version),
        line_bad("request line", "4", b"GET / HTTP/1.1", E::Version),
        line_bad("space before", "4", b" HTTP/1.1 200 OK", E::Version),
        line_bad("empty line before", "4", b"\r\nHTTP/1.1 200 OK", E::Version),
        line_bad("two spaces before the status", "4", b"HTTP/1.1  200 OK", E::Status),
        line_bad("tab before the status", "4", b"HTTP/1.1\t200 OK", E::Status),
        line_bad("tab after the status", "4", b"HTTP/1.1 200\tOK", E::Status),
        line_bad("no status", "4", b"HTTP/1.1 OK", E::Status),
        line_bad("NUL in the reason", "4", b"HTTP/1.1 200 O\0K", E::Reason),
        line_bad("escape in the reason", "4", b"HTTP/1.1 200 \x1b[0m", E::Reason),
        line_bad("DEL in the reason", "4", b"HTTP/1.1 200 \x7f", E::Reason),
        bad(
            "bare LF after the reason",
            "2.2",
            b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
            E::LineEnd,
        ),
        bad("bare LF after the status", "2.2", b"HTTP/1.1 200\n", E::LineEnd),
        bad(
            "bare CR after the reason",
            "2.2",
            b"HTTP/1.1 200 OK\rContent-Length: 0\r\n\r\n",
            E::LineEnd,
        ),
        bad("CR CR LF", "2.2", b"HTTP/1.1 200 OK\r\r\n\r\n", E::LineEnd),
        bad("TLS record", "4", b"\x15\x03\x03\x00\x02\x02\x46", E::Version),
    ]
}

fn statuses() -> Vec<ResponseCase> {
    let status = |name, status: &str| {
        let head = format!("HTTP/1.1 {status} x\r\nContent-Length: 0\r\n\r\n");
        answered(name, "9110 15", head.as_bytes(), Framing::Length(0), head.as_bytes())
    };
    let wrong = |name, status: &str| {
        bad(name, "9110 15", format!("HTTP/1.1 {status} x\r\n\r\n").as_bytes(), E::Status)
    };
    vec![
        status("unknown 2xx", "299"),
        status("unknown 4xx", "499"),
        status("highest", "599"),
        wrong("600", "600"),
        wrong("999", "999"),
        wrong("099", "099"),
        wrong("000", "000"),
        wrong("two digits", "20"),
        wrong("four digits", "2000"),
        wrong("letters", "2xx"),
        wrong("minus sign", "-20"),
        wrong("plus sign", "+20"),
        wrong("fraction", "200.1"),
    ]
}

fn beginnings() -> Vec<ResponseCase> {
    vec![
        partly("nothing", "4", b""),
        partly("part of the version", "4", b"HTTP/1"),
        partly("part of the status", "4", b"HTTP/1.1 20"),
        partly("the status", "4", b"HTTP/1.1 200"),
        partly("part of the reason", "4", b"HTTP/1.1 200 O"),
        partly("CR of the status line", "4", b"HTTP/1.1 200 OK\r"),
        partly("part of a field", "5", b"HTTP/1.1 200 OK\r\nA: b"),
        partly("CR of the empty line", "4", b"HTTP/1.1 200 OK\r\nA: b\r\n\r"),
    ]
}

fn syntax() -> Vec<ResponseCase> {
    let bad_line = |name, line: &[u8], error| bad_fields(name, "5", line, E::Field(error));
    vec![
        empty("whitespace around a value", "5.1", b"A:  b \t\r\n", b"A: b\r\n"),
        empty("empty value", "9110 5.5", b"A:\r\n", b"A: \r\n"),
        empty("obs-text", "9110 5.5", b"A: \xff\r\n", b"A: \xff\r\n"),
        empty(
            "several Set-Cookie",
            "9110 5.3",
            b"Set-Cookie: a\r\nSet-Cookie: b\r\n",
            b"Set-Cookie: a\r\nSet-Cookie: b\r\n",
        ),
        empty("order stays", "9110 5.3", b"B: 1\r\nA: 2\r\n", b"B: 1\r\nA: 2\r\n"),
        bad_line("space before the colon", b"A : b\r\n", F::SpaceBeforeColon),
        bad_line("space in the name", b"A B: c\r\n", F::SpaceBeforeColon),
        bad_line("empty name", b": b\r\n", F::NameEmpty),
        bad_line("no colon", b"A\r\n", F::Name),
        bad_line("bracket in the name", b"A[]: b\r\n", F::Name),
        bad_line("obs-text in the name", b"\xff: b\r\n", F::Name),
        bad_line("folded line", b"A: b\r\n c\r\n", F::Folded),
        bad_line("space before the first field", b" A: b\r\n", F::Folded),
        bad_line("bare LF", b"A: b\nB: c\r\n", F::BareLf),
        bad_line("bare CR", b"A: b\rB: c\r\n", F::BareCr),
        bad_line("NUL", b"A: \0\r\n", F::Value),
        bad_line("DEL", b"A: \x7f\r\n", F::Value),
        bad_line("too many fields", &b"A: b\r\n".repeat(101), F::TooMany),
    ]
}

fn connection() -> Vec<ResponseCase> {
    let http10 = |name, lines: &str| {
        let received = format!("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n{lines}\r\n");
        answered(
            name,
            "9.3",
            received.as_bytes(),
            Framing::Length(0),
            b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        )
    };
    vec![
        empty("close", "9.6", b"Connection: close\r\n", b"").then_closed(),
        empty("close in a list", "9.6", b"Connection: a, CLOSE\r\n", b"").then_closed(),
        empty("keep-alive", "9.3", b"Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n", b""),
        empty(
            "keep-alive and close",
            "9.3",
            b"Connection: keep-alive\r\nConnection: close\r\n",
            b"",
        )
        .then_closed(),
        http10("keep-alive in 1.0", "Connection: keep-alive\r\n"),
        http10("Keep-Alive alone in 1.0", "Keep-Alive: timeout=5\r\n").then_closed(),
        http10("close in 1.0", "Connection: close\r\n").then_closed(),
        empty(
            "hop-by-hop fields",
            "9110 7.6.1",
            b"Keep-Alive: x\r\nProxy-Connection: x\r\nTE: x\r\nUpgrade: x\r\nA: b\r\n",
            b"A: b\r\n",
        ),
        empty(
            "nominated field",
            "9110 7.6.1",
            b"Connection: x-a\r\nX-A: 1\r\nX-B: 2\r\n",
            b"X-B: 2\r\n",
        ),
        empty("nominated framing stays", "9110 7.6.1", b"Connection: Content-Length\r\n", b""),
        empty(
            "advertised upgrade is removed",
            "9110 7.8",
            b"Connection: upgrade\r\nUpgrade: h2,h2c\r\n",
            b"",
        ),
        empty("Trailer without chunks", "9110 6.6.2", b"Trailer: A\r\n", b""),
        empty(
            "challenge of a proxy travels",
            "9110 11.7.1",
            b"Proxy-Authenticate: Basic\r\n",
            b"Proxy-Authenticate: Basic\r\n",
        ),
        empty(
            "look-alikes of framing do not travel",
            "policy",
            b"Content_Length: 5\r\nTransfer_Encoding: chunked\r\nTransfer.Encoding: chunked\r\n",
            b"",
        ),
        empty("Proxy means nothing here", "policy", b"Proxy: a\r\n", b"Proxy: a\r\n"),
    ]
}

fn dates() -> Vec<ResponseCase> {
    const NOW: &[u8] = b"Sat, 21 Nov 2026 12:00:00 GMT";
    let dated = |name, section, lines: &[u8], sent_lines: &[u8]| {
        empty(name, section, lines, sent_lines).at(NOW)
    };
    const ADDED: &[u8] = b"A: b\r\nDate: Sat, 21 Nov 2026 12:00:00 GMT\r\n";
    vec![
        dated("no Date", "9110 6.6.1", b"A: b\r\n", ADDED),
        dated("Date", "9110 6.6.1", b"Date: x\r\nA: b\r\n", b"Date: x\r\nA: b\r\n"),
        dated("date in lower case", "9110 5.1", b"date: x\r\n", b"date: x\r\n"),
        dated("empty Date", "9110 6.6.1", b"Date:\r\n", b"Date: \r\n"),
        dated("several Date", "policy", b"Date: x\r\nDate: y\r\n", b"Date: x\r\nDate: y\r\n"),
        dated("nominated Date", "9110 7.6.1", b"Connection: date\r\nDate: x\r\nA: b\r\n", ADDED),
        answered(
            "404 until the end",
            "9110 6.6.1",
            b"HTTP/1.0 404 x\r\n\r\n",
            Framing::UntilClose,
            b"HTTP/1.1 404 x\r\nDate: Sat, 21 Nov 2026 12:00:00 GMT\r\nTransfer-Encoding: chunked\r\n\r\n",
        )
        .at(NOW)
        .then_closed(),
        answered(
            "304",
            "9110 6.6.1",
            b"HTTP/1.1 304 x\r\n\r\n",
            Framing::None,
            b"HTTP/1.1 304 x\r\nDate: Sat, 21 Nov 2026 12:00:00 GMT\r\n\r\n",
        )
        .at(NOW),
    ]
}

fn interim_and_upgrade() -> Vec<ResponseCase> {
    let none = |name, section, received: &[u8], head: &[u8]| {
        answered(name, section, received, Framing::None, head)
    };
    vec![
        none("100", "9110 15.2.1", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"),
        none("103 with fields", "8297 2", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n",
            b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"),
        none("unknown interim", "9110 15.2", b"HTTP/1.1 199 x\r\n\r\n", b"HTTP/1.1 199 x\r\n\r\n"),
        none("interim with a length of nothing", "9110 8.6", b"HTTP/1.1 100 Continue\r\nContent-Length: 0\r\n\r\n",
            b"HTTP/1.1 100 Continue\r\n\r\n"),
        none("interim that says close", "9.6", b"HTTP/1.1 100 Continue\r\nConnection: close\r\n\r\n",
            b"HTTP/1.1 100 Continue\r\n\r\n").then_closed(),
        bad("interim with a length", "9110 8.6", b"HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\n", E::InterimWithBody),
        bad("interim with chunks", "6.1", b"HTTP/1.1 103 x\r\nTransfer-Encoding: chunked\r\n\r\n", E::InterimWithBody),
        none("101", "9110 15.2.2", b"HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nA: b\r\n\r\n",
            b"HTTP/1.1 101 x\r\nA: b\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n").then_closed(),
        bad("101 without Upgrade", "9110 15.2.2", b"HTTP/1.1 101 x\r\nConnection: upgrade\r\n\r\n", E::UpgradeMissing),
        bad("101 with Upgrade not nominated", "9110 7.8", b"HTTP/1.1 101 x\r\nUpgrade: a\r\n\r\n", E::UpgradeMissing),
        bad("101 with two Upgrade", "policy", b"HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: a\r\nUpgrade: b\r\n\r\n",
            E::UpgradeMissing),
        bad("101 with a length", "9110 8.6",
            b"HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: a\r\nContent-Length: 5\r\n\r\n", E::InterimWithBody),
        answered("426 keeps what it asks for", "9110 15.5.22",
            b"HTTP/1.1 426 x\r\nConnection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n", Framing::Length(0),
            b"HTTP/1.1 426 x\r\nContent-Length: 0\r\nConnection: keep-alive, upgrade\r\nUpgrade: websocket\r\n\r\n"),
    ]
}

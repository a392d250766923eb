//! Cases for field lines, Host, and fields that an intermediary removes.

use weir_http::h1::{FieldError as F, FramingError as R, NOMINATIONS_MAX, RequestError as E};

use super::*;

pub fn cases() -> Vec<RequestCase> {
    [
        syntax(),
        hosts(),
        connection(),
        nominations(),
        upgrades(),
        te_and_trailer(),
        expectations(),
        max_forwards(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn syntax() -> Vec<RequestCase> {
    let many = b"A: b\r\n".repeat(99);
    let too_many = b"A: b\r\n".repeat(100);
    vec![
        fields("no space after the colon", "5.1", b"A:b\r\n", b"A: b\r\n"),
        fields("much whitespace around the value", "5.1", b"A: \t b c \t\r\n", b"A: b c\r\n"),
        fields("tab after the colon", "5.1", b"A:\tb\r\n", b"A: b\r\n"),
        fields("space after the value", "5.1", b"A: b \r\n", b"A: b\r\n"),
        fields("empty value", "9110 5.5", b"A:\r\n", b"A: \r\n"),
        fields("value of whitespace", "9110 5.5", b"A: \t \r\n", b"A: \r\n"),
        fields("whitespace inside the value", "9110 5.5", b"A: b \t c\r\n", b"A: b \t c\r\n"),
        fields(
            "obs-text in a value",
            "9110 5.5",
            b"A: \x80\xff\xc3\xa9\r\n",
            b"A: \x80\xff\xc3\xa9\r\n",
        ),
        fields("colons in a value", "5", b"A: b:c::d\r\n", b"A: b:c::d\r\n"),
        fields(
            "name of every token character",
            "5.1",
            b"!#$%&'*+-.^_`|~09azAZ: b\r\n",
            b"!#$%&'*+-.^_`|~09azAZ: b\r\n",
        ),
        fields(
            "order and repetition stay",
            "9110 5.3",
            b"B: 1\r\na: 2\r\nB: 3\r\n",
            b"B: 1\r\na: 2\r\nB: 3\r\n",
        ),
        fields("spelling stays", "9110 5.1", b"x-FoO: b\r\n", b"x-FoO: b\r\n"),
        fields("as many fields as allowed", "9110 5.4", &many, &many),
        fields_refused("one field too many", "9110 5.4", &too_many, 431, in_fields(F::TooMany)),
        fields_refused(
            "space before the colon",
            "5.1",
            b"A : b\r\n",
            400,
            in_fields(F::SpaceBeforeColon),
        ),
        fields_refused(
            "tab before the colon",
            "5.1",
            b"A\t: b\r\n",
            400,
            in_fields(F::SpaceBeforeColon),
        ),
        fields_refused(
            "space before the colon of Transfer-Encoding",
            "5.1",
            b"Transfer-Encoding : chunked\r\n",
            400,
            in_fields(F::SpaceBeforeColon),
        ),
        fields_refused(
            "space in the name",
            "5.1",
            b"A B: c\r\n",
            400,
            in_fields(F::SpaceBeforeColon),
        ),
        fields_refused("empty name", "5.1", b": b\r\n", 400, in_fields(F::NameEmpty)),
        fields_refused("no colon", "5", b"A\r\n", 400, in_fields(F::Name)),
        fields_refused(
            "bracket in the name",
            "5.1",
            b"X-Invalid[]: b\r\n",
            400,
            in_fields(F::Name),
        ),
        fields_refused("slash in the name", "5.1", b"A/B: c\r\n", 400, in_fields(F::Name)),
        fields_refused("NUL in the name", "5.1", b"A\0: b\r\n", 400, in_fields(F::Name)),
        fields_refused(
            "NUL behind a known name",
            "5.1",
            b"Expect\0: b\r\n",
            400,
            in_fields(F::Name),
        ),
        fields_refused("obs-text in the name", "5.1", b"\xc3\xa9: b\r\n", 400, in_fields(F::Name)),
        fields_refused("quoted name", "5.1", b"\"A\": b\r\n", 400, in_fields(F::Name)),
        fields_refused("folded line", "5.2", b"A: b\r\n c\r\n", 400, in_fields(F::Folded)),
        fields_refused(
            "line folded with a tab",
            "5.2",
            b"A: b\r\n\tc\r\n",
            400,
            in_fields(F::Folded),
        ),
        fields_refused("line of a space", "5.2", b"A: b\r\n \r\n", 400, in_fields(F::Folded)),
        refused(
            "space before the first field",
            "2.2",
            b"GET / HTTP/1.1\r\n Host: a\r\n\r\n",
            400,
            in_fields(F::Folded),
        ),
        fields_refused(
            "bare LF after a value",
            "2.2",
            b"A: b\nB: c\r\n",
            400,
            in_fields(F::BareLf),
        ),
        fields_refused("bare LF after a name", "2.2", b"A\n: b\r\n", 400, in_fields(F::BareLf)),
        fields_refused("bare LF as the empty line", "2.2", b"\n", 400, in_fields(F::BareLf)),
        fields_refused("bare CR in a value", "2.2", b"A: b\rc\r\n", 400, in_fields(F::BareCr)),
        fields_refused("CR CR LF after a value", "2.2", b"A: b\r\r\n", 400, in_fields(F::BareCr)),
        fields_refused(
            "bare CR as the empty line",
            "2.2",
            b"\rA: b\r\n",
            400,
            in_fields(F::BareCr),
        ),
        fields_refused("NUL in a value", "9110 5.5", b"A: b\0c\r\n", 400, in_fields(F::Value)),
        fields_refused("bell in a value", "9110 5.5", b"A: b\x07c\r\n", 400, in_fields(F::Value)),
        fields_refused("DEL in a value", "9110 5.5", b"A: b\x7f\r\n", 400, in_fields(F::Value)),
        fields_refused(
            "escape in a value",
            "9110 5.5",
            b"A: \x1b[0m\r\n",
            400,
            in_fields(F::Value),
        ),
        fields_refused(
            "vertical tab around a value",
            "5.1",
            b"A:\x0bb\r\n",
            400,
            in_fields(F::Value),
        ),
        fields_refused("form feed after a value", "5.1", b"A: b\x0c\r\n", 400, in_fields(F::Value)),
    ]
}

fn hosts() -> Vec<RequestCase> {
    let host = |name, section, value: &str, sent_value: &str| {
        let head = |value| format!("GET / HTTP/1.1\r\nHost: {value}\r\n\r\n");
        sent(name, section, head(value).as_bytes(), head(sent_value).as_bytes())
    };
    vec![
        host("name", "3.2", "example.com", "example.com"),
        host("spelling of the name stays", "3.2", "Example.COM", "Example.COM"),
        host("name and port", "3.2", "example.com:8080", "example.com:8080"),
        host("IPv4 address", "3986 3.2.2", "127.0.0.1:80", "127.0.0.1:80"),
        host("IPv6 address", "3986 3.2.2", "[2001:db8::1]:80", "[2001:db8::1]:80"),
        host("underscore", "3986 3.2.2", "a_b", "a_b"),
        host("trailing dot", "3986 3.2.2", "a.", "a."),
        host("empty port is dropped", "9110 4.2.3", "a:", "a"),
        host("empty", "3.2", "", ""),
        sent_then_closed(
            "none in HTTP/1.0",
            "3.2",
            b"GET / HTTP/1.0\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: \r\n\r\n",
        ),
        sent(
            "comes first",
            "9110 7.2",
            b"GET / HTTP/1.1\r\nA: b\r\nhost:a\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n\r\n",
        ),
        refused("none in HTTP/1.1", "3.2", b"GET / HTTP/1.1\r\nA: b\r\n\r\n", 400, E::HostMissing),
        refused("no field at all", "3.2", b"GET / HTTP/1.1\r\n\r\n", 400, E::HostMissing),
        fields_refused("two", "3.2", b"Host: b\r\n", 400, E::HostRepeated),
        fields_refused("two that are equal", "3.2", b"host: a\r\n", 400, E::HostRepeated),
        refused(
            "two in HTTP/1.0",
            "3.2",
            b"GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n",
            400,
            E::HostRepeated,
        ),
        host_refused("list", "3.2", b"a, b"),
        host_refused("comma", "policy", b"a,b"),
        host_refused("userinfo", "9110 4.2.4", b"user@a"),
        host_refused("path", "3.2", b"a/b"),
        host_refused("query", "3.2", b"a?b"),
        host_refused("fragment", "3.2", b"a#b"),
        host_refused("space", "3.2", b"a b"),
        host_refused("scheme", "3.2", b"http://a"),
        host_refused("backslash", "3.2", b"a\\b"),
        host_refused("percent-encoding", "policy", b"%61"),
        host_refused("quotes", "3.2", b"\"a\""),
        host_refused("angle brackets", "3.2", b"<a>"),
        host_refused("UTF-8", "3.2", "é".as_bytes()),
        host_refused("port that is no number", "3.2", b"a:b"),
        host_refused("port too large", "3.2", b"a:65536"),
        host_refused("negative port", "3.2", b"a:-1"),
        host_refused("two ports", "3.2", b"a:80:80"),
        host_refused("port alone", "3.2", b":80"),
        host_refused("IPv6 address without brackets", "3986 3.2.2", b"::1"),
        host_refused("bracket left open", "3986 3.2.2", b"[::1"),
        host_refused("no address in the brackets", "3986 3.2.2", b"[a]"),
        host_refused("something after the bracket", "3986 3.2.2", b"[::1]a"),
        host_refused("zone", "6874", b"[fe80::1%25eth0]"),
    ]
}

fn connection() -> Vec<RequestCase> {
    let http10 = |lines: &str| format!("GET / HTTP/1.0\r\nHost: a\r\n{lines}\r\n").into_bytes();
    let plain = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let http11 = |lines: &str| format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n").into_bytes();
    vec![
        sent_then_closed("close", "9.6", &http11("Connection: close\r\n"), plain),
        sent_then_closed("Close in capitals", "9.6", &http11("Connection: CLOSE\r\n"), plain),
        sent_then_closed("close in a list", "9.6", &http11("Connection: , x ,\tclose,\r\n"), plain),
        sent_then_closed("close in the second field", "9.6", &http11("Connection: x\r\nconnection: close\r\n"), plain),
        sent_then_closed("close beats keep-alive", "9.3", &http11("Connection: keep-alive, close\r\n"), plain),
        sent("keep-alive in 1.1", "9.3", &http11("Connection: keep-alive\r\n"), plain),
        sent("keep-alive in 1.0", "9.3", &http10("Connection: Keep-Alive\r\n"), plain),
        sent("keep-alive in a list in 1.0", "9.3", &http10("Connection: x, keep-alive\r\n"), plain),
        sent_then_closed("keep-alive and close in 1.0", "9.3", &http10("Connection: keep-alive, close\r\n"), plain),
        sent_then_closed("Proxy-Connection counts for nothing", "9.3", &http10("Proxy-Connection: keep-alive\r\n"), plain),
        sent_then_closed("Keep-Alive alone counts for nothing", "9.3", &http10("Keep-Alive: timeout=5\r\n"), plain),
        sent("option that only looks like close", "9.6", &http11("Connection: closed, \"close\"\r\n"), plain),
        sent("empty Connection", "9110 7.6.1", &http11("Connection:\r\n"), plain),
        fields("hop-by-hop fields", "9110 7.6.1",
            b"Keep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nTE: gzip\r\nUpgrade: foo\r\nA: b\r\n", b"A: b\r\n"),
        fields("credentials for a proxy travel", "9110 11.7.2", b"Proxy-Authorization: x\r\n",
            b"Proxy-Authorization: x\r\n"),
    ]
}

fn nominations() -> Vec<RequestCase> {
    let option = |count: u32| {
        format!("Connection: {}\r\n", vec!["a"; count as usize].join(",")).into_bytes()
    };
    vec![
        fields("nominated field", "9110 7.6.1", b"X-A: 1\r\nConnection: x-a\r\nX-B: 2\r\n", b"X-B: 2\r\n"),
        fields("every one of that name", "9110 7.6.1", b"A: 1\r\nConnection: a\r\na: 2\r\n", b""),
        fields("several nominated", "9110 7.6.1", b"A: 1\r\nB: 2\r\nConnection: close-not, a , ,b\r\n", b""),
        fields("nominated in a second Connection", "9110 7.6.1", b"A: 1\r\nConnection: b\r\nConnection: A\r\n", b""),
        fields("nominated but absent", "9110 7.6.1", b"Connection: b\r\nA: 1\r\n", b"A: 1\r\n"),
        fields("beginning of a name nominates nothing", "9110 7.6.1", b"Connection: a\r\nAb: 1\r\n", b"Ab: 1\r\n"),
        fields("Host cannot be nominated away", "policy", b"Connection: host\r\n", b""),
        sent("nor Content-Length", "policy",
            b"POST / HTTP/1.1\r\nHost: a\r\nConnection: Content-Length\r\nContent-Length: 3\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n"),
        sent("nor Transfer-Encoding", "policy",
            b"POST / HTTP/1.1\r\nHost: a\r\nConnection: transfer-encoding\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"),
        fields("as many nominations as allowed", "policy", &option(NOMINATIONS_MAX), b""),
        fields_refused("too many nominations", "policy", &option(NOMINATIONS_MAX + 1), 400, in_framing(R::Nominations)),
    ]
}

fn upgrades() -> Vec<RequestCase> {
    const WEBSOCKET: &[u8] = b"Connection: upgrade\r\nUpgrade: websocket\r\n";
    vec![
        fields("WebSocket", "6455 4.1", b"Upgrade: websocket\r\nConnection: Upgrade\r\n", WEBSOCKET),
        fields("keep-alive beside it", "9110 7.8", b"Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n", WEBSOCKET),
        fields("its fields travel", "6455 4.1",
            b"Sec-WebSocket-Key: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n",
            b"Sec-WebSocket-Key: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"),
        fields("several protocols with versions", "9110 7.8", b"Upgrade: a/1, b\r\nConnection: Upgrade\r\n",
            b"Connection: upgrade\r\nUpgrade: a/1, b\r\n"),
        fields("not nominated", "9110 7.8", b"Upgrade: websocket\r\n", b""),
        fields("nominated but absent", "9110 7.8", b"Connection: upgrade\r\n", b""),
        fields("empty", "9110 7.8", b"Connection: upgrade\r\nUpgrade:\r\n", b""),
        fields("no token", "9110 7.8", b"Connection: upgrade\r\nUpgrade: web socket\r\n", b""),
        fields("repeated", "policy", b"Connection: upgrade\r\nUpgrade: a\r\nUpgrade: b\r\n", b""),
        fields("three times", "policy", b"Connection: upgrade\r\nUpgrade: a\r\nUpgrade: b\r\nUpgrade: c\r\n", b""),
        fields("h2c is not offered", "policy", b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA\r\n", b""),
        fields("its settings neither", "policy", b"HTTP2-Settings: AAA\r\n", b""),
        fields("h2c among others", "policy", b"Connection: upgrade\r\nUpgrade: websocket, H2C\r\n", b""),
        fields("HTTP/2.0 by name", "policy", b"Connection: upgrade\r\nUpgrade: HTTP/2.0\r\n", b""),
        fields("TLS inside", "policy", b"Connection: upgrade\r\nUpgrade: TLS/1.0\r\n", b""),
        sent("with an empty body", "9110 7.8",
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: upgrade\r\nUpgrade: a\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: upgrade\r\nUpgrade: a\r\n\r\n"),
        sent("with a body", "9110 7.8",
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nConnection: upgrade\r\nUpgrade: a\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nConnection: upgrade\r\nUpgrade: a\r\n\r\n"),
        sent("with chunks", "9110 7.8",
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: upgrade\r\nUpgrade: a\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: upgrade\r\nUpgrade: a\r\n\r\n"),
        sent("h2c not with a body either", "policy",
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n"),
        sent("not in HTTP/1.0", "9110 7.8",
            b"GET / HTTP/1.0\r\nHost: a\r\nConnection: upgrade, keep-alive\r\nUpgrade: websocket\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
    ]
}

fn te_and_trailer() -> Vec<RequestCase> {
    const TRAILERS: &[u8] = b"TE: trailers\r\nConnection: TE\r\n";
    vec![
        fields("TE: trailers", "9110 10.1.4", b"TE: trailers\r\nConnection: te\r\n", TRAILERS),
        fields(
            "among codings",
            "9110 10.1.4",
            b"Connection: TE\r\nTE: gzip;q=0.5, Trailers\r\n",
            TRAILERS,
        ),
        fields("codings alone", "9110 10.1.4", b"Connection: TE\r\nTE: gzip\r\n", b""),
        fields("not nominated", "9110 10.1.4", b"TE: trailers\r\n", b""),
        fields(
            "together with an upgrade",
            "9110 7.6.1",
            b"Connection: TE, upgrade\r\nTE: trailers\r\nUpgrade: a\r\n",
            b"TE: trailers\r\nConnection: TE, upgrade\r\nUpgrade: a\r\n",
        ),
        sent(
            "not in HTTP/1.0",
            "9110 7.6.1",
            b"GET / HTTP/1.0\r\nHost: a\r\nConnection: TE, keep-alive\r\nTE: trailers\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        ),
        sent(
            "Trailer with chunks",
            "9110 6.6.2",
            b"POST / HTTP/1.1\r\nHost: a\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: a\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n",
        ),
        fields("Trailer without", "9110 6.6.2", b"Trailer: X-Sum\r\n", b""),
    ]
}

fn expectations() -> Vec<RequestCase> {
    vec![
        sent("100-continue", "9110 10.1.1",
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-Continue\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\n"),
        fields("without a body", "9110 10.1.1", b"Expect: 100-continue\r\n", b""),
        sent("ignored in HTTP/1.0", "9110 10.1.1",
            b"POST / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n"),
        fields_refused("another", "9110 10.1.1", b"Expect: 200-ok\r\n", 417, E::Expectation),
        fields_refused("empty", "9110 10.1.1", b"Expect:\r\n", 417, E::Expectation),
        fields_refused("another beside it", "9110 10.1.1", b"Expect: 100-continue, x\r\n", 417, E::Expectation),
        fields_refused("repeated", "9110 10.1.1", b"Expect: 100-continue\r\nExpect: 100-continue\r\n", 417,
            E::Expectation),
    ]
}

fn max_forwards() -> Vec<RequestCase> {
    let request = |method: &str, lines: &str| {
        format!("{method} / HTTP/1.1\r\nHost: a\r\n{lines}\r\n").into_bytes()
    };
    let counted = |name, section, lines: &str, sent_lines: &str| {
        sent(name, section, &request("OPTIONS", lines), &request("OPTIONS", sent_lines))
    };
    let bad = |name, section, lines: &str| {
        refused(name, section, &request("OPTIONS", lines), 400, E::MaxForwards)
    };
    vec![
        counted(
            "OPTIONS",
            "9110 7.6.2",
            "max-forwards: 10\r\nA: b\r\n",
            "A: b\r\nMax-Forwards: 9\r\n",
        ),
        counted("the last but one", "9110 7.6.2", "Max-Forwards: 1\r\n", "Max-Forwards: 0\r\n"),
        counted(
            "leading zeros",
            "9110 7.6.2",
            "Max-Forwards: 000000000000010\r\n",
            "Max-Forwards: 9\r\n",
        ),
        counted(
            "the largest",
            "9110 7.6.2",
            "Max-Forwards: 4294967295\r\n",
            "Max-Forwards: 4294967294\r\n",
        ),
        counted(
            "larger",
            "9110 7.6.2",
            "Max-Forwards: 4294967296\r\n",
            "Max-Forwards: 4294967294\r\n",
        ),
        counted(
            "much larger",
            "9110 7.6.2",
            "Max-Forwards: 99999999999999999999999\r\n",
            "Max-Forwards: 4294967294\r\n",
        ),
        counted("not without", "9110 7.6.2", "A: b\r\n", "A: b\r\n"),
        counted(
            "nor can it be nominated away",
            "policy",
            "Connection: max-forwards\r\nMax-Forwards: 2\r\n",
            "Max-Forwards: 1\r\n",
        ),
        counted("look-alike does not travel", "policy", "Max_Forwards: 0\r\n", ""),
        counted("nor another one", "policy", "Max.Forwards: 0\r\n", ""),
        sent(
            "TRACE",
            "9110 7.6.2",
            &request("TRACE", "Max-Forwards: 3\r\n"),
            &request("TRACE", "Max-Forwards: 2\r\n"),
        ),
        refused(
            "TRACE without end",
            "9110 7.6.2",
            &request("TRACE", "Max-Forwards: all\r\n"),
            400,
            E::MaxForwards,
        ),
        bad("empty", "9110 7.6.2", "Max-Forwards:\r\n"),
        bad("negative", "9110 7.6.2", "Max-Forwards: -1\r\n"),
        bad("with a sign", "9110 7.6.2", "Max-Forwards: +1\r\n"),
        bad("with a fraction", "9110 7.6.2", "Max-Forwards: 1.0\r\n"),
        bad("list", "9110 5.3", "Max-Forwards: 1, 1\r\n"),
        bad("repeated", "9110 5.3", "Max-Forwards: 1\r\nMax-Forwards: 1\r\n"),
        fields("GET passes it on", "9110 7.6.2", b"Max-Forwards: 0\r\n", b"Max-Forwards: 0\r\n"),
        fields(
            "whatever it says",
            "9110 7.6.2",
            b"max-forwards: x\r\nMax-Forwards: y\r\n",
            b"max-forwards: x\r\nMax-Forwards: y\r\n",
        ),
        fields(
            "and not when nominated",
            "9110 7.6.1",
            b"Connection: Max-Forwards\r\nMax-Forwards: 0\r\n",
            b"",
        ),
    ]
}

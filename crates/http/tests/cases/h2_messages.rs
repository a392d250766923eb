//! HTTP/2 cases: header lists as requests, responses and trailers. Sections refer to RFC 9113 unless another document is
//! named; `policy` marks refusals that the standards do not require.

use weir_http::h1::{FieldError, RequestError, ResponseError};
use weir_http::h2::hpack::Encoder;
use weir_http::h2::message::{Malformed, ReadError};
use weir_http::message::{Framing, Method};
use weir_http::path::PathError;

/// A header list: names and values.
pub type List = Vec<(String, String)>;

/// A request and the expected outcome.
pub struct RequestCase {
    pub name: &'static str,
    pub section: &'static str,
    pub list: List,
    pub end_stream: bool,
    pub expected: Result<String, ReadError<RequestError>>,
}

/// The header list of a GET of `https://a/`, with `lines` after its pseudo-header fields.
fn with(lines: &[(&str, &str)]) -> List {
    list(&[&super::h2::GET[..], lines].concat())
}

fn list(lines: &[(&str, &str)]) -> List {
    lines.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// A header list of pseudo-header fields in the usual order.
fn pseudo(lines: &[(&str, &str)]) -> List {
    list(lines)
}

fn get_path(path: &str) -> List {
    list(&[(":method", "GET"), (":scheme", "https"), (":path", path), (":authority", "a")])
}

fn get_authority(authority: &str) -> List {
    list(&[(":method", "GET"), (":scheme", "https"), (":path", "/"), (":authority", authority)])
}

fn malformed(
    name: &'static str,
    section: &'static str,
    list: List,
    error: Malformed,
) -> RequestCase {
    let expected = Err(ReadError::Malformed(error));
    RequestCase { name, section, list, end_stream: true, expected }
}

fn refused(
    name: &'static str,
    section: &'static str,
    list: List,
    error: RequestError,
) -> RequestCase {
    let expected = Err(ReadError::Refused(error));
    RequestCase { name, section, list, end_stream: true, expected }
}

/// A case in which an HTTP/1.1 member receives `head`.
fn sent(name: &'static str, section: &'static str, list: List, head: &str) -> RequestCase {
    RequestCase { name, section, list, end_stream: true, expected: Ok(head.to_owned()) }
}

fn open(mut case: RequestCase) -> RequestCase {
    case.end_stream = false;
    case
}

/// All request cases.
pub fn requests() -> Vec<RequestCase> {
    [sound(), malformed_fields(), malformed_pseudo(), malformed_targets(), malformed_bodies()]
        .into_iter()
        .flatten()
        .collect()
}

fn sound() -> Vec<RequestCase> {
    let post = |lines: &[(&str, &str)]| {
        let pseudo =
            [(":method", "POST"), (":scheme", "http"), (":path", "/a"), (":authority", "b")];
        list(&[&pseudo[..], lines].concat())
    };
    let options = |path: &str, lines: &[(&str, &str)]| {
        let pseudo =
            [(":method", "OPTIONS"), (":scheme", "https"), (":path", path), (":authority", "a")];
        list(&[&pseudo[..], lines].concat())
    };
    let websocket = |protocol: &str, lines: &[(&str, &str)]| {
        let pseudo = [
            (":method", "CONNECT"),
            (":protocol", protocol),
            (":scheme", "https"),
            (":path", "/chat"),
            (":authority", "a"),
        ];
        list(&[&pseudo[..], lines].concat())
    };
    vec![
        sent("plain", "8.3.1", with(&[("x", "y")]), "GET / HTTP/1.1\r\nHost: a\r\nx: y\r\n\r\n"),
        sent(
            "path and query",
            "8.3.1",
            get_path("/a/./%7eb?c=d?e"),
            "GET /a/~b?c=d?e HTTP/1.1\r\nHost: a\r\n\r\n",
        ),
        sent(
            "authority with a port",
            "8.3.1",
            get_authority("[::1]:8443"),
            "GET / HTTP/1.1\r\nHost: [::1]:8443\r\n\r\n",
        ),
        sent(
            "Host in place of :authority",
            "8.3.1",
            list(&[(":method", "GET"), (":path", "/"), (":scheme", "https"), ("host", "b")]),
            "GET / HTTP/1.1\r\nHost: b\r\n\r\n",
        ),
        sent(
            "Host that is the same but for case and port",
            "8.3.1",
            with(&[("host", "A:443")]),
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        ),
        sent(
            "crumbs of a cookie",
            "8.2.3",
            with(&[("cookie", "a=b"), ("x", "y"), ("cookie", "c=d"), ("cookie", "e")]),
            "GET / HTTP/1.1\r\nHost: a\r\ncookie: a=b; c=d; e\r\nx: y\r\n\r\n",
        ),
        sent(
            "empty crumbs of a cookie",
            "8.2.3",
            with(&[
                ("cookie", ""),
                ("cookie", "a"),
                ("cookie", ""),
                ("cookie", "b"),
                ("cookie", ""),
            ]),
            "GET / HTTP/1.1\r\nHost: a\r\ncookie: a; b\r\n\r\n",
        ),
        sent(
            "one cookie",
            "8.2.3",
            with(&[("cookie", "a=b; c")]),
            "GET / HTTP/1.1\r\nHost: a\r\ncookie: a=b; c\r\n\r\n",
        ),
        sent(
            "TE: trailers",
            "8.2.2",
            with(&[("te", "trailers")]),
            "GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: TE\r\n\r\n",
        ),
        sent(
            "bytes beyond ASCII",
            "8.2.1",
            with(&[("x", "\u{e9}\t z")]),
            "GET / HTTP/1.1\r\nHost: a\r\nx: \u{e9}\t z\r\n\r\n",
        ),
        sent(
            "empty value",
            "8.2.1",
            with(&[("x", "")]),
            "GET / HTTP/1.1\r\nHost: a\r\nx: \r\n\r\n",
        ),
        sent(
            "underscore look-alike",
            "policy",
            with(&[("content_length", "5"), ("transfer_encoding", "chunked")]),
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        ),
        sent(
            "other look-alikes",
            "policy",
            with(&[("content.length", "5"), ("transfer~encoding", "chunked")]),
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        ),
        sent(
            "Proxy (CVE-2016-5385)",
            "policy",
            with(&[("proxy", "http://evil"), ("proxy-authorization", "x")]),
            "GET / HTTP/1.1\r\nHost: a\r\nproxy-authorization: x\r\n\r\n",
        ),
        sent(
            "HTTP2-Settings",
            "policy",
            with(&[("http2-settings", "AAMAAABk")]),
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        ),
        open(sent(
            "body of unknown length",
            "8.1",
            post(&[("trailer", "x")]),
            "POST /a HTTP/1.1\r\nHost: b\r\ntrailer: x\r\nTransfer-Encoding: chunked\r\n\r\n",
        )),
        open(sent(
            "body of known length",
            "8.1",
            post(&[("content-length", "007"), ("expect", "100-Continue")]),
            "POST /a HTTP/1.1\r\nHost: b\r\nexpect: 100-Continue\r\nContent-Length: 7\r\n\r\n",
        )),
        sent(
            "no body, and said so",
            "8.1",
            post(&[("content-length", "0"), ("expect", "100-continue")]),
            "POST /a HTTP/1.1\r\nHost: b\r\nContent-Length: 0\r\n\r\n",
        ),
        sent(
            "asterisk",
            "8.3.1",
            options("*", &[("max-forwards", "3")]),
            "OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: 2\r\n\r\n",
        ),
        open(sent(
            "extended CONNECT",
            "RFC 8441 5",
            websocket(
                "websocket",
                &[("sec-websocket-version", "13"), ("sec-websocket-key", "stray")],
            ),
            "GET /chat HTTP/1.1\r\nHost: a\r\nsec-websocket-version: 13\r\nConnection: upgrade\r\n\
             Upgrade: websocket\r\n\r\n",
        )),
        open(refused(
            "extended CONNECT to HTTP",
            "policy",
            websocket("h2c", &[]),
            RequestError::Protocol,
        )),
        open(malformed(
            "extended CONNECT with a length",
            "RFC 8441 4",
            websocket("websocket", &[("content-length", "5")]),
            Malformed::ContentLength,
        )),
        open(malformed("empty :protocol", "RFC 8441 4", websocket("", &[]), Malformed::Protocol)),
        open(malformed(
            ":protocol that is two",
            "RFC 8441 4",
            websocket("a, b", &[]),
            Malformed::Protocol,
        )),
        refused(
            "CONNECT",
            "8.5",
            list(&[(":method", "CONNECT"), (":authority", "a:443")]),
            RequestError::Connect,
        ),
    ]
}

fn malformed_fields() -> Vec<RequestCase> {
    let connection = Malformed::ConnectionField;
    let mut cases: Vec<RequestCase> = Vec::new();
    for (name, line, error) in [
        ("upper case", ("X-Upper", "y"), Malformed::Name),
        ("one upper-case letter", ("x-uppeR", "y"), Malformed::Name),
        ("upper-case Host", ("Host", "a"), Malformed::Name),
        ("empty name", ("", "y"), Malformed::Name),
        ("space in a name", ("x y", "z"), Malformed::Name),
        ("space after a name", ("x ", "z"), Malformed::Name),
        ("colon in a name", ("x:y", "z"), Malformed::Name),
        ("CR LF in a name", ("x: y\r\nz", "z"), Malformed::Name),
        ("LF in a name", ("x\ny", "z"), Malformed::Name),
        ("NUL in a name", ("x\0", "z"), Malformed::Name),
        ("letter beyond ASCII in a name", ("\u{e9}", "z"), Malformed::Name),
        ("DEL in a name", ("x\x7f", "z"), Malformed::Name),
        ("CR LF in a value", ("x", "y\r\nz: a"), Malformed::Value),
        ("request in a value", ("x", "y\r\n\r\nGET /admin HTTP/1.1\r\nHost: a"), Malformed::Value),
        ("CR in a value", ("x", "y\rz"), Malformed::Value),
        ("LF in a value", ("x", "y\nz"), Malformed::Value),
        ("LF at the end of a value", ("x", "y\n"), Malformed::Value),
        ("NUL in a value", ("x", "y\0z"), Malformed::Value),
        ("bell in a value", ("x", "y\x07"), Malformed::Value),
        ("space before a value", ("x", " y"), Malformed::ValueSpace),
        ("space behind a value", ("x", "y "), Malformed::ValueSpace),
        ("tab behind a value", ("x", "y\t"), Malformed::ValueSpace),
        ("nothing but a space", ("x", " "), Malformed::ValueSpace),
        ("Connection", ("connection", "keep-alive"), connection),
        ("Connection: close", ("connection", "close"), connection),
        ("Keep-Alive", ("keep-alive", "timeout=5"), connection),
        ("Proxy-Connection", ("proxy-connection", "keep-alive"), connection),
        ("Transfer-Encoding", ("transfer-encoding", "chunked"), connection),
        ("Transfer-Encoding: identity", ("transfer-encoding", "identity"), connection),
        ("Upgrade", ("upgrade", "websocket"), connection),
        ("TE: gzip", ("te", "gzip"), Malformed::Te),
        ("TE: trailers and more", ("te", "trailers, deflate;q=0.5"), Malformed::Te),
        ("Content-Length on CRs", ("content-length", "5\r\n"), Malformed::Value),
    ] {
        cases.push(malformed(name, "8.2", with(&[line]), error));
    }
    cases
}

fn malformed_pseudo() -> Vec<RequestCase> {
    let (method, scheme, path, authority) =
        ((":method", "GET"), (":scheme", "https"), (":path", "/"), (":authority", "a"));
    let set = Malformed::PseudoSet;
    let connect = (":method", "CONNECT");
    vec![
        malformed("no :method", "8.3.1", pseudo(&[scheme, path, authority]), set),
        malformed("no :scheme", "8.3.1", pseudo(&[method, path, authority]), set),
        malformed("no :path", "8.3.1", pseudo(&[method, scheme, authority]), set),
        malformed("nothing", "8.3.1", pseudo(&[]), set),
        refused(
            "no authority at all",
            "policy",
            pseudo(&[method, scheme, path]),
            RequestError::HostMissing,
        ),
        malformed(
            "two :method",
            "8.3",
            pseudo(&[method, method, scheme, path, authority]),
            Malformed::PseudoRepeated,
        ),
        malformed(
            "two :scheme",
            "8.3",
            pseudo(&[method, scheme, scheme, path, authority]),
            Malformed::PseudoRepeated,
        ),
        malformed(
            "two :path",
            "8.3",
            pseudo(&[method, scheme, path, (":path", "/b"), authority]),
            Malformed::PseudoRepeated,
        ),
        malformed(
            "two :authority",
            "8.3",
            pseudo(&[method, scheme, path, authority, (":authority", "b")]),
            Malformed::PseudoRepeated,
        ),
        malformed("unknown", "8.3", with(&[(":test", "ok")]), Malformed::PseudoUnknown),
        malformed("colon alone", "8.3", with(&[(":", "ok")]), Malformed::PseudoUnknown),
        malformed("upper case", "8.3", with(&[(":Method", "GET")]), Malformed::PseudoUnknown),
        malformed(
            ":status in a request",
            "8.3",
            with(&[(":status", "200")]),
            Malformed::PseudoUnknown,
        ),
        malformed(
            "behind a field",
            "8.3",
            pseudo(&[method, scheme, path, ("x", "y"), authority]),
            Malformed::PseudoOrder,
        ),
        malformed(
            "repeated behind a field",
            "8.3",
            with(&[("x", "y"), (":path", "/admin")]),
            Malformed::PseudoOrder,
        ),
        malformed("CONNECT with :path", "8.5", pseudo(&[connect, path, authority]), set),
        malformed("CONNECT with :scheme", "8.5", pseudo(&[connect, scheme, authority]), set),
        malformed("CONNECT without :authority", "8.5", pseudo(&[connect]), set),
        malformed(
            ":protocol of a GET",
            "RFC 8441 4",
            pseudo(&[method, (":protocol", "websocket"), scheme, path, authority]),
            set,
        ),
        malformed(
            "extended CONNECT without :path",
            "RFC 8441 4",
            pseudo(&[connect, (":protocol", "websocket"), scheme, authority]),
            set,
        ),
        malformed(
            "empty :method",
            "8.3.1",
            pseudo(&[(":method", ""), scheme, path, authority]),
            Malformed::Method,
        ),
        malformed(
            "request line in :method",
            "8.3.1",
            pseudo(&[(":method", "GET /admin HTTP/1.1"), scheme, path, authority]),
            Malformed::Method,
        ),
        malformed(
            "CR LF in :method",
            "8.2.1",
            pseudo(&[(":method", "GET\r\n"), scheme, path, authority]),
            Malformed::Value,
        ),
        refused(
            "long :method",
            "policy",
            pseudo(&[(":method", "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGH"), scheme, path, authority]),
            RequestError::MethodTooLong,
        ),
        malformed(
            "empty :scheme",
            "8.3.1",
            pseudo(&[method, (":scheme", ""), path, authority]),
            Malformed::Scheme,
        ),
        refused(
            "another scheme",
            "policy",
            pseudo(&[method, (":scheme", "ftp"), path, authority]),
            RequestError::TargetForm,
        ),
        refused(
            "URL in :scheme",
            "policy",
            pseudo(&[method, (":scheme", "https://b/?"), path, authority]),
            RequestError::TargetForm,
        ),
    ]
}

fn malformed_targets() -> Vec<RequestCase> {
    let host = |host: &str| with(&[("host", host)]);
    vec![
        malformed("empty :path", "8.3.1", get_path(""), Malformed::Path),
        malformed("relative :path", "8.3.1", get_path("a"), Malformed::Path),
        malformed("asterisk of a GET", "8.3.1", get_path("*"), Malformed::Path),
        malformed("absolute form", "8.3.1", get_path("https://b/"), Malformed::Path),
        malformed("query alone", "8.3.1", get_path("?a"), Malformed::Path),
        refused("space in :path", "8.3.1", get_path("/a HTTP/1.1"), RequestError::TargetCharacter),
        malformed("CR LF in :path", "8.2.1", get_path("/ HTTP/1.1\r\nHost: b"), Malformed::Value),
        malformed("LF in :path", "8.2.1", get_path("/\nb"), Malformed::Value),
        malformed("NUL in :path", "8.2.1", get_path("/\0"), Malformed::Value),
        malformed("tab at the end of :path", "8.2.1", get_path("/\t"), Malformed::ValueSpace),
        refused("tab in :path", "8.3.1", get_path("/a\tb"), RequestError::TargetCharacter),
        refused("fragment", "8.3.1", get_path("/a#b"), RequestError::TargetCharacter),
        refused("fragment in the query", "8.3.1", get_path("/?a#b"), RequestError::TargetCharacter),
        refused("backslash", "policy", get_path("/a\\b"), RequestError::Path(PathError::Backslash)),
        sent(
            "beyond ASCII",
            "policy",
            get_path("/\u{e9}?\"<>"),
            "GET /%C3%A9?%22%3C%3E HTTP/1.1\r\nHost: a\r\n\r\n",
        ),
        refused("%2F", "policy", get_path("/..%2f"), RequestError::Path(PathError::EncodedSlash)),
        refused("%00", "policy", get_path("/%00"), RequestError::Path(PathError::Nul)),
        refused("%zz", "policy", get_path("/%zz"), RequestError::Path(PathError::Escape)),
        malformed("empty :authority", "8.3.1", get_authority(""), Malformed::Authority),
        malformed("userinfo", "8.3.1", get_authority("u:p@a"), Malformed::Authority),
        refused("path in :authority", "8.3.1", get_authority("a/b"), RequestError::HostInvalid),
        refused("list in :authority", "8.3.1", get_authority("a,b"), RequestError::HostInvalid),
        refused("port of letters", "8.3.1", get_authority("a:8o"), RequestError::HostInvalid),
        malformed("CR LF in :authority", "8.2.1", get_authority("a\r\nx: y"), Malformed::Value),
        malformed("Host differs", "8.3.1", host("b"), Malformed::HostMismatch),
        malformed("Host differs in its port", "8.3.1", host("a:80"), Malformed::HostMismatch),
        malformed("Host is empty", "8.3.1", host(""), Malformed::HostMismatch),
        refused(
            "Host is empty, and there is no :authority",
            "8.3.1",
            pseudo(&[(":method", "GET"), (":scheme", "https"), (":path", "/"), ("host", "")]),
            RequestError::HostInvalid,
        ),
        refused("Host is none", "8.3.1", host("a b"), RequestError::HostInvalid),
        refused(
            "Host twice",
            "8.3.1",
            with(&[("host", "a"), ("host", "a")]),
            RequestError::HostRepeated,
        ),
    ]
}

fn malformed_bodies() -> Vec<RequestCase> {
    let length = Malformed::ContentLength;
    let post = |lines: &[(&str, &str)]| with(lines);
    vec![
        malformed("length and no body", "8.1.1", post(&[("content-length", "5")]), length),
        open(malformed("length twice", "8.1.1", post(&[("content-length", "5"); 2]), length)),
        open(malformed(
            "lengths that differ",
            "8.1.1",
            post(&[("content-length", "5"), ("content-length", "6")]),
            length,
        )),
        open(malformed("list of lengths", "8.1.1", post(&[("content-length", "5, 5")]), length)),
        open(malformed("negative length", "8.1.1", post(&[("content-length", "-1")]), length)),
        open(malformed("length with a sign", "8.1.1", post(&[("content-length", "+5")]), length)),
        open(malformed("empty length", "8.1.1", post(&[("content-length", "")]), length)),
        open(malformed("length in hex", "8.1.1", post(&[("content-length", "0x5")]), length)),
        open(malformed(
            "length too large",
            "8.1.1",
            post(&[("content-length", "9223372036854775808")]),
            length,
        )),
        open(malformed(
            "length and Transfer-Encoding",
            "8.2.2",
            post(&[("content-length", "5"), ("transfer-encoding", "chunked")]),
            Malformed::ConnectionField,
        )),
        refused(
            "another expectation",
            "RFC 9110 10.1.1",
            with(&[("expect", "a")]),
            RequestError::Expectation,
        ),
        open(refused(
            "TRACE with a body",
            "RFC 9110 9.3.8",
            list(&[(":method", "TRACE"), (":scheme", "http"), (":path", "/"), (":authority", "a")]),
            RequestError::TraceWithBody,
        )),
        refused(
            "Max-Forwards of letters",
            "RFC 9110 7.6.2",
            list(&[
                (":method", "OPTIONS"),
                (":scheme", "http"),
                (":path", "/"),
                (":authority", "a"),
                ("max-forwards", "x"),
            ]),
            RequestError::MaxForwards,
        ),
        refused(
            "too many fields",
            "policy",
            with(&[("x", "y"); 200]),
            RequestError::Field(FieldError::TooMany),
        ),
        refused(
            "too large",
            "policy",
            with(&[("x", &"y".repeat(16 * 1024))]),
            RequestError::HeadTooLarge,
        ),
    ]
}

/// A response to a request with this method, and the expected outcome: the head that an HTTP/1.1 client receives.
pub struct ResponseCase {
    pub name: &'static str,
    pub method: Method,
    pub list: List,
    pub end_stream: bool,
    pub expected: Result<(&'static str, Framing), ReadError<ResponseError>>,
}

/// All response cases.
pub fn responses() -> Vec<ResponseCase> {
    type Expected = Result<(&'static str, Framing), ReadError<ResponseError>>;
    fn case(
        name: &'static str,
        method: Method,
        lines: &[(&str, &str)],
        end_stream: bool,
        expected: Expected,
    ) -> ResponseCase {
        ResponseCase { name, method, list: list(lines), end_stream, expected }
    }
    let malformed = |error: Malformed| Err(ReadError::Malformed(error));
    let (get, head) = (Method::Get, Method::Head);
    let ok = (":status", "200");
    vec![
        case(
            "body of unknown length",
            get,
            &[ok, ("server", "m"), ("trailer", "x")],
            false,
            Ok((
                "HTTP/1.1 200 OK\r\nserver: m\r\ntrailer: x\r\nTransfer-Encoding: chunked\r\n\r\n",
                Framing::Chunked,
            )),
        ),
        case(
            "body of known length",
            get,
            &[ok, ("content-length", "5"), ("trailer", "x")],
            false,
            Ok(("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Framing::Length(5))),
        ),
        case(
            "no body",
            get,
            &[ok],
            true,
            Ok(("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", Framing::Length(0))),
        ),
        case(
            "answer to HEAD",
            head,
            &[ok, ("content-length", "5")],
            true,
            Ok(("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Framing::None)),
        ),
        case(
            "304 with a length",
            get,
            &[(":status", "304"), ("content-length", "5")],
            true,
            Ok(("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", Framing::None)),
        ),
        case(
            "204",
            get,
            &[(":status", "204")],
            true,
            Ok(("HTTP/1.1 204 No Content\r\n\r\n", Framing::None)),
        ),
        case(
            "early hints",
            get,
            &[(":status", "103"), ("link", "</a>")],
            false,
            Ok(("HTTP/1.1 103 \r\nlink: </a>\r\n\r\n", Framing::None)),
        ),
        case("101", get, &[(":status", "101")], false, malformed(Malformed::Status)),
        case("600", get, &[(":status", "600")], false, malformed(Malformed::Status)),
        case("two digits", get, &[(":status", "20")], false, malformed(Malformed::Status)),
        case("four digits", get, &[(":status", "2000")], false, malformed(Malformed::Status)),
        case("with a reason", get, &[(":status", "200 OK")], false, malformed(Malformed::Status)),
        case("no status", get, &[("x", "y")], false, malformed(Malformed::PseudoSet)),
        case("two", get, &[ok, ok], false, malformed(Malformed::PseudoRepeated)),
        case("behind a field", get, &[("x", "y"), ok], false, malformed(Malformed::PseudoOrder)),
        case("request's", get, &[ok, (":path", "/")], false, malformed(Malformed::PseudoUnknown)),
        case("upper case", get, &[ok, ("X", "y")], false, malformed(Malformed::Name)),
        case("CR LF", get, &[ok, ("x", "y\r\nz: a")], false, malformed(Malformed::Value)),
        case(
            "Transfer-Encoding",
            get,
            &[ok, ("transfer-encoding", "chunked")],
            false,
            malformed(Malformed::ConnectionField),
        ),
        case(
            "Connection",
            get,
            &[ok, ("connection", "close")],
            false,
            malformed(Malformed::ConnectionField),
        ),
        case(
            "length and no body",
            get,
            &[ok, ("content-length", "5")],
            true,
            malformed(Malformed::ContentLength),
        ),
        case(
            "two lengths",
            get,
            &[ok, ("content-length", "5"), ("content-length", "5")],
            false,
            malformed(Malformed::ContentLength),
        ),
        case(
            "interim with a body",
            get,
            &[(":status", "103"), ("content-length", "5")],
            false,
            Err(ReadError::Refused(ResponseError::InterimWithBody)),
        ),
        case(
            "success to CONNECT",
            Method::Connect,
            &[ok],
            false,
            Err(ReadError::Refused(ResponseError::Connect)),
        ),
    ]
}

/// Seeds of the header block fuzz target: the encoded lists of all cases, each preceded by its length.
pub fn blocks() -> impl Iterator<Item = Vec<u8>> {
    let lists = requests()
        .into_iter()
        .map(|case| case.list)
        .chain(responses().into_iter().map(|case| case.list))
        .filter(|list| list.len() < 20);
    lists.filter_map(|list| {
        let (mut encoder, mut out) = (Encoder::new(4096), Vec::new());
        // When a line occurs again, it is added to the dynamic table, and later blocks refer to it.
        for _ in 0..3 {
            let mut block = Vec::new();
            let mut lines = encoder.block(&mut block);
            for (name, value) in &list {
                lines.field_of_any_case(name.as_bytes(), value.as_bytes(), false);
            }
            out.push(u8::try_from(block.len()).ok()?);
            out.extend_from_slice(&block);
        }
        Some(out)
    })
}

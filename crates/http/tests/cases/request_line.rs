//! Cases for request lines.

use weir_http::h1::RequestError as E;
use weir_http::path::PathError;

use super::*;

const PLAIN: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

pub fn cases() -> Vec<RequestCase> {
    [
        empty_lines(),
        methods(),
        versions(),
        spacing(),
        origin_form(),
        other_forms(),
        canonical_paths(),
        beginnings(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn empty_lines() -> Vec<RequestCase> {
    vec![
        sent("plain request", "3", PLAIN, PLAIN),
        sent("one empty line before", "2.2", b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", PLAIN),
        sent("two empty lines before", "2.2", b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", PLAIN),
        refused(
            "three empty lines before",
            "policy",
            b"\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            400,
            E::Method,
        ),
        refused(
            "an empty line and a bare LF before",
            "2.2",
            b"\r\n\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            400,
            E::Method,
        ),
        refused("bare LF before", "2.2", b"\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400, E::Method),
        refused("bare CR before", "2.2", b"\rGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400, E::Method),
        refused("space before", "3", b" GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400, E::Method),
        refused("tab before", "3", b"\tGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400, E::Method),
        refused(
            "TLS on a plain port",
            "3",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
            400,
            E::Method,
        ),
        refused("NUL before", "3", b"\0GET / HTTP/1.1\r\n", 400, E::Method),
        refused("byte order mark", "3", b"\xef\xbb\xbfGET / HTTP/1.1\r\n", 400, E::Method),
        refused(
            "bytes of a body left over",
            "3",
            b"Extra lineGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            400,
            E::Version,
        ),
    ]
}

fn methods() -> Vec<RequestCase> {
    let with_method = |name, method: &str| {
        let head = format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n");
        sent(name, "9110 9.1", head.as_bytes(), head.as_bytes())
    };
    vec![
        with_method("HEAD", "HEAD"),
        with_method("DELETE", "DELETE"),
        with_method("PATCH", "PATCH"),
        with_method("TRACE", "TRACE"),
        with_method("OPTIONS of a resource", "OPTIONS"),
        with_method("extension method", "PROPFIND"),
        with_method("lower case is another method", "get"),
        with_method("every token character", "!#$%&'*+-.^_`|~09azAZ"),
        with_method("longest method allowed", "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"),
        line_refused(
            "method too long",
            "3",
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456 / HTTP/1.1",
            501,
            E::MethodTooLong,
        ),
        refused("endless method", "3", &[b'A'; 40], 501, E::MethodTooLong),
        line_refused("no method", "3", b" / HTTP/1.1", 400, E::Method),
        line_refused("colon in the method", "9110 9.1", b"GE:T / HTTP/1.1", 400, E::Method),
        line_refused(
            "control character in the method",
            "9110 9.1",
            b"GE\x01T / HTTP/1.1",
            400,
            E::Method,
        ),
        line_refused("obs-text in the method", "9110 9.1", b"G\xc9T / HTTP/1.1", 400, E::Method),
        line_refused("parentheses in the method", "9110 9.1", b"GET() / HTTP/1.1", 400, E::Method),
        line_refused("CONNECT", "9110 9.3.6", b"CONNECT a:443 HTTP/1.1", 501, E::Connect),
        line_refused("CONNECT with a path", "9110 9.3.6", b"CONNECT / HTTP/1.1", 501, E::Connect),
        line_refused(
            "connect is a method in authority-form",
            "3.2.3",
            b"connect a:443 HTTP/1.1",
            400,
            E::TargetForm,
        ),
    ]
}

fn versions() -> Vec<RequestCase> {
    vec![
        sent("higher minor version", "2.3", b"GET / HTTP/1.2\r\nHost: a\r\n\r\n", PLAIN),
        sent("highest minor version", "2.3", b"GET / HTTP/1.9\r\nHost: a\r\n\r\n", PLAIN),
        sent_then_closed("HTTP/1.0", "2.3", b"GET / HTTP/1.0\r\nHost: a\r\n\r\n", PLAIN),
        line_refused(
            "HTTP/0.9 with a version",
            "2.3",
            b"GET / HTTP/0.9",
            505,
            E::VersionNotSupported,
        ),
        line_refused("HTTP/2.0", "2.3", b"GET / HTTP/2.0", 505, E::VersionNotSupported),
        line_refused("HTTP/9.9", "2.3", b"GET / HTTP/9.9", 505, E::VersionNotSupported),
        refused(
            "HTTP/2 preface",
            "9113 3.4",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            505,
            E::VersionNotSupported,
        ),
        line_refused("HTTP/0.9 request", "2.3", b"GET /", 400, E::VersionMissing),
        refused("HTTP/0.9 request with bare LF", "2.3", b"GET /\n", 400, E::VersionMissing),
        line_refused("lower case", "2.3", b"GET / http/1.1", 400, E::Version),
        line_refused("two-digit minor version", "2.3", b"GET / HTTP/1.10", 400, E::LineEnd),
        line_refused("two-digit major version", "2.3", b"GET / HTTP/11.1", 400, E::Version),
        line_refused("no minor version", "2.3", b"GET / HTTP/1", 400, E::Version),
        line_refused("comma for the dot", "2.3", b"GET / HTTP/1,1", 400, E::Version),
        line_refused("no slash", "2.3", b"GET / HTTP1.1", 400, E::Version),
        line_refused("another protocol", "2.3", b"GET / ICAP/1.0", 400, E::Version),
        line_refused("signed version", "2.3", b"GET / HTTP/+1.1", 400, E::Version),
    ]
}

fn spacing() -> Vec<RequestCase> {
    vec![
        line_refused("two spaces after the method", "3", b"GET  / HTTP/1.1", 400, E::TargetForm),
        line_refused("two spaces before the version", "3", b"GET /  HTTP/1.1", 400, E::Version),
        line_refused("space after the version", "3", b"GET / HTTP/1.1 ", 400, E::LineEnd),
        line_refused("tab after the version", "3", b"GET / HTTP/1.1\t", 400, E::LineEnd),
        line_refused("tab after the method", "3", b"GET\t/ HTTP/1.1", 400, E::Method),
        line_refused("tab before the version", "3", b"GET /\tHTTP/1.1", 400, E::TargetCharacter),
        line_refused("space in the target", "3.2", b"GET /a b HTTP/1.1", 400, E::Version),
        line_refused("no target", "3", b"GET HTTP/1.1", 400, E::VersionMissing),
        line_refused("vertical tab for a space", "3", b"GET\x0b/ HTTP/1.1", 400, E::Method),
        line_refused(
            "no-break space in the target",
            "3",
            b"GET /\xa0HTTP/1.1",
            400,
            E::VersionMissing,
        ),
        refused("method alone", "3", b"GET\r\n\r\n", 400, E::Method),
        refused(
            "bare LF after the request line",
            "2.2",
            b"GET / HTTP/1.1\nHost: a\n\n",
            400,
            E::LineEnd,
        ),
        refused("bare LF before any field arrives", "2.2", b"GET / HTTP/1.1\n", 400, E::LineEnd),
        refused(
            "bare CR after the request line",
            "2.2",
            b"GET / HTTP/1.1\rHost: a\r\n\r\n",
            400,
            E::LineEnd,
        ),
        refused("CR CR LF", "2.2", b"GET / HTTP/1.1\r\r\nHost: a\r\n\r\n", 400, E::LineEnd),
        refused(
            "NUL after the version",
            "2.2",
            b"GET / HTTP/1.1\0\r\nHost: a\r\n\r\n",
            400,
            E::LineEnd,
        ),
        refused(
            "CR in the target",
            "2.2",
            b"GET /a\rb HTTP/1.1\r\nHost: a\r\n\r\n",
            400,
            E::VersionMissing,
        ),
    ]
}

fn origin_form() -> Vec<RequestCase> {
    vec![
        target("path and query", "3.2.1", "/a/b?c=d&e", "/a/b?c=d&e"),
        target("empty query", "3.2.1", "/a?", "/a?"),
        target("question marks in the query", "3986 3.4", "/?a?b??", "/?a?b??"),
        target("slashes and dots in the query", "3986 3.4", "/?/../a/./b//", "/?/../a/./b//"),
        target("query verbatim", "policy", "/?%7e%zz%00%|^{}[]`\\", "/?%7e%zz%00%|^{}[]`\\"),
        target("two slashes are no authority", "3.2.1", "//evil/a", "/evil/a"),
        target("colon in the first segment", "3.2.1", "/http:b/", "/http:b/"),
        target("every sub-delimiter", "3986 3.3", "/!$&'()*+,;=:@-._~", "/!$&'()*+,;=:@-._~"),
        target_refused("fragment", "9110 7.1", b"/a#b", E::TargetCharacter),
        target_refused("fragment in the query", "9110 7.1", b"/?a#b", E::TargetCharacter),
        target("quote", "policy", "/a\"b", "/a%22b"),
        target("angle brackets", "policy", "/<script>", "/%3Cscript%3E"),
        target("raw bytes in the query", "policy", "/?a>b&c=\"d\"<", "/?a%3Eb&c=%22d%22%3C"),
        target("UTF-8 in the path", "policy", "/é/../ü", "/%C3%BC"),
        target("UTF-8 in the query", "policy", "/a?q=é&r=%c3", "/a?q=%C3%A9&r=%c3"),
        target("UTF-8 in path and query", "policy", "/é?é", "/%C3%A9?%C3%A9"),
        target_refused(
            "fragment behind a raw byte",
            "9110 7.1",
            "/?é#b".as_bytes(),
            E::TargetCharacter,
        ),
        target_refused("NUL behind a raw byte", "3986 2", b"/?\xff\0", E::TargetCharacter),
        target_refused("DEL behind a raw byte", "3986 2", b"/\xff\x7f", E::TargetCharacter),
        target_refused("backslash in the path", "policy", b"/a\\b", E::Path(PathError::Backslash)),
        target_refused("backslash at the start", "3.2", b"\\a", E::TargetForm),
        target_refused("NUL in the path", "3986 2", b"/a\0", E::TargetCharacter),
        target_refused("DEL in the path", "3986 2", b"/a\x7f", E::TargetCharacter),
        target_refused("DEL in the query", "3986 2", b"/?a\x7f", E::TargetCharacter),
        target_refused("escape character in the query", "3986 2", b"/?\x1b[2J", E::TargetCharacter),
        target_refused("relative path", "3.2", b"a/b", E::TargetForm),
        target_refused("query alone", "3.2", b"?a", E::TargetForm),
        target_refused("escaped slash at the start", "3.2", b"%2f", E::TargetForm),
    ]
}

fn other_forms() -> Vec<RequestCase> {
    let absolute = |name, section, target: &str, host: &str, sent_target: &str, sent_host: &str| {
        let received = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let head = format!("GET {sent_target} HTTP/1.1\r\nHost: {sent_host}\r\n\r\n");
        sent(name, section, received.as_bytes(), head.as_bytes())
    };
    let options = |name, section, target: &str, sent_target: &str| {
        let received = format!("OPTIONS {target} HTTP/1.1\r\nHost: a\r\n\r\n");
        let head = format!("OPTIONS {sent_target} HTTP/1.1\r\nHost: a\r\n\r\n");
        sent(name, section, received.as_bytes(), head.as_bytes())
    };
    vec![
        absolute("absolute-form", "3.2.2", "http://a/b?c", "a", "/b?c", "a"),
        absolute("absolute-form, https", "3.2.2", "https://a/b", "a", "/b", "a"),
        absolute("scheme in capitals", "3986 3.1", "HTTP://a/b", "a", "/b", "a"),
        absolute("no path", "9110 4.2.3", "http://a", "a", "/", "a"),
        absolute("no path but a query", "9110 4.2.3", "http://a?b", "a", "/?b", "a"),
        absolute("empty query at once", "9110 4.2.3", "http://a?", "a", "/?", "a"),
        absolute("its path is made canonical", "3.2.2", "http://a/b/../%7ec", "a", "/~c", "a"),
        absolute("slashes in its query", "3.2.2", "http://a/b?/../c", "a", "/b?/../c", "a"),
        absolute("its authority replaces Host", "3.2.2", "http://A:80/", "a:80", "/", "A:80"),
        absolute("default port on one side", "9110 4.2.3", "http://a:80/", "a", "/", "a:80"),
        absolute("default port of https", "9110 4.2.3", "https://a/", "a:443", "/", "a"),
        absolute(
            "IPv6 literal",
            "3986 3.2.2",
            "http://[::1]:8080/b",
            "[::1]:8080",
            "/b",
            "[::1]:8080",
        ),
        sent_then_closed(
            "HTTP/1.0 without Host",
            "3.2.2",
            b"GET http://a/b HTTP/1.0\r\n\r\n",
            b"GET /b HTTP/1.1\r\nHost: a\r\n\r\n",
        ),
        refused("1.1 without Host", "3.2", b"GET http://a/ HTTP/1.1\r\n\r\n", 400, E::HostMissing),
        target_refused("another host", "3.2.2", b"http://b/", E::HostMismatch),
        target_refused("another port", "3.2.2", b"http://a:8080/", E::HostMismatch),
        target_refused(
            "the other scheme's default port",
            "3.2.2",
            b"http://a:443/",
            E::HostMismatch,
        ),
        target_refused("userinfo", "9110 4.2.4", b"http://user@a/", E::HostInvalid),
        target_refused("userinfo with password", "9110 4.2.4", b"http://a:b@a/", E::HostInvalid),
        target_refused("no host", "9110 4.2.1", b"http:///b", E::HostInvalid),
        target_refused("nothing at all", "9110 4.2.1", b"http://", E::HostInvalid),
        target_refused("port without host", "9110 4.2.1", b"http://:80/", E::HostInvalid),
        target_refused(
            "backslash after the authority",
            "3986 3.2",
            b"http://a\\b/",
            E::HostInvalid,
        ),
        target_refused(
            "backslash in its path",
            "policy",
            b"http://a/b\\c",
            E::Path(PathError::Backslash),
        ),
        target_refused("another scheme", "3.2.2", b"ftp://a/", E::TargetForm),
        target_refused("no slashes", "3.2.2", b"http:a/", E::TargetForm),
        target_refused("one slash", "3.2.2", b"http:/a/", E::TargetForm),
        target_refused("authority-form", "3.2.3", b"a:80", E::TargetForm),
        target_refused("asterisk with GET", "3.2.4", b"*", E::TargetForm),
        options("asterisk-form", "3.2.4", "*", "*"),
        options("OPTIONS of a whole server in absolute-form", "3.2.4", "http://a", "*"),
        options("OPTIONS of the root in absolute-form", "3.2.4", "http://a/", "/"),
        options("OPTIONS with a query in absolute-form", "3.2.4", "http://a?b", "/?b"),
        line_refused("asterisk with a query", "3.2.4", b"OPTIONS *?a HTTP/1.1", 400, E::TargetForm),
        line_refused("asterisk and a path", "3.2.4", b"OPTIONS */a HTTP/1.1", 400, E::TargetForm),
    ]
}

fn canonical_paths() -> Vec<RequestCase> {
    vec![
        target("dot segment", "3986 5.2.4", "/a/./b", "/a/b"),
        target("double-dot segment", "3986 5.2.4", "/a/../b", "/b"),
        target("above the root", "3986 5.2.4", "/../../etc/passwd", "/etc/passwd"),
        target("double-dot segment at the end", "3986 5.2.4", "/a/b/..", "/a/"),
        target("encoded dots", "3986 6.2.2", "/a/%2e%2E/b", "/b"),
        target("half-encoded dots", "3986 6.2.2", "/a/.%2e/b", "/b"),
        target("dots before the query", "3986 5.2.4", "/a/..?b", "/?b"),
        target("dots that are no segment", "3986 5.2.4", "/.a/..b/c../d.", "/.a/..b/c../d."),
        target("parameter", "3986 3.3", "/a;b=%63/;d", "/a;b=c/;d"),
        target_refused("parameter of dots", "policy", b"/a/..;/b", E::Path(PathError::Parameters)),
        target_refused(
            "parameter of an empty segment",
            "policy",
            b"/;a/b",
            E::Path(PathError::Parameters),
        ),
        target("empty segments go", "policy", "/a//b///", "/a/b/"),
        target("empty segments go before dots", "policy", "/a//../b", "/b"),
        target("encoded unreserved characters", "3986 6.2.2.2", "/%61%2D%5F%7E%30", "/a-_~0"),
        target("lower-case escapes", "3986 6.2.2.1", "/%c3%a9", "/%C3%A9"),
        target_refused("encoded slash", "policy", b"/a%2fb", E::Path(PathError::EncodedSlash)),
        target_refused("encoded backslash", "policy", b"/a%5cb", E::Path(PathError::Backslash)),
        target_refused(
            "encoded slash behind dots",
            "policy",
            b"/a/..%2Fb",
            E::Path(PathError::EncodedSlash),
        ),
        target("decoded once only", "3986 2.4", "/%252e%252e/a", "/%252e%252e/a"),
        target("escape made by decoding", "3986 2.4", "/%25%32%65", "/%252e"),
        target("encoded sub-delimiters stay", "3986 6.2.2", "/%21%3b%3D%40", "/%21%3B%3D%40"),
        target("encoded line end stays", "3986 6.2.2", "/%0d%0aHost:b", "/%0D%0AHost:b"),
        target("encoded question mark stays", "3986 6.2.2", "/a%3fb?c", "/a%3Fb?c"),
        target("raw characters of browsers", "policy", "/|^{}[]`", "/%7C%5E%7B%7D%5B%5D%60"),
        target_refused("percent alone", "3986 2.1", b"/%", E::Path(PathError::Escape)),
        target_refused("one digit", "3986 2.1", b"/%4", E::Path(PathError::Escape)),
        target_refused("no hexadecimal digits", "3986 2.1", b"/%zz", E::Path(PathError::Escape)),
        target_refused("%u escape", "3986 2.1", b"/%u0041", E::Path(PathError::Escape)),
        target_refused(
            "percent before the query",
            "3986 2.1",
            b"/%4?1",
            E::Path(PathError::Escape),
        ),
        target_refused("encoded NUL", "policy", b"/a%00.png", E::Path(PathError::Nul)),
    ]
}

fn beginnings() -> Vec<RequestCase> {
    vec![
        partial("nothing", "2.2", b""),
        partial("CR", "2.2", b"\r"),
        partial("an empty line", "2.2", b"\r\n"),
        partial("part of a second empty line", "2.2", b"\r\n\r"),
        partial("two empty lines", "2.2", b"\r\n\r\n"),
        partial("part of a method", "3", b"GE"),
        partial("part of a target", "3", b"GET /%"),
        partial("part of a version", "3", b"GET / HTTP/1"),
        partial("CR of the request line", "3", b"GET / HTTP/1.1\r"),
        partial("no field yet", "2.1", b"GET / HTTP/1.1\r\n"),
        partial("part of a name", "5", b"GET / HTTP/1.1\r\nHos"),
        partial("part of a value", "5", b"GET / HTTP/1.1\r\nHost: a"),
        partial("CR of the empty line", "2.1", b"GET / HTTP/1.1\r\nHost: a\r\n\r"),
    ]
}

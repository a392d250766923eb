//! The supposed request, as a virtual server receives it.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use weir_api::asked::{Asked, BODY_BYTES_MAX};
use weir_exchange::local::table::LocalServer;
use weir_http::h1::{HeadLimits, ParseProgress, RequestError, parse_request};
use weir_http::h2;
use weir_http::h2::hpack::{Decoder, Encoder, HeaderBlock};
use weir_http::h2::message::{Malformed, ReadError, read_request};
use weir_http::message::{RequestHead, Scheme};
use weir_http::path::TargetForm;

/// The client's port, if it is not given.
const CLIENT_PORT: u16 = 40_000;

/// The parts of a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// The scheme.
    pub scheme: Scheme,
    /// The host without brackets and port, in lower case.
    pub host: String,
    /// The port, if it is given.
    pub port: Option<u16>,
    /// Host and port as written.
    pub authority: String,
    /// Path and query.
    pub target: String,
}

impl Url {
    /// Parses a URL.
    ///
    /// # Errors
    /// The text is not the URL of a request.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (scheme, rest) = match text.split_once("://") {
            Some((name, rest)) if name.eq_ignore_ascii_case("http") => (Scheme::Http, rest),
            Some((name, rest)) if name.eq_ignore_ascii_case("https") => (Scheme::Https, rest),
            Some((name, _)) => return Err(format!("`{name}://` is neither http:// nor https://")),
            None => (Scheme::Http, text),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        if authority.contains('@') {
            // Neither part is shown: one may be a password.
            return Err("a URL of a request has no user and password: leave them out up to `@`, and add the header \
                        `Authorization` if rules look at it"
                .to_owned());
        }
        if authority.is_empty() || authority.contains(' ') {
            return Err(format!("`{text}` names no host: as in https://shop.example/cart"));
        }
        let (host, port) = host_and_port(authority)?;
        let target = if target.starts_with('/') { target.into() } else { format!("/{target}") };
        let authority = authority.to_owned();
        Ok(Self { scheme, host: host.to_ascii_lowercase(), port, authority, target })
    }

    /// The port, or the default port of the scheme.
    pub fn port_or_default(&self) -> u16 {
        self.port.unwrap_or(match self.scheme {
            Scheme::Http => 80,
            Scheme::Https => 443,
        })
    }
}

fn host_and_port(authority: &str) -> Result<(&str, Option<u16>), String> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or_else(|| {
                format!("`{authority}` has no `]` behind its address: as in [2001:db8::1]:8080")
            })?;
            if !host.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv6()) {
                return Err(format!("`[{host}]` is no IPv6 address"));
            }
            if !(rest.is_empty() || rest.starts_with(':')) {
                return Err(format!("`{rest}` behind `]` is no port: as in [2001:db8::1]:8080"));
            }
            (host, rest.strip_prefix(':'))
        }
        None if authority.parse::<Ipv6Addr>().is_ok() => {
            return Err(format!("an IPv6 address has brackets in a URL: `[{authority}]`"));
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let wrong = |port: &str| format!("`{port}` is no port");
    let port = port.map(|port| port.parse().map_err(|_| wrong(port))).transpose()?;
    Ok((host, port))
}

/// A request as a virtual server receives it.
pub struct ReceivedRequest {
    /// The head.
    pub head: RequestHead,
    /// The text of the head.
    pub input: Vec<u8>,
    /// The body.
    pub body: Vec<u8>,
}

/// The reason why there is no request to decide about.
#[derive(Debug)]
pub enum NoRequest {
    /// The question is ambiguous or invalid.
    Unclear(String),
    /// The request is malformed, and gets an error response.
    Malformed(RequestError),
    /// The message of HTTP/2 is malformed, and its stream is reset.
    Reset(Malformed),
}

/// The peer of the connection.
pub fn peer(asked: &Asked) -> SocketAddr {
    let address = asked.from.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    SocketAddr::new(address, CLIENT_PORT)
}

/// The request as a virtual server receives it.
///
/// # Errors
/// See [`NoRequest`].
pub fn arrive(
    asked: &Asked,
    url: &Url,
    server: &LocalServer,
) -> Result<ReceivedRequest, NoRequest> {
    match asked.http2 {
        true if !server.http.http2 => Err(NoRequest::Unclear(format!(
            "virtual server `{}` does not speak HTTP/2: ask without it, or set `http: {{ http2: true }}`",
            server.live.name
        ))),
        true => receive_over_http2(asked, url, &server.http2_limits, server.http.target),
        false => receive(asked, url, &server.limits, server.http.target),
    }
}

/// The request as a virtual server with these settings receives it over HTTP/1.
fn receive(
    asked: &Asked,
    url: &Url,
    limits: &HeadLimits,
    form: TargetForm,
) -> Result<ReceivedRequest, NoRequest> {
    let input = text(asked, url).map_err(NoRequest::Unclear)?;
    let mut head = RequestHead::new();
    match parse_request(&input, limits, form, &mut head) {
        Ok(ParseProgress::Complete { length }) if length == input.len() => {}
        Ok(_) => {
            let why = "the method, the URL or a header ends the head: they have no line ends";
            return Err(NoRequest::Unclear(why.into()));
        }
        Err(error) => return Err(NoRequest::Malformed(error)),
    }
    let body = asked.body.clone().unwrap_or_default().into_bytes();
    Ok(ReceivedRequest { head, input, body })
}

/// The request as a virtual server with these settings receives it over HTTP/2. As clients do, it names the host in
/// `:authority`.
fn receive_over_http2(
    asked: &Asked,
    url: &Url,
    limits: &h2::Limits,
    form: TargetForm,
) -> Result<ReceivedRequest, NoRequest> {
    let lines = lines(asked).map_err(NoRequest::Unclear)?;
    let is_host = |name: &str| name.eq_ignore_ascii_case("host");
    let host = lines.iter().find(|(name, _)| is_host(name)).map(|(_, value)| &**value);
    let scheme = if url.scheme == Scheme::Https { "https" } else { "http" };
    let (mut encoder, mut sent) = (Encoder::new(0), Vec::new());
    let mut list = encoder.block(&mut sent);
    for (name, value) in [
        (":method", method(asked)),
        (":scheme", scheme),
        (":authority", host.unwrap_or(&url.authority)),
        (":path", &url.target),
    ] {
        list.field(name.as_bytes(), value.as_bytes());
    }
    for (name, value) in lines.iter().filter(|(name, _)| !is_host(name)) {
        list.field_of_any_case(name.as_bytes(), value.as_bytes(), false);
    }
    let (mut block, mut head) = (HeaderBlock::new(), RequestHead::new());
    let decoded = Decoder::new().decode(&sent, &limits.list(), &mut block);
    decoded.map_err(|error| NoRequest::Unclear(error.to_string()))?;
    match read_request(&mut block, asked.body.is_none(), form, &mut head) {
        Ok(()) => {}
        Err(ReadError::Malformed(error)) => return Err(NoRequest::Reset(error)),
        Err(ReadError::Refused(error)) => return Err(NoRequest::Malformed(error)),
    }
    let body = asked.body.clone().unwrap_or_default().into_bytes();
    Ok(ReceivedRequest { head, input: block.text().to_vec(), body })
}

fn method(asked: &Asked) -> &str {
    let by_body = if asked.body.is_some() { "POST" } else { "GET" };
    asked.method.as_deref().unwrap_or(by_body)
}

/// The fields, with the length of the body if nothing else frames it.
fn lines(asked: &Asked) -> Result<Vec<(&str, Cow<'_, str>)>, String> {
    let body = asked.body.as_deref();
    if body.is_some_and(|body| body.len() > BODY_BYTES_MAX) {
        return Err(format!("the body is longer than {BODY_BYTES_MAX} bytes"));
    }
    let mut lines = Vec::new();
    for line in &asked.headers {
        let (name, value) = line
            .split_once(':')
            .ok_or_else(|| format!("`{line}` is no header: as in 'Cookie: a=b'"))?;
        lines.push((name.trim(), value.trim().into()));
    }
    let frames = |(name, _): &(&str, Cow<'_, str>)| {
        ["content-length", "transfer-encoding"].iter().any(|it| name.eq_ignore_ascii_case(it))
    };
    if let Some(body) = body.filter(|_| !lines.iter().any(frames)) {
        lines.push(("Content-Length", body.len().to_string().into()));
    }
    Ok(lines)
}

fn text(asked: &Asked, url: &Url) -> Result<Vec<u8>, String> {
    let lines = lines(asked)?;
    let mut text = format!("{} {} HTTP/1.1\r\n", method(asked), url.target);
    if !lines.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        text += &format!("Host: {}\r\n", url.authority);
    }
    for (name, value) in &lines {
        text += &format!("{name}: {value}\r\n");
    }
    text += "\r\n";
    Ok(text.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let check = |text: &str, expected: (Scheme, &str, Option<u16>, &str)| {
            let url = Url::parse(text).expect(text);
            assert_eq!((url.scheme, &*url.host, url.port, &*url.target), expected, "{text}");
        };
        check("https://Shop/cart?a#b", (Scheme::Https, "shop", None, "/cart?a"));
        check("shop:8080", (Scheme::Http, "shop", Some(8080), "/"));
        check("http://[::1]:80?x", (Scheme::Http, "::1", Some(80), "/?x"));
        check("HTTP://[2001:db8::1]/a", (Scheme::Http, "2001:db8::1", None, "/a"));
        let refused = |text: &str, expected: &str| {
            let why = Url::parse(text).err().unwrap_or_else(|| panic!("{text} is taken"));
            assert!(why.contains(expected), "{text}: {why}");
        };
        refused("http://[::1", "has no `]` behind its address");
        refused("http://[::1]80/", "`80` behind `]` is no port");
        refused("http://[::1]:x/", "`x` is no port");
        refused("http://[a]/", "`[a]` is no IPv6 address");
        refused("http://::1/", "`[::1]`");
        refused("http://u:p@a/", "has no user and password");
        refused("http:///a", "names no host");
        for wrong in ["", "/a", "ftp://a", "http://", "http://a:b/", "http://a:99999", "http://u@a"]
        {
            assert!(Url::parse(wrong).is_err(), "{wrong}");
        }
    }

    fn asked(url: &str) -> Asked {
        let (method, headers, body) = (None, Vec::new(), None);
        let url = url.to_owned();
        Asked { url, method, headers, body, from: None, http2: false, virtual_server: None }
    }

    fn written(asked: &Asked) -> Result<String, String> {
        let url = Url::parse(&asked.url).expect("a URL");
        text(asked, &url).map(|text| String::from_utf8(text).expect("text"))
    }

    #[test]
    fn a_request_is_written_as_a_client_would() {
        let it = asked("http://shop:81/a?b");
        assert_eq!(written(&it).unwrap(), "GET /a?b HTTP/1.1\r\nHost: shop:81\r\n\r\n");
        let headers = vec!["host:other".into(), "X: 1: 2 ".into()];
        let it = Asked { headers, body: Some("abc".into()), ..it };
        let expected = "POST /a?b HTTP/1.1\r\nhost: other\r\nX: 1: 2\r\nContent-Length: 3\r\n\r\n";
        assert_eq!(written(&it).unwrap(), expected);
        assert!(written(&Asked { headers: vec!["no".into()], ..asked("http://a") }).is_err());
    }

    #[test]
    fn over_http2_it_is_read_as_a_stream_would_be() {
        let check = |headers: &[&str], body: Option<&str>, expected: Result<&str, Malformed>| {
            let headers: Vec<String> = headers.iter().map(ToString::to_string).collect();
            let it = Asked { headers, body: body.map(str::to_owned), ..asked("https://shop/a?b") };
            let url = Url::parse(&it.url).expect("a URL");
            let limits = h2::Limits::DEFAULT;
            let received = receive_over_http2(&it, &url, &limits, TargetForm::default());
            match (received, expected) {
                (Ok(received), Ok(host)) => {
                    let ReceivedRequest { head, input, .. } = received;
                    assert_eq!(head.authority(&input), host.as_bytes(), "{:?}", it.headers);
                    assert_eq!(head.target.of(&input), b"/a?b");
                }
                (Err(NoRequest::Reset(error)), Err(expected)) => assert_eq!(error, expected),
                (Err(error), _) => panic!("{:?}: {error:?}", it.headers),
                (Ok(_), Err(expected)) => panic!("{:?}: taken in place of {expected}", it.headers),
            }
        };
        check(&[], None, Ok("shop"));
        check(&["Host: other", "Cookie: a=b"], None, Ok("other"));
        check(&["te: trailers"], Some("abc"), Ok("shop"));
        check(&["Connection: close"], None, Err(Malformed::ConnectionField));
        check(&["Transfer-Encoding: chunked"], Some("a"), Err(Malformed::ConnectionField));
        check(&["Upgrade: websocket"], None, Err(Malformed::ConnectionField));
        check(&["TE: gzip"], None, Err(Malformed::Te));
        check(&["Content-Length: 5"], None, Err(Malformed::ContentLength));
        check(&["A: b\r\nc: d"], None, Err(Malformed::Value));
    }

    #[test]
    fn line_ends_make_no_second_request() {
        let limits = HeadLimits { head_size_max: 4096, headers_max: 20 };
        for it in [
            Asked { method: Some("GET / HTTP/1.1\r\n\r\nGET".into()), ..asked("http://a/") },
            Asked { headers: vec!["A: b\r\n\r\nc".into()], ..asked("http://a/") },
        ] {
            let url = Url::parse(&it.url).expect("a URL");
            assert!(receive(&it, &url, &limits, TargetForm::default()).is_err(), "{it:?}");
        }
    }
}

//! A request for tests of rules, parsed as in the data path.

use std::path::Path;

use weir_http::h1::{HeadLimits, ParseProgress, RequestError, parse_request};
use weir_http::message::{Field, Framing, RequestHead, Version};
use weir_http::path::{EncodedSlashes, PathForm, Spellings, TargetForm};
use weir_waf::inspection::BodyLength;

use super::wire;

/// Settings for parsing heads.
#[derive(Debug, Clone, Copy)]
pub struct HeadSettings {
    /// Limits on the size of a head.
    pub head: HeadLimits,
    /// The form of paths.
    pub target: TargetForm,
}

impl Default for HeadSettings {
    fn default() -> Self {
        let head = HeadLimits { head_size_max: 64 * 1024, headers_max: 256 };
        // As at a virtual server without rules that read the path.
        let spellings = Spellings { encoded_slashes: EncodedSlashes::Keep, ..Spellings::default() };
        let target = TargetForm { path: PathForm::Canonical(spellings), ..TargetForm::default() };
        Self { head, target }
    }
}

/// A request.
#[derive(Debug, PartialEq, Eq)]
pub struct Trial {
    pub method: Vec<u8>,
    /// The received target.
    pub received_target: Vec<u8>,
    /// The target as the member receives it.
    pub target: Vec<u8>,
    pub protocol: Vec<u8>,
    pub headers: Vec<(Vec<u8>, Vec<u8>)>,
    pub body: Vec<u8>,
    /// The length of the body according to its framing.
    pub length: BodyLength,
}

/// The parts of a request on the command line.
#[derive(Debug, Default, Clone, Copy)]
pub struct RequestArguments<'a> {
    pub url: &'a str,
    pub method: Option<&'a str>,
    pub headers: &'a [String],
    pub data: Option<&'a str>,
}

/// Fields that browsers send in every request.
const USUAL_HEADERS: [(&str, &str); 3] = [
    ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"),
    ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    ("Accept-Language", "en"),
];

impl Trial {
    /// A request for a URL, as a browser would send it.
    pub fn of_url(asked: RequestArguments<'_>, reading: HeadSettings) -> Result<Self, String> {
        let RequestArguments { url, method, headers, data } = asked;
        let (host, target) = parts(url)?;
        let mut all = vec![("Host".to_owned(), host.to_owned())];
        if let Some(data) = data {
            all.push(("Content-Length".into(), data.len().to_string()));
        }
        // A given field replaces the default field of the same name.
        let mut own = Vec::new();
        for line in headers {
            let (name, value) = line
                .split_once(':')
                .ok_or_else(|| format!("`{line}` is no header: as in 'Cookie: a=b'"))?;
            own.push((name.trim().to_owned(), value.trim().to_owned()));
        }
        all.retain(|(name, _)| !has(&own, name));
        all.append(&mut own);
        let form = ("Content-Type", "application/x-www-form-urlencoded");
        for (name, value) in USUAL_HEADERS.into_iter().chain(data.map(|_| form)) {
            if !has(&all, name) {
                all.push((name.to_owned(), value.to_owned()));
            }
        }
        let method = method.unwrap_or(if data.is_some() { "POST" } else { "GET" });
        let mut text = format!("{method} {target} HTTP/1.1\r\n");
        for (name, value) in all {
            text += &format!("{name}: {value}\r\n");
        }
        text += "\r\n";
        text += data.unwrap_or_default();
        Self::of_bytes(text.as_bytes(), reading)
    }

    /// Parses a file in HTTP/1 format, with CR LF or LF in its head.
    pub fn of_file(path: &Path, reading: HeadSettings) -> Result<Self, String> {
        let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Self::of_bytes(&bytes, reading).map_err(|reason| format!("{}: {reason}", path.display()))
    }

    fn of_bytes(bytes: &[u8], reading: HeadSettings) -> Result<Self, String> {
        let (input, body) = wire::normalised(bytes);
        let mut head = RequestHead::new();
        match parse_request(&input, &reading.head, reading.target, &mut head) {
            Ok(ParseProgress::Complete { length }) if length == input.len() => {}
            // The file is empty, or begins with an empty line.
            Ok(_) => return Err("it does not begin with a request line".into()),
            Err(error) => {
                let key = match error {
                    RequestError::Path(path) => path.key(),
                    _ => None,
                };
                let key = key.map(|key| format!("; `{key}` decides about it")).unwrap_or_default();
                return Err(format!(
                    "weir answers it with {} before any rule sees it: {error}{key}",
                    error.status()
                ));
            }
        }
        let body = wire::body(body, head.framing, "request")?;
        let mut target = head.member_path(&input).to_vec();
        if let Some(query) = head.query(&input) {
            target.push(b'?');
            target.extend_from_slice(query);
        }
        Ok(Self {
            method: head.method_text.of(&input).to_vec(),
            received_target: head.target.of(&input).to_vec(),
            target,
            protocol: protocol(head.version).to_vec(),
            headers: fields(&head, &input),
            body,
            length: match head.framing {
                Framing::None | Framing::Length(0) => BodyLength::None,
                Framing::Length(bytes) => BodyLength::Known(bytes),
                Framing::Chunked | Framing::UntilClose => BodyLength::Unknown,
            },
        })
    }
}

/// The host and target of a URL.
fn parts(url: &str) -> Result<(&str, String), String> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split('#').next().unwrap_or_default();
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, target) = rest.split_at(end);
    if host.is_empty() {
        return Err(format!("`{url}` names no host: as in https://shop.example/cart?id=1"));
    }
    let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
    if target.contains(|char: char| char.is_ascii_whitespace() || char.is_control()) {
        return Err(format!("`{url}` has a blank in it: write it as %20 or +"));
    }
    Ok((host, encoded(&target)))
}

/// Percent-encodes the bytes that browsers never send raw.
fn encoded(target: &str) -> String {
    let escaped = |byte: u8| match byte {
        b'"' | b'<' | b'>' | 0x80.. => format!("%{byte:02X}"),
        byte => char::from(byte).to_string(),
    };
    target.bytes().map(escaped).collect()
}

/// The fields of a head. Host comes from the target in absolute form or from `:authority`, if they contain it.
fn fields(head: &RequestHead, input: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    // Fields named in Connection are not forwarded.
    let is_seen = |field: &&Field| !field.id.is_ordinary() || field.forward;
    let received = head.fields.iter().filter(is_seen);
    let received = received.map(|field| (field.name.of(input), field.value.of(input)));
    let mut fields: Vec<_> =
        received.map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
    let has_host = fields.iter().any(|(name, _)| name.eq_ignore_ascii_case(b"host"));
    if !has_host && !head.authority(input).is_empty() {
        fields.insert(0, (b"Host".to_vec(), head.authority(input).to_vec()));
    }
    fields
}

/// The version in the format of rules.
pub fn protocol(version: Version) -> &'static [u8] {
    match version {
        Version::Http10 => b"HTTP/1.0",
        Version::Http11 => b"HTTP/1.1",
        Version::Http2 => b"HTTP/2.0",
    }
}

fn has(headers: &[(String, String)], wanted: &str) -> bool {
    headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_url(url: &str, headers: &[&str], data: Option<&str>) -> Result<Trial, String> {
        let headers: Vec<String> = headers.iter().map(|&header| header.into()).collect();
        Trial::of_url(
            RequestArguments { url, method: None, headers: &headers, data },
            HeadSettings::default(),
        )
    }

    fn of_bytes(text: &[u8]) -> Result<Trial, String> {
        Trial::of_bytes(text, HeadSettings::default())
    }

    fn header<'a>(trial: &'a Trial, wanted: &str) -> Vec<&'a str> {
        let named = trial.headers.iter().filter(|(name, _)| name == wanted.as_bytes());
        named.map(|(_, value)| std::str::from_utf8(value).expect("text")).collect()
    }

    #[test]
    fn urls_become_requests() {
        for (url, host, target) in [
            ("https://a.example/x?y=1#z?/", "a.example", "/x?y=1"),
            ("https://a.example#z", "a.example", "/"),
            ("a.example", "a.example", "/"),
            ("http://a.example:8080?q", "a.example:8080", "/?q"),
            ("a.example/?q=<script>'\"", "a.example", "/?q=%3Cscript%3E'%22"),
            ("a.example/?q=\u{e9}", "a.example", "/?q=%C3%A9"),
        ] {
            let trial = of_url(url, &[], None).expect(url);
            assert_eq!(header(&trial, "Host"), [host]);
            assert_eq!(trial.received_target, target.as_bytes(), "{url}");
            assert_eq!(trial.method, b"GET");
        }
        let form = of_url("a/b", &["X: y "], Some("c=d")).expect("a form");
        assert_eq!((&form.method[..], &form.body[..]), (&b"POST"[..], &b"c=d"[..]));
        assert_eq!((header(&form, "X"), header(&form, "Content-Length")), (vec!["y"], vec!["3"]));
        let own = of_url("a/b", &["Host: c", "Accept: d"], None).expect("own headers");
        assert_eq!((header(&own, "Host"), header(&own, "Accept")), (vec!["c"], vec!["d"]));
        for (url, header) in [("/only", ""), ("https:///x", ""), ("a/b c", ""), ("a/b", "nothing")]
        {
            let headers = [header];
            let headers = if header.is_empty() { &headers[..0] } else { &headers[..] };
            assert!(of_url(url, headers, None).is_err(), "{url} {header}");
        }
        let error = of_url("a/b", &["content-length: 9"], Some("c=d")).expect_err("too long");
        assert!(error.contains("3 of 9 bytes"), "{error}");
    }

    #[test]
    fn files_are_requests() {
        let expected = Trial {
            method: b"POST".to_vec(),
            received_target: b"/x/../%61?%61".to_vec(),
            target: b"/a?%61".to_vec(),
            protocol: b"HTTP/1.1".to_vec(),
            headers: [("Host", "h"), ("X", "y:z"), ("Content-Length", "4")]
                .map(|(name, value)| (name.into(), value.into()))
                .to_vec(),
            body: b"b\n\nc".to_vec(),
            length: BodyLength::Known(4),
        };
        for end in ["\r\n", "\n"] {
            let lines = ["POST /x/../%61?%61 HTTP/1.1", "Host: h", "X: y:z", "Content-Length: 4"];
            let text = format!("{}{end}{end}b\n\nc", lines.join(end));
            assert_eq!(of_bytes(text.as_bytes()).expect(&text), expected);
        }
        let raw = of_bytes(b"GET / HTTP/1.1\nHost: h\nX: \xe9\xff").expect("bytes");
        assert_eq!(raw.headers[1].1, b"\xe9\xff");
        for (text, expected) in [
            ("", "does not begin with a request line"),
            ("GET /", "request line without version"),
            ("GET / HTTP/1.1\nno header", "whitespace before the colon of a field"),
            ("GET / HTTP/1.1\n\n", "Host missing"),
            ("GET /%zz HTTP/1.1\nHost: h\n\n", "weir answers it with 400"),
        ] {
            let error = of_bytes(text.as_bytes()).expect_err(text);
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }
}

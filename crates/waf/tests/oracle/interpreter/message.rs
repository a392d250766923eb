//! The values of a request and its response, by variable.

use weir_waf::body::{
    Body, Limits, NestedValues, Processor, Query, Settings, Sink, cookies, may_be_nested,
};
use weir_waf::inspection::{Request, Response, shell_text};
use weir_waf::seclang::Variable as V;

use super::markup::contents;

/// A member of a variable, or a variable without members.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    pub name: Vec<u8>,
    pub value: Vec<u8>,
    /// For a value within another value: the name that rules for names inspect.
    pub nested: Option<Option<Vec<u8>>>,
}

#[derive(Default)]
pub struct Message {
    members: Vec<(V, Member)>,
    pub processor: Processor,
    content_type: Vec<u8>,
    /// The whole text of an XML document.
    content: Vec<u8>,
    separator: u8,
    pub is_body_forced: bool,
}

const ZERO: [V; 19] = [
    V::InboundDataError,
    V::OutboundDataError,
    V::MultipartBoundaryQuoted,
    V::MultipartBoundaryWhitespace,
    V::MultipartCrlfLfLines,
    V::MultipartDataAfter,
    V::MultipartDataBefore,
    V::MultipartFileLimitExceeded,
    V::MultipartHeaderFolding,
    V::MultipartInvalidHeaderFolding,
    V::MultipartInvalidPart,
    V::MultipartInvalidQuoting,
    V::MultipartLfLine,
    V::MultipartMissingSemicolon,
    V::MultipartStrictError,
    V::MultipartUnmatchedBoundary,
    V::ReqbodyError,
    V::ReqbodyProcessorError,
    V::UrlencodedError,
];

/// JSON in the name of an argument, or of an element of one.
fn json_in(name: &[u8]) -> Option<&[u8]> {
    let at = name.iter().position(|byte| matches!(byte, b'{' | b'"'))?;
    match &name[..at] {
        [] | [b'['] => Some(name),
        [.., b'['] => Some(name[at..].strip_suffix(b"]").unwrap_or(&name[at..])),
        _ => None,
    }
}

impl Message {
    pub fn new(request: &Request<'_>, separator: u8) -> Self {
        let mut message = Self { separator, ..Self::default() };
        ZERO.into_iter().for_each(|variable| message.set(variable, b"0"));
        message.head(request);
        message.sizes(0);
        message.nest(V::ArgsGet);
        message.nest_headers();
        message.nest(V::RequestCookies);
        message
    }

    /// Adds the values within the values of a variable.
    fn nest(&mut self, variable: V) {
        let mut decoder = NestedValues::new(Limits::DEFAULT);
        let outer = self.of(variable).into_iter().flat_map(|Member { name, value, .. }| {
            let of_name = json_in(&name).unwrap_or_default().to_vec();
            let found = readings(value).into_iter().chain([of_name]);
            found.map(|value| (name.clone(), value)).collect::<Vec<_>>()
        });
        for (name, value) in outer.collect::<Vec<_>>() {
            if !may_be_nested(&value) {
                continue;
            }
            let mut last = Vec::new();
            decoder.read(&value, &mut |path, leaf| {
                let is_new = !path.is_empty() && last != path;
                if is_new {
                    last = path.to_vec();
                }
                let nested = Some(is_new.then(|| path.to_vec()));
                let member = Member { name: name.clone(), value: leaf.to_vec(), nested };
                self.members.push((variable, member));
            });
        }
        for Member { name, value, .. } in self.of(variable) {
            let mut found = contents(&value);
            if value.windows(3).any(|it| it == b"%23") {
                found.extend(contents(&unescaped(&value)));
            }
            let member = |value| Member { name: name.clone(), value, nested: Some(None) };
            self.members.extend(found.into_iter().map(|value| (variable, member(value))));
        }
        for Member { name, value, .. } in self.of(variable) {
            let decoded = Some(unescaped(&value)).filter(|_| value.contains(&b'%'));
            let read = [Some(value), decoded].into_iter().flatten();
            let read = read.filter_map(|value| shell_text(&value));
            let member = |value| Member { name: name.clone(), value, nested: Some(None) };
            self.members.extend(read.map(|value| (variable, member(value))));
        }
    }

    /// Adds the values within headers of the application.
    fn nest_headers(&mut self) {
        let mut decoder = NestedValues::new(Limits::DEFAULT);
        for Member { name, value, .. } in self.of(V::RequestHeaders) {
            if [&b"cookie"[..], b"referer"].contains(&name.to_ascii_lowercase().as_slice()) {
                continue;
            }
            let has_mark =
                |value: &Vec<u8>| value.iter().any(|it| matches!(it, b'\\' | b'{' | b'['));
            for value in readings(value).iter().filter(|value| has_mark(value)) {
                decoder.read(value, &mut |_, leaf| {
                    let member =
                        Member { name: name.clone(), value: leaf.to_vec(), nested: Some(None) };
                    self.members.push((V::RequestHeaders, member));
                });
            }
        }
    }

    pub fn set(&mut self, variable: V, value: &[u8]) {
        self.members.retain(|(it, _)| *it != variable);
        self.add(variable, b"", value);
    }

    fn add(&mut self, variable: V, name: &[u8], value: &[u8]) {
        let member = Member { name: name.to_vec(), value: value.to_vec(), nested: None };
        self.members.push((variable, member));
    }

    fn head(&mut self, request: &Request<'_>) {
        for (variable, value) in [
            (V::RemoteAddr, request.client.0.to_string()),
            (V::RemotePort, request.client.1.to_string()),
            (V::ServerAddr, request.server.0.to_string()),
            (V::ServerPort, request.server.1.to_string()),
        ] {
            self.set(variable, value.as_bytes());
        }
        let target = request.target;
        // Requests of these tests are in origin form.
        let mut parts = target.splitn(2, |byte| *byte == b'?');
        let path = unescaped(parts.next().unwrap_or_default());
        let query = parts.next().unwrap_or_default();
        let base = path.rsplit(|byte| matches!(byte, b'/' | b'\\')).next().unwrap_or_default();
        self.set(V::RequestBasename, base);
        self.set(V::RequestFilename, &path);
        self.set(V::QueryString, query);
        self.set(V::RequestUri, target);
        self.set(V::RequestUriRaw, target);
        self.set(V::RequestMethod, request.method);
        self.set(V::RequestProtocol, request.protocol);
        self.set(V::RequestLine, &[request.method, target, request.protocol].join(&b' '));
        self.set(V::UniqueId, request.unique_id);
        for (name, value) in request.headers {
            self.header(name, value);
        }
        let mut arguments = Query::new();
        arguments.read(query, self.separator, &Limits::DEFAULT);
        for (name, value) in arguments.arguments() {
            self.add(V::ArgsGet, name, value);
        }
        self.choose(Processor::of(&self.content_type.clone()));
    }

    fn header(&mut self, name: &[u8], value: &[u8]) {
        self.add(V::RequestHeaders, name, value);
        match name.to_ascii_lowercase().as_slice() {
            b"cookie" => {
                for (name, value) in cookies(value) {
                    self.add(V::RequestCookies, name, value);
                }
            }
            b"content-type" => self.content_type = value.to_vec(),
            b"host" => {
                let text = String::from_utf8_lossy(value).into_owned();
                let host = match text.rsplit_once(':') {
                    Some((host, port))
                        if !port.is_empty() && port.bytes().all(|it| it.is_ascii_digit()) =>
                    {
                        host.len()
                    }
                    _ => value.len(),
                };
                self.set(V::ServerName, &value[..host]);
            }
            _ => {}
        }
    }

    pub fn choose(&mut self, processor: Processor) {
        self.processor = processor;
        self.set(V::ReqbodyProcessor, processor.name().as_bytes());
    }

    fn sizes(&mut self, body_bytes: usize) {
        let bytes = |variable: V| -> usize {
            let own = self.of(variable).into_iter().filter(|it| it.nested.is_none());
            own.map(|it| it.name.len() + it.value.len()).sum()
        };
        let arguments = bytes(V::ArgsGet) + bytes(V::ArgsPost);
        let files: i64 =
            self.of(V::FilesSizes).iter().map(|member| super::number(&member.value)).sum();
        self.set(V::ArgsCombinedSize, arguments.to_string().as_bytes());
        self.set(V::FilesCombinedSize, files.to_string().as_bytes());
        self.set(V::RequestBodyLength, body_bytes.to_string().as_bytes());
    }

    pub fn body(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let settings = Settings { separator: self.separator, ..Settings::DEFAULT };
        let mut body = Body::new(self.processor, &self.content_type.clone(), &settings);
        body.feed(bytes, self);
        body.finish(self);
        // The text of the whole document, if it has several pieces.
        let members = self.of(V::Xml);
        let joined = std::mem::take(&mut self.content);
        let joined = joined.trim_ascii();
        if members.len() > 1 && !joined.is_empty() {
            self.add(V::Xml, b"/*", joined);
        }
        if let Some(failure) = body.failure() {
            self.set(V::ReqbodyError, b"1");
            self.set(V::ReqbodyProcessorError, b"1");
            self.set(V::ReqbodyErrorMsg, failure.problem.sentence().as_bytes());
            self.set(V::ReqbodyProcessorErrorMsg, failure.problem.sentence().as_bytes());
        }
        match &body {
            Body::UrlEncoded(form) if form.bad_escapes() > 0 => self.set(V::UrlencodedError, b"1"),
            Body::Multipart(multipart) => {
                for flag in multipart.flags().iter() {
                    let variable = V::from_name(flag.variable()).expect("a variable");
                    self.set(variable, b"1");
                }
                if multipart.strict_error() {
                    self.set(V::MultipartStrictError, b"1");
                }
                let unmatched = multipart.unmatched_boundary().to_string();
                self.set(V::MultipartUnmatchedBoundary, unmatched.as_bytes());
            }
            _ => {}
        }
        let is_kept = matches!(self.processor, Processor::UrlEncoded | Processor::Json);
        if is_kept || self.is_body_forced {
            self.set(V::RequestBody, bytes);
        }
        self.sizes(bytes.len());
        self.nest(V::ArgsPost);
        self.nest(V::Xml);
    }

    pub fn response(&mut self, response: &Response<'_>) {
        let status = response.status.to_string();
        self.set(V::ResponseStatus, status.as_bytes());
        self.set(V::ResponseProtocol, response.protocol);
        self.set(V::StatusLine, &[response.protocol, status.as_bytes()].join(&b' '));
        for (name, value) in response.headers {
            self.add(V::ResponseHeaders, name, value);
            match name.to_ascii_lowercase().as_slice() {
                b"content-type" => self.set(V::ResponseContentType, value),
                b"content-length" => self.set(V::ResponseContentLength, value),
                _ => {}
            }
        }
    }

    /// The members of a variable, in the order of the message.
    pub fn of(&self, variable: V) -> Vec<Member> {
        let kept = |wanted: &[V]| -> Vec<Member> {
            let of = |one: V| self.members.iter().filter(move |(it, _)| *it == one);
            wanted.iter().flat_map(|one| of(*one)).map(|(_, member)| member.clone()).collect()
        };
        let named = |wanted: &[V]| -> Vec<Member> {
            let names = kept(wanted).into_iter();
            let judged = |member: Member| {
                let value = member.nested.clone().unwrap_or(Some(member.name.clone()))?;
                Some(Member { value, ..member })
            };
            names.filter_map(judged).collect()
        };
        match variable {
            V::Args => kept(&[V::ArgsGet, V::ArgsPost]),
            V::ArgsNames => named(&[V::ArgsGet, V::ArgsPost]),
            V::ArgsGetNames => named(&[V::ArgsGet]),
            V::ArgsPostNames => named(&[V::ArgsPost]),
            V::RequestHeadersNames => named(&[V::RequestHeaders]),
            V::RequestCookiesNames => named(&[V::RequestCookies]),
            V::ResponseHeadersNames => named(&[V::ResponseHeaders]),
            V::FilesNames | V::MultipartName => named(&[V::Files]),
            V::MultipartFilename => kept(&[V::Files]),
            other => kept(&[other]),
        }
    }
}

impl Sink for Message {
    fn argument(&mut self, name: &[u8], value: &[u8]) {
        self.add(V::ArgsPost, name, value);
    }

    fn file(&mut self, field: &[u8], file_name: &[u8], size_bytes: u64) {
        self.add(V::Files, field, file_name);
        self.add(V::FilesSizes, field, size_bytes.to_string().as_bytes());
    }

    fn part_header(&mut self, part: &[u8], line: &[u8]) {
        self.add(V::MultipartPartHeaders, part, line);
    }

    fn xml_content(&mut self, content: &[u8]) {
        self.content.extend_from_slice(content);
    }

    fn xml_text(&mut self, text: &[u8]) {
        self.add(V::Xml, b"/*", text);
    }

    fn xml_instruction(&mut self, text: &[u8]) {
        self.add(V::Xml, b"/*", text);
    }

    fn xml_attribute(&mut self, value: &[u8]) {
        self.add(V::Xml, b"//@*", value);
    }
}

/// A value, and the same without its percent-encodings, as far as they may contain others. In JSON, only an encoded backslash
/// is decoded.
fn readings(mut value: Vec<u8>) -> Vec<Vec<u8>> {
    let mut found: Vec<Vec<u8>> = Vec::new();
    for _ in 0..3 {
        if may_be_nested(&value) {
            found.push(value.clone());
        }
        let text = String::from_utf8_lossy(&value).to_lowercase();
        let has_backslash =
            text.split('%').skip(1).any(|it| it.trim_start_matches("25").starts_with("5c"));
        if !found.is_empty() && !has_backslash {
            break;
        }
        value = unescaped(&value);
    }
    found
}

/// Decodes percent-encoding once.
fn unescaped(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < path.len() {
        let digits = path.get(at + 1..at + 3).filter(|_| path[at] == b'%');
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        match digits {
            Some(digits) => {
                let text = String::from_utf8_lossy(digits).into_owned();
                out.push(u8::from_str_radix(&text, 16).expect("two digits"));
                at += 3;
            }
            None => {
                out.push(path[at]);
                at += 1;
            }
        }
    }
    out
}

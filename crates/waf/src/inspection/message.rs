//! The parts of a message, stored as variables.

use super::body_head::BodyHead;
use super::body_recording::BodyRecording;
use super::content::{Content, Kind};
use super::encoded_body::{EncodedBody, NamedValues};
use super::files::FileScan;
use super::hit::Hit;
use super::options::Options;
use super::report::Limit;
use super::request::{BodyLength, Request, Response, basename, decoded, parts};
use super::text::Text;
use super::texts::{TextId, Texts};
use super::values::{Values, sources};
use crate::body::{self, Body, Characters, Failure, Problem, Processor, Sink};
use crate::seclang::{Selector, Target, TargetKind, Variable};

/// The converter and the parser of a body.
#[derive(Debug, Default)]
pub(super) struct BodyReader {
    pub parser: Option<Body>,
    pub characters: Option<Characters>,
}

/// Settings and state of the bodies of a message.
#[derive(Debug, Default)]
pub struct BodySettings {
    pub limits: body::Limits,
    /// Whether the request body is inspected.
    pub is_read: bool,
    /// Whether the response body is inspected.
    pub is_response_read: bool,
    /// Whether `REQUEST_BODY` contains the body, whatever the body processor is.
    pub is_kept: bool,
    /// Maximum number of inspected bytes, if a rule sets it.
    pub bytes_max: Option<u64>,
    pub(super) processor: Processor,
    /// The fields of the head that describe the body.
    pub(super) head: BodyHead,
    pub(super) inflated_bytes_max: u64,
    pub(super) encoded: Option<Box<EncodedBody>>,
    /// The arguments found in the encoded bytes of an encoded body.
    pub(super) found_as_sent: NamedValues,
    pub(super) reading: BodyReader,
    /// The recording of the received bytes, if they are recorded.
    pub recording: Option<BodyRecording>,
    /// What the bytes say.
    pub(super) content: Content,
    /// Text that is not inspected yet.
    pub(super) text: Text,
    /// The text of a whole XML document, including blanks.
    pub(super) joined: Vec<u8>,
    /// The files of a multipart body.
    pub(super) files: FileScan,
    /// The reason why the body was not parsed to its end; `None`: there is none so far.
    pub failure: Option<&'static str>,
    /// The limit that ended the inspection of the body. Later bytes are ignored.
    pub limit: Option<Limit>,
    /// The number of received bytes.
    pub received_bytes: u64,
    /// The length of the body in the form that rules inspect.
    pub(super) length: u64,
}

impl BodySettings {
    /// Ends the inspection of the body.
    pub fn cut(&mut self, limit: Limit) {
        self.limit.get_or_insert(limit);
    }

    /// The settings of parsers.
    pub(super) fn parser_settings(&self, separator: u8) -> body::Settings {
        body::Settings { separator, limits: self.limits, ..body::Settings::DEFAULT }
    }

    /// The upper bound of the memory for decoding the body.
    pub fn decoding_bytes(&self) -> u64 {
        let encoded = self.encoded.as_ref();
        encoded.map_or(0, |it| it.memory_bytes().saturating_add(self.length))
    }
}

/// The parts of a message.
#[derive(Debug)]
pub struct Message {
    pub texts: Texts,
    pub values: Values,
    pub body: BodySettings,
    /// The decoder of nested values; `None`: none was needed so far.
    pub(super) nested: Option<body::NestedValues>,
    /// The separator of arguments.
    pub(super) separator: u8,
    /// Whether the number of arguments exceeds the limit.
    pub has_too_many: bool,
    /// The number of bytes of the texts before the response.
    pub(super) request_bytes: usize,
}

impl Message {
    /// An empty message.
    pub fn new(texts: Texts, options: &Options, separator: u8) -> Self {
        let body = BodySettings {
            limits: options.limits,
            inflated_bytes_max: options.inflated_bytes_max,
            is_read: true,
            is_response_read: true,
            recording: options.keeps_body.then(BodyRecording::default),
            ..Default::default()
        };
        Self {
            texts,
            values: Values::new(),
            body,
            nested: None,
            separator,
            has_too_many: false,
            request_bytes: 0,
        }
    }

    pub(super) fn set(&mut self, variable: Variable, bytes: &[u8]) {
        let text = self.texts.add(bytes);
        self.values.set(variable, text);
    }

    fn set_number(&mut self, variable: Variable, number: u64) {
        self.set(variable, number.to_string().as_bytes());
    }

    pub(super) fn add(&mut self, variable: Variable, name: &[u8], value: &[u8]) {
        let (name, text) = (self.texts.add(name), self.texts.add(value));
        self.values.add(variable, name, text);
    }

    /// Adds a request head.
    pub fn head(&mut self, request: &Request<'_>) {
        use Variable as V;
        let Request { client, server, method, received_target, target, .. } = *request;
        let Request { protocol, headers, unique_id, .. } = *request;
        let parts = parts(target);
        self.set(V::RemoteAddr, client.0.to_string().as_bytes());
        self.set_number(V::RemotePort, client.1.into());
        self.set(V::ServerAddr, server.0.to_string().as_bytes());
        self.set_number(V::ServerPort, server.1.into());
        self.set(V::RequestMethod, method);
        self.set(V::RequestProtocol, protocol);
        self.set(V::RequestLine, &[method, b" ", received_target, b" ", protocol].concat());
        self.set(V::RequestUriRaw, received_target);
        self.set(V::RequestUri, parts.uri);
        let path = decoded(parts.path);
        self.set(V::RequestFilename, &path);
        self.set(V::RequestBasename, basename(&path));
        self.set(V::QueryString, parts.query);
        self.set(V::UniqueId, unique_id);
        for (name, value) in headers {
            self.add(V::RequestHeaders, name, value);
            if name.eq_ignore_ascii_case(b"cookie") {
                for (name, value) in body::cookies(value) {
                    self.add(V::RequestCookies, name, value);
                }
            } else if name.eq_ignore_ascii_case(b"host") {
                self.set(V::ServerName, host_without_port(value));
            } else if name.eq_ignore_ascii_case(b"content-type") {
                self.body.head.content_type_is(value);
            } else if name.eq_ignore_ascii_case(b"content-encoding") {
                self.body.head.encoding_is(value);
            }
        }
        if let BodyLength::Known(bytes) = request.body {
            self.body.head.bytes = Some(bytes);
        }
        self.query(parts.query);
        self.body.processor = Processor::of(&self.body.head.content_type);
        self.set(V::ReqbodyProcessor, self.body.processor.name().as_bytes());
        let zero = self.texts.add(b"0");
        NUMBERS_OF_BODIES.iter().for_each(|variable| self.values.set(*variable, zero));
        self.set_sizes();
    }

    fn query(&mut self, query: &[u8]) {
        let separator = self.separator;
        let mut read = body::Query::new();
        read.read(query, separator, &self.body.limits);
        for (name, value) in read.arguments() {
            self.add(Variable::ArgsGet, name, value);
        }
        self.has_too_many = read.problem().is_some();
    }

    /// Updates the variables of sizes that depend on the body.
    pub(super) fn set_sizes(&mut self) {
        let sum = |values: &Values, texts: &Texts, variable| -> u64 {
            let all = values.of(variable).iter().filter(|entry| !entry.is_nested);
            all.map(|entry| (texts.get(entry.name).len() + texts.get(entry.text).len()) as u64)
                .sum()
        };
        let arguments = sum(&self.values, &self.texts, Variable::ArgsGet)
            + sum(&self.values, &self.texts, Variable::ArgsPost);
        self.set_number(Variable::ArgsCombinedSize, arguments);
        let sizes = self.values.of(Variable::FilesSizes).iter();
        let files: i64 = sizes.map(|it| crate::value::number_of(self.texts.get(it.text))).sum();
        self.set_number(Variable::FilesCombinedSize, files.unsigned_abs());
        self.set_number(Variable::RequestBodyLength, self.body.length);
    }

    /// Sets the body processor that a rule selects.
    pub fn choose_processor(&mut self, name: &str) {
        if let Some(processor) = Processor::named(name.as_bytes()) {
            self.body.content.is_judged |= processor == Processor::Content;
            if processor == Processor::Content && self.body.processor != Processor::None {
                return;
            }
            self.body.processor = processor;
            self.set(Variable::ReqbodyProcessor, processor.name().as_bytes());
        }
    }

    /// A parser for this processor.
    pub(super) fn reader(&self, processor: Processor) -> Body {
        let settings = self.body.parser_settings(self.separator);
        Body::new(processor, &self.body.head.content_type, &settings)
    }

    /// The sink for the body's arguments.
    pub(super) fn arguments(&mut self) -> Arguments<'_> {
        Arguments {
            texts: &mut self.texts,
            values: &mut self.values,
            joined: &mut self.body.joined,
            files: &mut self.body.files,
        }
    }

    /// Whether a body processor or a rule needs the request body.
    pub fn needs_body(&self) -> bool {
        match self.body.processor {
            Processor::Content => self.body.content.kind != Kind::Binary,
            processor => {
                self.body.is_kept || self.body.head.has_types || processor != Processor::None
            }
        }
    }

    /// Whether the body is also inspected as a whole: forms, JSON and text always, other bodies if a rule requests it.
    pub(super) fn keeps_body(&self) -> bool {
        let processor = self.body.processor;
        self.body.is_kept
            || matches!(
                processor,
                Processor::UrlEncoded | Processor::Json | Processor::Text | Processor::Content
            )
    }

    /// Adds the text of a whole XML document as one value: in XPath, the text of an element includes the text of all its
    /// descendants.
    pub(super) fn add_joined(&mut self) {
        let joined = std::mem::take(&mut self.body.joined);
        let text = joined.trim_ascii();
        if self.values.of(Variable::Xml).len() > 1 && !text.is_empty() {
            self.add(Variable::Xml, b"/*", text);
        }
    }

    pub(super) fn tell_problems(&mut self, reading: &Body) {
        use Variable as V;
        match reading.failure() {
            Some(Failure { problem: Problem::NamesLimit, .. }) => self.has_too_many = true,
            Some(failure) => self.tell_error(failure.problem.sentence()),
            None => {}
        }
        match reading {
            Body::UrlEncoded(form) if form.bad_escapes() > 0 => self.set(V::UrlencodedError, b"1"),
            Body::Multipart(multipart) => self.tell_flags(multipart),
            _ => {}
        }
    }

    /// Records that the body cannot be inspected to its end.
    pub(super) fn tell_error(&mut self, reason: &'static str) {
        use Variable as V;
        self.body.failure = Some(reason);
        for variable in [V::ReqbodyError, V::ReqbodyProcessorError] {
            self.set(variable, b"1");
        }
        for variable in [V::ReqbodyErrorMsg, V::ReqbodyProcessorErrorMsg] {
            self.set(variable, reason.as_bytes());
        }
    }

    fn tell_flags(&mut self, multipart: &body::Multipart) {
        for flag in multipart.flags().iter() {
            if let Some(variable) = Variable::from_name(flag.variable()) {
                self.set(variable, b"1");
            }
        }
        if multipart.strict_error() {
            self.set(Variable::MultipartStrictError, b"1");
        }
        self.set_number(
            Variable::MultipartUnmatchedBoundary,
            multipart.unmatched_boundary().into(),
        );
    }

    /// Adds a response head.
    pub fn response(&mut self, response: &Response<'_>) {
        use Variable as V;
        self.request_bytes = self.texts.own_bytes();
        self.set_number(V::ResponseStatus, response.status.into());
        self.set(V::ResponseProtocol, response.protocol);
        let line = [response.protocol, b" ", response.status.to_string().as_bytes()].concat();
        self.set(V::StatusLine, &line);
        for (name, value) in response.headers {
            self.add(V::ResponseHeaders, name, value);
            if name.eq_ignore_ascii_case(b"content-type") {
                self.set(V::ResponseContentType, value);
            } else if name.eq_ignore_ascii_case(b"content-length") {
                self.set(V::ResponseContentLength, value);
            }
        }
    }

    /// Adds the response body, or the inspected part of it.
    pub fn response_content(&mut self, bytes: &[u8]) {
        if self.body.is_response_read {
            self.texts.count_work(bytes.len());
            self.set(Variable::ResponseBody, bytes);
        }
    }
}

impl Message {
    /// Adds the arguments found in the encoded bytes to the arguments that rules inspect.
    pub(super) fn add_found_as_sent(&mut self) {
        for (name, value) in std::mem::take(&mut self.body.found_as_sent) {
            self.add(Variable::ArgsPost, &name, &value);
        }
    }
}

impl Message {
    /// Appends the values of a target.
    pub fn collect(&self, target: &Target, found: &mut Vec<Hit>) {
        let variable = target.variable;
        let (kept_under, names_are_values) = sources(variable);
        if kept_under.is_empty() {
            let all = self.values.of(variable).iter();
            return found.extend(all.map(|entry| Hit::alone(variable, entry.text)));
        }
        let is_counted = target.kind == TargetKind::Count;
        for source in kept_under {
            for entry in self.values.of(*source) {
                if is_counted && entry.is_nested {
                    continue;
                }
                let text = if names_are_values { entry.judged_name } else { Some(entry.text) };
                if let Some(text) = text
                    && self.takes(&target.selector, entry.name)
                {
                    found.push(Hit { variable, name: entry.name, text, is_count: false });
                }
            }
        }
    }

    /// Whether a selector selects a member with this name.
    pub fn takes(&self, selector: &Selector, name: TextId) -> bool {
        matches!(selector, Selector::All) || selector.takes(self.texts.get(name))
    }

    /// The name of a value in reports: `ARGS:id`.
    pub fn full_name(&self, hit: &Hit) -> Vec<u8> {
        let mut name = Vec::new();
        if hit.is_count {
            name.push(b'&');
        }
        name.extend_from_slice(hit.variable.name().as_bytes());
        // The name of a member may be empty.
        if hit.name != Texts::EMPTY || (hit.variable.is_collection() && !hit.is_count) {
            name.push(b':');
            name.extend_from_slice(self.texts.get(hit.name));
        }
        name
    }

    /// Whether one of these targets excludes a value.
    pub fn is_excluded(&self, targets: &[Target], hit: &Hit) -> bool {
        let mut excluded = targets.iter().filter(|target| target.kind == TargetKind::Excluded);
        excluded.any(|target| self.is_of(target, hit))
    }

    /// Whether a target selects a value.
    pub fn is_of(&self, target: &Target, hit: &Hit) -> bool {
        target.variable == hit.variable && target.selector.takes(self.texts.get(hit.name))
    }
}

/// The variables that are 0 until a body sets them.
const NUMBERS_OF_BODIES: [Variable; 19] = [
    Variable::InboundDataError,
    Variable::MultipartBoundaryQuoted,
    Variable::MultipartBoundaryWhitespace,
    Variable::MultipartCrlfLfLines,
    Variable::MultipartDataAfter,
    Variable::MultipartDataBefore,
    Variable::MultipartFileLimitExceeded,
    Variable::MultipartHeaderFolding,
    Variable::MultipartInvalidHeaderFolding,
    Variable::MultipartInvalidPart,
    Variable::MultipartInvalidQuoting,
    Variable::MultipartLfLine,
    Variable::MultipartMissingSemicolon,
    Variable::MultipartStrictError,
    Variable::MultipartUnmatchedBoundary,
    Variable::OutboundDataError,
    Variable::ReqbodyError,
    Variable::ReqbodyProcessorError,
    Variable::UrlencodedError,
];

fn host_without_port(host: &[u8]) -> &[u8] {
    let is_port = |port: &[u8]| !port.is_empty() && port.iter().all(u8::is_ascii_digit);
    match host.iter().rposition(|byte| *byte == b':') {
        Some(at) if is_port(&host[at + 1..]) => &host[..at],
        _ => host,
    }
}

/// The sink that adds the arguments of a body to the values.
pub(super) struct Arguments<'a> {
    texts: &'a mut Texts,
    values: &'a mut Values,
    joined: &'a mut Vec<u8>,
    files: &'a mut FileScan,
}

impl Arguments<'_> {
    fn add(&mut self, variable: Variable, name: &[u8], value: &[u8]) {
        let name: TextId = self.texts.add(name);
        let text = self.texts.add(value);
        self.values.add(variable, name, text);
    }
}

impl Sink for Arguments<'_> {
    fn argument(&mut self, name: &[u8], value: &[u8]) {
        self.files.field();
        self.add(Variable::ArgsPost, name, value);
    }

    fn file_start(&mut self, field: &[u8], file_name: &[u8]) {
        self.files.start(field, file_name);
    }

    fn file_content(&mut self, bytes: &[u8]) {
        self.files.content(bytes);
    }

    fn other_file_name(&mut self, field: &[u8], file_name: &[u8]) {
        self.add(Variable::Files, field, file_name);
    }

    fn file(&mut self, field: &[u8], file_name: &[u8], size_bytes: u64) {
        self.files.end();
        self.add(Variable::Files, field, file_name);
        self.add(Variable::FilesSizes, field, size_bytes.to_string().as_bytes());
    }

    fn part_header(&mut self, part: &[u8], line: &[u8]) {
        self.files.header(line);
        self.add(Variable::MultipartPartHeaders, part, line);
    }

    fn xml_text(&mut self, text: &[u8]) {
        self.add(Variable::Xml, b"/*", text);
    }

    fn xml_content(&mut self, content: &[u8]) {
        self.joined.extend_from_slice(content);
    }

    fn xml_instruction(&mut self, text: &[u8]) {
        self.add(Variable::Xml, b"/*", text);
    }

    fn xml_attribute(&mut self, value: &[u8]) {
        self.add(Variable::Xml, b"//@*", value);
    }
}

//! The parts of a message, stored as variables.

use super::body_head::BodyHead;
use super::body_recording::BodyRecording;
use super::content::{Content, Kind};
use super::encoded_body::{EncodedBody, NamedValues};
use super::files::FileScan;
use super::message_variables::MessageVariables;
use super::options::Options;
use super::report::Limit;
use super::request::{BodyLength, Request, Response, basename, decoded, parts};
use super::text::Text;
use super::texts::{TextId, Texts};
use super::values::Values;
use crate::body::{self, Body, Characters, Failure, Problem, Processor, Sink};
use crate::seclang::Variable;

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

    /// Whether a body processor or a rule needs the request body.
    pub fn is_needed(&self) -> bool {
        match self.processor {
            Processor::Content => self.content.kind != Kind::Binary,
            processor => self.is_kept || self.head.has_types || processor != Processor::None,
        }
    }

    /// Whether the body is also inspected as a whole: forms, JSON and text always, other bodies if a rule requests it.
    pub(super) fn is_inspected_whole(&self) -> bool {
        let processor = self.processor;
        self.is_kept
            || matches!(
                processor,
                Processor::UrlEncoded | Processor::Json | Processor::Text | Processor::Content
            )
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
    pub variables: MessageVariables,
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
            variables: MessageVariables::new(texts),
            body,
            nested: None,
            separator,
            has_too_many: false,
            request_bytes: 0,
        }
    }

    /// Adds a request head.
    pub fn head(&mut self, request: &Request<'_>) {
        use Variable as V;
        let Request { client, server, method, received_target, target, .. } = *request;
        let Request { protocol, headers, unique_id, .. } = *request;
        let parts = parts(target);
        self.variables.set(V::RemoteAddr, client.0.to_string().as_bytes());
        self.variables.set_number(V::RemotePort, client.1.into());
        self.variables.set(V::ServerAddr, server.0.to_string().as_bytes());
        self.variables.set_number(V::ServerPort, server.1.into());
        self.variables.set(V::RequestMethod, method);
        self.variables.set(V::RequestProtocol, protocol);
        self.variables
            .set(V::RequestLine, &[method, b" ", received_target, b" ", protocol].concat());
        self.variables.set(V::RequestUriRaw, received_target);
        self.variables.set(V::RequestUri, parts.uri);
        let path = decoded(parts.path);
        self.variables.set(V::RequestFilename, &path);
        self.variables.set(V::RequestBasename, basename(&path));
        self.variables.set(V::QueryString, parts.query);
        self.variables.set(V::UniqueId, unique_id);
        for (name, value) in headers {
            self.variables.add(V::RequestHeaders, name, value);
            if name.eq_ignore_ascii_case(b"cookie") {
                for (name, value) in body::cookies(value) {
                    self.variables.add(V::RequestCookies, name, value);
                }
            } else if name.eq_ignore_ascii_case(b"host") {
                self.variables.set(V::ServerName, host_without_port(value));
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
        self.variables.set(V::ReqbodyProcessor, self.body.processor.name().as_bytes());
        let zero = self.variables.texts.add(b"0");
        NUMBERS_OF_BODIES.iter().for_each(|variable| self.variables.values.set(*variable, zero));
        self.set_sizes();
    }

    fn query(&mut self, query: &[u8]) {
        let separator = self.separator;
        let mut read = body::Query::new();
        read.read(query, separator, &self.body.limits);
        for (name, value) in read.arguments() {
            self.variables.add(Variable::ArgsGet, name, value);
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
        let arguments = sum(&self.variables.values, &self.variables.texts, Variable::ArgsGet)
            + sum(&self.variables.values, &self.variables.texts, Variable::ArgsPost);
        self.variables.set_number(Variable::ArgsCombinedSize, arguments);
        let sizes = self.variables.values.of(Variable::FilesSizes).iter();
        let files: i64 =
            sizes.map(|it| crate::value::number_of(self.variables.texts.get(it.text))).sum();
        self.variables.set_number(Variable::FilesCombinedSize, files.unsigned_abs());
        self.variables.set_number(Variable::RequestBodyLength, self.body.length);
    }

    /// Sets the body processor that a rule selects.
    pub fn choose_processor(&mut self, name: &str) {
        if let Some(processor) = Processor::named(name.as_bytes()) {
            self.body.content.is_judged |= processor == Processor::Content;
            if processor == Processor::Content && self.body.processor != Processor::None {
                return;
            }
            self.body.processor = processor;
            self.variables.set(Variable::ReqbodyProcessor, processor.name().as_bytes());
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
            texts: &mut self.variables.texts,
            values: &mut self.variables.values,
            joined: &mut self.body.joined,
            files: &mut self.body.files,
        }
    }

    /// Adds the text of a whole XML document as one value: in XPath, the text of an element includes the text of all its
    /// descendants.
    pub(super) fn add_joined(&mut self) {
        let joined = std::mem::take(&mut self.body.joined);
        let text = joined.trim_ascii();
        if self.variables.values.of(Variable::Xml).len() > 1 && !text.is_empty() {
            self.variables.add(Variable::Xml, b"/*", text);
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
            Body::UrlEncoded(form) if form.bad_escapes() > 0 => {
                self.variables.set(V::UrlencodedError, b"1")
            }
            Body::Multipart(multipart) => self.variables.tell_flags(multipart),
            _ => {}
        }
    }

    /// Records that the body cannot be inspected to its end.
    pub(super) fn tell_error(&mut self, reason: &'static str) {
        use Variable as V;
        self.body.failure = Some(reason);
        for variable in [V::ReqbodyError, V::ReqbodyProcessorError] {
            self.variables.set(variable, b"1");
        }
        for variable in [V::ReqbodyErrorMsg, V::ReqbodyProcessorErrorMsg] {
            self.variables.set(variable, reason.as_bytes());
        }
    }

    /// Adds a response head.
    pub fn response(&mut self, response: &Response<'_>) {
        use Variable as V;
        self.request_bytes = self.variables.texts.own_bytes();
        self.variables.set_number(V::ResponseStatus, response.status.into());
        self.variables.set(V::ResponseProtocol, response.protocol);
        let line = [response.protocol, b" ", response.status.to_string().as_bytes()].concat();
        self.variables.set(V::StatusLine, &line);
        for (name, value) in response.headers {
            self.variables.add(V::ResponseHeaders, name, value);
            if name.eq_ignore_ascii_case(b"content-type") {
                self.variables.set(V::ResponseContentType, value);
            } else if name.eq_ignore_ascii_case(b"content-length") {
                self.variables.set(V::ResponseContentLength, value);
            }
        }
    }

    /// Adds the response body, or the inspected part of it.
    pub fn response_content(&mut self, bytes: &[u8]) {
        if self.body.is_response_read {
            self.variables.texts.count_work(bytes.len());
            self.variables.set(Variable::ResponseBody, bytes);
        }
    }
}

impl Message {
    /// Adds the arguments found in the encoded bytes to the arguments that rules inspect.
    pub(super) fn add_found_as_sent(&mut self) {
        for (name, value) in std::mem::take(&mut self.body.found_as_sent) {
            self.variables.add(Variable::ArgsPost, &name, &value);
        }
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

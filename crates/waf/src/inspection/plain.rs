//! Bodies that are judged by what their bytes are, because their media type does not determine the parser.
//!
//! Applications parse these bodies as JSON, forms or XML, or use them as plain text. A body that is completely valid JSON or
//! a form is inspected only as such. Any other body is inspected as plain text, and also the parts that other parsers can
//! parse. A form that begins as JSON or XML is inspected as both.

use super::message::Message;
use super::text::{Text, TextReading, declaration_bytes, document_in, is_document, look_of};
use crate::body::{self, Body, Difference, Problem, Processor, significant};
use crate::seclang::Variable;
use crate::transformation::Transformation;

/// The name of the argument that contains the plain text.
const NAME: &[u8] = b"text";
/// The overlap of consecutive pieces of a long text, in bytes.
const OVERLAP_BYTES: usize = 1024;

/// Adds the contents of a text body to the arguments. Returns the documents in it that could be read to their end.
pub(super) fn judge(message: &mut Message) -> Vec<Body> {
    let Text { bytes, way } = std::mem::take(&mut message.body.text);
    let mut documents = Vec::new();
    if bytes.is_empty() {
        return documents;
    }
    match body::encoding_of(look_of(&bytes)) {
        Some(encoding) => {
            add_arguments_between(message, look_of(&bytes));
            for reading in body::readings(encoding, &bytes) {
                message.variables.texts.count_work(reading.len());
                let of_it =
                    PlainText { text: &reading, way: TextReading::Content, is_converted: true };
                of_it.judge(message, &mut documents);
            }
            // Behind the beginning, the bytes may be others.
            let is_read = PlainText { text: &bytes, way: TextReading::Content, is_converted: true };
            add_pieces(message, &is_read.plain());
        }
        None => PlainText { text: &bytes, way, is_converted: false }.judge(message, &mut documents),
    }
    message.set_sizes();
    documents
}

/// Adds the arguments that a reader of forms finds among bytes that are no form.
pub(super) fn add_arguments_between(message: &mut Message, bytes: &[u8]) {
    let settings = message.body.parser_settings(message.separator);
    for (name, value) in body::arguments_in(bytes, &settings) {
        message.variables.add(Variable::ArgsPost, &name, &value);
    }
}

/// A text in an encoding that rules can read.
struct PlainText<'a> {
    text: &'a [u8],
    way: TextReading,
    /// Whether it was converted, so that the encoding in an XML declaration does not matter any more.
    is_converted: bool,
}

impl PlainText<'_> {
    fn judge(&self, message: &mut Message, documents: &mut Vec<Body>) {
        let start = document_in(self.text);
        let is_form = |message: &Message| is_form(self.text, message.separator);
        let is_read = match start.first() {
            Some(b'{' | b'[' | b'"') => read_json(message, start, documents),
            Some(b'<') => {
                self.read_xml(message, start, documents);
                false
            }
            _ if self.way == TextReading::Beside => true,
            _ if self.text.contains(&b'=') => {
                read_as(message, Processor::UrlEncoded, self.text).failure().is_none()
                    && is_form(message)
            }
            _ => false,
        };
        if is_read {
            return;
        }
        if self.way != TextReading::Beside {
            if is_document(start) {
                add_arguments_between(message, self.text);
            }
            add_pieces(message, &self.plain());
        }
        if has_escapes(self.text) {
            let mut decoded = Vec::new();
            if Transformation::JsDecode.apply(&self.plain(), &mut decoded) {
                message.variables.texts.count_work(decoded.len());
                add_pieces(message, &decoded);
            }
        }
    }

    /// The text for rules.
    fn plain(&self) -> Vec<u8> {
        let is_left_out = |byte: &u8| self.way == TextReading::Content && body::is_control(*byte);
        self.text.iter().map(|byte| if is_left_out(byte) { b' ' } else { *byte }).collect()
    }

    fn read_xml(&self, message: &mut Message, start: &[u8], documents: &mut Vec<Body>) {
        let declaration_bytes = declaration_bytes(start);
        let from = if self.is_converted { declaration_bytes } else { 0 };
        let mut reading = read_as(message, Processor::Xml, &start[from..]);
        if let Some(failure) = reading.failure()
            && from < declaration_bytes
            && failure.offset < declaration_bytes as u64
        {
            if failure.problem == Problem::XmlEncoding {
                // A parser may read other characters than these.
                message.tell_error(failure.problem.sentence());
            }
            reading = read_as(message, Processor::Xml, &start[declaration_bytes..]);
        }
        message.add_joined();
        let declares =
            |it: Difference| matches!(it, Difference::EntityInternal | Difference::EntityExternal);
        // A page of HTML may use entities that it does not declare.
        if reading.failure().is_none() && reading.differences().iter().any(declares) {
            documents.push(reading);
        }
    }
}

/// Parses JSON, or lines of JSON. Returns whether the whole text was valid.
fn read_json(message: &mut Message, text: &[u8], documents: &mut Vec<Body>) -> bool {
    let mut lines = lines(text);
    let is_whole = |line: &[u8]| {
        let mut reading = Body::new(Processor::Json, b"", &body::Settings::DEFAULT);
        reading.feed(line, &mut ());
        reading.finish(&mut ());
        reading.failure().is_none()
    };
    let first = lines.next().unwrap_or_default();
    if lines.next().is_some() && is_whole(first) {
        return read_lines(message, text);
    }
    let reading = read_as(message, Processor::Json, text);
    let is_read = reading.failure().is_none();
    if is_read {
        documents.push(reading);
    }
    is_read
}

/// The lines of a text that are not blank.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    const RECORD: u8 = 0x1e;
    let lines = text.split(|byte| matches!(*byte, b'\n' | b'\r' | RECORD));
    lines.map(significant).filter(|line| !line.is_empty())
}

/// Parses lines of JSON. Returns whether all were valid, and not too many.
fn read_lines(message: &mut Message, text: &[u8]) -> bool {
    let arguments_max = message.body.limits.arguments_max as usize;
    let mut are_read = true;
    for (number, line) in lines(text).enumerate() {
        if number >= arguments_max
            || message.variables.values.of(Variable::ArgsPost).len() >= arguments_max
        {
            return false;
        }
        are_read &= read_as(message, Processor::Json, line).failure().is_none();
    }
    are_read
}

/// Parses a text. Returns the parser at its end.
fn read_as(message: &mut Message, processor: Processor, text: &[u8]) -> Body {
    let mut reading: Body = message.reader(processor);
    reading.feed(text, &mut message.arguments());
    reading.finish(&mut message.arguments());
    reading
}

/// Whether escapes of strings may hide something from rules: a program may read a text as JSON or YAML that is neither to a
/// strict parser.
fn has_escapes(text: &[u8]) -> bool {
    memchr::memchr_iter(b'\\', text)
        .any(|at| matches!(text.get(at + 1), Some(b'u' | b'U' | b'x' | b'X' | b'0'..=b'7')))
}

/// Adds the plain text, in pieces with the maximum length of a value.
fn add_pieces(message: &mut Message, text: &[u8]) {
    let piece_bytes = (message.body.limits.value_bytes_max as usize).max(1);
    let step = (piece_bytes - OVERLAP_BYTES.min(piece_bytes / 2)).max(1);
    let mut rest = text;
    loop {
        message.variables.add(Variable::ArgsPost, NAME, rest.get(..piece_bytes).unwrap_or(rest));
        if rest.len() <= piece_bytes {
            return;
        }
        rest = &rest[step..];
    }
}

/// Whether the whole text is a form: plain names, and no blanks.
fn is_form(text: &[u8], separator: u8) -> bool {
    let is_of_names = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-~:[]%".contains(byte);
    let is_whole = text.iter().all(u8::is_ascii_graphic);
    is_whole
        && text.split(|byte| *byte == separator).all(|piece| {
            let name = piece.split(|byte| *byte == b'=').next().unwrap_or_default();
            name.iter().all(is_of_names)
        })
}

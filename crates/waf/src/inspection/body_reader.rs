//! The bytes of a request body on their way to its parser: decoded, and converted to the characters that rules read.

use super::content::Kind;
use super::encoded_body::EncodedBody;
use super::message::Message;
use super::report::Limit;
use super::text::Text;
use super::undecided_body;
use crate::body::{Body, Characters, Charset, Processor};
use crate::coding::{InflateProblem, Inflater};
use crate::seclang::Variable;

impl Message {
    /// Adds received bytes of the request body.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.body.received_bytes += bytes.len() as u64;
        if self.body.limit.is_some() || self.body.content.kind == Kind::Binary {
            return;
        }
        if self.body.head.codings.is_empty() || self.body.head.unreadable.is_some() {
            self.read(bytes);
        } else {
            self.read_encoded(bytes);
        }
    }

    /// Adds decoded bytes of the body.
    fn read(&mut self, bytes: &[u8]) {
        self.body.length += bytes.len() as u64;
        if self.body.bytes_max.is_some_and(|max| self.body.length > max) {
            self.body.failure = Some("The body is longer than `ctl:requestBodyLimit` allows.");
            return;
        }
        take(self, bytes);
    }

    /// Ends the request body. Returns its parser if the body was parsed to its end.
    pub fn end_body(&mut self) -> Option<Body> {
        self.end_encoded();
        end(self);
        let is_whole = self.body.limit.is_none();
        let mut read = self.body.reading.parser.take();
        if let Some(reading) = &mut read {
            reading.finish(&mut self.arguments());
            // A body that was cut would always be reported as incomplete.
            if is_whole {
                self.tell_problems(reading);
            }
        }
        self.add_joined();
        undecided_body::end(self);
        if self.body.is_inspected_whole() && !self.body.content.kept.is_empty() {
            let kept = std::mem::take(&mut self.body.content.kept);
            self.variables.set(Variable::RequestBody, &kept);
            self.body.text = Text::of(self.body.processor, self.body.content.is_judged, kept);
        }
        self.set_sizes();
        read.filter(|_| is_whole)
    }

    /// Adds bytes of an encoded body.
    fn read_encoded(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let mut encoded = self.body.encoded.take().unwrap_or_else(|| {
            let inflater = Inflater::new(&self.body.head.codings, self.body.inflated_bytes_max);
            // A text may be a form to a server.
            let is_text = matches!(self.body.processor, Processor::Text | Processor::Content);
            let as_sent = if is_text { Processor::UrlEncoded } else { self.body.processor };
            Box::new(EncodedBody::new(inflater, self.reader(as_sent), is_text))
        });
        encoded.look(bytes, &mut self.body.found_as_sent);
        let (inflated, result) = encoded.decode(bytes, &mut |piece| self.read(piece));
        self.variables.texts.count_work(bytes.len() + inflated as usize);
        match result {
            _ if self.body.content.kind == Kind::Binary => {}
            Ok(()) => self.body.encoded = Some(encoded),
            Err(problem) => {
                encoded.look_no_more(&mut self.body.found_as_sent);
                self.end_by(problem);
            }
        }
    }

    /// Ends an encoded body.
    fn end_encoded(&mut self) {
        let Some(mut encoded) = self.body.encoded.take() else { return };
        encoded.look_no_more(&mut self.body.found_as_sent);
        if self.body.limit.is_some() {
            return;
        }
        if let Err(problem) = encoded.finish(&mut |piece| self.read(piece)) {
            self.end_by(problem);
        }
    }

    fn end_by(&mut self, problem: InflateProblem) {
        if problem.is_length() {
            self.body.failure = Some(problem.sentence());
            self.body.cut(Limit::BodyLength);
        } else {
            self.tell_error(problem.sentence());
            self.body.cut(Limit::Body);
        }
    }
}

/// Adds bytes of a body as they were sent.
fn take(message: &mut Message, bytes: &[u8]) {
    let (charset, processor) = (message.body.head.charset, message.body.processor);
    let characters = &mut message.body.reading.characters;
    match characters.get_or_insert_with(|| Characters::new(charset, processor)).take(bytes) {
        Ok(bytes) => parse(message, &bytes),
        Err(reason) => {
            // Rules read it all the same.
            message.body.failure.get_or_insert(reason);
            parse(message, bytes);
        }
    }
}

/// Adds the last characters.
fn end(message: &mut Message) {
    match message.body.reading.characters.as_mut().map(Characters::finish) {
        Some(Ok(bytes)) => parse(message, &bytes),
        Some(Err(reason)) if message.body.limit.is_none() => {
            message.body.failure.get_or_insert(reason);
        }
        _ => {}
    }
}

/// Adds bytes in the encoding that rules read.
fn parse(message: &mut Message, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let is_kept = undecided_body::is_open(message);
    if undecided_body::needs_no_inspection(message, bytes) {
        return;
    }
    if let Some(reason) = message.body.head.unreadable {
        message.body.failure.get_or_insert(reason);
        return;
    }
    message.variables.texts.count_work(bytes.len());
    if message.body.is_inspected_whole() && !is_kept {
        message.body.content.kept.extend_from_slice(bytes);
    }
    let mut parser = message.body.reading.parser.take().unwrap_or_else(|| {
        let characters = message.body.reading.characters.as_ref();
        let is_converted = characters.is_some_and(Characters::is_converted);
        let charset = if is_converted { Charset::Utf16 } else { message.body.head.charset };
        message.reader(message.body.processor).with_charset(charset)
    });
    parser.feed(bytes, &mut message.arguments());
    message.body.reading.parser = Some(parser);
}

//! Encoded bodies. They are inspected in decoded form, and also in encoded form.
//!
//! Many servers ignore Content-Encoding in requests and interpret the encoded bytes. These bytes may contain an attack: in
//! the file name of a gzip header, or in codes chosen to look like other content. So arguments in the encoded bytes of forms
//! are inspected, too. Other bodies are rejected if both forms can be parsed.

use crate::body::{Body, Processor, Sink};
use crate::coding::{InflateProblem, Inflater};

/// Minimum length of a text in encoded bytes that is unlikely to be random, if nothing else marks it as a value.
const LEGIBLE_BYTES_MIN: usize = 6;

/// The state of an encoded body.
#[derive(Debug)]
pub(super) struct EncodedBody {
    inflater: Inflater,
    /// The parser of the encoded bytes.
    as_sent: Body,
    /// Whether the body is a text, which may be a form to a server.
    is_text: bool,
    /// Whether the encoded bytes contain a part of a form.
    has_part: bool,
}

/// Names and values.
pub(super) type NamedValues = Vec<(Vec<u8>, Vec<u8>)>;

impl EncodedBody {
    /// An empty body. `as_sent`: the parser of the encoded bytes.
    pub fn new(inflater: Inflater, as_sent: Body, is_text: bool) -> Self {
        Self { inflater, as_sent, is_text, has_part: false }
    }

    /// Decodes bytes and delivers the result to `to`. Returns the work in bytes, and the result of the decoder.
    pub fn decode(
        &mut self,
        bytes: &[u8],
        to: &mut dyn FnMut(&[u8]),
    ) -> (u64, Result<(), InflateProblem>) {
        let before = self.inflater.work_bytes();
        let result = self.inflater.feed(bytes, to);
        (self.inflater.work_bytes() - before, result)
    }

    /// Ends the body. If the encoded bytes can also be parsed, this is a problem.
    pub fn finish(&mut self, to: &mut dyn FnMut(&[u8])) -> Result<(), InflateProblem> {
        self.inflater.finish(to)?;
        if self.is_readable_as_sent() { Err(InflateProblem::Ambiguous) } else { Ok(()) }
    }

    /// The upper bound of the decoders' memory.
    pub fn memory_bytes(&self) -> u64 {
        self.inflater.memory_bytes()
    }

    /// Inspects encoded bytes.
    pub fn look(&mut self, bytes: &[u8], found: &mut NamedValues) {
        let Self { as_sent, is_text, has_part, .. } = self;
        as_sent.feed(bytes, &mut Legible { found, has_part, are_named: *is_text });
    }

    /// Ends the inspection of encoded bytes.
    pub fn look_no_more(&mut self, found: &mut NamedValues) {
        let Self { as_sent, is_text, has_part, .. } = self;
        as_sent.finish(&mut Legible { found, has_part, are_named: *is_text });
    }

    /// Whether a server may find an uninspected body in the encoded bytes. The arguments of a URL-encoded form were
    /// inspected, unless its parsing failed.
    fn is_readable_as_sent(&self) -> bool {
        match self.as_sent.processor() {
            Processor::UrlEncoded => !self.is_text && self.as_sent.failure().is_some(),
            Processor::Multipart => self.has_part,
            Processor::Json | Processor::Xml => self.as_sent.failure().is_none(),
            Processor::Text | Processor::Content | Processor::None => false,
        }
    }
}

/// A sink that only delivers texts between other bytes.
struct Legible<'a> {
    found: &'a mut NamedValues,
    has_part: &'a mut bool,
    /// Whether only arguments with a name of text are delivered.
    are_named: bool,
}

impl Sink for Legible<'_> {
    fn argument(&mut self, name: &[u8], value: &[u8]) {
        *self.has_part = true;
        // A name between two separators is unlikely to be random. Its value, of any length, ends at a separator.
        let is_named = !name.is_empty() && name.iter().all(|byte| is_text(*byte));
        let end = value.iter().position(|byte| !is_text(*byte)).unwrap_or(value.len());
        let (text, behind) = value.split_at(if is_named { end } else { 0 });
        if is_named {
            self.found.push((name.to_vec(), text.to_vec()));
        }
        if self.are_named {
            return;
        }
        // Bytes before the name belong to the surrounding data.
        let known = name.rsplit(|byte| !is_text(*byte)).next().unwrap_or_default();
        self.found.extend(legible(behind).map(|text| (known.to_vec(), text.to_vec())));
        if !is_named {
            self.found.extend(legible(name).map(|text| (text.to_vec(), Vec::new())));
        }
    }

    fn file(&mut self, _: &[u8], _: &[u8], _: u64) {
        *self.has_part = true;
    }

    fn part_header(&mut self, _: &[u8], _: &[u8]) {
        *self.has_part = true;
    }
}

/// The texts that are long enough not to be random.
fn legible(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| !is_text(*byte)).filter(|piece| piece.len() >= LEGIBLE_BYTES_MIN)
}

fn is_text(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~')
}

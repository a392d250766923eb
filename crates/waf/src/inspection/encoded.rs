//! Encoded bodies: read in decoded form, and examined in encoded form too.
//!
//! Many servers ignore Content-Encoding in requests and read the encoded bytes instead. An attack may be in these
//! bytes: in the file name of a gzip header, or in codes chosen to look like other content. So for forms, arguments
//! found in the encoded bytes are judged too. Other bodies are not judged if they can be read both ways.

use crate::body::{Body, Processor, Sink};
use crate::coding::{InflateProblem, Inflater};

/// Minimum length of a run of text in encoded bytes that is unlikely to be random, without a sign that it is a value.
const LEGIBLE_BYTES_MIN: usize = 6;

/// An encoded body that is being read.
#[derive(Debug)]
pub(super) struct Encoded {
    inflater: Inflater,
    /// Parser of the encoded bytes.
    as_sent: Body,
    /// Whether the encoded bytes contain a part of a form.
    has_part: bool,
}

/// Names and values.
pub(super) type Named = Vec<(Vec<u8>, Vec<u8>)>;

impl Encoded {
    /// An empty body, with a parser for the encoded bytes.
    pub fn new(inflater: Inflater, as_sent: Body) -> Self {
        Self { inflater, as_sent, has_part: false }
    }

    /// Decodes bytes and passes the result on. Returns the bytes added to the work, and the decoder's result.
    pub fn decode(
        &mut self,
        bytes: &[u8],
        to: &mut dyn FnMut(&[u8]),
    ) -> (u64, Result<(), InflateProblem>) {
        let before = self.inflater.work_bytes();
        let result = self.inflater.feed(bytes, to);
        (self.inflater.work_bytes() - before, result)
    }

    /// Ends the body. A body that is also readable in encoded form is a problem.
    pub fn finish(&mut self, to: &mut dyn FnMut(&[u8])) -> Result<(), InflateProblem> {
        self.inflater.finish(to)?;
        if self.is_readable_as_sent() { Err(InflateProblem::Ambiguous) } else { Ok(()) }
    }

    /// Upper bound of the decoders' memory.
    pub fn memory_bytes(&self) -> u64 {
        self.inflater.memory_bytes()
    }

    /// Examines encoded bytes.
    pub fn look(&mut self, bytes: &[u8], found: &mut Named) {
        self.as_sent.feed(bytes, &mut Legible { found, has_part: &mut self.has_part });
    }

    /// Ends the examination of encoded bytes.
    pub fn look_no_more(&mut self, found: &mut Named) {
        self.as_sent.finish(&mut Legible { found, has_part: &mut self.has_part });
    }

    /// Whether the encoded bytes are a body by themselves. Forms always are: their arguments were collected.
    fn is_readable_as_sent(&self) -> bool {
        match self.as_sent.processor() {
            Processor::UrlEncoded => self.as_sent.failure().is_some(),
            Processor::Multipart => self.has_part,
            Processor::Json | Processor::Xml => self.as_sent.failure().is_none(),
            Processor::Text | Processor::None => false,
        }
    }
}

/// A sink that passes on only text found among other bytes.
struct Legible<'a> {
    found: &'a mut Named,
    has_part: &'a mut bool,
}

impl Sink for Legible<'_> {
    fn argument(&mut self, name: &[u8], value: &[u8]) {
        *self.has_part = true;
        // A name between two separators is hardly random: its value ends at a separator, however short it is.
        let is_named = !name.is_empty() && name.iter().all(|byte| is_text(*byte));
        let end = value.iter().position(|byte| !is_text(*byte)).unwrap_or(value.len());
        let (text, behind) = value.split_at(if is_named { end } else { 0 });
        if is_named {
            self.found.push((name.to_vec(), text.to_vec()));
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

/// Pieces of text that are long enough not to be random.
fn legible(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| !is_text(*byte)).filter(|piece| piece.len() >= LEGIBLE_BYTES_MIN)
}

fn is_text(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~')
}

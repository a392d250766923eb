//! An encoded body: read as it is when it is decoded, and looked at as it came.
//!
//! Many servers pay no regard to Content-Encoding in requests, and what they read is in the encoded bytes: in the name of a file in gzip's
//! header, or in codes that were chosen so that they look like something else. So of a form the arguments are judged that these bytes
//! have, and other bodies are not judged if they can be read in both ways.

use crate::body::{Body, Processor, Sink};
use crate::coding::{InflateProblem, Inflater};

/// Bytes of text in a row that hardly stand in encoded bytes by chance, where nothing says that they are a value.
const LEGIBLE_BYTES_MIN: usize = 6;

/// An encoded body that is being read.
#[derive(Debug)]
pub(super) struct Encoded {
    inflater: Inflater,
    /// What takes the bytes apart that came.
    as_sent: Body,
    /// Whether these have a part of a form.
    has_part: bool,
}

/// Names and values.
pub(super) type Named = Vec<(Vec<u8>, Vec<u8>)>;

impl Encoded {
    /// One of which nothing has come, with what takes its bytes apart as they come.
    pub fn new(inflater: Inflater, as_sent: Body) -> Self {
        Self { inflater, as_sent, has_part: false }
    }

    /// Hands on what bytes are decoded to. Beside what came of it stand the bytes that this added to the work.
    pub fn decode(
        &mut self,
        bytes: &[u8],
        to: &mut dyn FnMut(&[u8]),
    ) -> (u64, Result<(), InflateProblem>) {
        let before = self.inflater.work_bytes();
        let result = self.inflater.feed(bytes, to);
        (self.inflater.work_bytes() - before, result)
    }

    /// It is over. A body that can be read as it came too is a problem.
    pub fn finish(&mut self, to: &mut dyn FnMut(&[u8])) -> Result<(), InflateProblem> {
        self.inflater.finish(to)?;
        if self.is_readable_as_sent() { Err(InflateProblem::Ambiguous) } else { Ok(()) }
    }

    /// Memory that decoders take, at most.
    pub fn memory_bytes(&self) -> u64 {
        self.inflater.memory_bytes()
    }

    /// Looks at bytes as they came.
    pub fn look(&mut self, bytes: &[u8], found: &mut Named) {
        self.as_sent.feed(bytes, &mut Legible { found, has_part: &mut self.has_part });
    }

    /// All has been looked at.
    pub fn look_no_more(&mut self, found: &mut Named) {
        self.as_sent.finish(&mut Legible { found, has_part: &mut self.has_part });
    }

    /// Whether they are a body themselves. Those of a form always are: what it has was found.
    fn is_readable_as_sent(&self) -> bool {
        match self.as_sent.processor() {
            Processor::UrlEncoded => self.as_sent.failure().is_some(),
            Processor::Multipart => self.has_part,
            Processor::Json | Processor::Xml => self.as_sent.failure().is_none(),
            Processor::Text | Processor::None => false,
        }
    }
}

/// Lets text through that stands among other bytes.
struct Legible<'a> {
    found: &'a mut Named,
    has_part: &'a mut bool,
}

impl Sink for Legible<'_> {
    fn argument(&mut self, name: &[u8], value: &[u8]) {
        *self.has_part = true;
        // A name between two separators is hardly there by chance: its value ends where a member may end it, however short that is.
        let is_named = !name.is_empty() && name.iter().all(|byte| is_text(*byte));
        let end = value.iter().position(|byte| !is_text(*byte)).unwrap_or(value.len());
        let (text, behind) = value.split_at(if is_named { end } else { 0 });
        if is_named {
            self.found.push((name.to_vec(), text.to_vec()));
        }
        // What stands before the name is of the bytes around it.
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

/// Pieces of text that are long enough to be no chance.
fn legible(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| !is_text(*byte)).filter(|piece| piece.len() >= LEGIBLE_BYTES_MIN)
}

fn is_text(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~')
}

//! Collection and delivery of the current text and attribute value.

use super::super::limits::{self, Limits};
use super::super::problem::Problem;
use super::super::sink::Sink;
use super::declaration::Encoding;

/// The kind of collected bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Attribute,
}

/// The collected text and attribute value.
#[derive(Debug, Clone)]
pub(super) struct CollectedText {
    value_bytes_max: u32,
    arguments_left: u32,
    encoding: Encoding,
    text: Vec<u8>,
    attribute: Vec<u8>,
}

impl CollectedText {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            value_bytes_max: limits.value_bytes_max,
            arguments_left: limits.arguments_max,
            encoding: Encoding::default(),
            text: Vec::new(),
            attribute: Vec::new(),
        }
    }

    pub(super) fn set_encoding(&mut self, encoding: Encoding) {
        self.encoding = encoding;
    }

    /// Appends bytes up to the limit. Returns the number of bytes appended.
    pub(super) fn append(&mut self, kind: Kind, bytes: &[u8]) -> usize {
        let buffer = match kind {
            Kind::Text => &mut self.text,
            Kind::Attribute => &mut self.attribute,
        };
        limits::append(buffer, bytes, self.value_bytes_max)
    }

    /// Appends all bytes. The error: the limit is exceeded.
    pub(super) fn push(&mut self, kind: Kind, bytes: &[u8]) -> Result<(), Problem> {
        if self.append(kind, bytes) < bytes.len() { Err(Problem::ValueLimit) } else { Ok(()) }
    }

    /// Delivers the text before a tag: always as content, and as text if it is not blank.
    pub(super) fn deliver_text(&mut self, to: &mut impl Sink) -> Result<(), Problem> {
        if !self.text.is_empty() {
            to.xml_content(&self.text);
        }
        let text = self.text.trim_ascii();
        if !text.is_empty() {
            self.check(text)?;
            to.xml_text(text);
            self.arguments_left -= 1;
        }
        self.text.clear();
        Ok(())
    }

    pub(super) fn deliver_attribute(&mut self, to: &mut impl Sink) -> Result<(), Problem> {
        self.check(&self.attribute)?;
        to.xml_attribute(&self.attribute);
        self.arguments_left -= 1;
        self.attribute.clear();
        Ok(())
    }

    /// Delivers a processing instruction.
    pub(super) fn deliver_instruction(
        &mut self,
        text: &[u8],
        to: &mut impl Sink,
    ) -> Result<(), Problem> {
        self.check(text)?;
        to.xml_instruction(text);
        self.arguments_left -= 1;
        Ok(())
    }

    fn check(&self, text: &[u8]) -> Result<(), Problem> {
        if self.arguments_left == 0 {
            return Err(Problem::ArgumentsLimit);
        }
        self.check_encoding(text)
    }

    /// Checks that the bytes are valid in the document's encoding.
    pub(super) fn check_encoding(&self, text: &[u8]) -> Result<(), Problem> {
        match self.encoding {
            Encoding::Utf8 if std::str::from_utf8(text).is_err() => Err(Problem::Utf8),
            _ => Ok(()),
        }
    }

    /// Delivers an incomplete text, value or instruction.
    pub(super) fn deliver_rest(&self, instruction: &[u8], to: &mut impl Sink) {
        let text = self.text.trim_ascii();
        if !self.text.is_empty() {
            to.xml_content(&self.text);
        }
        if self.arguments_left > 0 && !text.is_empty() {
            to.xml_text(text);
        }
        if self.arguments_left > 0 && !instruction.is_empty() {
            to.xml_instruction(instruction);
        }
        if self.arguments_left > 0 && !self.attribute.is_empty() {
            to.xml_attribute(&self.attribute);
        }
    }
}

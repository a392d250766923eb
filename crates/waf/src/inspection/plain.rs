//! Text bodies whose media type does not determine the parser.
//!
//! Applications parse these bodies as JSON, forms or XML, or use them as plain text. A body that is completely valid JSON or
//! a form is inspected only as such. Any other body is inspected as plain text, and also the parts that other parsers can
//! parse.

use super::message::Message;
use crate::body::{Body, Processor};
use crate::seclang::Variable;

/// The name of the argument that contains the plain text.
const NAME: &[u8] = b"text";
/// The overlap of consecutive pieces of a long text, in bytes.
const OVERLAP_BYTES: usize = 1024;

/// Adds the contents of a text body to the arguments.
pub(super) fn judge(message: &mut Message) {
    let text = std::mem::take(&mut message.body.text);
    if text.is_empty() {
        return;
    }
    let start = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text).trim_ascii_start().first();
    let is_read = match start {
        Some(b'{' | b'[' | b'"') => read_as(message, Processor::Json, &text),
        Some(b'<') => {
            read_as(message, Processor::Xml, &text);
            message.add_joined();
            false
        }
        _ if text.contains(&b'=') => {
            read_as(message, Processor::UrlEncoded, &text) && is_form(&text, message.separator)
        }
        _ => false,
    };
    if !is_read {
        add_pieces(message, &text);
    }
    message.set_sizes();
}

/// Parses a text. Returns whether the whole text was valid.
fn read_as(message: &mut Message, processor: Processor, text: &[u8]) -> bool {
    let mut reading: Body = message.reader(processor);
    reading.feed(text, &mut message.arguments());
    reading.finish(&mut message.arguments());
    reading.failure().is_none()
}

/// Adds the plain text, in pieces with the maximum length of a value.
fn add_pieces(message: &mut Message, text: &[u8]) {
    let piece_bytes = (message.body.limits.value_bytes_max as usize).max(1);
    let step = (piece_bytes - OVERLAP_BYTES.min(piece_bytes / 2)).max(1);
    let mut rest = text;
    loop {
        message.add(Variable::ArgsPost, NAME, rest.get(..piece_bytes).unwrap_or(rest));
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

//! The format of a body, by its first bytes.
//!
//! The type of a body is a statement of the client. Applications may ignore it, so a body is not skipped because of its
//! type: it is skipped if its bytes are recognisably no text. JSON and XML begin with their first byte, so a body that
//! begins in the way of another format is neither. A form may begin with any bytes; see [`arguments_in`].

mod containers;
mod messages;

use super::{Body, Processor, Settings, Sink, transcode};
pub use messages::{Call, call};

/// The number of bytes that decide how a body is read.
pub const LOOK_BYTES: usize = 1024;

/// The number of bytes of text at the beginning that make a body text, whatever follows.
const TEXT_BYTES_MIN: usize = 64;
/// The number of bytes behind the first byte of JSON or XML that make a body text, whatever follows.
const DOCUMENT_BYTES_MIN: usize = 8;
/// The share of bytes that are no text, in a body without a known format: one in this number.
const BINARY_SHARE: usize = 10;

/// The share of text in a value among other bytes, in percent. Of random bytes, 38 are.
const TEXT_PERCENT_MIN: usize = 60;
/// Minimum length of a text behind that, which random bytes rarely have.
const PIECE_BYTES_MIN: usize = 12;
/// Maximum length of a name of an argument among other bytes.
const NAME_BYTES_MAX: usize = 128;

/// Whether a body is in a binary format, so that rules for text cannot judge it. `look`: its first [`LOOK_BYTES`], or
/// all of it.
pub fn is_binary(content_type: &[u8], look: &[u8]) -> bool {
    let start = significant(look);
    let text_bytes = start.iter().position(|byte| is_control(*byte)).unwrap_or(start.len());
    let is_long = text_bytes >= DOCUMENT_BYTES_MIN;
    // Some programs strip control characters, of which the headers of some formats consist.
    let is_xml = start.starts_with(b"<?xml") || start.starts_with(b"<!");
    if is_long && (is_xml || is_json(&start[..text_bytes])) {
        return false;
    }
    if containers::begins(look) {
        return true;
    }
    let is_document = matches!(start.first(), Some(b'{' | b'[' | b'<'));
    if (is_document && is_long) || transcode::encoding_of(look).is_some() || is_json(start) {
        return false;
    }
    messages::begins(content_type, look) || (text_bytes < TEXT_BYTES_MIN && is_no_text(look))
}

/// Whether a file of this format begins with these bytes: an image.
pub fn is_image(look: &[u8]) -> bool {
    containers::begins_image(look)
}

/// Whether so many bytes are no text that neither UTF-8 nor a charset of single bytes explains them.
fn is_no_text(look: &[u8]) -> bool {
    let foreign: usize = look.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
    let controls = look.iter().filter(|byte| is_control(**byte)).count();
    // Text in a charset of single bytes has foreign bytes, but no controls.
    let has_controls = controls > 0 || look.first().is_some_and(|byte| (0x80..0xc0).contains(byte));
    has_controls && (foreign + controls) * BINARY_SHARE >= look.len()
}

/// Whether the beginning is that of a JSON text that holds more than a number or word.
fn is_json(start: &[u8]) -> bool {
    if !matches!(start.first(), Some(b'"' | b'{' | b'[')) {
        return false;
    }
    let mut reading = Body::new(Processor::Json, b"", &Settings::DEFAULT);
    reading.feed(start, &mut ());
    reading.failure().is_none()
}

/// The part of a text from its first character that is neither blank nor invisible. Programs strip different characters:
/// Java all up to the space, C# and Python all blanks of Unicode, others a byte order mark.
pub fn significant(text: &[u8]) -> &[u8] {
    let mut rest = text;
    loop {
        rest = match rest {
            [0..=b' ' | 0x7f, behind @ ..]
            // No-break space, next line.
            | [0xc2, 0xa0 | 0x85, behind @ ..]
            // Ogham space, Mongolian vowel separator.
            | [0xe1, 0x9a, 0x80, behind @ ..]
            | [0xe1, 0xa0, 0x8e, behind @ ..]
            // Spaces, zero-width characters, line and paragraph separator, direction marks.
            | [0xe2, 0x80, 0x80..=0x8f | 0xa8..=0xaf, behind @ ..]
            | [0xe2, 0x81, 0x9f..=0xaf, behind @ ..]
            // Ideographic space, byte order mark.
            | [0xe3, 0x80, 0x80, behind @ ..]
            | [0xef, 0xbb, 0xbf, behind @ ..] => behind,
            _ => return rest,
        };
    }
}

/// Whether a byte occurs in no text. `ESC`, `RS` and the like occur in texts of terminals and lines of JSON.
pub fn is_control(byte: u8) -> bool {
    matches!(byte, 0..=8 | 0x0e..=0x1a | 0x1c | 0x1d | 0x1f)
}

/// The arguments that a reader of forms finds in a binary body. Only arguments with a short name of text between separators
/// are delivered, because a program looks for no other; a value ends where most of its bytes are no text.
pub fn arguments_in(look: &[u8], settings: &Settings) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Arguments(Vec::new());
    let mut form = Body::new(Processor::UrlEncoded, b"", settings);
    form.feed(look, &mut found);
    form.finish(&mut found);
    found.0
}

struct Arguments(Vec<(Vec<u8>, Vec<u8>)>);

impl Sink for Arguments {
    fn argument(&mut self, name: &[u8], value: &[u8]) {
        let is_text = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~');
        if (1..=NAME_BYTES_MAX).contains(&name.len()) && name.iter().all(is_text) {
            self.0.push((name.to_vec(), text_of(value)));
        }
    }
}

/// The longest beginning of a value of which most bytes are text, and the long texts behind it. Control characters become
/// blanks.
fn text_of(value: &[u8]) -> Vec<u8> {
    let is_text = |byte: u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~');
    let (mut texts, mut end) = (0, 0);
    for (at, byte) in value.iter().enumerate() {
        texts += usize::from(is_text(*byte));
        if is_text(*byte) && texts * 100 >= (at + 1) * TEXT_PERCENT_MIN {
            end = at + 1;
        }
    }
    let (before, behind) = value.split_at(end);
    let plain = |byte: &u8| if is_control(*byte) { b' ' } else { *byte };
    let mut text: Vec<u8> = before.iter().map(plain).collect();
    let pieces = behind.split(|byte| !is_text(*byte));
    for piece in pieces.filter(|piece| piece.len() >= PIECE_BYTES_MIN) {
        text.push(b' ');
        text.extend_from_slice(piece);
    }
    text
}

#[cfg(test)]
mod tests;

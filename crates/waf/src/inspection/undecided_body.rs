//! Bodies whose type does not determine their format: their first bytes decide whether rules can judge them.
//!
//! A body in a binary format is let go: callers need not hold more of it. Arguments that a reader of forms would find among
//! its first bytes are still judged.

use super::content::Kind;
use super::files::{self, Upload};
use super::message::Message;
use super::plain;
use crate::body::{self, LOOK_BYTES, Processor};
use crate::seclang::Variable;

/// The name of the content of a body, among those of files.
const NAME: &[u8] = b"body";
/// Headers that name the file in a body.
const NAMES: [&[u8]; 7] = [
    b"Content-Disposition",
    b"X-File-Name",
    b"X-Filename",
    b"Filename",
    b"File-Name",
    b"X-Upload-File-Name",
    b"Slug",
];

/// Keeps the next bytes of a body whose bytes decide, until they have decided. Returns whether they need not be judged.
pub(super) fn needs_no_inspection(message: &mut Message, bytes: &[u8]) -> bool {
    let was_open = is_open(message);
    if was_open {
        message.body.content.kept.extend_from_slice(bytes);
        if message.body.content.kept.len() >= LOOK_BYTES {
            decide(message);
        }
    }
    match message.body.content.kind {
        Kind::Media if !was_open => message.body.files.content(bytes),
        Kind::Media | Kind::Binary => {}
        Kind::Unknown | Kind::Text => return false,
    }
    true
}

/// Decides about a body that has ended.
pub(super) fn end(message: &mut Message) {
    if is_open(message) && !message.body.content.kept.is_empty() {
        decide(message);
    }
    if message.body.content.kind == Kind::Media {
        message.body.files.end();
        // What the head says of the body as a text does not matter.
        message.body.failure = None;
    }
}

/// Whether the next bytes may decide. Several types are an error, whatever the bytes are.
pub(super) fn is_open(message: &Message) -> bool {
    let body = &message.body;
    body.processor == Processor::Content
        && body.content.kind == Kind::Unknown
        && !body.head.has_types
}

/// Decides by the first bytes.
fn decide(message: &mut Message) {
    let kept = std::mem::take(&mut message.body.content.kept);
    let look = kept.get(..LOOK_BYTES).unwrap_or(&kept);
    if !body::is_binary(&message.body.head.content_type, look) {
        message.body.content.kind = Kind::Text;
        message.body.content.kept = kept;
        return;
    }
    plain::add_arguments_between(message, look);
    if is_media(message, look) {
        message.body.content.kind = Kind::Media;
        message.body.files.start_media(NAME);
        message.body.files.content(&kept);
        return;
    }
    message.body.content.kind = Kind::Binary;
    // What the head says of the body does not matter for a body that nobody reads as text.
    message.body.failure = None;
    message.body.encoded = None;
}

/// Whether code is looked for in a body that is no text.
fn is_media(message: &Message, look: &[u8]) -> bool {
    let texts = &message.variables.texts;
    let of = |variable| message.variables.values.of(variable).iter();
    let is_name = |name: &[u8]| NAMES.iter().any(|it| it.eq_ignore_ascii_case(name));
    let headers = of(Variable::RequestHeaders).filter(|it| is_name(texts.get(it.name)));
    let names = of(Variable::RequestBasename).chain(headers).map(|it| texts.get(it.text));
    let names: Vec<&[u8]> = names.collect();
    let media_type = &message.body.head.content_type;
    files::upload_of(&Upload { look, media_type, names: &names, bytes: message.body.head.bytes })
}

//! Bodies whose type does not determine their format: their first bytes decide whether rules can judge them.
//!
//! A body in a binary format is let go: callers need not hold more of it. Arguments that a reader of forms would find among
//! its first bytes are still judged.

use super::content::Kind;
use super::message::Message;
use super::plain;
use crate::body::{self, LOOK_BYTES, Processor};

/// Keeps the next bytes of a body whose bytes decide, until they have decided. Returns whether they need not be judged.
pub(super) fn is_let_go(message: &mut Message, bytes: &[u8]) -> bool {
    if is_open(message) {
        message.body.content.kept.extend_from_slice(bytes);
        if message.body.content.kept.len() >= LOOK_BYTES {
            decide(message);
        }
    }
    message.body.content.kind == Kind::Binary
}

/// Decides about a body that has ended.
pub(super) fn end(message: &mut Message) {
    if is_open(message) && !message.body.content.kept.is_empty() {
        decide(message);
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
    message.body.content.kind = Kind::Binary;
    // What the head says of the body does not matter for a body that nobody reads as text.
    message.body.failure = None;
    message.body.encoded = None;
    plain::add_arguments_between(message, look);
}

//! How weir marks and recognises its own copies of requests (`mirror`).

use std::rc::Rc;

use weir_core::persistence::keys::Keys;
use weir_core::policy::Mirror;
use weir_http::edits::FieldEdits;
use weir_http::fields::forwarded_values;
use weir_http::message::RequestHead;

/// The field that marks a copy, with the value `1`.
pub const MIRRORED: &[u8] = Mirror::FIELD;

/// The field by which weir recognises its own copies, with a mark that clients cannot know. Each weir on the way adds its own.
pub const MIRRORED_BY: &[u8] = b"X-Mirrored-By";

/// The mark of this weir, and of others with the same keys.
pub fn mark(keys: &Keys) -> Rc<[u8]> {
    let tag = keys.seals().tag(b"weir: a copy of a request");
    tag.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect()
}

/// Whether a request is a copy that this weir has made. What a client says of its request does not count.
pub fn is_copy((head, input): (&RequestHead, &[u8]), copy_mark: &[u8]) -> bool {
    forwarded_values(&head.fields, input, MIRRORED_BY).any(|mark| mark == copy_mark)
}

/// Marks a copy.
pub fn mark_copy(copy_mark: &[u8], edits: &mut FieldEdits) {
    edits.set(MIRRORED, |out| out.push(b'1'));
    edits.add(MIRRORED_BY, |out| out.extend_from_slice(copy_mark));
}

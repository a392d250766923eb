//! What the head of a response says of a body that a filter changes.

use weir_compression::entity_tags;
use weir_http::edits::FieldEdits;
use weir_http::message::ResponseHead;

use crate::edge::Edge;
use crate::parts::request_context::RequestContext;

/// Digests of the original body (RFC 9530, and earlier fields): they are wrong for the changed one.
const DIGESTS: [&[u8]; 4] = [b"Digest", b"Content-MD5", b"Repr-Digest", b"Content-Digest"];

/// The entity tag stands for the changed body, which is not the same byte for byte. A response without a body needs this, too, if it
/// stands for one: 304.
pub fn weaken_tag(
    at: &mut impl Edge,
    (head, input): (&ResponseHead, &[u8]),
    edits: &mut FieldEdits,
) {
    let mut scratch = at.tools().scratch.take();
    entity_tags::weaken_tag(head, input, edits, &mut scratch);
    at.tools().scratch.give(scratch);
}

/// Removes what is wrong for the changed body, also from the trailers behind it: ranges, and digests if it `has_digest`.
pub fn remove_claims(
    context: Option<&mut RequestContext>,
    head: &ResponseHead,
    edits: &mut FieldEdits,
    has_digest: bool,
) {
    edits.remove(b"Accept-Ranges");
    if has_digest {
        DIGESTS.iter().for_each(|name| edits.remove(name));
        if let Some(context) = context {
            context.note_response_edits(head, edits);
        }
    }
}

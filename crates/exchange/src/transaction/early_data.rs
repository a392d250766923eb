//! Marks requests for members that arrived before the client's handshake was complete (RFC 8470).

use weir_http::edits::RequestEdits;
use weir_http::message::RequestHead;

/// The field for members (RFC 8470 section 5.1).
const EARLY_DATA: &[u8] = b"Early-Data";

/// Adds Early-Data to the request for the member if it may be a replay. A field from the client is forwarded.
pub fn tell_member(is_early: bool, head: &RequestHead, input: &[u8], edits: &mut RequestEdits) {
    let says_so = || {
        head.fields
            .iter()
            .any(|field| field.forward && field.name.of(input).eq_ignore_ascii_case(EARLY_DATA))
    };
    if is_early && !says_so() {
        edits.fields.add(EARLY_DATA, |out| out.extend_from_slice(b"1"));
    }
}

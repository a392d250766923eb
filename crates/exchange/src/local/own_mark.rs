//! How weir marks and recognises requests of its own that members get as they get those of clients: copies (`mirror`).

use std::rc::Rc;

use weir_core::persistence::keys::Keys;
use weir_core::policy::subrequest::Mirror;
use weir_http::edits::FieldEdits;
use weir_http::fields::forwarded_values;
use weir_http::message::RequestHead;

/// The field by which weir recognises its own requests, with a mark that clients cannot know. Each weir on the way adds its own.
const MARKED_BY: &[u8] = b"X-Mirrored-By";

/// The mark of requests that this weir has made, or another with the same keys.
#[derive(Clone)]
pub struct OwnMark(Rc<[u8]>);

impl OwnMark {
    /// The mark of weirs with these keys.
    pub fn of(keys: &Keys) -> Self {
        let tag = keys.seals().tag(b"weir: a copy of a request");
        Self(tag.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect())
    }

    /// Whether this weir has made the request. What a client says of its request does not count.
    pub fn is_on(&self, (head, input): (&RequestHead, &[u8])) -> bool {
        forwarded_values(&head.fields, input, MARKED_BY).any(|mark| mark == &*self.0)
    }

    /// The field of the request that only weir can have set; `None`: it is a client's.
    pub fn field_of_weir(&self, message: (&RequestHead, &[u8])) -> Option<&'static [u8]> {
        self.is_on(message).then_some(Mirror::FIELD)
    }

    /// Marks a request, with the value `1` for members.
    pub fn set(&self, edits: &mut FieldEdits) {
        edits.set(Mirror::FIELD, |out| out.push(b'1'));
        edits.add(MARKED_BY, |out| out.extend_from_slice(&self.0));
    }
}

//! The requests of an HTTP/2 client that have not begun.

use std::ops::Range;

use weir_http::h1::RequestError;
use weir_http::h2::Priority;
use weir_http::h2::hpack::HeaderBlock;
use weir_http::h2::message::{ReadError, read_request};
use weir_http::message::RequestHead;
use weir_http::path::TargetForm;

/// Maximum number of pending requests. When it or [`TEXT_BYTES_MAX`] is reached, the requests begin before the end of the read,
/// because a few bytes can encode a large head.
pub const REQUESTS_MAX: usize = 128;
/// Maximum size of the heads of pending requests.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;

/// The requests of one client that have not begun. Their memory is reused.
#[derive(Default)]
pub struct PendingRequests {
    /// The requests, in the order of their arrival.
    pub requests: Vec<PendingRequest>,
    /// The number of requests at the front that have begun or were dropped.
    pub done: usize,
    /// Whether it is on the agenda to begin them at the end of the read.
    pub is_due: bool,
    /// Whether it is on the agenda to begin more of them at the end of the turn.
    pub is_listed: bool,
    /// The text to which the ranges of the heads refer.
    pub text: Vec<u8>,
    /// Heads for reuse.
    pub spare_heads: Vec<Box<RequestHead>>,
}

/// A request that has not begun.
pub struct PendingRequest {
    /// The id of its stream.
    pub stream: u32,
    /// Whether the request ends with its head.
    pub is_whole: bool,
    /// The head; `None`: the request has begun.
    pub head: Option<Box<RequestHead>>,
    /// The form of targets when the head was parsed.
    pub form: TargetForm,
    /// Where its text is in [`PendingRequests::text`].
    pub text: Range<usize>,
    /// The priority from a PRIORITY_UPDATE that followed the head.
    pub priority: Option<Priority>,
}

/// A request that begins.
pub struct BegunRequest {
    /// The id of its stream.
    pub stream: u32,
    /// Whether the request ends with its head.
    pub is_whole: bool,
    /// The head.
    pub head: Box<RequestHead>,
    /// The form of targets when the head was parsed.
    pub form: TargetForm,
    /// Where its text is in that of all requests.
    pub text: Range<usize>,
    /// The priority from a PRIORITY_UPDATE that followed the head.
    pub priority: Option<Priority>,
}

impl PendingRequests {
    /// Adds the request in `block`. Returns the error of a request that is refused, with the part of its head that was read.
    pub fn add(
        &mut self,
        (stream, is_whole): (u32, bool),
        block: &mut HeaderBlock,
        (form, passes_trailers): (TargetForm, bool),
    ) -> Result<(), (ReadError<RequestError>, Box<RequestHead>)> {
        let mut head = self.spare_heads.pop().unwrap_or_default();
        if let Err(error) = read_request(block, is_whole, form, &mut head) {
            return Err((error, head));
        }
        if passes_trailers && !is_whole {
            head.expect_trailers();
        }
        let start = self.text.len();
        self.text.extend_from_slice(block.text());
        let text = start..self.text.len();
        self.requests.push(PendingRequest {
            stream,
            is_whole,
            head: Some(head),
            form,
            text,
            priority: None,
        });
        Ok(())
    }

    /// Whether the requests have to begin now.
    pub fn is_full(&self) -> bool {
        self.requests.len() >= REQUESTS_MAX || self.text.len() >= TEXT_BYTES_MAX
    }

    /// The index of the pending request on this stream.
    pub fn place_of(&self, stream: u32) -> Option<usize> {
        self.requests.iter().rposition(|it| it.stream == stream && it.head.is_some())
    }

    /// Takes the request at this index, to begin it, and the text of all requests; `None`: it has begun.
    pub fn take(&mut self, place: usize) -> Option<(BegunRequest, Vec<u8>)> {
        let PendingRequest { stream, is_whole, head, form, text, priority } =
            self.requests.get_mut(place)?;
        let head = head.take()?;
        let (stream, is_whole, form, priority) = (*stream, *is_whole, *form, *priority);
        let request = BegunRequest { stream, is_whole, head, form, text: text.clone(), priority };
        Some((request, std::mem::take(&mut self.text)))
    }

    /// Takes back what [`Self::take`] has returned.
    pub fn put_back(&mut self, begun: BegunRequest, text: Vec<u8>) {
        self.text = text;
        self.spare_heads.push(begun.head);
    }

    /// Drops all requests.
    pub fn clear(&mut self) {
        for mut request in self.requests.drain(..) {
            self.spare_heads.extend(request.head.take());
        }
        self.text.clear();
        (self.done, self.is_due, self.is_listed) = (0, false, false);
    }
}

//! The response to a request of weir's own, stored for the transaction that asked.

use weir_http::message::ResponseHead;

/// The response to a request of weir's own.
#[derive(Default)]
pub struct Reply {
    /// The head.
    pub head: ResponseHead,
    /// The text of the head's spans.
    pub text: Vec<u8>,
    /// The body; `None`: too long to be stored.
    pub body: Option<Vec<u8>>,
    /// The number of received body bytes.
    pub body_bytes: usize,
    /// Whether the response is complete, or enough of it has arrived.
    pub is_whole: bool,
}

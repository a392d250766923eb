//! A request of weir's own beside one of a client, and its response.

use weir_http::message::ResponseHead;

use crate::arena::ExchangeKey;

/// A request of weir's own.
pub struct Aside {
    /// The request that waits for the response; `None`: none does.
    pub parent: Option<ExchangeKey>,
    /// The response so far.
    pub reply: Reply,
}

/// The response to a request of weir's own.
#[derive(Default)]
pub struct Reply {
    /// The head.
    pub head: ResponseHead,
    /// The text of the head's spans.
    pub text: Vec<u8>,
    /// The body; `None`: it was too long to be kept.
    pub body: Option<Vec<u8>>,
    /// Bytes of it that have come.
    pub body_bytes: usize,
    /// All of it has come, or enough.
    pub is_whole: bool,
}

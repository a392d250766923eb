//! A request of weir's own beside one of a client, and what was answered.

use weir_http::message::ResponseHead;

use crate::arena::ExchangeKey;

/// A request of weir's own.
pub struct Aside {
    /// The request that waits for its answer; `None`: nobody does.
    pub parent: Option<ExchangeKey>,
    /// What was answered so far.
    pub reply: Reply,
}

/// What was answered to a request of weir's own.
#[derive(Default)]
pub struct Reply {
    /// The head.
    pub head: ResponseHead,
    /// What the head's spans are of.
    pub text: Vec<u8>,
    /// The body; `None`: it was too long to be kept.
    pub body: Option<Vec<u8>>,
    /// Bytes of it that have come.
    pub body_bytes: usize,
    /// All of it has come, or enough.
    pub is_whole: bool,
}

//! The response to a request of weir's own, stored for the transaction that asked.

use weir_http::message::ResponseHead;

use crate::parts::pieces::Pieces;

/// Maximum size of a stored response body.
const BODY_BYTES_MAX: usize = 64 * 1024;

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

impl Reply {
    /// Stores the head. `is_awaited`: a transaction waits for the response.
    pub fn keep_head(&mut self, (head, input): (&ResponseHead, &[u8]), is_awaited: bool) {
        self.head.status = head.status;
        if is_awaited {
            self.head = head.clone();
            self.text = input.to_vec();
            self.body = Some(Vec::new());
        }
    }

    /// Stores a piece of the body, if a transaction waits for it. Returns whether no more is needed, because it is too long.
    pub fn keep_body(&mut self, (input, pieces): (&[u8], &Pieces), is_end: bool) -> bool {
        self.body_bytes += pieces.data_bytes;
        self.is_whole = is_end;
        if self.body_bytes > BODY_BYTES_MAX {
            (self.body, self.is_whole) = (None, true);
            return true;
        }
        if let Some(body) = &mut self.body {
            pieces.of(input).for_each(|piece| body.extend_from_slice(piece));
        }
        false
    }
}

//! A request on its way to a member, and what of it could be sent once more.

use weir_http::message::Framing;

/// What could be sent once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// All of it; nothing was handed to a member connection yet.
    Unsent,
    /// All that was handed to one.
    Sent,
    /// Not all that was.
    Gone,
}

/// A request on its way to a member.
pub struct Upload {
    /// As HTTP/1 sends it, as much of it as is kept. On a stream the body behind the head is bare.
    pub bytes: Vec<u8>,
    /// Length of its head.
    pub head_bytes: usize,
    kept: Kept,
    /// How the body is framed towards the member.
    pub framing: Framing,
    /// All of it has come from the client.
    pub is_whole: bool,
}

impl Upload {
    /// That of a request with this head.
    pub fn new(head: Vec<u8>, framing: Framing) -> Self {
        Self {
            head_bytes: head.len(),
            bytes: head,
            kept: Kept::Unsent,
            framing,
            is_whole: framing.is_empty(),
        }
    }

    /// Whether something of it was handed to a member connection.
    pub fn is_sent(&self) -> bool {
        self.kept != Kept::Unsent
    }

    /// Notes that something of it is handed to a member connection; whether it is the first of it.
    pub fn send(&mut self) -> bool {
        let is_first = self.kept == Kept::Unsent;
        if is_first {
            self.kept = Kept::Sent;
        }
        is_first
    }

    /// Whether all that was sent is kept.
    pub fn is_replayable(&self) -> bool {
        self.kept != Kept::Gone
    }

    /// Notes that not all of it is kept any more.
    pub fn let_go(&mut self) {
        self.kept = Kept::Gone;
    }
}

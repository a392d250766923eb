//! A request on its way to a member, and what of it could be sent once more.

use weir_http::h2::Answer;
use weir_http::message::{Framing, Method, RequestHead, Version};

use crate::transaction::seeking::Need;
use crate::transaction::websocket::{self, Handshake};

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
pub struct Request {
    /// The client's method.
    pub method: Method,
    /// The client's version.
    pub version: Version,
    /// Length of the protocols offered for a change, which end its head; 0: none.
    pub upgrade_bytes: usize,
    /// It is an extended CONNECT: its client sends data for the tunnel before that is agreed to.
    pub is_extended_connect: bool,
    /// It asks for a WebSocket, which a member of HTTP/2 can be asked for, too.
    pub websocket: Option<Handshake>,
    /// As HTTP/1 sends it, as much of it as is kept. On a stream the body behind the head is bare.
    pub bytes: Vec<u8>,
    /// Length of its head.
    pub head_bytes: usize,
    kept: Kept,
    /// How the body is framed towards the member.
    pub framing: Framing,
    /// All of it has come from the client.
    pub is_whole: bool,
    /// Its client has ended it short, since it knew the answer.
    pub is_cut: bool,
}

impl Request {
    /// One of which nothing was sent yet. `text` is the head as HTTP/1 sends it, `head` what the client has sent.
    pub fn new(text: Vec<u8>, head: &RequestHead, input: &[u8]) -> Self {
        Self {
            method: head.method,
            version: head.version,
            upgrade_bytes: head.upgrade.map_or(0, |protocols| protocols.len()),
            is_extended_connect: head.extended_connect,
            websocket: Handshake::of(head, input),
            head_bytes: text.len(),
            bytes: text,
            kept: Kept::Unsent,
            framing: head.framing,
            is_whole: head.framing.is_empty(),
            is_cut: false,
        }
    }

    /// The protocols that the client offers to change to.
    pub fn upgrade_offer(&self) -> &[u8] {
        let end = self.bytes.len().saturating_sub(b"\r\n\r\n".len());
        &self.bytes[end.saturating_sub(self.upgrade_bytes)..end]
    }

    /// The protocol that an extended CONNECT asks for, if it becomes a tunnel.
    pub fn tunnel_protocol(&self) -> Option<&'static [u8]> {
        self.websocket.map(|_| websocket::PROTOCOL)
    }

    /// What it is answered with on a stream.
    pub fn answer(&self) -> Answer {
        match (self.method, self.websocket) {
            (_, Some(_)) => Answer::Tunnel,
            (Method::Head, None) => Answer::HeadOnly,
            (_, None) => Answer::Usual,
        }
    }

    /// What it needs of a member's connection.
    pub fn need(&self) -> Need {
        Need {
            is_fresh: false,
            is_repeatable: self.method.is_idempotent() && self.is_whole,
            is_tunnel: self.websocket.is_some(),
            has_body: !self.framing.is_empty(),
            is_whole: self.is_whole,
            is_sent: self.is_sent(),
            is_replayable: self.is_replayable(),
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

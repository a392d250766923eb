//! Messages that a transaction sends to a client.

use weir_http::edits::FieldEdits;
use weir_http::h1::{OwnResponse, Persistence, ResponseForward};
use weir_http::message::{Framing, ResponseHead, Version};

use crate::parts::end::End;
use crate::parts::pieces::Pieces;

pub use crate::parts::scratch::Message;

/// A response head for a client.
pub struct OutHead<'a> {
    /// The head of the member's response or of weir's own.
    pub head: &'a ResponseHead,
    /// The text of its spans.
    pub input: &'a [u8],
    /// The changes to its fields.
    pub edits: &'a FieldEdits,
    /// The options for forwarding, except for the date.
    pub forward: ResponseForward<'static>,
    /// Whether a Date field is added.
    pub is_dated: bool,
}

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadKind {
    /// An interim response.
    Interim,
    /// The final response.
    Final,
}

/// A part of a body for a client.
pub struct ClientBodyPart<'a> {
    /// The text of the pieces.
    pub input: &'a [u8],
    /// The data.
    pub pieces: &'a Pieces,
    /// The framing of the body.
    pub framing: Framing,
    /// The end of the data.
    pub end: End<'a>,
    /// Whether nothing follows on an HTTP/1 connection.
    pub is_last: bool,
}

/// A response of weir's own.
#[derive(Debug, Clone, Copy)]
pub struct OwnAnswer<'a> {
    /// The status.
    pub status: u16,
    /// The client's version.
    pub version: Version,
    /// Whether another request may follow.
    pub keep_alive: bool,
    /// Whether it answers HEAD.
    pub head_only: bool,
    /// The fields.
    pub edits: &'a FieldEdits,
    /// The body; `None`: a line with the status.
    pub body: Option<&'a [u8]>,
}

impl<'a> OwnAnswer<'a> {
    /// The complete response, with further fields, and with `line` if it has no body.
    pub fn with(&self, fields: &'a [(&'static str, &'a [u8])], line: &'a [u8]) -> OwnResponse<'a> {
        let persistence = if self.keep_alive { Persistence::KeepAlive } else { Persistence::Close };
        OwnResponse {
            status: self.status,
            fields,
            edits: self.edits,
            body: self.body.unwrap_or(line),
            client_version: self.version,
            persistence,
            head_only: self.head_only,
        }
    }
}

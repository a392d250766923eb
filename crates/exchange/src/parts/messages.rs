//! Messages on their way to a client, as a transaction hands them on.

use weir_http::edits::FieldEdits;
use weir_http::h1::{OwnResponse, Persistence, ResponseForward};
use weir_http::message::{Framing, ResponseHead, Version};

use crate::parts::end::End;
use crate::parts::pieces::Pieces;

pub use crate::parts::scratch::Message;

/// A response head as it goes to a client.
pub struct OutHead<'a> {
    /// The member's, or one of weir's own.
    pub head: &'a ResponseHead,
    /// The text of its spans.
    pub input: &'a [u8],
    /// Its changes.
    pub edits: &'a FieldEdits,
    /// How it is passed on, but for the date.
    pub forward: ResponseForward<'static>,
    /// It gets the date.
    pub is_dated: bool,
}

/// The kind of message that a head begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadKind {
    /// An interim response: others follow.
    Interim,
    /// The response.
    Final,
}

/// Some of a body on its way to a client.
pub struct Sending<'a> {
    /// The text of the pieces.
    pub input: &'a [u8],
    /// The data.
    pub pieces: &'a Pieces,
    /// How the body is framed.
    pub framing: Framing,
    /// The end of the data.
    pub end: End<'a>,
    /// Nothing follows on the connection, if the client has that for itself.
    pub is_last: bool,
}

/// A response of weir's own.
#[derive(Debug, Clone, Copy)]
pub struct OwnAnswer<'a> {
    /// Its status.
    pub status: u16,
    /// The client's version.
    pub version: Version,
    /// Another request may follow.
    pub keep_alive: bool,
    /// It answers HEAD.
    pub head_only: bool,
    /// Its fields.
    pub edits: &'a FieldEdits,
    /// Its body; `None`: a line that says the status.
    pub body: Option<&'a [u8]>,
}

impl<'a> OwnAnswer<'a> {
    /// As it is written, with further fields, and with `line` where it has no body.
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

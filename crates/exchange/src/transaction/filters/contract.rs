//! The contract of filters of response bodies.

use weir_http::message::{Framing, Method, Version};

use crate::edge::{Edge, Flow};
use crate::parts::encoding::EncodeResult;
use crate::parts::messages::Message;
use crate::parts::pieces::Pieces;
use crate::parts::request::Request;
use crate::parts::transaction_ends::TransactionEnds;

/// A filter that is on: it changes the body of a response while it streams.
pub trait Filter {
    /// Filters a piece of the body, and writes what the next filter or the client gets of it to `out`, which is empty.
    fn pass(
        &mut self,
        at: &mut impl Edge,
        ends: &TransactionEnds,
        piece: Piece<'_>,
        out: &mut Message,
    ) -> EncodeResult;
}

/// A piece of a body.
#[derive(Clone, Copy)]
pub struct Piece<'a> {
    /// The text of the pieces.
    pub input: &'a [u8],
    /// The data in it.
    pub pieces: &'a Pieces,
    /// Whether nothing of the body follows.
    pub is_end: bool,
}

/// What a filter that begins wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterRequirements {
    /// The framing of the body toward the client.
    pub framing: Framing,
    /// How the member is read; `None`: as before.
    pub flow: Option<Flow>,
}

impl FilterRequirements {
    /// The body stays as it is.
    pub fn nothing(framing: Framing) -> Self {
        Self { framing, flow: None }
    }
}

/// Facts about a request that the filters of its response need.
#[derive(Debug, Clone, Copy)]
pub struct FilteredRequest {
    /// The method.
    pub method: Method,
    /// The client's version.
    pub version: Version,
}

impl FilteredRequest {
    /// The facts about a request.
    pub fn of(request: &Request) -> Self {
        Self { method: request.method, version: request.version }
    }

    /// Whether only the head of the response is asked for.
    pub fn is_head(self) -> bool {
        self.method == Method::Head
    }
}

//! The filters of a response body while it streams. What they do: [`crate::transaction::filters`].

pub use weir_compression::HeldBytes;
use weir_compression::{Encoder, FlushWhen, RequestTraits, entity_tags};
use weir_http::fields::values;
use weir_http::message::ResponseHead;

use crate::parts::body_rewrite::BodyRewrite;
use crate::parts::messages::Message;

/// Facts about a request that compression of the response needs.
pub struct Codings {
    /// The request's facts about content codings.
    pub facts: RequestTraits,
    /// The value of If-None-Match, if it may contain an entity tag that weir has made weak.
    pub known_tags: Vec<u8>,
}

impl Codings {
    /// Whether the client has the content of this response already, under an entity tag that was made weak here.
    pub fn has(&self, head: &ResponseHead, input: &[u8]) -> bool {
        if self.known_tags.is_empty() || head.status != 200 {
            return false;
        }
        let is_known = |tag| entity_tags::is_unchanged(std::iter::once(&*self.known_tags), tag);
        values(&head.fields, input, "ETag").next().is_some_and(is_known)
    }
}

/// The filters of a response.
#[derive(Default)]
pub struct Filters {
    /// Codings that the client accepts; `None`: the response is not compressed.
    pub codings: Option<Codings>,
    /// The filters that are on; `None`: the body passes as it is.
    pub on: Option<Box<Transforms>>,
}

/// Filters that change or discard the body of a response, in this order.
#[derive(Default)]
pub struct Transforms {
    /// Replacement of text.
    pub rewriting: Option<BodyRewrite>,
    /// Compression.
    pub encoding: Option<Encoding>,
}

/// How a response body is compressed.
pub enum Encoding {
    /// As a stream.
    Stream {
        /// The compressor.
        encoder: Encoder,
        /// When to flush compressed data.
        flush: FlushWhen,
        /// Whether the encoder has unprocessed input.
        has_more: bool,
    },
    /// The whole body was available with its head; this is its compressed form.
    Whole(Message),
    /// Not at all, because the client has the content already.
    Dropped {
        /// This many more bytes are read in order to keep the connection.
        left_bytes: usize,
    },
}

/// The result of transforming a part of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EncodeResult {
    /// The output was written.
    Sound,
    /// The rest is not needed.
    Enough,
    /// The encoder failed.
    Broken,
}

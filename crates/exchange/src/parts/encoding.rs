//! Changes to the body of a response while it streams.

use weir_compression::{Encoder, FlushWhen, RequestTraits, entity_tags};
use weir_http::fields::values;
use weir_http::message::ResponseHead;

use crate::parts::messages::Message;
use crate::parts::rewriting::Rewriting;

/// Data of a request that is kept until its response comes.
pub struct Codings {
    /// The request's facts about content codings.
    pub facts: RequestTraits,
    /// The value of If-None-Match, if it may name a tag that weir has weakened.
    pub known_tags: Vec<u8>,
}

impl Codings {
    /// Whether the client has the content of this response, under a tag that was weakened here.
    pub fn has(&self, head: &ResponseHead, input: &[u8]) -> bool {
        if self.known_tags.is_empty() || head.status != 200 {
            return false;
        }
        let is_known = |tag| entity_tags::is_unchanged(std::iter::once(&*self.known_tags), tag);
        values(&head.fields, input, "ETag").next().is_some_and(is_known)
    }
}

/// Changes to the body of a response, in this order.
#[derive(Default)]
pub struct Transforms {
    /// Text is replaced in it.
    pub rewriting: Option<Rewriting>,
    /// It is compressed.
    pub encoding: Option<Encoding>,
}

/// How the body of a response is compressed.
pub enum Encoding {
    /// It is compressed as it comes.
    Stream {
        /// The compressor.
        encoder: Encoder,
        /// When all that there is goes out.
        flush: FlushWhen,
        /// The encoder has input that it has not written yet.
        has_more: bool,
    },
    /// It was there as a whole with its head, and was compressed then to this.
    Whole(Message),
    /// The client has it already.
    Dropped {
        /// So many bytes more are read to get rid of it.
        left_bytes: usize,
    },
}

/// The result of some of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoded {
    /// The output was written.
    Sound,
    /// The rest is not worth waiting for.
    Enough,
    /// The encoder failed.
    Broken,
}

//! HTTP/1.1 and HTTP/1.0 (RFC 9112).
//!
//! The caller owns the bytes and parses them. While the result is [`ParseProgress::Partial`] it collects more and asks
//! [`HeadScan`] whether the head is complete, so that a head that arrives byte by byte costs no more than its length.
//! Bodies go through a [`BodyDecoder`], which returns the ranges of data. Outgoing messages are written from parsed
//! ones.
//!
//! ```
//! use weir_http::edits::RequestEdits;
//! use weir_http::h1::{self, HeadLimits, ParseProgress};
//! use weir_http::message::{Framing, RequestHead};
//! use weir_http::path::TargetForm;
//!
//! let limits = HeadLimits { head_size_max: 16 * 1024, headers_max: 100 };
//! let input = b"POST /a/%7ejoe/../b?c HTTP/1.1\r\nhost: example.com\r\nContent-Length: 2\r\n\r\nhi";
//! let mut head = RequestHead::new();
//! let form = TargetForm::default();
//! let Ok(ParseProgress::Complete { length }) = h1::parse_request(input, &limits, form, &mut head) else { panic!() };
//! assert_eq!((&input[length..], head.framing), (&b"hi"[..], Framing::Length(2)));
//! assert_eq!(head.path(input), b"/a/b");
//!
//! let mut out = Vec::new();
//! h1::write_request_head(&head, input, &RequestEdits::NONE, &mut out);
//! assert_eq!(out, b"POST /a/b?c HTTP/1.1\r\nHost: example.com\r\nContent-Length: 2\r\n\r\n");
//! ```

mod body;
pub(crate) mod error;
mod field_lines;
mod repair;
mod request;
mod response;
mod scan;
mod write;

pub use crate::facts::{CONTENT_LENGTH_MAX, NOMINATIONS_MAX, upgrade_was_offered};
pub use body::{
    BodyDecoder, BodyError, BodyStep, CHUNK_EXTENSION_SIZE_MAX, CHUNK_EXTENSIONS_TOTAL_SIZE_MAX,
    CHUNK_SIZE_DIGITS_MAX,
};
pub use error::{FieldError, FramingError, RequestError, ResponseError, TrailerError};
pub use field_lines::{parse_trailers, parse_trailers_of_member};
pub use request::{EMPTY_LINES_MAX, METHOD_LENGTH_MAX, parse_request};
pub use response::{parse_response, parse_response_of_member};
pub use scan::HeadScan;
pub use write::{
    CHUNK_HEADER_SIZE_MAX, LAST_CHUNK, OwnResponse, Persistence, ResponseForward, reason_phrase,
    write_chunk_header, write_own_response, write_request_head, write_response_head,
    write_trailers,
};

/// The maximum size of a head or trailer section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadLimits {
    /// Maximum number of bytes, from the first byte of the start line to the empty line that ends the section.
    pub head_size_max: u32,
    /// Maximum number of field lines.
    pub headers_max: u16,
}

/// The result of parsing a head without an error so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseProgress {
    /// More bytes are needed.
    Partial,
    /// The head is complete.
    Complete {
        /// Its length in bytes, including the empty line.
        length: usize,
    },
}

/// The part of `input` that a head may occupy, and whether the head may still grow.
fn within_limit(input: &[u8], limits: HeadLimits) -> (&[u8], bool) {
    let size_max = limits.head_size_max as usize;
    if input.len() < size_max { (input, true) } else { (&input[..size_max], false) }
}

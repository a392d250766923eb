//! The target of a request: a single scan, and the canonical path.

use std::ops::Range;

use crate::chars::{is_query_byte, is_raw_byte, query_length, scan_path};
use crate::h1::RequestError;
use crate::message::{Part, RequestHead, Span};
use crate::path::{self, RawBytes, TargetForm};

/// The result of the scan of the target.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    pub(crate) span: Span,
    /// In an origin-form target: the end of the path, and whether it may differ from its canonical form. In other targets:
    /// the end of the target.
    pub(crate) path_end: usize,
    pub(crate) needs_canonical: bool,
    /// Whether bytes after the path must be encoded.
    pub(crate) is_raw: bool,
}

impl Target {
    /// Scans the target that starts at `start`, up to the first byte that is not allowed in a target. The second result is
    /// the position of this byte.
    pub(crate) fn scan(input: &[u8], start: usize) -> (Self, usize) {
        let (mut at, needs_canonical) = match input.get(start) {
            Some(b'/') => scan_path(input, start),
            _ => (start, false),
        };
        let path_end = at;
        let mut is_raw = false;
        if !matches!(input.get(at), Some(b' ') | None) {
            at += query_length(&input[at..]);
            if !matches!(input.get(at), Some(b' ') | None) {
                (at, is_raw) = scan_raw(input, at);
            }
        }
        (Self { span: Span::new(start, at), path_end, needs_canonical, is_raw }, at)
    }

    /// Splits `range`, which starts with a slash, into the path and the query.
    pub(crate) fn set_path_and_query(
        self,
        input: &[u8],
        range: Range<usize>,
        form: TargetForm,
        head: &mut RequestHead,
    ) -> Result<(), RequestError> {
        let received = Span::new(range.start, self.path_end);
        head.path = Part::Received(received);
        if self.needs_canonical {
            let received = received.of(input);
            if form.raw_bytes == RawBytes::Refuse && path::has_raw_bytes(received) {
                return Err(RequestError::TargetCharacter);
            }
            let read = path::read(received, form.path, &mut head.canonical)?;
            head.path = read.member.map_or(head.path, Part::Made);
            head.decided_path = read.decided;
        }
        if self.path_end < range.end {
            let query = Span::new(self.path_end + 1, range.end);
            head.query = Some(Part::Received(query));
            if self.is_raw {
                head.query = Some(encode_query(query, input, form, head)?);
            }
        }
        Ok(())
    }
}

/// Continues the scan after a byte that must be encoded in a query. Returns the end of the target, and whether bytes must be
/// encoded.
#[cold]
fn scan_raw(input: &[u8], start: usize) -> (usize, bool) {
    let is_taken = |byte: &u8| is_query_byte(*byte) || is_raw_byte(*byte);
    let length = input[start..].iter().take_while(|byte| is_taken(byte)).count();
    (start + length, length > 0)
}

/// Writes the query for the member, after the paths in `canonical`.
#[cold]
pub(crate) fn encode_query(
    query: Span,
    input: &[u8],
    form: TargetForm,
    head: &mut RequestHead,
) -> Result<Part, RequestError> {
    let received = query.of(input);
    if !path::has_raw_bytes(received) {
        return Ok(Part::Received(query));
    }
    if form.raw_bytes == RawBytes::Refuse {
        return Err(RequestError::TargetCharacter);
    }
    let start = head.canonical.len();
    path::encode_raw_bytes(received, &mut head.canonical);
    Ok(Part::Made(Span::new(start, head.canonical.len())))
}

//! The target of a request: one pass over it, and its canonical path.

use std::ops::Range;

use crate::chars::{query_length, scan_path};
use crate::h1::RequestError;
use crate::message::{PathSource, RequestHead, Span};
use crate::path::{self, PathForm};

/// What one pass over the target has found.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    pub(crate) span: Span,
    /// Of an origin-form target: where the path ends, and whether it may differ from its canonical
    /// form. Of any other, the end of the target.
    pub(crate) path_end: usize,
    pub(crate) needs_canonical: bool,
}

impl Target {
    /// Looks at the target that starts at `start`, up to the first byte that cannot stand in one, whose
    /// place is the second result.
    pub(crate) fn scan(input: &[u8], start: usize) -> (Self, usize) {
        let (mut at, needs_canonical) = match input.get(start) {
            Some(b'/') => scan_path(input, start),
            _ => (start, false),
        };
        let path_end = at;
        if !matches!(input.get(at), Some(b' ') | None) {
            at += query_length(&input[at..]);
        }
        (Self { span: Span::new(start, at), path_end, needs_canonical }, at)
    }

    /// Takes the path and the query of `range` apart, which starts with a slash.
    pub(crate) fn set_path_and_query(
        self,
        input: &[u8],
        range: Range<usize>,
        form: PathForm,
        head: &mut RequestHead,
    ) -> Result<(), RequestError> {
        let received = Span::new(range.start, self.path_end);
        head.path = PathSource::Received(received);
        if self.needs_canonical {
            let read = path::read(received.of(input), form, &mut head.canonical)?;
            head.path = read.member.map_or(head.path, PathSource::Made);
            head.decided_path = read.decided;
        }
        if self.path_end < range.end {
            head.query = Some(Span::new(self.path_end + 1, range.end));
        }
        Ok(())
    }
}

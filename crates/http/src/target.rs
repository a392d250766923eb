//! The target of a request: one pass over it, and its canonical path.

use std::ops::Range;

use crate::chars::{PATH, PLAIN, PathByte, is_query_byte, run_length};
use crate::h1::RequestError;
use crate::message::{PathSource, RequestHead, Span};
use crate::path;

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
        let mut needs_canonical = false;
        let mut at = start;
        let is_origin_form = input.get(at) == Some(&b'/');
        if is_origin_form {
            while let Some(byte) = input.get(at) {
                match PATH[usize::from(*byte)] {
                    PathByte::Plain => at += run_length(&input[at..], &PLAIN, b'/'),
                    PathByte::Dot => {
                        needs_canonical |= input[at - 1] == b'/';
                        at += 1;
                    }
                    PathByte::Encode => {
                        needs_canonical = true;
                        at += 1;
                    }
                    PathByte::Query | PathByte::End | PathByte::Refused => break,
                }
            }
        }
        let path_end = at;
        // A backslash may stand in a query, and not in a path.
        let is_over =
            matches!(input.get(at), Some(b' ') | None) || (is_origin_form && input[at] == b'\\');
        if !is_over {
            let rest = &input[at..];
            at += rest.iter().position(|byte| !is_query_byte(*byte)).unwrap_or(rest.len());
        }
        (Self { span: Span::new(start, at), path_end, needs_canonical }, at)
    }

    /// Takes the path and the query of `range` apart, which starts with a slash.
    pub(crate) fn set_path_and_query(
        self,
        input: &[u8],
        range: Range<usize>,
        head: &mut RequestHead,
    ) -> Result<(), RequestError> {
        let received = Span::new(range.start, self.path_end);
        head.path = PathSource::Received(received);
        if self.needs_canonical {
            path::canonicalise(received.of(input), &mut head.canonical)?;
            if head.canonical != received.of(input) {
                head.path = PathSource::Canonical;
            }
        }
        if self.path_end < range.end {
            head.query = Some(Span::new(self.path_end + 1, range.end));
        }
        Ok(())
    }
}

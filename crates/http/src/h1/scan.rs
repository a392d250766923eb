//! Detection of the end of a head that arrives in pieces.

use super::HeadLimits;
use super::repair::{LineEnd, line_end};
use super::request::EMPTY_LINES_MAX;
use crate::chars::find_control;
use crate::flaws::{Flaw, Flaws};

/// Searches for the end of a head in growing input. Each byte is examined once.
///
/// The caller parses first. If the result is [`Parsed::Partial`](super::ParseProgress::Partial), it keeps
/// the bytes, and parses again only when [`scan`](Self::scan) returns true.
/// Parsing after every arrival would take quadratic time.
#[derive(Debug, Clone)]
pub struct HeadScan {
    /// The number of examined bytes, up to the last control character whose meaning is still unknown.
    position: usize,
    line_start: usize,
    /// The number of lines from here that may be empty (before a request line).
    empty_lines: u8,
    /// Tolerated flaws.
    taken: Flaws,
}

impl HeadScan {
    /// For a request head, which [`EMPTY_LINES_MAX`] empty lines may precede.
    pub fn request() -> Self {
        Self { empty_lines: EMPTY_LINES_MAX, ..Self::section() }
    }

    /// For a response head or a trailer section.
    pub fn section() -> Self {
        Self::section_of_member(Flaws::NONE)
    }

    /// For a section of a member whose flaws in `taken` are tolerated.
    pub fn section_of_member(taken: Flaws) -> Self {
        Self { position: 0, line_start: 0, empty_lines: 0, taken }
    }

    /// Whether `input`, which extends all earlier inputs, should be parsed now: it contains a
    /// complete head, or one that is too large, or a line end or control character that is not allowed in a
    /// head. Parsing then never returns `Partial`.
    pub fn scan(&mut self, input: &[u8], limits: &HeadLimits) -> bool {
        while let Some(at) = find_control(input, self.position) {
            let line_end_bytes = match line_end(input, at) {
                LineEnd::Crlf => 2,
                LineEnd::BareLf if self.taken.have(Flaw::BareLineFeed) => 1,
                LineEnd::Undecided => {
                    self.position = at;
                    return input.len() >= limits.head_size_max as usize;
                }
                LineEnd::None if self.taken.have(Flaw::ControlCharacter) => {
                    self.position = at + 1;
                    continue;
                }
                LineEnd::BareLf | LineEnd::None => return true,
            };
            let is_empty_line = at == self.line_start;
            if is_empty_line && self.empty_lines == 0 {
                return true;
            }
            self.empty_lines = if is_empty_line { self.empty_lines - 1 } else { 0 };
            self.position = at + line_end_bytes;
            self.line_start = self.position;
        }
        self.position = input.len();
        input.len() >= limits.head_size_max as usize
    }
}

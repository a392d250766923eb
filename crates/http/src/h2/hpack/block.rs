//! A decoded header block.

use crate::h2::line::{Name, Value};
use crate::message::Span;

use super::table::ENTRY_OVERHEAD_SIZE;

/// The limits for stored and for decoded header lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListLimits {
    /// Maximum size of names and values, plus [`ENTRY_OVERHEAD_SIZE`] per line, as defined for
    /// SETTINGS_MAX_HEADER_LIST_SIZE. Each crumb of a cookie counts as a line.
    pub size_max: u32,
    /// Maximum number of lines.
    pub lines_max: u16,
    /// The size at which decoding stops, so that the dynamic table is out of step.
    pub hard_size_max: u32,
}

/// The limit that a header list exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excess {
    /// The size limit.
    Size,
    /// The limit on the number of lines.
    Lines,
}

/// One line of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// The name.
    pub name: Span,
    /// The value.
    pub value: Span,
    /// The line must not be added to a table by later hops either (RFC 7541 section 7.1.3).
    pub never_indexed: bool,
    pub(in crate::h2) name_is: Name,
    pub(in crate::h2) value_is: Value,
}

/// A header list: its text, and the positions of names and values. It is reused and keeps its capacity.
#[derive(Debug, Clone, Default)]
pub struct HeaderBlock {
    /// The lines, as `name: value CR LF`, without gaps.
    pub(in crate::h2) text: Vec<u8>,
    pub(in crate::h2) lines: Vec<Line>,
    pub(super) size: usize,
    pub(super) excess: Option<Excess>,
}

impl HeaderBlock {
    /// An empty block.
    pub fn new() -> Self {
        Self::default()
    }

    /// Empties the block, and keeps its capacity.
    pub fn clear(&mut self) {
        self.text.clear();
        self.lines.clear();
        self.size = 0;
        self.excess = None;
    }

    /// The text that the spans of the lines refer to, and the spans of a head that was read from the lines.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Exchanges the text with that of `buffer`, which outlives the block. The block is empty afterwards and has the
    /// capacity of `buffer`.
    pub fn swap_text(&mut self, buffer: &mut Vec<u8>) {
        std::mem::swap(&mut self.text, buffer);
        self.clear();
    }

    /// The lines, in the order received.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The exceeded limit, if any. Lines beyond the limits are not stored.
    pub fn excess(&self) -> Option<Excess> {
        self.excess
    }

    /// Size of the whole list as SETTINGS_MAX_HEADER_LIST_SIZE counts it, including dropped lines.
    pub fn list_size(&self) -> usize {
        self.size
    }

    /// The allocated memory in bytes.
    pub fn memory_size(&self) -> usize {
        self.text.capacity() + self.lines.capacity() * size_of::<Line>()
    }

    /// The value of the first line called `name`.
    pub(in crate::h2) fn find(&self, name: &[u8]) -> Option<&[u8]> {
        let line = self.lines.iter().find(|line| line.name.of(&self.text) == name)?;
        Some(line.value.of(&self.text))
    }

    /// Counts the line at the end of the text. Within the limits the line is stored, otherwise removed. Returns whether the
    /// hard limit holds.
    #[inline(always)]
    pub(super) fn settle_line(&mut self, line: Line, limits: &ListLimits) -> bool {
        self.size += line.name.len() + line.value.len() + ENTRY_OVERHEAD_SIZE;
        let is_full = self.lines.len() >= usize::from(limits.lines_max);
        if self.size > limits.size_max as usize || is_full {
            return self.drop_line(line, limits);
        }
        self.lines.push(line);
        true
    }

    #[cold]
    fn drop_line(&mut self, line: Line, limits: &ListLimits) -> bool {
        let is_large = self.size > limits.size_max as usize;
        let excess = if is_large { Excess::Size } else { Excess::Lines };
        self.excess.get_or_insert(excess);
        self.text.truncate(line.name.start as usize);
        self.size <= limits.hard_size_max as usize
    }
}

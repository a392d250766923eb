//! A decoded header block.

use crate::h2::line::{Name, Value};
use crate::message::Span;

use super::table::ENTRY_OVERHEAD_SIZE;

/// How much of a header list is kept, and how much is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListLimits {
    /// Names and values, and [`ENTRY_OVERHEAD_SIZE`] for each line, as SETTINGS_MAX_HEADER_LIST_SIZE counts. Each crumb
    /// of a cookie counts separately.
    pub size_max: u32,
    /// Lines.
    pub lines_max: u16,
    /// The size beyond which not even the table is kept in step.
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
    /// It must never enter a table on its further way either (RFC 7541 section 7.1.3).
    pub never_indexed: bool,
    pub(in crate::h2) name_is: Name,
    pub(in crate::h2) value_is: Value,
}

/// A header list, as text and the places of names and values in it. It is reused and keeps its capacity.
#[derive(Debug, Clone, Default)]
pub struct HeaderBlock {
    /// Every line as `name: value CR LF`, one behind the other.
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

    /// Makes it empty again, with the capacity it has.
    pub fn clear(&mut self) {
        self.text.clear();
        self.lines.clear();
        self.size = 0;
        self.excess = None;
    }

    /// The text that all spans of the lines, and of a head that was read from them, refer to.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Gives the text to a buffer that outlives the block and takes that one's capacity; the block is
    /// empty afterwards.
    pub fn swap_text(&mut self, buffer: &mut Vec<u8>) {
        std::mem::swap(&mut self.text, buffer);
        self.clear();
    }

    /// The lines, in the order received.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Set when the list passed the limits. Lines beyond them are not here.
    pub fn excess(&self) -> Option<Excess> {
        self.excess
    }

    /// Size of the whole list as SETTINGS_MAX_HEADER_LIST_SIZE counts it, including dropped lines.
    pub fn list_size(&self) -> usize {
        self.size
    }

    /// Bytes of memory held.
    pub fn memory_size(&self) -> usize {
        self.text.capacity() + self.lines.capacity() * size_of::<Line>()
    }

    /// The value of the first line called `name`.
    pub(in crate::h2) fn find(&self, name: &[u8]) -> Option<&[u8]> {
        let line = self.lines.iter().find(|line| line.name.of(&self.text) == name)?;
        Some(line.value.of(&self.text))
    }

    /// Counts the line that ends the text, and keeps it or, beyond the limits, takes it away again.
    /// Whether the hard bound still holds.
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

//! HPACK: header compression for HTTP/2 (RFC 7541).
//!
//! A [`Decoder`] and an [`Encoder`] are the two ends of the dynamic table of one direction. Decoded lines are stored in a
//! [`HeaderBlock`] as `name: value CR LF`, as in HTTP/1, so that a message for an HTTP/1 member is copied in one piece.
//!
//! The cost of a block is limited during decoding. Lines beyond the caller's [`ListLimits`] are decoded to keep the table in
//! step, but not stored. Beyond a hard limit, the connection ends.

mod block;
mod decoder;
mod encoder;
mod huffman;
mod integer;
mod static_table;
mod table;

use std::fmt;

pub use block::{Excess, HeaderBlock, Line, ListLimits};
pub use decoder::Decoder;
pub use encoder::{BlockEncoder, Encoder};
pub use table::ENTRY_OVERHEAD_SIZE;

/// The initial size of a dynamic table (RFC 9113 section 6.5.2).
pub const TABLE_SIZE_DEFAULT: u32 = 4096;

/// The reason why a header block cannot be decoded. The table is then out of step, and the connection must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HpackError {
    /// The block ends within a field.
    Truncated,
    /// An integer above the accepted maximum.
    Integer,
    /// An index without an entry in either table.
    Index,
    /// A string is not valid Huffman code, has invalid padding, or contains the end-of-string symbol.
    Huffman,
    /// A size update after the start of a block.
    SizeUpdatePlace,
    /// A size update above the permitted size.
    SizeUpdateTooLarge,
    /// The permitted size fell below the table's size, but the next block does not start with a size update.
    SizeUpdateMissing,
    /// A list larger than [`ListLimits::hard_size_max`].
    ListTooLarge,
}

impl HpackError {
    /// The text of the error.
    pub fn text(self) -> &'static str {
        match self {
            Self::Truncated => "header block ends within a field",
            Self::Integer => "number in a header block too large",
            Self::Index => "header block refers to an entry that is not there",
            Self::Huffman => "malformed Huffman code in a header block",
            Self::SizeUpdatePlace => "table size update within a header block",
            Self::SizeUpdateTooLarge => "table size update beyond the setting",
            Self::SizeUpdateMissing => "no table size update after a smaller setting",
            Self::ListTooLarge => "header list far beyond the limit",
        }
    }
}

impl fmt::Display for HpackError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.text())
    }
}

impl std::error::Error for HpackError {}

#[cfg(test)]
mod tests;

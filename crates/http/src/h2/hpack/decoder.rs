//! Decoding of header blocks (RFC 7541 sections 3 and 6).

use super::block::{HeaderBlock, Line, ListLimits};
use super::static_table::{self, STATIC_LENGTH};
use super::table::{Table, TableEntry};
use super::{HpackError, TABLE_SIZE_DEFAULT, huffman, integer};
use crate::h2::line::{Name, Value};
use crate::message::Span;

/// The decoder of one direction.
#[derive(Debug, Clone)]
pub struct Decoder {
    table: Table,
    /// The value of our SETTINGS_HEADER_TABLE_SIZE that the peer has acknowledged.
    bound: usize,
    /// The bound fell below the table's size, so the next block must start with a size update.
    must_update: bool,
}

impl Decoder {
    /// A decoder with the initial table size.
    pub fn new() -> Self {
        let bound = TABLE_SIZE_DEFAULT as usize;
        Self { table: Table::new(bound), bound, must_update: false }
    }

    /// The peer has acknowledged our SETTINGS_HEADER_TABLE_SIZE.
    pub fn set_table_size_bound(&mut self, size: u32) {
        self.bound = size as usize;
        self.must_update = self.table.size_max() > self.bound;
    }

    /// Decodes a whole block into `block`, which is cleared first.
    ///
    /// Lines beyond the limits are dropped, and [`HeaderBlock::excess`] reports this. The dynamic table stays in step. After
    /// an error, the decoder cannot be used any more.
    pub fn decode(
        &mut self,
        input: &[u8],
        limits: &ListLimits,
        block: &mut HeaderBlock,
    ) -> Result<(), HpackError> {
        block.clear();
        let mut at = 0;
        while let Some(byte) = input.get(at)
            && byte & 0xe0 == 0x20
        {
            self.update_size(input, &mut at)?;
        }
        if self.must_update {
            return Err(HpackError::SizeUpdateMissing);
        }
        while let Some(byte) = input.get(at) {
            let fits = if byte & 0x80 != 0 {
                let index = integer::read(input, &mut at, 7)?;
                self.copy_line(index, limits, block)?
            } else {
                self.literal(*byte, input, &mut at, limits, block)?
            };
            if !fits {
                return Err(HpackError::ListTooLarge);
            }
        }
        Ok(())
    }

    /// A dynamic table size update (section 6.3).
    #[cold]
    fn update_size(&mut self, input: &[u8], at: &mut usize) -> Result<(), HpackError> {
        let size = integer::read(input, at, 5)?;
        if size > self.bound {
            return Err(HpackError::SizeUpdateTooLarge);
        }
        self.table.resize(size);
        self.must_update = false;
        Ok(())
    }

    /// An indexed field (section 6.1). Returns whether the hard limit holds.
    #[inline(always)]
    fn copy_line(
        &self,
        index: usize,
        limits: &ListLimits,
        block: &mut HeaderBlock,
    ) -> Result<bool, HpackError> {
        let TableEntry { line, name_length, name_is, value_is } = self.line(index)?;
        let start = block.text.len();
        block.text.extend_from_slice(line);
        let name = Span::new(start, start + name_length);
        let value = Span::new(start + name_length + 2, start + line.len() - 2);
        let line = Line { name, value, never_indexed: false, name_is, value_is };
        Ok(block.settle_line(line, limits))
    }

    /// A literal field (section 6.2), which starts with `byte`. Returns whether the hard limit holds.
    fn literal(
        &mut self,
        byte: u8,
        input: &[u8],
        at: &mut usize,
        limits: &ListLimits,
        block: &mut HeaderBlock,
    ) -> Result<bool, HpackError> {
        let (prefix_bits, is_indexed) = match byte & 0xf0 {
            0x40..=0x70 => (6, true),
            0x20 | 0x30 => return Err(HpackError::SizeUpdatePlace),
            _ => (4, false),
        };
        let index = integer::read(input, at, prefix_bits)?;
        let start = block.text.len();
        let name_is = if index == 0 {
            read_string(input, at, &mut block.text)?;
            Name::of(&block.text[start..])
        } else {
            let TableEntry { line, name_length, name_is, .. } = self.line(index)?;
            block.text.extend_from_slice(&line[..name_length]);
            name_is
        };
        let name = Span::new(start, block.text.len());
        block.text.extend_from_slice(b": ");
        let value_start = block.text.len();
        read_string(input, at, &mut block.text)?;
        let value = Span::new(value_start, block.text.len());
        let value_is = Value::of(value.of(&block.text));
        block.text.extend_from_slice(b"\r\n");
        if is_indexed {
            let (name, value) = (name.of(&block.text), value.of(&block.text));
            self.table.insert(name, value, name_is, value_is);
        }
        let never_indexed = byte & 0xf0 == 0x10;
        Ok(block.settle_line(Line { name, value, never_indexed, name_is, value_is }, limits))
    }

    /// The entry with this index (section 2.3.3).
    #[inline(always)]
    fn line(&self, index: usize) -> Result<TableEntry<'_>, HpackError> {
        match index {
            0 => Err(HpackError::Index),
            1..=STATIC_LENGTH => Ok(static_table::get(index)),
            _ => self.table.get(index - STATIC_LENGTH - 1).ok_or(HpackError::Index),
        }
    }

    /// The allocated memory in bytes.
    pub fn memory_size(&self) -> usize {
        self.table.memory_size()
    }

    /// Panics if the state is inconsistent.
    pub fn check_invariants(&self) {
        self.table.check_invariants();
        assert!(self.must_update || self.table.size_max() <= self.bound);
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

/// Decodes a string literal (section 5.2), and appends it to `text`.
#[inline]
fn read_string(input: &[u8], at: &mut usize, text: &mut Vec<u8>) -> Result<(), HpackError> {
    let is_huffman = input.get(*at).is_some_and(|byte| byte & 0x80 != 0);
    let length = integer::read(input, at, 7)?;
    let string = input[*at..].get(..length).ok_or(HpackError::Truncated)?;
    *at += length;
    if is_huffman {
        huffman::decode(string, text)
    } else {
        text.extend_from_slice(string);
        Ok(())
    }
}

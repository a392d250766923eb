//! Encoding of header blocks (RFC 7541 section 6).
//!
//! The choice of table entries suits a proxy, which sends the lines of many senders. Values that rarely repeat are never
//! looked up. Secrets are marked as never indexed. Any other line enters the table when it is sent for the second time, so
//! that a value that is new in every message displaces no entry.

use super::table::{ENTRY_OVERHEAD_SIZE, Table};
use super::{TABLE_SIZE_DEFAULT, huffman, integer, static_table};
use crate::h2::line::{Name, Value};

/// Number of slots of the lookup tables: a power of two, and more than the maximum number of entries.
const SLOTS: usize = 256;

/// Minimum length of an indexed cookie. An observer of message sizes could guess a shorter one byte by byte (RFC 7541
/// section 7.1.3).
const COOKIE_LENGTH_MIN: usize = 20;

/// The encoder of one direction.
#[derive(Debug, Clone)]
pub struct Encoder {
    table: Table,
    /// Maximum size of the table, even if the peer permits more.
    size_cap: usize,
    /// The smallest size that the peer has set since the last block. The next block must then start with size updates
    /// (section 4.2).
    update: Option<usize>,
    /// The latest entry of each hash, as its number of insertion plus one.
    lines: Box<[u32; SLOTS]>,
    names: Box<[u32; SLOTS]>,
    /// The fingerprints of lines that were sent once, by hash.
    seen: Box<[u16; SLOTS]>,
    /// Buffer for values.
    scratch: Vec<u8>,
    /// Buffer for names in lower case.
    name: Vec<u8>,
}

/// The treatment of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Policy {
    /// May be added to the table.
    Index,
    /// Not worth adding to the table.
    Literal,
    /// Must not be added to a table, here or by later hops.
    Never,
}

impl Encoder {
    /// An encoder that uses a table of at most `size_cap` bytes.
    pub fn new(size_cap: u32) -> Self {
        let size_cap = size_cap as usize;
        let size = size_cap.min(TABLE_SIZE_DEFAULT as usize);
        Self {
            table: Table::new(size),
            size_cap,
            update: (size < TABLE_SIZE_DEFAULT as usize).then_some(size),
            lines: Box::new([0; SLOTS]),
            names: Box::new([0; SLOTS]),
            seen: Box::new([0; SLOTS]),
            scratch: Vec::new(),
            name: Vec::new(),
        }
    }

    /// Sets the peer's SETTINGS_HEADER_TABLE_SIZE.
    pub fn set_peer_table_size(&mut self, size: u32) {
        let size = (size as usize).min(self.size_cap);
        if size != self.table.size_max() {
            self.update = Some(self.update.map_or(size, |smallest| smallest.min(size)));
            self.table.resize(size);
        }
    }

    /// Starts a block, which is appended to `out`.
    pub fn block<'a>(&'a mut self, out: &'a mut Vec<u8>) -> BlockEncoder<'a> {
        if let Some(smallest) = self.update.take() {
            let size = self.table.size_max();
            if smallest < size {
                integer::write(smallest, 5, 0x20, out);
            }
            integer::write(size, 5, 0x20, out);
        }
        BlockEncoder { encoder: self, out }
    }

    /// The allocated memory in bytes.
    pub fn memory_size(&self) -> usize {
        let slots = SLOTS * (size_of::<u32>() * 2 + size_of::<u16>());
        self.table.memory_size() + self.scratch.capacity() + self.name.capacity() + slots
    }

    /// Panics if the state is inconsistent.
    pub fn check_invariants(&self) {
        self.table.check_invariants();
        assert!(self.table.size_max() <= self.size_cap);
    }

    fn write_field(&mut self, name: &[u8], value: &[u8], never_indexed: bool, out: &mut Vec<u8>) {
        let static_index = static_table::index_of(name);
        let policy = if never_indexed { Policy::Never } else { policy(static_index, value) };
        if let Some(index) =
            static_index.and_then(|index| static_table::index_of_value(index, value))
            && policy != Policy::Never
        {
            return integer::write(index, 7, 0x80, out);
        }
        let name_hash = hash(name, 0);
        let size = name.len() + value.len() + ENTRY_OVERHEAD_SIZE;
        // An entry that would displace most others is not added.
        let may_enter = policy == Policy::Index && size <= self.table.size_max() / 2;
        let mut enters = false;
        let line_hash = if may_enter { hash(value, name_hash) } else { 0 };
        if may_enter {
            let slot = self.lines[slot_of(line_hash)];
            if let Some(index) = self.find(slot, |found, it| (found, it) == (name, value)) {
                return integer::write(index, 7, 0x80, out);
            }
            let fingerprint = line_hash as u16 | 1;
            let seen = &mut self.seen[slot_of(line_hash)];
            enters = *seen == fingerprint;
            *seen = fingerprint;
        }
        let name_index = static_index
            .or_else(|| self.find(self.names[slot_of(name_hash)], |found, _| found == name));
        let (prefix_bits, first) = match policy {
            _ if enters => (6, 0x40),
            Policy::Never => (4, 0x10),
            _ => (4, 0),
        };
        integer::write(name_index.unwrap_or(0), prefix_bits, first, out);
        if name_index.is_none() {
            write_string(name, out);
        }
        write_string(value, out);
        // Only a decoder needs these facts.
        let (name_is, value_is) = (Name::Malformed, Value::Sound);
        if enters && self.table.insert(name, value, name_is, value_is) {
            let (_, inserted) = self.table.sequence();
            self.lines[slot_of(line_hash)] = inserted;
            self.names[slot_of(name_hash)] = inserted;
        }
    }

    /// The index of the entry in a slot, if the entry still exists and is the required one.
    fn find(&self, slot: u32, is_it: impl Fn(&[u8], &[u8]) -> bool) -> Option<usize> {
        let (_, next) = self.table.sequence();
        let age = next.wrapping_sub(slot) as usize;
        if slot == 0 || age >= self.table.len() {
            return None;
        }
        let (name, value) = self.table.name_and_value(age)?;
        is_it(name, value).then_some(static_table::STATIC_LENGTH + 1 + age)
    }
}

/// Writes the lines of one block.
#[derive(Debug)]
pub struct BlockEncoder<'a> {
    encoder: &'a mut Encoder,
    out: &'a mut Vec<u8>,
}

impl BlockEncoder<'_> {
    /// Writes a line. The name is in lower case.
    pub fn field(&mut self, name: &[u8], value: &[u8]) {
        debug_assert!(!name.iter().any(u8::is_ascii_uppercase));
        self.encoder.write_field(name, value, false, self.out);
    }

    /// Writes a line whose name may be in any case.
    pub fn field_of_any_case(&mut self, name: &[u8], value: &[u8], never_indexed: bool) {
        let mut lower = std::mem::take(&mut self.encoder.name);
        lower.clear();
        lower.extend_from_slice(name);
        lower.make_ascii_lowercase();
        self.encoder.write_field(&lower, value, never_indexed, self.out);
        self.encoder.name = lower;
    }

    /// Writes a line; `write` appends its value to an empty buffer.
    pub fn field_with(&mut self, name: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
        let mut scratch = std::mem::take(&mut self.encoder.scratch);
        scratch.clear();
        write(&mut scratch);
        self.field(name, &scratch);
        self.encoder.scratch = scratch;
    }
}

/// The treatment of a line.
fn policy(static_index: Option<usize>, value: &[u8]) -> Policy {
    match static_index {
        // authorization, proxy-authorization, set-cookie
        Some(23 | 49 | 55) => Policy::Never,
        // cookie
        Some(32) if value.len() < COOKIE_LENGTH_MIN => Policy::Never,
        // :path, and a :status that is not in the static table
        Some(4 | 8) => Policy::Literal,
        // age, content-range, expires, location and range. A date is the same for a second; content-length, etag and
        // last-modified are the same when a resource is requested again.
        Some(21 | 30 | 36 | 46 | 50) => Policy::Literal,
        // if-…
        Some(39..=43) => Policy::Literal,
        _ => Policy::Index,
    }
}

fn write_string(text: &[u8], out: &mut Vec<u8>) {
    let encoded_size = huffman::encoded_size(text);
    if encoded_size < text.len() {
        integer::write(encoded_size, 7, 0x80, out);
        huffman::encode(text, out);
    } else {
        integer::write(text.len(), 7, 0, out);
        out.extend_from_slice(text);
    }
}

/// A hash for finding lines again. A miss costs a few bytes, and no correctness.
fn hash(bytes: &[u8], seed: u32) -> u32 {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut state = u64::from(seed) ^ bytes.len() as u64;
    let mut rest = bytes;
    while let Some((chunk, tail)) = rest.split_first_chunk::<8>() {
        state = (state.rotate_left(5) ^ u64::from_le_bytes(*chunk)).wrapping_mul(MULTIPLIER);
        rest = tail;
    }
    for byte in rest {
        state = (state.rotate_left(5) ^ u64::from(*byte)).wrapping_mul(MULTIPLIER);
    }
    (state >> 32) as u32
}

/// The slot: the upper bits of the hash. The lower bits are the fingerprint.
fn slot_of(hash: u32) -> usize {
    hash as usize >> 24 & (SLOTS - 1)
}

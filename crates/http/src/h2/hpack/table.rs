//! The dynamic table (RFC 7541 section 2.3.2), for the encoder and for the decoder.
//!
//! The entries are stored without gaps in a buffer of twice the table's size, each as a line of a
//! [`HeaderBlock`](super::HeaderBlock). Evicted entries at the front are removed when the buffer is full, so a byte is moved
//! once on average, and every entry is contiguous.

use crate::h2::line::{Name, Value};

/// The overhead of an entry beyond its name and value (RFC 7541 section 4.1).
pub const ENTRY_OVERHEAD_SIZE: usize = 32;

/// Maximum number of evicted entries before they are removed from the buffer.
const ENTRIES_DEAD_MAX: usize = 128;

/// Bytes of a line beyond its name and value: colon, space, CR, LF.
const LINE_OVERHEAD_SIZE: usize = 4;

#[derive(Debug, Clone, Copy)]
struct Entry {
    start: u32,
    name_length: u32,
    /// Length of the line.
    length: u32,
    name_is: Name,
    value_is: Value,
}

/// An entry as it is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct TableEntry<'a> {
    /// Name and value, as a line of a [`HeaderBlock`](super::HeaderBlock).
    pub(super) line: &'a [u8],
    pub(super) name_length: usize,
    pub(super) name_is: Name,
    pub(super) value_is: Value,
}

/// A dynamic table.
#[derive(Debug, Clone)]
pub(super) struct Table {
    bytes: Vec<u8>,
    /// The entries, oldest first, after `dead` evicted ones.
    entries: Vec<Entry>,
    /// Number of evicted entries that are still in the buffer.
    dead: usize,
    size: usize,
    size_max: usize,
    /// Number of entries ever inserted; wraps.
    inserted: u32,
}

impl Table {
    pub(super) fn new(size_max: usize) -> Self {
        Self { bytes: Vec::new(), entries: Vec::new(), dead: 0, size: 0, size_max, inserted: 0 }
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.dead
    }

    /// Maximum size.
    pub(super) fn size_max(&self) -> usize {
        self.size_max
    }

    /// Sets the maximum size.
    pub(super) fn resize(&mut self, size_max: usize) {
        self.size_max = size_max;
        self.evict(0);
        if self.bytes.len() > 2 * size_max {
            self.compact();
        }
    }

    /// The number of entries inserted before the oldest present one, and before the next one.
    pub(super) fn sequence(&self) -> (u32, u32) {
        (self.inserted.wrapping_sub(self.len() as u32), self.inserted)
    }

    /// The entry with this index; 0 is the newest.
    #[inline(always)]
    pub(super) fn get(&self, index: usize) -> Option<TableEntry<'_>> {
        let place = self.entries.len().checked_sub(index + 1)?;
        if place < self.dead {
            return None;
        }
        let entry = self.entries.get(place)?;
        let start = entry.start as usize;
        Some(TableEntry {
            line: self.bytes.get(start..)?.get(..entry.length as usize)?,
            name_length: entry.name_length as usize,
            name_is: entry.name_is,
            value_is: entry.value_is,
        })
    }

    /// Name and value of the entry with this index.
    pub(super) fn name_and_value(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let TableEntry { line, name_length, .. } = self.get(index)?;
        Some((&line[..name_length], &line[name_length + 2..line.len() - 2]))
    }

    /// Inserts an entry, and evicts the oldest ones for it. An entry larger than the table empties it (RFC 7541 section
    /// 4.4). Returns whether the entry was inserted.
    pub(super) fn insert(
        &mut self,
        name: &[u8],
        value: &[u8],
        name_is: Name,
        value_is: Value,
    ) -> bool {
        let size = name.len() + value.len() + ENTRY_OVERHEAD_SIZE;
        self.evict(size);
        if size > self.size_max {
            return false;
        }
        let length = name.len() + value.len() + LINE_OVERHEAD_SIZE;
        if self.bytes.len() + length > 2 * self.size_max || self.dead > ENTRIES_DEAD_MAX {
            self.compact();
        }
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(b": ");
        self.bytes.extend_from_slice(value);
        self.bytes.extend_from_slice(b"\r\n");
        let (name_length, length) = (name.len() as u32, length as u32);
        self.entries.push(Entry { start, name_length, length, name_is, value_is });
        self.size += size;
        self.inserted = self.inserted.wrapping_add(1);
        true
    }

    /// Evicts the oldest entries until `needed` more bytes fit.
    fn evict(&mut self, needed: usize) {
        while self.size + needed > self.size_max {
            let Some(entry) = self.entries.get(self.dead) else { break };
            self.dead += 1;
            self.size -= entry.length as usize - LINE_OVERHEAD_SIZE + ENTRY_OVERHEAD_SIZE;
        }
        if self.dead == self.entries.len() {
            self.entries.clear();
            self.bytes.clear();
            self.dead = 0;
        }
    }

    #[cold]
    fn compact(&mut self) {
        self.entries.drain(..self.dead);
        self.dead = 0;
        let start = self.entries.first().map_or(self.bytes.len() as u32, |entry| entry.start);
        self.bytes.drain(..start as usize);
        for entry in &mut self.entries {
            entry.start -= start;
        }
    }

    /// The allocated memory in bytes.
    pub(super) fn memory_size(&self) -> usize {
        self.bytes.capacity() + self.entries.capacity() * size_of::<Entry>()
    }

    /// Panics if the state is inconsistent.
    pub(super) fn check_invariants(&self) {
        let alive = &self.entries[self.dead..];
        let sum: usize =
            alive.iter().map(|entry| entry.length as usize - 4 + ENTRY_OVERHEAD_SIZE).sum();
        assert_eq!(sum, self.size);
        assert!(self.size <= self.size_max);
        assert!(self.bytes.len() <= 2 * self.size_max);
        let live = alive.first().map_or(0, |entry| self.bytes.len() - entry.start as usize);
        assert_eq!(live, alive.iter().map(|entry| entry.length as usize).sum::<usize>());
        assert!(alive.is_empty() == self.entries.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(table: &mut Table, name: &[u8], value: &[u8]) -> bool {
        table.insert(name, value, Name::of(name), Value::of(value))
    }

    fn names(table: &Table) -> Vec<String> {
        (0..table.len())
            .map(|index| {
                let (name, value) = table.name_and_value(index).expect("an entry");
                format!("{}={}", name.escape_ascii(), value.escape_ascii())
            })
            .collect()
    }

    #[test]
    fn the_oldest_go_first() {
        let mut table = Table::new(70);
        assert!(insert(&mut table, b"a", b"1"));
        assert!(insert(&mut table, b"b", b"2"));
        assert_eq!(names(&table), ["b=2", "a=1"]);
        assert_eq!(table.sequence(), (0, 2));
        assert!(insert(&mut table, b"c", b"3"));
        assert_eq!(names(&table), ["c=3", "b=2"]);
        assert_eq!(table.sequence(), (1, 3));
        assert!(table.get(2).is_none());
        table.resize(40);
        assert_eq!(names(&table), ["c=3"]);
        assert!(!insert(&mut table, b"much", b"too large"));
        assert_eq!(names(&table), [""; 0]);
    }

    #[test]
    fn memory_stays_within_twice_the_size() {
        let mut table = Table::new(200);
        for round in 0..10_000_usize {
            let value = vec![b'v'; round * 7 % 190];
            insert(&mut table, b"n", &value);
            table.check_invariants();
            if let Some((name, found)) = table.name_and_value(0) {
                assert_eq!((name, found), (&b"n"[..], &value[..]));
            }
        }
        assert!(table.memory_size() < 2048);
    }
}

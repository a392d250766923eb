//! Persistence with a table, which maps clients to members, for all workers.

use std::net::IpAddr;

use weir_core::keyed_hash::{KeyedHash, PrefixLengths};
use weir_core::persistence::source::{SourceEntry, Timeout};

use super::{Losses, SharedTable};

/// Maps addresses, or other values, to members.
#[derive(Debug)]
pub struct SourceTable {
    table: SharedTable,
    hash: KeyedHash,
    prefix: PrefixLengths,
    timeout: Timeout,
}

fn ends_ms(value: u64) -> u64 {
    SourceEntry::from_bits(value).ends_ms()
}

impl SourceTable {
    /// A table for this many clients (see [`SharedTable::new`]); the key of `hash` must be secret.
    pub fn new(clients: u32, hash: KeyedHash, prefix: PrefixLengths, timeout: Timeout) -> Self {
        Self { table: SharedTable::new(clients, ends_ms), hash, prefix, timeout }
    }

    /// The key of clients with this address.
    pub fn key_of_address(&self, address: IpAddr) -> u64 {
        self.hash.address(address, self.prefix)
    }

    /// The key of clients with this value.
    pub fn key_of_bytes(&self, value: &[u8]) -> u64 {
        self.hash.bytes(value)
    }

    /// The number of the client's member, if the entry has not expired. This counts as a request of
    /// the client, so it extends the timeout.
    pub fn find_bytes(&self, client: &[u8], now_ms: u64) -> Option<u32> {
        self.find(self.key_of_bytes(client), now_ms)
    }

    /// As above, without extending the timeout.
    pub fn peek_bytes(&self, client: &[u8], now_ms: u64) -> Option<u32> {
        let found = self.table.find(self.hash.bytes(client), now_ms)?;
        Some(SourceEntry::from_bits(found).member)
    }

    /// As above, by key.
    pub fn peek(&self, hash: u64, now_ms: u64) -> Option<u32> {
        Some(SourceEntry::from_bits(self.table.find(hash, now_ms)?).member)
    }

    /// A copy with the same clients.
    pub fn copied(&self, now_ms: u64) -> Self {
        let Self { table, hash, prefix, timeout } = self;
        Self { table: table.copied(now_ms), hash: *hash, prefix: *prefix, timeout: *timeout }
    }

    /// As [`Self::find_bytes`], by key.
    pub fn find(&self, hash: u64, now_ms: u64) -> Option<u32> {
        let entry = SourceEntry::from_bits(self.table.find(hash, now_ms)?);
        if let Some(touched) = entry.touched(now_ms, self.timeout) {
            // Another worker may have stored another member by now: then that one stays.
            self.table.update_with(hash, now_ms, |found| {
                let member = SourceEntry::from_bits(found?).member;
                (member == touched.member).then(|| touched.to_bits())
            });
        }
        Some(entry.member)
    }

    /// Stores this member for the client.
    pub fn remember_bytes(&self, client: &[u8], member: u32, now_ms: u64) {
        self.remember(self.key_of_bytes(client), member, now_ms);
    }

    /// Sends the client to this member for this time, unless the table has another member or a later expiry.
    pub fn suggest_bytes(&self, client: &[u8], member: u32, now_ms: u64, timeout: Timeout) {
        let entry = SourceEntry::new(member, now_ms, timeout);
        self.table.update_with(self.hash.bytes(client), now_ms, |found| {
            let is_better = found.is_none_or(|found| {
                let found = SourceEntry::from_bits(found);
                found.member == member && found.ends_ms() < entry.ends_ms()
            });
            is_better.then(|| entry.to_bits())
        });
    }

    /// As [`Self::remember_bytes`], by key. An unchanged entry is renewed only as rarely as by requests.
    pub fn remember(&self, hash: u64, member: u32, now_ms: u64) {
        let entry = SourceEntry::new(member, now_ms, self.timeout);
        self.table.update_with(hash, now_ms, |found| {
            match found.map(SourceEntry::from_bits).filter(|found| found.member == member) {
                Some(same) => same.touched(now_ms, self.timeout).map(SourceEntry::to_bits),
                None => Some(entry.to_bits()),
            }
        });
    }

    /// Takes over the entries of the table before a reload. `member` maps a member's number to the new
    /// one, or to `None` if the member was removed. Both tables must have the same hash and prefix lengths, else the
    /// entries would not be found.
    pub fn take_over(&self, old: &Self, now_ms: u64, mut member: impl FnMut(u32) -> Option<u32>) {
        old.table.carry_over(&self.table, now_ms, |value| {
            let entry = SourceEntry::from_bits(value);
            Some(entry.with_member(member(entry.member)?).to_bits())
        });
    }

    /// The current entries: the hash of the client, and its entry with the member's number. Reads the whole table.
    pub fn entries(&self, now_ms: u64) -> impl Iterator<Item = (u64, SourceEntry)> {
        self.table.live(now_ms).map(|(hash, value)| (hash, SourceEntry::from_bits(value)))
    }

    /// Inserts an entry of a table with the same hash and prefix lengths.
    pub fn insert(&self, hash: u64, entry: SourceEntry, now_ms: u64) {
        self.table.insert(hash, entry.to_bits(), now_ms);
    }

    /// The number of clients that have a member now. Reads the whole table.
    pub fn clients(&self, now_ms: u64) -> usize {
        self.table.live(now_ms).count()
    }

    /// See [`SharedTable::losses`].
    pub fn losses(&self) -> Losses {
        self.table.losses()
    }

    /// See [`SharedTable::bytes`].
    pub fn bytes(&self) -> usize {
        self.table.bytes()
    }
}

//! Persistence with a table: which member a client was sent to, for all workers.

use std::net::IpAddr;

use weir_core::keyed_hash::{KeyedHash, PrefixLengths};
use weir_core::persistence::source::{SourceEntry, Timeout};

use super::{Losses, SharedTable};

/// Which addresses, or other values, go to which members.
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

    /// The number of the member that the client was sent to, if that has not ended. It is a request of
    /// the client: it counts toward the timeout.
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

    /// Another one with the same clients.
    pub fn copied(&self, now_ms: u64) -> Self {
        let Self { table, hash, prefix, timeout } = self;
        Self { table: table.copied(now_ms), hash: *hash, prefix: *prefix, timeout: *timeout }
    }

    /// As [`Self::find_bytes`], by key.
    pub fn find(&self, hash: u64, now_ms: u64) -> Option<u32> {
        let entry = SourceEntry::from_bits(self.table.find(hash, now_ms)?);
        if let Some(touched) = entry.touched(now_ms, self.timeout) {
            // Another worker may have sent the client elsewhere by now: then that stays.
            self.table.update_with(hash, now_ms, |found| {
                let member = SourceEntry::from_bits(found?).member;
                (member == touched.member).then(|| touched.to_bits())
            });
        }
        Some(entry.member)
    }

    /// From now on the client is sent to this member.
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

    /// Takes over the entries of the table before a reload. `member` gives a member's number its new
    /// one, `None` where it is gone. Both tables must have the same hash and prefix lengths, else the
    /// entries would not be found.
    pub fn take_over(&self, old: &Self, now_ms: u64, mut member: impl FnMut(u32) -> Option<u32>) {
        old.table.carry_over(&self.table, now_ms, |value| {
            let entry = SourceEntry::from_bits(value);
            Some(entry.with_member(member(entry.member)?).to_bits())
        });
    }

    /// The entries now, by the hash of their client: each member by its number. It reads the whole table.
    pub fn entries(&self, now_ms: u64) -> impl Iterator<Item = (u64, SourceEntry)> {
        self.table.live(now_ms).map(|(hash, value)| (hash, SourceEntry::from_bits(value)))
    }

    /// Goes on with the entry of a table that has the same hash and prefix lengths.
    pub fn insert(&self, hash: u64, entry: SourceEntry, now_ms: u64) {
        self.table.insert(hash, entry.to_bits(), now_ms);
    }

    /// How many clients have a member now. It reads the whole table.
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

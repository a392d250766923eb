//! Persistence by source address: which member a client was sent to, for all workers.

use std::net::IpAddr;

use weir_core::keyed_hash::{KeyedHash, PrefixLengths};
use weir_core::persistence::source::{SourceEntry, Timeout};

use super::{Losses, SharedTable};

/// Which addresses go to which members.
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
    /// A table for this many clients (see [`SharedTable::new`]); `hash` has a key that they do not
    /// know.
    pub fn new(clients: u32, hash: KeyedHash, prefix: PrefixLengths, timeout: Timeout) -> Self {
        Self { table: SharedTable::new(clients, ends_ms), hash, prefix, timeout }
    }

    /// The number of the member that the client was sent to, if that has not ended. It is a request of
    /// the client: it counts toward the timeout.
    pub fn find(&self, client: IpAddr, now_ms: u64) -> Option<u32> {
        self.find_hash(self.hash.address(client, self.prefix), now_ms)
    }

    /// The same of a client that is told apart by these bytes.
    pub fn find_bytes(&self, client: &[u8], now_ms: u64) -> Option<u32> {
        self.find_hash(self.hash.bytes(client), now_ms)
    }

    /// The same, and it does not count toward the timeout.
    pub fn peek_bytes(&self, client: &[u8], now_ms: u64) -> Option<u32> {
        let found = self.table.find(self.hash.bytes(client), now_ms)?;
        Some(SourceEntry::from_bits(found).member)
    }

    fn find_hash(&self, hash: u64, now_ms: u64) -> Option<u32> {
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
    pub fn remember(&self, client: IpAddr, member: u32, now_ms: u64) {
        self.remember_hash(self.hash.address(client, self.prefix), member, now_ms);
    }

    /// The same of a client that is told apart by these bytes.
    pub fn remember_bytes(&self, client: &[u8], member: u32, now_ms: u64) {
        self.remember_hash(self.hash.bytes(client), member, now_ms);
    }

    /// From now on the client is sent to this member, for so long; unless something else is known of it, or for longer.
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

    fn remember_hash(&self, hash: u64, member: u32, now_ms: u64) {
        let entry = SourceEntry::new(member, now_ms, self.timeout);
        self.table.insert(hash, entry.to_bits(), now_ms);
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

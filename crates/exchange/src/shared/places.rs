//! The tables of persistence, which map clients to members, for all workers and across reloads.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use foldhash::fast::RandomState;
use weir_config::snapshot::{AddressOf, Pool, TableSettings};
use weir_core::keyed_hash::PrefixLengths;
use weir_core::persistence::keys::Keys;
use weir_core::persistence::source::{MEMBER_MAX, SourceEntry, Timeout};

use crate::shared::shared_table::{Losses, SourceTable};

/// Remembered clients of a pool's members.
///
/// A change of the members keeps the table, because workers write to it all the time, also for requests that began with other
/// members. So the table does not have indexes of members: each member gets a number when it is added, which no other one ever
/// gets.
#[derive(Debug)]
pub struct Places {
    shared: Arc<NumberedTable>,
    made_for: MadeFor,
    /// The labels of the members, by their indexes in the pool.
    labels: Vec<Arc<str>>,
    /// The numbers of the members, by their indexes.
    numbers: Vec<u32>,
    /// The indexes of the members, by their numbers.
    indexes: HashMap<u32, u32, RandomState>,
}

/// What the members of a pool share with those that it has later.
#[derive(Debug)]
struct NumberedTable {
    /// Maps clients to members, by their numbers.
    table: SourceTable,
    /// The next number for a member.
    next: AtomicU32,
}

/// The settings of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MadeFor {
    /// The value that identifies clients.
    pub told_by: ToldBy,
    /// The size and timeout of the table.
    pub table: TableSettings,
}

/// The value that identifies clients in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToldBy {
    /// An address, up to its prefix length.
    Address(AddressOf, PrefixLengths),
    /// A value of requests, responses or connections.
    Value,
}

impl Places {
    /// The table for the members of a pool. If its settings are the same, that of `old`; else a new one with the entries of
    /// `old`. Clients of members that are gone are forgotten.
    pub fn of(
        made_for: MadeFor,
        pool: &Pool,
        own_keys: &Keys,
        (old, now_ms): (Option<&Arc<Self>>, u64),
    ) -> Arc<Self> {
        let labels: Vec<Arc<str>> =
            pool.members.iter().map(|member| Arc::clone(&member.label)).collect();
        if let Some(old) = old.filter(|old| old.made_for == made_for) {
            if old.labels == labels {
                return Arc::clone(old);
            }
            if let Some(numbers) = old.numbers_of(&labels) {
                return Arc::new(Self::new(Arc::clone(&old.shared), made_for, labels, numbers));
            }
        }
        let TableSettings { timeout_ms, entries_max, .. } = made_for.table;
        let (hash, prefix) = match made_for.told_by {
            ToldBy::Address(AddressOf::Client, prefix) => ("source addresses", prefix),
            ToldBy::Address(AddressOf::Server, prefix) => ("destination addresses", prefix),
            ToldBy::Value => ("learned values", PrefixLengths::WHOLE),
        };
        let hash = own_keys.hash(hash);
        let table = SourceTable::new(entries_max, hash, prefix, Timeout::new(timeout_ms));
        let numbers: Vec<u32> = (0..).take(labels.len()).collect();
        let next = AtomicU32::new(labels.len() as u32);
        let new = Self::new(Arc::new(NumberedTable { table, next }), made_for, labels, numbers);
        if let Some(old) = old {
            new.take_over(old, now_ms);
        }
        Arc::new(new)
    }

    fn new(
        shared: Arc<NumberedTable>,
        made_for: MadeFor,
        labels: Vec<Arc<str>>,
        numbers: Vec<u32>,
    ) -> Self {
        let indexes = numbers.iter().copied().zip(0..).collect();
        Self { shared, made_for, labels, numbers, indexes }
    }

    /// The numbers of these members in the same table; `None`: it has no number left for a new one.
    fn numbers_of(&self, labels: &[Arc<str>]) -> Option<Vec<u32>> {
        let known: HashMap<&str, u32> =
            self.labels.iter().map(|label| &**label).zip(self.numbers.iter().copied()).collect();
        let next = || {
            let next = |number: u32| (number < MEMBER_MAX).then_some(number + 1);
            self.shared.next.fetch_update(Relaxed, Relaxed, next).ok()
        };
        labels.iter().map(|label| known.get(&**label).copied().or_else(next)).collect()
    }

    /// The labels of the members, by their indexes.
    pub fn labels(&self) -> &[Arc<str>] {
        &self.labels
    }

    /// The client's member, if it is known. This counts as a request of the client.
    #[inline]
    pub fn find(&self, client: u64, now_ms: u64) -> Option<u32> {
        self.indexes.get(&self.shared.table.find(client, now_ms)?).copied()
    }

    /// Stores this member for the client.
    pub fn remember(&self, client: u64, member: u32, now_ms: u64) {
        if let Some(number) = self.numbers.get(member as usize) {
            self.shared.table.remember(client, *number, now_ms);
        }
    }

    /// The key of clients with this address.
    pub fn key_of_address(&self, address: IpAddr) -> u64 {
        self.shared.table.key_of_address(address)
    }

    /// The key of clients with this value.
    pub fn key_of_bytes(&self, value: &[u8]) -> u64 {
        self.shared.table.key_of_bytes(value)
    }

    /// The losses of the table, also those before the latest change of members.
    pub fn losses(&self) -> Losses {
        self.shared.table.losses()
    }

    /// The clients of these members, with the indexes of their members. Reads the whole table.
    pub fn entries(&self, now_ms: u64) -> impl Iterator<Item = (u64, SourceEntry)> {
        let all = self.shared.table.entries(now_ms);
        all.filter_map(|(client, entry)| {
            let index = *self.indexes.get(&entry.member)?;
            Some((client, entry.with_member(index)))
        })
    }

    /// Inserts an entry, with the index of its member, of a table with the same hash and prefix lengths.
    pub fn insert(&self, client: u64, entry: SourceEntry, now_ms: u64) {
        if let Some(number) = self.numbers.get(entry.member as usize) {
            self.shared.table.insert(client, entry.with_member(*number), now_ms);
        }
    }

    /// A copy with the same clients.
    pub fn copied(&self, now_ms: u64) -> Self {
        let next = AtomicU32::new(self.shared.next.load(Relaxed));
        let shared = NumberedTable { table: self.shared.table.copied(now_ms), next };
        Self::new(Arc::new(shared), self.made_for, self.labels.clone(), self.numbers.clone())
    }

    /// Copies the clients of `old` whose members are still configured.
    fn take_over(&self, old: &Self, now_ms: u64) {
        if old.made_for.told_by != self.made_for.told_by {
            return;
        }
        let numbers: HashMap<&str, u32> =
            self.labels.iter().map(|label| &**label).zip(self.numbers.iter().copied()).collect();
        self.shared.table.take_over(&old.shared.table, now_ms, |number| {
            let label = &old.labels[*old.indexes.get(&number)? as usize];
            numbers.get(&**label).copied()
        });
    }
}

#[cfg(test)]
mod tests {
    use weir_core::persistence::keys::{KEY_BYTES, Key};

    use super::*;

    const NOW_MS: u64 = 1_000_000;

    fn places(members: &[u16], old: Option<&Arc<Places>>) -> Arc<Places> {
        let members: Vec<String> = members.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let text = format!(
            "virtual_servers: {{ v: {{ listen: \"127.0.0.1:8080\", pool: p }} }}\npools: {{ p: {{ members: [ {} ] }} }}\n",
            members.join(", ")
        );
        let config = weir_config::parse("test.yaml", &text).config.expect("a good configuration");
        let snapshot = config.snapshot(&weir_config::Resolutions::default());
        let table =
            TableSettings { timeout_ms: 60_000, entries_max: 100, across_virtual_servers: false };
        let made_for = MadeFor { told_by: ToldBy::Value, table };
        let keys = Keys::single(Key::new([7; KEY_BYTES]));
        Places::of(made_for, &snapshot.pools[0], &keys, (old, NOW_MS))
    }

    /// The ports of the clients' members.
    fn found(places: &Places, clients: &[u64]) -> Vec<Option<String>> {
        let port =
            |member: u32| places.labels()[member as usize].rsplit(':').next().map(Into::into);
        clients.iter().map(|client| port(places.find(*client, NOW_MS)?)).collect()
    }

    fn ports(ports: &[&str]) -> Vec<Option<String>> {
        ports.iter().map(|port| (!port.is_empty()).then(|| (*port).to_owned())).collect()
    }

    #[test]
    fn what_requests_with_other_members_remember_is_known() {
        let before = places(&[1, 2, 3], None);
        before.remember(10, 1, NOW_MS);
        let after = places(&[4, 3, 2], Some(&before));
        // Requests that began before the change go on.
        before.remember(11, 2, NOW_MS);
        before.remember(12, 0, NOW_MS);
        after.remember(13, 0, NOW_MS);
        assert_eq!(found(&after, &[10, 11, 12, 13]), ports(&["2", "3", "", "4"]));
        assert_eq!(found(&before, &[10, 11, 12, 13]), ports(&["2", "3", "1", ""]));
        // A member that comes back has no clients.
        let again = places(&[1, 2], Some(&after));
        assert_eq!(found(&again, &[10, 11, 12, 13]), ports(&["2", "", "", ""]));
        let entries: Vec<_> = again.entries(NOW_MS).map(|(key, it)| (key, it.member)).collect();
        assert_eq!(entries, [(10, 1)]);
        // The same members have the same places.
        assert!(Arc::ptr_eq(&places(&[1, 2], Some(&again)), &again));
        // A copy is by itself.
        let copy = again.copied(NOW_MS);
        copy.remember(14, 0, NOW_MS);
        assert_eq!(
            (found(&copy, &[10, 14]), found(&again, &[14])),
            (ports(&["2", "1"]), ports(&[""]))
        );
    }

    #[test]
    fn without_a_number_there_is_another_table() {
        let before = places(&[1, 2], None);
        before.remember(10, 1, NOW_MS);
        before.shared.next.store(MEMBER_MAX, Relaxed);
        let after = places(&[3, 2, 1], Some(&before));
        assert!(!Arc::ptr_eq(&before.shared, &after.shared));
        assert_eq!(found(&after, &[10]), ports(&["2"]));
        assert_eq!((&*after.numbers, after.shared.next.load(Relaxed)), (&[0, 1, 2][..], 3));
    }
}

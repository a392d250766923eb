//! The tables of persistence, which map clients to members, for all workers and across reloads.

use std::collections::HashMap;
use std::sync::Arc;

use weir_config::snapshot::{AddressOf, Pool, TableSettings};
use weir_core::keyed_hash::PrefixLengths;
use weir_core::persistence::keys::Keys;
use weir_core::persistence::source::Timeout;

use crate::shared::shared_table::SourceTable;

/// Remembered clients, and the settings of the table.
#[derive(Debug)]
pub struct Places {
    /// Maps clients to members, by their indexes in the pool.
    pub table: SourceTable,
    made_for: MadeFor,
    /// The labels of the members when the table was created.
    labels: Vec<Arc<str>>,
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
    /// The table for the members of a pool: `old` itself if its settings are the same, since workers still write to it;
    /// else a new one with the entries of `old`.
    pub fn of(
        made_for: MadeFor,
        pool: &Pool,
        own_keys: &Keys,
        (old, now_ms): (Option<&Arc<Self>>, u64),
    ) -> Arc<Self> {
        let labels = || pool.members.iter().map(|member| &member.label);
        if let Some(old) = old
            && old.made_for == made_for
            && old.labels.iter().eq(labels())
        {
            return Arc::clone(old);
        }
        let TableSettings { timeout_ms, entries_max, .. } = made_for.table;
        let (hash, prefix) = match made_for.told_by {
            ToldBy::Address(AddressOf::Client, prefix) => ("source addresses", prefix),
            ToldBy::Address(AddressOf::Server, prefix) => ("destination addresses", prefix),
            ToldBy::Value => ("learned values", PrefixLengths::WHOLE),
        };
        let hash = own_keys.hash(hash);
        let new = Self {
            table: SourceTable::new(entries_max, hash, prefix, Timeout::new(timeout_ms)),
            made_for,
            labels: labels().cloned().collect(),
        };
        if let Some(old) = old {
            new.take_over(old, now_ms);
        }
        Arc::new(new)
    }

    /// The labels of the members, by their numbers in the table.
    pub fn labels(&self) -> &[Arc<str>] {
        &self.labels
    }

    /// A copy with the same clients.
    pub fn copied(&self, now_ms: u64) -> Self {
        let Self { table, made_for, labels } = self;
        Self { table: table.copied(now_ms), made_for: *made_for, labels: labels.clone() }
    }

    /// Copies the clients of `old` whose members are still configured.
    fn take_over(&self, old: &Self, now_ms: u64) {
        if old.made_for.told_by != self.made_for.told_by {
            return;
        }
        let places: HashMap<&str, u32> =
            self.labels.iter().map(|label| &**label).zip(0..).collect();
        self.table.take_over(&old.table, now_ms, |member| {
            let label = old.labels.get(member as usize)?;
            places.get(&**label).copied()
        });
    }
}

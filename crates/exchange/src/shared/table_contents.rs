//! Tables of persistence as data, for the process that replaces this one: hashes of clients, and their
//! members.
//!
//! Both processes need the same keys ([`Stickies::own_keys`]), else no client is found, and the same monotonic clock.

use std::collections::HashMap;
use std::sync::Arc;

use weir_core::persistence::source::SourceEntry;

use crate::shared::sticky::{Stickies, Sticky};

/// A table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableContents {
    /// Names of virtual server (empty if several share it), persistence and pool.
    pub place: [String; 3],
    /// The members, by their numbers.
    pub labels: Vec<String>,
    /// The hash of a client, and the word of its entry.
    pub entries: Vec<(u64, u64)>,
    /// The lengths of connection IDs, one bit per length.
    pub lengths: u32,
}

impl TableContents {
    /// All current tables. Reads each table completely.
    pub fn all(stickies: &Stickies, now_ms: u64) -> impl Iterator<Item = Self> {
        stickies.tables().filter_map(move |(place, sticky)| {
            let word = |(hash, entry): (u64, SourceEntry)| (hash, entry.to_bits());
            let (entries, lengths) = match sticky {
                Sticky::ConnectionIds(ids) => {
                    (ids.parts().0.entries(now_ms).map(word).collect(), ids.lengths())
                }
                _ => (sticky.places()?.entries(now_ms).map(word).collect(), 0),
            };
            Some(Self {
                place: place.map(|name| name.to_string()),
                labels: labels(sticky)?.iter().map(|label| label.to_string()).collect(),
                entries,
                lengths,
            })
        })
    }

    /// Adds the clients whose members are configured, to the table of the same place.
    pub fn restore(&self, stickies: &Stickies, now_ms: u64) {
        let mut tables = stickies.tables();
        let found = tables.find(|(place, _)| place.map(|name| &**name) == self.place_names());
        let Some((_, sticky)) = found else { return };
        let Some(labels) = labels(sticky) else { return };
        let numbers: HashMap<&str, u32> = labels.iter().map(|label| &**label).zip(0..).collect();
        let numbers: Vec<Option<u32>> =
            self.labels.iter().map(|label| numbers.get(label.as_str()).copied()).collect();
        for &(hash, bits) in &self.entries {
            let entry = SourceEntry::from_bits(bits);
            let number = numbers.get(entry.member as usize).copied().flatten();
            if let Some(number) = number.filter(|_| entry.ends_ms() > now_ms) {
                let entry = entry.with_member(number);
                match sticky {
                    Sticky::ConnectionIds(ids) => ids.parts().0.insert(hash, entry, now_ms),
                    _ => sticky.places().into_iter().for_each(|it| it.insert(hash, entry, now_ms)),
                }
            }
        }
        if let Sticky::ConnectionIds(ids) = sticky {
            ids.add_lengths(self.lengths);
        }
    }

    fn place_names(&self) -> [&str; 3] {
        [&self.place[0], &self.place[1], &self.place[2]]
    }
}

/// The labels of the members of a table, by their numbers in its entries.
fn labels(sticky: &Sticky) -> Option<&[Arc<str>]> {
    match sticky {
        Sticky::ConnectionIds(ids) => Some(ids.parts().1),
        _ => sticky.places().map(|places| places.labels()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;
    use crate::shared::live::LiveTable;
    use crate::shared::places::Places;

    fn table(members: &str) -> LiveTable {
        let text = format!(
            "virtual_servers: {{ v: {{ listen: \"127.0.0.1:8080\", pool: p, persistence: s }} }}\n\
             persistence: {{ s: {{ type: source_address }} }}\n\
             pools: {{ p: {{ members: {members} }} }}\n"
        );
        let config = weir_config::parse("test.yaml", &text).config.expect("a good configuration");
        let snapshot = config.snapshot(&weir_config::Resolutions::default());
        LiveTable::build(Arc::new(snapshot), None, 1, &Environment::known())
    }

    fn places(table: &LiveTable) -> &Places {
        let (_, sticky) = table.stickies.tables().next().expect("a table");
        sticky.places().expect("a table")
    }

    #[test]
    fn clients_stay_at_members_that_are_still_there() {
        let now_ms = Environment::known().clock.now_ms();
        let before = table("[ 127.0.0.1:1, 127.0.0.1:2 ]");
        let clients: Vec<std::net::IpAddr> =
            (1..=20).map(|last| [192, 0, 2, last].into()).collect();
        for (client, member) in clients.iter().zip((0..2).cycle()) {
            let table = places(&before);
            table.remember(table.key_of_address(*client), member, now_ms);
        }
        let remembered: Vec<TableContents> = TableContents::all(&before.stickies, now_ms).collect();
        assert_eq!(remembered.len(), 1);
        assert_eq!(remembered[0].entries.len(), clients.len());
        // The second member is now the first, and another one was added.
        let after = table("[ 127.0.0.1:2, 127.0.0.1:3 ]");
        remembered[0].restore(&after.stickies, now_ms);
        let found = |now_ms| -> Vec<Option<u32>> {
            let table = places(&after);
            let find = |client: &_| table.find(table.key_of_address(*client), now_ms);
            clients.iter().map(find).collect()
        };
        let expected: Vec<_> = [None, Some(0)].into_iter().cycle().take(20).collect();
        assert_eq!(found(now_ms), expected);
        // Expired entries are not restored, nor entries of an unknown table.
        let late_ms = now_ms + 365 * 24 * 3_600_000;
        let third = table("[ 127.0.0.1:2 ]");
        remembered[0].restore(&third.stickies, late_ms);
        assert_eq!(places(&third).entries(now_ms).count(), 0);
        let offloaded = TableContents { place: Default::default(), ..remembered[0].clone() };
        offloaded.restore(&third.stickies, now_ms);
        assert_eq!(places(&third).entries(now_ms).count(), 0);
    }
}

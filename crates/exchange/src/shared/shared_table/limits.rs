//! Limits that all workers share: one for all requests, or one for each client.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use weir_core::limit::{Admission, Rate, admit, forgotten_us, room};

use super::{Losses, SharedTable, VALUE_MAX};

/// The used part of a limit for all clients. The rate is in the snapshot, so that a reload continues with the used
/// part.
#[derive(Debug, Default)]
pub struct SharedLimit(AtomicU64);

impl SharedLimit {
    /// Decides about a request at this time, and counts it. No other memory depends on the word, so it needs
    /// no ordering.
    pub fn admit(&self, rate: &Rate, now_us: u64) -> Admission {
        let mut seen = self.0.load(Relaxed);
        loop {
            let admission = admit(seen, now_us, rate);
            let Some(word) = admission.word() else {
                return admission;
            };
            match self.0.compare_exchange_weak(seen, word, Relaxed, Relaxed) {
                Ok(_) => return admission,
                Err(now) => seen = now,
            }
        }
    }
}

impl SharedLimit {
    /// The number of requests that would pass at once now. Counts nothing.
    pub fn room(&self, rate: &Rate, now_us: u64) -> u64 {
        room(self.0.load(Relaxed), now_us, rate)
    }

    /// A copy with the same use.
    pub fn copied(&self) -> Self {
        Self(AtomicU64::new(self.0.load(Relaxed)))
    }
}

/// A limit per client, on a rate or on simultaneous requests or connections. The limit itself is in the snapshot; one
/// table serves one kind.
#[derive(Debug)]
pub struct KeyedLimit {
    table: SharedTable,
    entries_max: u32,
}

/// A table's word for zero concurrent requests; such an entry has expired.
const NONE_AT_A_TIME: u64 = 1;

/// Clients with open requests are kept, whatever the time is.
fn ends_at_none(word: u64) -> u64 {
    if word == NONE_AT_A_TIME { 0 } else { u64::MAX }
}

impl KeyedLimit {
    /// A limit on rates for this many clients (see [`SharedTable::new`]) within the time of a burst. A client whose
    /// full burst is available again is dropped.
    pub fn on_rates(entries_max: u32) -> Self {
        Self { table: SharedTable::new(entries_max, forgotten_us), entries_max }
    }

    /// A limit on simultaneous requests or connections, with room for this many clients.
    pub fn at_a_time(entries_max: u32) -> Self {
        Self { table: SharedTable::new(entries_max, ends_at_none), entries_max }
    }

    /// The maximum number of clients.
    pub fn entries_max(&self) -> u32 {
        self.entries_max
    }

    /// Judges and counts a request at this time from the client with this hash, whose key is secret.
    ///
    /// A client whose entry was displaced by another one (see [`Losses`]) begins with a full burst.
    pub fn admit(&self, client: u64, rate: &Rate, now_us: u64) -> Admission {
        let mut admission = Admission::Refuse { retry_after_us: 0 };
        self.table.update_with(client, now_us, |word| {
            admission = admit(word.unwrap_or(0), now_us, rate);
            admission.word()
        });
        admission
    }

    /// Takes one of the client's places, if the client has fewer than `max`. It must be returned with [`Self::leave`].
    pub fn enter(&self, client: u64, max: u32) -> bool {
        let mut entered = false;
        self.table.update_with(client, 0, |word| {
            let word = word.unwrap_or(NONE_AT_A_TIME);
            entered = word - NONE_AT_A_TIME < u64::from(max) && word < VALUE_MAX;
            entered.then_some(word + 1)
        });
        entered
    }

    /// Returns a place. If the entry was displaced by another one, the place is gone already.
    pub fn leave(&self, client: u64) {
        self.table.update_with(client, 0, |word| word.map(|word| word - 1));
    }

    /// The number of requests of the client that would pass a rate limit at once now. Counts nothing.
    pub fn room(&self, client: u64, rate: &Rate, now_us: u64) -> u64 {
        room(self.table.find(client, now_us).unwrap_or(0), now_us, rate)
    }

    /// The number of the client's places.
    pub fn entered(&self, client: u64) -> u64 {
        self.table.find(client, 0).map_or(0, |word| word - NONE_AT_A_TIME)
    }

    /// A copy with the same clients. `now_us`: 0 for a limit on concurrent requests.
    pub fn copied(&self, now_us: u64) -> Self {
        Self { table: self.table.copied(now_us), entries_max: self.entries_max }
    }

    /// Takes over the clients of this limit from before a reload, even with another size and rate.
    pub fn take_over(&self, old: &Self, now_us: u64) {
        old.table.carry_over(&self.table, now_us, Some);
    }

    /// The number of clients known now. Reads the whole table.
    pub fn clients(&self, now_us: u64) -> usize {
        self.table.live(now_us).count()
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

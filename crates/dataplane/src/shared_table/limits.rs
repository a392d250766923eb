//! Rate limits that all workers share: one for all requests, or one for each client.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use weir_core::limit::{Admission, Rate, admit, forgotten_us};

use super::{Losses, SharedTable};

/// One limit for all: how much of it is used. The rate is the snapshot's, so that a reload goes on from
/// where it is.
#[derive(Debug, Default)]
pub struct SharedLimit(AtomicU64);

impl SharedLimit {
    /// Judges and counts a request that comes now. No other memory depends on the word, so it needs
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

/// One limit for each client. Who was silent for so long that its burst is whole again is forgotten.
#[derive(Debug)]
pub struct KeyedLimit {
    table: SharedTable,
    rate: Rate,
}

impl KeyedLimit {
    /// A limit with room for this many clients (see [`SharedTable::new`]) that come within the time of
    /// a burst.
    pub fn new(clients: u32, rate: Rate) -> Self {
        Self { table: SharedTable::new(clients, forgotten_us), rate }
    }

    /// Judges and counts a request that comes now from the client with this hash (by a key that it
    /// does not know).
    ///
    /// A client whose entry gave way to another's (see [`Losses`]) starts anew.
    pub fn admit(&self, client: u64, now_us: u64) -> Admission {
        let mut admission = Admission::Refuse { retry_after_us: 0 };
        self.table.update_with(client, now_us, |word| {
            admission = admit(word.unwrap_or(0), now_us, &self.rate);
            admission.word()
        });
        admission
    }

    /// Takes over the clients of the limit before a reload, whatever its size and rate.
    pub fn take_over(&self, old: &Self, now_us: u64) {
        old.table.carry_over(&self.table, now_us, Some);
    }

    /// How many clients are known now. It reads the whole table.
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

//! A table of fixed size that all workers read and write without locks. It maps a 64-bit hash to a 56-bit value that
//! contains its expiry.
//!
//! Its users are persistence by source address ([`SourceTable`]) and rate limits per client
//! ([`KeyedLimit`]).
//!
//! # Shape
//! Slots of 16 bytes, four to a bucket, which is a cache line. A hash has two possible buckets (Azar et al., "Balanced
//! allocations", 1994); a new entry goes to the emptier one. There are two and a half times as many slots as entries
//! asked for: when the table is full, a new entry finds both its buckets full of live entries three times in a million
//! (by the paper's differential equations). Then the entry that expires first is replaced, which is counted. An expired
//! entry counts as free. The key itself is not kept: two clients are one when all 64 bits of a hash by a secret key
//! agree.
//!
//! # Words
//! A slot is a `hash` and a `word`; the word is a generation (8 bits) and a value (56 bits):
//!
//! | value | the slot is |
//! |---|---|
//! | 0 | free; its hash means nothing |
//! | all ones | being given to a new entry, by one thread; its hash means nothing |
//! | other | an entry's, whose hash is `hash` |
//!
//! # Protocol
//! - **Giving a slot away**: compare-and-swap its word from what was seen to (next generation, all
//!   ones); whoever succeeds has it alone. Then store the hash (release), then the word with the
//!   value (release). A thread that is stopped in between keeps one slot out of use, no more.
//! - **Looking up**: load the word (acquire), the hash (acquire), the word again. It is the entry's if
//!   the hash fits and both words are values of one generation.
//! - **Changing a value**: compare-and-swap the word that was looked up.
//!
//! *Why a value is never taken for another entry's.* Let the first load see generation g. It
//! synchronises with the store that published g (compare-and-swaps that followed continue its release
//! sequence), so the hash that is seen next is that of g or a later one. If it is that of a later
//! generation h, the acquire load synchronises with its release store, which comes after the
//! compare-and-swap to h: so the second load sees h or later, and the generations differ. A change
//! fails for the same reason once the slot was given away, since the generation is part of the word.
//! Generations repeat after 256: a reader would have to be stopped between two loads for exactly a
//! multiple of 256 hand-overs of that very slot; a writer would moreover have to find the same value.
//!
//! *Two threads that add the same hash at once* must not make two entries. A thread that has got a slot passes a
//! sequentially consistent fence and looks through both buckets: of two, at least one sees that the other has a slot as
//! well, hands its own back and looks again. A thread waits for a slot that another thread is giving away, but only
//! briefly (`WAITS_MAX`): that thread may have been stopped. Then there can be two entries for as long as it takes to
//! look through both buckets once more after publishing, after which the thread that sees the other's entry frees its
//! own; a third thread that used that entry loses its change.

mod limits;
mod sources;

use std::hint::spin_loop;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
    fence,
};

pub use limits::{KeyedLimit, SharedLimit};
pub use sources::SourceTable;

impl Losses {
    /// The sum of both: clients that were dropped early, or never stored.
    pub fn total(self) -> u64 {
        self.displaced + self.unplaced
    }
}

/// Largest value that a slot can hold; the smallest is 1.
pub const VALUE_MAX: u64 = BEING_GIVEN - 1;

/// Maximum number of entries of a table; it then uses 640 MiB.
pub const ENTRIES_MAX: u32 = 1 << 24;

/// Bytes of a slot; a table has five slots for every two entries.
pub const SLOT_BYTES: usize = size_of::<Slot>();

const SLOTS_PER_BUCKET: usize = 4;
const SLOTS_PER_TWO_ENTRIES: usize = 5;

/// Minimum number of buckets. With fewer, both buckets of a hash are often full.
const BUCKETS_MIN: usize = 16;

const VALUE_BITS: u32 = 56;
const FREE: u64 = 0;
const BEING_GIVEN: u64 = (1 << VALUE_BITS) - 1;

/// How often a thread looks again while another is making an entry where its own may be: some
/// microseconds, a hundred times as long as that takes a thread that is not stopped.
const WAITS_MAX: u32 = 64;

/// How often a thread tries again after other threads have taken all possible slots. Then it gives up without an entry.
const GIVE_TRIES_MAX: u32 = 16;

#[derive(Debug, Default)]
struct Slot {
    hash: AtomicU64,
    word: AtomicU64,
}

#[derive(Debug, Default)]
#[repr(align(64))]
struct Bucket([Slot; SLOTS_PER_BUCKET]);

const _: () = assert!(size_of::<Bucket>() == SLOTS_PER_BUCKET * SLOT_BYTES && SLOT_BYTES == 16);

/// A table of fixed size without locks; see the module.
#[derive(Debug)]
pub struct SharedTable {
    buckets: Box<[Bucket]>,
    /// Returns when a value expires, in the unit of the caller's clock.
    ends: fn(u64) -> u64,
    /// Live entries that were displaced by others.
    displaced: AtomicU64,
    /// Entries that were not stored, because other threads took every slot.
    unplaced: AtomicU64,
}

/// Losses because the table was full; both stay 0 in a table that is large enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Losses {
    /// Live entries that were displaced by others.
    pub displaced: u64,
    /// Entries that were not stored.
    pub unplaced: u64,
}

/// A slot that can be given to a new entry.
struct Candidate<'a> {
    slot: &'a Slot,
    /// The word that was read.
    word: u64,
    /// Whether it holds an entry that has not expired.
    is_live: bool,
}

fn value_of(word: u64) -> u64 {
    word & BEING_GIVEN
}

fn is_entry(word: u64) -> bool {
    !matches!(value_of(word), FREE | BEING_GIVEN)
}

/// `word` with another value, in the same generation.
fn with_value(word: u64, value: u64) -> u64 {
    word & !BEING_GIVEN | value
}

/// The first `word` of the next generation: its slot is being given away.
fn next_generation(word: u64) -> u64 {
    word.wrapping_add(1 << VALUE_BITS) | BEING_GIVEN
}

fn same_generation(one: u64, other: u64) -> bool {
    (one ^ other) >> VALUE_BITS == 0
}

impl Slot {
    /// The word of the entry with this hash, if the slot has it.
    #[inline]
    fn entry(&self, hash: u64) -> Option<u64> {
        if self.hash.load(Relaxed) != hash {
            return None;
        }
        let (found, word) = self.read()?;
        (found == hash).then_some(word)
    }

    /// Hash and word of the entry in the slot; `None`: the slot has no entry.
    #[inline]
    fn read(&self) -> Option<(u64, u64)> {
        let before = self.word.load(Acquire);
        let hash = self.hash.load(Acquire);
        let word = self.word.load(Relaxed);
        let is_one = is_entry(before) && is_entry(word) && same_generation(before, word);
        is_one.then_some((hash, word))
    }

    fn is_being_given(&self) -> bool {
        value_of(self.word.load(Relaxed)) == BEING_GIVEN
    }

    fn change(&self, seen: u64, word: u64) -> bool {
        self.word.compare_exchange(seen, word, AcqRel, Relaxed).is_ok()
    }

    /// Frees the slot if it still holds the entry that was seen, even with another value.
    fn free(&self, mut seen: u64) {
        let generation = seen;
        while is_entry(seen) && same_generation(generation, seen) {
            let free = with_value(seen, FREE);
            match self.word.compare_exchange_weak(seen, free, AcqRel, Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }
}

impl SharedTable {
    /// A table for this many entries, at most [`ENTRIES_MAX`].
    ///
    /// `ends` returns when a value (1 to [`VALUE_MAX`]) expires, in the unit of every `now` below; it must
    /// be pure. Memory: 40 bytes per entry, at least 1 KiB; it never grows.
    pub fn new(entries: u32, ends: fn(u64) -> u64) -> Self {
        let slots = (entries.min(ENTRIES_MAX) as usize * SLOTS_PER_TWO_ENTRIES).div_ceil(2);
        let buckets = slots.div_ceil(SLOTS_PER_BUCKET).max(BUCKETS_MIN);
        Self {
            buckets: (0..buckets).map(|_| Bucket::default()).collect(),
            ends,
            displaced: AtomicU64::new(0),
            unplaced: AtomicU64::new(0),
        }
    }

    /// The size of the slots in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.buckets)
    }

    /// Losses because the table was full, so far.
    pub fn losses(&self) -> Losses {
        Losses { displaced: self.displaced.load(Relaxed), unplaced: self.unplaced.load(Relaxed) }
    }

    /// The value of the entry with this hash; `None`: there is none, or it has expired.
    #[inline]
    pub fn find(&self, hash: u64, now: u64) -> Option<u64> {
        let value = value_of(self.locate(hash)?.1);
        ((self.ends)(value) > now).then_some(value)
    }

    /// Sets the value of the entry with this hash, and creates the entry if there is none.
    pub fn insert(&self, hash: u64, value: u64, now: u64) {
        self.update_with(hash, now, |_| Some(value));
    }

    /// Replaces the value of the entry with this hash by `next` of it; of `None` if there is no entry or it has
    /// expired. If `next` returns `None`, the entry stays unchanged.
    ///
    /// `next` is called again if another thread was faster. The result of the last call counts, and is then in the
    /// table (except [`Losses::unplaced`]).
    #[inline]
    pub fn update_with(
        &self,
        hash: u64,
        now: u64,
        mut next: impl FnMut(Option<u64>) -> Option<u64>,
    ) {
        for attempt in 0..WAITS_MAX + GIVE_TRIES_MAX {
            while let Some((slot, seen)) = self.locate(hash) {
                let value = value_of(seen);
                let live = (self.ends)(value) > now;
                let Some(new) = next(live.then_some(value)) else {
                    return;
                };
                if new == value || slot.change(seen, with_value(seen, checked(new))) {
                    return;
                }
            }
            // The slot that is being given away may be for this very entry.
            let patient = attempt < WAITS_MAX;
            if patient && self.places(hash).any(Slot::is_being_given) {
                spin_loop();
                continue;
            }
            let Some(value) = next(None) else {
                return;
            };
            if self.add(hash, checked(value), now, patient) {
                return;
            }
        }
        self.unplaced.fetch_add(1, Relaxed);
    }

    /// Live entries with their hashes. Concurrent changes may be missing.
    pub fn live(&self, now: u64) -> impl Iterator<Item = (u64, u64)> {
        let slots = self.buckets.iter().flat_map(|bucket| &bucket.0);
        let entries = slots.filter_map(Slot::read).map(|(hash, word)| (hash, value_of(word)));
        entries.filter(move |&(_, value)| (self.ends)(value) > now)
    }

    /// Copies every live entry into `new`, which may have another size, with the value mapped by `map` (`None`: the
    /// entry is left out). For a reload; changes by workers during or after the copy may be missing in `new`. `new`
    /// continues the loss counters.
    pub fn carry_over(&self, new: &Self, now: u64, mut map: impl FnMut(u64) -> Option<u64>) {
        let Losses { displaced, unplaced } = self.losses();
        new.displaced.fetch_add(displaced, Relaxed);
        new.unplaced.fetch_add(unplaced, Relaxed);
        for (hash, value) in self.live(now) {
            if let Some(value) = map(value) {
                new.insert(hash, value, now);
            }
        }
    }

    /// Another table with the same live entries, as large as those need it to be.
    pub fn copied(&self, now: u64) -> Self {
        let entries = self.live(now).count().min(ENTRIES_MAX as usize);
        let copy = Self::new(entries as u32, self.ends);
        self.carry_over(&copy, now, Some);
        copy
    }

    /// The slots where an entry with this hash can be, in the order of look-ups.
    #[inline]
    fn places(&self, hash: u64) -> impl Iterator<Item = &Slot> {
        let [first, second] = self.buckets_of(hash);
        first.0.iter().chain(&second.0)
    }

    /// Two different buckets.
    #[inline]
    fn buckets_of(&self, hash: u64) -> [&Bucket; 2] {
        // The fractional part of the golden ratio: makes the other bucket depend on all bits.
        const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
        let count = self.buckets.len();
        let scaled = |hash: u64| ((u128::from(hash) * count as u128) >> 64) as usize;
        let first = scaled(hash);
        let mixed = (hash ^ (hash >> 32)).wrapping_mul(MIX);
        let second = scaled(mixed);
        let second = if second == first { (first + 1) % count } else { second };
        [&self.buckets[first], &self.buckets[second]]
    }

    /// The slot of the entry with this hash, and its word.
    #[inline]
    fn locate(&self, hash: u64) -> Option<(&Slot, u64)> {
        self.places(hash).find_map(|slot| Some((slot, slot.entry(hash)?)))
    }

    /// Creates an entry. Returns false if another thread was faster, in taking the slot or in creating the
    /// same entry (without `patient`: in publishing it); then the caller looks again.
    #[cold]
    fn add(&self, hash: u64, value: u64, now: u64, patient: bool) -> bool {
        let Some(Candidate { slot, word, is_live }) = self.candidate(hash, now) else {
            return false;
        };
        let given = next_generation(word);
        if !slot.change(word, given) {
            return false;
        }
        if is_live {
            self.displaced.fetch_add(1, Relaxed);
        }
        if self.has_rival(hash, slot, patient) {
            slot.word.store(with_value(given, FREE), Release);
            return false;
        }
        let word = with_value(given, value);
        slot.hash.store(hash, Release);
        slot.word.store(word, Release);
        if self.has_rival(hash, slot, false) {
            slot.free(word);
            return false;
        }
        true
    }

    /// Whether a slot other than `ours` holds an entry with this hash; or, with `given_counts`, is being given to an
    /// entry that may have it.
    fn has_rival(&self, hash: u64, ours: &Slot, given_counts: bool) -> bool {
        fence(SeqCst);
        self.places(hash).any(|other| {
            !std::ptr::eq(ours, other)
                && (other.entry(hash).is_some() || given_counts && other.is_being_given())
        })
    }

    /// The slot for a new entry: a free one in the bucket with more free slots, else the slot whose entry expires
    /// first. `None`: all slots are being given away at the moment.
    fn candidate(&self, hash: u64, now: u64) -> Option<Candidate<'_>> {
        let mut reusable: Option<Candidate<'_>> = None;
        let mut reusable_most = 0;
        let mut ending: Option<(u64, Candidate<'_>)> = None;
        for bucket in self.buckets_of(hash) {
            let mut reusable_count = 0;
            let mut first = None;
            for slot in &bucket.0 {
                let word = slot.word.load(Acquire);
                if value_of(word) == BEING_GIVEN {
                    continue;
                }
                let end = if is_entry(word) { (self.ends)(value_of(word)) } else { 0 };
                let is_live = end > now;
                if !is_live {
                    reusable_count += 1;
                    first = first.or(Some(Candidate { slot, word, is_live }));
                } else if ending.as_ref().is_none_or(|(earliest, _)| end < *earliest) {
                    ending = Some((end, Candidate { slot, word, is_live }));
                }
            }
            if reusable_count > reusable_most {
                (reusable, reusable_most) = (first, reusable_count);
            }
        }
        reusable.or(ending.map(|(_, candidate)| candidate))
    }
}

/// A value that a slot can hold.
fn checked(value: u64) -> u64 {
    debug_assert!((1..=VALUE_MAX).contains(&value), "{value:#x}");
    value.clamp(1, VALUE_MAX)
}

#[cfg(test)]
mod tests;

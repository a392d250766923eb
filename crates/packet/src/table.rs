//! The table of flows in memory that programs and user space share (`bpf/table.h`): programs enter flows, user space
//! reads and removes them.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::batch::Place;
use crate::error::{Error, kernel};
use crate::layout::{self, FlowEntry, FlowKey};
use crate::shared::SharedArray;

/// `BUCKET_PLACES`.
const BUCKET_PLACES: u32 = 8;

/// Words of a `struct place`: a key and a value.
const PLACE_WORDS: usize =
    (size_of::<layout::FlowKeyBytes>() + size_of::<layout::FlowBytes>()) / size_of::<u64>();
/// Words of a `struct bucket`.
const BUCKET_WORDS: usize = BUCKET_PLACES as usize * PLACE_WORDS;
const KEY_WORDS: usize = size_of::<layout::FlowKeyBytes>() / size_of::<u64>();

/// The word of a place that tells whether it is ready: `LAST_WORD`.
const LAST_WORD: usize = 4;
const PLACE_READY: u64 = 1 << 40;
const PLACE_GENERATION: u64 = 1 << 48;

/// Words of `struct table`.
const TABLE_WORDS: usize = 16;
const HASH_KEY: [usize; 2] = [0, 1];
const SIZES: usize = 2;
const ENTRIES: usize = 8;

/// Maximum number of entries for this number of flows: each has two.
const fn entries_of(flows_max: u32) -> u32 {
    flows_max.saturating_mul(2)
}

/// Buckets for this number of flows. A third of the places stays free when all flows exist, so that nearly each new key
/// finds a place in one of its two buckets: with random keys, about one of 2,000 finds none in a full table, and none fails
/// while a quarter of the flows is unused.
pub const fn buckets_of(flows_max: u32) -> u32 {
    let places = entries_of(flows_max) as u64 * 3 / 2;
    places.div_ceil(BUCKET_PLACES as u64) as u32 + 1
}

/// The table of flows.
pub struct FlowTable {
    places: SharedArray,
    /// A byte for each place of a bucket; 0: it is free.
    tags: SharedArray,
    table: SharedArray,
    hash_key: [u64; 2],
    buckets: u32,
}

/// A part of the table.
#[derive(Debug, Default)]
pub struct Part {
    pub entries: Vec<(FlowKey, FlowEntry)>,
    /// Wanted places with a tag and without an entry. That lasts for less than a microsecond, unless a process was killed.
    pub halved: Vec<TagWithoutEntry>,
    /// The number of entries, and of buckets, which take about as long.
    pub examined: u32,
    /// The position where the walk continues; `None`: this was the last part.
    pub next: Option<Place>,
}

impl FlowTable {
    /// The table in the maps `flows`, `flow_tags` and `table`. A new one gets a random key for its hash.
    pub fn open(maps: [BorrowedFd<'_>; 3], flows_max: u32) -> Result<Self, Error> {
        let buckets = buckets_of(flows_max);
        let words = [buckets as usize * BUCKET_WORDS, buckets as usize, TABLE_WORDS];
        let map = |at: usize| {
            SharedArray::map(maps[at], words[at] * size_of::<u64>())
                .map_err(|error| kernel("mapping the flow table", error.to_string()))
        };
        let (places, tags, table) = (map(0)?, map(1)?, map(2)?);
        let words = table.words();
        // The sizes are written last.
        if words[SIZES].load(Ordering::Acquire) == 0 {
            for at in HASH_KEY {
                words[at].store(random()?, Ordering::Relaxed);
            }
        }
        // Two halves of a word, in the order of this machine. Some numbers of flows have the same number of buckets.
        let mut sizes = [0; 8];
        sizes[..4].copy_from_slice(&buckets.to_ne_bytes());
        sizes[4..].copy_from_slice(&entries_of(flows_max).to_ne_bytes());
        words[SIZES].store(u64::from_ne_bytes(sizes), Ordering::Release);
        let hash_key = HASH_KEY.map(|at| words[at].load(Ordering::Relaxed));
        Ok(Self { places, tags, table, hash_key, buckets })
    }

    /// The entry of a key.
    pub fn find(&self, key: &FlowKey) -> Option<FlowEntry> {
        self.place_of(key).map(|found| found.entry)
    }

    /// Removes the entry of a key if it is still the same one. Returns whether it was: packets may begin another flow under its
    /// key at any time, which is kept.
    pub fn remove(&self, key: &FlowKey, is_it: impl FnOnce(&FlowEntry) -> bool) -> bool {
        let Some(found) = self.place_of(key).filter(|found| is_it(&found.entry)) else {
            return false;
        };
        let free = found.word & !PLACE_READY;
        let last = &self.place(found.number)[LAST_WORD];
        let freed = last.compare_exchange(found.word, free, Ordering::AcqRel, Ordering::Relaxed);
        if freed.is_ok() {
            self.clear_tag(found.number);
        }
        freed.is_ok()
    }

    fn clear_tag(&self, number: u32) {
        let (bucket, shift) = tag_at(number);
        self.tags.words()[bucket].fetch_and(!(0xff << shift), Ordering::Release);
        self.table.words()[ENTRIES].fetch_sub(1, Ordering::Relaxed);
    }

    /// Frees a place that a process had half removed when it was killed. A program that fills it at this moment finds that
    /// the last word has changed, and gives up.
    pub fn free(&self, halved: TagWithoutEntry) {
        let last = &self.place(halved.number)[LAST_WORD];
        let next = halved.word.wrapping_add(PLACE_GENERATION);
        let freed = last.compare_exchange(halved.word, next, Ordering::AcqRel, Ordering::Relaxed);
        if freed.is_ok() {
            self.clear_tag(halved.number);
        }
    }

    /// A place with a tag and without an entry.
    fn halved(&self, number: u32) -> Option<TagWithoutEntry> {
        let has_tag = self.tag(number) != 0;
        let word = self.place(number)[LAST_WORD].load(Ordering::Acquire);
        (has_tag && word & PLACE_READY == 0).then_some(TagWithoutEntry { number, word })
    }

    /// Looks at the entries of so many buckets from a position on, and reads those that are wanted.
    pub fn read(
        &self,
        from: Option<Place>,
        buckets: u32,
        mut is_wanted: impl FnMut(&DueFacts) -> bool,
    ) -> Part {
        let first = from.unwrap_or_default().min(self.buckets);
        let end = first.saturating_add(buckets).min(self.buckets);
        let mut part = Part { next: (end < self.buckets).then_some(end), ..Part::default() };
        for bucket in first..end {
            let tags = self.tags.words()[bucket as usize].load(Ordering::Relaxed);
            for number in bucket * BUCKET_PLACES..(bucket + 1) * BUCKET_PLACES {
                if tags >> tag_at(number).1 & 0xff == 0 {
                    continue;
                }
                part.examined += 1;
                if !is_wanted(&glance(self.place(number))) {
                    continue;
                }
                match self.held(number) {
                    Some(held) => part.entries.push((held.key, held.entry)),
                    None => part.halved.extend(self.halved(number)),
                }
            }
        }
        part.examined += end - first;
        part
    }

    /// Enters what a program would enter.
    #[cfg(test)]
    pub fn insert(&self, key: &FlowKey, value: &layout::FlowBytes) {
        let words = words_of(&key.encode());
        let hash = hash(self.hash_key, &words);
        let is_free = |number: &u32| self.tag(*number) == 0;
        let number = self.numbers(hash).find(is_free).expect("a free place");
        let (bucket, shift) = tag_at(number);
        self.tags.words()[bucket].fetch_or(tag_of(hash) << shift, Ordering::Relaxed);
        let place = self.place(number);
        let generation = place[LAST_WORD].load(Ordering::Relaxed) & !(PLACE_GENERATION - 1);
        for (to, word) in place.iter().zip(&words[..LAST_WORD]) {
            to.store(*word, Ordering::Relaxed);
        }
        for (to, bytes) in place[KEY_WORDS..].iter().zip(value.chunks_exact(size_of::<u64>())) {
            to.store(u64::from_ne_bytes(layout::at(bytes, 0)), Ordering::Relaxed);
        }
        let last = generation.wrapping_add(PLACE_GENERATION) | words[LAST_WORD] | PLACE_READY;
        place[LAST_WORD].store(last, Ordering::Release);
        self.table.words()[ENTRIES].fetch_add(1, Ordering::Relaxed);
    }

    /// The number of the place that programs enter a key in if all places are free.
    #[cfg(test)]
    pub fn first_place_of(&self, key: &FlowKey) -> u32 {
        let hash = hash(self.hash_key, &words_of(&key.encode()));
        let first = self.numbers(hash).next().expect("a place");
        first + (hash >> 32) as u32 % BUCKET_PLACES
    }

    /// The first step of a removal.
    #[cfg(test)]
    pub fn remove_half(&self, key: &FlowKey) {
        let held = self.place_of(key).expect("an entry");
        self.place(held.number)[LAST_WORD].fetch_and(!PLACE_READY, Ordering::Relaxed);
    }

    /// The number of buckets with tags.
    #[cfg(test)]
    pub fn tags_set(&self) -> usize {
        self.tags.words().iter().filter(|tags| tags.load(Ordering::Relaxed) != 0).count()
    }

    fn place(&self, number: u32) -> &[AtomicU64] {
        let at = number as usize * PLACE_WORDS;
        &self.places.words()[at..at + PLACE_WORDS]
    }

    /// The numbers of the places that may have the key with this hash.
    fn numbers(&self, hash: u64) -> impl Iterator<Item = u32> {
        let buckets = u64::from(self.buckets);
        let first = move |half: u32| ((u64::from(half) * buckets) >> 32) as u32 * BUCKET_PLACES;
        let halves = [hash as u32, (hash >> 32) as u32];
        halves.into_iter().map(first).flat_map(|first| first..first + BUCKET_PLACES)
    }

    fn place_of(&self, key: &FlowKey) -> Option<ReadEntry> {
        let hash = hash(self.hash_key, &words_of(&key.encode()));
        let has_tag = |number: &u32| self.tag(*number) == tag_of(hash);
        let numbers = self.numbers(hash).filter(has_tag);
        numbers.filter_map(|number| self.held(number)).find(|held| held.key == *key)
    }

    /// The tag of a place; 0: it is free.
    fn tag(&self, number: u32) -> u64 {
        let (bucket, shift) = tag_at(number);
        self.tags.words()[bucket].load(Ordering::Acquire) >> shift & 0xff
    }

    /// The entry of a place; `None`: it has none, or it changes right now.
    fn held(&self, number: u32) -> Option<ReadEntry> {
        let place = self.place(number);
        let word = place[LAST_WORD].load(Ordering::Acquire);
        if word & PLACE_READY == 0 {
            return None;
        }
        let mut bytes = [0; PLACE_WORDS * size_of::<u64>()];
        for (to, from) in bytes.chunks_exact_mut(size_of::<u64>()).zip(place) {
            to.copy_from_slice(&from.load(Ordering::Relaxed).to_ne_bytes());
        }
        std::sync::atomic::fence(Ordering::Acquire);
        if place[LAST_WORD].load(Ordering::Relaxed) != word {
            return None;
        }
        let (key, value) = bytes.split_at(KEY_WORDS * size_of::<u64>());
        Some(ReadEntry { number, word, key: FlowKey::decode(key), entry: FlowEntry::decode(value) })
    }
}

/// A place with a tag and without an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TagWithoutEntry {
    number: u32,
    /// The last word of its key: another entry would have changed it.
    word: u64,
}

/// The tag of keys with this hash.
fn tag_of(hash: u64) -> u64 {
    (hash & 0xff).max(1)
}

/// The word of a place's tag, and the tag's first bit there.
fn tag_at(number: u32) -> (usize, u32) {
    ((number / BUCKET_PLACES) as usize, number % BUCKET_PLACES * 8)
}

/// The parts of an entry that tell whether it is due. They are in one line of cache: a sweep looks at millions.
#[derive(Debug, Clone, Copy)]
pub struct DueFacts {
    pub protocol: u8,
    pub member: u32,
    pub flags: u16,
    pub state: u8,
    pub acknowledged: u32,
    pub seen_ns: u64,
}

impl DueFacts {
    pub fn of(key: &FlowKey, entry: &FlowEntry) -> Self {
        Self {
            protocol: key.protocol,
            member: entry.member,
            flags: entry.flags,
            state: entry.state,
            acknowledged: entry.acknowledged,
            seen_ns: entry.seen_ns,
        }
    }

    pub fn is_reverse(&self) -> bool {
        self.flags & layout::FLOW_REVERSE != 0
    }
}

/// The words of a place with a member, flags, an acknowledged number and a time.
const MEMBER_WORD: usize = 9;
const FLAGS_WORD: usize = 10;
const ACKNOWLEDGED_WORD: usize = 11;
const SEEN_WORD: usize = 13;

/// A look at a place. The parts may be of two entries if a program changes it right now, and of a former one if it is half removed.
fn glance(place: &[AtomicU64]) -> DueFacts {
    let bytes = |number: usize| place[number].load(Ordering::Relaxed).to_ne_bytes();
    let flags = bytes(FLAGS_WORD);
    DueFacts {
        protocol: flags[7],
        member: u32::from_ne_bytes(layout::at(&bytes(MEMBER_WORD), 4)),
        flags: u16::from_ne_bytes([flags[0], flags[1]]),
        state: flags[6],
        acknowledged: u32::from_be_bytes(layout::at(&bytes(ACKNOWLEDGED_WORD), 0)),
        seen_ns: place[SEEN_WORD].load(Ordering::Relaxed),
    }
}

/// An entry, as it was read.
struct ReadEntry {
    /// The place.
    number: u32,
    /// The last word of its key.
    word: u64,
    key: FlowKey,
    entry: FlowEntry,
}

fn words_of(key: &layout::FlowKeyBytes) -> [u64; KEY_WORDS] {
    let mut words = [0; KEY_WORDS];
    for (word, bytes) in words.iter_mut().zip(key.chunks_exact(size_of::<u64>())) {
        *word = u64::from_ne_bytes(layout::at(bytes, 0));
    }
    words
}

fn random() -> Result<u64, Error> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| kernel("reading random bytes", error.to_string()))?;
    Ok(u64::from_ne_bytes(bytes))
}

/// `hash_key` of `bpf/table.h`: SipHash-1-3 of the words of a key.
fn hash(key: [u64; 2], words: &[u64; KEY_WORDS]) -> u64 {
    let mut v = [
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ];
    let mut absorb = |word: u64| {
        v[3] ^= word;
        round(&mut v);
        v[0] ^= word;
    };
    if words[0] | words[2] != 0 {
        words[..LAST_WORD].iter().for_each(|&word| absorb(word));
    } else {
        absorb(words[3] >> 32 << 32 | words[1] >> 32);
    }
    absorb(words[LAST_WORD]);
    v[2] ^= 0xff;
    (0..3).for_each(|_| round(&mut v));
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

fn round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[2] = v[2].rotate_left(32);
}

#[cfg(test)]
mod tests {
    use weir_testing::Random;

    use super::*;

    /// As many entries as flows need, and a third more of places.
    #[test]
    fn a_table_has_room_for_both_directions_of_each_flow() {
        for flows_max in [1, 7, 1_024, 262_144, crate::FLOWS_MAX] {
            let places = u64::from(buckets_of(flows_max)) * u64::from(BUCKET_PLACES);
            let entries = u64::from(entries_of(flows_max));
            assert!(
                (3 * entries / 2..3 * entries / 2 + 16).contains(&places),
                "{flows_max}: {places}"
            );
        }
    }

    /// `FREE_PLACES_MIN` of `bpf/table.h`.
    fn free_places_min() -> u32 {
        let text = include_str!("../bpf/table.h");
        let (_, rest) = text.split_once("#define FREE_PLACES_MIN ").expect("it is defined");
        rest.lines().next().and_then(|number| number.parse().ok()).expect("a number")
    }

    /// Free places of the buckets of a table that programs fill, with random keys.
    struct Filling {
        free: Vec<u32>,
        random: Random,
        free_places_min: u32,
    }

    impl Filling {
        /// The bucket for an entry.
        fn choose(&mut self) -> usize {
            let (hash, free) = (self.random.next(), &self.free);
            let bucket = |half: u32| ((u64::from(half) * free.len() as u64) >> 32) as usize;
            let (first, second) = (bucket(hash as u32), bucket((hash >> 32) as u32));
            let goes_on = free[first] < self.free_places_min && free[second] > free[first];
            if goes_on { second } else { first }
        }

        /// Enters a flow. Returns whether it was refused.
        fn enter(&mut self) -> bool {
            let refused = [(); 2].map(|()| {
                let chosen = self.choose();
                let is_full = self.free[chosen] == 0;
                self.free[chosen] = self.free[chosen].saturating_sub(1);
                is_full
            });
            refused.contains(&true)
        }

        /// The number of flows among 100,000 that would be refused.
        fn refused(&mut self) -> usize {
            let is_full = |filling: &mut Self| {
                let chosen = filling.choose();
                filling.free[chosen] == 0
            };
            (0..100_000).filter(|_| is_full(self) | is_full(self)).count()
        }
    }

    /// The figures of `docs/layer-4.md` and decision 0021.
    #[test]
    fn few_flows_are_refused_before_the_table_is_full() {
        const FLOWS_MAX: u32 = 262_144;
        for seed in 1..=3 {
            let free = vec![BUCKET_PLACES; buckets_of(FLOWS_MAX) as usize];
            let mut filling =
                Filling { free, random: Random::new(seed), free_places_min: free_places_min() };
            assert!(!(0..FLOWS_MAX / 4 * 3).any(|_| filling.enter()), "three quarters");
            let refused = (FLOWS_MAX / 4 * 3..FLOWS_MAX).filter(|_| filling.enter()).count();
            assert!((1..=50).contains(&refused), "of the last quarter: {refused}");
            let refused = filling.refused();
            assert!((40..=150).contains(&refused), "in a full table: {refused}");
        }
    }
}

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::thread;

use weir_core::keyed_hash::{KeyedHash, PrefixLengths};
use weir_core::limit::{Admission, Rate};
use weir_core::persistence::source::Timeout;

use super::*;

/// Threads of a test; more than cores, so that they are interrupted anywhere.
const THREADS: u64 = 4;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// The hash of key number `key`.
fn hash_of(key: u64) -> u64 {
    Random(key).next()
}

/// A value that holds its end in the upper 28 bits and a payload in the lower.
fn value(end: u64, payload: u64) -> u64 {
    end << 28 | payload
}

fn ends(value: u64) -> u64 {
    value >> 28
}

fn payload(value: u64) -> u64 {
    value & ((1 << 28) - 1)
}

/// Runs `work` on [`THREADS`] threads, each with its number.
fn on_threads(work: impl Fn(u64) + Sync) {
    thread::scope(|scope| {
        for number in 0..THREADS {
            let work = &work;
            scope.spawn(move || work(number));
        }
    });
}

#[test]
fn it_does_what_a_map_does() {
    for seed in 0..8 {
        let mut random = Random(seed);
        let keys = 1 + random.below(2_000);
        let table = SharedTable::new(keys as u32, ends);
        let mut model: HashMap<u64, u64> = HashMap::new();
        let mut now = 1;
        for _ in 0..20_000 {
            let hash = hash_of(random.below(keys));
            let known = model.get(&hash).copied().filter(|&value| ends(value) > now);
            let new = value(now + 1 + random.below(200), random.below(1 << 28));
            match random.below(4) {
                0 => assert_eq!(table.find(hash, now), known, "seed {seed}"),
                1 => {
                    table.insert(hash, new, now);
                    model.insert(hash, new);
                }
                2 => {
                    table.update_with(hash, now, |found| {
                        assert_eq!(found, known, "seed {seed}");
                        Some(found.map_or(new, |found| found + 1))
                    });
                    model.insert(hash, known.map_or(new, |known| known + 1));
                }
                _ => table.update_with(hash, now, |_| None),
            }
            now += random.below(2);
        }
        let mut live: Vec<_> = table.live(now).collect();
        let mut expected: Vec<_> =
            model.into_iter().filter(|&(_, value)| ends(value) > now).collect();
        live.sort_unstable();
        expected.sort_unstable();
        assert_eq!(live, expected, "seed {seed}");
        assert_eq!(table.losses(), Losses::default(), "seed {seed}");
    }
}

#[test]
fn as_many_entries_fit_as_were_asked_for() {
    for entries in [1, 2, 10, 100, 1_000, 100_000] {
        let table = SharedTable::new(entries, ends);
        assert!(table.bytes() <= (40 * entries as usize + 64).max(1_024));
        for key in 0..u64::from(entries) {
            table.insert(hash_of(key), value(10, key), 1);
        }
        let found = (0..u64::from(entries)).filter(|&key| table.find(hash_of(key), 1).is_some());
        let lost = entries as usize - found.count();
        // By calculation one in ten million.
        assert!(lost <= 1 && table.losses().displaced == lost as u64, "{lost} of {entries}");
        assert_eq!(table.live(1).count(), entries as usize - lost);
        assert_eq!(table.live(10).count(), 0);
    }
}

#[test]
fn ended_entries_make_room() {
    let table = SharedTable::new(1_000, ends);
    for round in 1..50 {
        for key in 0..1_000 {
            table.insert(hash_of(round << 32 | key), value(round + 1, key), round);
        }
        assert!(table.live(round).count() >= 999, "round {round}");
    }
    assert!(table.losses().displaced <= 3, "{:?}", table.losses());
}

#[test]
fn when_full_what_ends_first_gives_way() {
    let table = SharedTable::new(100, ends);
    let slots = table.bytes() / SLOT_BYTES;
    // Ends from 100 to 1,099 in random order.
    for key in 0..1_000 {
        table.insert(hash_of(key), value(100 + hash_of(!key) % 1_000, key), 1);
    }
    let live: Vec<u64> = table.live(1).map(|(_, value)| ends(value)).collect();
    assert!(live.len() <= slots && live.len() >= slots * 9 / 10, "{} of {slots}", live.len());
    assert_eq!(table.losses().displaced as usize, 1_000 - live.len());
    let mean = live.iter().sum::<u64>() / live.len() as u64;
    assert!(mean > 800, "mean end {mean}");
    assert_eq!(table.losses().unplaced, 0);
}

#[test]
fn a_slot_serves_more_entries_than_generations() {
    let table = SharedTable::new(1, ends);
    for key in 0..10_000 {
        let now = 1 + key;
        table.insert(hash_of(key), value(now + 1, 7), now);
        assert_eq!(table.find(hash_of(key), now), Some(value(now + 1, 7)));
        if key > 0 {
            assert_eq!(table.find(hash_of(key - 1), now), None);
        }
    }
}

#[test]
fn any_hash_will_do() {
    let table = SharedTable::new(10, ends);
    for hash in [0, 1, u64::MAX, 1 << 63] {
        assert_eq!(table.find(hash, 0), None);
        table.insert(hash, value(5, 1), 1);
        assert_eq!(table.find(hash, 1), Some(value(5, 1)));
        assert_eq!(table.find(hash, 5), None);
    }
    table.insert(7, VALUE_MAX, 1);
    assert_eq!(table.find(7, 1), Some(VALUE_MAX));
}

#[test]
fn entries_move_to_a_table_of_another_size() {
    for (from, to) in [(500, 2_000), (2_000, 500), (500, 500)] {
        let old = SharedTable::new(from, ends);
        for key in 0..500 {
            old.insert(hash_of(key), value(10 + key % 2, key), 1);
        }
        let new = SharedTable::new(to, ends);
        // The entries with even keys have expired; of the others, one in five is not copied.
        old.carry_over(&new, 10, |old| (!payload(old).is_multiple_of(5)).then(|| old + 1));
        for key in 0..500 {
            let stays = key % 2 == 1 && key % 5 != 0;
            let expected = stays.then(|| value(11, key + 1));
            assert_eq!(new.find(hash_of(key), 10), expected, "{from} to {to}: {key}");
        }
    }
}

/// Threads compete for a table that is far too small: every value that is found, or passed to be
/// changed, belongs to exactly that key.
#[test]
fn a_value_is_never_taken_for_another_entrys() {
    const KEYS: u64 = 200;
    let table = SharedTable::new(1, ends);
    let of_key = |key: u64, found: u64| payload(found) >> 8 == key;
    on_threads(|number| {
        let mut random = Random(number);
        for step in 0..150_000_u64 {
            let key = random.below(KEYS);
            // Some entries end at once, so that slots are reused both from ended and from live
            // entries.
            let now = 1 + step / 64;
            let new = value(now + random.below(3), key << 8 | random.below(256));
            if random.below(3) == 0 {
                let found = table.find(hash_of(key), now);
                assert!(found.is_none_or(|found| of_key(key, found)), "{key}: {found:?}");
            } else {
                table.update_with(hash_of(key), now, |found| {
                    assert!(found.is_none_or(|found| of_key(key, found)), "{key}: {found:?}");
                    Some(new)
                });
            }
        }
    });
    for (hash, found) in table.live(0) {
        assert_eq!(hash, hash_of(payload(found) >> 8));
    }
}

#[test]
fn no_change_of_an_entry_is_lost() {
    const KEYS: u64 = 16;
    const ROUNDS: u64 = 40_000;
    let table = SharedTable::new(64, ends);
    for key in 0..KEYS {
        table.insert(hash_of(key), value(9, 0), 1);
    }
    on_threads(|number| {
        for round in 0..ROUNDS {
            let key = (round + number) % KEYS;
            table.update_with(hash_of(key), 1, |found| Some(found.expect("it is there") + 1));
        }
    });
    let total: u64 = table.live(1).map(|(_, value)| payload(value)).sum();
    assert_eq!(total, THREADS * ROUNDS);
}

/// Threads that add the same entries at the same moment end up with one of each, and lose almost
/// none of their counts.
#[test]
fn threads_that_add_the_same_entry_share_it() {
    const KEYS: u64 = 4_000;
    const CHANGES: u64 = 3;
    let table = SharedTable::new(KEYS as u32, ends);
    let go = AtomicBool::new(false);
    on_threads(|number| {
        if number == 0 {
            go.store(true, Release);
        }
        while !go.load(Acquire) {
            thread::yield_now();
        }
        for key in 0..KEYS {
            for _ in 0..CHANGES {
                table.update_with(hash_of(key), 1, |found| {
                    Some(found.map_or(value(9, 1), |found| found + 1))
                });
            }
        }
    });
    let live: Vec<_> = table.live(1).collect();
    assert_eq!(live.len(), KEYS as usize, "each once");
    let total: u64 = live.iter().map(|(_, value)| payload(*value)).sum();
    let asked = KEYS * THREADS * CHANGES;
    assert!(total <= asked && total >= asked - asked / 1_000, "{total} of {asked}");
    assert_eq!(table.losses(), Losses::default());
}

#[test]
fn sources_keep_their_member() {
    let hash = KeyedHash::new([1; 16]);
    let prefix = PrefixLengths { v4: 24, v6: 64 };
    let sources = SourceTable::new(1_000, hash, prefix, Timeout::new(180_000));
    let ip = |text: &str| sources.key_of_address(text.parse().unwrap());
    assert_eq!(sources.find(ip("192.0.2.1"), 1_000), None);
    sources.remember(ip("192.0.2.1"), 3, 1_000);
    sources.remember(ip("2001:db8::1"), 4, 1_000);
    assert_eq!(sources.find(ip("192.0.2.200"), 2_000), Some(3));
    assert_eq!(sources.find(ip("192.0.3.1"), 2_000), None);
    assert_eq!(sources.find(ip("2001:db8::ffff"), 2_000), Some(4));
    // A request every two minutes keeps it; silence for longer than the timeout and an eighth of it
    // ends it.
    for minute in (2..100).step_by(2) {
        assert_eq!(sources.find(ip("192.0.2.1"), minute * 60_000), Some(3), "minute {minute}");
    }
    assert_eq!(sources.clients(98 * 60_000), 1);
    assert_eq!(sources.find(ip("192.0.2.1"), 102 * 60_000), None);
    // Moved to another member, it stays there.
    sources.remember(ip("192.0.2.1"), 3, 102 * 60_000);
    sources.remember(ip("192.0.2.1"), 5, 102 * 60_000);
    assert_eq!(sources.find(ip("192.0.2.1"), 102 * 60_000), Some(5));
    let larger = SourceTable::new(5_000, hash, prefix, Timeout::new(180_000));
    sources.remember(ip("198.51.100.1"), 6, 102 * 60_000);
    larger.take_over(&sources, 102 * 60_000, |member| (member == 5).then_some(1));
    assert_eq!(larger.find(ip("192.0.2.1"), 103 * 60_000), Some(1));
    assert_eq!(larger.find(ip("198.51.100.1"), 103 * 60_000), None);
    assert!(larger.bytes() > sources.bytes());
    assert_eq!(larger.losses(), Losses::default());
}

/// How many requests of all threads pass at one instant.
fn passed(admit: impl Fn() -> Admission + Sync) -> u64 {
    let passed = AtomicU64::new(0);
    on_threads(|_| {
        for _ in 0..2_000 {
            if matches!(admit(), Admission::Pass { .. }) {
                passed.fetch_add(1, Relaxed);
            }
        }
    });
    passed.into_inner()
}

#[test]
fn a_limit_is_exact_across_threads() {
    let rate = Rate::new(100, 1_000, 1_000).unwrap();
    let now_us = 60_000_000;
    let shared = SharedLimit::default();
    assert_eq!(passed(|| shared.admit(&rate, now_us)), 1_000);
    assert_eq!(passed(|| shared.admit(&rate, now_us + 1_000_000)), 100);
}

#[test]
fn a_limit_per_client_is_exact_across_threads() {
    let rate = Rate::new(100, 1_000, 1_000).unwrap();
    let now_us = 60_000_000;
    let limit = KeyedLimit::on_rates(100);
    for client in 0..20 {
        // The first request creates the entry; simultaneous requests on other threads may count too
        // little (see the module).
        assert!(matches!(limit.admit(client, &rate, now_us), Admission::Pass { .. }));
        assert_eq!(passed(|| limit.admit(client, &rate, now_us)), 999);
    }
    assert_eq!(passed(|| limit.admit(3, &rate, now_us + 1_000_000)), 100);
    let larger = KeyedLimit::on_rates(1_000);
    larger.take_over(&limit, now_us + 1_000_000);
    assert_eq!(larger.clients(now_us + 1_000_000), 20);
    assert_eq!(passed(|| larger.admit(3, &rate, now_us + 2_000_000)), 100);
    // An entry whose burst is complete again is forgotten.
    assert_eq!(larger.clients(now_us + 60_000_000), 0);
    assert_eq!((larger.losses(), limit.losses()), (Losses::default(), Losses::default()));
    assert!(larger.bytes() > limit.bytes());
}

#[test]
fn what_is_there_at_a_time_is_exact_across_threads() {
    let limit = KeyedLimit::at_a_time(100);
    let (inside, most, entered) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    assert!(limit.enter(7, 5), "the entry is made before the threads meet at it");
    on_threads(|_| {
        for _ in 0..20_000 {
            if limit.enter(7, 5) {
                entered.fetch_add(1, Relaxed);
                let now = inside.fetch_add(1, SeqCst) + 1;
                most.fetch_max(now, Relaxed);
                inside.fetch_sub(1, SeqCst);
                limit.leave(7);
            }
        }
    });
    assert!(entered.into_inner() > 0 && most.into_inner() <= 4);
    // The entry from before the threads exists, and no other.
    assert_eq!(limit.clients(0), 1);
    assert!((0..4).all(|_| limit.enter(7, 5)) && !limit.enter(7, 5) && limit.enter(8, 1));
    (0..5).for_each(|_| limit.leave(7));
    limit.leave(8);
    assert_eq!(limit.clients(0), 0, "who has nothing is forgotten");
    limit.leave(8);
    assert_eq!(limit.clients(0), 0, "what was forgotten cannot be left");
    assert!(!limit.enter(9, 0));
}

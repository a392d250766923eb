//! Stored sessions for clients that resume them: `resumption: stateful`.
//!
//! The table has several parts, and each has its own lock, which is held for a single access. Only handshakes use the table.
//! Its size is limited in bytes, because a session with a client certificate contains the certificate chain.
//!
//! | operation | cost |
//! |---|---|
//! | `put`, `get`, `take` | O(1) amortised: one access, and removals |
//! | memory | [`SessionCache::bytes_max`], which counts keys, values, and 64 bytes per session |

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustls::server::StoresServerSessions;

/// The lifetime of a session.
pub const LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);

const PARTS: usize = 64;
/// Size of an entry in bytes, in addition to its key and value.
const ENTRY_BYTES: usize = 64;

/// A cache of sessions, which removes the oldest ones when it is full.
pub struct SessionCache {
    parts: Box<[Mutex<Part>]>,
    hash: RandomState,
    part_bytes_max: usize,
}

#[derive(Default)]
struct Part {
    sessions: HashMap<Vec<u8>, Session>,
    /// The keys in the order of insertion. Keys of removed or replaced sessions stay until they reach the front.
    order: VecDeque<(Vec<u8>, u64)>,
    bytes: usize,
    serial: u64,
}

struct Session {
    value: Vec<u8>,
    serial: u64,
    put_at: Instant,
}

fn cost(key: &[u8], value: &[u8]) -> usize {
    // The key is stored both in the table and in the order.
    2 * key.len() + value.len() + ENTRY_BYTES
}

impl SessionCache {
    /// A cache with a maximum size in bytes.
    pub fn new(bytes_max: usize) -> Self {
        let parts = (0..PARTS).map(|_| Mutex::default()).collect();
        Self { parts, hash: RandomState::new(), part_bytes_max: bytes_max / PARTS }
    }

    /// The maximum size in bytes.
    pub fn bytes_max(&self) -> usize {
        self.part_bytes_max * PARTS
    }

    /// The number of sessions.
    pub fn len(&self) -> usize {
        (0..PARTS).map(|index| self.part_at(index).sessions.len()).sum()
    }

    /// Whether there are no sessions.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn part(&self, key: &[u8]) -> MutexGuard<'_, Part> {
        self.part_at(self.hash.hash_one(key) as usize % PARTS)
    }

    fn part_at(&self, index: usize) -> MutexGuard<'_, Part> {
        // The table is consistent after a panic, because each change of it is a single call.
        self.parts[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Part {
    fn put(&mut self, key: Vec<u8>, value: Vec<u8>, now: Instant, bytes_max: usize) -> bool {
        let bytes = cost(&key, &value);
        if bytes > bytes_max {
            return false;
        }
        self.remove(&key);
        while self.bytes + bytes > bytes_max || self.order.len() > 2 * self.sessions.len() + 8 {
            let Some((oldest, serial)) = self.order.pop_front() else { break };
            if self.sessions.get(&oldest).is_some_and(|session| session.serial == serial) {
                self.remove(&oldest);
            }
        }
        self.serial += 1;
        self.bytes += bytes;
        self.order.push_back((key.clone(), self.serial));
        self.sessions.insert(key, Session { value, serial: self.serial, put_at: now });
        true
    }

    fn remove(&mut self, key: &[u8]) -> Option<Session> {
        let session = self.sessions.remove(key)?;
        self.bytes -= cost(key, &session.value);
        Some(session)
    }
}

impl Session {
    fn is_alive(&self, now: Instant) -> bool {
        now.duration_since(self.put_at) < LIFETIME
    }
}

impl StoresServerSessions for SessionCache {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.part(&key).put(key, value, Instant::now(), self.part_bytes_max)
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let now = Instant::now();
        let part = self.part(key);
        part.sessions.get(key).filter(|it| it.is_alive(now)).map(|it| it.value.clone())
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        let now = Instant::now();
        self.part(key).remove(key).filter(|it| it.is_alive(now)).map(|it| it.value)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

impl fmt::Debug for SessionCache {
    /// Does not write the sessions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionCache").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_is_got_and_taken_once() {
        let cache = SessionCache::new(1 << 20);
        assert!(cache.put(b"a".to_vec(), b"one".to_vec()));
        assert!(cache.put(b"a".to_vec(), b"two".to_vec()));
        assert_eq!(cache.get(b"a").as_deref(), Some(&b"two"[..]));
        assert_eq!(cache.take(b"a").as_deref(), Some(&b"two"[..]));
        assert_eq!((cache.take(b"a"), cache.get(b"a"), cache.len()), (None, None, 0));
    }

    #[test]
    fn it_holds_no_more_than_it_may_and_the_oldest_go() {
        let mut part = Part::default();
        let now = Instant::now();
        let key = |number: u32| number.to_be_bytes().to_vec();
        for number in 0..1_000 {
            assert!(part.put(key(number), vec![0; 100], now, 10_000));
            // Some sessions are taken, and some are inserted again.
            if number % 3 == 0 {
                part.remove(&key(number));
            }
            if number % 7 == 0 {
                assert!(part.put(key(number), vec![0; 50], now, 10_000));
            }
            let all: usize = part.sessions.iter().map(|(key, it)| cost(key, &it.value)).sum();
            assert_eq!(part.bytes, all);
            assert!(part.bytes <= 10_000);
            assert!(part.order.len() <= 2 * part.sessions.len() + 10);
        }
        assert!(part.sessions.contains_key(&key(998)) && !part.sessions.contains_key(&key(1)));
        assert!(!part.put(key(1), vec![0; 10_000], now, 10_000), "too large for all of it");
    }

    #[test]
    fn a_session_ends() {
        let mut part = Part::default();
        let now = Instant::now();
        part.put(b"a".to_vec(), Vec::new(), now, 1_000);
        let session = &part.sessions[&b"a"[..]];
        assert!(session.is_alive(now) && !session.is_alive(now + LIFETIME));
    }
}

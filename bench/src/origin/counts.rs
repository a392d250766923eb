//! Counters of the origin. Each thread writes its own counters; readers add them up.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use serde::{Deserialize, Serialize};

use super::faults::FaultKind;

/// The counts of one thread.
#[derive(Debug)]
pub struct ThreadCounts {
    /// Complete requests, by server.
    pub requests: Vec<AtomicU64>,
    /// Complete responses without a fault that the kernel accepted.
    pub responses: AtomicU64,
    /// Body bytes of these responses.
    pub bytes: AtomicU64,
    /// Accepted connections.
    pub connections: AtomicU64,
    /// Faults made. They are rare, so a lock costs little.
    pub faults: Mutex<BTreeMap<FaultKind, u64>>,
}

impl ThreadCounts {
    /// Counters of a thread with this many servers.
    pub fn new(servers: usize) -> Self {
        Self {
            requests: (0..servers).map(|_| AtomicU64::new(0)).collect(),
            responses: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            faults: Mutex::new(BTreeMap::new()),
        }
    }

    /// Counts a fault.
    pub fn note_fault(&self, kind: FaultKind) {
        let mut faults = self.faults.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *faults.entry(kind).or_default() += 1;
    }
}

/// Adds to a counter with a single writer, without a locked instruction.
pub fn add(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Relaxed) + count, Relaxed);
}

/// The sum of all threads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Complete requests.
    pub requests: u64,
    /// Requests by server, in the order of the addresses.
    pub requests_by_server: Vec<u64>,
    /// Complete responses without a fault that the kernel accepted.
    pub responses: u64,
    /// Body bytes of these responses.
    pub bytes: u64,
    /// Accepted connections.
    pub connections: u64,
    /// Number of faults made, by name.
    pub faults: BTreeMap<String, u64>,
}

impl Counts {
    /// Adds the counts of a thread.
    pub fn add(&mut self, thread: &ThreadCounts) {
        let by_server = thread.requests.iter().map(|count| count.load(Relaxed));
        self.requests_by_server.resize(thread.requests.len(), 0);
        for (sum, count) in self.requests_by_server.iter_mut().zip(by_server) {
            *sum += count;
            self.requests += count;
        }
        self.responses += thread.responses.load(Relaxed);
        self.bytes += thread.bytes.load(Relaxed);
        self.connections += thread.connections.load(Relaxed);
        let faults = thread.faults.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for (kind, count) in faults.iter() {
            *self.faults.entry(kind.name()).or_default() += count;
        }
    }
}

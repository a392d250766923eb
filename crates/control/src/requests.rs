//! Records of recent requests, and followers of requests and events.
//!
//! Workers send records through a bounded queue and never wait. A thread receives them and stores the latest ones, and slow
//! requests in a separate list, within limits on number and size. Followers read from one bounded channel. A slow follower
//! misses messages and is told their number. Workers record all requests only while there is a follower.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::sync::{Notify, broadcast};
use weir_config::snapshot::RecentRequests;
use weir_telemetry::records::record::Record;
use weir_telemetry::records::recorder::RecordSender;

use record_store::RecordStore;

mod record_store;

pub use record_store::{RECORD_BYTES_MAX, SLOW_MAX};

/// Capacity of the queue of records.
const RECORDS_WAITING_MAX: usize = 1_024;

/// Capacity of the channel of followers.
const FOLLOWED_WAITING_MAX: usize = 1_024;

/// An event of weir itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventLine {
    /// The time, in milliseconds since 1970.
    pub unix_ms: u64,
    /// `info`, `warning` or `error`.
    pub level: &'static str,
    /// The text: subject and predicate.
    pub text: String,
}

/// A message to followers.
#[derive(Debug, Clone)]
pub enum FollowerMessage {
    /// A finished request.
    Request(Arc<Record>),
    /// An event of weir itself.
    Event(Arc<EventLine>),
}

/// Records of recent requests.
#[derive(Debug)]
pub struct Requests {
    kept: Mutex<RecordStore>,
    /// The number of records that workers dropped because the queue was full.
    dropped: Arc<AtomicU64>,
    followed: broadcast::Sender<FollowerMessage>,
    followers: AtomicUsize,
    /// Whether there were followers when the workers were last notified.
    is_told: AtomicBool,
    changed: Notify,
}

impl Default for Requests {
    fn default() -> Self {
        Self::new(None)
    }
}

impl Requests {
    /// An instance without records.
    pub fn new(settings: Option<RecentRequests>) -> Self {
        let mut kept = RecordStore::default();
        kept.set(settings);
        Self {
            kept: Mutex::new(kept),
            dropped: Arc::default(),
            followed: broadcast::Sender::new(FOLLOWED_WAITING_MAX),
            followers: AtomicUsize::new(0),
            is_told: AtomicBool::new(false),
            changed: Notify::new(),
        }
    }

    /// Starts the thread that receives records. It ends when the last clone of the returned sender is dropped.
    pub fn receive(self: &Arc<Self>) -> io::Result<RecordSender> {
        let (records, waiting) = sync_channel(RECORDS_WAITING_MAX);
        let this = Arc::clone(self);
        thread::Builder::new().name("weir-requests".into()).spawn(move || this.take(&waiting))?;
        Ok(RecordSender { records, dropped: Arc::clone(&self.dropped) })
    }

    fn take(&self, waiting: &Receiver<Box<Record>>) {
        for record in waiting {
            self.add(Arc::from(record));
        }
    }

    /// Stores a record, and sends it to followers.
    pub fn add(&self, record: Arc<Record>) {
        self.with(|kept| kept.add(&record));
        // An error means that there are no followers.
        let _ = self.followed.send(FollowerMessage::Request(record));
    }

    /// Whether there are followers.
    pub fn has_followers(&self) -> bool {
        self.followed.receiver_count() > 0
    }

    /// Sends an event to followers.
    pub fn tell(&self, event: EventLine) {
        // The last follower may have disconnected.
        let _ = self.followed.send(FollowerMessage::Event(Arc::new(event)));
    }

    /// Sets the number of stored records; without settings, none.
    pub fn set(&self, settings: Option<RecentRequests>) {
        self.with(|kept| kept.set(settings));
    }

    /// Locks the stored records.
    fn with<T>(&self, look: impl FnOnce(&mut RecordStore) -> T) -> T {
        look(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether requests are recorded without followers.
    pub fn is_on(&self) -> bool {
        self.with(|kept| kept.is_on())
    }

    /// The stored records, newest first; `only_slow`: slow requests only.
    pub fn all(&self, only_slow: bool) -> Vec<Arc<Record>> {
        let mut all = self.with(|kept| kept.all(only_slow));
        all.sort_by_cached_key(|record| std::cmp::Reverse(ended_unix_us(record)));
        all
    }

    /// The newest record with this request id.
    pub fn find(&self, id: &str) -> Option<Arc<Record>> {
        self.all(false).into_iter().find(|record| record.id.to_string() == id)
    }

    /// The number of records that workers dropped because the queue was full.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    /// Starts to follow requests and events.
    pub fn follow(self: &Arc<Self>) -> Follower {
        let waiting = self.followed.subscribe();
        self.followers.fetch_add(1, Relaxed);
        self.changed.notify_one();
        let dropped = self.dropped();
        Follower { requests: Arc::clone(self), waiting, dropped }
    }

    /// Waits until the workers must be notified whether there are followers. Returns whether there are any.
    pub async fn followed(&self) -> bool {
        loop {
            let is_followed = self.followers.load(Relaxed) > 0;
            if self.is_told.swap(is_followed, Relaxed) != is_followed {
                return is_followed;
            }
            self.changed.notified().await;
        }
    }
}

fn ended_unix_us(record: &Record) -> u64 {
    record.begun_unix_ms * 1_000 + record.amounts.total_us
}

/// A follower of requests and events.
#[derive(Debug)]
pub struct Follower {
    requests: Arc<Requests>,
    waiting: broadcast::Receiver<FollowerMessage>,
    /// The number of dropped records at its last message.
    dropped: u64,
}

/// The next message for a follower.
#[derive(Debug)]
pub enum NextForFollower {
    /// A request or an event.
    One(FollowerMessage),
    /// The follower has missed this number of messages, because it or weir is too slow.
    Missed(u64),
}

impl Follower {
    /// Waits for the next message; `None`: there are no further messages.
    pub async fn next(&mut self) -> Option<NextForFollower> {
        let dropped = self.requests.dropped();
        let missed = dropped - std::mem::replace(&mut self.dropped, dropped);
        if missed > 0 {
            return Some(NextForFollower::Missed(missed));
        }
        match self.waiting.recv().await {
            Ok(followed) => Some(NextForFollower::One(followed)),
            Err(broadcast::error::RecvError::Lagged(missed)) => {
                Some(NextForFollower::Missed(missed))
            }
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.requests.followers.fetch_sub(1, Relaxed);
        self.requests.changed.notify_one();
    }
}

#[cfg(test)]
mod tests;

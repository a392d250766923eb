//! Records of recent requests, and those who follow requests and events as they come.
//!
//! Workers hand over records by a bounded queue and never wait; a thread takes them. The last ones are kept, slow ones apart,
//! within bounds of number and bytes. Followers read from one bounded channel: what a slow one misses is counted, and told to
//! it. Workers record all requests only while somebody follows.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::sync::{Notify, broadcast};
use weir_config::snapshot::RecentRequests;
use weir_dataplane::records::record::Record;
use weir_dataplane::records::recorder::RecordSender;

use kept::Kept;

mod kept;

pub use kept::{RECORD_BYTES_MAX, SLOW_MAX};

/// Records that may wait to be taken.
const RECORDS_WAITING_MAX: usize = 1_024;

/// Requests and events that may wait for the slowest follower.
const FOLLOWED_WAITING_MAX: usize = 1_024;

/// An event of weir's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventLine {
    /// When, in milliseconds since 1970.
    pub unix_ms: u64,
    /// `info`, `warning` or `error`.
    pub level: &'static str,
    /// Subject and predicate.
    pub text: String,
}

/// A message to followers.
#[derive(Debug, Clone)]
pub enum Followed {
    /// A request that is over.
    Request(Arc<Record>),
    /// An event of weir's own.
    Event(Arc<EventLine>),
}

/// Records of recent requests.
#[derive(Debug)]
pub struct Requests {
    kept: Mutex<Kept>,
    /// Records that workers dropped, because too many waited.
    dropped: Arc<AtomicU64>,
    followed: broadcast::Sender<Followed>,
    followers: AtomicUsize,
    /// The last state that workers were told.
    is_told: AtomicBool,
    changed: Notify,
}

impl Default for Requests {
    fn default() -> Self {
        Self::new(None)
    }
}

impl Requests {
    /// None yet.
    pub fn new(settings: Option<RecentRequests>) -> Self {
        let mut kept = Kept::default();
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

    /// Starts the thread that takes records. It ends with the last clone of the returned sender.
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

    /// Takes a record.
    pub fn add(&self, record: Arc<Record>) {
        self.with(|kept| kept.add(&record));
        // Without followers there is nobody to tell.
        let _ = self.followed.send(Followed::Request(record));
    }

    /// Whether somebody follows.
    pub fn has_followers(&self) -> bool {
        self.followed.receiver_count() > 0
    }

    /// Tells followers of an event.
    pub fn tell(&self, event: EventLine) {
        // The last follower may have gone.
        let _ = self.followed.send(Followed::Event(Arc::new(event)));
    }

    /// Keeps as many as these settings say; without settings, none.
    pub fn set(&self, settings: Option<RecentRequests>) {
        self.with(|kept| kept.set(settings));
    }

    /// Looks at the kept records.
    fn with<T>(&self, look: impl FnOnce(&mut Kept) -> T) -> T {
        look(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether requests are recorded, beside those that are followed.
    pub fn is_on(&self) -> bool {
        self.with(|kept| kept.is_on())
    }

    /// The kept records, newest first; `only_slow`: those that were slow.
    pub fn all(&self, only_slow: bool) -> Vec<Arc<Record>> {
        let mut all = self.with(|kept| kept.all(only_slow));
        all.sort_by_cached_key(|record| std::cmp::Reverse(ended_unix_us(record)));
        all
    }

    /// The newest record with this request id.
    pub fn find(&self, id: &str) -> Option<Arc<Record>> {
        self.all(false).into_iter().find(|record| record.id.to_string() == id)
    }

    /// Records that workers dropped, because too many waited.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    /// Follows requests and events from now on.
    pub fn follow(self: &Arc<Self>) -> Follower {
        let waiting = self.followed.subscribe();
        self.followers.fetch_add(1, Relaxed);
        self.changed.notify_one();
        let dropped = self.dropped();
        Follower { requests: Arc::clone(self), waiting, dropped }
    }

    /// Returns when workers have to be told, whether somebody follows.
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

/// One who follows requests and events.
#[derive(Debug)]
pub struct Follower {
    requests: Arc<Requests>,
    waiting: broadcast::Receiver<Followed>,
    /// Dropped records that it knows of.
    dropped: u64,
}

/// The next message to a follower.
#[derive(Debug)]
pub enum Next {
    /// A request or an event.
    One(Followed),
    /// It has missed so many: it is too slow, or weir is.
    Missed(u64),
}

impl Follower {
    /// The next; `None`: there are no more.
    pub async fn next(&mut self) -> Option<Next> {
        let dropped = self.requests.dropped();
        let missed = dropped - std::mem::replace(&mut self.dropped, dropped);
        if missed > 0 {
            return Some(Next::Missed(missed));
        }
        match self.waiting.recv().await {
            Ok(followed) => Some(Next::One(followed)),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(Next::Missed(missed)),
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

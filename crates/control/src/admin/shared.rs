//! State that all admin listeners share.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use weir_event_loop::random;
use weir_telemetry::reports::LogBatch;

use super::audit::Audit;
use super::last_refusal::LastRefusal;
use super::login_failures::LastFailure;
use super::open_streams::Streams;
use super::sources::Sources;
use crate::board::Sampler;
use crate::firewall::recent::RecentFindings;
use crate::requests::Requests;

/// State that all admin listeners share.
#[derive(Debug)]
pub struct AdminShared {
    /// Connections that were closed at once because the maximum was reached.
    pub turned_away: AtomicU64,
    /// Connections that ended to make room for another one, while they waited for a request.
    pub displaced: AtomicU64,
    /// Requests with an unknown token or client certificate.
    pub logins_failed: AtomicU64,
    /// Requests that were refused because their source exceeded a limit.
    pub requests_limited: AtomicU64,
    /// The audit log.
    pub audit: Audit,
    /// The open streams.
    pub streams: Streams,
    /// Figures for open dashboards.
    pub sampler: Arc<Sampler>,
    /// The latest findings of the web application firewall.
    pub findings: Arc<RecentFindings>,
    /// Records of recent requests.
    pub requests: Arc<Requests>,
    pub(super) sources: Sources,
    pub(super) last_refusal: LastRefusal,
    pub(super) last_failure: LastFailure,
    /// Held from the check of `If-Match` until the change is made.
    changing: Mutex<()>,
    /// Held while a request is explained.
    explaining: Mutex<()>,
    /// Distinguishes request ids of this process from those of others.
    process: u32,
    requests_numbered: AtomicU64,
    began: Instant,
}

impl AdminShared {
    /// The state at startup. `audit`: the channel for lines of the audit log.
    pub fn new(
        audit: Option<SyncSender<LogBatch>>,
        findings: Arc<RecentFindings>,
        requests: Arc<Requests>,
    ) -> Self {
        Self {
            turned_away: AtomicU64::new(0),
            displaced: AtomicU64::new(0),
            logins_failed: AtomicU64::new(0),
            requests_limited: AtomicU64::new(0),
            audit: Audit::new(audit),
            streams: Streams::default(),
            sampler: Arc::default(),
            findings,
            requests,
            sources: Sources::default(),
            last_refusal: LastRefusal::default(),
            last_failure: LastFailure::default(),
            changing: Mutex::new(()),
            explaining: Mutex::new(()),
            process: random::number() as u32,
            requests_numbered: AtomicU64::new(0),
            began: Instant::now(),
        }
    }

    /// Locks out other changes.
    pub(super) fn change(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks out other explanations: each copies tables of clients.
    pub(super) fn explain(&self) -> MutexGuard<'_, ()> {
        self.explaining.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of a new request.
    pub(super) fn next_request(&self) -> String {
        format!("{:08x}-{}", self.process, self.requests_numbered.fetch_add(1, Relaxed))
    }

    /// The time for limits, in microseconds.
    pub(super) fn now_us(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

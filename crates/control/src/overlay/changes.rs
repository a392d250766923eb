//! The queue of transactions. Transactions are requested over the admin listener and executed by the supervisor.

use std::collections::VecDeque;
use std::fmt;
use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use weir_api::changes::{COMMENT_BYTES_MAX, CONFIRM_S_MAX, TransactionState};
use weir_config::Diagnostic;
use weir_config::parts;

use super::history::{History, OWN_AUTHOR, RequestedChanges, UnconfirmedVersion};
use super::journal::{Entry, Journal, JournalError, LeftOut};
use super::reports::{Report, Reports};
use crate::time::unix_ms;

/// Maximum number of queued transactions; further ones are refused.
pub const QUEUE_MAX: usize = 16_384;

/// Approximate maximum size of all queued transactions.
const QUEUE_BYTES_MAX: usize = 64 << 20;

/// Maximum number of transactions in a batch, whose versions are put in force together.
const BATCH_MAX: usize = 1_024;

/// Minimum interval between the beginnings of batches. Transactions that come meanwhile are in force together, with one write to
/// the disk and one message to each worker. A longer interval costs less, and a change must be in force within 50 ms on a disk that
/// needs some milliseconds for a write.
const BATCH_INTERVAL: Duration = Duration::from_millis(30);

/// Maximum length of an author's name in bytes.
pub const AUTHOR_BYTES_MAX: usize = 256;

/// The comment of the version that reverts an unconfirmed one.
pub(super) const NOT_CONFIRMED: &str = "not confirmed";

/// Changes that are applied together or not at all.
#[derive(Debug, Clone, PartialEq)]
pub struct Transaction {
    /// The user who requests the changes.
    pub author: String,
    /// The reason for the changes.
    pub comment: String,
    /// The transaction is refused unless this is the newest version.
    pub expected_version: Option<u64>,
    /// The requested changes.
    pub wanted: RequestedChanges,
    /// Whether the changes are only checked, not applied.
    pub dry_run: bool,
    /// Whether the last member of a pool that takes new requests may go.
    pub takes_last: bool,
    /// Whether the user is on the network, and not on this host.
    pub is_from_network: bool,
    /// The time for a confirmation, in seconds. Without a confirmation, the previous version is then restored.
    pub confirm_within_s: Option<u64>,
}

/// The reason why a transaction was not queued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotQueued {
    /// The queue is full.
    Full,
    /// weir is shutting down.
    Ends,
    /// The transaction is invalid for this reason.
    Invalid(String),
}

impl fmt::Display for NotQueued {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => {
                formatter.write_str("too many transactions wait already: try again later")
            }
            Self::Ends => formatter.write_str("weir ends, and changes nothing any more"),
            Self::Invalid(why) => formatter.write_str(why),
        }
    }
}

impl std::error::Error for NotQueued {}

/// The kind of a queued request.
#[derive(Debug, Clone)]
pub(super) enum QueuedRequest {
    /// A user's transaction.
    Transaction(Transaction),
    /// A request to keep an unconfirmed version.
    Confirm { version: u64, author: String },
    /// weir's own request to restore version `to`, because `version` was not confirmed in time or could not be put in force.
    TakeBack { version: u64, to: u64, comment: String },
}

impl PendingRequest {
    /// Whether the last member of a pool that takes new requests may go. weir itself may return to any version.
    pub(super) fn takes_last(&self) -> bool {
        match &self.asked {
            QueuedRequest::Transaction(transaction) => transaction.takes_last,
            QueuedRequest::Confirm { .. } | QueuedRequest::TakeBack { .. } => true,
        }
    }
}

impl PendingRequest {
    /// The approximate size of the request in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.asked.bytes()
    }
}

impl QueuedRequest {
    /// The approximate size of the request in bytes.
    fn bytes(&self) -> usize {
        match self {
            Self::Transaction(transaction) => transaction.wanted.bytes(),
            Self::Confirm { .. } | Self::TakeBack { .. } => 0,
        }
    }

    /// Whether the request is executed alone, not in a batch.
    fn is_alone(&self) -> bool {
        match self {
            Self::Transaction(transaction) => transaction.dry_run,
            Self::Confirm { .. } | Self::TakeBack { .. } => true,
        }
    }
}

/// A queued request and its number.
#[derive(Debug, Clone)]
pub(crate) struct PendingRequest {
    pub(crate) number: u64,
    pub(super) asked: QueuedRequest,
}

/// Queued transactions, their results, and the versions that they made.
#[derive(Debug)]
pub struct Changes {
    queue: Mutex<Queue>,
    /// Wakes the supervisor after a request.
    asked: Notify,
    /// Wakes tasks that wait for results.
    reported: Notify,
    history: RwLock<Arc<History>>,
    /// Locked only by threads that may block on the disk.
    pub(super) journal: Mutex<Journal>,
    /// What was left out of the journal.
    pub(crate) left_out: LeftOut,
    in_force: AtomicU64,
}

/// Queued requests and results.
#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<PendingRequest>,
    /// The approximate size of the queued requests in bytes.
    bytes: usize,
    reports: Reports,
    is_closed: bool,
    /// The unconfirmed version that is being reverted.
    taken_back: Option<u64>,
    /// The number of requests at the front of the queue that are executed one by one.
    singly: usize,
    /// The earliest time of the next batch; `None`: at once.
    not_before: Option<Instant>,
    /// A message for the operator that does not belong to a report.
    untold: Option<String>,
}

impl Queue {
    /// The earliest time of the next batch; `None`: no request waits.
    fn next_batch_time(&self) -> Option<Instant> {
        let not_before = self.not_before.filter(|_| self.singly == 0);
        (!self.waiting.is_empty()).then(|| not_before.unwrap_or_else(Instant::now))
    }
}

impl Changes {
    /// The state at startup, with the versions from the journal.
    pub(super) fn new(journal: Journal, history: History) -> Self {
        Self {
            queue: Mutex::default(),
            asked: Notify::new(),
            reported: Notify::new(),
            in_force: AtomicU64::new(history.version()),
            history: RwLock::new(Arc::new(history)),
            left_out: LeftOut::of(&journal),
            journal: Mutex::new(journal),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a transaction. Returns the number of its report.
    pub fn propose(&self, transaction: Transaction) -> Result<u64, NotQueued> {
        check_text("author", &transaction.author, AUTHOR_BYTES_MAX)?;
        check_text("comment", &transaction.comment, COMMENT_BYTES_MAX)?;
        if transaction.confirm_within_s.is_some_and(|it| it == 0 || it > CONFIRM_S_MAX) {
            let why = format!("the time for a confirmation is 1 s to {CONFIRM_S_MAX} s");
            return Err(NotQueued::Invalid(why));
        }
        self.ask(QueuedRequest::Transaction(transaction))
    }

    /// Queues a request to keep a version. Returns the number of its report.
    pub fn confirm(&self, version: u64, author: &str) -> Result<u64, NotQueued> {
        check_text("author", author, AUTHOR_BYTES_MAX)?;
        self.ask(QueuedRequest::Confirm { version, author: author.to_owned() })
    }

    fn ask(&self, asked: QueuedRequest) -> Result<u64, NotQueued> {
        let mut queue = self.queue();
        if queue.is_closed {
            return Err(NotQueued::Ends);
        }
        let bytes = asked.bytes();
        let has_room = queue.waiting.len() < QUEUE_MAX && queue.bytes + bytes <= QUEUE_BYTES_MAX;
        if !has_room && matches!(asked, QueuedRequest::Transaction(_)) {
            return Err(NotQueued::Full);
        }
        queue.bytes += bytes;
        let number = queue.reports.add();
        let pending = PendingRequest { number, asked };
        match pending.asked {
            QueuedRequest::Transaction(_) => queue.waiting.push_back(pending),
            // These requests come first, because the time for the confirmation is limited.
            QueuedRequest::Confirm { .. } | QueuedRequest::TakeBack { .. } => {
                queue.waiting.push_front(pending)
            }
        }
        drop(queue);
        self.asked.notify_one();
        Ok(number)
    }

    /// The current report on a transaction; `None`: no transaction has this number, or its report was dropped.
    pub fn report(&self, number: u64) -> Option<Report> {
        self.queue().reports.get(number).cloned()
    }

    /// Waits for the final report on a transaction.
    pub async fn result(&self, number: u64) -> Option<Report> {
        loop {
            let reported = self.reported.notified();
            tokio::pin!(reported);
            // The registration comes before the check, so that no notification is missed.
            reported.as_mut().enable();
            let report = match self.queue().reports.get(number) {
                Some(report) => report.state.is_final().then(|| report.clone()),
                None => return None,
            };
            if report.is_some() {
                return report;
            }
            reported.await;
        }
    }

    /// The stored versions.
    pub fn history(&self) -> Arc<History> {
        Arc::clone(&self.history.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The version in force; a newer one may wait for first probes.
    pub fn in_force(&self) -> u64 {
        self.in_force.load(Relaxed)
    }

    /// The path of the journal.
    pub fn place(&self) -> std::path::PathBuf {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner).path().to_owned()
    }

    /// Waits until a request is queued, and the next batch may begin. If an unconfirmed version expires meanwhile, queues its
    /// reversal. Dropping the future loses nothing.
    pub(crate) async fn wanted(&self) {
        loop {
            let asked = self.asked.notified();
            tokio::pin!(asked);
            asked.as_mut().enable();
            let next_batch = self.queue().next_batch_time();
            if let Some(not_before) = next_batch {
                return tokio::time::sleep_until(not_before).await;
            }
            tokio::select! {
                () = asked => {}
                UnconfirmedVersion { version, .. } = self.overdue() => {
                    self.take_back(version, version - 1, NOT_CONFIRMED.to_owned());
                }
            }
        }
    }

    /// Waits until the time for the confirmation of the unconfirmed version has passed.
    async fn overdue(&self) -> UnconfirmedVersion {
        let Some(unconfirmed) = self.history().unconfirmed() else { return pending().await };
        if self.queue().taken_back == Some(unconfirmed.version) {
            return pending().await;
        }
        let left_ms = unconfirmed.until_unix_ms.saturating_sub(unix_ms());
        tokio::time::sleep(Duration::from_millis(left_ms)).await;
        unconfirmed
    }

    /// Queues a request to restore version `to` instead of `version`.
    pub(crate) fn take_back(&self, version: u64, to: u64, comment: String) {
        self.queue().taken_back = Some(version);
        // An error occurs only during shutdown. The next process reverts the version when it starts.
        let _ = self.ask(QueuedRequest::TakeBack { version, to, comment });
    }

    /// Takes the next requests that can be executed together from the queue.
    pub(crate) fn next_batch(&self) -> Vec<PendingRequest> {
        let mut queue = self.queue();
        let mut batch: Vec<PendingRequest> = Vec::new();
        while let Some(next) = queue.waiting.front() {
            let is_apart = next.asked.is_alone() && !batch.is_empty();
            let batch_max = if queue.singly > 0 { 1 } else { BATCH_MAX };
            if is_apart || batch.len() >= batch_max {
                break;
            }
            let (is_alone, bytes) = (next.asked.is_alone(), next.asked.bytes());
            queue.bytes -= bytes;
            batch.extend(queue.waiting.pop_front());
            if is_alone {
                break;
            }
        }
        queue.singly = queue.singly.saturating_sub(1);
        queue.not_before = Some(Instant::now() + BATCH_INTERVAL);
        batch
    }

    /// Puts requests back at the front of the queue, in their order.
    pub(crate) fn put_back(&self, rest: Vec<PendingRequest>) {
        let mut queue = self.queue();
        for pending in rest.into_iter().rev() {
            queue.bytes += pending.asked.bytes();
            queue.waiting.push_front(pending);
        }
        drop(queue);
        self.asked.notify_one();
    }

    /// As [`Self::put_back`], but these requests are executed one by one.
    pub(crate) fn put_back_one_by_one(&self, rest: Vec<PendingRequest>) {
        self.queue().singly = rest.len();
        self.put_back(rest);
    }

    /// Stores entries that `history` already contains. Blocks on the disk.
    pub(super) fn store(&self, entries: &[Entry], history: History) -> Result<(), JournalError> {
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        journal.append(entries, &history)?;
        self.left_out.forget();
        *self.history.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(history);
        Ok(())
    }

    /// Changes a report. Wakes tasks that wait for results only if it is final, since they wait for nothing else.
    pub(super) fn update(&self, number: u64, update: impl FnOnce(&mut Report)) {
        if self.queue().reports.update(number, update) {
            self.reported.notify_waiters();
        }
    }

    /// Reports a request as refused.
    pub(crate) fn refuse(&self, number: u64, reason: String, diagnostics: Vec<Diagnostic>) {
        self.update(number, |report| {
            report.state = TransactionState::Refused;
            report.version = None;
            report.reason = Some(reason);
            report.diagnose(diagnostics);
        });
    }

    /// Sets the message for the operator.
    pub(super) fn tell(&self, what: String) {
        self.queue().untold = Some(what);
    }

    /// Takes the message for the operator, if there is one.
    pub(crate) fn untold(&self) -> Option<String> {
        self.queue().untold.take()
    }

    /// Reports a request as done that changes nothing in force.
    pub(crate) fn finish(
        &self,
        number: u64,
        version: Option<u64>,
        changes: &[parts::Change],
        diagnostics: Vec<Diagnostic>,
    ) {
        self.update(number, |report| {
            report.state = TransactionState::Done;
            report.version = version;
            report.tell(changes);
            report.diagnose(diagnostics);
        });
    }

    /// Reports a version as stored and waiting to be put in force.
    pub(super) fn accepted(
        &self,
        number: u64,
        version: u64,
        changes: &[parts::Change],
        diagnostics: Vec<Diagnostic>,
    ) {
        let is_closed = self.queue().is_closed;
        self.update(number, |report| {
            report.state = TransactionState::Waiting;
            report.version = Some(version);
            report.tell(changes);
            report.diagnose(diagnostics);
            if is_closed {
                report.refuse_at_end();
            }
        });
    }

    /// Reports this version and all before it as in force.
    pub(crate) fn put_in_force(&self, version: u64) {
        self.in_force.store(version, Relaxed);
        self.queue().reports.update_waiting(|report| {
            if report.version.is_some_and(|it| it <= version) {
                report.state = match report.is_unchanged {
                    true => TransactionState::Unchanged,
                    false => TransactionState::InForce,
                };
            }
        });
        self.reported.notify_waiters();
    }

    /// Reports stored versions from `version` on as refused, because they cannot be put in force.
    pub(crate) fn refuse_from(&self, version: u64, reason: &str) {
        self.queue().reports.update_waiting(|report| {
            if report.version.is_some_and(|it| it >= version) {
                report.state = TransactionState::Refused;
                report.reason = Some(reason.to_owned());
            }
        });
        self.reported.notify_waiters();
    }

    /// Refuses all queued requests, because weir is shutting down. Stored versions take effect at the next start.
    pub(crate) fn close(&self) {
        let mut queue = self.queue();
        queue.is_closed = true;
        queue.waiting.clear();
        queue.bytes = 0;
        let open = queue.reports.all().filter(|report| !report.state.is_final());
        open.for_each(Report::refuse_at_end);
        drop(queue);
        self.reported.notify_waiters();
    }
}

fn check_text(what: &str, text: &str, bytes_max: usize) -> Result<(), NotQueued> {
    if text.len() > bytes_max {
        return Err(NotQueued::Invalid(format!("the {what} has at most {bytes_max} bytes")));
    }
    if text.chars().any(char::is_control) {
        let why = format!("the {what} has a control character: write it in one line of text");
        return Err(NotQueued::Invalid(why));
    }
    if what == "author" && (text.is_empty() || text == OWN_AUTHOR) {
        let why = format!("an author has a name, other than `{OWN_AUTHOR}`");
        return Err(NotQueued::Invalid(why));
    }
    Ok(())
}

#[cfg(test)]
mod tests;

//! The exporter of spans: a thread that takes encoded spans from the workers and sends them to an OpenTelemetry collector
//! (OTLP over HTTP).
//!
//! Workers hand over batches through a bounded channel and never wait: when it is full they drop the batch and count its
//! spans. Batches are gathered into requests bounded by size, number and age. A request that fails for a reason that may
//! pass is repeated after growing pauses, or after `Retry-After`, a few times; meanwhile the channel fills. At the end of the
//! process, what waits is sent as long as [`SpanExport::finish`] allows.

mod post;
mod request;
#[cfg(test)]
mod tests;

use std::io;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::sync::watch;
use weir_config::snapshot::Exporting;
use weir_dataplane::reports::SpanBatch;

use crate::asking::until_retry;
use crate::events::Events;
use crate::log_writer::AllLogCounters;
use post::{Accepted, PostError, post};
use request::Request;

/// Batches that may wait to be sent, of all workers together; each has about 32 KiB at most.
pub const BATCHES_WAITING_MAX: usize = 256;
/// A request of this size is sent at once.
const REQUEST_BYTES: usize = 1 << 20;
/// And one of so many spans.
const REQUEST_SPANS: u32 = 4_096;
/// How often a request is sent until its spans are given up.
const TRIES_MAX: u32 = 5;
/// Pauses between two tries.
const RETRIES: RangeInclusive<Duration> = Duration::from_millis(500)..=Duration::from_secs(30);
/// The name in events.
const SUBJECT: &str = "traces";
/// How often the end of the thread is looked for.
const FINISH_INTERVAL: Duration = Duration::from_millis(5);
/// The time that the thread may take to notice that its time is up.
const FINISH_SLACK: Duration = Duration::from_millis(200);

/// Results of the export.
#[derive(Debug, Default)]
pub struct SpanCounters {
    /// Spans that the collector has taken.
    pub exported: AtomicU64,
    /// Spans given up because the collector could not be reached, or was not ready.
    pub failed: AtomicU64,
    /// Spans that the collector has refused.
    pub refused: AtomicU64,
    failing: Mutex<Option<Failing>>,
}

/// The export does not succeed at the moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failing {
    /// The collector.
    pub url: String,
    /// The last reason.
    pub reason: String,
}

impl SpanCounters {
    /// Why the last request was not taken; `None`: it was.
    pub fn failing(&self) -> Option<Failing> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the state before.
    pub(crate) fn set_failing(&self, failing: Option<Failing>) -> Option<Failing> {
        let mut place = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut place, failing)
    }
}

/// The state of the export thread.
#[derive(Debug, Clone, Default)]
struct Orders {
    /// Where spans go; `None`: nowhere.
    exporting: Option<Arc<Exporting>>,
    /// When everything must have been sent; `None`: the process goes on.
    until: Option<Instant>,
}

/// The running exporter.
#[derive(Debug)]
pub struct SpanExport {
    batches: SyncSender<SpanBatch>,
    orders: watch::Sender<Orders>,
    thread: JoinHandle<()>,
}

impl SpanExport {
    /// Starts the thread.
    pub fn start(
        exporting: Option<Arc<Exporting>>,
        counters: Arc<AllLogCounters>,
        events: Events,
    ) -> io::Result<Self> {
        let (batches, waiting) = sync_channel(BATCHES_WAITING_MAX);
        let (orders, ordered) = watch::channel(Orders { exporting, until: None });
        let exporter = Exporter { waiting, orders: ordered, counters, events, runtime: None };
        let builder = thread::Builder::new().name("weir-spans".into());
        let thread = builder.spawn(move || exporter.run())?;
        Ok(Self { batches, orders, thread })
    }

    /// Where workers send their batches.
    pub fn sender(&self) -> SyncSender<SpanBatch> {
        self.batches.clone()
    }

    /// From now on, spans go there.
    pub fn apply(&self, exporting: Option<&Arc<Exporting>>) {
        self.orders.send_if_modified(|orders| {
            let is_other = orders.exporting.as_ref() != exporting;
            orders.exporting = exporting.cloned();
            is_other
        });
    }

    /// Sends the waiting spans and ends, if that takes no longer than `until`; call it when the workers have ended. The
    /// returned value waits for that.
    pub fn finish(self, until: Instant) -> Finishing {
        let Self { batches, orders, thread } = self;
        orders.send_modify(|orders| orders.until = Some(until));
        drop(batches);
        Finishing { thread, until, _orders: orders }
    }
}

/// An exporter that ends.
pub struct Finishing {
    thread: JoinHandle<()>,
    until: Instant,
    _orders: watch::Sender<Orders>,
}

impl Finishing {
    /// Waits for the end. Returns whether it came in time.
    pub fn wait(self) -> bool {
        // The thread gives up by itself then.
        let until = self.until + FINISH_SLACK;
        while !self.thread.is_finished() {
            if Instant::now() >= until {
                return false;
            }
            thread::sleep(FINISH_INTERVAL);
        }
        self.thread.join().is_ok()
    }
}

/// Returns when the process ends and its time for that is up.
async fn time_is_up(orders: &mut watch::Receiver<Orders>) {
    let ordered = orders.wait_for(|orders| orders.until.is_some()).await;
    let until = ordered.ok().and_then(|orders| orders.until);
    match until {
        Some(until) => tokio::time::sleep_until(until.into()).await,
        // Nobody gives orders any more.
        None => std::future::pending().await,
    }
}

/// The state of the thread.
struct Exporter {
    waiting: Receiver<SpanBatch>,
    orders: watch::Receiver<Orders>,
    counters: Arc<AllLogCounters>,
    events: Events,
    /// Made with the first request.
    runtime: Option<Runtime>,
}

impl Exporter {
    fn run(mut self) {
        while let Ok(first) = self.waiting.recv() {
            let gathered = self.gather(first);
            self.export(&gathered);
        }
        // A look-up of a name cannot be ended, and is not waited for.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }

    /// Spans for one request.
    fn gather(&self, first: SpanBatch) -> SpanBatch {
        let mut gathered = first;
        let interval = self.orders.borrow().exporting.as_ref().map_or(0, |it| it.interval_ms);
        let due = Instant::now() + Duration::from_millis(interval);
        while gathered.bytes.len() < REQUEST_BYTES && gathered.lines < REQUEST_SPANS {
            let left = match self.orders.borrow().until {
                Some(_) => Duration::ZERO,
                None => due.saturating_duration_since(Instant::now()),
            };
            match self.waiting.recv_timeout(left) {
                Ok(batch) => {
                    gathered.bytes.extend_from_slice(&batch.bytes);
                    gathered.lines += batch.lines;
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        gathered
    }

    /// Sends spans, as often as it takes and makes sense.
    fn export(&mut self, gathered: &SpanBatch) {
        let spans = u64::from(gathered.lines);
        let mut tries = 0;
        loop {
            let Orders { exporting, until } = self.orders.borrow_and_update().clone();
            // Spans of a configuration before.
            let Some(exporting) = exporting else {
                self.counters.spans.failed.fetch_add(spans, Relaxed);
                return;
            };
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                self.counters.spans.failed.fetch_add(spans, Relaxed);
                return;
            }
            let timeout = Duration::from_millis(exporting.timeout_ms);
            let timeout = left.map_or(timeout, |left| left.min(timeout));
            tries += 1;
            let failure = match self.try_once(&exporting, gathered, timeout) {
                Ok(accepted) => return self.note_accepted(&exporting, spans, &accepted),
                Err(failure) => failure,
            };
            self.note_failure(&exporting, failure.to_string());
            if !failure.may_pass() {
                self.counters.spans.refused.fetch_add(spans, Relaxed);
                return;
            }
            let own = until_retry(tries, RETRIES);
            let pause = failure.retry_after().map_or(own, |asked| asked.min(*RETRIES.end()));
            if tries >= TRIES_MAX || left.is_some_and(|left| left <= pause) {
                self.counters.spans.failed.fetch_add(spans, Relaxed);
                return;
            }
            self.pause(pause);
        }
    }

    fn try_once(
        &mut self,
        exporting: &Exporting,
        gathered: &SpanBatch,
        timeout: Duration,
    ) -> Result<Accepted, PostError> {
        let mut orders = self.orders.clone();
        let runtime = self.runtime()?;
        let body = Request { service_name: &exporting.service_name }.encode(&gathered.bytes);
        runtime.block_on(async {
            let begun = Instant::now();
            tokio::select! {
                posted = post(exporting, body) => posted,
                () = tokio::time::sleep(timeout) => Err(PostError::TimedOut(timeout)),
                () = time_is_up(&mut orders) => Err(PostError::TimedOut(begun.elapsed())),
            }
        })
    }

    fn runtime(&mut self) -> Result<&Runtime, PostError> {
        if self.runtime.is_none() {
            let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
            self.runtime = Some(built.map_err(PostError::Connect)?);
        }
        self.runtime.as_ref().ok_or(PostError::Request)
    }

    /// Waits so long, or until there are other orders.
    fn pause(&mut self, pause: Duration) {
        let (Some(runtime), orders) = (&self.runtime, &mut self.orders) else { return };
        runtime.block_on(async {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = orders.changed() => {}
            }
        });
    }

    fn note_accepted(&self, exporting: &Exporting, spans: u64, accepted: &Accepted) {
        let refused = accepted.refused.min(spans);
        self.counters.spans.exported.fetch_add(spans - refused, Relaxed);
        self.counters.spans.refused.fetch_add(refused, Relaxed);
        if refused > 0 {
            let reason = format!("the collector refuses {refused} spans: {}", accepted.reason);
            return self.note_failure(exporting, reason);
        }
        if self.counters.spans.set_failing(None).is_some() {
            self.events.info(SUBJECT, format_args!("are sent to {} again", exporting.url));
        }
    }

    fn note_failure(&self, exporting: &Exporting, reason: String) {
        let url = exporting.url.to_string();
        let failing = Failing { url, reason };
        let before = self.counters.spans.set_failing(Some(failing.clone()));
        if before.is_none_or(|before| before.url != failing.url) {
            let Failing { url, reason } = failing;
            self.events.warning(SUBJECT, format_args!("cannot be sent to {url}: {reason}"));
        }
    }
}

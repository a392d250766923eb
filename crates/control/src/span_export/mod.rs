//! The exporter of spans: a thread that takes encoded spans from the workers and sends them to an OpenTelemetry collector
//! (OTLP over HTTP).
//!
//! Workers send batches through a bounded channel and never wait. When the channel is full, they drop the batch and count its
//! spans. The exporter joins batches to requests with limits on size, number and age. After a temporary failure, it repeats a
//! request a few times, after growing pauses or after `Retry-After`. Meanwhile the channel fills. At the end of the process,
//! waiting spans are sent within the time of [`SpanExport::finish`].

pub mod counters;
mod post;
mod request;
#[cfg(test)]
mod tests;

use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::sync::watch;
use weir_config::snapshot::TraceExport;
use weir_outgoing::exchange::until_retry;
use weir_telemetry::reports::SpanBatch;

use self::counters::ExportFailure;
use crate::events::Events;
use crate::log_writer::AllLogCounters;
use post::{ExportResult, PostError, post};
use request::Request;

/// Capacity of the channel, in batches of all workers. A batch has at most about 32 KiB.
pub const BATCHES_WAITING_MAX: usize = 256;
/// A request with this size is sent at once.
const REQUEST_BYTES: usize = 1 << 20;
/// A request with this number of spans is sent at once.
const REQUEST_SPANS: u32 = 4_096;
/// Maximum number of attempts per request. Its spans are then dropped.
const TRIES_MAX: u32 = 5;
/// Pauses between two attempts.
const RETRIES: RangeInclusive<Duration> = Duration::from_millis(500)..=Duration::from_secs(30);
/// The name in events.
const SUBJECT: &str = "traces";
/// Interval between checks whether the thread has ended.
const FINISH_INTERVAL: Duration = Duration::from_millis(5);
/// Additional time for the thread to notice the end of its time.
const FINISH_SLACK: Duration = Duration::from_millis(200);

/// The state of the export thread.
#[derive(Debug, Clone, Default)]
struct Orders {
    /// The collector; `None`: spans are dropped.
    exporting: Option<Arc<TraceExport>>,
    /// The end of the time for sending; `None`: the process continues.
    until: Option<Instant>,
}

/// A running exporter.
#[derive(Debug)]
pub struct SpanExport {
    batches: SyncSender<SpanBatch>,
    orders: watch::Sender<Orders>,
    thread: JoinHandle<()>,
}

impl SpanExport {
    /// Starts the thread.
    pub fn start(
        exporting: Option<Arc<TraceExport>>,
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

    /// The sender of batches, for workers.
    pub fn sender(&self) -> SyncSender<SpanBatch> {
        self.batches.clone()
    }

    /// Sets the collector.
    pub fn apply(&self, exporting: Option<&Arc<TraceExport>>) {
        self.orders.send_if_modified(|orders| {
            let is_other = orders.exporting.as_ref() != exporting;
            orders.exporting = exporting.cloned();
            is_other
        });
    }

    /// Sends the waiting spans until `until`, and ends. Must be called after the workers have ended. The returned value waits for
    /// the end.
    pub fn finish(self, until: Instant) -> EndingExporter {
        let Self { batches, orders, thread } = self;
        orders.send_modify(|orders| orders.until = Some(until));
        drop(batches);
        EndingExporter { thread, until, _orders: orders }
    }
}

/// An exporter that ends.
pub struct EndingExporter {
    thread: JoinHandle<()>,
    until: Instant,
    _orders: watch::Sender<Orders>,
}

impl EndingExporter {
    /// Waits for the end. Returns whether the exporter ended in time.
    pub fn wait(self) -> bool {
        // The thread then ends by itself.
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

/// Waits until the process ends and the time for sending is over.
async fn time_is_up(orders: &mut watch::Receiver<Orders>) {
    let ordered = orders.wait_for(|orders| orders.until.is_some()).await;
    let until = ordered.ok().and_then(|orders| orders.until);
    match until {
        Some(until) => tokio::time::sleep_until(until.into()).await,
        // The sender of settings is gone.
        None => std::future::pending().await,
    }
}

/// The state of the thread.
struct Exporter {
    waiting: Receiver<SpanBatch>,
    orders: watch::Receiver<Orders>,
    counters: Arc<AllLogCounters>,
    events: Events,
    /// Created with the first request.
    runtime: Option<Runtime>,
}

impl Exporter {
    fn run(mut self) {
        while let Ok(first) = self.waiting.recv() {
            let gathered = self.gather(first);
            self.export(&gathered);
        }
        // A name lookup cannot be cancelled, so the runtime does not wait for it.
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

    /// Sends spans, and repeats temporary failures.
    fn export(&mut self, gathered: &SpanBatch) {
        let spans = u64::from(gathered.lines);
        let mut tries = 0;
        loop {
            let Orders { exporting, until } = self.orders.borrow_and_update().clone();
            // Spans of an earlier configuration.
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
        exporting: &TraceExport,
        gathered: &SpanBatch,
        timeout: Duration,
    ) -> Result<ExportResult, PostError> {
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

    /// Waits for this time, or for other settings.
    fn pause(&mut self, pause: Duration) {
        let (Some(runtime), orders) = (&self.runtime, &mut self.orders) else { return };
        runtime.block_on(async {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = orders.changed() => {}
            }
        });
    }

    fn note_accepted(&self, exporting: &TraceExport, spans: u64, accepted: &ExportResult) {
        let refused = accepted.refused.min(spans);
        self.counters.spans.exported.fetch_add(spans - refused, Relaxed);
        self.counters.spans.refused.fetch_add(refused, Relaxed);
        if refused > 0 {
            let reason = format!("the collector refuses {refused} spans: {}", accepted.reason);
            return self.note_failure(exporting, reason);
        }
        if self.counters.spans.set_failing(None).is_some() {
            self.events.info(SUBJECT, format_args!("are sent to {} again", exporting.url.origin()));
        }
    }

    fn note_failure(&self, exporting: &TraceExport, reason: String) {
        let url = exporting.url.origin();
        let failing = ExportFailure { url, reason };
        let before = self.counters.spans.set_failing(Some(failing.clone()));
        if before.is_none_or(|before| before.url != failing.url) {
            let ExportFailure { url, reason } = failing;
            self.events.warning(SUBJECT, format_args!("cannot be sent to {url}: {reason}"));
        }
    }
}

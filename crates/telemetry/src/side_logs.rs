//! Logs with entries for only a few requests: findings of the web application firewall, and spans.

use std::sync::mpsc::SyncSender;

use weir_core::clock::Clock;
use weir_exchange::parts::inspection_report::InspectionReport;
use weir_exchange::parts::request_ids::RequestIds;
use weir_exchange::shared::counters::WorkerCounters;

use crate::reports::{LogBatch, SpanBatch};
use crate::spans::{FinishedTrace, SpanLog};
use crate::waf_log::{UnwrittenLine, WafLog};

/// Logs with entries for only a few requests.
pub struct SideLogs {
    waf: WafLog,
    spans: SpanLog,
    /// Whether a log has unsent entries.
    has_lines: bool,
}

impl SideLogs {
    /// Creates logs that send their batches to these queues.
    pub fn new(waf: SyncSender<LogBatch>, spans: SyncSender<SpanBatch>) -> Self {
        Self { waf: WafLog::new(waf), spans: SpanLog::new(spans), has_lines: false }
    }

    /// The log line of an inspected request, which is not written yet.
    pub fn begin_inspected(
        &mut self,
        report: Box<InspectionReport>,
        clock: Clock,
    ) -> UnwrittenLine {
        self.waf.begin(report, clock)
    }

    /// Writes the log line of an inspected request.
    pub fn write_inspected(
        &mut self,
        line: &UnwrittenLine,
        clock: Clock,
        counters: &WorkerCounters,
    ) {
        self.waf.write(line, clock, counters);
        self.has_lines = true;
    }

    /// Writes the spans of a finished transaction.
    pub fn write_spans(
        &mut self,
        finished: &FinishedTrace<'_>,
        ids: &RequestIds,
        clock: Clock,
        counters: &WorkerCounters,
    ) {
        self.spans.write(finished, ids, clock, counters);
        self.has_lines = true;
    }

    /// Sends batches that are old enough. Returns the time of the next call; `None`: no entry waits.
    #[inline]
    pub fn flush_if_due(&mut self, now_ms: u64, counters: &WorkerCounters) -> Option<u64> {
        if !self.has_lines {
            return None;
        }
        let waf_due_ms = self.waf.flush_if_due(now_ms, counters);
        let spans_due_ms = self.spans.flush_if_due(now_ms, counters);
        let due_ms = waf_due_ms.into_iter().chain(spans_due_ms).min();
        self.has_lines = due_ms.is_some();
        due_ms
    }

    /// Sends all batches; if a queue is full, drops the batch and counts its entries.
    pub fn flush(&mut self, counters: &WorkerCounters) {
        self.waf.flush(counters);
        self.spans.flush(counters);
    }
}

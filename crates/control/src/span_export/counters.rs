//! The results of the export.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

/// The results of the export.
#[derive(Debug, Default)]
pub struct SpanCounters {
    /// Spans that the collector accepted.
    pub exported: AtomicU64,
    /// Spans dropped because the collector was unreachable or not ready.
    pub failed: AtomicU64,
    /// Spans that the collector refused.
    pub refused: AtomicU64,
    failing: Mutex<Option<ExportFailure>>,
}

/// The export fails at the moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportFailure {
    /// The collector.
    pub url: String,
    /// The last error.
    pub reason: String,
}

impl SpanCounters {
    /// The error of the last request; `None`: the collector accepted it.
    pub fn failing(&self) -> Option<ExportFailure> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the previous state.
    pub(crate) fn set_failing(&self, failing: Option<ExportFailure>) -> Option<ExportFailure> {
        let mut place = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut place, failing)
    }
}

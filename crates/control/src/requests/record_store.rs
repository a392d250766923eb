//! The stored records: the latest ones, and the latest slow ones.

use std::collections::VecDeque;
use std::sync::Arc;

use weir_config::snapshot::RecentRequests;
use weir_telemetry::records::record::Record;

/// Approximate maximum size of all records in bytes: one half for slow requests, the other for the latest ones.
pub const RECORD_BYTES_MAX: usize = 16 << 20;

/// Maximum number of slow requests in their own list.
pub const SLOW_MAX: usize = 200;

/// Records in the order in which their requests ended.
#[derive(Debug, Default)]
struct List {
    records: VecDeque<Arc<Record>>,
    bytes: usize,
}

impl List {
    fn add(&mut self, record: &Arc<Record>, keep: usize) {
        self.bytes += record.bytes();
        self.records.push_back(Arc::clone(record));
        self.shrink(keep);
    }

    fn shrink(&mut self, keep: usize) {
        while self.records.len() > keep || self.bytes > RECORD_BYTES_MAX / 2 {
            let Some(gone) = self.records.pop_front() else { return };
            self.bytes -= gone.bytes();
        }
    }
}

/// The stored records. A slow one is in both lists if it was also sampled.
#[derive(Debug, Default)]
pub struct RecordStore {
    recent: List,
    slow: List,
    /// Maximum number of recent records.
    keep: usize,
}

impl RecordStore {
    /// Sets the number of stored records; without settings, none.
    pub fn set(&mut self, settings: Option<RecentRequests>) {
        self.keep = settings.map_or(0, |settings| settings.keep as usize);
        self.recent.shrink(self.keep);
        self.slow.shrink(if self.keep == 0 { 0 } else { SLOW_MAX });
    }

    /// Whether records are stored.
    pub fn is_on(&self) -> bool {
        self.keep > 0
    }

    /// Stores a record, if the settings require it.
    pub fn add(&mut self, record: &Arc<Record>) {
        if self.keep == 0 {
            return;
        }
        if record.is_slow {
            self.slow.add(record, SLOW_MAX);
        }
        if record.is_sampled {
            self.recent.add(record, self.keep);
        }
    }

    /// The stored records, without order or repetition; `only_slow`: slow requests only.
    pub fn all(&self, only_slow: bool) -> Vec<Arc<Record>> {
        let slow = &self.slow.records;
        let mut all: Vec<Arc<Record>> = slow.iter().cloned().collect();
        if !only_slow {
            // Some slow records did not fit into the other list.
            let is_new = |record: &&Arc<Record>| {
                !record.is_slow || !slow.iter().any(|it| Arc::ptr_eq(it, record))
            };
            all.extend(self.recent.records.iter().filter(is_new).cloned());
        }
        all
    }
}

//! The records that are kept: the last ones, and the last slow ones.

use std::collections::VecDeque;
use std::sync::Arc;

use weir_config::snapshot::RecentRequests;
use weir_dataplane::records::record::Record;

/// Bytes of all records in memory, about: slow ones have one half, and the last ones the other.
pub const RECORD_BYTES_MAX: usize = 16 << 20;

/// Slow requests that are kept apart.
pub const SLOW_MAX: usize = 200;

/// Records in the order of their ends.
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

/// The records that are kept. A slow one is in both lists if it was chosen to be kept, too.
#[derive(Debug, Default)]
pub struct Kept {
    recent: List,
    slow: List,
    /// How many recent ones there may be.
    keep: usize,
}

impl Kept {
    /// Keeps as many as these settings say; without settings, none.
    pub fn set(&mut self, settings: Option<RecentRequests>) {
        self.keep = settings.map_or(0, |settings| settings.keep as usize);
        self.recent.shrink(self.keep);
        self.slow.shrink(if self.keep == 0 { 0 } else { SLOW_MAX });
    }

    /// Whether any are kept.
    pub fn is_on(&self) -> bool {
        self.keep > 0
    }

    /// Keeps a record, if it is to be kept.
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

    /// The kept records, in no order, each once; `only_slow`: those that were slow.
    pub fn all(&self, only_slow: bool) -> Vec<Arc<Record>> {
        let slow = &self.slow.records;
        let mut all: Vec<Arc<Record>> = slow.iter().cloned().collect();
        if !only_slow {
            // Some slow ones were too many for the other list.
            let is_new = |record: &&Arc<Record>| {
                !record.is_slow || !slow.iter().any(|it| Arc::ptr_eq(it, record))
            };
            all.extend(self.recent.records.iter().filter(is_new).cloned());
        }
        all
    }
}

//! The load that compression causes on a worker: memory, and time of its turns.

use crate::worker::world::World;

impl World {
    /// Updates the gauge of memory that responses use for compression.
    pub fn note_compression_memory(&self) {
        let gauge = &self.counted.compression_memory_bytes;
        gauge.add((self.tools.encoders.taken_bytes() as u64).wrapping_sub(gauge.get()));
    }

    /// Handles the end of a turn. The load of the worker determines the effort of encoders.
    pub fn note_turn_for_budget(&mut self, began_us: u64) {
        let now_us = (self.tools.time_us)();
        self.tools.budget.note_turn(now_us.saturating_sub(began_us), now_us);
        let counters = &self.counted;
        let total = self.tools.budget.counters();
        counters.compression_reduced.add(total.reduced - counters.compression_reduced.get());
        counters.compression_skipped.add(total.skipped - counters.compression_skipped.get());
    }
}

//! The costs of compression for a worker: memory, and time of its turns.

use crate::worker::world::World;

impl World {
    /// Memory of responses for compression.
    pub fn note_compression_memory(&self) {
        let gauge = &self.counted.compression_memory_bytes;
        gauge.add((self.tools.encoders.taken_bytes() as u64).wrapping_sub(gauge.get()));
    }

    /// A turn of the loop is over: how busy the worker is decides how hard encoders try.
    pub fn note_turn_for_budget(&mut self, began_us: u64) {
        let now_us = (self.tools.time_us)();
        self.tools.budget.note_turn(now_us.saturating_sub(began_us), now_us);
        let counters = &self.counted;
        let total = self.tools.budget.counters();
        counters.compression_reduced.add(total.reduced - counters.compression_reduced.get());
        counters.compression_skipped.add(total.skipped - counters.compression_skipped.get());
    }
}

//! The lines of a log from one worker, sent in batches.
//!
//! The data path never waits for a log: if a batch cannot be sent, it is dropped and its lines are counted.

use std::sync::mpsc::{SyncSender, TrySendError};

use weir_exchange::shared::counters::Counter;

use crate::reports::{Log, LogBatch};

/// A batch of this size is sent at once.
const BATCH_BYTES: usize = 32 * 1024;
/// Maximum time that a line waits for its batch to be sent.
const BATCH_MS: u64 = 100;

/// Collects the lines of one log into batches.
pub struct Batcher<L = Log> {
    batch: LogBatch<L>,
    since_ms: u64,
    sender: SyncSender<LogBatch<L>>,
}

impl<L: Copy> Batcher<L> {
    /// Creates a batcher that sends batches of this log to `sender`.
    pub fn new(log: L, sender: SyncSender<LogBatch<L>>) -> Self {
        Self { batch: LogBatch { log, bytes: Vec::new(), lines: 0 }, since_ms: 0, sender }
    }

    /// The way of batches to the log.
    pub fn sender(&self) -> SyncSender<LogBatch<L>> {
        self.sender.clone()
    }

    /// The buffer to append a line to. [`Self::end_line`] must follow.
    pub fn line(&mut self, now_ms: u64) -> &mut Vec<u8> {
        if self.batch.lines == 0 {
            self.since_ms = now_ms;
        }
        &mut self.batch.bytes
    }

    /// Completes a line, whose line feed is already written. Sends the batch if it is large enough.
    pub fn end_line(&mut self, dropped: &Counter) {
        self.batch.lines += 1;
        if self.batch.bytes.len() >= BATCH_BYTES {
            self.flush(dropped);
        }
    }

    /// Sends the batch if it is old enough. Returns the time of the next call; `None`: no line waits.
    #[inline]
    pub fn flush_if_due(&mut self, now_ms: u64, dropped: &Counter) -> Option<u64> {
        if self.batch.lines == 0 {
            return None;
        }
        let due_ms = self.since_ms + BATCH_MS;
        if now_ms < due_ms {
            return Some(due_ms);
        }
        self.flush(dropped);
        None
    }

    /// Sends the batch; if the queue is full, drops it and counts its lines in `dropped`.
    pub fn flush(&mut self, dropped: &Counter) {
        if self.batch.lines == 0 {
            return;
        }
        let bytes = Vec::with_capacity(BATCH_BYTES + 1024);
        let empty = LogBatch { log: self.batch.log, bytes, lines: 0 };
        let batch = std::mem::replace(&mut self.batch, empty);
        match self.sender.try_send(batch) {
            Ok(()) => {}
            Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) => {
                dropped.add(u64::from(batch.lines));
                self.batch.bytes = batch.bytes;
                self.batch.bytes.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, sync_channel};

    use super::*;

    fn write(batcher: &mut Batcher, line: &str, now_ms: u64, dropped: &Counter) {
        batcher.line(now_ms).extend_from_slice(line.as_bytes());
        batcher.end_line(dropped);
    }

    fn received(receiver: &Receiver<LogBatch>) -> Vec<(String, u32)> {
        let text = |batch: LogBatch| (String::from_utf8(batch.bytes).unwrap(), batch.lines);
        receiver.try_iter().map(text).collect()
    }

    #[test]
    fn a_batch_is_handed_over_when_the_first_of_its_lines_is_old_enough() {
        let (sender, receiver) = sync_channel(8);
        let (mut batcher, dropped) = (Batcher::new(Log::Access, sender), Counter::default());
        assert_eq!(batcher.flush_if_due(0, &dropped), None);
        write(&mut batcher, "one\n", 10, &dropped);
        write(&mut batcher, "two\n", 60, &dropped);
        assert_eq!(batcher.flush_if_due(10 + BATCH_MS - 1, &dropped), Some(10 + BATCH_MS));
        assert!(received(&receiver).is_empty());
        assert_eq!(batcher.flush_if_due(10 + BATCH_MS, &dropped), None);
        assert_eq!(received(&receiver), [("one\ntwo\n".to_owned(), 2)]);
        assert_eq!(dropped.get(), 0);
    }

    #[test]
    fn a_large_batch_is_handed_over_at_once() {
        let (sender, receiver) = sync_channel(8);
        let (mut batcher, dropped) = (Batcher::new(Log::Access, sender), Counter::default());
        write(&mut batcher, &"x".repeat(BATCH_BYTES), 0, &dropped);
        assert_eq!(received(&receiver).len(), 1);
        assert_eq!(batcher.flush_if_due(u64::MAX, &dropped), None);
    }

    #[test]
    fn what_the_log_does_not_take_is_dropped_and_counted() {
        let (sender, receiver) = sync_channel(1);
        let (mut batcher, dropped) = (Batcher::new(Log::Access, sender), Counter::default());
        for line in ["one\n", "two\n", "three\n"] {
            write(&mut batcher, line, 0, &dropped);
            batcher.flush(&dropped);
        }
        assert_eq!((received(&receiver), dropped.get()), (vec![("one\n".to_owned(), 1)], 2));
        write(&mut batcher, "four\n", 0, &dropped);
        batcher.flush(&dropped);
        assert_eq!(received(&receiver), [("four\n".to_owned(), 1)]);
        drop(receiver);
        write(&mut batcher, "five\n", 0, &dropped);
        batcher.flush(&dropped);
        assert_eq!(dropped.get(), 3);
    }
}

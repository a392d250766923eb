//! The queue of work for the inspectors, and the inspections of a worker that wait for a place in it.
//!
//! A worker cannot wait, and no request passes uninspected. So it keeps what the queue has no place for, and goes on with it
//! itself, one short turn for each round of its event loop. What waits longest is first, in either way.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use weir_exchange::parts::inspection_job::{InspectionJob, TURN};
use weir_telemetry::waf_log::UnwrittenLine;

use crate::panics;

/// Number of inspections that wait for each thread. With more, the last ones would wait long behind expensive ones, while workers
/// have time for them.
const PLACES_PER_THREAD: usize = 4;
/// Maximum number of inspections that a worker keeps from one round to the next. Their memory is bounded by that and by the limit
/// for held bodies.
const KEPT_MAX: usize = 512;

/// Work for a thread, and the index of the worker that it is from.
pub type QueuedWork = (usize, Work);

/// Work for a thread.
#[derive(Debug)]
pub enum Work {
    /// An inspection, which the worker gets back.
    Inspect(Box<InspectionJob>),
    /// The log line of an inspected request.
    Write(UnwrittenLine),
}

/// The way of a worker's inspections to the threads.
#[derive(Debug, Clone)]
pub struct ToInspectors {
    queue: SyncSender<QueuedWork>,
    are_running: Arc<AtomicBool>,
}

impl ToInspectors {
    /// An empty queue for this number of threads. `are_running`: whether there are threads.
    pub fn new(threads: usize, are_running: Arc<AtomicBool>) -> (Self, Receiver<QueuedWork>) {
        let (queue, waiting) = sync_channel(threads * PLACES_PER_THREAD);
        (Self { queue, are_running }, waiting)
    }

    /// Puts work of this worker into the queue.
    ///
    /// # Errors
    /// The work: the queue is full, or there are no threads.
    pub fn send(&self, worker: usize, work: Work) -> Result<(), Work> {
        if !self.are_running.load(Relaxed) {
            return Err(work);
        }
        self.queue.try_send((worker, work)).map_err(|error| match error {
            TrySendError::Full((_, work)) | TrySendError::Disconnected((_, work)) => work,
        })
    }
}

/// The long inspections of a worker that are not on threads.
#[derive(Debug)]
pub struct KeptInspections {
    worker: usize,
    /// `None`: there are no threads.
    to: Option<ToInspectors>,
    kept: VecDeque<Box<InspectionJob>>,
}

impl KeptInspections {
    /// None yet. `worker`: the index of the worker.
    pub fn new(worker: usize, to: Option<ToInspectors>) -> Self {
        Self { worker, to, kept: VecDeque::new() }
    }

    /// Sends an inspection to the threads, or keeps it. Returns whether it was sent.
    pub fn add(&mut self, job: Box<InspectionJob>) -> bool {
        self.kept.push_back(job);
        self.send_all();
        self.kept.is_empty()
    }

    /// Sends what is kept as far as the queue has places, and goes on with the first of the others for a turn. Returns an
    /// inspection that has ended, with the message of its panic, if it panicked. If too many are kept, the first is finished.
    pub fn resume(&mut self) -> Option<(Box<InspectionJob>, Option<String>)> {
        self.send_all();
        let are_too_many = self.kept.len() > KEPT_MAX;
        let job = self.kept.front_mut()?;
        let act = AssertUnwindSafe(|| match are_too_many {
            true => {
                job.run();
                true
            }
            false => job.resume(TURN),
        });
        // After a panic, the job goes back without a verdict.
        let (has_ended, message) = match catch_unwind(act) {
            Ok(has_ended) => (has_ended, None),
            Err(panic) => (true, Some(panics::message(&*panic))),
        };
        let ended = if has_ended { self.kept.pop_front() } else { None };
        ended.map(|job| (job, message))
    }

    /// Whether there are none, so that the worker need not make another round.
    #[inline]
    pub fn are_none(&self) -> bool {
        self.kept.is_empty()
    }

    /// Whether the next round has to end one of them first.
    pub fn are_too_many(&self) -> bool {
        self.kept.len() > KEPT_MAX
    }

    /// Drops all, because all connections are closed. Returns their number.
    pub fn forget(&mut self) -> usize {
        self.kept.drain(..).count()
    }

    fn send_all(&mut self) {
        let Some(to) = &self.to else { return };
        while let Some(job) = self.kept.pop_front() {
            if let Err(Work::Inspect(job)) = to.send(self.worker, Work::Inspect(job)) {
                return self.kept.push_front(job);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_inspections::{broken, long, short};

    fn queue(has_threads: bool) -> (KeptInspections, Receiver<QueuedWork>) {
        let (to, waiting) = ToInspectors::new(1, Arc::new(AtomicBool::new(has_threads)));
        (KeptInspections::new(7, Some(to)), waiting)
    }

    #[test]
    fn what_has_no_place_is_kept_and_sent_in_order() {
        let (mut inspections, waiting) = queue(true);
        let (mut tickets, jobs): (Vec<_>, Vec<_>) = (1..=6).map(long).unzip();
        let are_sent: Vec<bool> = jobs.into_iter().map(|job| inspections.add(job)).collect();
        assert_eq!(are_sent, [true, true, true, true, false, false]);
        let next = || match waiting.try_recv() {
            Ok((worker, Work::Inspect(job))) => Ok((worker, job.number)),
            Ok((_, Work::Write(line))) => panic!("{line:?}"),
            Err(error) => Err(error),
        };
        assert_eq!(next(), Ok((7, 1)));
        assert!(inspections.resume().is_none(), "the last one has not ended");
        assert!(!inspections.are_none(), "one place for two");
        assert_eq!(next(), Ok((7, 2)));
        let (ticket, job) = short(7);
        tickets.push(ticket);
        assert!(!inspections.add(job), "others were first");
        for number in 3..=6 {
            assert_eq!(next(), Ok((7, number)));
        }
        assert!(inspections.resume().is_none() && inspections.are_none(), "it was sent");
        assert_eq!(next(), Ok((7, 7)));
        drop(tickets);
    }

    #[test]
    fn what_is_kept_goes_on_by_turns() {
        for has_queue in [false, true] {
            let mut inspections = match has_queue {
                true => queue(false).0,
                false => KeptInspections::new(0, None),
            };
            let (_first, job) = long(1);
            assert!(!inspections.add(job), "there are no threads");
            let (_second, job) = short(2);
            assert!(!inspections.add(job));
            let mut turns = 1;
            let first = loop {
                match inspections.resume() {
                    Some((job, message)) => break (job.number, job.is_lost(), message),
                    None => turns += 1,
                }
            };
            assert_eq!(first, (1, false, None));
            assert!(turns > 2, "{turns} turns");
            assert!(inspections.resume().is_some_and(|(job, _)| job.number == 2));
            assert!(inspections.are_none() && inspections.resume().is_none());
        }
    }

    #[test]
    fn a_panic_costs_its_inspection() {
        let (mut inspections, _waiting) = queue(false);
        let [(_first, first), (_second, second)] = [broken(1), short(2)];
        inspections.add(first);
        inspections.add(second);
        let (job, message) = inspections.resume().expect("it has ended");
        assert!(job.is_lost());
        assert!(message.is_some_and(|it| it.starts_with("as told")));
        assert!(inspections.resume().is_some_and(|(job, message)| {
            job.number == 2 && !job.is_lost() && message.is_none()
        }));
    }

    #[test]
    fn more_than_a_worker_keeps_are_finished() {
        let (mut inspections, _waiting) = queue(false);
        let (_tickets, jobs): (Vec<_>, Vec<_>) = (0..=KEPT_MAX as u64).map(long).unzip();
        for job in jobs {
            inspections.add(job);
        }
        assert!(inspections.are_too_many());
        assert!(inspections.resume().is_some_and(|(job, _)| job.number == 0), "in one turn");
        assert!(!inspections.are_too_many() && inspections.resume().is_none());
        assert_eq!(inspections.forget(), KEPT_MAX);
        assert!(inspections.are_none());
    }
}

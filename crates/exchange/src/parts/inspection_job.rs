//! An inspection by the web application firewall on its way to another thread and back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use weir_waf::inspection::{Inspection, Step, Turn, UnfinishedInspection, Verdict};

use crate::arena::ExchangeKey;

/// The turn of an inspection on a worker, for which the worker's other connections wait. Rules that need more processor time, or
/// have more to read, go on elsewhere. The clock is first read after a little work, so the time before that is not part of it.
pub const TURN: Turn =
    Turn { cpu_us_max: 150, work_bytes_max: u64::MAX, input_bytes_max: 24 << 10 };

/// The turn of an inspection elsewhere. Between two turns it notices that its result is no longer needed.
const TURN_ELSEWHERE: Turn = Turn { cpu_us_max: 5_000, ..Turn::WHOLE };

/// An inspection on its way to an inspector and back.
#[derive(Debug)]
pub struct InspectionJob {
    /// The exchange that it belongs to.
    pub exchange: ExchangeKey,
    /// The number among those of the worker.
    pub number: u64,
    is_wanted: Arc<AtomicBool>,
    progress: Progress,
}

/// How far the inspection is.
#[derive(Debug)]
enum Progress {
    Unfinished(UnfinishedInspection),
    Done(Inspection, Verdict),
    /// It stopped, because nobody waits for its verdict.
    Stopped(Inspection),
    /// It has panicked.
    Lost,
}

/// What came back.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "it is taken apart at once")]
pub enum JobResult {
    /// The inspection, with its verdict unless it was no longer needed.
    Inspected(Inspection, Option<Verdict>),
    /// Nothing: it has panicked.
    Lost,
}

impl InspectionJob {
    /// Inspects to the end, or until the result is no longer needed. After a panic, the job is lost, but can come back.
    pub fn run(&mut self) {
        while !self.resume(TURN_ELSEWHERE) {}
    }

    /// Inspects for one turn. Returns whether the inspection has ended, or its result is no longer needed. After a panic, the job
    /// is lost, but can come back.
    pub fn resume(&mut self, turn: Turn) -> bool {
        self.progress = match std::mem::replace(&mut self.progress, Progress::Lost) {
            Progress::Unfinished(unfinished) if !self.is_wanted.load(Relaxed) => {
                Progress::Stopped(unfinished.give_up())
            }
            Progress::Unfinished(unfinished) => match unfinished.proceed(turn) {
                Step::More(unfinished) => Progress::Unfinished(unfinished),
                Step::Done(inspection, verdict) => Progress::Done(inspection, verdict),
            },
            ended => ended,
        };
        !matches!(self.progress, Progress::Unfinished(_))
    }

    /// What came back.
    pub fn into_back(self) -> JobResult {
        match self.progress {
            Progress::Done(inspection, verdict) => JobResult::Inspected(inspection, Some(verdict)),
            Progress::Unfinished(unfinished) => JobResult::Inspected(unfinished.give_up(), None),
            Progress::Stopped(inspection) => JobResult::Inspected(inspection, None),
            Progress::Lost => JobResult::Lost,
        }
    }

    /// Whether it has panicked.
    pub fn is_lost(&self) -> bool {
        matches!(self.progress, Progress::Lost)
    }

    /// Whether this is the inspection of a ticket.
    pub fn is_of(&self, ticket: &Ticket) -> bool {
        self.number == ticket.number
    }
}

/// A transaction's claim to an inspection elsewhere. When it is dropped, the result is no longer needed.
#[derive(Debug)]
pub struct Ticket {
    /// The number of the job.
    pub number: u64,
    is_wanted: Arc<AtomicBool>,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.is_wanted.store(false, Relaxed);
    }
}

/// A job for an inspection, and the claim to it. `number`: no other of the worker has it.
pub fn job(
    number: u64,
    exchange: ExchangeKey,
    unfinished: UnfinishedInspection,
) -> (Ticket, Box<InspectionJob>) {
    let is_wanted = Arc::new(AtomicBool::new(true));
    let ticket = Ticket { number, is_wanted: Arc::clone(&is_wanted) };
    let progress = Progress::Unfinished(unfinished);
    (ticket, Box::new(InspectionJob { exchange, number, is_wanted, progress }))
}

//! Threads that go on with inspections by the web application firewall that take more than a turn of a worker, and write log lines
//! that take as long.
//!
//! Workers put work into one bounded queue. An inspection comes back as a command; a line goes to the log.
//!
//! These threads parse what clients send, so they are confined as workers are. They share the descriptors of the control plane,
//! because they announce results on the control sockets of workers.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use weir_event_loop::confine;

use crate::inspection_queue::{QueuedWork, ToInspectors, Work};
use crate::thread::Link;
use crate::worker::Command;

/// Maximum number of threads.
const THREADS_MAX: usize = 16;
/// The nice value of the threads, which gives workers priority. Beside a busy worker they get a quarter of a core: with much
/// less, they would starve when workers are kept busy by inspections themselves.
const NICENESS: i32 = 5;

/// The threads of a data path. They end when its workers have ended.
#[derive(Debug)]
pub struct Inspectors {
    waiting: Arc<Mutex<Receiver<QueuedWork>>>,
    are_running: Arc<AtomicBool>,
    threads: usize,
    are_confined: bool,
}

impl Inspectors {
    /// No threads yet, and the way to them. There will be as many as workers. `are_confined`: they will be denied access to
    /// files.
    pub fn new(workers: usize, are_confined: bool) -> (Self, ToInspectors) {
        let are_running = Arc::new(AtomicBool::new(false));
        let threads = workers.clamp(1, THREADS_MAX);
        let (to, waiting) = ToInspectors::new(threads, Arc::clone(&are_running));
        let waiting = Arc::new(Mutex::new(waiting));
        (Self { waiting, are_running, threads, are_confined }, to)
    }

    /// Starts the threads, unless they are running. Without any, workers keep inspections. `workers`: in the order of their
    /// indexes.
    pub fn start(&self, workers: impl Iterator<Item = Arc<Link>>) {
        if self.are_running.load(Relaxed) {
            return;
        }
        // A worker ends with its control plane, so threads must not keep the way to it open.
        let workers: Arc<[Weak<Link>]> = workers.map(|link| Arc::downgrade(&link)).collect();
        let mut has_some = false;
        for number in 0..self.threads {
            let (waiting, workers) = (Arc::clone(&self.waiting), Arc::clone(&workers));
            let work = move || run(&waiting, &workers);
            has_some |= start_thread(number, self.are_confined, work).is_ok();
        }
        self.are_running.store(has_some, Relaxed);
    }
}

/// Starts a thread, and waits until it is confined. After an error it does no work.
fn start_thread(
    number: usize,
    is_confined: bool,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    let (started, outcome) = mpsc::channel();
    let builder = std::thread::Builder::new().name(format!("inspector-{number}"));
    builder.spawn(move || {
        let result = prepare(is_confined);
        let is_prepared = result.is_ok();
        // The starting thread waits for this message, so the receiver exists.
        let _ = started.send(result);
        if is_prepared {
            work();
        }
    })?;
    outcome.recv().unwrap_or_else(|_| Err(io::Error::other("it ended at once")))
}

/// Gives the calling thread less priority than workers have, and denies it access to files.
fn prepare(is_confined: bool) -> io::Result<()> {
    // If this fails, the thread has the same priority as the workers.
    let _ = rustix::process::nice(NICENESS);
    if is_confined {
        confine::without_files()?;
    }
    Ok(())
}

fn run(waiting: &Mutex<Receiver<QueuedWork>>, workers: &[Weak<Link>]) {
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        // All workers have ended.
        let Ok((worker, work)) = next else { return };
        let Some(command) = done(work) else { continue };
        if let Some(link) = workers.get(worker).and_then(Weak::upgrade) {
            link.tell(command);
        }
    }
}

/// Does the work. Returns what its worker has to know. The panic hook logs a panic.
fn done(work: Work) -> Option<Command> {
    match work {
        Work::Inspect(mut job) => {
            // After a panic, the job goes back all the same, without a verdict.
            let _ = catch_unwind(AssertUnwindSafe(|| job.run()));
            Some(Command::Inspected(job))
        }
        Work::Write(line) => {
            let is_sent = catch_unwind(AssertUnwindSafe(|| line.send()));
            (!is_sent.unwrap_or(false)).then_some(Command::LineDropped)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use weir_core::policy::WafMode;
    use weir_event_loop::clock;
    use weir_exchange::parts::inspection_report::{InspectionOutcome, InspectionReport};
    use weir_telemetry::side_logs::SideLogs;

    use super::*;
    use crate::sample_inspections::{broken, long, short};

    #[test]
    fn inspections_come_back_and_a_panic_costs_only_its_own() {
        let (inspectors, to) = Inspectors::new(1, false);
        let (_first, job) = short(1);
        let refused = to.send(0, Work::Inspect(job)).expect_err("there are no threads yet");
        let (link, commands, _socket) = Link::to_channel().expect("a link");
        inspectors.start(std::iter::once(Arc::clone(&link)));
        // A second call starts no others.
        inspectors.start(std::iter::empty());
        let came_back = || match commands.recv() {
            Ok(Command::Inspected(job)) => (job.number, job.is_lost()),
            other => panic!("{other:?}"),
        };
        to.send(0, refused).expect("a place");
        assert_eq!(came_back(), (1, false));
        for (number, sample) in [(2, broken(2)), (3, long(3))] {
            let (_ticket, job) = sample;
            to.send(0, Work::Inspect(job)).expect("a place");
            assert_eq!(came_back(), (number, number == 2));
        }
        // Nobody gets what comes back for a worker that has ended.
        drop(link);
        let [(_fourth, fourth), (_fifth, fifth)] = [short(4), short(5)];
        to.send(0, Work::Inspect(fourth)).expect("a place");
        to.send(1, Work::Inspect(fifth)).expect("a place");
        drop(to);
        assert!(commands.recv().is_err());
    }

    #[test]
    fn a_line_goes_to_its_log_and_one_without_a_place_is_told_to_the_worker() {
        let (inspectors, to) = Inspectors::new(1, false);
        let (link, commands, _socket) = Link::to_channel().expect("a link");
        inspectors.start(std::iter::once(Arc::clone(&link)));
        let ((log, lines), (spans, _)) = (sync_channel(1), sync_channel(1));
        let mut side_logs = SideLogs::new(log, spans);
        for request_id in ["first", "second"] {
            let report = InspectionReport {
                request_id: request_id.into(),
                virtual_server: "shop".into(),
                credential_fields: Default::default(),
                client: None,
                mode: WafMode::Block,
                outcome: InspectionOutcome::Unfinished,
                status: 0,
                inspection: None,
            };
            let line = side_logs.begin_inspected(Box::new(report), clock::now());
            to.send(0, Work::Write(line)).expect("a place");
        }
        // One thread writes both in order. The log has a place for one.
        assert!(matches!(commands.recv(), Ok(Command::LineDropped)));
        let line = String::from_utf8(lines.recv().expect("a line").bytes).expect("text");
        assert!(line.contains("\"first\"") && lines.try_recv().is_err(), "{line}");
    }

    #[test]
    fn a_thread_opens_no_file() {
        if let Err(error) = confine::version() {
            return weir_testing::skip(&format!("the kernel has no Landlock: {error}"));
        }
        for (is_confined, expected) in
            [(true, Err(io::ErrorKind::PermissionDenied)), (false, Ok(()))]
        {
            let (opened, result) = mpsc::channel();
            let work = move || {
                let file = std::fs::File::open("/etc/passwd").map(drop);
                opened.send(file.map_err(|error| error.kind())).expect("a test that waits");
            };
            start_thread(0, is_confined, work).expect("a thread");
            assert_eq!(result.recv().expect("its result"), expected, "confined: {is_confined}");
        }
    }
}

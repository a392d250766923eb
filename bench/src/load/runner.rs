//! Runs a load: threads, phases of the measurement, sum of the results.

use std::fmt;
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::thread::LinkNameSpaceType;
use weir_event_loop::{EventLoop, descriptors};

use super::engine::Engine;
use super::load_outcome::{Handshakes, LoadOutcome, Moment, Window};
use super::plan::{Extent, Plan};
use super::share::{Share, Signals, ThreadProgress, ThreadResult, now_us};
use super::tally::Tally;
use crate::pinning::pin_thread;

/// Interval of progress reports to the observer.
const PROGRESS_EVERY: Duration = Duration::from_millis(500);
/// Interval of checks whether all connections are open.
const READY_POLL: Duration = Duration::from_millis(5);

/// An observer of a load. The calling thread of [`run`] calls it.
pub trait Observer {
    /// Called when the measurement begins, after the warm-up.
    fn measurement_began(&mut self) {}
    /// Called at the end of [`LoadOutcome::window`]. Connections are still open, and responses may still arrive.
    fn measurement_ended(&mut self) {}
    /// Reports progress, about twice a second.
    fn progress(&mut self, _progress: &Progress) {}
}

/// An observer that ignores everything.
#[derive(Debug)]
pub struct NoObserver;

impl Observer for NoObserver {}

/// The progress of a load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Seconds since the start of the measurement; `None` before.
    pub measured_s: Option<f64>,
    /// Good transactions in the measurement.
    pub requests: u64,
    /// Errors in the measurement.
    pub errors: u64,
}

/// The reason why a load could not run.
#[derive(Debug)]
pub enum LoadError {
    /// A thread could not be started or prepared.
    Thread(io::Error),
    /// The network namespace could not be entered.
    Namespace(io::Error),
    /// A core of the plan cannot be used.
    Core(usize, io::Error),
    /// A thread panicked.
    Panicked,
}

impl fmt::Display for LoadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Thread(error) => write!(formatter, "a load thread could not work: {error}"),
            Self::Namespace(error) => {
                write!(formatter, "the network namespace could not be entered: {error}")
            }
            Self::Core(core, error) => write!(formatter, "core {core} cannot be used: {error}"),
            Self::Panicked => formatter.write_str("a load thread panicked: this is a bug of weir"),
        }
    }
}

impl std::error::Error for LoadError {}

/// Runs a load to its end and returns the sum of the results.
pub fn run(plan: &Plan, observer: &mut dyn Observer) -> Result<LoadOutcome, LoadError> {
    let plan = Arc::new(plan.clone());
    let shares = Share::divide(&plan, now_us());
    let signals = Arc::new(Signals::new(shares.len()));
    let waits = plan.rate.is_some() || !plan.ramp_up.is_zero() || !plan.warm_up.is_zero();
    if !waits {
        // The observer comes first, so that its work is not part of the measurement.
        observer.measurement_began();
        begin(&plan, &signals, now_us());
    }
    let mut crew = LoadThreads::start(&plan, shares, &signals)?;
    if waits {
        crew.open(observer);
        crew.warm_up(observer);
    }
    let results = crew.results(observer);
    let timeline = std::mem::take(&mut crew.timeline);
    // Read before the connections are closed: closing is not part of a stopped load.
    let over_us = now_us();
    crew.release()?;
    Ok(LoadOutcome { timeline, ..sum(&plan, &signals, &results?, over_us) })
}

/// Sets the start of the measurement, and with a duration its end.
fn begin(plan: &Plan, signals: &Signals, at_us: u64) {
    if let Extent::Time(time) = plan.extent {
        signals.end_us.store(at_us + time.as_micros() as u64, Release);
    }
    signals.begin_us.store(at_us, Release);
}

/// The threads of a load.
struct LoadThreads {
    plan: Arc<Plan>,
    signals: Arc<Signals>,
    threads: Vec<JoinHandle<()>>,
    outcomes: Receiver<Result<ThreadResult, LoadError>>,
    /// Dropping the senders lets the threads close their connections.
    hold: Vec<Sender<()>>,
    /// Results that arrived while waiting for something else.
    arrived: Vec<Result<ThreadResult, LoadError>>,
    /// The progress at each interval, if the plan asks for it.
    timeline: Vec<Moment>,
}

impl LoadThreads {
    fn start(
        plan: &Arc<Plan>,
        shares: Vec<Share>,
        signals: &Arc<Signals>,
    ) -> Result<Self, LoadError> {
        let (send, outcomes) = mpsc::channel();
        let mut crew = Self {
            plan: plan.clone(),
            signals: signals.clone(),
            threads: Vec::new(),
            outcomes,
            hold: Vec::new(),
            arrived: Vec::new(),
            timeline: Vec::new(),
        };
        for share in shares {
            let (hold, released) = mpsc::channel();
            let (plan, signals, send) = (plan.clone(), signals.clone(), send.clone());
            let started = std::thread::Builder::new()
                .name(format!("load-{}", share.thread))
                .spawn(move || serve(plan, share, signals, &send, &released));
            match started {
                Ok(thread) => crew.threads.push(thread),
                Err(error) => {
                    // The other threads would wait for the failed thread.
                    crew.plan.stop.store(true, Relaxed);
                    crew.hold.clear();
                    crew.release()?;
                    return Err(LoadError::Thread(error));
                }
            }
            crew.hold.push(hold);
        }
        Ok(crew)
    }

    /// Waits until every connection was tried and the ramp is over. The time limit is one connection attempt beyond the
    /// ramp, so a silent server cannot block the load.
    fn open(&mut self, observer: &mut dyn Observer) {
        let ramp_over_us = now_us() + self.plan.ramp_up.as_micros() as u64;
        let latest_us = ramp_over_us + self.plan.timeout.as_micros() as u64;
        let is_ready = |signals: &Signals| signals.ready.iter().all(|ready| ready.load(Acquire));
        let mut told_us = now_us();
        while !(is_ready(&self.signals) && now_us() >= ramp_over_us) {
            if self.wait(READY_POLL) || self.plan.stop.load(Relaxed) || now_us() >= latest_us {
                return;
            }
            if now_us() - told_us >= PROGRESS_EVERY.as_micros() as u64 {
                told_us = now_us();
                self.tell_progress(observer);
            }
        }
    }

    /// Starts the schedule, and after the warm-up the measurement.
    fn warm_up(&mut self, observer: &mut dyn Observer) {
        let start_us = now_us();
        let begin_us = start_us + self.plan.warm_up.as_micros() as u64;
        begin(&self.plan, &self.signals, begin_us);
        self.signals.start_us.store(start_us, Release);
        while let left_us @ 1.. = begin_us.saturating_sub(now_us()) {
            if self.wait(Duration::from_micros(left_us).min(PROGRESS_EVERY)) {
                break;
            }
        }
        observer.measurement_began();
    }

    /// Waits for the results of all threads. Reports the end of the measurement, which with a duration comes before the
    /// last responses.
    fn results(&mut self, observer: &mut dyn Observer) -> Result<Vec<ThreadResult>, LoadError> {
        let end_us = self.signals.end_us.load(Acquire);
        let mut is_measuring = true;
        while self.arrived.len() < self.threads.len() {
            let left = Duration::from_micros(end_us.saturating_sub(now_us()));
            if is_measuring && left.is_zero() {
                is_measuring = false;
                observer.measurement_ended();
            }
            let every = self.plan.timeline_every.unwrap_or(PROGRESS_EVERY);
            let wait = if is_measuring { left.min(every) } else { PROGRESS_EVERY };
            match self.outcomes.recv_timeout(wait) {
                Ok(result) => self.arrived.push(result),
                Err(RecvTimeoutError::Timeout) => {
                    let progress = self.tell_progress(observer);
                    self.note_moment(progress, is_measuring);
                }
                Err(RecvTimeoutError::Disconnected) => return Err(LoadError::Panicked),
            }
        }
        if is_measuring {
            observer.measurement_ended();
        }
        self.arrived.drain(..).collect()
    }

    /// Lets the threads close their connections and waits until they have ended.
    fn release(self) -> Result<(), LoadError> {
        drop(self.hold);
        let joined: Vec<_> = self.threads.into_iter().map(JoinHandle::join).collect();
        if joined.iter().any(Result::is_err) { Err(LoadError::Panicked) } else { Ok(()) }
    }

    /// Waits for this time, or until a thread ends. Returns whether a thread has ended.
    fn wait(&mut self, time: Duration) -> bool {
        match self.outcomes.recv_timeout(time) {
            Ok(result) => {
                self.arrived.push(result);
                true
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => true,
        }
    }

    /// Adds the progress of the measurement to the timeline, if the plan has one.
    fn note_moment(&mut self, progress: Progress, is_measuring: bool) {
        if let (Some(at_s), true, true) =
            (progress.measured_s, is_measuring, self.plan.timeline_every.is_some())
        {
            self.timeline.push(Moment { at_s, requests: progress.requests });
        }
    }

    fn tell_progress(&self, observer: &mut dyn Observer) -> Progress {
        let begin_us = self.signals.begin_us.load(Acquire);
        let of = |count: fn(&ThreadProgress) -> &AtomicU64| {
            self.signals.progress.iter().map(|thread| count(thread).load(Relaxed)).sum()
        };
        let progress = Progress {
            measured_s: now_us().checked_sub(begin_us).map(|us| us as f64 / 1e6),
            requests: of(|thread| &thread.requests),
            errors: of(|thread| &thread.errors),
        };
        observer.progress(&progress);
        progress
    }
}

/// The main function of a load thread.
fn serve(
    plan: Arc<Plan>,
    share: Share,
    signals: Arc<Signals>,
    results: &Sender<Result<ThreadResult, LoadError>>,
    released: &Receiver<()>,
) {
    let (io, result) = match prepare(&plan, share.thread) {
        Ok(mut io) => {
            let mut engine = Engine::new(plan, share, signals);
            let ran = engine.run(&mut io).map_err(LoadError::Thread);
            (Some(io), ran.map(|()| engine.result()))
        }
        Err(error) => (None, Err(error)),
    };
    // The receiver is gone if the load failed in another thread.
    let _ = results.send(result);
    // Keeps the connections open until all threads are done, because closing must not be measured. The channel carries
    // no messages; receiving ends when the sender is dropped.
    let _ = released.recv();
    drop(io);
}

/// Prepares the calling thread: descriptor table, network namespace, core and timer slack.
fn prepare(plan: &Plan, thread: usize) -> Result<EventLoop, LoadError> {
    descriptors::isolate(None).map_err(LoadError::Thread)?;
    if let Some(path) = &plan.network_namespace {
        let entered = File::open(path).and_then(|file| {
            let kind = Some(LinkNameSpaceType::Network);
            Ok(rustix::thread::move_into_link_name_space(file.as_fd(), kind)?)
        });
        entered.map_err(LoadError::Namespace)?;
    }
    let failed = |error: rustix::io::Errno| LoadError::Thread(error.into());
    pin_thread(&plan.cores, thread).map_err(|error| LoadError::Core(error.core, error.source))?;
    // At 25,000 requests per second the interval is 40 us, shorter than the kernel's default timer slack of 50 us.
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1)).map_err(failed)?;
    EventLoop::new().map_err(LoadError::Thread)
}

/// Adds up the results of the threads, which ended at `over_us`.
fn sum(plan: &Plan, signals: &Signals, results: &[ThreadResult], over_us: u64) -> LoadOutcome {
    let (mut warm_up, mut measured) = (Tally::new(), Tally::new());
    let mut window = Window::default();
    let (mut unsent, mut cpu_seconds, mut last_done_us) = (0, 0.0, 0);
    for result in results {
        warm_up.add(&result.warm_up);
        measured.add(&result.measured);
        window.requests += result.completed.requests;
        window.bytes += result.completed.bytes;
        unsent += result.unsent;
        cpu_seconds += result.cpu_s;
        last_done_us = last_done_us.max(result.last_done_us);
    }
    let begin_us = signals.begin_us.load(Acquire);
    let end_us = signals.end_us.load(Acquire).min(over_us);
    // A single slow response at the end must not reduce the rate of all others, so the window ends before the wait for
    // open requests.
    let (window_end_us, ended_us) = match plan.extent {
        Extent::Time(_) => (end_us, end_us.max(last_done_us)),
        Extent::Requests(_) => (last_done_us, last_done_us),
    };
    // A load that was stopped before the measurement has length 0.
    let seconds = |until_us: u64| until_us.saturating_sub(begin_us) as f64 / 1e6;
    window.elapsed_s = seconds(window_end_us);
    let per_second = window.requests as f64 / window.elapsed_s;
    LoadOutcome {
        requests: measured.requests,
        errors: measured.errors_total(),
        requests_per_second: if window.elapsed_s > 0.0 { per_second } else { 0.0 },
        window: Some(window),
        offered_per_second: plan.rate,
        unsent,
        latency_us: measured.latency.summary(),
        service_time_us: plan.rate.map(|_| measured.service_time.summary()),
        connect_us: measured.connect.summary(),
        bytes: measured.bytes,
        connections_opened: warm_up.connections_opened + measured.connections_opened,
        sessions_resumed: warm_up.sessions_resumed + measured.sessions_resumed,
        handshakes: plan.tls.as_ref().map(|_| Handshakes {
            full: measured.handshakes_full,
            resumed: measured.sessions_resumed,
        }),
        warm_up_requests: warm_up.requests,
        warm_up_errors: warm_up.errors_total(),
        errors_by_kind: measured.errors,
        error_examples: measured.examples,
        elapsed_s: seconds(ended_us),
        cpu_seconds,
        timeline: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::atomic::AtomicBool;
    use std::time::Instant;

    use super::super::plan::{Checksum, Expectation};
    use super::super::request::RequestSpec;
    use super::*;

    #[derive(Default)]
    struct Times {
        began: Option<Instant>,
        ended: Option<Instant>,
    }

    impl Observer for Times {
        fn measurement_began(&mut self) {
            assert!(self.began.replace(Instant::now()).is_none(), "told twice");
        }

        fn measurement_ended(&mut self) {
            assert!(self.ended.replace(Instant::now()).is_none(), "told twice");
        }
    }

    /// The readings of an observer must match the window, and exclude the wait for a silent server.
    #[test]
    fn an_observer_hears_of_the_end_before_the_last_response() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let address = listener.local_addr().expect("its address");
        let spec = RequestSpec {
            address,
            method: "GET".into(),
            authority: "test".into(),
            path: "/".into(),
            fields: Vec::new(),
            body: Vec::new(),
        };
        let ms = Duration::from_millis;
        let mut plan = Plan {
            targets: vec![spec.into_target(1)],
            connections: 2,
            requests_per_connection: None,
            extent: Extent::Time(ms(100)),
            rate: None,
            one_at_a_time: false,
            ramp_up: Duration::ZERO,
            warm_up: Duration::ZERO,
            timeout: ms(3_000),
            sources: Vec::new(),
            threads: 1,
            cores: Vec::new(),
            network_namespace: None,
            expect: Expectation {
                status: None,
                body_bytes: None,
                checksum: Checksum::Ignored,
                gzip: None,
            },
            tls: None,
            http2: None,
            timeline_every: None,
            stop: Arc::new(AtomicBool::new(false)),
        };
        for (warm_up, extent, is_before) in [
            (Duration::ZERO, Extent::Time(ms(100)), true),
            (ms(50), Extent::Time(ms(100)), true),
            (Duration::ZERO, Extent::Requests(2), false),
        ] {
            (plan.warm_up, plan.extent) = (warm_up, extent);
            let mut times = Times::default();
            let outcome = run(&plan, &mut times).expect("a load");
            let (began, ended) = times.began.zip(times.ended).expect("both");
            let (measured, waited) = (ended - began, ended.elapsed());
            // Half of the timeout of the last response.
            assert_eq!(waited >= ms(1_500), is_before, "{extent:?}: {measured:?}, {waited:?}");
            let window = outcome.window.expect("a window");
            assert_eq!((window.requests, window.bytes), (0, 0), "{extent:?}");
            assert!(window.elapsed_s >= 0.1, "{extent:?}: {outcome:?}");
            assert_eq!(window.elapsed_s < 1.5, is_before, "{extent:?}: {outcome:?}");
        }
        drop(listener);
    }
}

//! The load generator for UDP: simulated clients that send queries and wait for the answers.
//!
//! A *flow* is a socket with its own address and port. It has at most one open query. In a closed loop, the next query
//! follows the answer. In an open loop, queries have due times and use a free flow. After [`UdpPlan::queries_per_flow`]
//! queries the flow is replaced by a new one. A query without an answer within the time limit is lost: it counts as an
//! error and is not sent again. A late answer is not counted.

mod engine;
mod plan;

use std::fs::File;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::thread::LinkNameSpaceType;

use super::load_outcome::{LoadOutcome, Window};
use super::plan::Extent;
use super::runner::{LoadError, Observer, Progress};
use super::share::now_us;
use super::tally::Tally;
use crate::pinning::pin_thread;
use engine::{Engine, UdpThreadResult};
pub use plan::UdpPlan;

/// Interval of progress reports to the observer.
const PROGRESS_EVERY: Duration = Duration::from_millis(500);
/// Interval of checks whether a load with a number of queries is over.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Times of a load, in microseconds of the monotonic clock; `u64::MAX` means not known yet.
struct Times {
    start_us: AtomicU64,
    begin_us: AtomicU64,
    end_us: AtomicU64,
    /// Good answers to queries of the measurement, over all threads.
    good: AtomicU64,
    /// Errors of the measurement.
    errors: AtomicU64,
}

impl Times {
    fn new() -> Self {
        let unknown = || AtomicU64::new(u64::MAX);
        let (good, errors) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { start_us: unknown(), begin_us: unknown(), end_us: unknown(), good, errors }
    }

    fn set(&self, plan: &UdpPlan) {
        let start_us = now_us();
        let begin_us = start_us + plan.warm_up.as_micros() as u64;
        if let Extent::Time(time) = plan.extent {
            self.end_us.store(begin_us + time.as_micros() as u64, Release);
        }
        self.begin_us.store(begin_us, Release);
        self.start_us.store(start_us, Release);
    }

    fn tell(&self, observer: &mut dyn Observer) {
        let measured_us = now_us().checked_sub(self.begin_us.load(Acquire));
        observer.progress(&Progress {
            measured_s: measured_us.map(|us| us as f64 / 1e6),
            requests: self.good.load(Relaxed),
            errors: self.errors.load(Relaxed),
        });
    }
}

/// A thread of a load. It begins when `go` has a message.
struct Worker {
    go: Sender<()>,
    thread: JoinHandle<Result<UdpThreadResult, LoadError>>,
}

/// Runs a load to its end and returns the sum of the results.
pub fn run(plan: &UdpPlan, observer: &mut dyn Observer) -> Result<LoadOutcome, LoadError> {
    let plan = Arc::new(plan.clone());
    let times = Arc::new(Times::new());
    let threads = plan.threads.clamp(1, plan.flows.max(1));
    let (send, ready) = mpsc::channel();
    let mut crew = Vec::new();
    for thread in 0..threads {
        // On an error, the started threads end because `go` is dropped.
        crew.push(Worker::start(&plan, (thread, threads), &times, send.clone())?);
    }
    drop(send);
    // All threads have opened their sockets, or failed, before the first query.
    let prepared = ready.iter().take(threads).filter(|is_good| *is_good).count();
    if prepared == threads {
        times.set(&plan);
        for worker in &crew {
            // The wait below notices a thread that has ended meanwhile.
            let _ = worker.go.send(());
        }
        let is_over = || crew.iter().all(|worker| worker.thread.is_finished());
        watch(&plan, &times, &is_over, observer);
    }
    let joined = crew.into_iter().map(|Worker { go, thread }| {
        drop(go);
        thread.join().unwrap_or(Err(LoadError::Panicked))
    });
    let seen: Vec<UdpThreadResult> = joined.collect::<Result<_, _>>()?;
    Ok(sum(&plan, &times, &seen))
}

impl Worker {
    fn start(
        plan: &Arc<UdpPlan>,
        place: (usize, usize),
        times: &Arc<Times>,
        ready: Sender<bool>,
    ) -> Result<Self, LoadError> {
        let (go, told) = mpsc::channel();
        let (plan, times) = (plan.clone(), times.clone());
        let work = move || {
            let engine = prepare(&plan, place);
            // The receiver is gone if the load failed in another thread.
            let _ = ready.send(engine.is_ok());
            let engine = engine?;
            match told.recv() {
                Ok(()) => engine.run(&plan, &times).map_err(LoadError::Thread),
                Err(_) => Ok(engine.into_seen(now_us())),
            }
        };
        let name = format!("queries-{}", place.0);
        let thread = std::thread::Builder::new().name(name).spawn(work);
        Ok(Self { go, thread: thread.map_err(LoadError::Thread)? })
    }
}

/// Reports progress to the observer until the measurement is over.
fn watch(plan: &UdpPlan, times: &Times, is_over: &dyn Fn() -> bool, observer: &mut dyn Observer) {
    let (begin_us, end_us) = (times.begin_us.load(Acquire), times.end_us.load(Acquire));
    let mut told_us = now_us();
    let mut wait_until = |until_us: u64, observer: &mut dyn Observer| {
        while now_us() < until_us && !plan.stop.load(Relaxed) && !is_over() {
            let left = Duration::from_micros(until_us - now_us().min(until_us));
            // Short sleeps notice a thread that ends early.
            std::thread::sleep(left.min(LOOK_EVERY));
            if now_us() - told_us >= PROGRESS_EVERY.as_micros() as u64 {
                told_us = now_us();
                times.tell(observer);
            }
        }
    };
    wait_until(begin_us, observer);
    observer.measurement_began();
    wait_until(end_us, observer);
    observer.measurement_ended();
}

/// Prepares the calling thread: network namespace, core, timer slack and sockets.
fn prepare(plan: &UdpPlan, place: (usize, usize)) -> Result<Engine, LoadError> {
    if let Some(path) = &plan.network_namespace {
        let entered = File::open(path).and_then(|file| {
            let kind = Some(LinkNameSpaceType::Network);
            Ok(rustix::thread::move_into_link_name_space(file.as_fd(), kind)?)
        });
        entered.map_err(LoadError::Namespace)?;
    }
    pin_thread(&plan.cores, place.0).map_err(|error| LoadError::Core(error.core, error.source))?;
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1))
        .map_err(|error| LoadError::Thread(error.into()))?;
    Engine::new(plan, place).map_err(LoadError::Thread)
}

fn sum(plan: &UdpPlan, times: &Times, seen: &[UdpThreadResult]) -> LoadOutcome {
    let (mut warm_up, mut measured) = (Tally::new(), Tally::new());
    let mut window = Window::default();
    let (mut unsent, mut cpu_seconds, mut last_done_us) = (0, 0.0, 0);
    for one in seen {
        warm_up.add(&one.warm_up);
        measured.add(&one.measured);
        window.requests += one.completed;
        unsent += one.unsent;
        cpu_seconds += one.cpu_s;
        last_done_us = last_done_us.max(one.last_done_us);
    }
    window.bytes = window.requests * u64::from(plan.answer_bytes);
    let begin_us = times.begin_us.load(Acquire);
    let seconds = |until_us: u64| until_us.saturating_sub(begin_us) as f64 / 1e6;
    let over_us = seen.iter().map(|one| one.over_us).max().unwrap_or(begin_us);
    let (window_end_us, ended_us) = match plan.extent {
        Extent::Time(_) => {
            let end_us = times.end_us.load(Acquire).min(over_us);
            (end_us, end_us.max(last_done_us))
        }
        Extent::Requests(_) => (last_done_us, last_done_us),
    };
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
        bytes: measured.bytes,
        connections_opened: warm_up.connections_opened + measured.connections_opened,
        warm_up_requests: warm_up.requests,
        warm_up_errors: warm_up.errors_total(),
        errors_by_kind: measured.errors,
        error_examples: measured.examples,
        elapsed_s: seconds(ended_us),
        cpu_seconds,
        ..LoadOutcome::default()
    }
}

/// Sends one query and waits up to `wait` for its answer. Returns whether a server answered.
pub fn answers(address: SocketAddr, wait: Duration) -> std::io::Result<bool> {
    use crate::datagram::{DATAGRAM_BYTES_MIN, number_answered, write_query};
    use std::net::UdpSocket;

    let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any)?;
    socket.connect(address)?;
    socket.set_read_timeout(Some(wait))?;
    let mut query = [0; DATAGRAM_BYTES_MIN];
    write_query(&mut query, 0, DATAGRAM_BYTES_MIN as u16);
    // An error means that no server is ready: the query was refused, or it timed out.
    let asked = socket.send(&query).and_then(|_| socket.recv(&mut query));
    Ok(asked.is_ok_and(|length| number_answered(&query[..length]) == Some(0)))
}

//! A steady load on keep-alive connections that counts every outcome.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::client::Client;

/// Maximum number of failures whose text is kept.
const FAILURES_KEPT_MAX: usize = 20;

/// Results of a load.
#[derive(Debug, Default, Clone)]
pub struct Tally {
    /// Complete responses with status 200.
    pub good: usize,
    /// New connections that could not be opened.
    pub connect_failures: usize,
    /// Requests whose keep-alive connection ended before the response.
    pub lost_requests: usize,
    /// Keep-alive connections that ended after a response without announcement.
    pub lost_connections: usize,
    /// Responses with another status, by status.
    pub other_status: Vec<u16>,
    /// Truncated responses.
    pub truncated: usize,
    /// Texts of the first failures.
    pub failures: Vec<String>,
}

impl Tally {
    /// Requests without a good response.
    pub fn failed(&self) -> usize {
        self.connect_failures + self.lost_requests + self.other_status.len() + self.truncated
    }

    fn add(&mut self, other: Self) {
        self.good += other.good;
        self.connect_failures += other.connect_failures;
        self.lost_requests += other.lost_requests;
        self.lost_connections += other.lost_connections;
        self.truncated += other.truncated;
        self.other_status.extend(other.other_status);
        self.failures.extend(other.failures);
    }

    fn note(&mut self, text: String) {
        if self.failures.len() < FAILURES_KEPT_MAX {
            self.failures.push(text);
        }
    }
}

/// The load's connections and pace.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Number of connections. Each has a thread and one request at a time.
    pub connections: usize,
    /// Pause between two requests of a connection.
    pub pause: Duration,
    /// Number of requests after which a connection is replaced; `None`: never.
    pub requests_per_connection: Option<usize>,
}

/// What a running load and its threads tell each other.
#[derive(Debug, Default)]
struct Progress {
    stops: AtomicBool,
    /// Good responses so far.
    good: AtomicUsize,
}

impl Progress {
    fn stops(&self) -> bool {
        self.stops.load(Ordering::Acquire)
    }
}

/// A load that runs until it is stopped.
#[derive(Debug)]
pub struct Load {
    progress: Arc<Progress>,
    threads: Vec<thread::JoinHandle<Tally>>,
}

impl Load {
    /// Starts requesting `path`.
    pub fn start(address: SocketAddr, path: &str, plan: Plan) -> Self {
        Self::start_on(address, &[path.to_owned()], plan)
    }

    /// Starts requesting these paths in turn, each connection beginning with another one.
    pub fn start_on(address: SocketAddr, paths: &[String], plan: Plan) -> Self {
        let progress = Arc::<Progress>::default();
        let threads = (0..plan.connections)
            .map(|number| {
                let (progress, mut paths) = (Arc::clone(&progress), paths.to_vec());
                let first = number * paths.len() / plan.connections;
                paths.rotate_left(first);
                thread::spawn(move || connection_after_connection(address, &paths, plan, &progress))
            })
            .collect();
        Self { progress, threads }
    }

    /// Waits until this number of further requests have got a good response.
    #[track_caller]
    pub fn wait_for_good(&self, more: usize) {
        let good = || self.progress.good.load(Ordering::Acquire);
        let least = good() + more;
        crate::eventually("requests are answered", crate::STEP_TIMEOUT, || good() >= least);
    }

    /// Stops the load and returns the results.
    pub fn stop(mut self) -> Tally {
        self.progress.stops.store(true, Ordering::Release);
        let mut tally = Tally::default();
        for thread in self.threads.drain(..) {
            tally.add(thread.join().expect("a thread of the load"));
        }
        tally
    }
}

fn connection_after_connection(
    address: SocketAddr,
    paths: &[String],
    plan: Plan,
    progress: &Progress,
) -> Tally {
    let mut tally = Tally::default();
    while !progress.stops() {
        match Client::try_connect(address) {
            Ok(client) => on_one_connection(client, paths, plan, progress, &mut tally),
            Err(error) => {
                tally.connect_failures += 1;
                tally.note(format!("connect: {error}"));
                thread::sleep(Duration::from_millis(10));
            }
        }
    }
    tally
}

fn on_one_connection(
    mut client: Client,
    paths: &[String],
    plan: Plan,
    progress: &Progress,
    tally: &mut Tally,
) {
    for number in 0..plan.requests_per_connection.unwrap_or(usize::MAX) {
        if progress.stops() {
            return;
        }
        let path = &paths[number % paths.len()];
        let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n");
        let answer = client.try_send(&request).and_then(|()| client.try_response(false));
        match answer {
            Ok(response) if !response.complete => {
                tally.truncated += 1;
                return tally.note(format!("truncated: {:?}", response.head));
            }
            Ok(response) if response.status != 200 => {
                tally.other_status.push(response.status);
                tally.note(format!("{} {}", response.head.start, response.text()));
                if response.head.has_token("connection", "close") {
                    return;
                }
            }
            Ok(response) => {
                tally.good += 1;
                progress.good.fetch_add(1, Ordering::AcqRel);
                if response.head.has_token("connection", "close") {
                    tally.lost_connections += usize::from(plan.requests_per_connection.is_none());
                    return;
                }
            }
            Err(error) => {
                tally.lost_requests += 1;
                return tally.note(format!("request {number} of a connection: {error}"));
            }
        }
        thread::sleep(plan.pause);
    }
}

//! The demo's clients: few connections and a moderate rate, for a limited time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use http_body_util::{BodyExt as _, Empty};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::HOST;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};
use weir_control::events::Events;

/// Default number of requests per second.
pub const RATE_DEFAULT: u32 = 80;
/// Maximum number of requests per second.
pub const RATE_MAX: u32 = 1_000;

/// A forgotten demo must not use CPU time forever: its traffic ends after this time,
const TIME_MAX: Duration = Duration::from_secs(3_600);

/// or after this many requests.
const REQUESTS_MAX: u64 = 1_000_000;

/// Maximum number of connections.
const CONNECTIONS_MAX: u32 = 16;

/// Requests per second per connection.
const RATE_PER_CONNECTION: u32 = 5;

/// Maximum time of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause before a connection is opened again after a failure.
const RECONNECT_PAUSE: Duration = Duration::from_millis(200);

/// The requested paths, used in turn.
const PATHS: [&str; 4] = ["/", "/headers", "/", "/bytes/2000"];

/// Results of the clients.
#[derive(Debug, Default)]
pub struct Traffic {
    /// Requests that were sent or attempted.
    pub requests: AtomicU64,
    /// Complete responses with status 200.
    pub answered: AtomicU64,
    /// Other requests.
    pub failed: AtomicU64,
    /// The user has paused the traffic.
    pub paused: AtomicBool,
}

/// Clients of one virtual server.
#[derive(Debug)]
pub struct Clients {
    /// The address of the virtual server.
    pub server: SocketAddr,
    /// Total requests per second.
    pub rate: u32,
    /// Receives reports on failures.
    pub events: Events,
    /// The results.
    pub traffic: Arc<Traffic>,
}

impl Clients {
    /// Sends requests until `end` is true or a limit is reached; current requests are finished.
    pub async fn run(self, end: watch::Receiver<bool>) {
        let clients = Arc::new(self);
        let count = (clients.rate / RATE_PER_CONNECTION).clamp(1, CONNECTIONS_MAX);
        let interval = Duration::from_secs(1) * count / clients.rate.max(1);
        let begin = Instant::now();
        let mut connections = JoinSet::new();
        for number in 0..count {
            let first = begin + interval * number / count;
            let client = Arc::clone(&clients);
            connections.spawn(client.run_connection(first, interval, end.clone()));
        }
        while connections.join_next().await.is_some() {}
        if !*end.borrow() {
            clients.events.info("demo", "has sent its share of requests, and ends its traffic");
        }
    }

    /// A client with one connection: a request per `interval`, after the previous one has ended.
    async fn run_connection(
        self: Arc<Self>,
        first: Instant,
        interval: Duration,
        mut end: watch::Receiver<bool>,
    ) {
        let mut ticks = tokio::time::interval_at(first, interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut connection = None;
        for path in PATHS.into_iter().cycle() {
            tokio::select! {
                biased;
                // An error means that the sender of `end` is gone.
                _ = end.wait_for(|&end| end) => return,
                _ = ticks.tick() => {}
            }
            if self.traffic.paused.load(Relaxed) {
                continue;
            }
            let sent = self.traffic.requests.fetch_add(1, Relaxed);
            if sent >= REQUESTS_MAX || first.elapsed() >= TIME_MAX {
                self.traffic.requests.fetch_sub(1, Relaxed);
                return;
            }
            let asked = tokio::time::timeout(REQUEST_TIMEOUT, self.ask(&mut connection, path));
            let failure = match asked.await {
                Ok(Ok(())) => {
                    self.traffic.answered.fetch_add(1, Relaxed);
                    continue;
                }
                Ok(Err(failure)) => failure,
                Err(_) => format!("no answer within {REQUEST_TIMEOUT:?}"),
            };
            connection = None;
            self.traffic.failed.fetch_add(1, Relaxed);
            self.events.error("demo", format_args!("asked for {path} and failed: {failure}"));
            tokio::time::sleep(RECONNECT_PAUSE).await;
        }
    }

    /// Sends a request on the kept connection, or on a new one.
    async fn ask(&self, connection: &mut Option<Connection>, path: &str) -> Result<(), String> {
        if connection.as_ref().is_none_or(|kept| kept.0.is_closed()) {
            *connection = Some(self.connect().await?);
        }
        let Some(Connection(sender)) = connection else {
            return Err("no connection".into());
        };
        sender.ready().await.map_err(|error| text_of(&error))?;
        let request = Request::get(path)
            .header(HOST, self.server.to_string())
            .body(Empty::new())
            .map_err(|error| text_of(&error))?;
        let response = sender.send_request(request).await;
        let response = response.map_err(|error| text_of(&error))?;
        let status = response.status();
        // The whole body is read, so that a truncated one counts as a failure.
        let mut body = response.into_body();
        while let Some(frame) = body.frame().await {
            frame.map_err(|error| text_of(&error))?;
        }
        match status.as_u16() {
            200 => Ok(()),
            _ => Err(format!("status {status}")),
        }
    }

    async fn connect(&self) -> Result<Connection, String> {
        let stream = TcpStream::connect(self.server).await;
        let stream = stream.map_err(|error| text_of(&error))?;
        // On failure, requests are still sent, only later.
        let _ = stream.set_nodelay(true);
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| text_of(&error))?;
        // The connection ends with its sender; the request gets the error.
        tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(Connection(sender))
    }
}

struct Connection(SendRequest<Empty<Bytes>>);

/// An error with its causes.
fn text_of(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

//! Streams: server-sent events (`text/event-stream`, section 9.2 of the HTML standard).
//!
//! A route of [`Route::stream`](super::route::Route::stream) returns a [`Producer`], which sends its events to a [`Sink`].
//! This module does everything else. Without events, a comment keeps the connection alive. A client that does not read makes
//! the producer wait in [`Sink::send`], and its connection is closed after
//! [`CONNECTION_TIME_MAX`](super::CONNECTION_TIME_MAX). The producer is dropped when the client disconnects, when weir ends or
//! hands over to another process, and when the credentials of the request become insufficient. The last event is `end`, with
//! the reason.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use hyper::body::Frame;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use weir_config::snapshot::Role;

use super::ask::Ask;
use super::connections::Source;
use super::lifetime::Lifetime;
use super::peer::Caller;
use super::problem::Problem;
use crate::observed::Observed;

/// The media type of streams.
pub(super) const EVENTS: &str = "text/event-stream";

/// Maximum number of streams on all listeners. It leaves connections for other requests.
pub const STREAMS_MAX: usize = 16;

/// Most simultaneous streams of one source, so that others have streams, too.
pub const STREAMS_PER_SOURCE_MAX: usize = STREAMS_MAX / 2;

/// Most simultaneous streams of all callers that may only read. On loopback, anybody on this host is one. One source cannot
/// use up all of them.
pub const STREAMS_OF_READERS_MAX: usize = STREAMS_PER_SOURCE_MAX + STREAMS_MAX / 8;

/// Most simultaneous streams of all callers without the role admin.
pub const STREAMS_OF_OPERATORS_MAX: usize = STREAMS_MAX - STREAMS_MAX / 4;

/// Most simultaneous streams of callers with this role or a lesser one.
fn of_role_max(role: Option<Role>) -> usize {
    match role {
        None | Some(Role::Read) => STREAMS_OF_READERS_MAX,
        Some(Role::Operate) => STREAMS_OF_OPERATORS_MAX,
        Some(Role::Admin) => STREAMS_MAX,
    }
}

/// Maximum number of events that wait for a client, in addition to those in the buffers of its connection.
const EVENTS_WAITING_MAX: usize = 4;

/// Interval between comments. They keep proxies from closing the connection, and reveal disconnected clients.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Interval between checks of the credentials.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum wait until a client has received the last event.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// Produces the events of a stream, until it returns or is dropped.
pub(super) type Producer = Box<dyn FnOnce(Sink) -> Produced + Send>;

/// The work of a producer.
type Produced = Pin<Box<dyn Future<Output = Result<(), Closed>> + Send>>;

/// The client has disconnected.
#[derive(Debug)]
pub(super) struct Closed;

/// The reason for the end of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "StreamEndReason")]
pub(crate) enum Reason {
    /// There are no more events.
    Complete,
    /// The process ends.
    Stopped,
    /// Another process serves: connect again.
    HandedOver,
    /// The credentials of the request are no longer sufficient.
    Revoked,
}

/// The data of the event `end`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "StreamEnd")]
pub(super) struct End {
    /// The reason for the end.
    reason: Reason,
}

/// A producer from a function.
pub(super) fn producer<F>(produce: impl FnOnce(Sink) -> F + Send + 'static) -> Producer
where
    F: Future<Output = Result<(), Closed>> + Send + 'static,
{
    Box::new(|sink| Box::pin(produce(sink)))
}

/// The destination of a producer's events.
#[derive(Debug, Clone)]
pub(super) struct Sink(mpsc::Sender<Bytes>);

impl Sink {
    /// Sends an event, and waits while the client has not received the previous ones. `name`: letters and hyphens.
    pub(super) async fn send(&self, name: &str, data: &impl Serialize) -> Result<(), Closed> {
        // A document that cannot be written ends the stream. JSON in this form has no line feed.
        let data = serde_json::to_string(data).map_err(|_| Closed)?;
        self.0.send(frame(name, &data)).await.map_err(|_| Closed)
    }
}

fn frame(name: &str, data: &str) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}

/// All streams of the process.
#[derive(Debug)]
pub struct Streams {
    permits: Arc<Semaphore>,
    /// The source of each open stream, and the role of its caller.
    open: Arc<Mutex<Vec<Opened>>>,
    end: watch::Sender<Option<Reason>>,
}

impl Default for Streams {
    fn default() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(STREAMS_MAX)),
            open: Arc::default(),
            end: watch::Sender::new(None),
        }
    }
}

impl Streams {
    /// Ends all streams, including future ones. [`Self::ended`] waits for them.
    pub(crate) fn end(&self, reason: Reason) {
        self.end.send_replace(Some(reason));
    }

    /// Waits until all clients have received the last event, or the maximum wait is over.
    pub(crate) async fn ended(&self) {
        let all = u32::try_from(STREAMS_MAX).unwrap_or(u32::MAX);
        // The process ends in either case.
        let _ = tokio::time::timeout(END_TIMEOUT, self.permits.acquire_many(all)).await;
    }

    fn begin(&self, source: Source, role: Option<Role>) -> Result<Permit, Problem> {
        let full = |whose: &str, most: usize| {
            let detail = format_args!("{most} streams{whose} are open already");
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
                .help("close one, or try again later")
        };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let of_source = open.iter().filter(|(other, _)| *other == source).count();
        if of_source >= STREAMS_PER_SOURCE_MAX {
            let whose = match source {
                Source::Network(_) => " of your address",
                Source::Process(..) => " of your process",
            };
            return Err(full(whose, STREAMS_PER_SOURCE_MAX));
        }
        let of_role = open.iter().filter(|(_, other)| *other <= role).count();
        if of_role >= of_role_max(role) {
            let whose = match role {
                Some(Role::Admin) => "",
                _ => " of callers with your rights",
            };
            return Err(full(whose, of_role_max(role)));
        }
        let permit = Arc::clone(&self.permits).try_acquire_owned();
        let permit = permit.map_err(|_| full("", STREAMS_MAX))?;
        open.push((source, role));
        Ok(Permit { _permit: permit, opened: (source, role), open: Arc::clone(&self.open) })
    }
}

/// An open stream: its source, and the role of its caller.
type Opened = (Source, Option<Role>);

/// The right to a stream. Dropping it gives it back.
#[derive(Debug)]
struct Permit {
    _permit: OwnedSemaphorePermit,
    opened: Opened,
    open: Arc<Mutex<Vec<Opened>>>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = open.iter().position(|other| *other == self.opened) {
            open.swap_remove(place);
        }
    }
}

/// Answers with the events of a producer. `needed`: the role of the route; `lifetime`: of the connection.
pub(super) fn answer(
    ask: Ask,
    needed: Option<Role>,
    lifetime: Option<Lifetime>,
    begin: fn(Ask) -> Result<Producer, Problem>,
) -> Result<Response, Problem> {
    let observed = Arc::clone(&ask.context.observed);
    let streams = &observed.admin.streams;
    let permit = streams.begin(Source::of(&ask.caller.peer), ask.caller.role)?;
    let ending = streams.end.subscribe();
    let caller = ask.caller.clone();
    let produce = begin(ask)?;
    let (events, waiting) = mpsc::channel(EVENTS_WAITING_MAX);
    let guard = Guard { observed, caller, needed, ending };
    // It ends with the body, at the latest.
    drop(tokio::spawn(run(produce(Sink(events.clone())), guard, events)));
    let body = Body::new(Events { waiting, lifetime, _permit: permit });
    Ok(([(CONTENT_TYPE, EVENTS)], body).into_response())
}

async fn run(produced: Produced, mut guard: Guard, events: mpsc::Sender<Bytes>) {
    let reason = tokio::select! {
        // First what is there to tell: the events before the end of the process, too.
        biased;
        done = produced => done.ok().map(|()| Reason::Complete),
        reason = guard.end() => Some(reason),
        () = events.closed() => None,
        never = keep_alive(&events) => match never {},
    };
    let data = reason.and_then(|reason| serde_json::to_string(&End { reason }).ok());
    if let Some(data) = data {
        // If the client does not receive it, its connection is closed.
        let _ = tokio::time::timeout(END_TIMEOUT, events.send(frame("end", &data))).await;
    }
}

/// Sends comments. None is needed while an event waits for the client.
async fn keep_alive(events: &mpsc::Sender<Bytes>) -> std::convert::Infallible {
    let mut times = tokio::time::interval(KEEP_ALIVE);
    loop {
        times.tick().await;
        // The first comment is sent at once, so the client knows that it is connected.
        let _ = events.try_send(Bytes::from_static(b":\n\n"));
    }
}

/// Waits for the reason to end a stream.
struct Guard {
    observed: Arc<Observed>,
    caller: Caller,
    needed: Option<Role>,
    ending: watch::Receiver<Option<Reason>>,
}

impl Guard {
    async fn end(&mut self) -> Reason {
        let mut times = tokio::time::interval(CHECK_INTERVAL);
        loop {
            tokio::select! {
                ended = self.ending.wait_for(Option::is_some) => {
                    return ended.ok().and_then(|reason| *reason).unwrap_or(Reason::Stopped);
                }
                _ = times.tick() => {
                    let table = self.observed.table();
                    if self.needed.is_some_and(|role| !self.caller.still_has(role, &table.snapshot.admin)) {
                        return Reason::Revoked;
                    }
                }
            }
        }
    }
}

/// The body of the answer.
struct Events {
    waiting: mpsc::Receiver<Bytes>,
    lifetime: Option<Lifetime>,
    _permit: Permit,
}

impl HttpBody for Events {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let event = std::task::ready!(self.waiting.poll_recv(context));
        // The body is polled only after the client has received the previous data.
        self.lifetime.iter().for_each(Lifetime::prolong);
        Poll::Ready(event.map(|event| Ok(Frame::data(event))))
    }
}

#[cfg(test)]
mod tests;

//! Answers that go on: server-sent events (`text/event-stream`, section 9.2 of the HTML standard).
//!
//! A route of [`Route::stream`](super::route::Route::stream) returns a [`Producer`], which sends its events to a [`Sink`].
//! Everything else is done here: a comment keeps the connection alive while there are no events; a client that does not
//! read makes the producer wait in [`Sink::send`], and its connection is closed after
//! [`CONNECTION_TIME_MAX`](super::CONNECTION_TIME_MAX); the producer is dropped when the client goes, when weir ends or hands
//! over to another process, and when the credentials of the request do not suffice any more. The last event is `end`, with
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
use super::connections::{Source, source_of};
use super::lifetime::Lifetime;
use super::peer::Caller;
use super::problem::Problem;
use crate::observed::Observed;

/// The media type.
pub(super) const EVENTS: &str = "text/event-stream";

/// Most simultaneous streams of all listeners. Connections are left for other requests.
pub const STREAMS_MAX: usize = 16;

/// Most simultaneous streams of one source over TCP, so that others have streams, too.
pub const STREAMS_PER_SOURCE_MAX: usize = STREAMS_MAX / 2;

/// Events that may wait for the client of a stream, besides those in the buffers of its connection.
const EVENTS_WAITING_MAX: usize = 4;

/// A comment is sent in this time: proxies close silent connections, and a client that is gone is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// How often credentials are checked again.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The longest wait for a client to take the last event.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// Makes the events of a stream, until it returns or is dropped.
pub(super) type Producer = Box<dyn FnOnce(Sink) -> Produced + Send>;

/// The work of a producer.
type Produced = Pin<Box<dyn Future<Output = Result<(), Closed>> + Send>>;

/// The client is gone.
#[derive(Debug)]
pub(super) struct Closed;

/// Why a stream ends.
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
    /// The credentials of the request do not suffice any more.
    Revoked,
}

/// The data of the event `end`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "StreamEnd")]
pub(super) struct End {
    /// Why the stream ends.
    reason: Reason,
}

/// A producer that does this.
pub(super) fn producer<F>(produce: impl FnOnce(Sink) -> F + Send + 'static) -> Producer
where
    F: Future<Output = Result<(), Closed>> + Send + 'static,
{
    Box::new(|sink| Box::pin(produce(sink)))
}

/// Where a producer sends its events.
#[derive(Debug, Clone)]
pub(super) struct Sink(mpsc::Sender<Bytes>);

impl Sink {
    /// Sends an event; waits while the client does not take those before it. `name`: letters and hyphens.
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
    /// The source of each open stream.
    sources: Arc<Mutex<Vec<Source>>>,
    end: watch::Sender<Option<Reason>>,
}

impl Default for Streams {
    fn default() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(STREAMS_MAX)),
            sources: Arc::default(),
            end: watch::Sender::new(None),
        }
    }
}

impl Streams {
    /// Ends all streams, and those to come. [`Self::ended`] waits for them.
    pub(crate) fn end(&self, reason: Reason) {
        self.end.send_replace(Some(reason));
    }

    /// Returns when clients have got the end of all streams, or have had their time.
    pub(crate) async fn ended(&self) {
        let all = u32::try_from(STREAMS_MAX).unwrap_or(u32::MAX);
        // Whether they have got it or not: the process ends.
        let _ = tokio::time::timeout(END_TIMEOUT, self.permits.acquire_many(all)).await;
    }

    fn begin(&self, source: Source) -> Result<Permit, Problem> {
        let full = |whose: &str, most: usize| {
            let detail = format_args!("{most} streams{whose} are open already");
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
                .help("close one, or try again later")
        };
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        let of_source = sources.iter().filter(|other| **other == source).count();
        if source.is_some() && of_source >= STREAMS_PER_SOURCE_MAX {
            return Err(full(" of your address", STREAMS_PER_SOURCE_MAX));
        }
        let permit = Arc::clone(&self.permits).try_acquire_owned();
        let permit = permit.map_err(|_| full("", STREAMS_MAX))?;
        sources.push(source);
        Ok(Permit { _permit: permit, source, sources: Arc::clone(&self.sources) })
    }
}

/// The right to a stream. Dropping it gives it back.
#[derive(Debug)]
struct Permit {
    _permit: OwnedSemaphorePermit,
    source: Source,
    sources: Arc<Mutex<Vec<Source>>>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = sources.iter().position(|other| *other == self.source) {
            sources.swap_remove(place);
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
    let permit = streams.begin(source_of(&ask.caller.peer))?;
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
        // A client that does not take it sees the connection end.
        let _ = tokio::time::timeout(END_TIMEOUT, events.send(frame("end", &data))).await;
    }
}

/// Sends comments. While something waits for the client, none is needed.
async fn keep_alive(events: &mpsc::Sender<Bytes>) -> std::convert::Infallible {
    let mut times = tokio::time::interval(KEEP_ALIVE);
    loop {
        times.tick().await;
        // The first one at once: the client learns that it is connected.
        let _ = events.try_send(Bytes::from_static(b":\n\n"));
    }
}

/// Sees why a stream has to end.
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
        // It is asked for as long as the client takes what was before.
        self.lifetime.iter().for_each(Lifetime::prolong);
        Poll::Ready(event.map(|event| Ok(Frame::data(event))))
    }
}

#[cfg(test)]
mod tests;

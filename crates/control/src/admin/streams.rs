//! Streams: server-sent events (`text/event-stream`, section 9.2 of the HTML standard).
//!
//! A route of [`Route::stream`](super::route::Route::stream) returns a [`Producer`], which sends its events to a [`Sink`].
//! This module does everything else. Without events, a comment keeps the connection alive. A client that does not read makes
//! the producer wait in [`Sink::send`], and its connection is closed after
//! [`CONNECTION_TIME_MAX`](super::CONNECTION_TIME_MAX). The producer is dropped when the client disconnects, when weir ends or
//! hands over to another process, and when the credentials of the request become insufficient. The last event is `end`, with
//! the reason.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use hyper::body::Frame;
use serde::Serialize;
use tokio::sync::{mpsc, watch};
use weir_api::events::{StreamEnd, StreamEndReason};
use weir_config::snapshot::Role;

use super::ask::Ask;
use super::connections::Source;
use super::lifetime::Lifetime;
use super::open_streams::{END_TIMEOUT, Permit};
use super::peer::Caller;
use super::problem::Problem;
use crate::observed_state::ObservedState;

/// The media type of streams.
pub(super) const EVENTS: &str = "text/event-stream";

/// Maximum number of events that wait for a client, in addition to those in the buffers of its connection.
const EVENTS_WAITING_MAX: usize = 4;

/// Interval between comments. They keep proxies from closing the connection, and reveal disconnected clients.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Interval between checks of the credentials.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Produces the events of a stream, until it returns or is dropped.
pub(super) type Producer = Box<dyn FnOnce(Sink) -> ProducerFuture + Send>;

/// The work of a producer.
type ProducerFuture = Pin<Box<dyn Future<Output = Result<(), ClientDisconnected>> + Send>>;

/// The client has disconnected.
#[derive(Debug)]
pub(super) struct ClientDisconnected;

/// A producer from a function.
pub(super) fn producer<F>(produce: impl FnOnce(Sink) -> F + Send + 'static) -> Producer
where
    F: Future<Output = Result<(), ClientDisconnected>> + Send + 'static,
{
    Box::new(|sink| Box::pin(produce(sink)))
}

/// The destination of a producer's events.
#[derive(Debug, Clone)]
pub(super) struct Sink(mpsc::Sender<Bytes>);

impl Sink {
    /// Sends an event, and waits while the client has not received the previous ones. `name`: letters and hyphens.
    pub(super) async fn send(
        &self,
        name: &str,
        data: &impl Serialize,
    ) -> Result<(), ClientDisconnected> {
        // A document that cannot be written ends the stream. JSON in this form has no line feed.
        let data = serde_json::to_string(data).map_err(|_| ClientDisconnected)?;
        self.0.send(frame(name, &data)).await.map_err(|_| ClientDisconnected)
    }
}

fn frame(name: &str, data: &str) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
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
    let ending = streams.ending();
    let caller = ask.caller.clone();
    let produce = begin(ask)?;
    let (events, waiting) = mpsc::channel(EVENTS_WAITING_MAX);
    let guard = Guard { observed, caller, needed, ending };
    // It ends with the body, at the latest.
    drop(tokio::spawn(run(produce(Sink(events.clone())), guard, events)));
    let body = Body::new(Events { waiting, lifetime, _permit: permit });
    Ok(([(CONTENT_TYPE, EVENTS)], body).into_response())
}

async fn run(produced: ProducerFuture, mut guard: Guard, events: mpsc::Sender<Bytes>) {
    let reason = tokio::select! {
        // First what is there to tell: the events before the end of the process, too.
        biased;
        done = produced => done.ok().map(|()| StreamEndReason::Complete),
        reason = guard.end() => Some(reason),
        () = events.closed() => None,
        never = keep_alive(&events) => match never {},
    };
    let data = reason.and_then(|reason| serde_json::to_string(&StreamEnd { reason }).ok());
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
    observed: Arc<ObservedState>,
    caller: Caller,
    needed: Option<Role>,
    ending: watch::Receiver<Option<StreamEndReason>>,
}

impl Guard {
    async fn end(&mut self) -> StreamEndReason {
        let mut times = tokio::time::interval(CHECK_INTERVAL);
        loop {
            tokio::select! {
                ended = self.ending.wait_for(Option::is_some) => {
                    return ended.ok().and_then(|reason| *reason).unwrap_or(StreamEndReason::Stopped);
                }
                _ = times.tick() => {
                    let table = self.observed.table();
                    if self.needed.is_some_and(|role| !self.caller.still_has(role, &table.snapshot.admin)) {
                        return StreamEndReason::Revoked;
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

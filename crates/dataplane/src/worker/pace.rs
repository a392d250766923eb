//! How steadily the bodies of an exchange come, and so how long either side may be silent.

use weir_http::fields::values;
use weir_http::message::{Field, Framing, RequestHead, ResponseHead};

use super::Worker;
use super::exchange::{Exchange, Phase};
use crate::arena::ExchangeKey;
use crate::event_loop::EventLoop;

/// How steadily the bodies of an exchange come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// One that stands still for a while is given up.
    Steady,
    /// Now and then, as the events of an event stream or the messages of a gRPC call: silence is no fault.
    Sparse,
}

impl Pace {
    /// That of a request: a gRPC call may be silent from its beginning.
    pub fn of_request(head: &RequestHead, input: &[u8]) -> Self {
        let is_grpc = || has_type(&head.fields, input, b"application/grpc");
        if head.framing.is_empty() || !is_grpc() { Self::Steady } else { Self::Sparse }
    }

    /// That of an exchange with this response. What announces its length is no event stream.
    pub fn with_response(self, head: &ResponseHead, input: &[u8]) -> Self {
        let is_open = !matches!(head.framing, Framing::None | Framing::Length(_));
        let is_sparse = is_open && has_type(&head.fields, input, b"text/event-stream");
        if is_sparse { Self::Sparse } else { self }
    }
}

/// Whether the content has a media type that begins so.
fn has_type(fields: &[Field], input: &[u8], start: &[u8]) -> bool {
    let is_so =
        |value: &[u8]| value.get(..start.len()).is_some_and(|it| it.eq_ignore_ascii_case(start));
    values(fields, input, "Content-Type").any(is_so)
}

impl Exchange {
    /// How long its client may be without progress, of what it sends as of what it takes.
    pub fn client_timeout_ms(&self) -> u64 {
        match self.pace {
            Pace::Steady => self.server.http.body_timeout_ms,
            Pace::Sparse => self.server.tunnel_timeout_ms(),
        }
    }

    /// How long its member may be silent within the response.
    pub fn response_body_timeout_ms(&self) -> u64 {
        match self.pace {
            Pace::Steady => self.server.http.response_body_timeout_ms,
            Pace::Sparse => self.server.tunnel_timeout_ms(),
        }
    }
}

impl Worker {
    /// The client must make some progress in the time that it has for that.
    pub fn await_client(&mut self, io: &mut EventLoop, key: ExchangeKey) {
        if let Some(exchange) = self.exchanges.get(key) {
            let until_ms = io.now_ms() + exchange.client_timeout_ms();
            self.set_client_deadline(io, key, until_ms);
        }
    }

    /// Some of a request has come, and more is to come. Where either side may be silent, this shows that neither is gone.
    pub fn await_more_of_request(&mut self, io: &mut EventLoop, key: ExchangeKey) {
        self.await_client(io, key);
        if let Some(exchange) = self.exchanges.get(key)
            && (exchange.pace, exchange.phase) == (Pace::Sparse, Phase::Respond)
        {
            let until_ms = io.now_ms() + exchange.response_body_timeout_ms();
            self.set_member_deadline(io, key, until_ms);
        }
    }
}

//! How long either side of an exchange may be silent.

use weir_event_loop::EventLoop;

use super::Worker;
use super::exchange::{Exchange, Phase};
use super::pace::Pace;
use crate::arena::ExchangeKey;

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

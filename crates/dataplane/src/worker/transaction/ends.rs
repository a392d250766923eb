//! What a transaction has whatever it is: the two connections that it is between, and what is known of it.

use std::rc::Rc;

use weir_config::snapshot::AccessFormat;

use crate::access_log::Termination;
use crate::arena::{ClientKey, ExchangeKey, StreamKey};
use crate::table::LocalServer;
use crate::worker::body::Pieces;
use crate::worker::client::stream::StreamEnd;
use crate::worker::transaction::account::Account;
use crate::worker::transaction::attempt::Attempt;
use crate::worker::transaction::end::End;
use crate::worker::transaction::extras::Extras;
use crate::worker::transaction::parked::Parked;
use crate::worker::transaction::tries::{Lease, Tries};
use crate::worker::world::Desk;

/// The two connections that a transaction is between.
pub struct Ends {
    /// What the transaction is called.
    pub key: ExchangeKey,
    /// It has ended, and this is what becomes of its client connection.
    pub over: Option<After>,
    /// The client connection that it belongs to.
    pub client: ClientKey,
    /// The stream of that; `None`: it has the connection for itself (HTTP/1).
    pub stream: Option<StreamKey>,
    /// Where it may go, and what came of trying.
    pub tries: Tries,
    /// What it waits for, while it has no member.
    pub parked: Parked,
    /// The place that was taken for it when its turn came.
    pub reserved: Option<Lease>,
    /// The member that it has now.
    pub attempt: Attempt,
    /// Where it came in.
    pub server: Rc<LocalServer>,
    /// What is remembered of it, where policies or persistence want that.
    pub extras: Option<Box<Extras>>,
    /// What is counted and logged of it.
    pub account: Account,
}

/// What becomes of the client connection of an exchange that has ended.
pub enum After {
    /// Somebody else sees to that.
    Nothing,
    /// The response is whole.
    Response(Outcome),
    /// The exchange has become a tunnel.
    Tunnel {
        /// Nothing more comes of the member.
        has_member_ended: bool,
    },
    /// All that passes both ways is whole: the connection ends, if it was its own.
    Whole,
    /// Something is missing: the connection ends, if it was its own.
    Broken {
        /// With a reset.
        must_reset: bool,
    },
    /// It ends, with all that is on it.
    Cut {
        /// Why.
        termination: Termination,
        /// With a reset.
        must_reset: bool,
    },
}

/// How an exchange left its client connection.
pub struct Outcome {
    /// Both sides allow another request.
    pub keep_alive: bool,
    /// The whole request was read.
    pub request_done: bool,
    /// The client said that this was its last request.
    pub client_closes: bool,
}

/// What a window has let out.
pub struct LetOut {
    /// So many bytes.
    pub data_bytes: usize,
    /// More waits.
    pub is_behind: bool,
}

impl Ends {
    /// Counts bytes of the response that were handed to the client connection.
    pub fn count_sent(&mut self, worker: usize, bytes: usize) {
        self.account.bytes_sent += bytes as u64;
        let counters = self.server.live.counters.of(worker);
        counters.bytes_sent.add(bytes as u64);
    }

    /// Sends data on the client's stream, and its end.
    pub fn deliver(&mut self, at: &mut Desk<'_>, body: &[u8], pieces: &Pieces, end: End<'_>) {
        let client_key = self.client;
        let Some(stream) = self.stream else { return };
        let Some(client) = at.world.clients.get_mut(client_key) else { return };
        let Some(http2) = &mut client.http2 else { return };
        let Some(stream) = http2.streams.get_mut(stream) else { return };
        let sent = stream.out.send(at.io, client.token, &mut http2.frames, (body, pieces), end);
        self.count_sent(at.world.id, sent);
        at.heed_gathered(client_key);
    }

    /// Sends up to so many bytes of what waits for the client's windows; `None`: nothing does, or can go.
    pub fn let_out(&mut self, at: &mut Desk<'_>, bytes_max: usize) -> Option<LetOut> {
        let client_key = self.client;
        let client = at.world.clients.get_mut(client_key)?;
        let token = client.token;
        let http2 = client.http2.as_mut().filter(|_| at.io.queued(token) == 0)?;
        let stream = http2.streams.get_mut(self.stream?).filter(|it| it.out.is_behind())?;
        let sent = stream.out.let_out(at.io, token, &mut http2.frames, bytes_max);
        let is_behind = stream.out.is_behind();
        self.count_sent(at.world.id, sent.bytes);
        at.heed_gathered(client_key);
        Some(LetOut { data_bytes: sent.data_bytes, is_behind })
    }

    /// What came of a client's stream was handed on: it may send as much again, on this stream or others.
    pub fn give_window(&mut self, at: &mut Desk<'_>) {
        let client = self.client;
        let Some(stream) = at.world.stream_mut(self) else { return };
        // What waits for a member, for a tunnel, or for the rest of a read, has not been handed on.
        let held = (stream.held.len() + stream.joined.len()) as u32;
        let bytes = std::mem::replace(&mut stream.unreleased, held) - held;
        let id = stream.out.id;
        at.world.release(client, id, bytes);
    }

    /// Whether the member has not taken all that it was sent.
    pub fn is_member_behind(&self, at: &mut Desk<'_>) -> bool {
        let Some(connection) = self.attempt.connection else { return false };
        let Some(connection) = at.world.members.get(connection) else { return false };
        let is_stream_behind =
            at.world.member_stream(self).is_some_and(|stream| stream.is_behind());
        is_stream_behind || at.io.queued(connection.token) > 0
    }

    /// Lets go of the member: its connection will not be used to the end.
    pub fn drop_member(&mut self, at: &mut Desk<'_>) {
        if self.attempt.member_stream.is_some() {
            self.leave_stream(at);
        } else if let Some(connection) = self.attempt.connection.take() {
            at.close_member(connection);
        }
        self.leave_member(at, None, at.io.now_ms());
    }

    /// Counts a request that is over.
    pub fn count_request(&self, at: &Desk<'_>) {
        let counters = self.server.live.counters.of(at.world.id);
        counters.requests_active.subtract(1);
        counters.request_duration.record(at.io.clock().now_us() - self.account.begun_us);
    }

    /// Takes a transaction off the books and logs it.
    pub fn end(&mut self, at: &mut Desk<'_>, termination: Termination, stream_end: StreamEnd) {
        let parked = std::mem::take(&mut self.parked);
        if parked.is_in_queue() {
            at.world.leave_line(&self.tries.pool, &parked, self.key);
        }
        self.reserved = None;
        if termination == Termination::ClientAbort {
            self.server.live.counters.of(at.world.id).client_aborts.add(1);
        }
        if let Some(client) = at.world.clients.get_mut(self.client) {
            client.exchange_ended();
        }
        if self.account.log_format != AccessFormat::Off {
            if termination != Termination::Complete && self.stream.is_none() {
                let queued = at.world.clients.get(self.client);
                let queued = queued.map_or(0, |client| at.io.queued(client.token));
                self.account.bytes_sent = self.account.bytes_sent.saturating_sub(queued as u64);
            }
            at.world.log_transaction(self, at.io.clock(), termination);
        }
        at.io.give_buffer(std::mem::take(&mut self.account.log_request));
        let extras = self.extras.take();
        at.world.give_extras(extras);
        at.end_stream(self, stream_end);
    }
}

//! A connection to a member: what is known of it, and when it is kept, closed and forgotten.

use std::rc::Rc;

use rustix::io::Errno;
use weir_event_loop::{READ_BUFFER_BYTES, Token};
use weir_exchange::arena::{ConnectionKey, ExchangeKey};
use weir_exchange::local::pool::{LocalMember, LocalPool};
use weir_exchange::parts::failure::MemberFailure;
use weir_http::flaws::Flaws;
use weir_http::h1::{BodyDecoder, HeadScan};
use weir_http::message::Framing;

use crate::worker::desk::Desk;
use crate::worker::member::http2::MemberHttp2;

/// A member that announces how long it keeps idle connections is not trusted to the last second.
const KEEP_ALIVE_MARGIN_MS: u64 = 1_000;

/// A connection to a member.
pub struct MemberConnection {
    /// Its socket.
    pub token: Token,
    /// The member, as this worker knows it.
    pub member: Rc<LocalMember>,
    /// The pool that opened it.
    pub pool: Rc<LocalPool>,
    /// How many the member takes, if it has a limit.
    pub connections_max: Option<u32>,
    /// The exchange that uses it; none: it is idle.
    pub exchange: Option<ExchangeKey>,
    pub connecting: bool,
    /// What there is of HTTP/2, where it speaks that: it carries many exchanges then.
    pub http2: Option<Box<MemberHttp2>>,
    /// Part of a head or trailer section.
    pub input: Vec<u8>,
    pub scan: HeadScan,
    /// Bytes of `input` that make the response under way whole, where it is collected; 0: it is not.
    pub whole_bytes: usize,
    /// The body of the response under way.
    pub body: BodyDecoder,
    /// Bytes before the first request that would be taken back with it: a header of the PROXY protocol.
    pub preface_bytes: usize,
    /// The member was told, by the PROXY protocol, for which client it speaks.
    pub is_of_one_client: bool,
    /// It is read in slices.
    pub is_sliced: bool,
    /// It can carry another request after this response.
    pub keep: bool,
    /// How long the member keeps it, when it said so.
    pub keep_ms: Option<u64>,
    pub requests: u32,
    /// Bytes sent on it that are counted already.
    pub counted_bytes: u64,
    /// Since when it has been idle.
    pub idle_since_ms: u64,
}

impl MemberConnection {
    /// Those who have streams on it.
    pub fn exchanges(&self) -> Vec<ExchangeKey> {
        self.http2.as_ref().map(|http2| http2.streams.exchanges()).unwrap_or_default()
    }

    /// One that is on its way, for one request at a time.
    pub fn opening(token: Token, member: &Rc<LocalMember>, pool: &Rc<LocalPool>) -> Self {
        Self {
            token,
            member: Rc::clone(member),
            pool: Rc::clone(pool),
            connections_max: None,
            exchange: None,
            connecting: true,
            http2: None,
            input: Vec::new(),
            scan: HeadScan::section(),
            whole_bytes: 0,
            body: BodyDecoder::new(Framing::None, None),
            preface_bytes: 0,
            is_of_one_client: false,
            is_sliced: false,
            keep: false,
            keep_ms: None,
            requests: 1,
            counted_bytes: 0,
            idle_since_ms: 0,
        }
    }

    /// Counts what was overlooked in a response.
    pub fn count_flaws(&self, flaws: Flaws) {
        if !flaws.is_empty() {
            self.member.counters.count_flaws(flaws);
        }
    }

    /// Whether it carries an exchange.
    #[cfg(feature = "simulation")]
    pub fn is_busy(&self) -> bool {
        let carries = |http2: &MemberHttp2| !http2.streams.is_empty();
        self.exchange.is_some() || self.http2.as_deref().is_some_and(carries)
    }

    /// Idle connections to the member that this worker keeps. Those of all workers together must
    /// not take the places that `connections_max` leaves the others.
    fn idle_max(&self, workers: usize) -> usize {
        let limit = self.connections_max;
        let share = limit.map_or(usize::MAX, |limit| limit as usize / workers);
        share.min(self.pool.settings().reuse.idle_per_worker as usize)
    }
}

impl Desk<'_> {
    /// Whose fault it is that a connection cannot even be begun.
    pub fn no_connection(&mut self, error: Errno) -> MemberFailure {
        let ours = [
            Errno::MFILE,
            Errno::NFILE,
            Errno::NOBUFS,
            Errno::NOMEM,
            Errno::ADDRNOTAVAIL,
            Errno::ACCESS,
            Errno::PERM,
        ];
        if error == Errno::AGAIN {
            return MemberFailure::Busy;
        }
        if !ours.contains(&error) {
            return MemberFailure::Connect;
        }
        self.world
            .notices
            .tell_of_socket(self.io.now_ms(), &format!("connection to a member: {error}"));
        MemberFailure::NoSocket
    }

    /// Keeps a connection for another request, if it can be.
    pub fn keep_connection(&mut self, key: ConnectionKey) {
        let now_ms = self.io.now_ms();
        let Some(connection) = self.world.members.get_mut(key) else { return };
        // What comes behind a response, be it part of a record, is no answer to the next request.
        if self.io.has_more(connection.token) {
            return self.close_member(key);
        }
        let reuse = connection.pool.settings().reuse;
        let said_ms = connection.keep_ms.map(|ms| ms.saturating_sub(KEEP_ALIVE_MARGIN_MS));
        let idle_ms = said_ms.map_or(reuse.idle_timeout_ms, |ms| ms.min(reuse.idle_timeout_ms));
        let mut idle = connection.member.idle.borrow_mut();
        if !connection.keep
            || connection.member.retired.get()
            || connection.is_of_one_client
            || connection.requests >= reuse.requests_max
            || idle.len() >= connection.idle_max(self.world.counters.workers())
            || idle_ms == 0
            || self.world.drain_until_ms.is_some()
        {
            drop(idle);
            return self.close_member(key);
        }
        idle.push(key);
        // The client may have been slow to the end.
        self.io.resume(connection.token);
        if std::mem::take(&mut connection.is_sliced) {
            self.io.limit_reads(connection.token, READ_BUFFER_BYTES);
        }
        connection.member.counters.connections_idle.add(1);
        connection.exchange = None;
        connection.idle_since_ms = now_ms;
        self.io.set_deadline(connection.token, now_ms + idle_ms);
    }

    /// Closes a member connection and takes it off the books; its exchange is the caller's.
    pub fn close_member(&mut self, key: ConnectionKey) {
        if let Some(token) = self.forget_member(key) {
            self.io.close(token);
        }
    }

    /// Takes a member connection off the books; its socket is the caller's.
    pub fn forget_member(&mut self, key: ConnectionKey) -> Option<Token> {
        self.count_sent_to_member(key);
        let connection = self.world.members.remove(key)?;
        self.world.tools.encoders.let_go(connection.whole_bytes);
        let counters = &connection.member.counters;
        counters.connections_open.subtract(1);
        if let Some(http2) = &connection.http2 {
            connection.member.multiplexed.borrow_mut().retain(|other| *other != key);
            counters.connections_idle.subtract(u64::from(http2.is_resting));
        } else if connection.exchange.is_none() {
            let mut idle = connection.member.idle.borrow_mut();
            if let Some(place) = idle.iter().rposition(|&idle_key| idle_key == key) {
                idle.remove(place);
                counters.connections_idle.subtract(1);
            }
        }
        self.io.give_buffer(connection.input);
        Some(connection.token)
    }

    /// Closes this worker's idle connections to a member.
    pub fn close_idle(&mut self, member: &LocalMember) {
        let idle = member.idle.borrow().clone();
        for key in idle {
            self.close_member(key);
        }
        let multiplexed = member.multiplexed.borrow().clone();
        for key in multiplexed {
            let http2 = self.world.members.get(key).and_then(|it| it.http2.as_ref());
            if http2.is_some_and(|http2| http2.is_resting) {
                self.end_member_http2(key);
            }
        }
    }
}

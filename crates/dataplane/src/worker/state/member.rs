//! The state of a connection to a member.

use std::rc::Rc;

use weir_connection::member::http1::MemberHttp1;
use weir_connection::member::http2::MemberHttp2;
use weir_event_loop::Token;
use weir_exchange::arena::ExchangeKey;
use weir_exchange::local::member::LocalMember;
use weir_exchange::local::pool::LocalPool;
use weir_http::flaws::Flaws;

use crate::worker::state::bound_connections::ConnectionSharing;

/// A connection to a member.
pub struct MemberConnection {
    /// The socket.
    pub token: Token,
    /// This worker's state of the member.
    pub member: Rc<LocalMember>,
    /// The pool that the connection was opened for.
    pub pool: Rc<LocalPool>,
    /// The member's connection limit.
    pub connections_max: Option<u32>,
    /// The exchange on an HTTP/1 connection; `None`: idle.
    pub exchange: Option<ExchangeKey>,
    pub connecting: bool,
    /// The state of HTTP/2, if the member uses it. The connection then carries many exchanges.
    pub http2: Option<Box<MemberHttp2>>,
    /// The state of HTTP/1, if the member uses it.
    pub http1: MemberHttp1,
    /// The size of the PROXY header in the queued data. The header is removed when the data moves to another connection.
    pub preface_bytes: usize,
    /// Who may use the connection.
    pub sharing: ConnectionSharing,
    /// Whether the connection is read in slices.
    pub is_sliced: bool,
    pub requests: u32,
    /// The number of sent bytes that were already counted.
    pub counted_bytes: u64,
    /// The time since which the connection has been idle.
    pub idle_since_ms: u64,
}

impl MemberConnection {
    /// The exchanges with streams on the connection.
    pub fn exchanges(&self) -> Vec<ExchangeKey> {
        self.http2.as_ref().map(|http2| http2.streams.exchanges()).unwrap_or_default()
    }

    /// Creates the state of an HTTP/1 connection that is opening.
    pub fn opening(token: Token, member: &Rc<LocalMember>, pool: &Rc<LocalPool>) -> Self {
        Self {
            token,
            member: Rc::clone(member),
            pool: Rc::clone(pool),
            connections_max: None,
            exchange: None,
            connecting: true,
            http2: None,
            http1: MemberHttp1::opening(),
            preface_bytes: 0,
            sharing: ConnectionSharing::default(),
            is_sliced: false,
            requests: 1,
            counted_bytes: 0,
            idle_since_ms: 0,
        }
    }

    /// Marks the connection as bound, if its pool binds connections. Returns whether it is.
    pub fn bind(&mut self) -> bool {
        let binds = self.pool.settings().reuse.binds;
        self.sharing.is_bound |= binds;
        self.sharing.is_of_one_client |= binds;
        binds
    }

    /// Counts the tolerated flaws of a response.
    pub fn count_flaws(&self, flaws: Flaws) {
        if !flaws.is_empty() {
            self.member.counters.count_flaws(flaws);
        }
    }

    /// Whether the connection has an exchange.
    #[cfg(feature = "simulation")]
    pub fn is_busy(&self) -> bool {
        let carries = |http2: &MemberHttp2| !http2.streams.is_empty();
        self.exchange.is_some() || self.http2.as_deref().is_some_and(carries)
    }

    /// Maximum number of idle connections to the member for this worker. The idle connections of all workers together must
    /// leave places under `connections_max`.
    pub fn idle_max(&self, workers: usize) -> usize {
        let limit = self.connections_max;
        let share = limit.map_or(usize::MAX, |limit| {
            (limit as usize / workers).saturating_sub(self.member.bound.borrow().len())
        });
        share.min(self.pool.settings().reuse.idle_per_worker as usize)
    }
}

//! Access control for connections: policies that run before a handshake or a request.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use weir_config::snapshot::Snapshot;
use weir_core::clock::Clock;
use weir_core::expression::{Facts, Fields, TlsFacts};
use weir_core::policy::{Decision, End, Policy};
use weir_http::message::{RequestHead, Scheme};
use weir_http::path::PathForm;

use crate::local::key_limits::{KeyLimitResult, KeyLimits, LimitPlace};
use crate::local::pools::Pools;
use crate::local::surroundings::{RequestSurroundings, SeedAndTime, Sources};
use crate::shared::live::{LiveTable, RuleCount};
use crate::termination::Termination;

/// The moment at which connection policies run.
#[derive(Debug, Clone, Copy)]
pub enum Moment<'a> {
    /// The connection was accepted.
    Accepted,
    /// The client has sent the name that it requests.
    Named(TlsFacts<'a>),
}

/// The addresses of a connection.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionAddresses {
    /// The client; `None`: a unix socket.
    pub client: Option<std::net::SocketAddr>,
    /// The address that the client connected to; `None`: a unix socket, or no policy reads it.
    pub server: Option<std::net::SocketAddr>,
}

/// How a refused connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnedAway {
    /// The termination reason.
    pub why: Termination,
    /// Whether it ends with a reset.
    pub must_reset: bool,
}

/// The connection policies of a virtual server.
pub struct Gate {
    snapshot: Arc<Snapshot>,
    index: usize,
    pools: Pools,
    fields: Rc<RefCell<Fields>>,
    limits: KeyLimits,
    rules: Vec<RuleCount>,
    /// There is no request: conditions on requests read empty values.
    nothing: RequestHead,
}

impl Gate {
    /// The gate of the virtual server at `index`; `None`: all connections are allowed.
    pub fn of(
        table: &LiveTable,
        index: usize,
        pools: &Pools,
        fields: &Rc<RefCell<Fields>>,
    ) -> Option<Self> {
        let policies = &table.snapshot.virtual_servers[index].connection_policies;
        if policies.accepted.is_empty() && policies.named.is_empty() {
            return None;
        }
        Some(Self {
            snapshot: Arc::clone(&table.snapshot),
            index,
            pools: Rc::clone(pools),
            fields: Rc::clone(fields),
            limits: KeyLimits::of(table),
            rules: table.rules.to_vec(),
            nothing: RequestHead::new(),
        })
    }

    /// The policies that run at this moment.
    pub fn policies(&self, moment: Moment<'_>) -> &[Arc<Policy>] {
        let policies = &self.snapshot.virtual_servers[self.index].connection_policies;
        match moment {
            Moment::Accepted => &policies.accepted,
            Moment::Named(_) => &policies.named,
        }
    }

    /// Runs the policies. `decision` must be cleared; `scratch` is temporary. The places added to `held` must be
    /// dropped when the connection ends, whatever the decision is.
    pub fn ask(
        &self,
        moment: Moment<'_>,
        whence: ConnectionAddresses,
        (worker, now, sources): (usize, Clock, Sources),
        decision: &mut Decision,
        (scratch, held): (&mut Vec<u8>, &mut Vec<LimitPlace>),
    ) -> Option<TurnedAway> {
        let (scheme, tls) = match moment {
            Moment::Accepted => (Scheme::Http, None),
            Moment::Named(tls) => (Scheme::Https, Some(tls)),
        };
        let around = RequestSurroundings::new(
            (sources, now),
            &self.pools,
            &self.snapshot.time_zone,
            SeedAndTime::default(),
        );
        let facts = Facts {
            request: &self.nothing,
            request_input: b"",
            client: whence.client,
            server: whence.server,
            scheme,
            tls,
            response: None,
            datagram: None,
            around: &around,
            unix_s: None,
        };
        let mut fields = self.fields.borrow_mut();
        let mut evaluation = fields.begin(facts);
        let policies = self.policies(moment);
        let done = decision.follow_request(policies, &mut evaluation, &facts, PathForm::default());
        debug_assert!(done.is_ok(), "nothing is rewritten");
        for &rule in &decision.followed {
            self.rules[rule as usize].of(worker).followed.add(1);
        }
        for index in 0..decision.rate_limits.len() {
            let limit = decision.rate_limits[index] as usize;
            match self.limits.count(limit, &facts, &mut evaluation, now, (scratch, held)) {
                KeyLimitResult::Passes | KeyLimitResult::Delayed(_) => {}
                KeyLimitResult::Refused { .. } | KeyLimitResult::Closed => {
                    return Some(TurnedAway { why: Termination::RateLimit, must_reset: false });
                }
            }
        }
        decision.end.as_ref().map(|end| TurnedAway {
            why: Termination::Policy,
            must_reset: matches!(end, End::Reset),
        })
    }
}

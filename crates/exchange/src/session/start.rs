//! The beginning of a session: limits, and the selection of a member.

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use weir_core::clock::Clock;
use weir_core::datagram::Train;
use weir_core::expression::{DatagramFacts, Facts};
use weir_core::limit::Admission;
use weir_core::policy::Decision;
use weir_http::message::{RequestHead, Scheme};

use crate::arena::SessionKey;
use crate::local::key_limits::{ConnectionPlaces, LimitPlace};
use crate::local::pool::{LocalPool, Preference};
use crate::local::stickiness::Stickiness;
use crate::local::surroundings::{SeedAndTime, Sources};
use crate::local::table::LocalServer;
use crate::local::traffic::{RoutingVerdict, Traffic};
use crate::parts::failure::MemberFailure;
use crate::parts::tries::{Lease, Tries};
use crate::session::edge::SessionEdge;
use crate::session::persistence::SessionPersistence;
use crate::session::{Account, Session, Source};
use crate::termination::Termination;

/// The reason why a datagram cannot begin a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The maximum number of sessions is reached.
    Full,
    /// A limit is exceeded, in total or for this client.
    Limited,
    /// The virtual server does not allow this client.
    NotAllowed,
}

/// Checks whether a virtual server allows this client and whether its limits permit another session. If so, counts it and
/// returns its places.
pub fn admit(
    server: &LocalServer,
    worker: usize,
    client: IpAddr,
    now: Clock,
) -> Result<ConnectionPlaces, Refusal> {
    let limits = &server.settings().limits;
    let counters = &server.counters;
    let before = server.live.connection_opened(worker);
    let refuse = |refusal| {
        server.live.connection_closed(worker);
        match refusal {
            Refusal::Full => counters.connections_refused.add(1),
            Refusal::Limited => counters.connections_limited.add(1),
            Refusal::NotAllowed => counters.connections_ended_by_policy.add(1),
        }
        Err(refusal)
    };
    let allowed = server.settings().service.sessions().and_then(|it| it.clients.as_ref());
    if allowed.is_some_and(|allowed| !allowed.contains(client)) {
        return refuse(Refusal::NotAllowed);
    }
    if limits.connections_max.is_some_and(|max| before >= max) {
        return refuse(Refusal::Full);
    }
    let is_above_rate = limits.connections.as_ref().is_some_and(|rate| {
        let admission = server.live.used.connections.admit(rate, now.now_us());
        matches!(admission, Admission::Refuse { .. })
    });
    if is_above_rate {
        return refuse(Refusal::Limited);
    }
    let places = match &server.traffic {
        None => Some(ConnectionPlaces::default()),
        Some(traffic) => traffic.admit_connection(client, now),
    };
    match places {
        Some(places) => {
            counters.connections_accepted.add(1);
            Ok(places)
        }
        None => refuse(Refusal::Limited),
    }
}

/// Buffers for decisions about sessions, used one after another.
#[derive(Default)]
pub struct Tools {
    decision: Box<Decision>,
    scratch: Vec<u8>,
    places: Vec<LimitPlace>,
    /// An empty head, from which conditions on requests read empty values.
    head: Box<RequestHead>,
}

/// The destination of a session.
struct Route {
    pool: Rc<LocalPool>,
    preference: Preference,
    stickiness: Option<Stickiness>,
}

impl Tools {
    fn route(
        &mut self,
        server: &LocalServer,
        traffic: &Traffic,
        (client, asked): (SocketAddr, Option<SocketAddr>),
        datagram: &[u8],
        (now, sources): (Clock, Sources),
    ) -> Route {
        // The length of the members' connection IDs is unknown here.
        let datagram = DatagramFacts { bytes: datagram, quic_id_bytes: 0 };
        let around = traffic.around((sources, now), SeedAndTime::default());
        let facts = Facts {
            request: &self.head,
            request_input: b"",
            client: Some(client),
            server: asked,
            scheme: Scheme::Http,
            tls: None,
            response: None,
            datagram: Some(&datagram),
            around: &around,
            unix_s: None,
        };
        let mut fields = traffic.fields();
        let mut evaluation = fields.begin(facts);
        // Without policies, no random number is needed.
        let scratches = (&mut self.scratch, &mut self.places, 0);
        let decision = &mut self.decision;
        let verdict =
            traffic.decide(&facts, &mut evaluation, &server.live, now, decision, scratches);
        decision.clear();
        self.places.clear();
        match verdict {
            RoutingVerdict::Forward(route) => Route {
                pool: traffic.pool(route.pool),
                preference: route.preference,
                stickiness: route.stickiness,
            },
            // No other setting applies to datagrams.
            _ => {
                debug_assert!(false, "nothing is decided of a session but its member");
                let pool = server.pool.now();
                Route { pool, preference: Preference::Any, stickiness: None }
            }
        }
    }
}

impl<S: Copy> Session<S> {
    /// Creates a session for this datagram. It has no member yet. `asked`: the local address that the client has sent
    /// to.
    pub fn begin(
        at: &mut impl SessionEdge<Socket = S>,
        key: SessionKey,
        server: &Rc<LocalServer>,
        (source, asked): (Source, Option<SocketAddr>),
        places: ConnectionPlaces,
        first: &[u8],
    ) -> Option<Self> {
        let settings = server.settings().service.sessions()?.clone();
        let now = at.turn().clock;
        let client = source.flow.client;
        let route = match &server.traffic {
            None => {
                let pool = server.pool.now();
                Route { pool, preference: Preference::Any, stickiness: None }
            }
            Some(traffic) => {
                let moment = (now, at.sources());
                at.tools().route(server, traffic, (client, asked), first, moment)
            }
        };
        route.pool.note_request(now.now_ms());
        let sticky = route.stickiness.as_ref().map(|stickiness| &stickiness.sticky);
        let kept = sticky.and_then(|sticky| SessionPersistence::new(server, &route.pool, sticky));
        Some(Self {
            key,
            server: Rc::clone(server),
            source,
            socket: None,
            account: Account { begun_us: now.now_us(), ..Account::default() },
            over: None,
            settings,
            tries: Tries::new(route.pool, route.preference),
            lease: None,
            stickiness: route.stickiness,
            kept,
            held: Vec::new(),
            has_dropped: false,
            _places: places,
        })
    }

    /// Finds a member, opens a socket to it, and sends the datagrams so far.
    pub(super) fn find_member(&mut self, at: &mut impl SessionEdge<Socket = S>, train: Train<'_>) {
        while self.tries.left() > 0 {
            let pool = Rc::clone(&self.tries.pool);
            let now = at.turn().clock;
            let Ok(member) = pool.occupy(self.tries.tried(), now, self.tries.preference) else {
                break;
            };
            self.take(member, Lease::of(&pool, member), now);
            match at.open(self.key, (&self.source, &self.settings), &pool, member) {
                Ok(socket) => {
                    self.socket = Some(socket);
                    let counters = &pool.members[member as usize].counters;
                    counters.connections_opened.add(1);
                    counters.connections_open.add(1);
                    return self.pass(at, train, true);
                }
                Err(failure) => {
                    self.tries.failure = Some(failure);
                    self.release_member(at, Some(failure));
                    if failure == MemberFailure::NoSocket || !pool.may_retry(now.now_ms()) {
                        break;
                    }
                }
            }
        }
        let why = match self.tries.failure {
            Some(failure) => failure.termination(),
            None => {
                self.tries.pool.counters.no_member.add(1);
                Termination::NoMember
            }
        };
        self.server.counters.datagrams_refused.add(train.count() as u64);
        self.end(at, why);
    }

    /// Records the selected member.
    fn take(&mut self, member: u32, lease: Lease, now: Clock) {
        if let Some(stickiness) = &self.stickiness {
            self.account.kept = Some(stickiness.count(member, &self.server.counters));
            stickiness.note_member(member, now.now_ms());
        }
        if self.tries.count > 0 {
            self.account.retries += 1;
            self.tries.count_retry();
        }
        self.tries.note(member);
        self.account.tried_us = now.now_us();
        let local = &lease.pool.members[member as usize];
        local.counters.requests.add(1);
        local.counters.requests_active.add(1);
        self.account.member = Some(Rc::clone(local));
        self.lease = Some(lease);
    }
}

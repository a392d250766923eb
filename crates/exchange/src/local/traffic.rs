//! Decisions about a request before it is sent to a member: limits, policies, persistence. No I/O happens here.

use std::cell::{Ref, RefCell, RefMut};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use weir_config::snapshot::{AddressOf, Balance, Forwarding, Snapshot, VirtualServer};
use weir_core::clock::Clock;
use weir_core::expression::{Evaluation, Facts, Fields};
use weir_core::keyed_hash::{KeyedHash, PrefixLengths};
use weir_core::limit::{Admission, retry_after_s};
use weir_core::persistence::cookie::{HiddenCookies, OtherTokens, TokenForm};
use weir_core::persistence::{path_parameter, session_id};
use weir_core::policy::{
    Action, Decision, End, Policy, PoolChoice, RewriteError, Rule, Rules, Split, place_of,
};
use weir_http::cookies::{self, RemainingCookies};
use weir_http::edits::{Change, FieldEdits};

use crate::local::client_address::named;
use crate::local::key_limits::{
    ConnectionPlaces, KeyLimitResult, KeyLimits, LimitPlace, RETRY_AT_A_TIME_S,
};
use crate::local::pool::{LocalPool, Preference};
use crate::local::pools::{PoolInForce, Pools};
use crate::local::stickiness::Stickiness;
use crate::local::surroundings::{RequestSurroundings, SeedAndTime, Sources};
use crate::shared::live::{LiveTable, LiveVirtualServer, RuleCount};
use crate::shared::logins::Logins;
use crate::shared::places::Places;
use crate::shared::sticky::Sticky;

/// A worker's processing of requests for a virtual server.
pub struct Traffic {
    snapshot: Arc<Snapshot>,
    index: usize,
    pools: Pools,
    /// One per persistence and pool, those of the first persistence first; `None`: the persistence is not used with
    /// this pool.
    stickies: Box<[RefCell<Option<Arc<Sticky>>>]>,
    /// The persistence cookies of weir that are not sent to members.
    hidden: Option<HiddenCookies>,
    /// Values for expressions, numbered by this snapshot. Its rules may still run after a newer snapshot is active.
    fields: Rc<RefCell<Fields>>,
    key_limits: KeyLimits,
    rules: Vec<RuleCount>,
    /// Whether a policy has rules for responses.
    pub has_response_rules: bool,
    /// Whether a rule distributes requests between pools.
    pub draws: bool,
    /// Temporary storage of [`Self::draw`].
    asked: RefCell<Vec<OfPool>>,
    /// Checks passwords; `None`: no authentication needs one.
    pub logins: Option<Arc<Logins>>,
    /// Whether rules may read tokens, so that the time must be recorded.
    pub reads_tokens: bool,
    /// Whether a rule changes the head of every response.
    pub edits_responses: bool,
    /// Whether a rule that reads the response may replace text in bodies.
    pub rewrites_bodies: bool,
}

/// The preference for a member of a pool, and the persistence of the client.
type MemberPreference = (Preference, Option<Stickiness>);

/// The persistence of a request in one of several weighted pools.
struct OfPool {
    pool: usize,
    asked: MemberPreference,
    /// Tokens of other pools in the cookie.
    others: OtherTokens,
}

/// The decision about a request.
#[derive(Debug)]
pub enum RoutingVerdict {
    /// The request goes to a member.
    Forward(Route),
    /// Another virtual server decides.
    HandedOver {
        /// Its index in the snapshot.
        to: usize,
        /// The request is delayed until then by a rate limit; 0: not delayed.
        not_before_us: u64,
    },
    /// The request ends here; see [`Decision::end`].
    End {
        /// The request is delayed until then by a rate limit; 0: not delayed.
        not_before_us: u64,
    },
    /// The request is for a host whose TLS settings differ from those of the client's handshake.
    Misdirected,
    /// The request exceeds a limit.
    Limited {
        /// Seconds until a request is permitted, rounded up.
        retry_after_s: u64,
    },
    /// The request exceeds a limit, and its connection closes.
    LimitClosed,
    /// A policy has changed the request so that it cannot be sent.
    Failed(RewriteError),
}

/// The destination of a request.
#[derive(Debug)]
pub struct Route {
    /// Index of the pool.
    pub pool: usize,
    /// The preference for a member.
    pub preference: Preference,
    /// The request is delayed until then by a rate limit; 0: not delayed.
    pub not_before_us: u64,
    /// The persistence of its client.
    pub stickiness: Option<Stickiness>,
}

impl Traffic {
    /// The processing for the virtual server at `index`; `None`: requests are forwarded unchanged. A virtual server to
    /// which others hand requests over always has processing, because it continues with their decisions.
    pub fn of(
        table: &LiveTable,
        (index, is_target): (usize, bool),
        pools: &Pools,
        fields: &Rc<RefCell<Fields>>,
    ) -> Option<Self> {
        let snapshot = &table.snapshot;
        let server = &snapshot.virtual_servers[index];
        let address = &server.client_address;
        let is_keyed = |pool: usize| !matches!(snapshot.pools[pool].balance, Balance::Method(_));
        let has_more =
            |pool: usize| is_keyed(pool) || snapshot.pools[pool].instead.pools().next().is_some();
        let is_plain = !is_target
            && server.policies.is_empty()
            && server.persistence.is_none()
            && server.limits.requests.is_none()
            && server.limits.requests_max.is_none()
            && server.limits.per_key.is_empty()
            && server.limits.per_key_connections.is_empty()
            && address.x_forwarded_for == Forwarding::Off
            && address.forwarded == Forwarding::Off
            && !address.x_forwarded_proto
            && server.request_id.is_none()
            && server.tracing.is_none()
            && !server.http.rewrite_location
            && !server.pools().any(has_more)
            // With several pools, the pool of a connection must be determined first.
            && server.pools().count() == 1;
        if is_plain {
            return None;
        }
        let places = snapshot
            .persistence
            .iter()
            .flat_map(|persistence| snapshot.pools.iter().map(move |pool| (persistence, pool)));
        let stickies: Box<[Option<Arc<Sticky>>]> = places
            .map(|(persistence, pool)| table.stickies.of(server, persistence, pool).cloned())
            .collect();
        let hidden = table.stickies.hidden(stickies.iter().flatten());
        let stickies = stickies.into_iter().map(RefCell::new).collect();
        let is_split = |action: &Action| matches!(action, Action::Pool(PoolChoice::Split(_)));
        let is_drawn = |rule: &Rule| rule.actions.iter().any(is_split);
        let mut later = server.policies.iter().flat_map(|policy| &policy.response);
        let answers_responses = |policy: &Arc<Policy>| !policy.response.is_empty();
        Some(Self {
            snapshot: Arc::clone(snapshot),
            index,
            pools: Rc::clone(pools),
            stickies,
            hidden,
            fields: Rc::clone(fields),
            key_limits: KeyLimits::of(table),
            rules: table.rules.to_vec(),
            has_response_rules: server.policies.iter().any(answers_responses),
            draws: server.policies.iter().any(|policy| policy.request.all().iter().any(is_drawn)),
            asked: RefCell::default(),
            logins: table.logins.clone(),
            reads_tokens: snapshot.slots.read_tokens(),
            edits_responses: server.policies.iter().any(|policy| policy.request.edits_response()),
            rewrites_bodies: later.any(Rules::edit_bodies),
        })
    }

    /// The limits per key.
    pub fn key_limits(&self) -> &KeyLimits {
        &self.key_limits
    }

    /// The snapshot.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Evaluation state for the expressions of this snapshot.
    pub fn fields(&self) -> RefMut<'_, Fields> {
        self.fields.borrow_mut()
    }

    /// The values for expressions of a request: random number, time and pools.
    pub fn around(
        &self,
        (sources, now): (Sources, Clock),
        known: SeedAndTime,
    ) -> RequestSurroundings<'_> {
        RequestSurroundings::new((sources, now), &self.pools, &self.snapshot.time_zone, known)
    }

    /// The pool with this index in the snapshot, with its present members.
    pub fn pool(&self, index: usize) -> Rc<LocalPool> {
        self.pools[index].now()
    }

    /// The members of some pools have changed, by their indexes, and nothing else: takes their persistence from `table`.
    pub(super) fn take_members(&self, table: &LiveTable, changed: &[usize]) {
        let snapshot = &table.snapshot;
        for (number, persistence) in snapshot.persistence.iter().enumerate() {
            for &index in changed {
                let sticky = &self.stickies[number * snapshot.pools.len() + index];
                if sticky.borrow().is_some() {
                    let pool = &snapshot.pools[index];
                    let now = table.stickies.of(self.settings(), persistence, pool).cloned();
                    sticky.replace(now);
                }
            }
        }
    }

    /// The settings of the virtual server.
    pub fn settings(&self) -> &VirtualServer {
        &self.snapshot.virtual_servers[self.index]
    }

    /// The decision about a misdirected request (421). Rules for requests do not run.
    pub fn refuse_misdirected(
        &self,
        facts: &Facts<'_>,
        evaluation: &mut Evaluation<'_>,
        decision: &mut Decision,
    ) -> RoutingVerdict {
        let policies = &self.settings().policies;
        decision.edit_response_unconditionally(policies, evaluation, facts);
        RoutingVerdict::Misdirected
    }

    /// Decides about a request. `decision` must be cleared; `scratch` is temporary. The places added to `held` must be
    /// dropped when the request ends, whatever the decision is.
    pub fn decide(
        &self,
        facts: &Facts<'_>,
        evaluation: &mut Evaluation<'_>,
        live: &Arc<LiveVirtualServer>,
        now: Clock,
        decision: &mut Decision,
        (scratch, held, draw): (&mut Vec<u8>, &mut Vec<LimitPlace>, u64),
    ) -> RoutingVerdict {
        let server = self.settings();
        let mut not_before_us = 0;
        if let Some(refused) =
            self.pass_limits(facts, evaluation, live, now, &mut not_before_us, (scratch, held))
        {
            // Only unconditional rules apply to the response.
            decision.edit_response_only(&server.policies, evaluation, facts);
            return refused;
        }
        let form = server.http.target.path;
        if let Err(error) = decision.follow_request(&server.policies, evaluation, facts, form) {
            return RoutingVerdict::Failed(error);
        }
        for index in 0..decision.rate_limits.len() {
            let limit = decision.rate_limits[index] as usize;
            match self.key_limits.count(limit, facts, evaluation, now, (scratch, held)) {
                KeyLimitResult::Passes => {}
                KeyLimitResult::Delayed(until_us) => not_before_us = not_before_us.max(until_us),
                KeyLimitResult::Refused { retry_after_s } => {
                    return RoutingVerdict::Limited { retry_after_s };
                }
                KeyLimitResult::Closed => return RoutingVerdict::LimitClosed,
            }
        }
        match decision.end {
            None => {}
            Some(End::VirtualServer(to)) => {
                return RoutingVerdict::HandedOver { to: to as usize, not_before_us };
            }
            Some(_) => return RoutingVerdict::End { not_before_us },
        }
        let chosen = match &decision.pool {
            None => (server.pool, None),
            Some(PoolChoice::One(pool)) => (*pool as usize, None),
            Some(PoolChoice::Split(split)) => {
                let split = Arc::clone(split);
                self.draw(&split, facts, evaluation, now, decision, (scratch, draw))
            }
        };
        self.hide_cookies(facts, decision, scratch);
        let (pool, (preference, stickiness)) =
            self.settle(chosen, facts, evaluation, now, decision, scratch);
        RoutingVerdict::Forward(Route { pool, preference, not_before_us, stickiness })
    }

    /// Replaces the selected pool by its fallback if needed, and finds the client's member in it; `asked` is the result
    /// for the selected pool.
    fn settle(
        &self,
        (chosen, asked): (usize, Option<MemberPreference>),
        facts: &Facts<'_>,
        evaluation: &mut Evaluation<'_>,
        now: Clock,
        decision: &mut Decision,
        scratch: &mut Vec<u8>,
    ) -> (usize, MemberPreference) {
        let asked = match asked {
            Some(asked) => asked,
            None => self.preference(chosen, facts, evaluation, now, decision, scratch),
        };
        let usable = self.usable(chosen, now);
        // New clients use the fallback. A client stays with its own member if that has a place, even if it is draining.
        let stays = || matches!(asked.0, Preference::Member(member) if self.pool(chosen).has_place(member, now));
        if usable == chosen || stays() {
            return (chosen, asked);
        }
        (usable, self.preference(usable, facts, evaluation, now, decision, scratch))
    }

    /// Counts a request for the limits of the virtual server. `Some`: it exceeds one.
    fn pass_limits(
        &self,
        facts: &Facts<'_>,
        evaluation: &mut Evaluation<'_>,
        live: &Arc<LiveVirtualServer>,
        now: Clock,
        not_before_us: &mut u64,
        (scratch, held): (&mut Vec<u8>, &mut Vec<LimitPlace>),
    ) -> Option<RoutingVerdict> {
        let server = self.settings();
        if let Some(rate) = &server.limits.requests
            && let Admission::Refuse { retry_after_us } =
                live.used.requests.admit(rate, now.now_us())
        {
            return Some(RoutingVerdict::Limited { retry_after_s: retry_after_s(retry_after_us) });
        }
        if let Some(max) = server.limits.requests_max {
            let before = live.used.requests_under_way.fetch_add(1, Relaxed);
            held.push(LimitPlace::Server(Arc::clone(live)));
            if before >= max {
                return Some(RoutingVerdict::Limited { retry_after_s: RETRY_AT_A_TIME_S });
            }
        }
        for &limit in &server.limits.per_key {
            match self.key_limits.count(limit, facts, evaluation, now, (scratch, held)) {
                KeyLimitResult::Passes => {}
                KeyLimitResult::Delayed(until_us) => {
                    *not_before_us = (*not_before_us).max(until_us)
                }
                KeyLimitResult::Refused { retry_after_s } => {
                    return Some(RoutingVerdict::Limited { retry_after_s });
                }
                KeyLimitResult::Closed => return Some(RoutingVerdict::LimitClosed),
            }
        }
        None
    }

    /// Selects one of several weighted pools: the pool in which persistence keeps the client, else by the persistence
    /// key, else by `draw`.
    fn draw(
        &self,
        split: &Split,
        facts: &Facts<'_>,
        evaluation: &mut Evaluation<'_>,
        now: Clock,
        decision: &mut Decision,
        (scratch, draw): (&mut Vec<u8>, u64),
    ) -> (usize, Option<MemberPreference>) {
        let mut place = None;
        let mut all = self.asked.borrow_mut();
        all.clear();
        for pool in split.pools() {
            let asked = self.preference(pool, facts, evaluation, now, decision, scratch);
            match asked.0 {
                Preference::Member(member) => {
                    let own = self.pool(pool);
                    if own.has_place(member, now) || !own.is_down(now) {
                        all.clear();
                        return (pool, Some(asked));
                    }
                }
                Preference::Key(key) => place = place.or(Some(place_of(key))),
                Preference::Any => {}
            }
            all.push(OfPool { pool, asked, others: std::mem::take(&mut decision.other_tokens) });
        }
        let drawn = split.at(place.unwrap_or(draw), |pool| !self.pool(pool).is_down(now));
        let found = all.drain(..).find(|it| it.pool == drawn);
        let asked = found.map(|found| {
            decision.other_tokens = found.others;
            found.asked
        });
        (drawn, asked)
    }

    /// The pool, or its substitute if no member is up or it is full.
    fn usable(&self, pool: usize, now: Clock) -> usize {
        let mut usable = pool;
        // At most as many steps as pools: a cycle, which configurations cannot have, would end too.
        for _ in 0..self.pools.len() {
            let (own, instead) = (self.pool(usable), &self.snapshot.pools[usable].instead);
            usable = match (instead.fallback, instead.spillover) {
                (Some(fallback), _) if own.is_down(now) => fallback,
                // A pool that is down is not full: its substitute is `fallback`, or the `maintenance` page.
                (_, Some(it)) if !own.is_down(now) && own.is_full(it.connections, now) => it.pool,
                _ => return usable,
            };
        }
        pool
    }

    /// The places of a connection under the limits per address. `None`: a limit is exceeded, and no place is taken.
    pub fn admit_connection(&self, peer: IpAddr, now: Clock) -> Option<ConnectionPlaces> {
        self.key_limits.admit_connection(&self.settings().limits.per_key_connections, peer, now)
    }

    /// Removes weir's own cookies from the request for the member, of all pools, even if they did not decide about this
    /// request.
    pub fn hide_cookies(&self, facts: &Facts<'_>, decision: &mut Decision, scratch: &mut Vec<u8>) {
        let Some(hidden) = &self.hidden else { return };
        let fields = named(&facts.request.fields, facts.request_input, b"cookie");
        let is_ours = |name: &[u8], value: &[u8]| hidden.contains(name, value);
        remove_cookies(&mut decision.request.fields, fields, is_ours, scratch);
    }

    /// The substitute of a pool, if no member is up or it is full.
    pub fn instead_of(&self, pool: &LocalPool, now: Clock) -> Option<Rc<LocalPool>> {
        let is_it = |own: &Rc<PoolInForce>| Arc::ptr_eq(own.live(), &pool.live);
        let index = self.pools.iter().position(is_it)?;
        let usable = self.usable(index, now);
        (usable != index).then(|| self.pool(usable))
    }

    /// The persistence by connection IDs for this virtual server and pool, and the pool.
    pub fn connection_ids(&self, pool: &str) -> Option<(Rc<LocalPool>, Arc<Sticky>)> {
        let index = self.pools.iter().position(|own| *own.live().name == *pool)?;
        let mut next = self.settings().persistence;
        // At most as many steps as persistences: a cycle of fallbacks ends too.
        for _ in 0..self.snapshot.persistence.len() {
            let persistence = next?;
            let sticky = self.sticky(persistence as u32, index as u32).clone()?;
            if matches!(*sticky, Sticky::ConnectionIds(_)) {
                return Some((self.pool(index), sticky));
            }
            next = self.snapshot.persistence[persistence].fallback;
        }
        None
    }

    /// The preference for a member of a pool, and the client's persistence. Tokens of other pools in the cookie are
    /// stored in `decision`.
    fn preference(
        &self,
        pool: usize,
        facts: &Facts<'_>,
        evaluation: &mut Evaluation<'_>,
        now: Clock,
        decision: &mut Decision,
        scratch: &mut Vec<u8>,
    ) -> MemberPreference {
        let chosen = decision.member.as_deref().and_then(|label| self.pool(pool).member(label));
        if let Some(member) = chosen {
            return (Preference::Member(member), None);
        }
        let own = self.settings().persistence.map(|persistence| persistence as u32);
        let mut next = decision.persistence.unwrap_or(own);
        let mut stickiness = None;
        decision.other_tokens.clear();
        // At most as many steps as persistences: a cycle of fallbacks ends too.
        for _ in 0..self.snapshot.persistence.len() {
            let Some(persistence) = next else { break };
            let sticky = self.sticky(persistence, pool as u32);
            let Some(sticky) = &*sticky else { break };
            // The cookie of a fallback persistence is not set.
            let mut unused = OtherTokens::default();
            let others =
                if stickiness.is_none() { &mut decision.other_tokens } else { &mut unused };
            let asked = (persistence, sticky);
            let (preference, found) = ask(asked, facts, evaluation, now, (scratch, others));
            stickiness = stickiness.or(found);
            if let Some(preference) = preference {
                if let (Preference::Member(member), Some(stickiness)) =
                    (preference, &mut stickiness)
                {
                    stickiness.known = Some(member);
                }
                return (preference, stickiness);
            }
            next = self.snapshot.persistence[persistence as usize]
                .fallback
                .map(|persistence| persistence as u32);
        }
        (self.balanced(pool, facts, evaluation, scratch), stickiness)
    }

    /// A persistence with the members that a pool has now; `None`: this is not the view of the pool that is in force here.
    pub fn sticky_now(&self, persistence: u32, pool: &Rc<LocalPool>) -> Option<Arc<Sticky>> {
        let index = self.pools.iter().position(|own| Arc::ptr_eq(own.live(), &pool.live))?;
        let is_in_force = Rc::ptr_eq(&self.pool(index), pool);
        is_in_force.then(|| self.sticky(persistence, index as u32).clone()).flatten()
    }

    fn sticky(&self, persistence: u32, pool: u32) -> Ref<'_, Option<Arc<Sticky>>> {
        let pools = self.snapshot.pools.len();
        self.stickies[persistence as usize * pools + pool as usize].borrow()
    }

    /// The preference of the pool's load balancing, by key or none.
    fn balanced(
        &self,
        pool: usize,
        facts: &Facts<'_>,
        evaluation: &mut Evaluation<'_>,
        scratch: &mut Vec<u8>,
    ) -> Preference {
        // With the same key in all instances, all send a client to the same member.
        let hash = || KeyedHash::new([0; 16]);
        match &self.snapshot.pools[pool].balance {
            Balance::Method(_) => Preference::Any,
            Balance::SourceAddress => facts.client.map_or(Preference::Any, |client| {
                Preference::Key(hash().address(client.ip(), PrefixLengths::WHOLE))
            }),
            Balance::Hash(template) => {
                scratch.clear();
                evaluation.render(template, scratch);
                if scratch.is_empty() {
                    Preference::Any
                } else {
                    Preference::Key(hash().bytes(scratch))
                }
            }
        }
    }

    /// Selects a pool and a preference for a request of weir's own that belongs to a client's request. Load balancing
    /// and fallbacks of the pool apply, persistence does not.
    pub fn beside(
        &self,
        pool: usize,
        (facts, evaluation): (&Facts<'_>, &mut Evaluation<'_>),
        now: Clock,
        scratch: &mut Vec<u8>,
    ) -> (Rc<LocalPool>, Preference) {
        let usable = self.usable(pool, now);
        let preference = self.balanced(usable, facts, evaluation, scratch);
        (self.pool(usable), preference)
    }

    /// Counts the rules that were followed.
    pub fn count(&self, worker: usize, decision: &Decision) {
        for &rule in &decision.followed {
            self.rules[rule as usize].of(worker).followed.add(1);
        }
    }
}

/// Asks a persistence about a request: the member, if known, and the value to remember. Tokens of other pools are left
/// in `others`.
fn ask(
    (persistence, sticky): (u32, &Arc<Sticky>),
    facts: &Facts<'_>,
    evaluation: &mut Evaluation<'_>,
    now: Clock,
    (scratch, others): (&mut Vec<u8>, &mut OtherTokens),
) -> (Option<Preference>, Option<Stickiness>) {
    let stickiness = |is_stale, key| {
        let sticky = Arc::clone(sticky);
        Some(Stickiness { sticky, persistence, key, known: None, is_stale })
    };
    let in_table = |places: &Places, key: Option<u64>| {
        let found = key.and_then(|key| places.find(key, now.now_ms()));
        (found.map(Preference::Member), stickiness(found.is_none(), key))
    };
    let key = |hash: &KeyedHash, value: Option<&[u8]>| {
        let value = value.filter(|value| !value.is_empty());
        (value.map(|value| Preference::Key(hash.bytes(value))), None)
    };
    let (head, input) = (facts.request, facts.request_input);
    match &**sticky {
        Sticky::Insert(insert) => {
            let fields = named(&head.fields, input, b"cookie");
            let found = insert.tokens.read(fields, &insert.name, others);
            let is_stale = found.is_none_or(|found| found.standing != TokenForm::Current);
            (found.map(|found| Preference::Member(found.member)), stickiness(is_stale, None))
        }
        Sticky::Address { of, places } => {
            let address = match of {
                AddressOf::Client => facts.client,
                AddressOf::Server => facts.server,
            };
            let key = address.map(|address| places.key_of_address(address.ip()));
            in_table(places, key)
        }
        Sticky::Learned { of, learn, places } => {
            scratch.clear();
            evaluation.render(of, scratch);
            match (&**scratch, learn) {
                // Nothing will be stored.
                ([], None) => (None, None),
                ([], Some(_)) => in_table(places, None),
                (value, _) => in_table(places, Some(places.key_of_bytes(value))),
            }
        }
        Sticky::ConnectionIds(ids) => {
            let found = facts.datagram.and_then(|it| ids.find(it.bytes, now.now_ms()));
            (found.map(Preference::Member), stickiness(found.is_none(), None))
        }
        Sticky::Passive { name, hash } => key(hash, cookie(facts, name.as_bytes())),
        Sticky::Hash { of, hash } => {
            scratch.clear();
            evaluation.render(of, scratch);
            key(hash, Some(scratch))
        }
        Sticky::PathParameter { name, cookie: in_cookie, hash } => {
            let of_path = path_parameter(head.member_path(input), name.as_bytes());
            let session = of_path.or_else(|| cookie(facts, in_cookie.as_bytes()));
            key(hash, session.map(session_id))
        }
    }
}

fn cookie<'a>(facts: &Facts<'a>, name: &[u8]) -> Option<&'a [u8]> {
    let input = facts.request_input;
    let mut all = cookies::request_cookies(&facts.request.fields, input);
    all.find(|cookie| cookie.name.of(input) == name).map(|cookie| cookie.value.of(input))
}

/// Removes cookies from the request for the member.
fn remove_cookies<'v>(
    edits: &mut FieldEdits,
    received: impl Iterator<Item = &'v [u8]>,
    is_removed: impl Fn(&[u8], &[u8]) -> bool,
    scratch: &mut Vec<u8>,
) {
    edits.change_each(b"Cookie", received, scratch, |value, out| {
        match cookies::write_without(value, &is_removed, out) {
            RemainingCookies::Unchanged => Change::None,
            RemainingCookies::Rewritten => Change::Changed,
            RemainingCookies::Nothing => Change::Removed,
        }
    });
}

//! Persistence at run time: it keeps the clients of one virtual server at the members of one pool.
//!
//! A [`Sticky`] is created for each possible combination of virtual server, persistence and pool when the configuration
//! is loaded; a request looks one up. Tables of remembered clients are taken over by the next snapshot.

use std::collections::HashMap;
use std::sync::Arc;

use weir_config::snapshot::{
    AddressOf, InsertedCookie, Persistence, PersistenceKind, Pool, Snapshot, VirtualServer,
};
use weir_core::expression::Template;
use weir_core::keyed_hash::KeyedHash;
use weir_core::persistence::cookie::{
    CookieTokens, HiddenCookies, OtherTokens, PoolId, SetCookieFields,
};
use weir_core::persistence::keys::{KEY_BYTES, Key, Keys};
use weir_core::policy::{Action, Secure};

use crate::environment::Environment;
use crate::shared::connection_ids::ConnectionIds;
use crate::shared::places::{MadeFor, Places, ToldBy};

/// Methods of persistence.
#[derive(Debug)]
pub enum Sticky {
    /// A cookie of weir's own.
    Insert(Insert),
    /// A cookie of the application, whose value selects the member.
    Passive {
        /// The name of the cookie.
        name: Arc<str>,
        /// The hash of its value.
        hash: KeyedHash,
    },
    /// An address that is stored in a table.
    Address {
        /// The kind of address.
        of: AddressOf,
        /// The table of clients.
        places: Arc<Places>,
    },
    /// A value of the request that is stored in a table.
    Learned {
        /// The value.
        of: Template,
        /// The template for responses; `None`: the request's value is learned when a member is selected.
        learn: Option<Template>,
        /// The table of clients.
        places: Arc<Places>,
    },
    /// The QUIC connection ID that the member gave to the client.
    ConnectionIds(ConnectionIds),
    /// A value of the request that selects the member.
    Hash {
        /// The value.
        of: Template,
        /// The hash of the value.
        hash: KeyedHash,
    },
    /// A parameter of the path or a cookie, whose value selects the member.
    PathParameter {
        /// The parameter.
        name: Arc<str>,
        /// The cookie.
        cookie: Arc<str>,
        /// The hash of the value.
        hash: KeyedHash,
    },
}

/// Cookies of weir's own, for the members of one pool.
#[derive(Debug)]
pub struct Insert {
    /// Maps members to the tokens in cookies.
    pub tokens: CookieTokens,
    /// The name of the cookie.
    pub name: Arc<str>,
    /// Whether the cookie is sent to members.
    to_member: bool,
    plain: SetCookieFields,
    /// The attributes with Secure.
    secure: SetCookieFields,
    when_secure: Secure,
}

impl Insert {
    /// Appends the value of the Set-Cookie field that sends a client to a member, and leaves it where it is in
    /// other pools.
    pub fn write_field(&self, member: u32, is_tls: bool, others: &OtherTokens, out: &mut Vec<u8>) {
        let fields = if self.when_secure.holds(is_tls) { &self.secure } else { &self.plain };
        fields.write(member, others, out);
    }
}

/// A combination of virtual server, persistence and pool, by name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Place {
    /// Empty if virtual servers share the table.
    server: Arc<str>,
    persistence: Arc<str>,
    pool: Arc<str>,
}

/// The persistence state of a snapshot.
#[derive(Debug)]
pub struct Stickies {
    by_place: Arc<HashMap<Place, Arc<Sticky>>>,
    /// The pools of cookies that are not sent to members, under all keys, in ascending order.
    hidden_pools: Arc<[PoolId]>,
    /// Random secret keys, for settings without a key file: the same since the first table of the process.
    drawn_keys: Arc<Keys>,
    /// The keys for settings that do not name a key file.
    pub own_keys: Arc<Keys>,
}

/// Random secret keys.
fn drawn_keys(outside: &Environment) -> Arc<Keys> {
    Arc::new(Keys::single(Key::new(outside.random::<KEY_BYTES>())))
}

impl Stickies {
    /// The state for a snapshot; remembered clients are taken over from `previous`.
    pub fn build(snapshot: &Snapshot, previous: Option<&Self>, outside: &Environment) -> Self {
        let now_ms = outside.clock.now_ms();
        let drawn_keys =
            previous.map_or_else(|| drawn_keys(outside), |it| Arc::clone(&it.drawn_keys));
        let own_keys = Arc::clone(snapshot.own_keys.as_ref().unwrap_or(&drawn_keys));
        let mut by_place = HashMap::new();
        for server in &snapshot.virtual_servers {
            let reach = ReachablePools::of(server, snapshot);
            for &persistence in &reach.persistence {
                for &pool in &reach.pools {
                    let both = (&*snapshot.persistence[persistence], &*snapshot.pools[pool]);
                    let place = place_of(server, both.0, both.1);
                    if by_place.contains_key(&place) {
                        continue;
                    }
                    let old = previous.and_then(|previous| previous.by_place.get(&place));
                    by_place.insert(place, Sticky::after(old, both, &own_keys, now_ms));
                }
            }
        }
        Self {
            by_place: Arc::new(by_place),
            hidden_pools: hidden_pools(snapshot, &own_keys),
            drawn_keys,
            own_keys,
        }
    }

    /// The state after a change of the members of some pools, by their indexes, and of nothing else.
    pub fn with_members(
        &self,
        snapshot: &Snapshot,
        changed: &[usize],
        outside: &Environment,
    ) -> Self {
        let now_ms = outside.clock.now_ms();
        let pools: HashMap<&str, &Pool> = changed
            .iter()
            .map(|index| &*snapshot.pools[*index])
            .map(|it| (&*it.name, it))
            .collect();
        let mut by_place = Arc::clone(&self.by_place);
        let persistence = |name: &str| snapshot.persistence.iter().find(|it| *it.name == *name);
        let all = (!pools.is_empty()).then_some(&*self.by_place);
        for (place, old) in all.into_iter().flatten() {
            if let Some(pool) = pools.get(&*place.pool)
                && let Some(persistence) = persistence(&place.persistence)
            {
                let new = Sticky::after(Some(old), (persistence, pool), &self.own_keys, now_ms);
                Arc::make_mut(&mut by_place).insert(place.clone(), new);
            }
        }
        Self {
            by_place,
            hidden_pools: Arc::clone(&self.hidden_pools),
            drawn_keys: Arc::clone(&self.drawn_keys),
            own_keys: Arc::clone(&self.own_keys),
        }
    }

    /// A copy with the same clients, for requests of some virtual servers only. Requests to the copy change nothing
    /// here.
    pub fn copied(&self, servers: &[&VirtualServer], now_ms: u64) -> Self {
        let is_reached = |place: &Place| {
            place.server.is_empty() || servers.iter().any(|server| server.name == place.server)
        };
        let reached = self.by_place.iter().filter(|(place, _)| is_reached(place));
        let copied = reached.map(|(place, sticky)| (place.clone(), sticky.copied(now_ms)));
        Self {
            by_place: Arc::new(copied.collect()),
            hidden_pools: Arc::clone(&self.hidden_pools),
            drawn_keys: Arc::clone(&self.drawn_keys),
            own_keys: Arc::clone(&self.own_keys),
        }
    }

    /// The cookies that members of a virtual server do not get: those of its persistence, and tokens of other
    /// configured pools. A virtual server that inserts no cookie hides no cookie.
    pub fn hidden<'a>(
        &self,
        of_server: impl Iterator<Item = &'a Arc<Sticky>>,
    ) -> Option<HiddenCookies> {
        let (mut names, mut shown) = (Vec::new(), Vec::new());
        for sticky in of_server {
            let Sticky::Insert(insert) = &**sticky else { continue };
            let names = if insert.to_member { &mut shown } else { &mut names };
            if !names.contains(&insert.name) {
                names.push(Arc::clone(&insert.name));
            }
        }
        let is_any = !names.is_empty();
        is_any.then(|| HiddenCookies::new(names, shown, Arc::clone(&self.hidden_pools)))
    }

    /// The number of clients for which the tables had no room.
    pub fn losses(&self) -> u64 {
        let of = |sticky: &Arc<Sticky>| match &**sticky {
            Sticky::Address { places, .. } | Sticky::Learned { places, .. } => {
                places.losses().total()
            }
            Sticky::ConnectionIds(ids) => ids.losses().total(),
            _ => 0,
        };
        self.by_place.values().map(of).sum()
    }

    /// Every persistence with a table, with names of virtual server (empty if several share it), persistence and pool.
    pub fn tables(&self) -> impl Iterator<Item = ([&Arc<str>; 3], &Sticky)> {
        let has_table = |sticky: &Sticky| {
            sticky.places().is_some() || matches!(sticky, Sticky::ConnectionIds(_))
        };
        let all = self.by_place.iter().filter(move |(_, sticky)| has_table(sticky));
        all.map(|(place, sticky)| ([&place.server, &place.persistence, &place.pool], &**sticky))
    }

    /// The persistence that keeps the clients of a virtual server at the members of a pool.
    pub fn of(
        &self,
        server: &VirtualServer,
        persistence: &Persistence,
        pool: &Pool,
    ) -> Option<&Arc<Sticky>> {
        self.by_place.get(&place_of(server, persistence, pool))
    }
}

fn place_of(server: &VirtualServer, persistence: &Persistence, pool: &Pool) -> Place {
    Place {
        server: if persistence.kind.is_shared() { "".into() } else { Arc::clone(&server.name) },
        persistence: Arc::clone(&persistence.name),
        pool: Arc::clone(&pool.name),
    }
}

/// The persistences that requests of a virtual server can reach, by their indexes.
pub fn reached_persistence(server: &VirtualServer, snapshot: &Snapshot) -> Vec<usize> {
    ReachablePools::of(server, snapshot).persistence
}

/// The pools that requests of a virtual server can reach, by their indexes: its own, those that rules select, and their
/// fallbacks.
pub fn reached_pools(server: &VirtualServer, snapshot: &Snapshot) -> Vec<usize> {
    ReachablePools::of(server, snapshot).pools
}

/// The pools and persistences that requests of a virtual server can reach.
struct ReachablePools {
    pools: Vec<usize>,
    persistence: Vec<usize>,
}

impl ReachablePools {
    fn of(server: &VirtualServer, snapshot: &Snapshot) -> Self {
        let mut reach =
            Self { pools: Vec::new(), persistence: server.persistence.into_iter().collect() };
        server.pools().for_each(|pool| add(&mut reach.pools, pool));
        let rules = server.policies.iter().flat_map(|policy| policy.request.all());
        for action in rules.flat_map(|rule| &rule.actions) {
            action.pools().for_each(|pool| add(&mut reach.pools, pool));
            if let Action::Persistence(Some(persistence)) = action {
                add(&mut reach.persistence, *persistence as usize);
            }
        }
        follow(&mut reach.pools, |pool| snapshot.pools[pool].instead.pools());
        follow(&mut reach.persistence, |persistence| {
            snapshot.persistence[persistence].fallback.into_iter()
        });
        reach
    }
}

fn add(known: &mut Vec<usize>, new: usize) {
    if !known.contains(&new) {
        known.push(new);
    }
}

/// Adds everything that the known ones refer to.
fn follow<N: Iterator<Item = usize>>(known: &mut Vec<usize>, next: impl Fn(usize) -> N) {
    let mut index = 0;
    while let Some(&at) = known.get(index) {
        next(at).for_each(|next| add(known, next));
        index += 1;
    }
}

impl Sticky {
    /// The persistence for the members that a pool has now. `old`: its predecessor, whose clients it takes over.
    fn after(
        old: Option<&Arc<Self>>,
        (persistence, pool): (&Persistence, &Pool),
        own_keys: &Arc<Keys>,
        now_ms: u64,
    ) -> Arc<Self> {
        // The same object if possible: workers still write to it.
        if let Some(old) = old.filter(|old| old.is_the_same_table(persistence, pool)) {
            return Arc::clone(old);
        }
        let old = old.map(|old| &**old);
        let new = Self::new(persistence, pool, own_keys, (old, now_ms));
        if let (Self::ConnectionIds(new), Some(Self::ConnectionIds(old))) = (&new, old) {
            new.take_over(old, now_ms);
        }
        Arc::new(new)
    }

    /// Whether it is a table with the same settings, and nothing else.
    fn is_the_same_table(&self, persistence: &Persistence, pool: &Pool) -> bool {
        match (self, &persistence.kind) {
            (Self::ConnectionIds(ids), PersistenceKind::ConnectionIds(settings)) => {
                ids.is_for(*settings, pool)
            }
            _ => false,
        }
    }

    /// `old`: the predecessor.
    fn new(
        persistence: &Persistence,
        pool: &Pool,
        own_keys: &Arc<Keys>,
        (old, now_ms): (Option<&Self>, u64),
    ) -> Self {
        let places = |told_by, table| {
            let old = old.and_then(Self::places);
            Places::of(MadeFor { told_by, table }, pool, own_keys, (old, now_ms))
        };
        // Every instance with the same configuration sends a client to the same member.
        let hash = || Keys::single(Key::new([0; KEY_BYTES])).hash(&pool.name);
        match &persistence.kind {
            PersistenceKind::Insert(cookie) => {
                let keys = cookie.keys.as_ref().unwrap_or(own_keys);
                Self::Insert(Insert::new(cookie, pool, keys))
            }
            PersistenceKind::Passive { name } => {
                Self::Passive { name: Arc::clone(name), hash: hash() }
            }
            PersistenceKind::Address(it) => {
                let places = places(ToldBy::Address(it.of, it.prefix), it.table);
                Self::Address { of: it.of, places }
            }
            PersistenceKind::Learned(learned) => Self::Learned {
                of: learned.of.clone(),
                learn: learned.learn.clone(),
                places: places(ToldBy::Value, learned.table),
            },
            PersistenceKind::ConnectionIds(settings) => {
                let hash = own_keys.hash("connection IDs");
                Self::ConnectionIds(ConnectionIds::new(*settings, pool, hash))
            }
            PersistenceKind::Hash(of) => Self::Hash { of: of.clone(), hash: hash() },
            PersistenceKind::PathParameter { name, cookie } => Self::PathParameter {
                name: Arc::clone(name),
                cookie: Arc::clone(cookie),
                hash: hash(),
            },
        }
    }
}

impl Sticky {
    /// A copy with the same clients; `self` if it has no table that requests fill.
    fn copied(self: &Arc<Self>, now_ms: u64) -> Arc<Self> {
        match &**self {
            Self::Address { of, places } => {
                Arc::new(Self::Address { of: *of, places: Arc::new(places.copied(now_ms)) })
            }
            Self::Learned { of, learn, places } => Arc::new(Self::Learned {
                of: of.clone(),
                learn: learn.clone(),
                places: Arc::new(places.copied(now_ms)),
            }),
            Self::Insert(_)
            | Self::Passive { .. }
            | Self::ConnectionIds(_)
            | Self::Hash { .. }
            | Self::PathParameter { .. } => Arc::clone(self),
        }
    }

    /// The table, if this kind of persistence has one.
    pub fn places(&self) -> Option<&Arc<Places>> {
        match self {
            Self::Address { places, .. } | Self::Learned { places, .. } => Some(places),
            _ => None,
        }
    }

    /// The template for responses, and its table.
    pub fn learn(&self) -> Option<(&Template, &Places)> {
        match self {
            Self::Learned { learn: Some(learn), places, .. } => Some((learn, places)),
            _ => None,
        }
    }
}

impl Insert {
    fn new(settings: &InsertedCookie, pool: &Pool, keys: &Keys) -> Self {
        let labels = pool.members.iter().map(|member| &*member.label);
        let tokens = CookieTokens::new(keys, &pool.name, labels);
        let fields = |secure: bool| {
            let mut cookie = settings.cookie.clone();
            cookie.secure = secure;
            SetCookieFields::new(&cookie, &tokens)
        };
        // The configuration was checked with Secure wherever it may be set. A cookie that requires Secure is never sent
        // without it.
        let secure = fields(true).unwrap_or_default();
        let plain = fields(false).unwrap_or_else(|_| secure.clone());
        Self {
            tokens,
            name: settings.cookie.name.as_str().into(),
            to_member: settings.to_member,
            plain,
            secure,
            when_secure: settings.secure,
        }
    }
}

/// The ids of pools in cookies that members do not get.
fn hidden_pools(snapshot: &Snapshot, own_keys: &Keys) -> Arc<[PoolId]> {
    let mut all_keys: Vec<&Keys> = Vec::new();
    for persistence in &snapshot.persistence {
        if let PersistenceKind::Insert(cookie) = &persistence.kind
            && !cookie.to_member
            && let keys = cookie.keys.as_deref().unwrap_or(own_keys)
            && !all_keys.contains(&keys)
        {
            all_keys.push(keys);
        }
    }
    let of_all = |pool: &Pool| -> Vec<PoolId> {
        all_keys.iter().flat_map(|keys| PoolId::of(keys, &pool.name)).collect()
    };
    let mut pools: Vec<PoolId> = snapshot.pools.iter().flat_map(|pool| of_all(pool)).collect();
    pools.sort_unstable();
    pools.dedup();
    pools.into()
}

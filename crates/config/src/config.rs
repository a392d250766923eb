//! The validated configuration, before names are resolved.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use weir_core::admin_state::AdminState;
use weir_core::limit::Rate;

use crate::endpoint::Endpoint;
use crate::host_rights::beyond_network;
use crate::host_uses::HostUses;
use crate::own_doors::OwnDoors;
use crate::parts::{Change, Parts};
use crate::snapshot::{
    Address, Member, MemberChanges, Monitor, NOBODY, Pool, ResolutionFacts, Settings, Snapshot,
};

/// The resolved addresses of host names. A name without an entry has no address.
pub type Resolutions = BTreeMap<String, Vec<IpAddr>>;

/// A valid configuration in which members may still be host names. A copy shares everything, so it is cheap.
#[derive(Debug, Clone)]
pub struct Config {
    /// The snapshot, with all pools empty.
    pub(crate) template: Arc<Snapshot>,
    /// The names of hosts and pools.
    pub(crate) names: Arc<ConfiguredNames>,
    /// The members of each pool in the template, in the file's order.
    pub(crate) members: Vec<Arc<Vec<ConfiguredMember>>>,
    /// Whether a rule names a member.
    pub(crate) names_members: bool,
    /// The names and hashes of the configuration's parts.
    pub(crate) parts: Parts,
    /// What it uses of the host.
    pub(crate) host_uses: HostUses,
    /// Its size.
    pub(crate) summary: Summary,
}

/// Names in a configuration.
#[derive(Debug, Default)]
pub(crate) struct ConfiguredNames {
    /// The host names of members: in lower case.
    hosts: BTreeSet<String>,
    /// The indexes of the pools, by their names.
    pools: HashMap<Arc<str>, usize>,
    /// Whether members have unix sockets. No change of members alone adds one.
    have_sockets: bool,
}

impl ConfiguredNames {
    pub fn of(pools: &[Arc<Pool>], members: &[Vec<ConfiguredMember>]) -> Self {
        let hosts = members.iter().flatten().filter_map(|member| member.endpoint.name());
        let pools = pools.iter().zip(0..).map(|(pool, index)| (Arc::clone(&pool.name), index));
        let have_sockets = members.iter().flatten().any(|member| member.endpoint.is_unix());
        Self { hosts: hosts.map(str::to_owned).collect(), pools: pools.collect(), have_sockets }
    }
}

/// A member as written in the file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ConfiguredMember {
    pub endpoint: Endpoint,
    pub weight: u16,
    pub connections_max: Option<u32>,
    pub rate: Option<Rate>,
    pub priority: u16,
    pub state: AdminState,
    /// Monitors that replace the pool's.
    pub monitors: Option<Arc<[Monitor]>>,
}

/// The size of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// The number of enabled virtual servers.
    pub virtual_servers: usize,
    /// The number of disabled virtual servers.
    pub disabled: usize,
    /// The number of pools.
    pub pools: usize,
    /// The number of members in the file: a name counts once.
    pub members: usize,
}

impl Config {
    /// Whether another configuration has the same names, which configurations share that differ in members alone.
    pub fn shares_names_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.names, &other.names)
    }

    /// Whether members of these pools have names.
    pub fn have_names(&self, pools: &[usize]) -> bool {
        !self.names.hosts.is_empty() && pools.iter().any(|index| have_names(&self.members[*index]))
    }

    /// The host names to resolve: in lower case, sorted, without duplicates.
    pub fn host_names(&self) -> impl Iterator<Item = &str> {
        self.names.hosts.iter().map(String::as_str)
    }

    /// The index of the pool of this name.
    pub(crate) fn pool(&self, name: &str) -> Option<usize> {
        self.names.pools.get(name).copied()
    }

    /// The snapshot with the current addresses of names.
    ///
    /// Each resolved address becomes a member, sorted, at the place of its name. An address appears only once in a
    /// pool: an address in the file has precedence over a resolved one, and the first of two names over the second. A
    /// pool with `source` addresses gets only members of their address families, because it cannot reach others.
    pub fn snapshot(&self, resolutions: &Resolutions) -> Snapshot {
        let mut snapshot = Snapshot::clone(&self.template);
        let doors = self.own_doors();
        for (pool, members) in snapshot.pools.iter_mut().zip(&self.members) {
            let found = resolve(members, resolutions, (pool, &doors));
            Arc::make_mut(pool).members = found;
        }
        let addresses = snapshot.pools.iter().map(|pool| addresses(pool, pool.members.iter()));
        snapshot.resolved = self.resolved(addresses.fold(0, u64::wrapping_add));
        snapshot
    }

    /// As [`Self::snapshot`], made of the snapshot of a configuration that differs from this one at most in members of these
    /// pools. Pools whose members stay the same are shared with it. Also returns what has changed.
    pub fn with_members(
        &self,
        before: &Snapshot,
        resolutions: &Resolutions,
        pools: &[usize],
    ) -> (Snapshot, Vec<MemberChanges>) {
        let doors = self.own_doors();
        let mut snapshot = before.clone();
        let mut all = Vec::new();
        let facts = &mut snapshot.resolved;
        facts
            .pools_to_be_filled
            .retain(|name| !pools.iter().any(|index| before.pools[*index].name == *name));
        for &index in pools {
            let (configured, pool) = (&self.members[index], &mut snapshot.pools[index]);
            if configured.is_empty() {
                facts.pools_to_be_filled.push(Arc::clone(&pool.name));
            }
            let Some((found, changes)) = changed(configured, resolutions, (index, pool), &doors)
            else {
                continue;
            };
            if !changes.are_alike(&pool.members, &found, |one, other| one.address == other.address)
            {
                let [former, new] = [
                    addresses(pool, changes.former(&pool.members)),
                    addresses(pool, changes.new_ones(&found)),
                ];
                facts.addresses = facts.addresses.wrapping_sub(former).wrapping_add(new);
            }
            *pool = Arc::new(pool.with_members(found));
            all.push(changes);
        }
        facts.content = self.content(facts.addresses);
        (snapshot, all)
    }

    /// The pools that have members with names, by their indexes.
    pub fn pools_with_names(&self) -> Vec<usize> {
        let pools = self.members.iter().enumerate();
        pools.filter(|(_, members)| have_names(members)).map(|(index, _)| index).collect()
    }

    /// The pools whose members differ from those of another configuration, by their indexes; `None`: something else differs,
    /// too, or may depend on the members.
    pub fn only_members_differ(&self, before: &Self) -> Option<Vec<usize>> {
        let names = self.parts.only_members_differ(&before.parts)?;
        // The texts are the same. What follows from them may be in another order, or depend on members.
        let is_same = Arc::ptr_eq(&self.template.settings, &before.template.settings)
            || self.has_order_of(before) && self.packet_remarks().eq(before.packet_remarks());
        if !is_same {
            return None;
        }
        let found = names.iter().map(|name| self.pool(name)).collect::<Option<Vec<usize>>>()?;
        // With a unix socket, more of a pool follows from its members: what TLS and monitors name.
        let have_sockets = self.names.have_sockets || before.names.have_sockets;
        let has_unix = |index: &usize| {
            let mut members = self.members[*index].iter().chain(before.members[*index].iter());
            members.any(|member| member.endpoint.is_unix())
        };
        (!(have_sockets && found.iter().any(has_unix))).then_some(found)
    }

    fn has_order_of(&self, other: &Self) -> bool {
        let names = self.template.pools.iter().map(|pool| &pool.name);
        names.eq(other.template.pools.iter().map(|pool| &pool.name))
    }

    fn packet_remarks(&self) -> impl Iterator<Item = &Arc<str>> {
        let servers = self.template.packets.iter().flat_map(|packets| &packets.servers);
        servers.flat_map(|server| &server.remarks)
    }

    /// Whether members of these pools have a host name that another configuration does not have.
    pub fn has_other_names(&self, before: &Self, pools: &[usize]) -> bool {
        if self.shares_names_with(before) {
            return false;
        }
        let members = pools.iter().flat_map(|index| self.members[*index].iter());
        let mut names = members.filter_map(|member| member.endpoint.name());
        names.any(|name| !before.names.hosts.contains(name))
    }

    /// `addresses`: the sum of the fingerprints of the addresses of all pools.
    fn resolved(&self, addresses: u64) -> ResolutionFacts {
        let pools = self.template.pools.iter().zip(&self.members);
        let empty = pools.filter(|(_, members)| members.is_empty());
        let pools_to_be_filled = empty.map(|(pool, _)| Arc::clone(&pool.name)).collect();
        ResolutionFacts { content: self.content(addresses), addresses, pools_to_be_filled }
    }

    fn content(&self, addresses: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.parts.fingerprint().hash(&mut hasher);
        addresses.hash(&mut hasher);
        hasher.finish()
    }

    /// The differences from another configuration.
    pub fn changes_from(&self, before: &Self) -> Vec<Change> {
        self.parts.changes_from(&before.parts)
    }

    /// The settings that differ from `before`, although only someone on this host may change them. What the host is used for is
    /// compared by [`MergedValues::check_from_network`](crate::MergedValues::check_from_network).
    pub fn beyond_network(&self, before: &Self) -> Vec<&'static str> {
        beyond_network(&self.template, &before.template)
    }

    /// The members whose names lead to an admin listener, which they do not get: `NAME:PORT in POOL`.
    pub fn led_to_own_doors(&self, resolutions: &Resolutions) -> Vec<String> {
        let doors = self.own_doors();
        let mut led = Vec::new();
        for (pool, members) in self.template.pools.iter().zip(&self.members) {
            for member in members.iter() {
                if let Endpoint::Name { host, port } = &member.endpoint
                    && let Some(found) = resolutions.get(host)
                    && found.iter().any(|ip| is_own_door(&doors, pool, member, (*ip, *port)))
                {
                    led.push(format!("{host}:{port} in pool {}", pool.name));
                }
            }
        }
        led
    }

    /// Whether requests or probes of a member as written would go to an admin listener.
    pub(crate) fn is_own_door(&self, pool: usize, member: &ConfiguredMember) -> bool {
        let (pool, doors) = (&self.template.pools[pool], self.own_doors());
        match &member.endpoint {
            Endpoint::Literal(address) => is_literal_door(&doors, pool, member, address),
            Endpoint::Name { .. } => doors.have_endpoint(&member.endpoint),
        }
    }

    /// The admin listeners.
    pub fn own_doors(&self) -> OwnDoors {
        self.template.admin.doors()
    }

    /// Counts for a one-line report.
    pub fn summary(&self) -> Summary {
        self.summary
    }
}

impl Summary {
    pub(crate) fn of(
        settings: &Settings,
        (pools, members): (&[Arc<Pool>], &[Vec<ConfiguredMember>]),
    ) -> Self {
        Self {
            virtual_servers: settings.virtual_servers.len()
                + settings.packets.as_ref().map_or(0, |packets| packets.servers.len()),
            disabled: settings.disabled.len(),
            pools: pools.iter().filter(|pool| *pool.name != *NOBODY).count(),
            members: members.iter().map(Vec::len).sum(),
        }
    }
}

/// The fingerprint of the addresses of members of a pool, in any order: theirs depends on earlier changes.
fn addresses<'m>(pool: &Pool, members: impl Iterator<Item = &'m Member>) -> u64 {
    let one = |member: &Member| {
        let mut hasher = DefaultHasher::new();
        (&pool.name, &member.address).hash(&mut hasher);
        hasher.finish()
    };
    members.map(one).fold(0, u64::wrapping_add)
}

/// Whether requests or probes of a member with this address would go to an admin listener.
fn is_own_door(
    doors: &OwnDoors,
    pool: &Pool,
    member: &ConfiguredMember,
    (ip, port): (IpAddr, u16),
) -> bool {
    let monitors = member.monitors.as_deref().unwrap_or(&pool.monitors);
    let ports = monitors.iter().filter_map(|monitor| monitor.port);
    std::iter::once(port).chain(ports).any(|port| doors.have(SocketAddr::new(ip, port)))
}

/// As [`is_own_door`], for an address as written.
fn is_literal_door(
    doors: &OwnDoors,
    pool: &Pool,
    member: &ConfiguredMember,
    address: &Address,
) -> bool {
    match address {
        Address::Unix(path) => doors.have_socket(path),
        Address::Socket(at) | Address::Udp(at) => {
            is_own_door(doors, pool, member, (at.ip(), at.port()))
        }
    }
}

fn have_names(members: &[ConfiguredMember]) -> bool {
    members.iter().any(|member| member.endpoint.name().is_some())
}

/// The members of a pool, and where they differ from those that it has; `None`: they are the same. Members that stay are
/// compared and copied, and no more.
fn changed(
    configured: &[ConfiguredMember],
    resolutions: &Resolutions,
    (index, pool): (usize, &Pool),
    doors: &OwnDoors,
) -> Option<(Vec<Member>, MemberChanges)> {
    let is_same =
        |one: usize, other: usize| is_as_configured(&pool.members[one], &configured[other]);
    let lengths = (pool.members.len(), configured.len());
    let changes = MemberChanges::of(index, lengths, is_same);
    // Each literal address is a member, unless it is an admin listener. What names have must be looked up.
    let is_plain = |member: &ConfiguredMember| match &member.endpoint {
        Endpoint::Literal(address) => !is_literal_door(doors, pool, member, address),
        Endpoint::Name { .. } => false,
    };
    if !configured.iter().all(is_plain) {
        let found = resolve(configured, resolutions, (pool, doors));
        let lengths = (pool.members.len(), found.len());
        let is_same = |one: usize, other: usize| pool.members[one] == found[other];
        let changes = MemberChanges::of(index, lengths, is_same)?;
        return Some((found, changes));
    }
    let changes = changes?;
    let found = changes.applied(&pool.members, |former, places, members| {
        let known: HashMap<&Address, &Arc<str>> =
            former.iter().map(|member| (&member.address, &member.label)).collect();
        for member in &configured[places] {
            let Endpoint::Literal(address) = &member.endpoint else { continue };
            let known = known.get(address).copied().cloned();
            let label = known.unwrap_or_else(|| address.label().into());
            members.push(new_member(member, (address.clone(), label), None));
        }
    });
    Some((found, changes))
}

/// Whether a member is what is configured, and has no name.
fn is_as_configured(member: &Member, configured: &ConfiguredMember) -> bool {
    let ConfiguredMember { endpoint, weight, connections_max, rate, priority, state, monitors } =
        configured;
    let is_at = matches!(endpoint, Endpoint::Literal(address) if *address == member.address);
    is_at
        && member.name.is_none()
        && (member.weight, member.connections_max) == (*weight, *connections_max)
        && (member.rate, member.priority, member.state) == (*rate, *priority, *state)
        && member.monitors == *monitors
}

/// The members of a pool. Texts of those that `pool` has already at the same place are shared with it.
fn resolve(
    configured: &[ConfiguredMember],
    resolutions: &Resolutions,
    (pool, doors): (&Pool, &OwnDoors),
) -> Vec<Member> {
    let mut taken: HashSet<Address> = match have_names(configured) {
        false => HashSet::new(),
        true => configured
            .iter()
            .filter_map(|member| match &member.endpoint {
                Endpoint::Literal(address) => Some(address.clone()),
                Endpoint::Name { .. } => None,
            })
            .collect(),
    };
    let mut members = Vec::with_capacity(configured.len());
    for member in configured {
        match &member.endpoint {
            Endpoint::Literal(address) if is_literal_door(doors, pool, member, address) => {}
            Endpoint::Literal(address) => {
                let known = pool.members.get(members.len());
                let known = known.filter(|known| known.address == *address);
                let label =
                    known.map_or_else(|| address.label().into(), |it| Arc::clone(&it.label));
                members.push(new_member(member, (address.clone(), label), None));
            }
            Endpoint::Name { host, port } => {
                let name: Arc<str> = host.as_str().into();
                let found: BTreeSet<IpAddr> = resolutions
                    .get(host)
                    .into_iter()
                    .flatten()
                    .map(IpAddr::to_canonical)
                    .filter(|found| pool.source.reaches(*found))
                    .filter(|found| !is_own_door(doors, pool, member, (*found, *port)))
                    .collect();
                for ip in found {
                    let address = Address::Socket(SocketAddr::new(ip, *port));
                    if taken.insert(address.clone()) {
                        let label = address.label().into();
                        members.push(new_member(member, (address, label), Some(name.clone())));
                    }
                }
            }
        }
    }
    members
}

fn new_member(
    configured: &ConfiguredMember,
    (address, label): (Address, Arc<str>),
    name: Option<Arc<str>>,
) -> Member {
    Member {
        label,
        address,
        name,
        weight: configured.weight,
        connections_max: configured.connections_max,
        rate: configured.rate,
        priority: configured.priority,
        state: configured.state,
        monitors: configured.monitors.clone(),
    }
}

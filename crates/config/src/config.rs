//! The validated configuration, before names are resolved.

use std::collections::{BTreeMap, BTreeSet, HashSet};
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
use crate::snapshot::{Address, Member, Monitor, NOBODY, Pool, Snapshot};

/// The resolved addresses of host names. A name without an entry has no address.
pub type Resolutions = BTreeMap<String, Vec<IpAddr>>;

/// A valid configuration in which members may still be host names.
#[derive(Debug, Clone)]
pub struct Config {
    /// The snapshot, with all pools empty.
    pub(crate) template: Snapshot,
    /// The members of each pool in the template, in the file's order.
    pub(crate) members: Vec<Vec<ConfiguredMember>>,
    /// The names and hashes of the configuration's parts.
    pub(crate) parts: Parts,
    /// What it uses of the host.
    pub(crate) host_uses: HostUses,
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
    /// The host names to resolve: in lower case, sorted, without duplicates.
    pub fn host_names(&self) -> impl Iterator<Item = &str> {
        let names: BTreeSet<&str> = self
            .members
            .iter()
            .flatten()
            .filter_map(|member| match &member.endpoint {
                Endpoint::Name { host, .. } => Some(host.as_str()),
                Endpoint::Literal(_) => None,
            })
            .collect();
        names.into_iter()
    }

    /// The snapshot with the current addresses of names.
    ///
    /// Each resolved address becomes a member, sorted, at the place of its name. An address appears only once in a
    /// pool: an address in the file has precedence over a resolved one, and the first of two names over the second. A
    /// pool with `source` addresses gets only members of their address families, because it cannot reach others.
    pub fn snapshot(&self, resolutions: &Resolutions) -> Snapshot {
        let mut snapshot = self.template.clone();
        let doors = self.own_doors();
        for (pool, members) in snapshot.pools.iter_mut().zip(&self.members) {
            let found = resolve(members, resolutions, (pool, &doors));
            Arc::make_mut(pool).members = found;
        }
        let pools = self.template.pools.iter().zip(&self.members);
        let empty = pools.filter(|(_, members)| members.is_empty());
        snapshot.resolved.pools_to_be_filled =
            empty.map(|(pool, _)| Arc::clone(&pool.name)).collect();
        snapshot.resolved.content = self.content(&snapshot);
        snapshot
    }

    /// The fingerprint of this configuration with the members of a snapshot.
    fn content(&self, snapshot: &Snapshot) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.parts.hash(&mut hasher);
        for pool in &snapshot.pools {
            pool.members.len().hash(&mut hasher);
            pool.members.iter().for_each(|member| member.address.hash(&mut hasher));
        }
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
            for member in members {
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

    /// The admin listeners.
    pub fn own_doors(&self) -> OwnDoors {
        self.template.admin.doors()
    }

    /// Counts for a one-line report.
    pub fn summary(&self) -> Summary {
        Summary {
            virtual_servers: self.template.virtual_servers.len()
                + self.template.packets.as_ref().map_or(0, |packets| packets.servers.len()),
            disabled: self.template.disabled.len(),
            pools: self.template.pools.iter().filter(|pool| *pool.name != *NOBODY).count(),
            members: self.members.iter().map(Vec::len).sum(),
        }
    }
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

fn resolve(
    configured: &[ConfiguredMember],
    resolutions: &Resolutions,
    (pool, doors): (&Pool, &OwnDoors),
) -> Vec<Member> {
    let mut taken: HashSet<Address> = configured
        .iter()
        .filter_map(|member| match &member.endpoint {
            Endpoint::Literal(address) => Some(address.clone()),
            Endpoint::Name { .. } => None,
        })
        .collect();
    let mut members = Vec::with_capacity(configured.len());
    for member in configured {
        match &member.endpoint {
            Endpoint::Literal(address) if is_literal_door(doors, pool, member, address) => {}
            Endpoint::Literal(address) => members.push(new_member(member, address.clone(), None)),
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
                        members.push(new_member(member, address, Some(name.clone())));
                    }
                }
            }
        }
    }
    members
}

fn new_member(configured: &ConfiguredMember, address: Address, name: Option<Arc<str>>) -> Member {
    Member {
        label: address.label().into(),
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

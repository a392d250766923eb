//! Writes a plan into the maps: the whole plan beside the active one; then one write activates it.

use std::collections::HashSet;

use aya::Pod;
use aya::maps::lpm_trie::LpmTrie;
use aya::maps::{HashMap, MapData};
use weir_core::balance::{MaglevTable, NamedMember};

use crate::error::Error;
use crate::layout;
use crate::maps::{Maps, map_error, ring, trie_key};
use crate::plan::{Delivery, MemberName, Plan, Prefix, Protocol, Source, Ttl, VirtualServer};
use crate::roster::{Roster, server_identity};
use crate::{ApplyReport, check};

/// Writes a plan into the maps; `epoch` is the inactive one.
pub struct Writer<'a> {
    pub maps: &'a mut Maps,
    pub roster: &'a mut Roster,
    pub epoch: u32,
    pub cpus: u32,
}

/// The number of a protocol, 0 for any.
fn protocol_number(protocol: Protocol) -> u8 {
    match protocol {
        Protocol::Tcp => libc::IPPROTO_TCP as u8,
        Protocol::Udp => libc::IPPROTO_UDP as u8,
        Protocol::Any => 0,
        Protocol::Number(number) => number,
    }
}

impl Writer<'_> {
    /// Writes the whole plan and activates it.
    pub fn apply(&mut self, plan: &Plan) -> Result<ApplyReport, Error> {
        self.clear()?;
        let mut planned = HashSet::new();
        let mut numbers = HashSet::new();
        for server in &plan.virtual_servers {
            let number = self
                .roster
                .server(&server.name, server.is_v4())
                .ok_or_else(|| full("virtual servers"))?;
            planned.insert(number);
            self.write_server(server, number, &mut numbers)?;
        }
        self.write_policy(plan)?;
        for address in &plan.syn_cookies {
            let key = layout::cookie_key(*address, self.epoch);
            self.maps.cookies.insert(key, 1, 0).map_err(map_error("writing SYN cookies"))?;
        }
        let settings = settings(plan, self.cpus).encode();
        self.maps
            .settings
            .set(self.epoch, settings, 0)
            .map_err(map_error("writing the settings"))?;
        self.maps
            .active
            .set(0, self.epoch, 0)
            .map_err(map_error("putting the plan into effect"))?;
        self.leave(&planned, &numbers)
    }

    /// Removes entries of an older plan with the same epoch.
    fn clear(&mut self) -> Result<(), Error> {
        let epoch = self.epoch;
        clear_hash(&mut self.maps.listeners, |key| layout::listener_epoch(key) == epoch)?;
        clear_hash(&mut self.maps.cookies, |key| layout::cookie_epoch(key) == epoch)?;
        clear_hash(&mut self.maps.sources, |key| {
            layout::source_server(key) / layout::SERVERS == epoch
        })?;
        clear_trie(&mut self.maps.prefixes, |key| layout::prefix_epoch(key) == epoch)?;
        clear_trie(&mut self.maps.policy, |key| layout::policy_epoch(key) == epoch)?;
        for number in 0..layout::SERVERS {
            let index = self.index(number);
            let bytes =
                self.maps.servers.get(&index, 0).map_err(map_error("reading a virtual server"))?;
            if layout::Server::identity_of(&bytes) != 0 {
                let empty = layout::Server::default().encode();
                self.maps
                    .servers
                    .set(index, empty, 0)
                    .map_err(map_error("removing a virtual server"))?;
            }
        }
        Ok(())
    }

    /// The index of a virtual server's entry in `servers`.
    fn index(&self, number: u32) -> u32 {
        self.epoch * layout::SERVERS + number
    }

    fn write_server(
        &mut self,
        server: &VirtualServer,
        number: u32,
        numbers: &mut HashSet<u32>,
    ) -> Result<(), Error> {
        let index = self.index(number);
        let mut route = 0;
        if server.delivery == Delivery::Route {
            route = self.roster.plan(server, number, None).ok_or_else(|| full("members"))?;
            self.write_member(route)?;
            numbers.insert(route);
        }
        for member in &server.members {
            let member =
                self.roster.plan(server, number, Some(member)).ok_or_else(|| full("members"))?;
            self.write_member(member)?;
            numbers.insert(member);
        }
        let has_ring = write_ring(self.maps, self.roster, server, index)?;
        let sources: &[_] = match &server.source {
            Source::Client => &[],
            Source::Addresses(addresses) => addresses,
        };
        for (place, source) in (0..).zip(sources) {
            let key = layout::source_key(index, place);
            self.maps
                .sources
                .insert(key, layout::source_value(source), 0)
                .map_err(map_error("writing a source address"))?;
        }
        self.write_clients(server, number)?;
        let entry = server_entry(server, route, sources.len() as u32, has_ring);
        self.maps
            .servers
            .set(index, entry.encode(), 0)
            .map_err(map_error("writing a virtual server"))?;
        self.write_destinations(server, index)
    }

    fn write_destinations(&mut self, server: &VirtualServer, index: u32) -> Result<(), Error> {
        let protocol = protocol_number(server.protocol);
        for destination in &server.destinations {
            let prefix = check::canonical(destination.prefix);
            let port = destination.port.unwrap_or(0);
            if prefix.is_host() {
                let key = layout::listener_key(prefix.address, port, protocol, self.epoch);
                self.maps
                    .listeners
                    .insert(key, index, 0)
                    .map_err(map_error("writing a destination"))?;
            } else {
                let length = layout::mapped_length(prefix);
                let key = layout::prefix_key(prefix.address, port, protocol, self.epoch);
                let value = layout::prefix_value(index, length);
                self.maps
                    .prefixes
                    .insert(&trie_key(32 + length, key), value, 0)
                    .map_err(map_error("writing a destination"))?;
            }
        }
        Ok(())
    }

    fn write_member(&mut self, number: u32) -> Result<(), Error> {
        let Some(known) = self.roster.get(number) else { return Ok(()) };
        self.maps
            .members
            .set(number, known.entry.encode(), 0)
            .map_err(map_error("writing a member"))
    }

    fn write_policy(&mut self, plan: &Plan) -> Result<(), Error> {
        for (prefixes, denied) in [(&plan.deny, 1), (&plan.allow, 0)] {
            for prefix in prefixes {
                let prefix: Prefix = check::canonical(*prefix);
                let key = trie_key(
                    32 + layout::mapped_length(prefix),
                    layout::policy_key(prefix.address, self.epoch, None),
                );
                self.maps
                    .policy
                    .insert(&key, denied, 0)
                    .map_err(map_error("writing allow and deny"))?;
            }
        }
        Ok(())
    }

    /// Writes the sources that may begin flows of a virtual server. The value says nothing: what is there is allowed.
    fn write_clients(&mut self, server: &VirtualServer, number: u32) -> Result<(), Error> {
        let of_family = |it: &&Prefix| it.address.is_ipv4() == server.is_v4();
        for prefix in server.clients.iter().flatten().filter(of_family) {
            let prefix = check::canonical(*prefix);
            let key = trie_key(
                32 + layout::mapped_length(prefix),
                layout::policy_key(prefix.address, self.epoch, Some(number)),
            );
            self.maps.policy.insert(&key, 0, 0).map_err(map_error("writing allowed clients"))?;
        }
        Ok(())
    }

    /// Members that the plan does not contain take no new flows; without their virtual server they take nothing.
    fn leave(
        &mut self,
        planned: &HashSet<u32>,
        numbers: &HashSet<u32>,
    ) -> Result<ApplyReport, Error> {
        let mut applied = ApplyReport::default();
        let mut servers = HashSet::new();
        let mut changed = Vec::new();
        for (number, known) in self.roster.all_mut() {
            if numbers.contains(&number) {
                continue;
            }
            let has_server = planned.contains(&known.entry.server);
            if known.is_planned || known.has_server != has_server {
                match &known.name {
                    Some(name) if !has_server && known.has_server => {
                        servers.insert(name.virtual_server.clone());
                    }
                    Some(name) if has_server && known.is_planned => {
                        applied.removed_members.push(name.clone())
                    }
                    _ => {}
                }
            }
            known.is_planned = false;
            known.has_server = has_server;
            known.entry.state = if has_server || known.is_route() {
                layout::MEMBER_DRAINING
            } else {
                layout::MEMBER_DOWN
            };
            changed.push(number);
        }
        for number in changed {
            self.write_member(number)?;
        }
        applied.removed_members.sort();
        applied.removed_virtual_servers = servers.into_iter().collect();
        applied.removed_virtual_servers.sort();
        Ok(applied)
    }
}

fn full(what: &str) -> Error {
    Error::Plan {
        what: format!(
            "too many {what}, with those that still have flows from plans before: try again when these have ended"
        ),
    }
}

fn settings(plan: &Plan, cpus: u32) -> layout::Settings {
    let mut settings = layout::Settings { cpus, ..layout::Settings::default() };
    let mut has = |flag, is_so: bool| settings.flags |= if is_so { flag } else { 0 };
    let any = |is_so: &dyn Fn(&VirtualServer) -> bool| plan.virtual_servers.iter().any(is_so);
    has(
        layout::HAS_PREFIXES,
        any(&|server| server.destinations.iter().any(|it| !it.prefix.is_host())),
    );
    has(
        layout::HAS_ANY_PORT,
        any(&|server| server.destinations.iter().any(|it| it.port.is_none())),
    );
    has(layout::HAS_ANY_PROTOCOL, any(&|server| server.protocol == Protocol::Any));
    has(layout::HAS_DIRECT, any(&|server| server.delivery == Delivery::DirectReturn));
    has(layout::HAS_POLICY, !plan.deny.is_empty());
    has(layout::HAS_COOKIES, !plan.syn_cookies.is_empty());
    has(layout::HAS_RATE, plan.new_flows_per_source.is_some());
    if let Some(rate) = plan.new_flows_per_source {
        settings.rate_interval_ns = (1_000_000_000 / u64::from(rate.per_second)).max(1);
        settings.rate_burst_ns = settings.rate_interval_ns.saturating_mul(u64::from(rate.burst));
    }
    settings
}

fn server_entry(
    server: &VirtualServer,
    route: u32,
    sources: u32,
    has_ring: bool,
) -> layout::Server {
    let mut flags = match server.delivery {
        Delivery::Translate => 0,
        Delivery::DirectReturn => layout::SERVER_DIRECT | layout::SERVER_NEXT_HOP,
        Delivery::NextHop => layout::SERVER_NEXT_HOP,
        Delivery::Route => layout::SERVER_ROUTE,
        Delivery::Pass => layout::SERVER_PASS,
    };
    let (ttl, ttl_flag) = match server.ttl {
        Ttl::Decrement => (0, 0),
        Ttl::Keep => (0, layout::SERVER_TTL_KEEP),
        Ttl::Set(ttl) => (ttl, layout::SERVER_TTL_SET),
    };
    flags |= ttl_flag;
    for (flag, is_so) in [
        (layout::SERVER_LOOSE, server.loose_initiation),
        (layout::SERVER_TOS_SET, server.tos.is_some()),
        (layout::SERVER_RING, has_ring),
        (layout::SERVER_CLIENTS, server.clients.is_some()),
    ] {
        flags |= if is_so { flag } else { 0 };
    }
    layout::Server {
        identity: server_identity(&server.name, server.is_v4()),
        persistence_ns: server
            .persistence
            .map_or(0, |it| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX / 2)),
        flags,
        route,
        sources,
        mss_max: server.mss_max.unwrap_or(0),
        ttl,
        tos: server.tos.unwrap_or(0),
    }
}

/// Writes a virtual server's ring, with the members that take new flows by their state in the roster. Returns whether there
/// is a ring.
pub fn write_ring(
    maps: &mut Maps,
    roster: &Roster,
    server: &VirtualServer,
    index: u32,
) -> Result<bool, Error> {
    let mut numbers = Vec::new();
    let mut names = Vec::new();
    for member in server.members.iter().filter(|member| member.weight > 0) {
        let name = MemberName {
            virtual_server: server.name.clone(),
            address: member.address,
            port: member.port,
        };
        let Some(number) = roster.number(&name) else { continue };
        if roster.get(number).is_some_and(|known| known.entry.state == layout::MEMBER_UP) {
            numbers.push(number);
            names.push((format!("{} {}", member.address, member.port.unwrap_or(0)), member.weight));
        }
    }
    if numbers.is_empty() {
        return Ok(false);
    }
    let named: Vec<NamedMember<'_>> =
        names.iter().map(|(name, weight)| NamedMember { name, weight: *weight }).collect();
    let table = MaglevTable::smallest(&named);
    let slots: Vec<u32> = table.slots().iter().map(|place| numbers[*place as usize]).collect();
    let inner = ring(&slots)?;
    maps.rings.set(index, &inner, 0).map_err(map_error("putting a ring into effect"))?;
    Ok(true)
}

fn clear_hash<K: Pod, V: Pod>(
    map: &mut HashMap<MapData, K, V>,
    is_old: impl Fn(&K) -> bool,
) -> Result<(), Error> {
    let mut old = Vec::new();
    for key in map.keys() {
        let key = key.map_err(map_error("reading the plan before"))?;
        if is_old(&key) {
            old.push(key);
        }
    }
    for key in old {
        map.remove(&key).map_err(map_error("removing the plan before"))?;
    }
    Ok(())
}

fn clear_trie<const N: usize, V: Pod>(
    map: &mut LpmTrie<MapData, [u8; N], V>,
    is_old: impl Fn(&[u8; N]) -> bool,
) -> Result<(), Error> {
    let mut old = Vec::new();
    for key in map.keys() {
        let key = key.map_err(map_error("reading the plan before"))?;
        if is_old(&key.data()) {
            old.push(key);
        }
    }
    for key in old {
        map.remove(&key).map_err(map_error("removing the plan before"))?;
    }
    Ok(())
}

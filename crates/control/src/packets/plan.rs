//! The plan of the packet path, from the active table: pools, their members' health and administrative states.

use std::collections::HashSet;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use weir_config::snapshot::packet::{
    Delivery, PACKET_DESTINATIONS_MAX, PACKET_SERVERS_MAX, PacketDestination, PacketProtocol,
    PacketServer, PacketSource, Prefix, Ttl,
};
use weir_config::snapshot::{Address, Pool, Snapshot};
use weir_config::{Config, Diagnostic, Resolutions, Severity};
use weir_core::admin_state::AdminState;
use weir_core::monitor::Health;
use weir_core::priority::{MemberPriority, lowest_in_use};
use weir_exchange::shared::live::{LiveMember, LiveTable, PoolMembers};
use weir_packet::plan::{self, Member, MemberName, MemberState, Plan, SourceAddress};

use crate::member_state::{administrative_state, is_in_service};

// All configurations that `weir check` accepts fit into the tables.
const _: () = assert!(PACKET_SERVERS_MAX == plan::VIRTUAL_SERVERS_MAX);
const _: () = assert!(PACKET_DESTINATIONS_MAX == plan::DESTINATIONS_MAX);

/// Facts about this host for a plan.
pub(super) trait Host {
    /// The source address for packets to `to`, from its route; `None`: there is no route.
    fn address_toward(&self, to: IpAddr) -> Option<IpAddr>;
    /// The lowest and the highest port of a range that the system does not use for its own connections.
    fn free_ports(&self) -> (u16, u16);
    /// The host's own addresses.
    fn own_addresses(&self) -> Vec<IpAddr>;
}

/// The plan for a table. While weir drains, no member gets new flows.
pub(super) fn plan(table: &LiveTable, host: &impl Host, drains: bool) -> Plan {
    let Some(packets) = &table.snapshot.packets else { return Plan::default() };
    let prefixes = |list: &[Prefix]| list.iter().map(prefix).collect();
    let of_both_families = packets.servers.iter().flat_map(|it| {
        [true, false].into_iter().filter_map(move |is_v4| server(table, it, is_v4, host, drains))
    });
    let mut virtual_servers: Vec<plan::VirtualServer> = of_both_families.collect();
    virtual_servers.extend(this_host(&virtual_servers, host));
    Plan {
        virtual_servers,
        deny: prefixes(&packets.path.deny),
        allow: prefixes(&packets.path.allow),
        new_flows_per_source: packets
            .path
            .rate
            .map(|rate| plan::Rate { per_second: rate.per_second, burst: rate.burst }),
        syn_cookies: packets.path.syn_cookies.clone(),
    }
}

/// A host with a route to every address, and without an address of its own.
struct AnyHost;

impl Host for AnyHost {
    fn address_toward(&self, to: IpAddr) -> Option<IpAddr> {
        Some(to)
    }

    fn free_ports(&self) -> (u16, u16) {
        (1, u16::MAX)
    }

    fn own_addresses(&self) -> Vec<IpAddr> {
        Vec::new()
    }
}

/// The first error of the configuration in this file that makes packet forwarding impossible on any host.
pub fn check(config: &Config, file: &Path) -> Option<Diagnostic> {
    let snapshot = config.snapshot(&Resolutions::default());
    snapshot.packets.as_ref()?;
    let table = LiveTable::build(Arc::new(snapshot), None, 1, &weir_dataplane::outside());
    let error = weir_packet::check(&plan(&table, &AnyHost, false)).err()?;
    let message = format!("the packet path refuses it: {error}");
    Some(Diagnostic::of_file(Severity::Error, message, &file.display().to_string()))
}

/// The name of the virtual server of [`this_host`]. Names in files never look like this.
pub(super) const THIS_HOST: &str = "(this host)";

/// The virtual server that passes packets for this host to the host itself, although other virtual servers have networks as
/// destinations that contain its addresses: the longest prefix wins. These packets need no flow. So neither a full table,
/// nor a rate limit, nor disabled forwarding drops them.
fn this_host(servers: &[plan::VirtualServer], host: &impl Host) -> Option<plan::VirtualServer> {
    let all =
        || servers.iter().flat_map(|server| server.destinations.iter().map(move |it| (server, it)));
    let networks: Vec<plan::Prefix> =
        all().map(|(_, it)| it.prefix).filter(|prefix| !prefix.is_host()).collect();
    if networks.is_empty() {
        return None;
    }
    let is_taken = |destination: &plan::Destination| {
        all().any(|(server, it)| it == destination && server.protocol == plan::Protocol::Any)
    };
    let own = host.own_addresses().into_iter();
    let destinations: Vec<plan::Destination> = own
        .filter(|own| networks.iter().any(|network| contains(network, *own)))
        .map(|own| plan::Destination { prefix: plan::Prefix::host(own), port: None })
        .filter(|own| !is_taken(own))
        .collect();
    if destinations.is_empty() {
        return None;
    }
    let server = plan::VirtualServer::new(THIS_HOST, plan::Protocol::Any, destinations);
    Some(plan::VirtualServer { delivery: plan::Delivery::Pass, ..server })
}

fn contains(network: &plan::Prefix, address: IpAddr) -> bool {
    let (a, b, bits) = match (network.address, address) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits().into(), b.to_bits().into(), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits(), b.to_bits(), 128),
        _ => return false,
    };
    let differing: u128 = a ^ b;
    differing.checked_shr(bits - u32::from(network.length)).unwrap_or(0) == 0
}

fn prefix(prefix: &Prefix) -> plan::Prefix {
    plan::Prefix { address: prefix.address, length: prefix.length }
}

/// The part of a virtual server for one address family; `None`: it has no destination of this family.
fn server(
    table: &LiveTable,
    server: &PacketServer,
    is_v4: bool,
    host: &impl Host,
    drains: bool,
) -> Option<plan::VirtualServer> {
    let destination =
        |it: &PacketDestination| plan::Destination { prefix: prefix(&it.prefix), port: it.port };
    let destinations: Vec<plan::Destination> = server
        .destinations
        .iter()
        .filter(|it| it.prefix.address.is_ipv4() == is_v4)
        .map(destination)
        .collect();
    if destinations.is_empty() {
        return None;
    }
    let mut members =
        server.pool.map_or_else(Vec::new, |pool| members(table, pool, server.keeps_port));
    members.retain(|member| member.address.is_ipv4() == is_v4);
    if drains {
        for member in members.iter_mut().filter(|member| member.state == MemberState::Up) {
            member.state = MemberState::Draining;
        }
    }
    let source = source(server, is_v4, &mut members, host);
    let milliseconds = Duration::from_millis;
    Some(plan::VirtualServer {
        name: server.name.to_string(),
        destinations,
        protocol: match server.protocol {
            PacketProtocol::Tcp => plan::Protocol::Tcp,
            PacketProtocol::Udp => plan::Protocol::Udp,
            PacketProtocol::Any => plan::Protocol::Any,
            PacketProtocol::Number(number) => plan::Protocol::Number(number),
        },
        delivery: match server.delivery {
            Delivery::Translate => plan::Delivery::Translate,
            Delivery::DirectReturn => plan::Delivery::DirectReturn,
            Delivery::NextHop => plan::Delivery::NextHop,
            // The kernel continues to forward these packets, so flows that begin during the drain do not end with weir.
            Delivery::Route if drains => plan::Delivery::Pass,
            Delivery::Route => plan::Delivery::Route,
        },
        source,
        members,
        clients: server.clients.as_deref().map(|list| list.iter().map(prefix).collect()),
        persistence: server.persistence_ms.map(milliseconds),
        timeouts: plan::Timeouts {
            idle: milliseconds(server.idle_timeout_ms),
            handshake: milliseconds(server.handshake_timeout_ms),
            closing: milliseconds(server.closing_timeout_ms),
        },
        reset_on_timeout: server.resets_on_timeout,
        reset_on_member_down: server.resets_on_member_down,
        loose_initiation: server.loose_initiation,
        mss_max: server.mss_max,
        ttl: match server.ttl {
            Ttl::Decrement => plan::Ttl::Decrement,
            Ttl::Keep => plan::Ttl::Keep,
            Ttl::Set(number) => plan::Ttl::Set(number),
        },
        tos: server.tos,
    })
}

/// The source address that members see. With `auto`, a member without a route gets no flows, because it would see the
/// client's address.
fn source(
    server: &PacketServer,
    is_v4: bool,
    members: &mut Vec<Member>,
    host: &impl Host,
) -> plan::Source {
    let (addresses, ports) = match &server.source {
        PacketSource::Client => return plan::Source::Client,
        PacketSource::Addresses { addresses, ports } => (addresses.clone(), *ports),
        PacketSource::Auto => {
            let mut addresses = Vec::new();
            members.retain_mut(|member| {
                let Some(own) = host.address_toward(member.address) else { return false };
                if !addresses.contains(&own) {
                    addresses.push(own);
                }
                // If there are more source addresses than a plan permits, the member may use any of them.
                let number = addresses.iter().position(|address| *address == own);
                member.source = number.filter(|it| *it < plan::SOURCE_ADDRESSES_MAX).map(|_| own);
                true
            });
            (addresses, None)
        }
    };
    let (port_first, port_last) = ports.unwrap_or_else(|| host.free_ports());
    let addresses: Vec<SourceAddress> = addresses
        .into_iter()
        .filter(|address| address.is_ipv4() == is_v4)
        .take(plan::SOURCE_ADDRESSES_MAX)
        .map(|address| SourceAddress { address, port_first, port_last })
        .collect();
    // The list is empty only with `auto`, if no member has a route. Then `members` is empty too, and no member sees the
    // client's address. A configured list has addresses of each family of the virtual server.
    if addresses.is_empty() { plan::Source::Client } else { plan::Source::Addresses(addresses) }
}

/// Whether packets may go to members of one of these pools, by their indexes: also as a fallback.
pub(super) fn reaches(snapshot: &Snapshot, pools: &[usize]) -> bool {
    let servers = snapshot.packets.iter().flat_map(|packets| &packets.servers);
    servers.filter_map(|server| server.pool).any(|pool| {
        let next = |pool: &usize| snapshot.pools[*pool].instead.fallback;
        let all = std::iter::successors(Some(pool), next).take(snapshot.pools.len());
        all.into_iter().any(|pool| pools.contains(&pool))
    })
}

/// The members of a pool. If none of them is in service, also the members of its fallback.
fn members(table: &LiveTable, pool: usize, keeps_port: bool) -> Vec<Member> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut next = Some(pool);
    // There are at most as many steps as pools, so that a cycle of fallbacks ends. `weir check` refuses cycles.
    for _ in 0..table.pools.len() {
        let Some(index) = next else { break };
        let (pool, live) = (&table.snapshot.pools[index], &table.pools[index]);
        let members = members_of(pool, live, keeps_port);
        let has_one = members.iter().any(|member| member.state == MemberState::Up);
        found.extend(members.into_iter().filter(|it| seen.insert((it.address, it.port))));
        next = pool.instead.fallback.filter(|_| !has_one);
    }
    found
}

fn members_of(pool: &Pool, live: &PoolMembers, keeps_port: bool) -> Vec<Member> {
    let both = || pool.members.iter().zip(&live.members);
    let standings: Vec<MemberPriority> = both()
        .map(|(member, live)| MemberPriority {
            priority: member.priority,
            active: is_in_service(member, live),
        })
        .collect();
    let lowest = lowest_in_use(&standings, usize::from(pool.active_members_min));
    let member = |(member, live): (&weir_config::snapshot::Member, &std::sync::Arc<LiveMember>)| {
        let Address::Socket(socket) = member.address else { return None };
        let state = match state(member, live) {
            // Members of a lower priority are on standby.
            MemberState::Up if lowest.is_none_or(|lowest| member.priority < lowest) => {
                MemberState::Draining
            }
            state => state,
        };
        let port = Some(socket.port()).filter(|port| *port != 0 && !keeps_port);
        Some(Member { state, weight: member.weight, ..Member::new(socket.ip(), port) })
    };
    let mut seen = HashSet::new();
    both().filter_map(member).filter(|it| seen.insert((it.address, it.port))).collect()
}

/// The state of a member according to monitors, traffic and the operator.
fn state(member: &weir_config::snapshot::Member, live: &LiveMember) -> MemberState {
    match (live.health(), administrative_state(member, live)) {
        (Health::Down, _) => MemberState::Down,
        (Health::Up, AdminState::Enabled) if is_in_service(member, live) => MemberState::Up,
        // A member with unknown state keeps its flows.
        _ => MemberState::Draining,
    }
}

/// The changes that lead to another plan.
#[derive(Debug, PartialEq)]
pub(super) enum Difference {
    /// The plans are equal.
    None,
    /// Only states of members differ.
    States(Vec<(MemberName, MemberState)>),
    /// The whole plan must be applied.
    Whole,
}

pub(super) fn difference(before: &Plan, after: &Plan) -> Difference {
    if before == after {
        return Difference::None;
    }
    let mut alike = after.clone();
    let mut states = Vec::new();
    for (server, former) in alike.virtual_servers.iter_mut().zip(&before.virtual_servers) {
        for (member, former) in server.members.iter_mut().zip(&former.members) {
            if member.state != former.state {
                let virtual_server = server.name.clone();
                let name =
                    MemberName { virtual_server, address: member.address, port: member.port };
                states.push((name, member.state));
                member.state = former.state;
            }
        }
    }
    if alike == *before { Difference::States(states) } else { Difference::Whole }
}

#[cfg(test)]
mod tests;

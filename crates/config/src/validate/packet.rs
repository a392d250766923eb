//! `packet_path`, and virtual servers of `type: fast_l4`.

mod effects;
mod fallback;
mod path;
mod remarks;
pub(super) mod servers;

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;

use super::listening::PORTS_MAX;
use super::policies::Policies;
use super::server::Servers;
use super::{allowed_clients, datagrams, relay};
use crate::address::SourceAddress;
use crate::decode::{Context, Spanned};
use crate::destination::{ListenOn, NetworkPorts};
use crate::document::Span;
use crate::endpoint::Endpoint;
use crate::quote::clip;
use crate::raw;
use crate::raw::packet::{FastL4Profile, TtlOr, TtlWord};
use crate::snapshot::packet::{
    Delivery, PacketDestination, PacketProtocol, PacketServer, PacketSource, Prefix, Ttl,
};
use crate::snapshot::{Address, AddressOf, ListenPoint, PersistenceKind};

/// Maximum number of source addresses of a virtual server.
const SOURCE_ADDRESSES_MAX: usize = 64;

/// Minimum number of ports in a source range: each core of a host uses a part of them.
const SOURCE_PORTS_MIN: u32 = 1_024;

impl Servers<'_> {
    /// A virtual server of `type: fast_l4`; `None`: it is invalid.
    pub(super) fn packet_server(
        &mut self,
        name: &str,
        raw: &raw::VirtualServer,
        policies: &mut Policies<'_, '_>,
        context: &mut Context,
    ) -> Option<PacketServer> {
        if !self.fits(raw, policies, context) {
            return None;
        }
        if !allowed_clients::are_sound(raw, &[], context) {
            return None;
        }
        let protocol = protocol(raw.protocol.value);
        let destinations = self.destinations(name, raw, protocol, context);
        let profile = self.packets.profile(raw, context);
        let pool = match &raw.pool {
            Some(pool) => self.pool(pool, context).map(Some),
            // The error for both missing keys was reported.
            None => raw.forward.as_ref().map(|_| None),
        };
        let persistence = policies.persistence(name, raw, context);
        let (profile, pool, destinations) = (profile?, pool?, destinations?);
        let delivery = delivery(raw, &profile, context)?;
        let source = source(&profile, delivery, &destinations, context)?;
        if let Some(pool) = pool {
            self.pool_fits(name, pool, raw, &destinations, context);
        }
        let persistence = persistence?;
        let persistence_ms = match persistence {
            None => None,
            Some(index) => Some(persistence_ms(index, raw, policies, context)?),
        };
        let keeps_port = !profile.translate_port.value;
        let mut server = PacketServer {
            name: name.into(),
            destinations: destinations.iter().map(|(destination, _)| *destination).collect(),
            protocol,
            pool,
            delivery,
            keeps_port,
            source,
            clients: allowed_clients::prefixes(raw),
            persistence_ms,
            idle_timeout_ms: profile.idle_timeout.0,
            handshake_timeout_ms: profile.handshake_timeout.0,
            closing_timeout_ms: profile.closing_timeout.0,
            resets_on_timeout: profile.reset_on_timeout.value,
            resets_on_member_down: profile.reset_on_service_down.value,
            loose_initiation: profile.loose_initiation.value,
            mss_max: profile.mss_max.as_ref().map(|mss| mss.value.0),
            ttl: match profile.ttl.value {
                TtlOr::Word(TtlWord::Decrement) => Ttl::Decrement,
                TtlOr::Word(TtlWord::Keep) => Ttl::Keep,
                TtlOr::Set(number) => Ttl::Set(number.0),
            },
            tos: profile.tos.as_ref().map(|tos| tos.value.0),
            remarks: effects::missing(raw, &profile, protocol, context),
            fallback: crate::snapshot::packet::Fallback::None("".into()),
        };
        if let Some(pool) = pool {
            server.remarks.extend(remarks::of_pool(&self.pools[pool]));
            server.remarks.extend(remarks::of_ports(&server, &self.pools[pool]));
        }
        let guards = policies.allowed_clients(name, raw, context)?;
        server.fallback = self.fallback(&server, &profile, (raw, persistence, guards), context);
        Some(server)
    }

    /// The destinations, with their places in the file.
    fn destinations(
        &mut self,
        name: &str,
        raw: &raw::VirtualServer,
        protocol: PacketProtocol,
        context: &mut Context,
    ) -> Option<Vec<(PacketDestination, Span)>> {
        let (listen, listen_span) = raw.listens_on()?;
        let owner = format!("virtual server `{}`", clip(name));
        let mut found = Vec::new();
        for item in listen {
            found.extend(expanded(&item.value, item.span, context)?);
            if found.len() > PORTS_MAX {
                let message = format!("`listen` has more than {PORTS_MAX} ports");
                context.error_help(listen_span, message, "`*` stands for all ports");
                return None;
            }
        }
        let needs_any = matches!(protocol, PacketProtocol::Any | PacketProtocol::Number(_));
        for (destination, span) in &found {
            if needs_any && destination.port.is_some() {
                let message =
                    format!("protocol {protocol} has no ports that all of its packets have");
                context.error_help(*span, message, "write `*` in place of the port");
                return None;
            }
            let is_free = self.packets.claim(&owner, *destination, protocol, *span, context);
            if let (true, Some(address)) = (is_free, listener(destination, protocol)) {
                self.listeners.claim(&owner, &address.into(), *span, context);
            }
        }
        Some(found)
    }

    /// Reports settings of a pool that packets do not support.
    fn pool_fits(
        &mut self,
        name: &str,
        pool: usize,
        server: &raw::VirtualServer,
        destinations: &[(PacketDestination, Span)],
        context: &mut Context,
    ) {
        let is_v4 = |destination: &PacketDestination| destination.prefix.address.is_ipv4();
        let mut all_fit = true;
        for pool in self.reached(std::iter::once(pool), &[]) {
            self.note_type(pool, server.kind.value);
            let (item, model) = (&self.pools[pool], self.models[pool].as_ref());
            relay::refuse_balance_of_requests(item, model, server, context);
            datagrams::refuse_balance(item, model, server, context);
            let Some(raw) = &item.value else { continue };
            let pool_name = clip(&item.name);
            let foreign = [
                ("tls", raw.tls.as_ref().map(|tls| tls.span)),
                ("proxy_protocol", raw.proxy_protocol.given.then_some(raw.proxy_protocol.span)),
            ];
            for (key, span) in foreign {
                if let Some(span) = span {
                    let message = format!(
                        "`{key}` of the pool `{pool_name}` is about connections, and virtual servers of type fast_l4 \
                         forward packets"
                    );
                    context.error_help(
                        span,
                        message,
                        "remove it, or use `type: tcp` and another pool",
                    );
                }
            }
            for member in raw.members.iter().flat_map(|members| members.iter()) {
                let Some(address) = &member.value.0.address else { continue };
                let fits = match &address.value {
                    Endpoint::Literal(Address::Unix(_) | Address::Udp(_)) => false,
                    Endpoint::Literal(Address::Socket(socket)) => {
                        destinations.iter().any(|(to, _)| is_v4(to) == socket.is_ipv4())
                    }
                    Endpoint::Name { .. } => true,
                };
                if !fits {
                    all_fit = false;
                    let message = format!(
                        "packets of a virtual server of type fast_l4 cannot get to `{}` of the pool `{pool_name}`",
                        address.value
                    );
                    let help = "use members of the address family that the virtual server has";
                    context.error_help(address.span, message, help);
                }
            }
        }
        if all_fit {
            self.every_family_has_a_member(pool, destinations, context);
        }
        let sockets: Vec<(ListenPoint, Span)> = destinations
            .iter()
            .filter_map(|(destination, span)| Some((socket(destination)?.into(), *span)))
            .collect();
        self.refuse_loop((name, true), &sockets, pool, context);
    }
}

impl Servers<'_> {
    /// Reports a destination without a member of the same address family in the pool. A host name may have such an address.
    fn every_family_has_a_member(
        &self,
        pool: usize,
        destinations: &[(PacketDestination, Span)],
        context: &mut Context,
    ) {
        let item = &self.pools[pool];
        let Some(members) = item.value.as_ref().and_then(|raw| raw.members.as_ref()) else {
            return;
        };
        let addresses = members.iter().filter_map(|member| member.value.0.address.as_ref());
        let families: Vec<Option<bool>> = addresses
            .map(|address| match &address.value {
                Endpoint::Literal(address) => address.socket().map(|socket| socket.is_ipv4()),
                Endpoint::Name { .. } => None,
            })
            .collect();
        if families.is_empty() {
            return;
        }
        let has_none = |is_v4: bool| families.iter().all(|it| *it == Some(!is_v4));
        let lonely = |(to, _): &&(PacketDestination, Span)| has_none(to.prefix.address.is_ipv4());
        if let Some((destination, span)) = destinations.iter().find(lonely) {
            let message = format!(
                "packets to `{destination}` find no member of its address family in the pool `{}`",
                clip(&item.name)
            );
            context.error_help(*span, message, "add one, or remove the destination");
        }
    }
}

fn protocol(raw: raw::packet::PacketProtocol) -> PacketProtocol {
    match raw {
        raw::packet::PacketProtocol::Tcp => PacketProtocol::Tcp,
        raw::packet::PacketProtocol::Udp => PacketProtocol::Udp,
        raw::packet::PacketProtocol::Any => PacketProtocol::Any,
        raw::packet::PacketProtocol::Number(number) => PacketProtocol::Number(number),
    }
}

/// The socket address of a destination, if a socket can have it.
pub(super) fn socket(destination: &PacketDestination) -> Option<Address> {
    let port = destination.port.filter(|_| destination.prefix.is_host())?;
    Some(Address::Socket((destination.prefix.address, port).into()))
}

/// The address of a socket that can replace the packet path.
pub(super) fn listener(
    destination: &PacketDestination,
    protocol: PacketProtocol,
) -> Option<Address> {
    let address = socket(destination)?;
    match protocol {
        PacketProtocol::Tcp => Some(address),
        PacketProtocol::Udp => address.socket().map(Address::Udp),
        PacketProtocol::Any | PacketProtocol::Number(_) => None,
    }
}

/// All destinations of an item of `listen`.
fn expanded(
    item: &ListenOn,
    span: Span,
    context: &mut Context,
) -> Option<Vec<(PacketDestination, Span)>> {
    let of = |prefix: Prefix, port: Option<u16>| (PacketDestination { prefix, port }, span);
    match item {
        ListenOn::Network(NetworkPorts { network, ports }) => {
            let (address, length) = network.prefix();
            let prefix = Prefix { address, length };
            Some(match ports {
                None => vec![of(prefix, None)],
                // One more than the maximum is enough for a report.
                Some(ports) => (ports.first..=ports.last)
                    .take(PORTS_MAX + 1)
                    .map(|port| of(prefix, Some(port)))
                    .collect(),
            })
        }
        ListenOn::Range(range) if range.len() > PORTS_MAX => {
            let message =
                format!("`listen` has {} ports, at most {PORTS_MAX} are possible", range.len());
            context.error_help(span, message, "`*` stands for all ports");
            None
        }
        ListenOn::Range(range) => {
            let mut found = Vec::new();
            for address in range.addresses() {
                let problem = match address {
                    Address::Unix(_) | Address::Udp(_) => Some((
                        "packets cannot be addressed to a unix socket",
                        "give an IP address".into(),
                    )),
                    Address::Socket(socket) if socket.ip().is_unspecified() => {
                        let every = if socket.is_ipv4() { "0.0.0.0/0" } else { "[::]/0" };
                        let help = format!("for all addresses write \"{every}:{}\"", socket.port());
                        Some(("packets cannot be addressed to this address", help))
                    }
                    Address::Socket(socket) if socket.port() == 0 => Some((
                        "packets cannot be addressed to port 0",
                        "for any port write `*`".into(),
                    )),
                    Address::Socket(socket) => {
                        found.push(of(Prefix::host(socket.ip()), Some(socket.port())));
                        None
                    }
                };
                if let Some((message, help)) = problem {
                    context.error_help(span, message, help);
                    return None;
                }
            }
            Some(found)
        }
    }
}

/// The treatment of destinations; conflicting keys are reported.
fn delivery(
    raw: &raw::VirtualServer,
    profile: &FastL4Profile,
    context: &mut Context,
) -> Option<Delivery> {
    if let (Some(forward), Some(pool)) = (&raw.forward, &raw.pool) {
        let place = context.place(pool.span, forward.span);
        let message = format!("`forward` and `pool` in {place} exclude each other");
        context.error_help(forward.span, message, "remove one of them");
        return None;
    }
    let translates = profile.translate_address.as_ref();
    let delivery = match (raw.pool.is_some(), profile.dsr.value, translates.map(|it| it.value)) {
        (true, true, Some(true)) | (false, _, Some(true)) => {
            let span = translates.map_or(profile.dsr.span, |it| it.span);
            let beside = if raw.pool.is_some() { "`dsr: true`" } else { "`forward: route`" };
            let message = format!(
                "`translate_address: true` cannot be used with {beside}, which keeps the destination"
            );
            context.error_help(span, message, "remove one of them");
            return None;
        }
        (true, true, _) => Delivery::DirectReturn,
        (true, false, Some(false)) => Delivery::NextHop,
        (true, false, _) => Delivery::Translate,
        (false, true, _) => {
            let message = "`dsr` needs a pool: without one packets go by the routing table";
            context.error_help(profile.dsr.span, message, "remove it, or give a pool");
            return None;
        }
        (false, false, _) => Delivery::Route,
    };
    if delivery != Delivery::Translate
        && profile.translate_port.given
        && profile.translate_port.value
    {
        let message = "`translate_port: true` has no effect where the destination's address stays";
        context.error_help(profile.translate_port.span, message, "remove it");
        return None;
    }
    Some(delivery)
}

fn source(
    profile: &FastL4Profile,
    delivery: Delivery,
    destinations: &[(PacketDestination, Span)],
    context: &mut Context,
) -> Option<PacketSource> {
    let span = profile.source.span;
    let (addresses, ports) = match &profile.source.value {
        raw::packet::PacketSource::Off => return Some(PacketSource::Client),
        _ if delivery == Delivery::DirectReturn => {
            let message = "`source` cannot be used with `dsr`: members answer the client, whose address they must see";
            context.error_help(span, message, "remove one of them");
            return None;
        }
        raw::packet::PacketSource::Auto if delivery == Delivery::Route => {
            let message =
                "`source: auto` needs a pool: the route to its members selects the address";
            context.error_help(span, message, "name the addresses, or give a pool");
            return None;
        }
        raw::packet::PacketSource::Auto => return Some(PacketSource::Auto),
        raw::packet::PacketSource::Addresses(addresses) => (addresses, None),
        raw::packet::PacketSource::Ports(map) => {
            if let Some(ports) = &map.ports {
                let count = u32::from(ports.value.last) - u32::from(ports.value.first) + 1;
                if count < SOURCE_PORTS_MIN {
                    let message = format!(
                        "`ports` has {count} ports: at least {SOURCE_PORTS_MIN} are needed, of which each core gets its share"
                    );
                    context.error_help(ports.span, message, "give a longer range");
                    return None;
                }
            }
            let ports = map.ports.as_ref().map(|ports| (ports.value.first, ports.value.last));
            (&map.addresses.as_ref()?.value.0, ports)
        }
    };
    if addresses.is_empty() {
        // The decoder has reported it.
        return None;
    }
    if addresses.len() > SOURCE_ADDRESSES_MAX {
        let message = format!(
            "`source` has {} addresses, at most {SOURCE_ADDRESSES_MAX} are possible",
            addresses.len()
        );
        context.error_help(span, message, "remove some");
        return None;
    }
    let mut seen: HashSet<IpAddr> = HashSet::new();
    for Spanned { value: SourceAddress(address), span, .. } in addresses {
        if !seen.insert(*address) {
            context.error_help(*span, format!("`{address}` is listed twice"), "keep one");
            return None;
        }
    }
    let of_family = |is_v4: bool| seen.iter().any(|address| address.is_ipv4() == is_v4);
    let without = destinations.iter().find(|(to, _)| !of_family(to.prefix.address.is_ipv4()));
    if let Some((destination, _)) = without {
        let message = format!("`source` has no address of the family of `{destination}`");
        context.error_help(span, message, "add one");
        return None;
    }
    let addresses = addresses.iter().map(|address| address.value.0).collect();
    Some(PacketSource::Addresses { addresses, ports })
}

/// The time that a source keeps its member.
fn persistence_ms(
    index: usize,
    raw: &raw::VirtualServer,
    policies: &Policies<'_, '_>,
    context: &mut Context,
) -> Option<u64> {
    let span = raw.persistence.as_ref().map(|persistence| persistence.span)?;
    let kind = &policies.persistence[index].as_ref()?.kind;
    let source = match kind {
        PersistenceKind::Address(remembered) if remembered.of == AddressOf::Client => remembered,
        _ => {
            let message = "persistence of packets needs the source address";
            context.error_help(span, message, "use `type: source_address`");
            return None;
        }
    };
    if (source.prefix.v4, source.prefix.v6) != (32, 128) {
        let message = "persistence of packets needs whole addresses";
        context.error_help(span, message, "set `prefix_v4: 32` and `prefix_v6: 128`");
        return None;
    }
    Some(source.table.timeout_ms)
}

/// The sentences, without duplicates.
pub(super) fn sentences(list: Vec<String>) -> Vec<Arc<str>> {
    list.into_iter().map(Into::into).collect()
}

//! Listening addresses and their owners.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use super::udp;
use crate::address::ListenRange;
use crate::decode::{Context, Spanned};
use crate::destination::ListenOn;
use crate::document::Span;
use crate::quote::clip;
use crate::raw;
use crate::scalar::SECOND;
use crate::snapshot::{Address, ListenPoint, ListenerOptions};

/// Maximum number of ports of a virtual server: each worker has a listener for each port.
pub(super) const PORTS_MAX: usize = 1024;

/// Addresses in use.
#[derive(Default)]
pub(super) struct Listeners {
    /// The owners; several if each has its own interface.
    owners: HashMap<Address, Vec<Owner>>,
    /// The first listener of each protocol, address family, port and interface.
    first_of_port: HashMap<(bool, bool, u16), Vec<ListenPoint>>,
}

/// The owner of a listener.
struct Owner {
    interface: Option<Arc<str>>,
    /// The name.
    name: String,
    /// The place in the file.
    place: Span,
}

/// Whether traffic for one interface may also arrive at the other.
fn meet(one: Option<&Arc<str>>, other: Option<&Arc<str>>) -> bool {
    one.is_none() || other.is_none() || one == other
}

impl Listeners {
    /// Claims all addresses of a virtual server.
    pub fn of_server(
        &mut self,
        name: &str,
        raw: &raw::VirtualServer,
        context: &mut Context,
    ) -> Vec<(ListenPoint, Span)> {
        let Some((listen, listen_span)) = raw.listens_on() else {
            return Vec::new();
        };
        let ranges: Vec<(&ListenRange, Span)> = ranges(listen, context);
        let Some(interfaces) = interfaces(raw, context) else { return Vec::new() };
        let ports: usize = ranges.iter().map(|(range, _)| range.len()).sum();
        let ports = ports * interfaces.len();
        if ports > PORTS_MAX {
            let message = format!("`listen` has {ports} ports, at most {PORTS_MAX} are possible");
            context.error_help(
                listen_span,
                message,
                "listen on fewer, or divide them among several virtual servers",
            );
            return Vec::new();
        }
        let owner = format!("virtual server `{}`", clip(name));
        let mut all = Vec::with_capacity(ports);
        let addresses = |(range, span): (&ListenRange, Span)| {
            (udp::of_type(raw, range.addresses(), span, context), span)
        };
        let addresses: Vec<(Vec<Address>, Span)> = ranges.into_iter().map(addresses).collect();
        for interface in interfaces {
            for (range, span) in &addresses {
                let point = |address: &Address| ListenPoint {
                    address: address.clone(),
                    interface: interface.clone(),
                };
                let points: Vec<ListenPoint> = range.iter().map(point).collect();
                // One report is enough for a range.
                let _ = points.iter().all(|point| self.claim(&owner, point, *span, context));
                all.extend(points.into_iter().map(|point| (point, *span)));
            }
        }
        all
    }

    /// Claims an address; false: it is in use, which is reported.
    pub fn claim(
        &mut self,
        owner: &str,
        point: &ListenPoint,
        span: Span,
        context: &mut Context,
    ) -> bool {
        let ListenPoint { address, interface } = point;
        if address.is_without_port() {
            context.warning_help(
                span,
                format!("port 0 of {owner}: the system picks another port at each start"),
                "give a port, unless this is a test",
            );
            return true;
        }
        if let Some(Owner { name, place, .. }) = self.owner(address, interface.as_ref()) {
            context.error_help(
                span,
                format!("`{address}` is used twice: in {} by {name}", context.place(*place, span)),
                "give each listener its own address or port",
            );
            return false;
        }
        if let Some((other, Owner { name, place, .. })) = self.overlapping(point) {
            context.error_help(
                span,
                format!(
                    "`{address}` and `{other}` of {name} in {} overlap: `{}` takes its port on \
                     every address",
                    context.place(*place, span),
                    if is_wildcard(address) { address } else { &other }
                ),
                "keep one of them, or give one another port",
            );
            return false;
        }
        let (name, interface) = (owner.to_owned(), interface.clone());
        let owners = self.owners.entry(address.clone()).or_default();
        owners.push(Owner { interface: interface.clone(), name, place: span });
        if let Some(socket) = address.socket() {
            let port = (is_udp(address), socket.is_ipv6(), socket.port());
            let first = self.first_of_port.entry(port).or_default();
            if first.iter().all(|known| known.interface != interface) {
                first.push(point.clone());
            }
        }
        true
    }

    /// Whether there is a listener at the address.
    pub fn has(&self, address: &Address) -> bool {
        self.owners.contains_key(address) || self.overlapping(&address.clone().into()).is_some()
    }

    /// The owner of the address for an interface, or for all interfaces.
    fn owner(&self, address: &Address, interface: Option<&Arc<str>>) -> Option<&Owner> {
        let mut owners = self.owners.get(address)?.iter();
        owners.find(|owner| meet(owner.interface.as_ref(), interface))
    }

    /// A listener that conflicts with `point` on the same port, because one of them is for all addresses. IPv4 and IPv6 do
    /// not conflict: listeners for IPv6 accept IPv6 only.
    fn overlapping(&self, point: &ListenPoint) -> Option<(Address, &Owner)> {
        let (address, interface) = (&point.address, point.interface.as_ref());
        let socket = address.socket()?;
        let other = if socket.ip().is_unspecified() {
            let port = (is_udp(address), socket.is_ipv6(), socket.port());
            let mut first = self.first_of_port.get(&port)?.iter();
            first.find(|known| meet(known.interface.as_ref(), interface))?.address.clone()
        } else {
            let every: IpAddr = match socket {
                SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            };
            let every = SocketAddr::new(every, socket.port());
            if is_udp(address) { Address::Udp(every) } else { Address::Socket(every) }
        };
        let owner = self.owner(&other, interface)?;
        Some((other, owner))
    }
}

/// The interfaces of a virtual server's listeners; `None` as an item: all. The outer `None`: invalid, which was reported.
fn interfaces(raw: &raw::VirtualServer, context: &mut Context) -> Option<Vec<Option<Arc<str>>>> {
    let Some(names) = &raw.interfaces else { return Some(vec![None]) };
    let mut found: Vec<Option<Arc<str>>> = Vec::with_capacity(names.len());
    for name in names.iter() {
        let text = name.value.0.as_str();
        if found.iter().flatten().any(|known| **known == *text) {
            context.error_help(name.span, format!("`{text}` is listed twice"), "keep one");
            return None;
        }
        found.push(Some(text.into()));
    }
    Some(found)
}

/// The addresses for sockets; others are reported.
fn ranges<'r>(
    listen: &'r [Spanned<ListenOn>],
    context: &mut Context,
) -> Vec<(&'r ListenRange, Span)> {
    let mut ranges = Vec::with_capacity(listen.len());
    for item in listen {
        match &item.value {
            ListenOn::Range(range) => ranges.push((range, item.span)),
            ListenOn::Network(_) => {
                let message =
                    "sockets listen on an address and its ports, not on a network or on any port";
                let help = "give an address with a port, or set `type: fast_l4`";
                context.error_help(item.span, message, help);
            }
        }
    }
    ranges
}

fn is_wildcard(address: &Address) -> bool {
    address.socket().is_some_and(|socket| socket.ip().is_unspecified())
}

fn is_udp(address: &Address) -> bool {
    matches!(address, Address::Udp(_))
}

/// The listener options of a virtual server with these addresses.
pub(super) fn settings(
    raw: &raw::VirtualServer,
    listen: &[(ListenPoint, Span)],
    context: &mut Context,
) -> ListenerOptions {
    let is_one = |(ListenPoint { address, .. }, _): &(ListenPoint, Span)| {
        address.socket().is_some() && !is_wildcard(address)
    };
    let is_unix = |(point, _): &(ListenPoint, Span)| matches!(point.address, Address::Unix(_));
    if let (Some(interfaces), true) = (&raw.interfaces, listen.iter().any(is_unix)) {
        context.error_help(
            interfaces.span,
            "`interfaces` has no effect on a unix socket",
            "remove it, or listen on IP addresses alone",
        );
    }
    if raw.free_bind.value && !listen.is_empty() && !listen.iter().any(is_one) {
        context.error_help(
            raw.free_bind.span,
            "`free_bind` has no effect: every listener is for all addresses, or a unix socket",
            "remove it, or listen on the address that this host will have",
        );
    }
    if let Some(defer) = raw.defer_accept.as_ref().filter(|_| !listen.is_empty())
        && listen.iter().all(is_unix)
    {
        context.error_help(
            defer.span,
            "`defer_accept` has no effect on a unix socket",
            "remove it, or listen on an IP address",
        );
    }
    ListenerOptions {
        free_bind: raw.free_bind.value,
        defer_accept_s: raw
            .defer_accept
            .as_ref()
            .map(|defer| u32::try_from(defer.value.0.div_ceil(SECOND)).unwrap_or(u32::MAX)),
    }
}

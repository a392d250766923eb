//! Who listens where, and how.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::udp;
use crate::address::ListenRange;
use crate::decode::{Context, Spanned};
use crate::destination::ListenOn;
use crate::quote::clip;
use crate::raw;
use crate::scalar::SECOND;
use crate::snapshot::{Address, Listening};
use crate::tree::Span;

/// Most ports of a virtual server: each worker has a listener for each of them.
pub(super) const PORTS_MAX: usize = 1024;

/// Addresses that are taken.
#[derive(Default)]
pub(super) struct Listeners {
    /// By whom, and where the file says so.
    owners: HashMap<Address, (String, Span)>,
    /// The first listener of each protocol, address family and port.
    first_of_port: HashMap<(bool, bool, u16), Address>,
}

impl Listeners {
    /// Claims all addresses of a virtual server.
    pub fn of_server(
        &mut self,
        name: &str,
        raw: &raw::VirtualServer,
        context: &mut Context,
    ) -> Vec<(Address, Span)> {
        let Some(listen) = &raw.listen else {
            return Vec::new();
        };
        let ranges: Vec<(&ListenRange, Span)> = ranges(&listen.value.0, context);
        let ports: usize = ranges.iter().map(|(range, _)| range.len()).sum();
        if ports > PORTS_MAX {
            let message = format!("`listen` has {ports} ports, at most {PORTS_MAX} are possible");
            context.error_help(
                listen.span,
                message,
                "listen on fewer, or divide them among several virtual servers",
            );
            return Vec::new();
        }
        let owner = format!("virtual server `{}`", clip(name));
        let mut all = Vec::with_capacity(ports);
        for (range, span) in ranges {
            let addresses = udp::of_type(raw, range.addresses(), span, context);
            // One report is enough for a range.
            let _ = addresses.iter().all(|address| self.claim(&owner, address, span, context));
            all.extend(addresses.into_iter().map(|address| (address, span)));
        }
        all
    }

    /// Claims an address; false: it is taken, which is reported.
    pub fn claim(
        &mut self,
        owner: &str,
        address: &Address,
        span: Span,
        context: &mut Context,
    ) -> bool {
        if address.is_without_port() {
            context.warning_help(
                span,
                format!("port 0 of {owner}: the system picks another port at each start"),
                "give a port, unless this is a test",
            );
            return true;
        }
        if let Some((first, place)) = self.owners.get(address) {
            context.error_help(
                span,
                format!("`{address}` is used twice: in line {} by {first}", place.line),
                "give each listener an address or port of its own",
            );
            return false;
        }
        if let Some((other, (first, place))) = self.overlapping(address) {
            context.error_help(
                span,
                format!(
                    "`{address}` and `{other}` of {first} in line {} overlap: `{}` takes its port on \
                     every address",
                    place.line,
                    if is_wildcard(address) { address } else { other }
                ),
                "keep one of them, or give one another port",
            );
            return false;
        }
        self.owners.insert(address.clone(), (owner.to_owned(), span));
        if let Some(socket) = address.socket() {
            self.first_of_port
                .entry((is_udp(address), socket.is_ipv6(), socket.port()))
                .or_insert_with(|| address.clone());
        }
        true
    }

    /// Whether something listens there.
    pub fn has(&self, address: &Address) -> bool {
        self.owners.contains_key(address) || self.overlapping(address).is_some()
    }

    /// The listener that takes the same port together with `address`, because one of them is for every
    /// address. IPv4 and IPv6 do not meet: listeners of the latter are for it alone.
    fn overlapping(&self, address: &Address) -> Option<(&Address, &(String, Span))> {
        let socket = address.socket()?;
        let other = if socket.ip().is_unspecified() {
            self.first_of_port.get(&(is_udp(address), socket.is_ipv6(), socket.port()))?.clone()
        } else {
            let every: IpAddr = match socket {
                SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            };
            let every = SocketAddr::new(every, socket.port());
            if is_udp(address) { Address::Udp(every) } else { Address::Socket(every) }
        };
        self.owners.get_key_value(&other)
    }
}

/// What sockets can listen on; anything else is reported.
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

/// How a virtual server listens on these addresses.
pub(super) fn settings(
    raw: &raw::VirtualServer,
    listen: &[(Address, Span)],
    context: &mut Context,
) -> Listening {
    let of_tcp = |(address, _): &(Address, Span)| matches!(address, Address::Socket(_));
    let is_one =
        |(address, _): &(Address, Span)| address.socket().is_some() && !is_wildcard(address);
    if raw.free_bind.value && !listen.is_empty() && !listen.iter().any(is_one) {
        context.error_help(
            raw.free_bind.span,
            "`free_bind` has no effect: every listener is for all addresses, or a unix socket",
            "remove it, or listen on the address that this host will have",
        );
    }
    if let Some(defer) = raw.defer_accept.as_ref().filter(|_| !listen.is_empty())
        && !listen.iter().any(of_tcp)
    {
        let is_of_datagrams = listen.iter().any(|(address, _)| is_udp(address));
        let (message, help) = match is_of_datagrams {
            true => ("`defer_accept` is about connections, and these are datagrams", "remove it"),
            false => (
                "`defer_accept` has no effect on a unix socket",
                "remove it, or listen on an IP address",
            ),
        };
        context.error_help(defer.span, message, help);
    }
    Listening {
        free_bind: raw.free_bind.value,
        defer_accept_s: raw
            .defer_accept
            .as_ref()
            .map(|defer| u32::try_from(defer.value.0.div_ceil(SECOND)).unwrap_or(u32::MAX)),
    }
}

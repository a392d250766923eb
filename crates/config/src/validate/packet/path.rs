//! `packet_path`: how packets reach virtual servers.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use super::Servers;
use crate::decode::{Context, Spanned, or_absent};
use crate::document::Span;
use crate::raw;
use crate::raw::packet::{OnExit, PacketPath, Rung};
use crate::scalar::WordOr;
use crate::shapes::Network;
use crate::snapshot::Address;
use crate::snapshot::packet::{
    FlowRate, PACKET_DESTINATIONS_MAX, PACKET_SERVERS_MAX, PacketServer, Packets, PathSettings,
    Prefix, Rungs,
};

/// Maximum number of prefixes in `allow` and `deny`.
const PREFIXES_MAX: usize = 1 << 20;

/// Maximum number of listeners with SYN cookies.
const SYN_COOKIES_MAX: usize = 1_024;

impl Servers<'_> {
    /// The packet path; `None`: invalid; `Some(None)`: not configured.
    pub(in crate::validate) fn packets(
        &mut self,
        file: &raw::File,
        context: &mut Context,
    ) -> Option<Option<Packets>> {
        let raw = or_absent(file.packet_path.as_ref());
        let servers = std::mem::take(&mut self.packets.servers);
        let servers: Option<Vec<_>> =
            servers.into_iter().map(|server| server.map(Arc::new)).collect();
        let path = self.path_settings(&raw, context);
        let (servers, path) = (servers?, path?);
        if !within_tables(&servers, file, context) {
            return None;
        }
        if servers.is_empty() && !path.guards() {
            if let Some(section) = &file.packet_path {
                let message = "`packet_path` has no effect: no virtual server is of type fast_l4";
                context.warning_help(section.span, message, "remove it");
            }
            return Some(None);
        }
        Some(Some(Packets { path, servers, fallen: Vec::new() }))
    }

    fn path_settings(&self, raw: &PacketPath, context: &mut Context) -> Option<PathSettings> {
        let (deny, allow) = prefixes(raw, context);
        if deny.len() + allow.len() > PREFIXES_MAX {
            let span = raw.deny.as_ref().or(raw.allow.as_ref())?.span;
            let message = format!("`deny` and `allow` have more than {PREFIXES_MAX} prefixes");
            context.error_help(span, message, "remove some");
            return None;
        }
        if let (Some(allow), None) = (&raw.allow, &raw.deny) {
            let message = "`allow` has no effect without `deny`: it lists exceptions to that";
            context.warning_help(
                allow.span,
                message,
                "add `deny: [ 0.0.0.0/0, \"::/0\" ]`, or remove it",
            );
        }
        let per_second = raw.connections_per_second_per_source.as_ref().map(|rate| rate.value.0);
        let burst = raw.burst.as_ref().map(|burst| burst.value.0);
        if let (None, Some(burst)) = (per_second, &raw.burst) {
            let message = "`burst` has no effect without `connections_per_second_per_source`";
            context.warning_help(burst.span, message, "remove it, or give the rate");
        }
        let interfaces = match &raw.interfaces.value {
            WordOr::Word(_) => None,
            WordOr::Value(names) => Some(interfaces(names, context)?),
        };
        let rungs = rungs(&raw.rungs, context)?;
        let syn_cookies = self.syn_cookies(raw, context)?;
        if !rungs.xdp && !syn_cookies.is_empty() {
            let message = "`syn_cookies` needs the rung `xdp`";
            context.error_help(raw.rungs.span, message, "add `xdp`, or remove `syn_cookies`");
            return None;
        }
        Some(PathSettings {
            interfaces,
            rungs,
            name: raw.name.value.0.as_str().into(),
            flows_max: raw.flows_max.0,
            remembered_max: raw.remembered_max.0,
            deny: deny.into(),
            allow: allow.into(),
            rate: per_second
                .map(|per_second| FlowRate { per_second, burst: burst.unwrap_or(per_second) }),
            syn_cookies,
            is_kept_at_exit: raw.on_exit.value == OnExit::Keep,
        })
    }

    fn syn_cookies(&self, raw: &PacketPath, context: &mut Context) -> Option<Vec<SocketAddr>> {
        let listed = raw.syn_cookies.as_ref().map_or(&[][..], |listed| &listed.value.0);
        let mut found = Vec::with_capacity(listed.len());
        for item in listed {
            match &item.value.0 {
                Address::Socket(socket) if !socket.ip().is_unspecified() && socket.port() != 0 => {
                    if let Some(owner) = self.packets.owner(*socket) {
                        let message = format!(
                            "`{socket}` belongs to {owner} of type fast_l4, and `syn_cookies` are for types http and tcp"
                        );
                        let help = "remove it, or use `type: tcp`";
                        context.error_help(item.span, message, help);
                        return None;
                    }
                    if !self.listeners.has(&item.value.0) {
                        let message = format!("no virtual server listens on `{socket}`");
                        let help =
                            "name an address and port of a virtual server of type http or tcp";
                        context.warning_help(item.span, message, help);
                    }
                    found.push(*socket);
                }
                other => {
                    let message = format!("`{other}` is not one address and port");
                    let help = "name addresses and ports of virtual servers, one by one";
                    context.error_help(item.span, message, help);
                    return None;
                }
            }
        }
        if found.len() > SYN_COOKIES_MAX {
            let span = raw.syn_cookies.as_ref()?.span;
            let message = format!("`syn_cookies` has more than {SYN_COOKIES_MAX} listeners");
            context.error_help(span, message, "remove some");
            return None;
        }
        Some(found)
    }
}

/// Reports virtual servers or destinations beyond the capacity of the kernel's tables.
fn within_tables(servers: &[Arc<PacketServer>], file: &raw::File, context: &mut Context) -> bool {
    let destinations: usize = servers.iter().map(|server| server.destinations.len()).sum();
    // A virtual server with both address families takes two places.
    let families = |server: &PacketServer| {
        let has = |is_v4| server.destinations.iter().any(|it| it.prefix.address.is_ipv4() == is_v4);
        usize::from(has(true)) + usize::from(has(false))
    };
    let places: usize = servers.iter().map(|server| families(server)).sum();
    // Without virtual servers the tables are large enough.
    let Some(virtual_servers) = &file.virtual_servers else { return true };
    for (count, max, what) in [
        (
            places,
            PACKET_SERVERS_MAX,
            "virtual servers of type fast_l4 (one of IPv4 and IPv6 counts twice)",
        ),
        (destinations, PACKET_DESTINATIONS_MAX, "addresses and ports of type fast_l4"),
    ] {
        if count > max {
            let message = format!("there are {count} {what}: at most {max} are possible");
            context.error_help(
                virtual_servers.span,
                message,
                "`*` stands for all ports, a network for its addresses",
            );
            return false;
        }
    }
    true
}

/// The prefixes of `deny` and `allow`. One that is listed twice gets a warning.
fn prefixes(raw: &PacketPath, context: &mut Context) -> (Vec<Prefix>, Vec<Prefix>) {
    let mut places: HashMap<Prefix, (&str, Span)> = HashMap::new();
    let mut of = |key: &'static str, listed: Option<&Spanned<Vec<Spanned<Network>>>>| {
        let listed = listed.iter().flat_map(|listed| listed.iter());
        listed
            .map(|network| {
                let (address, length) = network.value.0.prefix();
                let prefix = Prefix { address, length };
                let (first, place) = *places.entry(prefix).or_insert((key, network.span));
                if place != network.span {
                    let place = context.place(place, network.span);
                    let text = format!("`{}` is listed twice: first in {place}", network.value.0);
                    let (message, help) = if first == key {
                        (text, "keep one")
                    } else {
                        (format!("{text} under `{first}`; `{key}` decides"), "remove one of them")
                    };
                    context.warning_help(network.span, message, help);
                }
                prefix
            })
            .collect()
    };
    (of("deny", raw.deny.as_ref()), of("allow", raw.allow.as_ref()))
}

fn interfaces(
    names: &[Spanned<raw::packet::InterfaceName>],
    context: &mut Context,
) -> Option<Vec<Arc<str>>> {
    let mut found: Vec<Arc<str>> = Vec::with_capacity(names.len());
    for name in names {
        let text = name.value.0.as_str();
        if found.iter().any(|known| **known == *text) {
            context.error_help(name.span, format!("`{text}` is listed twice"), "keep one");
            return None;
        }
        found.push(text.into());
    }
    Some(found)
}

fn rungs(raw: &Spanned<raw::packet::Rungs>, context: &mut Context) -> Option<Rungs> {
    let has = |rung: Rung| raw.value.0.contains(&rung);
    let rungs = Rungs { xdp: has(Rung::Xdp), tcx: has(Rung::Tcx), proxy: has(Rung::Proxy) };
    let order = |rung: &Rung| match rung {
        Rung::Xdp => 0,
        Rung::Tcx => 1,
        Rung::Proxy => 2,
    };
    if !raw.value.0.is_sorted_by_key(order)
        || raw.value.0.len()
            != usize::from(rungs.xdp) + usize::from(rungs.tcx) + usize::from(rungs.proxy)
    {
        let message = "`rungs` are tried in the order `xdp`, `tcx`, `proxy`, each once";
        context.error_help(raw.span, message, "write those that may be tried in this order");
        return None;
    }
    Some(rungs)
}

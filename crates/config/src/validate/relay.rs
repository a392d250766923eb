//! Virtual servers of `type: tcp`: their own keys; keys for requests are refused.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;

use weir_core::expression::Reads;
use weir_tls::names::Names;

use super::names::{by_name, find};
use super::policies::Policies;
use crate::decode::{Context, NamedItem, Section as _, Spanned, or_absent};
use crate::endpoint::Endpoint;
use crate::profile::ProfileOr;
use crate::quote::clip;
use crate::raw::tcp::{ServerNamePool, TcpProfile};
use crate::raw::{self, BalanceOr, VirtualServerType};
use crate::snapshot::{
    Address, Balance, Learned, ListenPoint, PersistenceKind, Pool, Relay, ResetOn, ServerNames,
};
use crate::tree::Span;

/// TCP profiles.
pub(super) struct TcpProfiles<'a> {
    profiles: &'a [NamedItem<TcpProfile>],
    by_name: BTreeMap<&'a str, usize>,
    pub used: HashSet<usize>,
}

impl<'a> TcpProfiles<'a> {
    pub fn new(profiles: &'a [NamedItem<TcpProfile>]) -> Self {
        Self { profiles, by_name: by_name(profiles), used: HashSet::new() }
    }

    /// The relay settings of a virtual server. `named`: its pools by server name.
    pub fn relay(
        &mut self,
        raw: &raw::VirtualServer,
        named: &[(&Spanned<ServerNamePool>, usize)],
        context: &mut Context,
    ) -> Option<Relay> {
        let absent = TcpProfile::absent();
        let profile = match &raw.tcp {
            None => &absent,
            Some(choice) => match &choice.value {
                ProfileOr::Inline(inline) => inline,
                ProfileOr::Name(name) => {
                    let name = Spanned { value: name.clone(), span: choice.span, given: true };
                    let index = find("tcp profile", &self.by_name, &name, context)?;
                    self.used.insert(index);
                    self.profiles[index].value.as_ref()?
                }
            },
        };
        let names = match &raw.by_server_name {
            None => None,
            Some(_) => {
                Some(ServerNames { pools: names(named, context)?, has_default: raw.pool.is_some() })
            }
        };
        Some(Relay {
            idle_timeout_ms: profile.idle_timeout.0,
            hello_timeout_ms: profile.hello_timeout.0,
            names,
            reads_name: false,
            reset_on: match profile.reset_on_service_down.value {
                true => ResetOn::OutOfService,
                false => ResetOn::Nothing,
            },
        })
    }
}

/// The table of names; a name that occurs twice is ambiguous and reported.
fn names(
    named: &[(&Spanned<ServerNamePool>, usize)],
    context: &mut Context,
) -> Option<Names<usize>> {
    let mut names = Names::new();
    let mut places: HashMap<&str, Span> = HashMap::new();
    let mut is_sound = true;
    for (item, pool) in named {
        for name in item.value.names.iter().flat_map(|names| names.iter()) {
            let text = name.value.0.as_str();
            if let Some(first) = places.insert(text, name.span) {
                let place = context.place(first, name.span);
                let message = format!("`{}` is listed twice: first in {place}", clip(text));
                context.error_help(name.span, message, "give each name one pool");
                is_sound = false;
            }
            names.entry(text, || *pool);
        }
    }
    is_sound.then_some(names)
}

fn given<T>(key: &Spanned<T>) -> Option<Span> {
    key.given.then_some(key.span)
}

fn there<T>(key: &Option<Spanned<T>>) -> Option<Span> {
    key.as_ref().map(|key| key.span)
}

/// Whether a virtual server has only keys of its type; the others are reported.
pub(super) fn keys_fit(raw: &raw::VirtualServer, context: &mut Context) -> bool {
    let of_datagrams = (vec![("udp", there(&raw.udp))], "remove it, or set `type: udp`");
    let mut foreign = match raw.kind.value {
        VirtualServerType::Http => {
            vec![(keys_of_connections(raw), "remove it, or set `type: tcp`"), of_datagrams]
        }
        VirtualServerType::Tcp => {
            let help = "remove it: connections are relayed, requests are not seen";
            vec![(keys_of_requests(raw), help), of_datagrams]
        }
        VirtualServerType::Udp => {
            let mut keys = keys_of_requests(raw);
            keys.extend(keys_of_connections(raw));
            keys.push(("policies", there(&raw.policies)));
            keys.push(("connection_policies", there(&raw.connection_policies)));
            keys.push(("tls", there(&raw.tls)));
            keys.push(("client_address", there(&raw.client_address)));
            vec![(keys, "remove it: datagrams are relayed as they are")]
        }
        VirtualServerType::FastL4 => {
            let help = "remove it: packets are forwarded, connections are not opened";
            let interfaces = vec![("interfaces", there(&raw.interfaces))];
            let of_path = "remove it: `packet_path.interfaces` says whose packets are looked at";
            vec![(keys_of_sockets(raw), help), of_datagrams, (interfaces, of_path)]
        }
    };
    let kind = raw.kind.value.word();
    let mut fits = true;
    if raw.kind.value != VirtualServerType::FastL4 {
        foreign.push((keys_of_packets(raw), "remove it, or set `type: fast_l4`"));
    }
    for (keys, help) in foreign {
        for (key, span) in keys {
            if let Some(span) = span {
                let message = format!("`{key}` does not apply to a virtual server of type {kind}");
                context.error_help(span, message, help);
                fits = false;
            }
        }
    }
    fits
}

/// The keys about packets, and their places.
fn keys_of_packets(raw: &raw::VirtualServer) -> Vec<(&'static str, Option<Span>)> {
    vec![
        ("forward", there(&raw.forward)),
        ("protocol", given(&raw.protocol)),
        ("fast_l4", there(&raw.fast_l4)),
    ]
}

/// The keys that need weir's own sockets, and their places.
fn keys_of_sockets(raw: &raw::VirtualServer) -> Vec<(&'static str, Option<Span>)> {
    let mut keys = keys_of_connections(raw);
    keys.extend([
        ("http", there(&raw.http)),
        ("compression", there(&raw.compression)),
        ("waf", there(&raw.waf)),
        ("hsts", there(&raw.hsts)),
        ("https_redirect", given(&raw.https_redirect)),
        ("policies", there(&raw.policies)),
        ("connection_policies", there(&raw.connection_policies)),
        ("request_id", there(&raw.request_id)),
        ("tracing", there(&raw.tracing)),
        ("authenticate", there(&raw.authenticate)),
        ("error_pages", there(&raw.error_pages)),
        ("server_timing", given(&raw.server_timing)),
        ("free_bind", given(&raw.free_bind)),
        ("defer_accept", there(&raw.defer_accept)),
        ("tls", there(&raw.tls)),
        ("limits", there(&raw.limits)),
        ("client_address", there(&raw.client_address)),
    ]);
    keys
}

impl VirtualServerType {
    /// The word in the file.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::FastL4 => "fast_l4",
        }
    }
}

/// The keys about whole connections, and their places.
fn keys_of_connections(raw: &raw::VirtualServer) -> Vec<(&'static str, Option<Span>)> {
    vec![("by_server_name", there(&raw.by_server_name)), ("tcp", there(&raw.tcp))]
}

/// The keys about requests, and their places.
fn keys_of_requests(raw: &raw::VirtualServer) -> Vec<(&'static str, Option<Span>)> {
    // This pattern makes a new key a compile error until it is handled here.
    let raw::VirtualServer {
        listen: _,
        state: _,
        interfaces: _,
        free_bind: _,
        defer_accept: _,
        kind: _,
        pool: _,
        by_server_name: _,
        forward: _,
        protocol: _,
        fast_l4: _,
        tcp: _,
        udp: _,
        http,
        compression,
        waf,
        tls: _,
        hsts,
        https_redirect,
        allowed_clients: _,
        limits,
        policies: _,
        connection_policies: _,
        persistence: _,
        client_address,
        request_id,
        tracing,
        authenticate,
        error_pages,
        server_timing,
    } = raw;
    let mut keys = vec![
        ("http", there(http)),
        ("compression", there(compression)),
        ("waf", there(waf)),
        ("hsts", there(hsts)),
        ("https_redirect", given(https_redirect)),
        ("request_id", there(request_id)),
        ("tracing", there(tracing)),
        ("authenticate", there(authenticate)),
        ("error_pages", there(error_pages)),
        ("server_timing", given(server_timing)),
    ];
    if let Some(address) = client_address {
        keys.extend([
            ("header", given(&address.header)),
            ("x_forwarded_for", given(&address.x_forwarded_for)),
            ("x_forwarded_proto", given(&address.x_forwarded_proto)),
            ("forwarded", given(&address.forwarded)),
        ]);
    }
    keys.extend(keys_of_limits(&or_absent(limits.as_ref())));
    keys
}

/// The limits on requests, and their places.
fn keys_of_limits(limits: &raw::limit::Limits) -> Vec<(&'static str, Option<Span>)> {
    let mut keys = vec![
        ("requests", there(&limits.requests)),
        ("requests_per_second", there(&limits.requests_per_second)),
        ("burst", there(&limits.burst)),
    ];
    for limit in limits.per_key.iter().flat_map(|limits| limits.iter()) {
        keys.extend([
            ("key", there(&limit.key)),
            ("requests", there(&limit.requests)),
            ("requests_per_second", there(&limit.requests_per_second)),
            ("burst", there(&limit.burst)),
            ("exceed", given(&limit.exceed)),
            ("delay_max", given(&limit.delay_max)),
        ]);
    }
    keys
}

/// Reports keys about requests in a pool that gets only relayed connections.
pub(super) fn refuse_keys_of_requests(
    item: &NamedItem<raw::Pool>,
    what: &str,
    context: &mut Context,
) {
    let Some(pool) = &item.value else { return };
    let keys = [
        ("reuse", "requests", there(&pool.reuse)),
        ("response_timeout", "responses", given(&pool.response_timeout)),
        ("http2", "requests", given(&pool.http2)),
        ("maintenance", "requests", there(&pool.maintenance)),
        ("lenient", "responses", there(&pool.lenient)),
    ];
    for (key, about, span) in keys {
        if let Some(span) = span {
            let message = format!(
                "`{key}` is about {about}, and the pool `{}` only gets {what}",
                clip(&item.name)
            );
            context.error_help(span, message, "remove it");
        }
    }
}

/// Reports members without a port in a pool for requests: a request has no port of its own.
pub(super) fn refuse_members_without_port(item: &NamedItem<raw::Pool>, context: &mut Context) {
    for (span, endpoint) in members_without_port(item) {
        let shown = match endpoint {
            Endpoint::Literal(Address::Socket(socket)) => {
                SocketAddr::new(socket.ip(), 8080).to_string()
            }
            endpoint => format!("{endpoint}:8080"),
        };
        let message = format!(
            "`{endpoint}` has no port: only members of pools that virtual servers of type tcp or udp alone use \
             keep the client's"
        );
        context.error_help(span, message, format!("write {shown}"));
    }
}

fn members_without_port(item: &NamedItem<raw::Pool>) -> impl Iterator<Item = (Span, &Endpoint)> {
    let members = item.value.iter().filter_map(|pool| pool.members.as_ref());
    members
        .flat_map(|members| members.iter())
        .filter_map(|member| member.value.0.address.as_ref())
        .filter(|address| address.value.is_without_port())
        .map(|address| (address.span, &address.value))
}

/// Reports settings that need the client's address or port: a client of a unix socket has neither.
pub(super) fn refuse_clients_without_address(
    listen: &[(ListenPoint, Span)],
    item: &NamedItem<raw::Pool>,
    model: Option<&Pool>,
    context: &mut Context,
) {
    let is_unix = |(point, _): &&(ListenPoint, Span)| matches!(point.address, Address::Unix(_));
    let Some((address, span)) = listen.iter().find(is_unix) else { return };
    let name = clip(&item.name);
    if let Some((_, member)) = members_without_port(item).next() {
        let message = format!(
            "clients of `{address}` have no port, and the member `{member}` of the pool `{name}` keeps the client's"
        );
        context.error_help(*span, message, "give the member a port, or listen on an IP address");
    }
    if model.is_some_and(|model| model.source.is_client()) {
        let message = format!(
            "clients of `{address}` have no address that the pool `{name}` could connect from (`source: client`)"
        );
        context.error_help(*span, message, "listen on an IP address, or remove `source`");
    }
}

/// Reports TLS to members for connections that are relayed encrypted: they would be encrypted twice.
pub(super) fn refuse_tls_in_tls(
    raw: &raw::VirtualServer,
    item: &NamedItem<raw::Pool>,
    context: &mut Context,
) {
    let tls = item.value.as_ref().and_then(|pool| pool.tls.as_ref());
    if let (Some(names), None, Some(tls)) = (&raw.by_server_name, &raw.tls, tls) {
        let message = format!(
            "`tls` of the pool `{}` would encrypt the TLS that `by_server_name` in {} passes through",
            clip(&item.name),
            context.place(names.span, tls.span)
        );
        let help = "remove it here, or add `tls` to the virtual server, which then decrypts";
        context.error_help(tls.span, message, help);
    }
}

/// The value that is unavailable for this virtual server's traffic.
fn unreadable(reads: Reads, server: &raw::VirtualServer) -> Option<&'static str> {
    let is_tcp = match server.kind.value {
        VirtualServerType::Http => return None,
        VirtualServerType::Tcp => true,
        VirtualServerType::Udp | VirtualServerType::FastL4 => false,
    };
    if reads.request {
        return Some("a value of the request");
    }
    // The server name can be read before the connection is passed on encrypted.
    if reads.handshake && !(is_tcp && server.tls.is_some()) || reads.server_name && !is_tcp {
        return Some("a value of TLS");
    }
    None
}

/// Reports load balancing by a value of a request where there are no requests.
pub(super) fn refuse_balance_of_requests(
    item: &NamedItem<raw::Pool>,
    model: Option<&Pool>,
    server: &raw::VirtualServer,
    context: &mut Context,
) {
    let Some(BalanceOr::Hash(balance)) = item.value.as_ref().map(|pool| &pool.balance.value) else {
        return;
    };
    let Some(Balance::Hash(template)) = model.map(|model| &model.balance) else { return };
    let Some(what) = unreadable(template.reads(), server) else { return };
    let help = match server.kind.value {
        VirtualServerType::Http => return,
        VirtualServerType::Tcp => "use `client.ip` or `tls.sni`, or another pool",
        VirtualServerType::FastL4 => "use another `balance` or pool",
        VirtualServerType::Udp => "use `client.ip` or a value of the datagram, or another pool",
    };
    if let Some(hash) = &balance.hash {
        let message = format!(
            "the pool `{}` is balanced by {what}, and the virtual server of type {} in {} has none",
            clip(&item.name),
            server.kind.value.word(),
            context.place(server.kind.span, hash.span)
        );
        context.error_help(hash.span, message, help);
    }
}

/// Refuses persistence by a value of a request where there are no requests. `span`: the place that selects the
/// persistence.
pub(super) fn refuse_persistence_of_requests(
    (persistence, span): (usize, Span),
    raw: &raw::VirtualServer,
    policies: &Policies<'_, '_>,
    context: &mut Context,
) {
    let mut next = Some(persistence);
    // At most as many steps as persistences, so that a cycle, which is reported elsewhere, ends.
    for _ in 0..policies.persistence.len() {
        let Some(found) = next.and_then(|index| policies.persistence[index].as_ref()) else {
            return;
        };
        let kind = match &found.kind {
            // Without datagrams, [`super::datagrams`] refuses connection IDs.
            PersistenceKind::Address(_) | PersistenceKind::ConnectionIds(_) => None,
            PersistenceKind::Learned(Learned { learn: Some(_), .. }) => {
                Some("a value of the response")
            }
            PersistenceKind::Hash(of) | PersistenceKind::Learned(Learned { of, .. }) => {
                unreadable(of.reads(), raw)
            }
            PersistenceKind::Insert(_) | PersistenceKind::Passive { .. } => Some("a cookie"),
            PersistenceKind::PathParameter { .. } => Some("a parameter of the path"),
        };
        if let Some(kind) = kind {
            let (of, help) = match raw.kind.value {
                VirtualServerType::Udp => (
                    "sessions",
                    "use `type: source_address`, `destination_address`, `quic`, or `hash` or `learned` of `client` or a value of the datagram",
                ),
                _ => (
                    "connections",
                    "use `type: source_address` or `destination_address`, or `hash` or `learned` of `client` or `tls`",
                ),
            };
            let server = raw.kind.value.word();
            let message =
                format!("{kind} cannot keep the {of} of a virtual server of type {server}");
            context.error_help(span, message, help);
            return;
        }
        next = found.fallback;
    }
}

//! Virtual servers of `type: tcp`: their own keys; what needs requests is refused.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;

use weir_core::expression::Reads;
use weir_tls::names::Names;

use super::names::{by_name, find};
use super::policies::Policies;
use crate::decode::{Context, NamedItem, Section as _, Spanned};
use crate::document::Span;
use crate::endpoint::Endpoint;
use crate::profile::ProfileOr;
use crate::quote::clip;
use crate::raw::tcp::{ServerNamePool, TcpProfile};
use crate::raw::{self, BalanceOr, VirtualServerType};
use crate::snapshot::{
    Address, Balance, LearnedPersistence, ListenPoint, PersistenceKind, Pool, Relay, ResetOn,
    ServerNames,
};
use crate::variants::Choice as _;

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
            PersistenceKind::Learned(LearnedPersistence { learn: Some(_), .. }) => {
                Some("a value of the response")
            }
            PersistenceKind::Hash(of) | PersistenceKind::Learned(LearnedPersistence { of, .. }) => {
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

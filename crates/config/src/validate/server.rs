//! Virtual servers and the admin listener.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use weir_core::expression::{AddressSet, Reads};
use weir_core::policy::{Action, Body, Policy};
use weir_http::h2::Allowance;

use super::compression::CompressionProfiles;
use super::external::{pools_beside, refuse_pool};
use super::listening::Listeners;
use super::names::{by_name, undefined};
use super::packet::servers::PacketServers;
use super::policies::Policies;
use super::relay::{self, TcpProfiles};
use super::server_keys::{refuse_keys_of_pool, server_keys_fit};
use super::tls::TlsProfiles;
use super::udp::{self, UdpProfiles};
use super::waf::{self, WafProfiles};
use super::{datagrams, files, hand_over, listening, path, secure_cookies, tracing};
use crate::config::ConfiguredMember;
use crate::decode::{Context, NamedItem, Section as _, Spanned, if_given, or_absent};
use crate::document::Span;
use crate::endpoint::Endpoint;
use crate::profile::ProfileOr;
use crate::quote::clip;
use crate::raw::{self, HttpProfile, VirtualServerState, VirtualServerType};
use crate::scalar::{Name, Size};
use crate::shapes::StatusMatch;
use crate::snapshot::{
    Address, Balance, ClientAddress, DisabledServer, ErrorPages, Forwarding, HalfClosed,
    Http2Budgets, HttpSettings, ListenPoint, NOBODY, Persistence, Pool, RequestIdSettings,
    RequestTrailers, Service, VirtualServer, ranges,
};
use crate::variants::Choice as _;

/// Indexes into a list of named items.
type UsedIndexes = HashSet<usize>;

/// Objects that at least one virtual server refers to.
pub(super) struct AllUsed {
    pub(super) pools: UsedIndexes,
    pub(super) http: UsedIndexes,
    pub(super) compression: UsedIndexes,
    pub(super) waf: UsedIndexes,
    pub(super) tls: UsedIndexes,
    pub(super) tcp: UsedIndexes,
    pub(super) udp: UsedIndexes,
    pub(super) fast_l4: UsedIndexes,
}

/// Objects that virtual servers refer to, and those used so far.
pub(super) struct Servers<'a> {
    pub(super) pools: &'a [NamedItem<raw::Pool>],
    /// The valid pools.
    pub(super) models: &'a [Option<Pool>],
    /// The members of each pool.
    pub(super) members: &'a [Vec<ConfiguredMember>],
    profiles: &'a [NamedItem<HttpProfile>],
    pool_by_name: BTreeMap<&'a str, usize>,
    profile_by_name: BTreeMap<&'a str, usize>,
    pools_used: UsedIndexes,
    profiles_used: UsedIndexes,
    compression: CompressionProfiles<'a>,
    waf: WafProfiles<'a>,
    pub(super) tls: TlsProfiles<'a>,
    tcp: TcpProfiles<'a>,
    udp: UdpProfiles<'a>,
    /// For each pool, the types of the virtual servers that use it.
    types_of_pools: BTreeMap<usize, Vec<VirtualServerType>>,
    pub(super) listeners: Listeners,
    pub(super) packets: PacketServers<'a>,
}

impl<'a> Servers<'a> {
    pub fn new(
        pools: &'a [NamedItem<raw::Pool>],
        models: &'a [Option<Pool>],
        members: &'a [Vec<ConfiguredMember>],
        (profiles, compression, waf): (
            &'a [NamedItem<HttpProfile>],
            CompressionProfiles<'a>,
            WafProfiles<'a>,
        ),
        tls: TlsProfiles<'a>,
        (tcp, udp, packets): (TcpProfiles<'a>, UdpProfiles<'a>, PacketServers<'a>),
    ) -> Self {
        Self {
            pools,
            models,
            members,
            profiles,
            pool_by_name: by_name(pools),
            profile_by_name: by_name(profiles),
            pools_used: UsedIndexes::new(),
            profiles_used: UsedIndexes::new(),
            compression,
            waf,
            tls,
            tcp,
            udp,
            types_of_pools: BTreeMap::new(),
            listeners: Listeners::default(),
            packets,
        }
    }

    /// Objects that at least one virtual server refers to.
    pub fn used(self) -> AllUsed {
        AllUsed {
            pools: self.pools_used,
            http: self.profiles_used,
            compression: self.compression.used,
            waf: self.waf.used,
            tls: self.tls.used,
            tcp: self.tcp.used,
            udp: self.udp.used,
            fast_l4: self.packets.used,
        }
    }

    /// All virtual servers, `None` for an invalid one; and the disabled ones.
    pub fn all(
        &mut self,
        file: &raw::File,
        policies: &mut Policies<'_, '_>,
        context: &mut Context,
    ) -> (Vec<Option<VirtualServer>>, Vec<DisabledServer>) {
        let Some(servers) = &file.virtual_servers else {
            return Default::default();
        };
        if servers.0.is_empty() {
            context.error_help(
                servers.span,
                "`virtual_servers` is empty: weir would serve nothing",
                "add a virtual server with `listen` and `pool`",
            );
        }
        let mut all = Vec::with_capacity(servers.0.len());
        let mut disabled = Vec::new();
        for item in &servers.0 {
            let Some(value) = &item.value else {
                all.push(None);
                continue;
            };
            if value.state.value == VirtualServerState::Disabled {
                match self.disabled(&item.name, value, policies, context) {
                    Some(found) => disabled.push(found),
                    None => all.push(None),
                }
            } else if value.kind.value == raw::VirtualServerType::FastL4 {
                let server = self.packet_server(&item.name, value, policies, context);
                self.packets.servers.push(server);
            } else {
                all.push(self.one(&item.name, value, policies, context));
            }
        }
        if all.is_empty() && self.packets.servers.is_empty() && !disabled.is_empty() {
            let message = "every virtual server is disabled: nothing is served";
            context.warning_help(servers.span, message, "remove `state: disabled` from one");
        }
        let noted = &policies.compiler.notes.hand_overs;
        hand_over::check(&servers.0, &all, noted, &|of, point| self.leads_to(of, point), context);
        for (&pool, kinds) in &self.types_of_pools {
            refuse_keys_of_pool(&self.pools[pool], kinds, context);
            if kinds.contains(&VirtualServerType::Http) {
                relay::refuse_members_without_port(&self.pools[pool], context);
            }
        }
        (all, disabled)
    }

    /// Validates a disabled virtual server and discards the result.
    fn disabled(
        &mut self,
        name: &str,
        raw: &raw::VirtualServer,
        policies: &mut Policies<'_, '_>,
        context: &mut Context,
    ) -> Option<DisabledServer> {
        let before = (policies.compiler.limits.len(), policies.persistence.len());
        let (listen, addresses) = if raw.kind.value == VirtualServerType::FastL4 {
            let server = self.packet_server(name, raw, policies, context)?;
            let addresses = server.destinations.iter().filter_map(|it| it.address());
            let addresses = addresses.map(Address::Socket).collect();
            (server.destinations.iter().map(ToString::to_string).collect(), addresses)
        } else {
            let listen = self.one(name, raw, policies, context)?.listen;
            (ranges(&listen), listen.into_iter().map(|it| it.address).collect())
        };
        policies.compiler.limits.truncate(before.0);
        policies.persistence.truncate(before.1);
        Some(DisabledServer { name: name.into(), kind: raw.kind.value.word(), listen, addresses })
    }

    fn one(
        &mut self,
        name: &str,
        raw: &raw::VirtualServer,
        policies: &mut Policies<'_, '_>,
        context: &mut Context,
    ) -> Option<VirtualServer> {
        let listen = self.listeners.of_server(name, raw, context);
        let listening = listening::settings(raw, &listen, context);
        let is_relay = raw.kind.value != VirtualServerType::Http;
        if !self.fits(raw, policies, context) {
            return None;
        }
        let all_named = self.pools_by_name(raw, context);
        let named = all_named.as_deref().unwrap_or_default();
        let own = match &raw.pool {
            Some(pool) => self.pool(pool, context),
            None => named.first().map(|(_, pool)| *pool).or_else(|| self.nobody()),
        };
        let has_tls = raw.tls.is_some();
        let http = match &raw.http {
            None => Some(settings(&HttpProfile::absent(), has_tls)),
            Some(profile) => self.http(profile, has_tls, context),
        };
        let protocols = protocols(is_relay, http.as_ref());
        let tls = if_given(raw.tls.as_ref(), |choice| self.tls.of(choice, protocols, context));
        let compression =
            if_given(raw.compression.as_ref(), |choice| self.compression.of(choice, context));
        let waf = if_given(raw.waf.as_ref(), |choice| self.waf.of(choice, context));
        let limits = policies.compiler.limits(name, raw.limits.as_ref(), context);
        let path_form = http.as_ref().map(|http| http.target.path).unwrap_or_default();
        let followed = policies.of_server(name, raw, path_form, context);
        let first = own.into_iter().chain(named.iter().map(|(_, pool)| *pool));
        let following = followed.as_deref().unwrap_or_default();
        let reached = self.reached(first, following);
        for &pool in &reached {
            self.refuse_loop((name, is_relay), &listen, pool, context);
            self.note_pool(raw, &listen, (pool, following), context);
        }
        let persistence = policies.persistence(name, raw, context);
        refuse_persistence(persistence.flatten(), following, raw, policies, context);
        path::warn_of_persistence(persistence.flatten(), path_form, raw, policies, context);
        let connection_policies = policies.of_connections(name, raw, &listen, context);
        let reads = self.reads(raw, &reached, (persistence.flatten(), following), policies);
        let service = self.service(raw, named, reads, context);
        let client_address = client_address(raw, context);
        let error_pages = error_pages(raw, policies.compiler.directory, context);
        warn_of_rules(raw, following, context);
        secure_cookies::warn(raw, persistence.flatten(), waf.as_ref(), policies, context);
        Some(VirtualServer {
            name: name.into(),
            listen: listen.into_iter().map(|(point, _)| point).collect(),
            listening,
            pool: own.filter(|_| all_named.is_some())?,
            http: http?,
            service: service?,
            tls: tls?.map(Arc::new),
            compression: compression?,
            waf: waf?,
            limits: limits?,
            policies: followed?,
            connection_policies: connection_policies?,
            persistence: persistence?,
            client_address: Arc::new(client_address?),
            request_id: if_given(raw.request_id.as_ref(), |raw| request_id(raw, context))?,
            tracing: tracing::of_server(raw),
            error_pages: Arc::new(error_pages?),
            server_timing: raw.server_timing.value,
        })
    }

    /// Whether a virtual server has only keys of its type. If it has others, its names are still looked up.
    pub(super) fn fits(
        &mut self,
        raw: &raw::VirtualServer,
        policies: &mut Policies<'_, '_>,
        context: &mut Context,
    ) -> bool {
        if server_keys_fit(raw, context) {
            return true;
        }
        let named = self.pools_by_name(raw, context).unwrap_or_default();
        let own = raw.pool.as_ref().and_then(|pool| self.pool(pool, context));
        policies.names_of(raw, context);
        // Otherwise its pools would seem to serve the types of other virtual servers alone.
        let named = own.into_iter().chain(named.into_iter().map(|(_, pool)| pool));
        for pool in self.reached(named, &[]) {
            self.note_type(pool, raw.kind.value);
        }
        false
    }

    /// Records that traffic of a virtual server goes to this pool, and reports impossible combinations.
    fn note_pool(
        &mut self,
        raw: &raw::VirtualServer,
        listen: &[(ListenPoint, Span)],
        (pool, policies): (usize, &[Arc<Policy>]),
        context: &mut Context,
    ) {
        let (item, model) = (&self.pools[pool], self.models[pool].as_ref());
        // Pools for weir's own requests, with their fallbacks.
        if self.reached(pools_beside(policies), &[]).contains(&pool) {
            refuse_pool(item, model, context);
        }
        relay::refuse_clients_without_address(listen, item, model, context);
        relay::refuse_balance_of_requests(item, model, raw, context);
        datagrams::refuse_balance(item, model, raw, context);
        match raw.kind.value {
            VirtualServerType::Http => {}
            // Sockets do not serve pools of packets.
            VirtualServerType::Tcp | VirtualServerType::FastL4 => {
                relay::refuse_tls_in_tls(raw, item, context);
            }
            VirtualServerType::Udp => {
                udp::refuse_pool(raw, item, &self.members[pool], context);
            }
        }
        self.note_type(pool, raw.kind.value);
    }

    /// Records that a virtual server of this type uses a pool.
    pub(super) fn note_type(&mut self, pool: usize, kind: VirtualServerType) {
        let kinds = self.types_of_pools.entry(pool).or_default();
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }

    /// The values that decisions about a virtual server's traffic read: in its policies, its persistence, and the load
    /// balancing of its pools.
    fn reads(
        &self,
        raw: &raw::VirtualServer,
        reached: &[usize],
        (own, followed): (Option<usize>, &[Arc<Policy>]),
        policies: &Policies<'_, '_>,
    ) -> Reads {
        let names = raw.policies.as_ref().map_or(&[][..], |names| &names.value);
        let balancing =
            reached.iter().filter_map(|pool| match &self.models[*pool].as_ref()?.balance {
                Balance::Hash(by) => Some(by.reads()),
                _ => None,
            });
        let kept = persistence_of(own, followed, policies).filter_map(|kept| kept.kind.reads());
        [policies.reads(names)].into_iter().chain(balancing).chain(kept).collect()
    }

    /// The service of a virtual server.
    fn service(
        &mut self,
        raw: &raw::VirtualServer,
        named: &[(&Spanned<raw::tcp::ServerNamePool>, usize)],
        reads: Reads,
        context: &mut Context,
    ) -> Option<Service> {
        Some(match raw.kind.value {
            VirtualServerType::Http => Service::Http,
            VirtualServerType::Tcp | VirtualServerType::FastL4 => {
                let mut relay = self.tcp.relay(raw, named, context)?;
                relay.reads_name = reads.server_name;
                Service::Tcp(Arc::new(relay))
            }
            VirtualServerType::Udp => Service::Udp(Arc::new(self.udp.sessions(raw, context)?)),
        })
    }

    /// The pool for virtual servers without a pool.
    fn nobody(&mut self) -> Option<usize> {
        let index = self.pool_by_name.get(NOBODY).copied();
        self.pools_used.extend(index);
        index
    }

    pub(super) fn pool(&mut self, name: &Spanned<Name>, context: &mut Context) -> Option<usize> {
        let wanted = name.value.0.as_str();
        if let Some(&index) = self.pool_by_name.get(wanted) {
            self.pools_used.insert(index);
            return Some(index);
        }
        let known = self.pools.iter().map(|pool| pool.name.as_str());
        undefined("pool", wanted, name.span, known, context);
        None
    }

    /// The pools by requested server name, with their places.
    fn pools_by_name<'r>(
        &mut self,
        raw: &'r raw::VirtualServer,
        context: &mut Context,
    ) -> Option<Vec<(&'r Spanned<raw::tcp::ServerNamePool>, usize)>> {
        let items = raw.by_server_name.iter().flat_map(|items| items.iter());
        let found: Vec<Option<_>> = items
            .map(|item| Some((item, self.pool(item.value.pool.as_ref()?, context)?)))
            .collect();
        found.into_iter().collect()
    }

    fn http(
        &mut self,
        profile: &Spanned<ProfileOr<HttpProfile>>,
        has_tls: bool,
        context: &mut Context,
    ) -> Option<HttpSettings> {
        match &profile.value {
            ProfileOr::Inline(raw) => {
                let settings = settings(raw, has_tls);
                if !settings.http2 {
                    warn_of_streams(raw, context);
                }
                Some(settings)
            }
            ProfileOr::Name(Name(wanted)) => {
                let Some(&index) = self.profile_by_name.get(wanted.as_str()) else {
                    let known = self.profiles.iter().map(|item| item.name.as_str());
                    undefined("http profile", wanted, profile.span, known, context);
                    return None;
                };
                let is_first = self.profiles_used.insert(index);
                let raw = self.profiles[index].value.as_ref()?;
                // A profile without `http2` may belong to another virtual server, which has TLS.
                if is_first && raw.http2.as_ref().is_some_and(|http2| !http2.value) {
                    warn_of_streams(raw, context);
                }
                Some(settings(raw, has_tls))
            }
        }
    }

    /// The pools that requests of a virtual server can reach, and the pools of authorisation services.
    pub(super) fn reached(
        &self,
        own: impl Iterator<Item = usize>,
        policies: &[Arc<Policy>],
    ) -> Vec<usize> {
        let rules = policies.iter().flat_map(|policy| policy.request.all());
        let chosen = rules.flat_map(|rule| &rule.actions).flat_map(Action::pools);
        let mut reached: Vec<usize> = own.chain(chosen).chain(pools_beside(policies)).collect();
        let mut looked_at = 0;
        while let Some(&pool) = reached.get(looked_at) {
            looked_at += 1;
            let Some(pool) = &self.pools[pool].value else { continue };
            let spillover = pool.spillover.as_ref().and_then(|it| it.value.pool.as_ref());
            for name in pool.fallback.iter().chain(spillover) {
                let next = self.pool_by_name.get(name.value.0.as_str()).copied();
                reached.extend(next.filter(|next| !reached.contains(next)));
            }
        }
        reached.sort_unstable();
        reached.dedup();
        reached
    }

    /// The pool of a virtual server, if a member has this address.
    fn leads_to(&self, server: &VirtualServer, listen: &ListenPoint) -> Option<&str> {
        let reached = self.reached(server.pools(), &server.policies);
        let has_it = |pool: &usize| {
            self.members[*pool].iter().any(|member| match &member.endpoint {
                Endpoint::Literal(address) => reaches(address, listen),
                Endpoint::Name { .. } => false,
            })
        };
        reached.into_iter().find(has_it).map(|pool| self.pools[pool].name.as_str())
    }

    /// Reports a virtual server whose pool contains its own address: it would send each request to itself in a loop.
    pub(super) fn refuse_loop(
        &self,
        (name, is_relay): (&str, bool),
        listen: &[(ListenPoint, Span)],
        pool: usize,
        context: &mut Context,
    ) {
        let to_itself = |point: &ListenPoint| {
            self.members[pool].iter().any(|member| {
                // A missing port is reported separately.
                let is_whole = is_relay || !member.endpoint.is_without_port();
                matches!(&member.endpoint, Endpoint::Literal(member) if is_whole && reaches(member, point))
            })
        };
        let mut told = None;
        for (address, span) in listen.iter().filter(|(point, _)| to_itself(point)) {
            // Of a range of ports, only the first is reported.
            if told.replace(*span) == Some(*span) {
                continue;
            }
            context.error_help(
                *span,
                format!(
                    "virtual server `{}` listens on `{address}`, which a member of its pool `{}` has: \
                     requests would go round for ever",
                    clip(name),
                    clip(&self.pools[pool].name)
                ),
                "change the listener's or the member's port",
            );
        }
    }
}

/// The persistences of a virtual server: its own, those of its policies, and their fallbacks. May contain duplicates.
fn persistence_of<'p>(
    own: Option<usize>,
    followed: &'p [Arc<Policy>],
    policies: &'p Policies<'_, '_>,
) -> impl Iterator<Item = &'p Persistence> {
    let rules = followed.iter().flat_map(|policy| policy.request.all());
    let chosen = rules.flat_map(|rule| &rule.actions).filter_map(|action| match action {
        Action::Persistence(chosen) => chosen.map(|chosen| chosen as usize),
        _ => None,
    });
    let found = |index: usize| policies.persistence[index].as_ref();
    own.into_iter().chain(chosen).flat_map(move |first| {
        let next = move |kept: &&'p Persistence| kept.fallback.and_then(found);
        // At most as many steps as persistences, so that a cycle, which is reported elsewhere, ends.
        std::iter::successors(found(first), next).take(policies.persistence.len())
    })
}

/// Reports persistence by values that the virtual server does not have. `followed`: its policies, which may select
/// persistences too.
/// persistences too.
fn refuse_persistence(
    own: Option<usize>,
    followed: &[Arc<Policy>],
    raw: &raw::VirtualServer,
    policies: &Policies<'_, '_>,
    context: &mut Context,
) {
    datagrams::refuse_persistence(own, followed, raw, policies, context);
    if raw.kind.value == VirtualServerType::Http {
        return;
    }
    if let (Some(own), Some(choice)) = (own, &raw.persistence) {
        relay::refuse_persistence_of_requests((own, choice.span), raw, policies, context);
    }
    for given in raw.policies.iter().flat_map(|policies| policies.iter()) {
        let policy = followed.iter().find(|policy| *policy.name == *given.value.0);
        let rules = policy.into_iter().flat_map(|policy| policy.request.all());
        let chosen = rules.flat_map(|rule| &rule.actions).filter_map(|action| match action {
            Action::Persistence(chosen) => *chosen,
            _ => None,
        });
        for chosen in chosen {
            let chosen = (chosen as usize, given.span);
            relay::refuse_persistence_of_requests(chosen, raw, policies, context);
        }
    }
}

pub(super) fn client_address(
    raw: &raw::VirtualServer,
    context: &mut Context,
) -> Option<ClientAddress> {
    let raw = or_absent(raw.client_address.as_ref());
    let trust = raw.trust.iter().flat_map(|trust| trust.iter());
    let trust = AddressSet::new(trust.map(|network| network.value.0));
    if raw.trust.is_none() {
        let needs = [
            ("header", raw.header.given.then_some(raw.header.span)),
            ("proxy_protocol", raw.proxy_protocol.value.then_some(raw.proxy_protocol.span)),
        ];
        for (key, span) in needs {
            if let Some(span) = span {
                let message = format!("`{key}` needs `trust`: no proxy is trusted");
                context.error_help(span, message, "add `trust:` with the proxies in front");
                return None;
            }
        }
    }
    let forwarding = |raw: raw::Forwarding| match raw {
        raw::Forwarding::Append => Forwarding::Append,
        raw::Forwarding::Replace => Forwarding::Replace,
        raw::Forwarding::Off => Forwarding::Off,
    };
    Some(ClientAddress {
        trust,
        header: raw.header.value.0.as_str().into(),
        proxy_protocol: raw.proxy_protocol.value,
        x_forwarded_for: forwarding(raw.x_forwarded_for.value),
        x_forwarded_proto: raw.x_forwarded_proto.value,
        forwarded: forwarding(raw.forwarded.value),
    })
}

fn request_id(
    raw: &raw::request_id::RequestId,
    context: &mut Context,
) -> Option<RequestIdSettings> {
    let header = &raw.header;
    if let Some(instead) = header.value.is_framing() {
        let message = format!("the header `{}` cannot have the ID of a request", header.value.0);
        context.error_help(header.span, message, instead);
        return None;
    }
    Some(RequestIdSettings { header: header.value.0.as_str().into(), respond: raw.respond.value })
}

fn error_pages(
    raw: &raw::VirtualServer,
    directory: &Path,
    context: &mut Context,
) -> Option<ErrorPages> {
    let (mut pages, mut is_sound) = (ErrorPages::default(), true);
    for (status, page) in raw.error_pages.iter().flat_map(|pages| pages.value.0.iter()) {
        let text = &page.value;
        let text = (text.body.as_ref(), text.file.as_ref(), text.content_type.as_ref());
        let Some(page) = files::page(text, page.span, directory, context) else {
            is_sound = false;
            continue;
        };
        match *status {
            StatusMatch::Code(code) => pages.codes.push((code, page)),
            StatusMatch::Class(class) => pages.classes.push((class, page)),
        }
    }
    is_sound.then_some(pages)
}

/// Warns of actions without an effect, and of a page for 421 that clients never get: a misdirected request (421) does
/// not get it. A rule may answer 421 and leave the body to the page.
fn warn_of_rules(raw: &raw::VirtualServer, policies: &[Arc<Policy>], context: &mut Context) {
    waf::warn_of_policies(raw, policies, context);
    let is_of_rule = |action: &Action| matches!(action, Action::Answer(answer) if answer.status == 421 && matches!(answer.body, Body::None));
    let mut rules = policies.iter().flat_map(|policy| policy.request.all());
    if rules.any(|rule| rule.actions.iter().any(is_of_rule)) {
        return;
    }
    for (status, page) in raw.error_pages.iter().flat_map(|pages| pages.value.0.iter()) {
        if *status == StatusMatch::Code(421) {
            let message = "weir answers 421 without a page, because the page could belong to another host name";
            context.warning_help(page.span, message, "remove it");
        }
    }
}

/// The protocols that clients may select by ALPN.
fn protocols(is_relay: bool, http: Option<&HttpSettings>) -> &'static [&'static [u8]] {
    match http {
        // Relayed connections have no protocol that weir implements.
        _ if is_relay => &[],
        Some(HttpSettings { http2: true, .. }) => &[b"h2", b"http/1.1", b"http/1.0"],
        _ => &[b"http/1.1", b"http/1.0"],
    }
}

/// Whether a connection to `member` arrives at the listener `listen`.
fn reaches(member: &Address, listen: &ListenPoint) -> bool {
    // Traffic of this host to itself uses this interface.
    const TO_ITSELF: &str = "lo";
    if listen.interface.as_ref().is_some_and(|interface| **interface != *TO_ITSELF) {
        return false;
    }
    let listen = &listen.address;
    match (member.socket(), listen.socket()) {
        (Some(member), Some(listen)) => {
            let everywhere = listen.ip().is_unspecified() && member.ip().is_loopback();
            let same_port = member.port() == listen.port() || member.port() == 0;
            same_port && (everywhere || member.ip() == listen.ip())
        }
        _ => member == listen,
    }
}

fn warn_of_streams(raw: &HttpProfile, context: &mut Context) {
    if raw.http2_streams_max.given {
        let message =
            "`http2_streams_max` without HTTP/2, which is on with `tls` or by `http2: true`";
        context.warning_help(raw.http2_streams_max.span, message, "remove it, or switch HTTP/2 on");
    }
    if let Some(budgets) = &raw.http2_budgets {
        let message = "`http2_budgets` without HTTP/2, which is on with `tls` or by `http2: true`";
        context.warning_help(budgets.span, message, "remove it, or switch HTTP/2 on");
    }
}

pub(super) fn settings(raw: &HttpProfile, has_tls: bool) -> HttpSettings {
    HttpSettings {
        // The type limits the size to far less than 4 GiB.
        head_size_max: u32::try_from(raw.head_size_max.0).unwrap_or(u32::MAX),
        headers_max: raw.headers_max.0,
        body_size_max: raw.body_size_max.value.value().map(|Size(bytes)| bytes),
        header_timeout_ms: raw.header_timeout.0,
        body_timeout_ms: raw.body_timeout.0,
        response_body_timeout_ms: raw.response_body_timeout.0,
        idle_timeout_ms: raw.idle_timeout.0,
        tunnel_timeout_ms: raw.tunnel_timeout.0,
        http2: raw.http2.as_ref().map_or(has_tls, |wanted| wanted.value),
        http2_streams_max: raw.http2_streams_max.0,
        trace: raw.trace.value,
        upgrade_with_body: raw.upgrade_with_body.value,
        request_trailers: match raw.request_trailers.value {
            raw::RequestTrailers::Drop => RequestTrailers::Drop,
            raw::RequestTrailers::Forward => RequestTrailers::Forward,
        },
        target: path::form(raw.path.as_ref(), raw.strict.value),
        rewrite_location: raw.rewrite_location.value,
        half_closed: half_closed(raw.half_closed.value),
        http2_budgets: budgets(&or_absent(raw.http2_budgets.as_ref())),
    }
}

pub(super) fn half_closed(raw: raw::HalfClosed) -> HalfClosed {
    match raw {
        raw::HalfClosed::Wait => HalfClosed::Wait,
        raw::HalfClosed::Leave => HalfClosed::Leave,
    }
}

fn budgets(raw: &raw::Http2Budgets) -> Http2Budgets {
    let of = |burst: u32, per_second: u32| Allowance { burst, per_second };
    Http2Budgets {
        resets: of(raw.resets.0, raw.resets_per_second.0),
        client_errors: of(raw.client_errors.0, raw.client_errors_per_second.0),
        refused_streams: of(raw.refused_streams.0, raw.refused_streams_per_second.0),
        closed_streams: of(raw.closed_streams.0, raw.closed_streams_per_second.0),
        settings: of(raw.settings.0, raw.settings_per_second.0),
        pings: of(raw.pings.0, raw.pings_per_second.0),
        priorities: of(raw.priorities.0, raw.priorities_per_second.0),
        window_updates: of(raw.window_updates.0, raw.window_updates_per_second.0),
        empty_data: of(raw.empty_data.0, raw.empty_data_per_second.0),
        tiny_data: of(raw.tiny_data.0, raw.tiny_data_per_second.0),
    }
}

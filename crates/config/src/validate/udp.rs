//! Virtual servers of `type: udp`: their own keys; what needs a connection is refused.

use std::collections::{BTreeMap, HashSet};

use weir_core::expression::AddressSet;

use super::allowed_clients;
use super::names::{by_name, find};
use crate::config::ConfiguredMember;
use crate::decode::{Context, NamedItem, Section as _, Spanned};
use crate::document::Span;
use crate::endpoint::Endpoint;
use crate::profile::ProfileOr;
use crate::quote::clip;
use crate::raw::udp::UdpProfile;
use crate::raw::{self, VirtualServerType};
use crate::snapshot::{Address, Sessions};

/// UDP profiles.
pub(super) struct UdpProfiles<'a> {
    profiles: &'a [NamedItem<UdpProfile>],
    by_name: BTreeMap<&'a str, usize>,
    pub used: HashSet<usize>,
}

impl<'a> UdpProfiles<'a> {
    pub fn new(profiles: &'a [NamedItem<UdpProfile>]) -> Self {
        Self { profiles, by_name: by_name(profiles), used: HashSet::new() }
    }

    /// The session settings of a virtual server.
    pub fn sessions(
        &mut self,
        raw: &raw::VirtualServer,
        context: &mut Context,
    ) -> Option<Sessions> {
        let absent = UdpProfile::absent();
        let profile = match &raw.udp {
            None => &absent,
            Some(choice) => match &choice.value {
                ProfileOr::Inline(inline) => inline,
                ProfileOr::Name(name) => {
                    let name = Spanned { value: name.clone(), span: choice.span, given: true };
                    let index = find("udp profile", &self.by_name, &name, context)?;
                    self.used.insert(index);
                    self.profiles[index].value.as_ref()?
                }
            },
        };
        sessions(profile, allowed_clients::addresses(raw), context)
    }
}

fn sessions(
    profile: &UdpProfile,
    clients: Option<AddressSet>,
    context: &mut Context,
) -> Option<Sessions> {
    let datagrams_max = profile.datagrams.as_ref().map(|datagrams| datagrams.value.0);
    if let (Some(responses), None) = (&profile.responses, datagrams_max) {
        let message = "`responses` belongs to `datagrams`, which is not given";
        context.error_help(responses.span, message, "add `datagrams`, or remove it");
        return None;
    }
    let per_socket = &profile.sessions_per_socket_max;
    if per_socket.value.0 > 1 && datagrams_max.is_none() {
        let message = "`sessions_per_socket_max` belongs to `datagrams`, which is not given: without it no session is known to have all its answers";
        context.error_help(per_socket.span, message, "add `datagrams`, or remove it");
        return None;
    }
    let responses = profile.responses.as_ref().map(|responses| responses.value.0);
    Some(Sessions {
        idle_timeout_ms: profile.idle_timeout.0,
        datagrams_max,
        responses_max: responses.or(datagrams_max),
        per_socket_max: per_socket.value.0,
        amplification_max: profile.amplification_max.as_ref().map(|max| max.value.0),
        clients,
    })
}

/// The addresses of a virtual server; with `type: udp`, for datagrams.
pub(super) fn of_type(
    raw: &raw::VirtualServer,
    addresses: Vec<Address>,
    span: Span,
    context: &mut Context,
) -> Vec<Address> {
    if raw.kind.value != VirtualServerType::Udp {
        return addresses;
    }
    if addresses.iter().any(|address| address.socket().is_none()) {
        let message = "a virtual server of type udp listens on an address and a port";
        context.error_help(span, message, "write `ip:port`");
    }
    let of_datagrams = |address: Address| address.socket().map_or(address, Address::Udp);
    addresses.into_iter().map(of_datagrams).collect()
}

/// Checks a pool for datagrams: its members must accept them, and its settings must support them.
pub(super) fn refuse_pool(
    raw: &raw::VirtualServer,
    item: &NamedItem<raw::Pool>,
    members: &[ConfiguredMember],
    context: &mut Context,
) {
    let Some(pool) = &item.value else { return };
    let place = context.place(raw.kind.span, item.name_span);
    let by = format!("the virtual server of type udp in {place}");
    let name = clip(&item.name);
    if let Some(tls) = &pool.tls {
        let message = format!("`tls` of the pool `{name}`: {by} sends it datagrams as they are");
        context.error_help(tls.span, message, "remove it, or use another pool");
    }
    if pool.proxy_protocol.value == raw::ProxyProtocol::V1 {
        let message =
            format!("version 1 of the PROXY protocol cannot tell of datagrams, which {by} sends");
        context.error_help(pool.proxy_protocol.span, message, "use `proxy_protocol: v2`");
    }
    let is_unix =
        |it: &&ConfiguredMember| matches!(it.endpoint, Endpoint::Literal(Address::Unix(_)));
    if let (Some(member), Some(span)) =
        (members.iter().find(is_unix), pool.members.as_ref().map(|members| members.span))
    {
        let message = format!("`{}` takes no datagrams, which {by} sends", member.endpoint);
        context.error_help(span, message, "give members addresses with ports");
    }
}

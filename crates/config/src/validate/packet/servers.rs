//! Common parts of virtual servers of `type: fast_l4`: their profiles, and the owners of destinations.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;

use crate::decode::{Context, NamedItem, Section as _, Spanned};
use crate::document::Span;
use crate::profile::ProfileOr;
use crate::raw;
use crate::raw::packet::FastL4Profile;
use crate::snapshot::packet::{PacketDestination, PacketProtocol, PacketServer, Prefix};
use crate::validate::names::{by_name, find};

/// The owner of a destination, and its place in the file.
type Claims = HashMap<(PacketDestination, PacketProtocol), (String, Span)>;

/// Virtual servers of `type: fast_l4`, and their profiles.
pub(in crate::validate) struct PacketServers<'a> {
    profiles: &'a [NamedItem<FastL4Profile>],
    by_name: BTreeMap<&'a str, usize>,
    pub used: HashSet<usize>,
    claims: Claims,
    /// The virtual servers; `None`: invalid.
    pub servers: Vec<Option<PacketServer>>,
}

impl<'a> PacketServers<'a> {
    pub fn new(profiles: &'a [NamedItem<FastL4Profile>]) -> Self {
        Self {
            profiles,
            by_name: by_name(profiles),
            used: HashSet::new(),
            claims: Claims::new(),
            servers: Vec::new(),
        }
    }

    pub fn profile(
        &mut self,
        raw: &raw::VirtualServer,
        context: &mut Context,
    ) -> Option<FastL4Profile> {
        match &raw.fast_l4 {
            None => Some(FastL4Profile::absent()),
            Some(choice) => match &choice.value {
                ProfileOr::Inline(inline) => Some(FastL4Profile::clone(inline)),
                ProfileOr::Name(name) => {
                    let name = Spanned { value: name.clone(), span: choice.span, given: true };
                    let index = find("fast_l4 profile", &self.by_name, &name, context)?;
                    self.used.insert(index);
                    self.profiles[index].value.clone()
                }
            },
        }
    }

    /// The virtual server of `type: fast_l4` that has exactly this address and TCP port. Ranges, such as networks or any port, may
    /// contain listeners of others.
    pub fn owner(&self, socket: SocketAddr) -> Option<&str> {
        let destination =
            PacketDestination { prefix: Prefix::host(socket.ip()), port: Some(socket.port()) };
        let (owner, _) = self.claims.get(&(destination, PacketProtocol::Tcp))?;
        Some(owner)
    }

    /// Claims a destination; reports a conflict with another virtual server.
    pub fn claim(
        &mut self,
        owner: &str,
        destination: PacketDestination,
        protocol: PacketProtocol,
        span: Span,
        context: &mut Context,
    ) -> bool {
        if let Some((first, place)) = self.claims.get(&(destination, protocol)) {
            let message = format!(
                "`{destination}` with protocol {protocol} is used twice: in {} by {first}",
                context.place(*place, span)
            );
            context.error_help(span, message, "give each its own destination or protocol");
            return false;
        }
        self.claims.insert((destination, protocol), (owner.to_owned(), span));
        true
    }
}

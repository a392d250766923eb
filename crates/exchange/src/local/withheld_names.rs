//! Names of request fields that members take from weir alone: a client's own are withheld, whatever rules decide about the
//! request.
//!
//! These are the fields that weir sets by an action ([`Subrequest::fields_of_weir`]). Members believe them, on every path. So they
//! are withheld at all virtual servers whose requests can reach a member that a virtual server with such an action reaches, in
//! whatever pool: a member is an address.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;

use weir_config::snapshot::{Address, Service, Snapshot, VirtualServer};
use weir_core::policy::{Action, Subrequest};
use weir_http::edits::FieldEdits;

use crate::local::own_mark::OwnMark;
use crate::shared::sticky::reached_pools;

/// What members of a virtual server take from weir alone.
pub struct Claims {
    /// Names of request fields.
    pub names: Box<[Box<[u8]>]>,
    /// The mark of weir's own requests to these members.
    pub own_mark: OwnMark,
}

/// The names that are withheld, by pools.
#[derive(Default)]
pub struct WithheldNames<'a> {
    by_pool: HashMap<usize, HashSet<&'a [u8]>>,
}

impl<'a> WithheldNames<'a> {
    /// The names of a snapshot.
    pub fn of(snapshot: &'a Snapshot) -> Self {
        let mut withheld = Self::default();
        for server in &snapshot.virtual_servers {
            let names = names_of(server);
            if names.is_empty() {
                continue;
            }
            for pool in pools_of(server, snapshot) {
                withheld.by_pool.entry(pool).or_default().extend(&names);
            }
        }
        withheld.share_by_members(snapshot);
        withheld
    }

    /// Pools get the names of others with the same member. Each member is looked at once in each direction.
    fn share_by_members(&mut self, snapshot: &'a Snapshot) {
        let mut by_member: HashMap<Address, HashSet<&[u8]>> = HashMap::new();
        for (index, names) in &self.by_pool {
            let members = snapshot.pools.get(*index).into_iter().flat_map(|pool| &pool.members);
            for member in members {
                by_member.entry(plain(&member.address)).or_default().extend(names);
            }
        }
        if by_member.is_empty() {
            return;
        }
        for (index, pool) in snapshot.pools.iter().enumerate() {
            for member in &pool.members {
                if let Some(names) = by_member.get(&plain(&member.address)) {
                    self.by_pool.entry(index).or_default().extend(names);
                }
            }
        }
    }

    /// The names that a virtual server withholds, in order.
    pub fn at(&self, server: &VirtualServer, snapshot: &Snapshot) -> Box<[Box<[u8]>]> {
        if self.by_pool.is_empty() || !matches!(server.service, Service::Http) {
            return Box::default();
        }
        let pools = pools_of(server, snapshot);
        let names: HashSet<&[u8]> =
            pools.iter().filter_map(|pool| self.by_pool.get(pool)).flatten().copied().collect();
        let mut names: Vec<Box<[u8]>> = names.into_iter().map(Into::into).collect();
        names.sort_unstable();
        names.into()
    }
}

/// Whether names are withheld anywhere. Then it matters to other virtual servers which addresses a pool has.
pub fn are_any(snapshot: &Snapshot) -> bool {
    snapshot.virtual_servers.iter().any(|server| !names_of(server).is_empty())
}

/// An address as the kernel understands it: an IPv4 address that is written as an IPv6 address is the IPv4 address.
fn plain(address: &Address) -> Address {
    match address {
        Address::Socket(at) => Address::Socket(SocketAddr::new(at.ip().to_canonical(), at.port())),
        other => other.clone(),
    }
}

/// The names that weir sets for requests of a virtual server.
fn names_of(server: &VirtualServer) -> HashSet<&[u8]> {
    let rules = server.policies.iter().flat_map(|policy| policy.request.all());
    let mut names = HashSet::new();
    for action in rules.flat_map(|rule| &rule.actions) {
        names.extend(action.subrequest().into_iter().flat_map(Subrequest::fields_of_weir));
    }
    names
}

/// The pools that requests of a virtual server reach, also by virtual servers to which it hands them over, and the pools
/// that get weir's own requests like those.
fn pools_of(server: &VirtualServer, snapshot: &Snapshot) -> HashSet<usize> {
    let (mut seen, mut open) = (HashSet::new(), vec![server]);
    let mut pools = HashSet::new();
    while let Some(server) = open.pop() {
        pools.extend(reached_pools(server, snapshot));
        let rules = server.policies.iter().flat_map(|policy| policy.request.all());
        let actions = rules.flat_map(|rule| &rule.actions);
        let subrequests = actions.filter_map(Action::subrequest);
        pools.extend(subrequests.filter(|it| it.is_served_like_requests()).map(Subrequest::pool));
        for to in server.hands_over_to() {
            if seen.insert(to) {
                open.extend(snapshot.virtual_servers.get(to));
            }
        }
    }
    pools
}

/// Withholds a client's fields of these names. Lines that rules have added stay. `of_weir`: a field that weir itself has set, in a
/// request that it has made.
pub fn withhold(names: &[Box<[u8]>], of_weir: Option<&[u8]>, edits: &mut FieldEdits) {
    for name in names.iter().filter(|name| of_weir != Some(name)) {
        edits.withhold_received(name);
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use weir_config::{Resolutions, parse};

    use super::*;

    const CONFIG: &str = "virtual_servers:\n  \
        asks: { listen: 127.0.0.1:81, pool: app, policies: [ private ] }\n  \
        beside: { listen: 127.0.0.1:82, pool: app }\n  \
        before: { listen: 127.0.0.1:83, policies: [ to-asks ] }\n  \
        copies: { listen: 127.0.0.1:84, pool: shop, policies: [ copy ] }\n  \
        fallback: { listen: 127.0.0.1:85, pool: weak }\n  \
        other: { listen: 127.0.0.1:86, pool: other }\n  \
        relay: { listen: 127.0.0.1:87, type: tcp, pool: app }\n  \
        same: { listen: 127.0.0.1:88, pool: same }\n  \
        mapped: { listen: 127.0.0.1:89, pool: mapped }\n  \
        named: { listen: 127.0.0.1:90, pool: named }\n  \
        as-copied: { listen: 127.0.0.1:91, pool: as-copied }\n\
        authentication: { sso: { type: external, pool: service, add_headers: [ X-User, X-Groups ] } }\n\
        policies:\n  \
        private: { rules: [ { when: \"request.path == '/a'\", then: [ { authenticate: sso } ] } ] }\n  \
        to-asks: { rules: [ { then: [ { virtual_server: asks } ] } ] }\n  \
        copy: { rules: [ { then: [ { mirror: { pool: copied } } ] } ] }\n\
        pools:\n  app: { members: [ 127.0.0.1:9001 ] }\n  service: { members: [ 127.0.0.1:9002 ] }\n  \
        shop: { members: [ 127.0.0.1:9003 ] }\n  copied: { members: [ 127.0.0.1:9004 ] }\n  \
        weak: { members: [ 127.0.0.1:9005 ], fallback: app }\n  other: { members: [ 127.0.0.1:9006 ] }\n  \
        same: { members: [ 127.0.0.1:9006, 127.0.0.1:9001 ] }\n  \
        mapped: { members: [ \"[::ffff:127.0.0.1]:9001\" ] }\n  named: { members: [ app.test:9001 ] }\n  \
        as-copied: { members: [ 127.0.0.1:9004 ] }\n";

    #[test]
    fn names_are_withheld_wherever_their_members_are_reached() {
        let parsed = parse("test.yaml", CONFIG);
        let config = parsed.config.unwrap_or_else(|| panic!("{:?}", parsed.diagnostics));
        let names = [("app.test".to_owned(), vec![IpAddr::from([127, 0, 0, 1])])];
        let snapshot = config.snapshot(&Resolutions::from(names));
        let withheld = WithheldNames::of(&snapshot);
        for (name, expected) in [
            ("asks", &["X-Groups", "X-User"][..]),
            ("beside", &["X-Groups", "X-User"]),
            ("before", &["X-Groups", "X-User"]),
            ("fallback", &["X-Groups", "X-User"]),
            ("copies", &["X-Mirrored"]),
            ("other", &[]),
            ("relay", &[]),
            ("same", &["X-Groups", "X-User"]),
            ("mapped", &["X-Groups", "X-User"]),
            ("named", &["X-Groups", "X-User"]),
            ("as-copied", &["X-Mirrored"]),
        ] {
            let server = snapshot.virtual_servers.iter().find(|it| *it.name == *name);
            let names = withheld.at(server.expect(name), &snapshot);
            let names: Vec<_> = names.iter().map(|name| String::from_utf8_lossy(name)).collect();
            assert_eq!(names, expected, "{name}");
        }
    }
}

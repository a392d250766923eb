//! The check of changes that are of members alone, without a check of the whole configuration.
//!
//! It says yes or nothing. What it cannot say yes to is checked as a whole, which also finds the words for an error. So it may be
//! narrow: it knows members with an IP address, and their plain settings. It reads the members that changes name, and no others.

use std::sync::Arc;

use crate::config::{Config, ConfiguredMember};
use crate::decode::{Context, Decode as _};
use crate::document::Node;
use crate::endpoint::Endpoint;
use crate::raw::VirtualServerType;
use crate::raw::member::MemberEntry;
use crate::snapshot::Address;
use crate::validate;
use crate::variants::Choice as _;

/// The keys of members that say nothing about anything else.
pub const PLAIN_KEYS: [&str; 5] =
    ["weight", "state", "priority", "connections_max", "requests_per_second_max"];

/// A member before and after a change.
#[derive(Debug)]
pub struct MemberChange {
    /// The name of the pool.
    pub pool: String,
    /// The member's address.
    pub endpoint: Endpoint,
    /// The member before; `None`: there is none.
    pub was: Option<Node>,
    /// The member after; `None`: there is none.
    pub is: Option<Node>,
}

impl Config {
    /// The configuration after changes of members. `None`: they must be checked with everything else.
    pub fn with_changed_members(&self, changes: &[MemberChange]) -> Option<Self> {
        // The packet path reads more of members, also for a virtual server that is disabled.
        let disabled = &self.template.disabled;
        let packets = VirtualServerType::FastL4.word();
        if self.template.packets.is_some() || disabled.iter().any(|it| it.kind == packets) {
            return None;
        }
        let mut config = self.clone();
        let mut changed = Vec::with_capacity(changes.len());
        for change in changes {
            let index = config.pool(&change.pool)?;
            config.set_member(index, change)?;
            config.parts.exchange_member(&change.pool, change.was.as_ref(), change.is.as_ref());
            changed.push(index);
        }
        // Some member must take new requests; a pool without members is worth a warning.
        let may_serve = |pool: usize| config.members[pool].iter().any(|member| member.weight > 0);
        changed.into_iter().all(may_serve).then_some(config)
    }

    /// Sets or removes a member. `None`: something else depends on it.
    fn set_member(&mut self, pool: usize, change: &MemberChange) -> Option<()> {
        let at = self.members[pool].iter().position(|it| it.endpoint == change.endpoint);
        let known = at.map(|at| &self.members[pool][at]);
        let new = match &change.is {
            Some(node) => Some(self.read_member(pool, &change.endpoint, node, known)?),
            None => None,
        };
        let has_own_monitors = |member: &ConfiguredMember| member.monitors.is_some();
        let loses_monitors =
            known.is_some_and(has_own_monitors) && !new.as_ref().is_some_and(has_own_monitors);
        let is_another = at.is_some() != new.is_some();
        // Without a number of its own, `spillover` needs the limits of all members.
        let limit = |member: &ConfiguredMember| member.connections_max;
        let has_other_limits = is_another || known.map(limit) != new.as_ref().map(limit);
        let spills = self.template.pools[pool].instead.spillover.is_some();
        // A rule may name the member, and `monitors_min` may count its monitors.
        if loses_monitors || is_another && self.names_members || spills && has_other_limits {
            return None;
        }
        let members = Arc::make_mut(&mut self.members[pool]);
        let before = members.len();
        match (at, new) {
            (Some(at), Some(new)) => members[at] = new,
            (Some(at), None) => _ = members.remove(at),
            (None, Some(new)) => members.push(new),
            (None, None) => {}
        }
        self.summary.members = self.summary.members + members.len() - before;
        Some(())
    }

    fn read_member(
        &self,
        pool: usize,
        endpoint: &Endpoint,
        node: &Node,
        known: Option<&ConfiguredMember>,
    ) -> Option<ConfiguredMember> {
        let mut context = Context::default();
        let MemberEntry(raw) = MemberEntry::decode(node, &mut context)?;
        let member = validate::configured_member(&raw, endpoint, &mut context);
        let monitors = known.and_then(|known| known.monitors.clone());
        let member = ConfiguredMember { monitors, ..member };
        // The changes are not of monitors. Nothing asks for a file here: that may take long.
        let is_special = raw.monitors.is_some() != member.monitors.is_some()
            || endpoint.is_unix()
            || known.is_none() && self.is_special(pool, endpoint)
            || self.is_own_door(pool, &member);
        (!is_special && !context.has_findings()).then_some(member)
    }

    /// Whether more than its pool must look at a new member.
    fn is_special(&self, index: usize, endpoint: &Endpoint) -> bool {
        let Endpoint::Literal(Address::Socket(socket)) = *endpoint else { return true };
        let listens = self.template.virtual_servers.iter().flat_map(|server| &server.listen);
        let listens = listens.map(|point| &point.address);
        // Those of disabled virtual servers must be possible, too.
        let disabled = self.template.disabled.iter().flat_map(|server| &server.addresses);
        let mut ports = listens.chain(disabled).filter_map(|at| Some(at.socket()?.port()));
        !self.template.pools[index].source.reaches(socket.ip())
            // It may be a virtual server's own address.
            || ports.any(|port| port == socket.port())
    }
}

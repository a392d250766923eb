//! Changes of members alone: which members they name, and what these were and are.

use weir_config::document::{Node, NodeValue};
use weir_config::members::{MemberChange, PLAIN_KEYS};
use weir_config::snapshot::Address;
use weir_config::{Config, Endpoint};

use crate::files::Files;
use crate::overlay::{Change, Overlay};
use crate::sources::Sources;

/// The place of a member.
struct Place {
    /// The name of the pool.
    pool: String,
    /// The address, as it is in paths.
    member: String,
    endpoint: Endpoint,
}

impl Sources<'_> {
    /// The configuration after `changes` of members alone. They lead from the overlay `from`, with which `before` was checked, to
    /// that of these sources. `None`: they must be checked with everything else.
    pub fn check_members(
        &self,
        from: &Overlay,
        changes: &[Change],
        before: &Config,
    ) -> Option<Config> {
        let mut places: Vec<Place> = Vec::with_capacity(changes.len());
        for change in changes {
            let place = Place::of(change)?;
            let is_same = |it: &Place| it.pool == place.pool && it.endpoint == place.endpoint;
            if !places.iter().any(is_same) {
                places.push(place);
            }
        }
        let changes: Option<Vec<_>> =
            places.into_iter().map(|place| self.member_change(from, place)).collect();
        before.with_changed_members(&changes?)
    }

    fn member_change(&self, from: &Overlay, place: Place) -> Option<MemberChange> {
        let Place { pool, member, endpoint } = place;
        let in_files = self.files.member(&pool, &endpoint)?;
        let over = |overlay: &Overlay| overlay.member_over(in_files.cloned(), &pool, &member);
        let (was, is) = (over(from)?, over(self.overlay)?);
        Some(MemberChange { pool, endpoint, was, is })
    }
}

impl Place {
    /// The member that a change is of, if it is of nothing else and of plain settings.
    fn of(change: &Change) -> Option<Self> {
        let segments = change.path().segments();
        let (section, pool, list, member) = match &segments[..] {
            [section, pool, list, member] => {
                if let Change::Set { value, .. } = change {
                    let keys = value.as_object().into_iter().flat_map(|it| it.keys());
                    let is_plain = |key: &str| key == "address" || PLAIN_KEYS.contains(&key);
                    if !keys.into_iter().all(|key: &String| is_plain(key)) {
                        return None;
                    }
                }
                (section, pool, list, member)
            }
            [section, pool, list, member, key] if PLAIN_KEYS.contains(&key.as_str()) => {
                (section, pool, list, member)
            }
            _ => return None,
        };
        if section != "pools" || list != "members" {
            return None;
        }
        let endpoint = Endpoint::read(member)?;
        let has_port = !endpoint.is_without_port();
        let is_plain = matches!(endpoint, Endpoint::Literal(Address::Socket(_))) && has_port;
        let (pool, member) = (pool.clone(), member.clone());
        is_plain.then_some(Self { pool, member, endpoint })
    }
}

impl Files {
    /// A pool's member as the files have it. `None`: they have no list of the pool's members.
    fn member(&self, pool: &str, endpoint: &Endpoint) -> Option<Option<&Node>> {
        let index = self.member_index();
        let members = index.entry(self.root()?.get("pools")?, pool)?.get("members")?;
        match &members.value {
            NodeValue::List(members) => Some(index.member(members, endpoint)),
            _ => None,
        }
    }
}

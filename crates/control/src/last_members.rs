//! Whether a change leaves a pool without a member that takes new requests.
//!
//! Such a change is refused unless the request says that it is meant. It is decided here, on the state at this moment:
//! whoever asks may have looked at an older one. It does not matter how the last member is taken: by its weight, by its
//! state, or out of the pool.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use weir_config::snapshot::{Member, NOBODY, Pool, Snapshot};
use weir_core::admin_state::AdminState;
use weir_exchange::shared::live::{LiveMember, LiveTable, PoolMembers};

use crate::member_state::{MemberState, administrative_state, is_in_service};

/// How a request says that it is meant.
pub(crate) const HELP: &str = "bring another member up or enable it first; to do it nevertheless, add `\"last\": true` (on the command line: --last)";

/// Maximum number of pools in a message.
const POOLS_TOLD_MAX: usize = 20;

/// Pools whose clients would get 503.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LeftAlone(Vec<String>);

impl LeftAlone {
    /// These pools; `None` if there are none.
    pub fn of<'a>(pools: impl Iterator<Item = &'a str>) -> Option<Self> {
        let pools: Vec<String> = pools.map(str::to_owned).collect();
        (!pools.is_empty()).then_some(Self(pools))
    }

    /// The pools that have a member for new requests now, and none with this configuration. `waiting`: a configuration that
    /// waits for first probes; what it takes is not the fault of the one after it.
    pub fn by(after: &Snapshot, waiting: Option<&Snapshot>, table: &LiveTable) -> Option<Self> {
        Self::by_pools(after, 0..after.pools.len(), waiting, table)
    }

    /// As [`Self::by`], for some pools, by their indexes in `after`.
    pub fn by_pools(
        after: &Snapshot,
        pools: impl Iterator<Item = usize>,
        waiting: Option<&Snapshot>,
        table: &LiveTable,
    ) -> Option<Self> {
        let is_taken_already = |pool: &Pool| {
            let Some(waiting) = waiting else { return false };
            let before = waiting.pools.iter().position(|before| before.name == pool.name);
            before.is_some_and(|before| !serves_after(waiting, before, table))
        };
        let is_taken = |index: &usize| {
            let pool = &after.pools[*index];
            let live = live_of(table, pool, *index).filter(|_| *pool.name != *NOBODY);
            live.is_some_and(serves_now)
                && !serves_after(after, *index, table)
                && !is_taken_already(pool)
        };
        Self::of(pools.filter(is_taken).map(|index| &*after.pools[index].name))
    }
}

/// `no other member of pool `web` takes new requests: clients would get 503`.
impl fmt::Display for LeftAlone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.0.len() == 1 { "" } else { "s" };
        write!(formatter, "no other member of pool{plural} ")?;
        for (index, pool) in self.0.iter().take(POOLS_TOLD_MAX).enumerate() {
            formatter.write_str(if index == 0 { "" } else { ", " })?;
            formatter.write_char('`')?;
            formatter.write_str(pool)?;
            formatter.write_char('`')?;
        }
        match self.0.len().saturating_sub(POOLS_TOLD_MAX) {
            0 => {}
            more => write!(formatter, " and {more} more")?,
        }
        formatter.write_str(" takes new requests: clients would get 503")
    }
}

/// The members of a pool now. Mostly it has the same index as in the new configuration.
fn live_of<'a>(table: &'a LiveTable, pool: &Pool, index: usize) -> Option<&'a PoolMembers> {
    let is_it = |live: &&Arc<PoolMembers>| live.pool.name == pool.name;
    let found = table.pools.get(index).filter(is_it);
    found.or_else(|| table.pools.iter().find(is_it)).map(|live| &**live)
}

fn serves_now(live: &PoolMembers) -> bool {
    let mut members = live.settings.members.iter().zip(&live.members);
    members.any(|(configured, live)| is_in_service(configured, live))
}

/// Whether a pool of the new configuration, or one of its fallbacks, has a member for new requests.
fn serves_after(after: &Snapshot, pool: usize, table: &LiveTable) -> bool {
    let mut seen: Vec<usize> = Vec::new();
    let mut at = Some(pool);
    while let Some(index) = at.filter(|index| !seen.contains(index)) {
        let Some(pool) = after.pools.get(index) else { return false };
        let live = live_of(table, pool, index);
        let known = |(at, member): (usize, &Member)| {
            let members = || live.into_iter().flat_map(|live| &live.members);
            let is_it = |live: &&Arc<LiveMember>| live.address == member.address;
            // Mostly it has the same place.
            members().nth(at).filter(is_it).or_else(|| members().find(is_it))
        };
        let takes = |it: (usize, &Member)| takes_after(it.1, known(it).map(|live| &**live));
        if pool.members.iter().enumerate().any(takes) {
            return true;
        }
        seen.push(index);
        at = pool.instead.fallback;
    }
    false
}

/// Whether a member will take new requests. `live`: its state now; `None`: it is new, and waits for its first probes.
fn takes_after(member: &Member, live: Option<&LiveMember>) -> bool {
    let (state, is_up) = match live {
        Some(live) => {
            (administrative_state(member, live), MemberState::of(live) == MemberState::Up)
        }
        None => (member.state, true),
    };
    member.weight > 0 && state == AdminState::Enabled && is_up
}

#[cfg(test)]
mod tests {
    use weir_config::Resolutions;
    use weir_core::monitor::Health;

    use super::*;
    use crate::testing::observed_by;

    fn text(members: &str, more: &str) -> String {
        format!(
            "virtual_servers: {{ shop: {{ listen: \"127.0.0.1:8080\", pool: web }} }}\n\
             pools:\n  web: {{ members: [ {members} ] {more} }}\n  spare: {{ members: [ 127.0.0.1:9 ] }}\n"
        )
    }

    /// What the change to `members` is refused for, while the second member is down.
    fn left_alone(members: &str, more: &str, disabled: bool) -> Option<String> {
        let observed = observed_by(&text("127.0.0.1:1, 127.0.0.1:2", ""), 1);
        let table = observed.table();
        table.pools[0].members[1].set_health(Health::Down, 1);
        if disabled {
            table.pools[0].members[0].set_state_override(Some(AdminState::Disabled));
        }
        let config = weir_config::parse("test.yaml", &text(members, more)).config;
        let after = Arc::new(config.expect("a configuration").snapshot(&Resolutions::default()));
        // A configuration that waits takes the member already.
        assert_eq!(LeftAlone::by(&after, Some(&after), &table), None);
        LeftAlone::by(&after, None, &table).map(|found| found.to_string())
    }

    #[test]
    fn the_last_member_is_taken_in_many_ways() {
        let why = "no other member of pool `web` takes new requests: clients would get 503";
        for (members, more, is_taken) in [
            ("{ address: 127.0.0.1:1, weight: 0 }, 127.0.0.1:2", "", true),
            ("{ address: 127.0.0.1:1, state: disabled }, 127.0.0.1:2", "", true),
            ("{ address: 127.0.0.1:1, state: drain }, 127.0.0.1:2", "", true),
            ("127.0.0.1:2", "", true),
            ("{ address: 127.0.0.1:1, weight: 3 }", "", false),
            ("{ address: 127.0.0.1:1, weight: 0 }, { address: 127.0.0.1:2, weight: 9 }", "", true),
            // A new member waits for its first probes before the change is in force.
            ("127.0.0.1:3", "", false),
            ("{ address: 127.0.0.1:3, weight: 0 }, 127.0.0.1:2", "", true),
            // A fallback takes the requests.
            ("{ address: 127.0.0.1:1, weight: 0 }, 127.0.0.1:2", ", fallback: spare", false),
        ] {
            let expected = is_taken.then(|| why.to_owned());
            assert_eq!(left_alone(members, more, false), expected, "{members} {more}");
        }
    }

    #[test]
    fn a_pool_that_serves_nobody_loses_nothing() {
        assert_eq!(left_alone("{ address: 127.0.0.1:1, weight: 0 }, 127.0.0.1:2", "", true), None);
        assert_eq!(left_alone("127.0.0.1:2", "", true), None);
    }
}

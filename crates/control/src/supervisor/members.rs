//! Changes of members alone: of addresses of names, and of versions that change nothing but `members` of pools.
//!
//! Such a change needs no listener, and no other settings. Its snapshot shares everything else with the one in force, workers get
//! the members of these pools alone, and monitors of other pools do not notice. Pools do not wait for each other: one whose new
//! members have no result yet keeps its former ones.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::time::Instant;
use weir_config::snapshot::{MemberChanges, Pool, Snapshot};
use weir_config::{Config, Resolutions};
use weir_dataplane::outside;
use weir_exchange::local::withheld_names;

use super::Supervisor;
use super::next_configuration::{
    BY_POOL_INTERVAL, NextConfiguration, UnusablePools, show_waiting, tell_in_force, tell_unknown,
    tell_unusable, unusable,
};
use crate::last_members::LeftAlone;
use crate::monitors::needs_probes;
use crate::overlay::judge::Configuration;

/// Whether a change of members does not have to wait for other changes.
fn may_change(at: &Supervisor) -> bool {
    !at.is_starting() && at.next.as_ref().is_none_or(|next| next.pools.is_some())
}

/// The snapshot of the newest configuration, which may wait for first probes.
pub(super) fn newest_snapshot(at: &Supervisor) -> &Arc<Snapshot> {
    at.next.as_ref().map_or(&at.table.snapshot, |next| &next.snapshot)
}

/// The newest snapshot with other members.
pub(super) struct OtherMembers {
    pub snapshot: Snapshot,
    /// What differs from the newest snapshot.
    pub changes: Vec<MemberChanges>,
    made_of: MembersOrigin,
}

/// What members are made of, beside their configuration.
struct MembersOrigin {
    newest: Arc<Snapshot>,
    /// The addresses of names; none, if the pools have no names.
    resolutions: Resolutions,
    have_names: bool,
}

impl MembersOrigin {
    /// What members of these pools are made of now.
    fn now(config: &Config, pools: &[usize], at: &Supervisor) -> Self {
        let (newest, have_names) = (Arc::clone(newest_snapshot(at)), config.have_names(pools));
        Self { newest, resolutions: resolutions(have_names, at), have_names }
    }
}

fn resolutions(have_names: bool, at: &Supervisor) -> Resolutions {
    if have_names { at.names.resolutions() } else { Resolutions::default() }
}

impl OtherMembers {
    /// The members of another snapshot of the newest configuration.
    #[cfg(test)]
    pub(super) fn of(snapshot: Snapshot, at: &Supervisor) -> Self {
        let newest = Arc::clone(newest_snapshot(at));
        let pools = newest.pools.iter().zip(&snapshot.pools).enumerate();
        let changes = pools
            .filter_map(|(index, (before, after))| MemberChanges::between(index, before, after));
        let changes = changes.collect();
        let made_of =
            MembersOrigin { newest, resolutions: Resolutions::default(), have_names: false };
        Self { snapshot, changes, made_of }
    }

    /// Whether they would be made in the same way now.
    pub(super) fn are_for(&self, at: &Supervisor) -> bool {
        let MembersOrigin { newest, resolutions: before, have_names } = &self.made_of;
        Arc::ptr_eq(newest, newest_snapshot(at)) && *before == resolutions(*have_names, at)
    }
}

/// The members of this configuration; `None`: it changes something else, too.
pub(super) fn of(configuration: &Configuration, at: &Supervisor) -> Option<OtherMembers> {
    let (newest, config) = (at.newest(), &configuration.config);
    if !may_change(at) || !Arc::ptr_eq(&newest.files, &configuration.files) {
        return None;
    }
    let pools = config.only_members_differ(&newest.config)?;
    if config.has_other_names(&newest.config, &pools) {
        return None;
    }
    with_present(config, &pools, at)
}

/// The present members of these pools; `None`: more than members follows from them. Nothing else may make such a snapshot: what
/// follows from new addresses is decided here.
pub(super) fn with_present(
    config: &Config,
    pools: &[usize],
    at: &Supervisor,
) -> Option<OtherMembers> {
    let made_of = MembersOrigin::now(config, pools, at);
    let before = &made_of.newest;
    let (snapshot, changes) = config.with_members(before, &made_of.resolutions, pools);
    let has_new_address =
        |it: &MemberChanges| has_new_address(it, &before.pools[it.pool], &snapshot.pools[it.pool]);
    // Other virtual servers may withhold fields from a new address.
    let is_alone = || {
        may_change(at)
            && !(changes.iter().any(has_new_address) && withheld_names::are_any(&snapshot))
    };
    if !changes.is_empty() && !is_alone() {
        return None;
    }
    Some(OtherMembers { snapshot, changes, made_of })
}

/// The pools that lose their last member for new requests with these members.
pub(super) fn left_alone(found: &OtherMembers, at: &Supervisor) -> Option<LeftAlone> {
    let waiting = at.next.as_ref().map(|next| &*next.snapshot);
    let pools = found.changes.iter().map(|changes| changes.pool);
    LeftAlone::by_pools(&found.snapshot, pools, waiting, &at.table)
}

impl Supervisor {
    /// Prepares other members of pools: starts their monitors. They are made of the newest snapshot as it is now.
    /// `configuration` belongs to them; `None`: names have other addresses.
    pub(super) fn prepare_members(
        &mut self,
        found: OtherMembers,
        configuration: Option<Arc<Configuration>>,
    ) {
        let OtherMembers { mut snapshot, changes: touched, .. } = found;
        let mut before = self.next.take();
        let configurations =
            before.as_mut().map(|before| std::mem::take(&mut before.configurations));
        let mut configurations = configurations.unwrap_or_default();
        let newest = before.as_ref().map_or(&self.table.snapshot, |before| &before.snapshot);
        let changes = match &before {
            None => touched.clone(),
            Some(before) => unlike_table(&mut snapshot, before, &touched, &self.table.snapshot),
        };
        let pools: Vec<usize> = changes.iter().map(|changes| changes.pool).collect();
        if let Some(configuration) = configuration {
            let touched: Vec<usize> = touched.iter().map(|changes| changes.pool).collect();
            configurations.push(configuration, &touched);
        }
        configurations.retain(&pools);
        let (count, has_finished) = (pools.len(), configurations.has_finished());
        let mut next = NextConfiguration::new(
            Arc::new(snapshot),
            configurations,
            Some(changes),
            before.as_ref(),
        );
        // A pool that is awaited may become usable by a weight or a state.
        let is_probed_anew = |changes: &&MemberChanges| {
            let (before, now) = (&newest.pools[changes.pool], &next.snapshot.pools[changes.pool]);
            self.monitors.may_wait_for(&now.name) || needs_probes(changes, before, now)
        };
        let probed = touched.iter().filter(is_probed_anew);
        let probed: Vec<usize> = probed.map(|changes| changes.pool).collect();
        // A pool without an address is not waited for if it has none in force either.
        let is_without = |index: usize| {
            next.snapshot.pools[index].members.is_empty()
                && self.table.pools[index].members.is_empty()
        };
        let until = |index: &usize| match is_without(*index) {
            true => Instant::now(),
            false => next.until(&next.snapshot.pools[*index]),
        };
        let until: Vec<Instant> = probed.iter().map(until).collect();
        let pools = probed.iter().map(|index| &*next.snapshot.pools[*index]);
        self.monitors.prepare_pools(pools.zip(until));
        // The next activation happens as soon as one of the pools is not awaited, or at once if a configuration waits for none.
        let awaited = self.monitors.awaited().len();
        next.awaited = (awaited + usize::from(awaited < count || has_finished)).max(1);
        self.next = Some(next);
        show_waiting(self);
    }

    /// Puts those members in force whose first probes are in.
    pub(super) fn put_members_in_force(&mut self, mut next: NextConfiguration) {
        let awaited = self.monitors.awaited();
        let is_awaited = |it: &MemberChanges| awaited.contains(&next.snapshot.pools[it.pool].name);
        let changes = next.pools.take().unwrap_or_default();
        let (late, ready): (Vec<_>, Vec<_>) = changes.into_iter().partition(is_awaited);
        let snapshot = match &late[..] {
            [] => Arc::clone(&next.snapshot),
            late => Arc::new(without(late, &next.snapshot, &self.table.snapshot)),
        };
        let table = Arc::new(self.table.with_changes(snapshot, &ready, &outside()));
        // The monitors come before the workers, so that members have their health at the first request.
        let then = next.snapshot.first_probes.then;
        for unknown in self.monitors.change(&table, then, (&self.table, &ready)) {
            tell_unknown(&self.events, &unknown, then);
        }
        let ready: Arc<[usize]> = ready.iter().map(|changes| changes.pool).collect();
        self.data_plane.put_members_in_force(Arc::clone(&table), &ready);
        self.packets.take_members(&table, &ready);
        self.observed.set_table(Arc::clone(&table));
        let before = std::mem::replace(&mut self.table, table);
        let changed = ready.iter().map(|index| &self.table.pools[*index]);
        let unusable = unusable(changed, &self.monitors.board());
        tell_unusable(&self.events, &unusable);
        let waiting: Vec<usize> = late.iter().map(|changes| changes.pool).collect();
        next.configurations.retain(&waiting);
        let configuration = next.configurations.take_finished();
        if !late.is_empty() {
            next.awaited = late.len();
            next.not_before = Instant::now() + BY_POOL_INTERVAL;
            next.waits.retain(|pool, _| awaited.contains(pool));
            next.pools = Some(late);
            self.next = Some(next);
        }
        show_waiting(self);
        if let Some(configuration) = configuration {
            let before_it = std::mem::replace(&mut self.configuration, configuration);
            tell_in_force(self, &before_it, &before, &UnusablePools(&unusable));
            if !self.configuration.config.shares_names_with(&before_it.config) {
                self.retain_names();
            }
        }
        self.names.hurry(self.next.is_some() || self.reading.is_some());
    }
}

/// What differs from the table, if these changes are made while others wait. A pool that is as it was shares its settings with
/// the table.
fn unlike_table(
    snapshot: &mut Snapshot,
    waiting: &NextConfiguration,
    touched: &[MemberChanges],
    table: &Snapshot,
) -> Vec<MemberChanges> {
    let waiting = waiting.pools.iter().flatten();
    let mut pools: Vec<usize> = waiting.chain(touched).map(|changes| changes.pool).collect();
    pools.sort_unstable();
    pools.dedup();
    let unlike = pools.into_iter().filter_map(|index| {
        let changes = MemberChanges::between(index, &table.pools[index], &snapshot.pools[index]);
        if changes.is_none() {
            snapshot.pools[index] = Arc::clone(&table.pools[index]);
        }
        changes
    });
    unlike.collect()
}

/// The snapshot without these changes.
fn without(late: &[MemberChanges], snapshot: &Snapshot, before: &Snapshot) -> Snapshot {
    let mut snapshot = snapshot.clone();
    for changes in late {
        snapshot.pools[changes.pool] = Arc::clone(&before.pools[changes.pool]);
    }
    snapshot
}

/// Whether a pool has a member now whose address it did not have before.
fn has_new_address(changes: &MemberChanges, before: &Pool, now: &Pool) -> bool {
    if changes.keep_places(before, now) {
        return false;
    }
    let former = changes.former(&before.members).map(|member| &member.address);
    let known: HashSet<_> = former.collect();
    changes.new_ones(&now.members).any(|member| !known.contains(&member.address))
}

//! Changes of members alone: of addresses of names, and of versions that change nothing but `members` of pools.
//!
//! Such a change needs no listener, and no other settings. Its snapshot shares everything else with the one in force, workers get
//! the members of these pools alone, and monitors of other pools do not notice. Pools do not wait for each other: one whose new
//! members have no result yet keeps its former ones.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::time::Instant;
use weir_config::snapshot::{Member, Pool, Snapshot, same_ends};
use weir_config::{Config, Resolutions};
use weir_dataplane::outside;
use weir_exchange::local::withheld_names;

use super::Supervisor;
use super::next_configuration::{
    BY_POOL_INTERVAL, NextConfiguration, UnusablePools, show_waiting, tell_in_force, tell_unknown,
    tell_unusable, unusable,
};
use crate::last_members::LeftAlone;
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
    /// The pools whose members are others, by their indexes.
    pub pools: Vec<usize>,
    /// The newest snapshot, and the addresses of names.
    made_of: (Arc<Snapshot>, Resolutions),
}

impl OtherMembers {
    /// Whether they would be made in the same way now.
    pub(super) fn are_for(&self, at: &Supervisor) -> bool {
        let (snapshot, resolutions) = &self.made_of;
        Arc::ptr_eq(snapshot, newest_snapshot(at)) && *resolutions == at.names.resolutions()
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
    let (before, resolutions) = (newest_snapshot(at), at.names.resolutions());
    let (snapshot, changed) = config.with_members(before, &resolutions, pools);
    let is_new = |index: &usize| has_new_address(&before.pools[*index], &snapshot.pools[*index]);
    // Other virtual servers may withhold fields from a new address.
    let is_alone =
        || may_change(at) && !(changed.iter().any(is_new) && withheld_names::are_any(&snapshot));
    if !changed.is_empty() && !is_alone() {
        return None;
    }
    let made_of = (Arc::clone(before), resolutions);
    Some(OtherMembers { snapshot, pools: changed, made_of })
}

/// The pools that lose their last member for new requests with these members.
pub(super) fn left_alone(found: &OtherMembers, at: &Supervisor) -> Option<LeftAlone> {
    let waiting = at.next.as_ref().map(|next| &*next.snapshot);
    LeftAlone::by_pools(&found.snapshot, found.pools.iter().copied(), waiting, &at.table)
}

impl Supervisor {
    /// Prepares other members of pools: starts their monitors. The snapshot differs from the newest one in members alone.
    /// `configuration` belongs to it; `None`: names have other addresses.
    pub(super) fn prepare_members(
        &mut self,
        mut snapshot: Snapshot,
        configuration: Option<Arc<Configuration>>,
    ) {
        let mut before = self.next.take();
        let configurations =
            before.as_mut().map(|before| std::mem::take(&mut before.configurations));
        let mut configurations = configurations.unwrap_or_default();
        let newest = before.as_ref().map_or(&self.table.snapshot, |before| &before.snapshot);
        let touched = differing(&snapshot, newest);
        let pools = differing(&snapshot, &self.table.snapshot);
        // A pool that is as it was shares its settings with the table.
        for index in touched.iter().filter(|index| !pools.contains(index)) {
            snapshot.pools[*index] = Arc::clone(&self.table.snapshot.pools[*index]);
        }
        if let Some(configuration) = configuration {
            configurations.push(configuration, &touched);
        }
        configurations.retain(&pools);
        let (count, has_finished) = (pools.len(), configurations.has_finished());
        let mut next = NextConfiguration::new(
            Arc::new(snapshot),
            configurations,
            Some(pools),
            before.as_ref(),
        );
        // A pool that is awaited may become usable by a weight or a state.
        let awaited = self.monitors.awaited();
        let is_probed_anew = |index: &usize| {
            let pool = &next.snapshot.pools[*index];
            awaited.contains(&pool.name) || !is_probed_alike(pool, &newest.pools[*index])
        };
        let probed: Vec<usize> = touched.into_iter().filter(is_probed_anew).collect();
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
        let is_awaited = |index: &usize| awaited.contains(&next.snapshot.pools[*index].name);
        let pools = next.pools.take().unwrap_or_default();
        let (late, ready): (Vec<usize>, Vec<usize>) = pools.into_iter().partition(is_awaited);
        let mut snapshot = Snapshot::clone(&next.snapshot);
        for &index in &late {
            snapshot.pools[index] = Arc::clone(&self.table.snapshot.pools[index]);
        }
        let table = self.table.with_members(Arc::new(snapshot), &ready, &outside());
        let (table, ready): (_, Arc<[usize]>) = (Arc::new(table), ready.into());
        // The monitors come before the workers, so that members have their health at the first request.
        let is_probed_anew = |index: &usize| {
            !is_probed_alike(&table.pools[*index].settings, &self.table.pools[*index].settings)
        };
        let probed: Vec<usize> = ready.iter().copied().filter(is_probed_anew).collect();
        self.monitors.apply_pools(&table, &probed);
        let then = next.snapshot.first_probes.then;
        for unknown in self.monitors.stop_waiting_for_pools(&table, then, &probed) {
            tell_unknown(&self.events, &unknown, then);
        }
        self.data_plane.put_members_in_force(Arc::clone(&table), &ready);
        self.packets.take_members(&table, &ready);
        self.observed.set_table(Arc::clone(&table));
        let before = std::mem::replace(&mut self.table, table);
        let changed = ready.iter().map(|index| &self.table.pools[*index]);
        let unusable = unusable(changed, &self.monitors.board());
        tell_unusable(&self.events, &unusable);
        next.configurations.retain(&late);
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
            self.retain_names();
        }
    }
}

/// The pools whose members differ, by their indexes.
fn differing(one: &Snapshot, other: &Snapshot) -> Vec<usize> {
    let both = one.pools.iter().zip(&other.pools).enumerate();
    let differ = |(_, (one, other)): &(usize, (&Arc<Pool>, &Arc<Pool>))| {
        !Arc::ptr_eq(one, other) && one.members != other.members
    };
    both.filter(differ).map(|(index, _)| index).collect()
}

/// Whether the members of two forms of a pool need the same probes.
fn is_probed_alike(one: &Pool, other: &Pool) -> bool {
    let is_alike = |(one, other): (&Member, &Member)| {
        one.address == other.address && one.name == other.name && one.monitors == other.monitors
    };
    one.members.len() == other.members.len() && one.members.iter().zip(&other.members).all(is_alike)
}

/// Whether a pool has a member now whose address it did not have before.
fn has_new_address(before: &Pool, now: &Pool) -> bool {
    let (first, last) = same_ends(&before.members, &now.members);
    let known = &before.members[first..before.members.len() - last];
    let known: HashSet<_> = known.iter().map(|member| &member.address).collect();
    let now = &now.members[first..now.members.len() - last];
    now.iter().any(|member| !known.contains(&member.address))
}

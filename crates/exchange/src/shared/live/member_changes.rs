//! A table after changes of members alone.

use std::sync::Arc;

use weir_config::snapshot::{MemberChanges, Snapshot};

use super::members::PoolBuildFacts;
use super::{LiveTable, is_keyed};
use crate::environment::Environment;

impl LiveTable {
    /// This table after a change of the members of some pools, by their indexes, and of nothing else. What is not about these
    /// members is shared with this table. `snapshot`: the snapshot of this table with these members.
    pub fn with_members(
        &self,
        snapshot: Arc<Snapshot>,
        changed: &[usize],
        outside: &Environment,
    ) -> Self {
        let changes = changed.iter().filter_map(|&index| {
            let (before, after) = (&self.pools[index].settings, &snapshot.pools[index]);
            MemberChanges::between(index, before, after)
        });
        let changes: Vec<MemberChanges> = changes.collect();
        self.with_changes(snapshot, &changes, outside)
    }

    /// As [`Self::with_members`], with what has changed: the members that stay are not compared.
    pub fn with_changes(
        &self,
        snapshot: Arc<Snapshot>,
        changes: &[MemberChanges],
        outside: &Environment,
    ) -> Self {
        let making = PoolBuildFacts { is_keyed: is_keyed(&snapshot), workers: self.workers };
        let mut pools = self.pools.clone();
        for changes in changes {
            let (before, settings) = (&self.pools[changes.pool], &snapshot.pools[changes.pool]);
            let after = before.changed_to(settings, changes, &self.departed, making);
            pools[changes.pool] = Arc::new(after);
        }
        if snapshot.data_plane.member_histograms {
            let new = changes.iter().flat_map(|it| it.new_ones(&pools[it.pool].members));
            new.for_each(|member| member.keep_times(Some(self.workers)));
        }
        let indexes = changes.iter().map(|changes| changes.pool);
        let has_other_labels = |index: &usize| !self.pools[*index].has_labels_of(&pools[*index]);
        let relabelled: Vec<usize> = indexes.filter(has_other_labels).collect();
        let stickies = self.stickies.with_members(&snapshot, &relabelled, outside);
        Self {
            virtual_servers: self.virtual_servers.clone(),
            tls: self.tls.clone(),
            stickies,
            key_limits: self.key_limits.clone(),
            key_hash: self.key_hash,
            logins: self.logins.clone(),
            rules: Arc::clone(&self.rules),
            waf_rules: self.waf_rules.clone(),
            departed: self.departed.after(&self.pools, &pools, changes),
            generation: self.generation + 1,
            workers: self.workers,
            pools,
            snapshot,
        }
    }
}

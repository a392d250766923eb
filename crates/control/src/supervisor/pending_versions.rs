//! Configurations that wait for the first probes of some pools, while other pools are changed.
//!
//! A version that changes members is in force when each pool that it or an earlier version has changed is, in that form or a
//! later one. Pools come into force one by one, and further versions may change them again. So each version is noted with its
//! pools, and reported as soon as all of them have come into force once.

use std::sync::Arc;

use crate::overlay::judge::Configuration;

/// Configurations that are not in force yet, oldest first, each with the pools that earlier ones do not wait for. There are
/// never more than pools, and one more: a configuration that waits for no further pool takes the place of the one before it.
#[derive(Debug, Default)]
pub(super) struct PendingVersions(Vec<(Arc<Configuration>, Vec<usize>)>);

impl PendingVersions {
    /// These configurations: at most one.
    pub(super) fn of(configuration: Option<Arc<Configuration>>) -> Self {
        Self(configuration.map(|it| (it, Vec::new())).into_iter().collect())
    }

    /// The newest one.
    pub(super) fn newest(&self) -> Option<&Arc<Configuration>> {
        self.0.last().map(|(configuration, _)| configuration)
    }

    /// Adds a configuration that changes these pools, by their indexes.
    pub(super) fn push(&mut self, configuration: Arc<Configuration>, pools: &[usize]) {
        let is_new = |pool: &usize| !self.0.iter().any(|(_, pools)| pools.contains(pool));
        let new: Vec<usize> = pools.iter().copied().filter(is_new).collect();
        match self.0.last_mut() {
            Some(last) if new.is_empty() => last.0 = configuration,
            _ => self.0.push((configuration, new)),
        }
    }

    /// Only these pools are not in force yet.
    pub(super) fn retain(&mut self, late: &[usize]) {
        self.0.iter_mut().for_each(|(_, pools)| pools.retain(|pool| late.contains(pool)));
    }

    /// Whether a configuration waits for no pool, nor do those before it.
    pub(super) fn has_finished(&self) -> bool {
        self.0.first().is_some_and(|(_, pools)| pools.is_empty())
    }

    /// Takes the configurations out that have come into force. Returns the newest of them.
    pub(super) fn take_finished(&mut self) -> Option<Arc<Configuration>> {
        let count = self.0.iter().take_while(|(_, pools)| pools.is_empty()).count();
        self.0.drain(..count).next_back().map(|(configuration, _)| configuration)
    }
}

#[cfg(test)]
mod tests {
    use weir_sources::{Files, Sources};

    use super::*;

    fn version(version: u64) -> Arc<Configuration> {
        let text = "virtual_servers: { a: { listen: 127.0.0.1:80, pool: p } }\n\
                    pools: { p: { members: [ 127.0.0.1:81 ] } }\n";
        let files = Arc::new(Files::of_text("weir.yaml", text));
        let config = Sources::new(&files, &Default::default()).check().config.expect("valid");
        Arc::new(Configuration { config, files, version })
    }

    fn finished(unfinished: &mut PendingVersions) -> Option<u64> {
        let has_finished = unfinished.has_finished();
        let version = unfinished.take_finished().map(|it| it.version);
        assert_eq!(has_finished, version.is_some());
        version
    }

    #[test]
    fn a_version_is_finished_when_each_of_its_pools_came_into_force_once() {
        let mut unfinished = PendingVersions::default();
        assert_eq!(
            (unfinished.newest().map(|it| it.version), finished(&mut unfinished)),
            (None, None)
        );
        unfinished.push(version(1), &[3]);
        unfinished.push(version(2), &[5]);
        unfinished.push(version(3), &[3]);
        assert_eq!((unfinished.newest().map(|it| it.version), unfinished.0.len()), (Some(3), 2));
        unfinished.retain(&[5]);
        assert_eq!(finished(&mut unfinished), Some(1));
        // Pool 3 is changed again before pool 5 is in force, and so on: no version waits for later ones.
        unfinished.push(version(4), &[3]);
        unfinished.retain(&[3]);
        assert_eq!(finished(&mut unfinished), Some(3));
        unfinished.push(version(5), &[5]);
        unfinished.retain(&[5]);
        assert_eq!(finished(&mut unfinished), Some(4));
        // A version without new probes does not overtake those before it.
        unfinished.push(version(6), &[9]);
        unfinished.retain(&[5]);
        assert_eq!(finished(&mut unfinished), None);
        unfinished.push(version(7), &[]);
        unfinished.retain(&[]);
        assert_eq!((finished(&mut unfinished), unfinished.0.len()), (Some(7), 0));
    }

    #[test]
    fn many_versions_take_no_more_room_than_pools() {
        let mut unfinished = PendingVersions::default();
        let one = version(1);
        for round in 0..100 {
            unfinished.push(Arc::clone(&one), &[round % 3]);
        }
        assert_eq!(unfinished.0.len(), 3);
    }
}

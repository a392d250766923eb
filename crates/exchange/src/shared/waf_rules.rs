//! The number of findings of each rule and check of the web application firewall.
//!
//! All workers write the same words, but only for requests with findings.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use weir_config::snapshot::Snapshot;
use weir_waf::checks::Check;
use weir_waf::inspection::Inspection;

/// The number of findings per rule, by the rules' ids, and per check.
#[derive(Debug, Clone, Default)]
pub struct WafRules {
    rules: Arc<[(u64, Arc<AtomicU64>)]>,
    checks: Arc<[AtomicU64]>,
}

impl WafRules {
    /// The rules of all virtual servers. A rule that existed before keeps its count.
    pub fn build(snapshot: &Snapshot, previous: Option<&Self>) -> Self {
        let mut seen = BTreeSet::new();
        let mut numbers = BTreeSet::new();
        for waf in snapshot.virtual_servers.iter().filter_map(|server| server.waf.as_ref()) {
            let rules = waf.common.view().rules();
            if seen.insert(std::ptr::from_ref(rules)) {
                numbers.extend(rules.rules.iter().map(|rule| rule.id));
            }
        }
        Self::of_numbers(numbers, previous)
    }

    fn of_numbers(numbers: BTreeSet<u64>, previous: Option<&Self>) -> Self {
        let count = |number| {
            let before = previous.and_then(|previous| previous.count_of(number));
            (number, before.map_or_else(Arc::default, Arc::clone))
        };
        let none = || Check::ALL.iter().map(|_| AtomicU64::new(0)).collect();
        let checks = previous.map_or_else(none, |previous| Arc::clone(&previous.checks));
        Self { rules: numbers.into_iter().map(count).collect(), checks }
    }

    fn count_of(&self, number: u64) -> Option<&Arc<AtomicU64>> {
        let at = self.rules.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        Some(&self.rules[at].1)
    }

    /// Counts the findings in a request.
    pub fn count(&self, inspection: &Inspection) {
        inspection.matches().iter().for_each(|found| self.count_one(found.id));
        inspection.findings().iter().for_each(|found| self.count_check(found.check));
    }

    /// Counts a finding of a rule.
    pub fn count_one(&self, number: u64) {
        if let Some(count) = self.count_of(number) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// Counts a finding of a check.
    pub fn count_check(&self, check: Check) {
        if let Some(count) = self.checks.get(check as usize) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// The checks with findings, and their numbers.
    pub fn found_by_checks(&self) -> impl Iterator<Item = (Check, u64)> {
        let counts = Check::ALL.into_iter().zip(self.checks.iter());
        let counts = counts.map(|(check, count)| (check, count.load(Relaxed)));
        counts.filter(|(_, count)| *count > 0)
    }

    /// The rules with findings, and their numbers.
    pub fn found(&self) -> impl Iterator<Item = (u64, u64)> {
        let counts = self.rules.iter().map(|(number, count)| (*number, count.load(Relaxed)));
        counts.filter(|(_, count)| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rules: &WafRules) -> Vec<(u64, u64)> {
        rules.found().collect()
    }

    #[test]
    fn counts_are_kept_by_number_as_long_as_there_is_such_a_rule() {
        let first = WafRules::of_numbers(BTreeSet::from([1, 942_100, 920_350]), None);
        assert_eq!(found(&first), []);
        for number in [942_100, 920_350, 942_100, 7] {
            first.count_one(number);
        }
        assert_eq!(found(&first), [(920_350, 1), (942_100, 2)]);
        let second = WafRules::of_numbers(BTreeSet::from([7, 942_100]), Some(&first));
        // A worker that has not received the new table yet.
        first.count_one(942_100);
        second.count_one(7);
        assert_eq!(found(&second), [(7, 1), (942_100, 3)]);
        first.count_check(Check::NulByte);
        let checked: Vec<_> = second.found_by_checks().collect();
        assert_eq!(checked, [(Check::NulByte, 1)], "kept like those of rules");
        let third = WafRules::of_numbers(BTreeSet::from([920_350]), Some(&second));
        assert_eq!(found(&third), []);
    }
}

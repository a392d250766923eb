//! Entries that may be due: rules are looked up once for each member, so that an entry costs a few comparisons.

use std::time::Duration;

use crate::layout;
use crate::plan::Timeouts;
use crate::table::DueFacts;

/// When flows of a member are due.
#[derive(Debug, Clone, Copy)]
pub struct Due {
    /// The member's flows end at once.
    is_unserved: bool,
    /// Entries with an older last packet are due, by state.
    idle_before_ns: u64,
    opening_before_ns: u64,
    closing_before_ns: u64,
}

impl Due {
    pub fn new(is_unserved: bool, timeouts: &Timeouts, now: Duration) -> Self {
        let before = |timeout: Duration| now.saturating_sub(timeout).as_nanos() as u64;
        Self {
            is_unserved,
            idle_before_ns: before(timeouts.idle),
            opening_before_ns: before(timeouts.handshake),
            closing_before_ns: before(timeouts.closing),
        }
    }

    /// Whether an entry may be due, so that its other half must be read: most are not.
    pub fn may_be(&self, entry: &DueFacts) -> bool {
        let is_opening = entry.protocol == libc::IPPROTO_TCP as u8
            && entry.acknowledged == 0
            && !entry.is_reverse();
        let is_closing = entry.state & layout::STATES_OF_ENDS != 0;
        self.is_unserved
            || entry.seen_ns < self.idle_before_ns
            || (is_opening && entry.seen_ns < self.opening_before_ns)
            || (is_closing && entry.seen_ns < self.closing_before_ns)
    }
}

/// What is known of members, by number.
#[derive(Debug, Default)]
pub struct Dues(Vec<Option<Due>>);

impl Dues {
    /// When flows of a member are due; `look` finds out, once.
    pub fn of(&mut self, member: u32, look: impl FnOnce() -> Due) -> Due {
        let at = member as usize;
        if let Some(Some(due)) = self.0.get(at) {
            return *due;
        }
        let due = look();
        // Programs enter no other number.
        if at < crate::plan::MEMBERS_MAX {
            self.0.resize(self.0.len().max(at + 1), None);
            self.0[at] = Some(due);
        }
        due
    }
}

/// Numbers of flows by member.
#[derive(Debug, Default)]
pub struct FlowCounts(Vec<u64>);

impl FlowCounts {
    pub fn add(&mut self, member: u32) {
        let at = member as usize;
        if at < crate::plan::MEMBERS_MAX {
            self.0.resize(self.0.len().max(at + 1), 0);
            self.0[at] += 1;
        }
    }

    pub fn of(&self, member: u32) -> u64 {
        self.0.get(member as usize).copied().unwrap_or(0)
    }

    /// Members with flows, and their number.
    pub fn all(&self) -> impl Iterator<Item = (u32, u64)> {
        (0..).zip(self.0.iter().copied()).filter(|(_, flows)| *flows > 0)
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1_000);

    fn entry(age_s: u64) -> DueFacts {
        DueFacts {
            protocol: libc::IPPROTO_TCP as u8,
            member: 7,
            flags: 0,
            state: 0,
            acknowledged: 1,
            seen_ns: (NOW - Duration::from_secs(age_s)).as_nanos() as u64,
        }
    }

    #[test]
    fn entries_are_due_by_their_state() {
        let timeouts = Timeouts {
            idle: Duration::from_secs(300),
            handshake: Duration::from_secs(10),
            closing: Duration::from_secs(3),
        };
        let due = Due::new(false, &timeouts, NOW);
        let opening = |age_s| DueFacts { acknowledged: 0, ..entry(age_s) };
        let reverse = |age_s| DueFacts { flags: layout::FLOW_REVERSE, ..opening(age_s) };
        let udp = |age_s| DueFacts { protocol: libc::IPPROTO_UDP as u8, ..opening(age_s) };
        let closing = |age_s| DueFacts { state: layout::STATE_FIN, ..entry(age_s) };
        let cases = [
            (entry(300), false),
            (entry(301), true),
            (opening(10), false),
            (opening(11), true),
            (reverse(11), false),
            (udp(11), false),
            (udp(301), true),
            (closing(3), false),
            (closing(4), true),
        ];
        for (entry, expected) in cases {
            assert_eq!(due.may_be(&entry), expected, "{entry:?}");
        }
        assert!(Due::new(true, &timeouts, NOW).may_be(&entry(0)));
    }

    #[test]
    fn a_member_is_looked_up_once() {
        let mut dues = Dues::default();
        let mut looks = 0;
        for _ in 0..3 {
            dues.of(5, || {
                looks += 1;
                Due::new(false, &Timeouts::default(), NOW)
            });
        }
        assert_eq!(looks, 1);
    }

    #[test]
    fn flows_are_counted_by_member() {
        let mut counts = FlowCounts::default();
        [3, 1, 3].into_iter().for_each(|member| counts.add(member));
        counts.add(u32::MAX);
        assert_eq!(counts.all().collect::<Vec<_>>(), [(1, 1), (3, 2)]);
        assert_eq!((counts.of(3), counts.of(9)), (2, 0));
    }
}

//! Priority groups: members of lower priority take traffic only if too few members of higher priority are active.
//!
//! Members of equal priority form a group; the highest priority is preferred. Traffic goes to the highest group. If fewer
//! than `active_members_min` of its members are active, the next group's members take traffic *too*, and so on until enough
//! members are active: the priority group activation of BIG-IP.
//!
//! A member is active if it could take new traffic: enabled, up, not ejected. **A full member counts as active**: lower
//! groups replace failed members, and are not for overload (a pool's queue and `connections_max` are for overload).
//! Otherwise a group would be activated and deactivated with every request at the limit.

/// The facts that decide whether a member takes traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberPriority {
    /// The priority; a higher one is preferred.
    pub priority: u16,
    /// Whether the member could take new traffic.
    pub active: bool,
}

/// The lowest priority that takes traffic: active members of this or a higher priority do. `None` if no member is active. An
/// `active_members_min` of 0 counts as 1.
///
/// Cost: O(n) per group that is activated.
pub fn lowest_in_use(members: &[MemberPriority], active_members_min: usize) -> Option<u16> {
    let active = || members.iter().filter(|member| member.active);
    let mut lowest = None;
    let mut enlisted = 0;
    while enlisted < active_members_min.max(1) {
        let next = active()
            .map(|member| member.priority)
            .filter(|&priority| lowest.is_none_or(|lowest| priority < lowest))
            .max();
        let Some(next) = next else { break };
        enlisted += active().filter(|member| member.priority == next).count();
        lowest = Some(next);
    }
    lowest
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_testing::Random;

    /// Groups as text: `9++- 5+` is priority 9 with two active members and one inactive, then 5 with one.
    fn members(groups: &str) -> Vec<MemberPriority> {
        groups
            .split(' ')
            .flat_map(|group| {
                let (priority, members) = group.split_at(1);
                let priority = priority.parse().unwrap();
                members.chars().map(move |sign| MemberPriority { priority, active: sign == '+' })
            })
            .collect()
    }

    #[test]
    fn groups_are_activated_in_addition() {
        let check = |groups: &str, active_members_min, expected| {
            assert_eq!(lowest_in_use(&members(groups), active_members_min), expected, "{groups}");
        };
        check("0+", 1, Some(0));
        check("0-", 1, None);
        check("9++ 5++", 1, Some(9));
        check("9++ 5++", 2, Some(9));
        check("9++ 5++", 3, Some(5));
        check("5++ 9+-", 2, Some(5));
        check("9-- 5++", 1, Some(5));
        check("9-- 5--", 1, None);
        // Active members of higher groups are counted, too.
        check("9+- 5+- 1++", 2, Some(5));
        check("9+- 5-- 1++", 2, Some(1));
        // All groups, if there are too few active members.
        check("9+- 5+-", 7, Some(5));
        check("9+- 5--", 7, Some(9));
        check("9+- 5+", 0, Some(9));
        assert_eq!(lowest_in_use(&[], 1), None);
    }

    /// Members fail and recover: enough active members are in use if there are enough, and no group is in use without need.
    #[test]
    fn enough_and_not_more() {
        for seed in 0..256 {
            let mut random = Random::new(seed);
            let groups = 1 + random.below(5);
            let mut members: Vec<MemberPriority> = (0..1 + random.below(30))
                .map(|_| MemberPriority { priority: random.below(groups) as u16, active: true })
                .collect();
            let active_members_min = random.below(6);
            for _ in 0..100 {
                let index = random.below(members.len());
                members[index].active = random.percent(50);
                let lowest = lowest_in_use(&members, active_members_min);
                let from = |priority: u32| {
                    let in_use = |member: &&MemberPriority| {
                        member.active && u32::from(member.priority) >= priority
                    };
                    members.iter().filter(in_use).count()
                };
                let Some(lowest) = lowest else {
                    assert_eq!(from(0), 0, "seed {seed}");
                    continue;
                };
                let wanted = active_members_min.max(1);
                let in_use = from(u32::from(lowest));
                assert!(in_use >= wanted || in_use == from(0), "seed {seed}");
                assert!(from(u32::from(lowest) + 1) < wanted, "seed {seed}");
            }
        }
    }
}

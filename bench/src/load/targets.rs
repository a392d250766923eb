//! Rotation of targets: users rotate over addresses, and requests over the targets of an address.

use std::net::SocketAddr;

use super::plan::Target;

/// Targets grouped by address, each group with its rotation.
#[derive(Debug)]
pub struct Rotation {
    groups: Vec<Group>,
    /// Start of the thread's rotation, so that the users of different threads begin with different addresses.
    shift: usize,
}

#[derive(Debug)]
struct Group {
    address: SocketAddr,
    targets: Vec<WeightedTarget>,
}

/// Smooth weighted round robin, as in nginx: in each turn every target gains its weight; the target with the highest
/// value is chosen and loses the sum of the weights.
#[derive(Debug)]
struct WeightedTarget {
    target: u32,
    weight: i64,
    credit: i64,
}

impl Rotation {
    /// The rotation of one thread.
    pub fn new(targets: &[Target], thread: usize) -> Self {
        let mut groups: Vec<Group> = Vec::new();
        for (index, target) in targets.iter().enumerate() {
            let weighted = WeightedTarget {
                target: index as u32,
                weight: i64::from(target.weight),
                credit: 0,
            };
            match groups.iter_mut().find(|group| group.address == target.address) {
                Some(group) => group.targets.push(weighted),
                None => groups.push(Group { address: target.address, targets: vec![weighted] }),
            }
        }
        Self { groups, shift: thread }
    }

    /// The group of the thread's user `index`: users rotate over the groups.
    pub fn group_of(&self, index: usize) -> u32 {
        ((index + self.shift) % self.groups.len().max(1)) as u32
    }

    /// The address of a group.
    pub fn address(&self, group: u32) -> SocketAddr {
        self.groups[group as usize].address
    }

    /// The next target of a group.
    #[inline]
    pub fn next(&mut self, group: u32) -> u32 {
        let targets = &mut self.groups[group as usize].targets;
        if let [only] = targets.as_slice() {
            return only.target;
        }
        let mut total = 0;
        for weighted in targets.iter_mut() {
            weighted.credit += weighted.weight;
            total += weighted.weight;
        }
        let richest =
            (0..targets.len()).max_by_key(|&index| (targets[index].credit, -(index as i64)));
        let richest = &mut targets[richest.unwrap_or(0)];
        richest.credit -= total;
        richest.target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(port: u16, weight: u32) -> Target {
        Target {
            address: SocketAddr::from(([127, 0, 0, 1], port)),
            request: Vec::new(),
            last_request: Vec::new(),
            lines: super::super::plan::RequestLines::default(),
            is_head: false,
            weight,
        }
    }

    #[test]
    fn targets_are_asked_for_by_weight_and_evenly_mixed() {
        let mut rotation = Rotation::new(&[target(1, 4), target(2, 1), target(1, 1)], 0);
        let taken: Vec<u32> = (0..10).map(|_| rotation.next(0)).collect();
        assert_eq!(taken, [0, 0, 2, 0, 0, 0, 0, 2, 0, 0]);
        assert_eq!((rotation.next(1), rotation.next(1)), (1, 1));
    }

    #[test]
    fn users_take_turns_over_addresses() {
        let targets = [target(1, 1), target(2, 1), target(3, 1), target(1, 1)];
        let rotation = Rotation::new(&targets, 0);
        let groups: Vec<u32> = (0..6).map(|user| rotation.group_of(user)).collect();
        assert_eq!(groups, [0, 1, 2, 0, 1, 2]);
        assert_eq!(Rotation::new(&targets, 1).group_of(0), 1);
    }
}

use super::*;
use weir_testing::Random;

fn name(member: usize) -> String {
    format!("10.{}.{}.{}:8080", member >> 16, member >> 8 & 255, member & 255)
}

/// The table of members by number and weight.
fn table(members: &[(usize, u16)]) -> MaglevTable {
    let names: Vec<String> = members.iter().map(|&(member, _)| name(member)).collect();
    let named: Vec<NamedMember> = names
        .iter()
        .zip(members)
        .map(|(name, &(_, weight))| NamedMember { name, weight })
        .collect();
    MaglevTable::new(&named)
}

fn equal(members: usize) -> Vec<(usize, u16)> {
    (0..members).map(|member| (member, 1)).collect()
}

/// The numbers of the slots' owners.
fn owners(members: &[(usize, u16)]) -> Vec<usize> {
    table(members).slots.iter().map(|&place| members[place as usize].0).collect()
}

/// Percentage of all slots that change their owner, excluding slots of `moving`.
fn disruption_percent(before: &[usize], after: &[usize], moving: usize) -> f64 {
    let moved = before
        .iter()
        .zip(after)
        .filter(|&(was, is)| was != is && *was != moving && *is != moving)
        .count();
    100.0 * moved as f64 / before.len() as f64
}

#[test]
fn sizes_are_primes() {
    for slots in SLOTS {
        assert!(
            (2..).take_while(|factor| factor * factor <= slots).all(|factor| slots % factor != 0)
        );
    }
    let check = |members, expected| assert_eq!(slots_for(members), expected, "{members}");
    check(1, 65_537);
    check(1_310, 65_537);
    check(1_311, 524_309);
    check(10_486, 524_309);
    check(10_487, 4_194_319);
    check(50_000_000, 4_194_319);
}

#[test]
fn shares_are_exact_to_a_slot() {
    for seed in 0..8 {
        let mut random = Random::new(seed);
        let members: Vec<(usize, u16)> = (0..1 + random.below(100))
            .map(|member| (member, if seed == 0 { 1 } else { random.below(300) as u16 }))
            .collect();
        let table = table(&members);
        let mut counts = vec![0u32; members.len()];
        table.slots.iter().for_each(|&place| counts[place as usize] += 1);
        let weight = |index: usize| f64::from(clamp_weight(members[index].1));
        let total: f64 = (0..members.len()).map(weight).sum();
        for (index, &count) in counts.iter().enumerate() {
            let share = table.slots.len() as f64 * weight(index) / total;
            assert!((f64::from(count) - share).abs() < 1.0, "seed {seed}: {count} of {share}");
        }
    }
}

#[test]
fn the_order_of_the_configuration_is_of_no_account() {
    let mut members: Vec<(usize, u16)> =
        (0..40).map(|member| (member, 1 + member as u16 % 3)).collect();
    let before = owners(&members);
    members.reverse();
    members.swap(3, 17);
    assert_eq!(owners(&members), before);
}

/// Prints the figures of the module's documentation:
/// `cargo test -p weir-core disruption_and_spread -- --nocapture`.
#[test]
fn disruption_and_spread() {
    let check = |members: usize, weights: [u16; 2], bound_percent: f64| {
        let mut all: Vec<(usize, u16)> =
            (0..members).map(|member| (member, weights[member % 2])).collect();
        let before = owners(&all);
        let mut worst: (f64, f64) = (0.0, 0.0);
        for round in 0..if members > 100 { 1 } else { 4 } {
            let gone = all.remove(round * members / 4);
            let without = owners(&all);
            let leaves = disruption_percent(&before, &without, gone.0);
            all.insert(round * members / 4, gone);
            all.push((members, 1));
            let joins = disruption_percent(&before, &owners(&all), members);
            all.pop();
            worst = (worst.0.max(leaves), worst.1.max(joins));
        }
        println!(
            "n = {members}, weights {weights:?}: leaves {:.2}%, joins {:.2}% (1/n = {:.2}%)",
            worst.0,
            worst.1,
            100.0 / members as f64
        );
        assert!(worst.0 <= bound_percent && worst.1 <= bound_percent, "n = {members}: {worst:?}");
    };
    check(3, [1, 1], 0.5);
    check(10, [1, 1], 0.5);
    check(10, [1, 5], 0.5);
    check(100, [1, 1], 1.0);
    check(1_300, [1, 1], 1.0);
}

/// Sequential keys, such as addresses, spread like random ones.
#[test]
fn keys_spread() {
    let members = 20;
    let table = table(&equal(members));
    for attempt in 0..3 {
        let mut counts = vec![0usize; members];
        let mut again = 0;
        for key in 0..100_000 {
            let member = table.member(key, attempt).unwrap();
            counts[member as usize] += 1;
            again += usize::from(table.member(key, attempt + 1) == Some(member));
        }
        let expected = 100_000 / members;
        assert!(counts.iter().all(|count| count.abs_diff(expected) < 5 * 71), "{counts:?}");
        // The next attempt is independent of this one.
        assert!(again.abs_diff(expected) < 5 * 71, "{again}");
    }
}

#[test]
fn odd_pools() {
    assert_eq!(MaglevTable::new(&[]).member(5, 0), None);
    let one = table(&[(7, 0)]);
    assert!((0..100).all(|key| one.member(key, key as u32) == Some(0)));
    // With the same name twice, both get their share.
    let twice = [NamedMember { name: "a:1", weight: 1 }, NamedMember { name: "a:1", weight: 1 }];
    let twice = MaglevTable::new(&twice);
    let second = twice.slots.iter().filter(|&&place| place == 1).count();
    assert!(second.abs_diff(twice.slots.len() / 2) <= 1);
    assert_eq!(twice.members(), 2);
}

/// The results of every version of weir: they must never change.
#[test]
fn keys_lead_where_they_always_led() {
    let table = table(&equal(10));
    let members: Vec<u32> = (0..10).map(|key| table.member(key, 0).unwrap()).collect();
    assert_eq!(members, [1, 3, 1, 2, 2, 0, 5, 4, 7, 3]);
}

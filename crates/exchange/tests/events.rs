//! Transactions in a simulated world: whatever events occur in whatever order, each transaction ends exactly once.

mod simulation;

use std::panic::catch_unwind;

use simulation::choices::Sequences;
use simulation::model::Tally;
use simulation::plan::Plan;
use simulation::run::{run, run_plan};
use weir_exchange::termination::Termination::{self, *};
use weir_testing::Random;

/// The number of seeds, unless `WEIR_TEST_EVENTS_SEEDS` sets it.
const SEEDS: u64 = 2_000;
/// The number of consecutive transactions per seed.
const TRANSACTIONS: usize = 6;
/// The number of events for which every sequence is tested.
const EVENTS: usize = 3;

/// Termination reasons that must occur among the random transactions.
const ENDS: [Termination; 15] = [
    Complete,
    ClientAbort,
    ClientTimeout,
    ClientMalformed,
    ClientLimit,
    MemberConnect,
    MemberTimeout,
    MemberAbort,
    MemberMalformed,
    QueueTimeout,
    TunnelTimeout,
    Waf,
    Policy,
    IdleTimeout,
    Stopped,
];

#[test]
fn whatever_a_seed_chooses() {
    let seeds = std::env::var("WEIR_TEST_EVENTS_SEEDS").ok();
    let seeds = seeds.map_or(SEEDS, |seeds| seeds.parse().expect("a number"));
    let mut tally = Tally::default();
    for seed in 1..=seeds {
        let run = || {
            let mut tally = Tally::default();
            run(&mut Random::new(seed), TRANSACTIONS, &mut tally);
            tally
        };
        let ran = catch_unwind(run).unwrap_or_else(|_| panic!("seed {seed}"));
        tally.steps += ran.steps;
        tally.note_inspections(ran.came_back);
        ran.ends.into_iter().for_each(|why| tally.note(why));
    }
    println!("{} events of {seeds} seeds", tally.steps);
    assert!(tally.came_back.iter().all(|count| *count > 100), "{:?}", tally.came_back);
    for why in ENDS {
        assert!(tally.ends.contains(&why), "never happened: {why:?}");
    }
}

#[test]
fn whatever_can_happen_at_first() {
    let mut tally = Tally::default();
    for plan in Plan::few() {
        for is_fair in [false, true] {
            let mut sequences = Sequences::new(EVENTS);
            loop {
                run_plan(plan, &mut sequences, is_fair, &mut tally);
                if !sequences.advance() {
                    break;
                }
            }
        }
    }
    println!("{} events", tally.steps);
}

//! Transactions in a simulated world: whatever events occur in whatever order, each transaction ends exactly once.

mod simulation;

use std::panic::catch_unwind;
use std::sync::{Mutex, PoisonError};

use simulation::cells::Cells;
use simulation::choices::Sequences;
use simulation::model::Tally;
use simulation::plan::Plan;
use simulation::run::{begun, run, run_plan};
use weir_exchange::termination::Termination::{self, *};
use weir_testing::Random;

/// The number of seeds, unless `WEIR_TEST_EVENTS_SEEDS` sets it.
const SEEDS: u64 = 2_000;
/// The number of seeds with which the table is made: some events happen seldom.
const TABLE_SEEDS: u64 = 30_000;
/// The table of states and events, with the states that follow.
const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/phases.md");
/// The number of tests that reach its rows.
const TESTS: usize = 2;
/// The number of consecutive transactions per seed.
const TRANSACTIONS: usize = 6;
/// The number of events for which every sequence is tested.
const EVENTS: usize = 3;
/// The same, behind first events.
const FURTHER: usize = 2;

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
    let usual = if is_making_the_table() { TABLE_SEEDS } else { SEEDS };
    let seeds = seeds.map_or(usual, |seeds| seeds.parse().expect("a number"));
    let (mut tally, mut seldom) = (Tally::default(), Cells::NONE);
    for seed in 1..=seeds {
        let run = || {
            let mut tally = Tally::default();
            run(&mut Random::new(seed), TRANSACTIONS, &mut tally);
            tally
        };
        let ran = catch_unwind(run).unwrap_or_else(|_| panic!("seed {seed}"));
        tally.steps += ran.steps;
        tally.note_inspections(ran.came_back);
        let cells = if seed <= SEEDS { &mut tally.cells } else { &mut seldom };
        cells.add(ran.cells);
        ran.ends.into_iter().for_each(|why| tally.note(why));
    }
    println!("{} events of {seeds} seeds", tally.steps);
    assert!(tally.came_back.iter().all(|count| *count > 100), "{:?}", tally.came_back);
    for why in ENDS {
        assert!(tally.ends.contains(&why), "never happened: {why:?}");
    }
    compare(tally.cells, seldom);
}

#[test]
fn whatever_can_happen_at_first() {
    let mut tally = Tally::default();
    let few = Plan::few().into_iter().map(|plan| (plan, [].as_slice()));
    for plan in begun().into_iter().chain(few) {
        for is_fair in [false, true] {
            let mut sequences = Sequences::new(if plan.1.is_empty() { EVENTS } else { FURTHER });
            loop {
                run_plan(plan, &mut sequences, is_fair, &mut tally);
                if !sequences.advance() {
                    break;
                }
            }
        }
    }
    println!("{} events", tally.steps);
    compare(tally.cells, Cells::NONE);
}

/// Compares the events of each state with the table, or makes the table. `seldom`: those that not each run of the tests reaches. The
/// test that ends last looks for what the table has and none has reached.
fn compare(often: Cells, seldom: Cells) {
    /// What was observed often, what was observed, and by how many tests.
    static SEEN: Mutex<(Cells, Cells, usize)> = Mutex::new((Cells::NONE, Cells::NONE, 0));
    let (all_often, all, tests) = &mut *SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let table = std::fs::read_to_string(TABLE).expect("the table of phases");
    let mut missing = often.missing_in(&table);
    missing.extend(seldom.missing_in(&table));
    all.add(often.clone());
    all.add(seldom);
    all_often.add(often);
    *tests += 1;
    if is_making_the_table() {
        let text = table.split_once("\n| state ").map_or(&*table, |(text, _)| text);
        let table = format!("{text}\n{}", all.table(all_often));
        return std::fs::write(TABLE, table).expect("a written table");
    }
    assert!(
        missing.is_empty(),
        "not in phases.md: {missing:#?}: if this may happen, run `WEIR_UPDATE_REFERENCE=1 cargo test -p weir-exchange --test events`"
    );
    if *tests == TESTS {
        let unreached = all.unreached_of(&table);
        assert!(unreached.is_empty(), "in phases.md, and never happened: {unreached:#?}");
    }
}

/// Whether the table of states and events is to be made.
fn is_making_the_table() -> bool {
    std::env::var_os("WEIR_UPDATE_REFERENCE").is_some()
}

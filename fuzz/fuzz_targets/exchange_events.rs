#![no_main]
//! Transactions in a simulated environment: with any events in any order, each transaction ends exactly once.

#[path = "../../crates/exchange/tests/simulation/mod.rs"]
mod simulation;

use simulation::choices::Bytes;
use simulation::model::Tally;
use simulation::run::run;

/// Maximum number of consecutive transactions.
const TRANSACTIONS_MAX: usize = 8;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    run(&mut Bytes(input), TRANSACTIONS_MAX, &mut Tally::default());
});

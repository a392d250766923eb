//! A whole worker over a kernel in memory, run by seeds.
//!
//! A run is a small world: clients, a worker of the data path, members, and a network between them that is as unkind as
//! networks may be ([`weir_event_loop::memory`]). What happens follows from the seed alone. Clients and members check
//! every byte ([`weir_tagged`]); the run checks that everything comes to an end, that nothing is left of it, and that no
//! memory grows. Time is the run's own, so that minutes pass in milliseconds.

#[cfg(test)]
mod allocations;
mod arguments;
mod datagrams;
mod members;
mod memory;
mod network;
mod report;
mod run;
mod scene;
#[cfg(test)]
mod scripts;
mod tasks;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

fn main() -> ExitCode {
    let arguments = arguments::Arguments::read();
    match report::simulate(&arguments) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

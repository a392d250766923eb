//! A simulation of a whole worker on a simulated kernel, controlled by seeds.
//!
//! A run simulates clients, a worker of the data path, members, and a network between them that is as unreliable as real
//! networks ([`weir_event_loop::memory`]). The seed alone determines all events. Clients and members check every byte
//! ([`weir_tagged`]). The run checks that everything ends, that no state remains, and that memory does not grow. Time is
//! simulated too, so minutes pass in milliseconds.

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
static ALLOCATOR: memory::CountingAllocator = memory::CountingAllocator;

fn main() -> ExitCode {
    let arguments = arguments::Arguments::read();
    match report::simulate(&arguments) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

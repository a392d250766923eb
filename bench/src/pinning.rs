//! Pinning of threads to cores.

use std::io;

use rustix::thread::{CpuSet, sched_setaffinity};

/// A core that a thread cannot run on.
#[derive(Debug)]
pub struct PinError {
    /// The core.
    pub core: usize,
    /// The system's error.
    pub source: io::Error,
}

/// Pins the calling thread, number `thread` of several, to its core of `cores` in turn. Does nothing if `cores` is
/// empty.
pub fn pin_thread(cores: &[usize], thread: usize) -> Result<(), PinError> {
    if cores.is_empty() {
        return Ok(());
    }
    let core = cores[thread % cores.len()];
    let mut set = CpuSet::new();
    // A core number beyond the set leaves the set empty, which the kernel rejects.
    if core < CpuSet::MAX_CPU {
        set.set(core);
    }
    sched_setaffinity(None, &set).map_err(|error| PinError { core, source: error.into() })
}

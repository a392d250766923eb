//! Threads that stay on a core of their own.

use std::io;

use rustix::thread::{CpuSet, sched_setaffinity};

/// A core that a thread cannot run on.
#[derive(Debug)]
pub struct PinError {
    /// Which.
    pub core: usize,
    /// The system's error.
    pub source: io::Error,
}

/// Keeps the calling thread, the `thread`th of several, on its core of `cores`; without cores it stays
/// where the system puts it.
pub fn pin_thread(cores: &[usize], thread: usize) -> Result<(), PinError> {
    if cores.is_empty() {
        return Ok(());
    }
    let core = cores[thread % cores.len()];
    let mut set = CpuSet::new();
    // A core beyond the set leaves it empty, which the system refuses.
    if core < CpuSet::MAX_CPU {
        set.set(core);
    }
    sched_setaffinity(None, &set).map_err(|error| PinError { core, source: error.into() })
}

//! The CPU time of a piece of work, for tests that work grows no faster than its input.

use std::time::{Duration, Instant};

/// The CPU time that this thread spends on `work`. It does not grow with the load of the machine, as elapsed time does. On a
/// kernel without these accounts (`CONFIG_SCHED_INFO`) it is the elapsed time.
pub fn cpu_time_of(work: impl FnOnce()) -> Duration {
    let (before, begun) = (cpu_time(), Instant::now());
    work();
    match (before, cpu_time()) {
        (Some(before), Some(after)) => after - before,
        _ => begun.elapsed(),
    }
}

/// The CPU time of this thread so far; `None`: the kernel does not tell.
fn cpu_time() -> Option<Duration> {
    // "CPU time in ns", "time in run queues in ns", "number of time slices".
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let ns = text.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(ns))
}

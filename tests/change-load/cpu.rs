//! The CPU time of weir's threads.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// The CPU time of a process.
#[derive(Debug)]
pub struct ThreadTimes {
    /// By the names of threads, in ns.
    by_thread: BTreeMap<String, f64>,
    /// What the numbers are divided by.
    of: f64,
}

/// The names of workers' threads begin so; a number follows.
const WORKER: &str = "weir-";

impl ThreadTimes {
    /// What the threads of a process have used so far.
    pub fn of(pid: u32) -> Self {
        let mut by_thread = BTreeMap::new();
        let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for thread in threads {
            let read = |file| fs::read_to_string(thread.path().join(file)).unwrap_or_default();
            // "CPU time in ns", "time in run queues in ns", "number of time slices".
            let (name, used) = (read("comm"), read("schedstat"));
            let used = used.split(' ').next().and_then(|ns| ns.parse::<f64>().ok());
            *by_thread.entry(name.trim().to_owned()).or_default() += used.unwrap_or(0.0);
        }
        Self { by_thread, of: 1.0 }
    }

    /// What they have used since then, in this time.
    pub fn since(&self, before: &Self, time: Duration) -> Self {
        let since = |(name, ns): (&String, &f64)| {
            (name.clone(), ns - before.by_thread.get(name).unwrap_or(&0.0))
        };
        let by_thread = self.by_thread.iter().map(since).collect();
        Self { by_thread, of: time.as_nanos() as f64 }
    }

    /// The workers together, the control plane together, and each thread by its name, in percent of a core.
    pub fn rows(&self) -> Vec<(String, f64)> {
        let sum = |of_workers: bool| {
            let threads = self.by_thread.iter().filter(|(name, _)| is_worker(name) == of_workers);
            self.share(threads.map(|(_, ns)| ns).sum())
        };
        let mut rows = vec![(ALL_WORKERS.to_owned(), sum(true)), (CONTROL.to_owned(), sum(false))];
        rows.extend(self.by_thread.iter().map(|(name, ns)| (name.clone(), self.share(*ns))));
        rows
    }

    fn share(&self, ns: f64) -> f64 {
        100.0 * ns / self.of
    }
}

const ALL_WORKERS: &str = "all workers";
const CONTROL: &str = "all control";

fn is_worker(name: &str) -> bool {
    name.strip_prefix(WORKER).is_some_and(|rest| rest.bytes().all(|it| it.is_ascii_digit()))
}

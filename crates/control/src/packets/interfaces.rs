//! Whether interfaces that packets are wanted of come, go, or come back as others.

use std::time::{Duration, Instant};

use weir_packet::RungsAllowed;

/// How often they are looked at.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Interfaces that packets are wanted of, with their numbers when they were attached to last.
#[derive(Debug)]
pub(super) struct Interfaces {
    pub names: Vec<String>,
    pub allowed: RungsAllowed,
    /// `None`: it is not there.
    numbers: Vec<Option<u32>>,
    looked_at: Instant,
}

impl Default for Interfaces {
    fn default() -> Self {
        Self::look(Vec::new(), RungsAllowed { xdp: false, tcx: false })
    }
}

impl Interfaces {
    pub fn look(names: Vec<String>, allowed: RungsAllowed) -> Self {
        let numbers = numbers(&names);
        Self { names, allowed, numbers, looked_at: Instant::now() }
    }

    /// Whether one came or went since this was asked last. It looks once a second.
    pub fn have_changed(&mut self) -> bool {
        if self.looked_at.elapsed() < LOOK_INTERVAL {
            return false;
        }
        self.looked_at = Instant::now();
        let numbers = numbers(&self.names);
        let have_changed = numbers != self.numbers;
        self.numbers = numbers;
        have_changed
    }
}

fn numbers(names: &[String]) -> Vec<Option<u32>> {
    names.iter().map(|name| weir_packet::index_of(name).ok()).collect()
}

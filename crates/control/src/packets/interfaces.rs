//! Detects interfaces of the packet path that appear, disappear, or are replaced.

use std::time::{Duration, Instant};

use weir_packet::{InterfaceState, RungsAllowed};

/// The interval between checks.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The interfaces of the packet path, as they were when the programs were last attached.
#[derive(Debug)]
pub(super) struct Interfaces {
    pub names: Vec<String>,
    pub allowed: RungsAllowed,
    seen: InterfaceState,
    looked_at: Instant,
}

impl Default for Interfaces {
    fn default() -> Self {
        Self::look(Vec::new(), RungsAllowed { xdp: false, tcx: false })
    }
}

impl Interfaces {
    pub fn look(names: Vec<String>, allowed: RungsAllowed) -> Self {
        let seen = weir_packet::look(&names);
        Self { names, allowed, seen, looked_at: Instant::now() }
    }

    /// Whether an interface has appeared, disappeared or been replaced since the last check. Checks once per second.
    pub fn have_changed(&mut self) -> bool {
        if self.looked_at.elapsed() < LOOK_INTERVAL {
            return false;
        }
        self.looked_at = Instant::now();
        let seen = weir_packet::look(&self.names);
        let have_changed = seen != self.seen;
        self.seen = seen;
        have_changed
    }
}

//! Whether interfaces that packets are wanted of come, go, or come back as others.

use std::time::{Duration, Instant};

use weir_packet::{RungsAllowed, Seen};

/// How often they are looked at.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Interfaces that packets are wanted of, as they were when they were attached to last.
#[derive(Debug)]
pub(super) struct Interfaces {
    pub names: Vec<String>,
    pub allowed: RungsAllowed,
    seen: Seen,
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

    /// Whether one came, went or became another since this was asked last. It looks once a second.
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

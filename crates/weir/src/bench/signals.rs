//! SIGINT and SIGTERM.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator;

/// Exit status of a command ended by a second signal.
const EXIT_SIGNALLED: i32 = 130;

/// Waits for SIGINT or SIGTERM.
pub struct Signals(iterator::Signals);

impl Signals {
    /// Starts to collect signals.
    pub fn new() -> io::Result<Self> {
        iterator::Signals::new([SIGINT, SIGTERM]).map(Self)
    }

    /// Returns after a signal.
    pub fn wait(&mut self) {
        self.0.forever().next();
    }
}

/// The first signal sets `stop`. The second ends the process, in case the command does not react to `stop`.
pub fn stop_at_signal(stop: &Arc<AtomicBool>) -> io::Result<()> {
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, EXIT_SIGNALLED, stop.clone())?;
        flag::register(signal, stop.clone())?;
    }
    Ok(())
}

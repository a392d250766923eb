//! SIGINT and SIGTERM.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator;

/// Exit status after a second signal, which ends the command at once.
const EXIT_SIGNALLED: i32 = 130;

/// Waits for SIGINT or SIGTERM.
pub struct Signals(iterator::Signals);

impl Signals {
    /// Begins to catch the signals.
    pub fn new() -> io::Result<Self> {
        iterator::Signals::new([SIGINT, SIGTERM]).map(Self)
    }

    /// Waits for a signal.
    pub fn wait(&mut self) {
        self.0.forever().next();
    }
}

/// Sets `stop` at the first signal, and ends the process at the second, in case the first has no effect.
pub fn stop_at_signal(stop: &Arc<AtomicBool>) -> io::Result<()> {
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, EXIT_SIGNALLED, stop.clone())?;
        flag::register(signal, stop.clone())?;
    }
    Ok(())
}

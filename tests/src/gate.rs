//! A gate at which members wait until the test opens it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Shut at first. Whoever waits takes no processor time, so hundreds of connections can wait on a busy machine.
#[derive(Debug, Default)]
pub struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    /// Lets all pass, now and from now on.
    pub fn open(&self) {
        *self.locked() = true;
        self.opened.notify_all();
    }

    /// Holds whoever comes from now on.
    pub fn shut(&self) {
        *self.locked() = false;
    }

    /// Waits until the gate is open, or for [`crate::STEP_TIMEOUT`].
    pub fn pass(&self) {
        let is_shut = |is_open: &mut bool| !*is_open;
        drop(self.opened.wait_timeout_while(self.locked(), crate::STEP_TIMEOUT, is_shut));
    }

    fn locked(&self) -> MutexGuard<'_, bool> {
        self.is_open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

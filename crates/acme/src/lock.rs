//! The lock that allows one process to order. If two processes share a `state_dir`, as in an upgrade, the second waits.

use std::fs::File;
use std::sync::{Mutex, PoisonError};

/// A lock on a file. It is acquired when it is first needed, and released on drop.
#[derive(Debug)]
pub struct OrderLock {
    file: File,
    is_held: Mutex<bool>,
}

impl OrderLock {
    /// A lock on this file, not acquired yet.
    pub fn new(file: File) -> Self {
        Self { file, is_held: Mutex::new(false) }
    }

    /// Acquires the lock if it is free. Returns whether this process holds it.
    pub fn is_held(&self) -> bool {
        let mut is_held = self.is_held.lock().unwrap_or_else(PoisonError::into_inner);
        if !*is_held {
            *is_held = self.file.try_lock().is_ok();
        }
        *is_held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_it_at_a_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lock");
        let open = || File::options().create(true).append(true).open(&path).expect("a file");
        let (one, other) = (OrderLock::new(open()), OrderLock::new(open()));
        assert!(one.is_held() && one.is_held());
        assert!(!other.is_held());
        drop(one);
        assert!(other.is_held());
    }
}

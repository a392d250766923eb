//! The lock of the process that orders: of two that share a `state_dir`, as in an upgrade, one waits.

use std::fs::File;
use std::sync::{Mutex, PoisonError};

/// A lock on a file, taken when first needed, and let go when this is dropped.
#[derive(Debug)]
pub struct OrderLock {
    file: File,
    is_held: Mutex<bool>,
}

impl OrderLock {
    /// A lock on this file, which is not taken yet.
    pub fn new(file: File) -> Self {
        Self { file, is_held: Mutex::new(false) }
    }

    /// Takes the lock if nobody has it. Whether this process has it now.
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

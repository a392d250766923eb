//! One run at a time on a machine: concurrent runs would disturb each other's measurements.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::RunError;

/// The lock file; it stays, empty.
const FILE_NAME: &str = "weir-bench-run.lock";
/// The folder shared by all users of a machine; otherwise the user's own temporary folder.
const FOLDER: &str = "/run/lock";

/// The lock, held for the duration of a run. The kernel releases it when the process ends, for whatever reason.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of this machine.
    pub fn take() -> Result<Self, RunError> {
        let all_users = Path::new(FOLDER);
        let own = std::env::temp_dir();
        Self::take_in(if may_lock_in(all_users) { all_users } else { &own })
    }

    fn take_in(folder: &Path) -> Result<Self, RunError> {
        let path = folder.join(FILE_NAME);
        // A readable file of another user can be locked too.
        let file = File::open(&path).or_else(|_| File::create(&path));
        let file = file.map_err(RunError::io("create", &path))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { _file: file }),
            Err(error) => Err(not_taken(&path, error)),
        }
    }
}

/// Whether the file exists or can be created.
fn may_lock_in(folder: &Path) -> bool {
    let path = folder.join(FILE_NAME);
    File::open(&path).is_ok() || File::create(&path).is_ok()
}

/// The reason why taking the lock failed; another run is only one of the possible reasons.
fn not_taken(path: &Path, error: Errno) -> RunError {
    if error != Errno::WOULDBLOCK {
        return RunError::io("lock", path)(error.into());
    }
    RunError::Input(format!(
        "another run is under way on this machine ({} is locked): two runs would disturb each other",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = Lock::take_in(folder.path()).expect("free");
        let error = Lock::take_in(folder.path()).expect_err("taken").to_string();
        assert!(error.contains("another run"), "{error}");
        drop(first);
        assert!(Lock::take_in(folder.path()).is_ok());
    }

    #[test]
    fn a_folder_that_is_not_there_is_passed_over() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(may_lock_in(folder.path()));
        assert!(!may_lock_in(&folder.path().join("missing")));
    }

    #[test]
    fn other_reasons_are_told_as_they_are() {
        let told = |error| not_taken(Path::new("/tmp/lock"), error).to_string();
        assert!(told(Errno::WOULDBLOCK).contains("another run"));
        for error in [Errno::NOLCK, Errno::INTR, Errno::OPNOTSUPP] {
            let reason = std::io::Error::from(error).to_string();
            assert_eq!(told(error), format!("cannot lock /tmp/lock: {reason}"));
        }
    }
}

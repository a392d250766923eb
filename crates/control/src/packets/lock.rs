//! The lock that allows one process to use a packet path. The process locks the folder of the packet path; the kernel
//! releases the lock when the process ends.

use std::fs::{File, create_dir_all};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// The folder in which programs and tables are pinned.
pub(super) const PINS: &str = "/sys/fs/bpf/weirgate";

/// The mount point of BPF file systems, and its magic number.
const BPF_FILE_SYSTEM: &str = "/sys/fs/bpf";
const BPF_MAGIC: i64 = 0xcafe_4a11;

fn is_bpf(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|found| found.f_type == BPF_MAGIC)
}

/// The lock of a packet path.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "it is held, not read")] File);

pub(super) fn folder(name: &str) -> PathBuf {
    Path::new(PINS).join(name)
}

/// The state of a lock that may exist.
#[derive(Debug)]
pub(super) enum LockState {
    Absent,
    /// Another process holds the lock.
    InUse,
    Taken(Lock),
}

impl Lock {
    /// Acquires the lock. The error says that another process holds it. `None`: no BPF file system is mounted, so no process
    /// can hold the lock.
    pub fn take(name: &str) -> Result<Option<Self>, String> {
        let folder = folder(name);
        if !is_bpf(Path::new(BPF_FILE_SYSTEM)) {
            return Ok(None);
        }
        let fail = |error: io::Error| format!("{}: {}", folder.display(), text(&error));
        create_dir_all(&folder).map_err(fail)?;
        Self::of_folder(name, &folder).map(Some)
    }

    /// Acquires the lock of a packet path whose folder exists in `pins`.
    pub fn take_present(pins: &Path, name: &str) -> Result<LockState, String> {
        let folder = pins.join(name);
        if !folder.is_dir() {
            return Ok(LockState::Absent);
        }
        Ok(Self::try_folder(&folder)?.map_or(LockState::InUse, LockState::Taken))
    }

    fn of_folder(name: &str, folder: &Path) -> Result<Self, String> {
        Self::try_folder(folder)?
            .ok_or_else(|| format!("{}: give each its own `packet_path.name`", in_use(name)))
    }

    /// Locks the folder. `None`: another process has locked it.
    fn try_folder(folder: &Path) -> Result<Option<Self>, String> {
        let fail = |error: io::Error| format!("{}: {}", folder.display(), text(&error));
        let file = File::open(folder).map_err(fail)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self(file))),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(fail(error.into())),
        }
    }
}

/// The message about a lock that another process holds.
pub(super) fn in_use(name: &str) -> String {
    format!("another process has the packet path `{name}`")
}

fn text(error: &io::Error) -> String {
    weir_event_loop::error_text::io_error_text(error).to_string()
}

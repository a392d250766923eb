//! Another process, identified by a pidfd: a later process with the same process id is not mistaken for it.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// A process that runs or has ended.
#[derive(Debug)]
pub struct Process {
    pid: Pid,
    file: OwnedFd,
}

impl Process {
    /// The process with this id; `None`: there is no such process, or the kernel cannot report its end.
    pub(super) fn of(pid: Pid) -> Option<Self> {
        let file = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        Some(Self { pid, file })
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_pid().unsigned_abs()
    }

    /// Whether the process has ended.
    pub fn has_ended(&self) -> bool {
        self.ends_within(Duration::ZERO)
    }

    /// Waits until the process has ended, at most for `timeout`. Returns whether it has ended.
    pub(super) fn ends_within(&self, timeout: Duration) -> bool {
        let timeout = Timespec::try_from(timeout).ok();
        let ended = poll(&mut [PollFd::new(&self.file, PollFlags::IN)], timeout.as_ref());
        ended.is_ok_and(|count| count > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_end_of_a_process_is_seen() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
        let process = Process::of(pid).unwrap();
        assert_eq!(process.pid(), child.id());
        assert!(!process.has_ended());
        assert!(!process.ends_within(Duration::from_millis(1)));
        drop(child.stdin.take());
        assert!(process.ends_within(Duration::from_secs(60)));
        child.wait().unwrap();
        assert!(process.has_ended());
        assert!(Process::of(pid).is_none());
    }
}

//! A separate descriptor table for a thread, and inherited descriptors.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};

use rustix::thread::{UnshareFlags, unshare_unsafe};

/// The first descriptor after the standard streams.
const FIRST_BESIDE_STREAMS: u32 = 3;

/// Gives the calling thread its own descriptor table, which contains only the standard streams and `keep`. After that,
/// accept and close share no lock with other cores, and the limit on open descriptors applies per thread. Signals are
/// blocked in this thread and delivered to other threads.
///
/// This must be the first call on a new thread. Descriptors that were opened before must not be used here, because their
/// numbers refer to other files, or to none.
pub fn isolate(keep: Option<RawFd>) -> io::Result<()> {
    block_signals();
    // SAFETY: this thread has not used any descriptor yet, and will not use descriptors of other threads: it opens its own,
    // or receives them through `keep`.
    unsafe { unshare_unsafe(UnshareFlags::FILES) }?;
    let kept = keep.map_or(FIRST_BESIDE_STREAMS - 1, |keep| keep as u32);
    for (first, last) in [(FIRST_BESIDE_STREAMS, kept.saturating_sub(1)), (kept + 1, u32::MAX)] {
        if first <= last {
            // SAFETY: the table has belonged to this thread alone since the call above, and no object of this thread owns
            // one of these descriptors.
            let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
            if result != 0 {
                return Err(io::Error::last_os_error());
            }
        }
    }
    Ok(())
}

/// Takes ownership of the descriptors that were passed to this process as in `sd_listen_fds(3)`: `count` of them, starting
/// with the first after the standard streams. Child processes do not inherit them. Numbers without an open descriptor are
/// skipped.
///
/// Must be called at most once, before the process opens any descriptor.
pub fn take_inherited(count: u32) -> Vec<OwnedFd> {
    let numbers = (FIRST_BESIDE_STREAMS..).take(count as usize).map(|number| number as RawFd);
    let is_open = |number: &RawFd| {
        // SAFETY: the call only sets a flag of a descriptor, and accesses no memory.
        unsafe { libc::fcntl(*number, libc::F_SETFD, libc::FD_CLOEXEC) == 0 }
    };
    // SAFETY: no object in this process owns a descriptor that was open before the process started.
    numbers.filter(is_open).map(|number| unsafe { OwnedFd::from_raw_fd(number) }).collect()
}

/// Blocks signals in the calling thread. Signal handlers write to descriptors of the control plane, whose numbers refer to
/// other files in this thread's table.
fn block_signals() {
    // These signals are raised by a fault in the thread itself. If they were blocked, the process would end without a
    // report.
    const FAULTS: [libc::c_int; 6] =
        [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGABRT];
    // SAFETY: `sigfillset` initialises the set before it is read, and the set lives through the calls.
    unsafe {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigfillset(set.as_mut_ptr());
        for fault in FAULTS {
            libc::sigdelset(set.as_mut_ptr(), fault);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
    }
}

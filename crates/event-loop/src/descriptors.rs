//! A descriptor table of a thread's own.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};

use rustix::thread::{UnshareFlags, unshare_unsafe};

/// The first descriptor after the standard streams.
const FIRST_BESIDE_STREAMS: u32 = 3;

/// Gives the calling thread its own descriptor table, which contains only the standard streams and `keep`. Accepting
/// and closing then share no lock with other cores, and the limit on open descriptors applies per thread. Other threads
/// receive the signals from then on.
///
/// Call this first on a new thread. Descriptors that were opened before must not be used here: their numbers mean other
/// files, or no file.
pub fn isolate(keep: Option<RawFd>) -> io::Result<()> {
    block_signals();
    // SAFETY: this thread has used no descriptor yet and will use none of other threads: it opens its own, or receives
    // them through `keep`.
    unsafe { unshare_unsafe(UnshareFlags::FILES) }?;
    let kept = keep.map_or(FIRST_BESIDE_STREAMS - 1, |keep| keep as u32);
    for (first, last) in [(FIRST_BESIDE_STREAMS, kept.saturating_sub(1)), (kept + 1, u32::MAX)] {
        if first <= last {
            // SAFETY: the table is this thread's own since the call above, and no object of this
            // thread owns one of these descriptors.
            let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
            if result != 0 {
                return Err(io::Error::last_os_error());
            }
        }
    }
    Ok(())
}

/// Takes the descriptors that the starter of this process has left open for it, as `sd_listen_fds(3)` does: `count` of
/// them, from the first beside the standard streams. Programs that this process starts do not get them. A number
/// without a descriptor is left out.
///
/// To be called at most once, before the process opens anything.
pub fn take_inherited(count: u32) -> Vec<OwnedFd> {
    let numbers = (FIRST_BESIDE_STREAMS..).take(count as usize).map(|number| number as RawFd);
    let is_open = |number: &RawFd| {
        // SAFETY: the call reads and sets flags of a number, and touches no memory.
        unsafe { libc::fcntl(*number, libc::F_SETFD, libc::FD_CLOEXEC) == 0 }
    };
    // SAFETY: nothing in this process owns a descriptor that was open before it began.
    numbers.filter(is_open).map(|number| unsafe { OwnedFd::from_raw_fd(number) }).collect()
}

/// Keeps signals away from the calling thread. Their handlers write to descriptors of the control
/// plane, whose numbers name other things in this thread's table.
fn block_signals() {
    // Raised by a fault of the thread itself; blocked, they would end the process without a word.
    const FAULTS: [libc::c_int; 6] =
        [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGABRT];
    // SAFETY: the set is initialised by `sigfillset` before it is read, and lives through the calls.
    unsafe {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigfillset(set.as_mut_ptr());
        for fault in FAULTS {
            libc::sigdelset(set.as_mut_ptr(), fault);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
    }
}

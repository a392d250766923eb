//! Waiting for events.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

const NANOSECONDS_PER_MICROSECOND: u64 = 1_000;
const MICROSECONDS_PER_SECOND: u64 = 1_000_000;

/// Waits for events and stores them in `events`. Returns after `timeout_us` at the latest; `None`: no timeout.
///
/// `precise`: the timeout has a resolution of a microsecond instead of a millisecond, if the kernel supports it
/// (`epoll_pwait2`, Linux 5.11).
pub fn wait(
    epoll: &OwnedFd,
    events: &mut Vec<epoll::Event>,
    timeout_us: Option<u64>,
    precise: bool,
) -> Result<(), Errno> {
    events.clear();
    let timeout = timeout_us.map(|timeout_us| Timespec {
        tv_sec: (timeout_us / MICROSECONDS_PER_SECOND) as i64,
        tv_nsec: (timeout_us % MICROSECONDS_PER_SECOND * NANOSECONDS_PER_MICROSECOND) as i64,
    });
    if let (true, Some(timeout)) = (precise, &timeout) {
        match wait_precisely(epoll, events, timeout) {
            Err(Errno::NOSYS) => {}
            outcome => return outcome,
        }
    }
    epoll::wait(epoll, rustix::buffer::spare_capacity(events), timeout.as_ref())?;
    Ok(())
}

/// Calls `epoll_pwait2`. `rustix` uses it only with its feature `linux_5_11`.
fn wait_precisely(
    epoll: &OwnedFd,
    events: &mut Vec<epoll::Event>,
    timeout: &Timespec,
) -> Result<(), Errno> {
    let space = events.spare_capacity_mut();
    // SAFETY: the kernel writes at most `space.len()` events into the vector's spare capacity, and `epoll::Event` has the
    // layout of the kernel's structure; `timeout` is a `timespec64` and is only read.
    let count = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            epoll.as_raw_fd(),
            space.as_mut_ptr(),
            space.len() as libc::c_int,
            std::ptr::from_ref(timeout),
            std::ptr::null::<libc::sigset_t>(),
            0_usize,
        )
    };
    let Ok(count) = usize::try_from(count) else {
        let error = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::INVAL));
    };
    // SAFETY: the kernel has written `count` events, and the vector was empty.
    unsafe { events.set_len(count) };
    Ok(())
}

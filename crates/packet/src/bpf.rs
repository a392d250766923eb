//! The call bpf(2), for the commands that aya has no safe calls for. `unsafe`: it is a system call.

use std::io;

/// Makes the call with a part of `union bpf_attr`, and returns the kernel's answer: zero, or a descriptor.
///
/// # Errors
/// What the kernel says.
///
/// # Safety
/// The attributes have the layout of the command. All that they point to outlives the call, and has room for what the kernel reads and
/// writes there.
pub unsafe fn call<T>(command: libc::c_int, attributes: &mut T) -> io::Result<libc::c_int> {
    let size = size_of::<T>() as u32;
    // SAFETY: the caller has promised it.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size) };
    libc::c_int::try_from(result)
        .ok()
        .filter(|result| *result >= 0)
        .ok_or_else(io::Error::last_os_error)
}

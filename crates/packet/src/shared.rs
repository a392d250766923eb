//! Memory of a map that programs and user space share. `unsafe`: aya has no safe call for it.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// The values of an array map with `BPF_F_MMAPABLE`, in words. Programs change them at any time.
pub struct SharedArray {
    at: NonNull<AtomicU64>,
    bytes: usize,
}

// SAFETY: the memory belongs to this value alone, and all access is atomic.
unsafe impl Send for SharedArray {}
// SAFETY: as above.
unsafe impl Sync for SharedArray {}

impl SharedArray {
    /// Maps the first `bytes` of the values, at least one, into memory.
    pub fn map(map: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        // SAFETY: the kernel chooses the address, so no memory in use is replaced.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                map.as_raw_fd(),
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let at = NonNull::new(at.cast()).ok_or_else(|| io::Error::other("memory at address 0"))?;
        Ok(Self { at, bytes })
    }

    /// The words.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the memory is mapped as long as this value lives, begins at a page, and has room for so many words;
        // atomics may be changed by others at any time.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.bytes / size_of::<u64>()) }
    }
}

impl Drop for SharedArray {
    fn drop(&mut self) {
        // SAFETY: `map` has mapped this memory, and nothing borrows from this value any more. An error would mean
        // that it is not mapped.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.bytes) };
    }
}

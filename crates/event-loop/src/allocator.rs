//! Free memory of the allocator.

/// Returns the allocator's free memory to the system.
///
/// glibc keeps freed memory below its threshold for `mmap`, which grows to 32 MiB with the sizes that are freed, and
/// returns only what lies at the end of a heap. One small allocation behind hundreds of freed megabytes keeps all of
/// them. Threads that allocate meanwhile wait while their heap is searched, so callers call this rarely.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: any thread may call it at any time; it locks each heap while it searches that heap, and changes no
    // allocated memory.
    unsafe {
        libc::malloc_trim(0);
    }
}

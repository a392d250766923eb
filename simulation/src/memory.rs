//! Counts of the memory that the worker allocates and frees during its turns.

use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::cell::Cell;

/// Maximum number of stack frames that are printed for an allocation.
const TRACED_CALLS_MAX: usize = 6;

/// The system's allocator, which counts allocations while [`count`] runs.
pub struct CountingAllocator;

thread_local! {
    static IS_COUNTED: Cell<bool> = const { Cell::new(false) };
    static BYTES: Cell<isize> = const { Cell::new(0) };
    static PEAK_BYTES: Cell<isize> = const { Cell::new(0) };
    /// The number of allocations.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// Whether the place of each allocation is printed.
    static IS_TRACED: Cell<bool> = const { Cell::new(false) };
}

/// Records an allocation.
fn ask() {
    if IS_COUNTED.get() {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        if IS_TRACED.get() {
            IS_COUNTED.set(false);
            trace();
            IS_COUNTED.set(true);
        }
    }
}

/// Prints the place of the allocation in the project's code.
#[cold]
fn trace() {
    let calls = Backtrace::force_capture().to_string();
    let places = calls.lines().filter_map(|line| line.trim().strip_prefix("at "));
    let ours: Vec<&str> = places.filter_map(|it| Some(&it[it.find("crates/")?..])).collect();
    let deepest = &ours[..ours.len().min(TRACED_CALLS_MAX)];
    eprintln!("memory is asked for at {}", deepest.join("\n  called at "));
}

fn note(bytes: isize) {
    if IS_COUNTED.get() {
        let sum = BYTES.get() + bytes;
        BYTES.set(sum);
        if bytes > 0 {
            PEAK_BYTES.set(PEAK_BYTES.get().max(sum));
        }
    }
}

// SAFETY: each call is passed to the system's allocator unchanged. Counting accesses only cells of this thread.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ask();
        note(layout.size() as isize);
        // SAFETY: the caller guarantees the requirements of this call.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        note(-(layout.size() as isize));
        // SAFETY: the caller guarantees the requirements of this call.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        ask();
        note(new_size as isize - layout.size() as isize);
        // SAFETY: the caller guarantees the requirements of this call.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

/// The counts of this thread since [`begin`].
#[derive(Debug, Clone, Copy)]
pub struct AllocationCounts {
    /// The number of allocated bytes.
    pub bytes: isize,
    /// The maximum number of allocated bytes.
    pub peak_bytes: isize,
}

/// Resets the counts of bytes.
pub fn begin() {
    BYTES.set(0);
    PEAK_BYTES.set(0);
}

/// Counts allocations and frees during a call.
pub fn count<T>(work: impl FnOnce() -> T) -> T {
    IS_COUNTED.set(true);
    let result = work();
    IS_COUNTED.set(false);
    result
}

/// The counts of bytes.
pub fn counted() -> AllocationCounts {
    AllocationCounts { bytes: BYTES.get(), peak_bytes: PEAK_BYTES.get() }
}

/// The number of allocations and reallocations that were counted.
#[cfg(test)]
pub fn allocations() -> u64 {
    ALLOCATIONS.get()
}

/// Prints the places of allocations to standard error during a call.
#[cfg(test)]
pub fn trace_allocations<T>(work: impl FnOnce() -> T) -> T {
    IS_TRACED.set(true);
    let result = work();
    IS_TRACED.set(false);
    result
}

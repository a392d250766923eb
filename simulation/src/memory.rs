//! The worker's memory: allocated and freed during its turns.

use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::cell::Cell;

/// Frames of the stack that are printed for each place of an allocation.
const TRACED_CALLS_MAX: usize = 6;

/// The system's allocator, with counts of allocations while [`count`] runs.
pub struct Counting;

thread_local! {
    static IS_COUNTED: Cell<bool> = const { Cell::new(false) };
    static BYTES: Cell<isize> = const { Cell::new(0) };
    static PEAK_BYTES: Cell<isize> = const { Cell::new(0) };
    /// Number of allocations.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// Whether each place of an allocation is printed.
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

/// Prints its place in our code.
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

// SAFETY: each call goes to the system's allocator unchanged; counting touches only this thread's
// cells.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ask();
        note(layout.size() as isize);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        note(-(layout.size() as isize));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        ask();
        note(new_size as isize - layout.size() as isize);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

/// The counts of this thread since [`begin`].
#[derive(Debug, Clone, Copy)]
pub struct Counted {
    /// Bytes allocated now.
    pub bytes: isize,
    /// The peak of allocated bytes.
    pub peak_bytes: isize,
}

/// Resets the counts.
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

/// The counts.
pub fn counted() -> Counted {
    Counted { bytes: BYTES.get(), peak_bytes: PEAK_BYTES.get() }
}

/// Number of allocations and growing reallocations while counting.
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

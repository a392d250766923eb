//! How much memory the worker has: what it asks for during its turns, and gives back there.

use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::cell::Cell;

/// Calls that are told of each place that asks for memory.
const TRACED_CALLS_MAX: usize = 6;

/// The system's allocator, which counts what is asked for while [`count`] runs.
pub struct Counting;

thread_local! {
    static IS_COUNTED: Cell<bool> = const { Cell::new(false) };
    static BYTES: Cell<isize> = const { Cell::new(0) };
    static PEAK_BYTES: Cell<isize> = const { Cell::new(0) };
    /// How often memory was asked for.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// Each place that asks for memory is told.
    static IS_TRACED: Cell<bool> = const { Cell::new(false) };
}

/// Somebody asks for memory.
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

/// Tells where in our code that is.
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

// SAFETY: each call is handed to the system's allocator as it came; counting touches nothing but this thread's cells.
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

/// What was counted on this thread since [`begin`].
#[derive(Debug, Clone, Copy)]
pub struct Counted {
    /// Bytes that are held now.
    pub bytes: isize,
    /// The most that were held.
    pub peak_bytes: isize,
}

/// Begins to count from nothing.
pub fn begin() {
    BYTES.set(0);
    PEAK_BYTES.set(0);
}

/// Counts what is asked for and given back meanwhile.
pub fn count<T>(work: impl FnOnce() -> T) -> T {
    IS_COUNTED.set(true);
    let result = work();
    IS_COUNTED.set(false);
    result
}

/// What was counted.
pub fn counted() -> Counted {
    Counted { bytes: BYTES.get(), peak_bytes: PEAK_BYTES.get() }
}

/// How often memory was asked for, or for more of it, while that was counted.
#[cfg(test)]
pub fn allocations() -> u64 {
    ALLOCATIONS.get()
}

/// Tells on standard error who asks for memory meanwhile.
#[cfg(test)]
pub fn trace_allocations<T>(work: impl FnOnce() -> T) -> T {
    IS_TRACED.set(true);
    let result = work();
    IS_TRACED.set(false);
    result
}

//! How much memory the worker has: what it asks for during its turns, and gives back there.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, which counts what is asked for while [`count`] runs.
pub struct Counting;

thread_local! {
    static IS_COUNTED: Cell<bool> = const { Cell::new(false) };
    static BYTES: Cell<isize> = const { Cell::new(0) };
    static PEAK_BYTES: Cell<isize> = const { Cell::new(0) };
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

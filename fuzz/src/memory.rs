//! What a parser allocates, counted.
#![allow(unsafe_code, reason = "an allocator that counts is unsafe to write")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

/// No parser asks for more than this at once, whatever an input says. A larger request ends the process, so that the fuzzer reports it.
const MAX_ALLOCATION_BYTES: usize = 256 << 20;

/// Counts for all threads together, as some parsers have one of their own. So one target runs at a time.
struct CountingAllocator;

static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);

fn grow(bytes: usize) {
    if bytes > MAX_ALLOCATION_BYTES {
        std::process::abort();
    }
    let live = LIVE_BYTES.fetch_add(bytes, Relaxed) + bytes;
    PEAK_BYTES.fetch_max(live, Relaxed);
}

fn shrink(bytes: usize) {
    LIVE_BYTES.fetch_sub(bytes, Relaxed);
}

// SAFETY: everything is left to the system's allocator; the counters are plain numbers.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        shrink(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Old and new are both there while it is copied.
        grow(size);
        shrink(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// What `work` returns, and how much more memory than before was held while it ran.
pub fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = LIVE_BYTES.load(Relaxed);
    PEAK_BYTES.store(before, Relaxed);
    let result = work();
    (result, PEAK_BYTES.load(Relaxed).saturating_sub(before))
}

/// Runs `work`, which may hold `fixed` bytes and `factor` times the input.
pub fn bounded<T>(what: &str, input: usize, factor: usize, fixed: usize, work: impl FnOnce() -> T) -> T {
    let (result, peak) = peak(work);
    let limit = fixed + factor * input;
    assert!(peak <= limit, "{what} held {peak} bytes for an input of {input}, more than {limit}");
    result
}

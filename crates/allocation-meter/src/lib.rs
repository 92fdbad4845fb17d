//! A counting allocator, for tests of memory use.
//!
//! A test program declares it as its `#[global_allocator]`, and reads the counters here.
//!
//! *Guaranteed*: bytes are counted for all threads together, allocations for each thread by itself, so that
//! concurrent tests do not count each other's. An allocation counts twice while it is moved. *Not done*:
//! allocations of C libraries are not counted.
#![allow(unsafe_code, reason = "an allocator is unsafe to write; no other of ours counts")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

/// The system's allocator, counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct CountingAllocator;

static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);
static OBSERVER: OnceLock<fn(AllocationEvent)> = OnceLock::new();

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

/// What an observer receives before each allocation.
#[derive(Clone, Copy, Debug)]
pub struct AllocationEvent {
    pub bytes: usize,
    /// The bytes that are allocated at that moment.
    pub live_bytes: usize,
}

/// The bytes that are allocated now.
pub fn live_bytes() -> usize {
    LIVE_BYTES.load(Relaxed)
}

/// How often this thread has allocated or reallocated.
pub fn thread_allocations() -> usize {
    ALLOCATIONS.get()
}

/// Starts a new measurement of the peak. Returns the bytes that are allocated now.
pub fn reset_peak() -> usize {
    let live_bytes = live_bytes();
    PEAK_BYTES.store(live_bytes, Relaxed);
    live_bytes
}

/// The most bytes that were allocated at once since [`reset_peak`].
pub fn peak_bytes() -> usize {
    PEAK_BYTES.load(Relaxed)
}

/// Calls an observer before each allocation of any thread. It must not allocate. Only the first observer is
/// used.
pub fn observe(observer: fn(AllocationEvent)) {
    OBSERVER.get_or_init(|| observer);
}

fn grow(bytes: usize) {
    let live_bytes = LIVE_BYTES.fetch_add(bytes, Relaxed) + bytes;
    PEAK_BYTES.fetch_max(live_bytes, Relaxed);
    ALLOCATIONS.set(ALLOCATIONS.get() + 1);
    if let Some(observe) = OBSERVER.get() {
        observe(AllocationEvent { bytes, live_bytes });
    }
}

fn shrink(bytes: usize) {
    LIVE_BYTES.fetch_sub(bytes, Relaxed);
}

// SAFETY: all calls are forwarded to the system's allocator; the counters are plain numbers.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller guarantees what `System` requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller guarantees what `System` requires.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        shrink(layout.size());
        // SAFETY: the caller guarantees what `System` requires.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // The old and the new block both exist while the content is moved.
        grow(size);
        shrink(layout.size());
        // SAFETY: the caller guarantees what `System` requires.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: CountingAllocator = CountingAllocator;

    static LARGEST_BYTES: AtomicUsize = AtomicUsize::new(0);

    #[test]
    fn allocations_of_a_thread_and_bytes_of_all_are_counted() {
        observe(|event| {
            LARGEST_BYTES.fetch_max(event.bytes, Relaxed);
        });
        let allocations = thread_allocations();
        let live = reset_peak();
        let mut list = Vec::<u8>::with_capacity(1 << 20);
        assert_eq!(thread_allocations(), allocations + 1);
        assert!(live_bytes() >= live + (1 << 20));
        list.reserve_exact(2 << 20);
        assert_eq!(thread_allocations(), allocations + 2);
        drop(list);
        assert_eq!(thread_allocations(), allocations + 2);
        assert!(live_bytes() < live + (1 << 20));
        assert!(peak_bytes() >= live + (3 << 20), "both are there while it is moved");
        assert_eq!(LARGEST_BYTES.load(Relaxed), 2 << 20);
    }
}

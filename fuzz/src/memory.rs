//! Counts the memory that a parser allocates.

use kubewake_allocation_meter::{CountingAllocator, observe, peak_bytes, reset_peak};

/// Limit of a single allocation of any parser. A larger one ends the process, so that the fuzzer reports it.
const MAX_ALLOCATION_BYTES: usize = 256 << 20;

/// Counts for all threads together, as some parsers use threads. Therefore only one target runs at a time.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Runs `work`; returns its result and the peak of its memory.
pub fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    observe(|event| {
        if event.bytes > MAX_ALLOCATION_BYTES {
            std::process::abort();
        }
    });
    let before = reset_peak();
    let result = work();
    (result, peak_bytes().saturating_sub(before))
}

/// Runs `work`, which may use `fixed` bytes and `factor` times the input.
pub fn bounded<T>(what: &str, input: usize, factor: usize, fixed: usize, work: impl FnOnce() -> T) -> T {
    let (result, peak) = peak(work);
    let limit = fixed + factor * input;
    assert!(peak <= limit, "{what} held {peak} bytes for an input of {input}, more than {limit}");
    result
}

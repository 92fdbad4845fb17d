//! Room for the parser and the interpreter, which recurse with large frames.

use std::thread;

/// A level of brackets costs the parser up to 200 KiB without optimisation, and it stops at 96 levels by itself. An operator costs
/// it 1 KiB. Only what is used of a stack takes memory.
const SIZE: usize = 64 << 20;

/// More operators than in any expression that was written by hand.
const MAX_OPERATORS: usize = 5_000;

/// Beyond this many the parser's own limit does not hold.
const MAX_CONDITIONALS: usize = 80;

/// Whether the parser would need more stack than there is, by a count that can only be too high.
pub(super) fn is_too_deep(source: &str) -> bool {
    let count = |of: &str| source.bytes().filter(|byte| of.as_bytes().contains(byte)).count();
    count("+-*/%<>=&|!.,[({") > MAX_OPERATORS || count("?") > MAX_CONDITIONALS
}

/// Runs with a large stack. None if it panicked, or if there is no thread to run it on.
pub(super) fn large<T: Send>(run: impl FnOnce() -> T + Send) -> Option<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("cel".to_owned()).stack_size(SIZE).spawn_scoped(scope, run);
        thread.ok()?.join().ok()
    })
}

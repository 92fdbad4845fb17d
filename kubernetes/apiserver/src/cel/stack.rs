//! Stack space for the parser and the interpreter, which recurse with large frames.

use std::thread;

/// A level of brackets takes up to 200 KiB in the parser without optimisation, and it stops at 96 levels by
/// itself. An operator takes 1 KiB. Only the used part of a stack takes memory.
const STACK_BYTES: usize = 64 << 20;

/// More operators than any handwritten expression has.
const MAX_OPERATORS: usize = 5_000;

/// Beyond this many the parser's own limit does not work.
const MAX_CONDITIONALS: usize = 80;

/// Whether the parser might need more stack, by an estimate that is never too low.
pub(super) fn is_too_deep(source: &str) -> bool {
    let count = |of: &str| source.bytes().filter(|byte| of.as_bytes().contains(byte)).count();
    count("+-*/%<>=&|!.,[({") > MAX_OPERATORS || count("?") > MAX_CONDITIONALS
}

/// Runs on a large stack. None if it panicked, or if no thread could be started.
pub(super) fn run_on_large_stack<T: Send>(run: impl FnOnce() -> T + Send) -> Option<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("cel".to_owned()).stack_size(STACK_BYTES).spawn_scoped(scope, run);
        thread.ok()?.join().ok()
    })
}

//! Fuzz targets for every parser that strangers reach.
//!
//! A target is a function that accepts any bytes and panics where an invariant is violated. Invariants go
//! beyond the absence of panics: two decoders agree, output can be read again, and memory stays within a
//! multiple of the input. `cargo xtask fuzz` runs the targets under libFuzzer. The test `tests/corpus.rs`
//! replays their seeds on every test run.
//!
//! Not done: time is bounded by libFuzzer's `-timeout` alone, as a test must not depend on the speed of its
//! machine.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a finding is a panic"
)]

pub mod apiserver;
pub mod cluster;
pub mod collector;
pub mod memory;
pub mod otlp;
pub mod viewer;

use std::sync::OnceLock;

/// A named function that must return for any bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, which is the folder of its seeds and the argument of `cargo xtask fuzz`.
    pub name: &'static str,
    /// Panics where an invariant is violated.
    pub body: fn(&[u8]),
}

/// The environment variable that selects the target of a fuzzer.
pub const TARGET_VARIABLE: &str = "KUBEWAKE_FUZZ_TARGET";

/// All targets, by fuzzer.
pub fn all_targets() -> Vec<(&'static str, &'static [Target])> {
    vec![
        ("otlp", &otlp::TARGETS),
        ("collector", &collector::TARGETS),
        ("apiserver", &apiserver::TARGETS),
        ("viewer", &viewer::TARGETS),
        ("cluster", &cluster::TARGETS),
    ]
}

/// Runs the target that [`TARGET_VARIABLE`] names.
pub fn run_chosen(targets: &[Target], data: &[u8]) {
    static CHOSEN: OnceLock<Target> = OnceLock::new();
    let target = CHOSEN.get_or_init(|| {
        abort_on_panic();
        let name = std::env::var(TARGET_VARIABLE).unwrap_or_default();
        let names: Vec<_> = targets.iter().map(|target| target.name).collect();
        let found = targets.iter().find(|target| target.name == name);
        *found.unwrap_or_else(|| panic!("{TARGET_VARIABLE}={name:?} names no target of this fuzzer: {names:?}"))
    });
    (target.body)(data);
}

/// Aborts on a panic, so that the fuzzer saves the input. libFuzzer's own hook would also abort on panics that
/// are caught on purpose, as those of the CEL interpreter.
fn abort_on_panic() {
    std::panic::set_hook(Box::new(|info| {
        if apiserver::cel::is_evaluating() {
            return;
        }
        eprintln!("{info}\n{}", std::backtrace::Backtrace::force_capture());
        std::process::abort();
    }));
}

/// The first byte of an input, which selects a variant, and the rest.
pub(crate) fn choice(data: &[u8]) -> (usize, &[u8]) {
    data.split_first().map_or((0, data), |(first, rest)| (usize::from(*first), rest))
}

/// Two texts in one input, with a line of `---` between them.
pub(crate) fn two_texts(data: &[u8]) -> Option<(&str, &str)> {
    std::str::from_utf8(data).ok()?.split_once("\n---\n")
}

//! What one evaluation may produce and how long it may take, counted while it runs.
//!
//! Guaranteed: functions whose results can be larger than their arguments ask [`charge`] before they allocate, so that no evaluation
//! produces more than [`MAX_PRODUCED`] by functions, and no single result is larger than [`MAX_RESULT`]. Once an evaluation is
//! exhausted it stays so: an operator that absorbs errors, such as `||`, cannot go on with it.

use std::{
    cell::RefCell,
    time::{Duration, Instant},
};

use kube_cel::cel::ExecutionError;
use regex::{Regex, RegexBuilder};

use crate::crd::validate::from_go;

/// The largest result of a function, in bytes of memory. The largest object that can be sent has 3 MiB.
pub(super) const MAX_RESULT: u64 = 8 << 20;

/// What all functions of one evaluation may produce together, in bytes of memory.
const MAX_PRODUCED: u64 = 32 << 20;

/// How long one evaluation may take. The static bound of the cost is reached much earlier; this is for what it misjudges.
const MAX_TIME: Duration = Duration::from_secs(10);

/// What a regular expression may take when it is compiled. `[a-z]{1,253}` takes 30 KiB.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// What the compilation of a regular expression is charged as. It takes milliseconds at most, for [`MAX_PATTERN_BYTES`].
const PATTERN_CHARGE: u64 = 128 << 10;

/// What cel-go says when an evaluation is stopped.
pub(super) const EXHAUSTED: &str = "operation cancelled: actual cost limit exceeded";

struct Meter {
    left: Option<u64>,
    deadline: Instant,
    /// Regular expressions that this evaluation has compiled. Their number is bounded by what they are charged.
    patterns: Vec<(String, Regex)>,
}

thread_local! {
    static METER: RefCell<Option<Meter>> = const { RefCell::new(None) };
}

/// Runs an evaluation with a meter of its own. The flag says whether it was exhausted.
pub(super) fn metered<T>(run: impl FnOnce() -> T) -> (T, bool) {
    let fresh = Meter { left: Some(MAX_PRODUCED), deadline: Instant::now() + MAX_TIME, patterns: Vec::new() };
    let before = METER.replace(Some(fresh));
    let result = run();
    let used = METER.replace(before);
    (result, used.is_some_and(|meter| meter.left.is_none()))
}

/// Takes the memory of a result from what the evaluation may still produce.
pub(super) fn charge(function: &str, bytes: u64) -> Result<(), ExecutionError> {
    METER.with_borrow_mut(|meter| {
        let Some(meter) = meter else { return Ok(()) };
        let left = meter.left.filter(|_| bytes <= MAX_RESULT && Instant::now() < meter.deadline);
        meter.left = left.and_then(|left| left.checked_sub(bytes));
        meter.left.map(drop).ok_or_else(|| ExecutionError::function_error(function, EXHAUSTED))
    })
}

/// A regular expression in Go's syntax, compiled once in an evaluation.
pub(super) fn pattern(function: &str, text: &str) -> Result<Regex, ExecutionError> {
    let known = METER.with_borrow(|meter| {
        let patterns = meter.iter().flat_map(|meter| &meter.patterns);
        patterns.into_iter().find(|(known, _)| known == text).map(|(_, regex)| regex.clone())
    });
    if let Some(regex) = known {
        return Ok(regex);
    }
    charge(function, PATTERN_CHARGE)?;
    let regex = RegexBuilder::new(&from_go(text)).size_limit(MAX_PATTERN_BYTES).build();
    let regex = regex.map_err(|error| ExecutionError::function_error(function, format!("invalid regex: {error}")))?;
    METER.with_borrow_mut(|meter| {
        if let Some(meter) = meter {
            meter.patterns.push((text.to_owned(), regex.clone()));
        }
    });
    Ok(regex)
}

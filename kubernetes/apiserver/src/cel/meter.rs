//! Limits the memory and the time of one evaluation while it runs.
//!
//! Guaranteed: functions whose results can exceed their arguments call [`charge`] before they allocate, so that
//! functions produce at most [`MAX_PRODUCED_BYTES`] in one evaluation, and no single result is larger than
//! [`MAX_RESULT_BYTES`]. An exhausted evaluation stays exhausted: an operator that absorbs errors, such as
//! `||`, cannot continue it.

use std::{
    cell::RefCell,
    time::{Duration, Instant},
};

use kube_cel::cel::ExecutionError;
use regex::{Regex, RegexBuilder};

use crate::crd::validate::translate_go_pattern;

/// The largest result of a function, in bytes of memory. The largest object in a request has 3 MiB.
pub(super) const MAX_RESULT_BYTES: u64 = 8 << 20;

/// The total of all functions in one evaluation, in bytes of memory.
const MAX_PRODUCED_BYTES: u64 = 32 << 20;

/// The time limit of one evaluation. The static bound of the cost is reached much earlier; this one covers its
/// misjudgements.
const MAX_EVALUATION_TIME: Duration = Duration::from_secs(10);

/// The memory limit of a compiled regular expression. `[a-z]{1,253}` takes 30 KiB.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// The charge for compiling a regular expression. With [`MAX_PATTERN_BYTES`] it takes milliseconds at most.
const PATTERN_CHARGE_BYTES: u64 = 128 << 10;

/// cel-go's message when an evaluation is stopped.
pub(super) const COST_LIMIT_MESSAGE: &str = "operation cancelled: actual cost limit exceeded";

struct EvaluationMeter {
    left: Option<u64>,
    deadline: Instant,
    /// The compiled regular expressions of this evaluation. Their charge bounds their number.
    patterns: Vec<(String, Regex)>,
}

thread_local! {
    static METER: RefCell<Option<EvaluationMeter>> = const { RefCell::new(None) };
}

/// Runs an evaluation with its own meter. The flag tells whether it was exhausted.
pub(super) fn run_metered<T>(run: impl FnOnce() -> T) -> (T, bool) {
    let fresh = EvaluationMeter {
        left: Some(MAX_PRODUCED_BYTES),
        deadline: Instant::now() + MAX_EVALUATION_TIME,
        patterns: Vec::new(),
    };
    let before = METER.replace(Some(fresh));
    let result = run();
    let used = METER.replace(before);
    (result, used.is_some_and(|meter| meter.left.is_none()))
}

/// Charges the memory of a result.
pub(super) fn charge(function: &str, bytes: u64) -> Result<(), ExecutionError> {
    METER.with_borrow_mut(|meter| {
        let Some(meter) = meter else { return Ok(()) };
        let left = meter.left.filter(|_| bytes <= MAX_RESULT_BYTES && Instant::now() < meter.deadline);
        meter.left = left.and_then(|left| left.checked_sub(bytes));
        meter.left.map(drop).ok_or_else(|| ExecutionError::function_error(function, COST_LIMIT_MESSAGE))
    })
}

/// A regular expression in Go's syntax, compiled once per evaluation.
pub(super) fn compile_pattern(function: &str, text: &str) -> Result<Regex, ExecutionError> {
    let known = METER.with_borrow(|meter| {
        let patterns = meter.iter().flat_map(|meter| &meter.patterns);
        patterns.into_iter().find(|(known, _)| known == text).map(|(_, regex)| regex.clone())
    });
    if let Some(regex) = known {
        return Ok(regex);
    }
    charge(function, PATTERN_CHARGE_BYTES)?;
    let regex = RegexBuilder::new(&translate_go_pattern(text)).size_limit(MAX_PATTERN_BYTES).build();
    let regex = regex.map_err(|error| ExecutionError::function_error(function, format!("invalid regex: {error}")))?;
    METER.with_borrow_mut(|meter| {
        if let Some(meter) = meter {
            meter.patterns.push((text.to_owned(), regex.clone()));
        }
    });
    Ok(regex)
}

//! CEL: the actual cost of an evaluation is within its estimate.

use std::cell::Cell;

use kubewake_apiserver::cel::{EvaluationScope, Expression, MAX_EVALUATION_COST, plain};
use serde_json::Value;

use crate::{memory, two_texts};

thread_local! {
    static EVALUATES: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread runs the interpreter, whose panics the API server catches. Deep expressions run on a
/// thread of their own.
pub(crate) fn is_evaluating() -> bool {
    EVALUATES.get() || std::thread::current().name() == Some("cel")
}

fn caught<T>(work: impl FnOnce() -> T) -> T {
    EVALUATES.set(true);
    let result = work();
    EVALUATES.set(false);
    result
}

/// A unit of cost is a step and 32 bytes; an item of a list takes several times that in the interpreter.
const BYTES_PER_COST: u64 = 2 << 10;
const FIXED_BYTES: u64 = 4 << 20;

/// The memory of an evaluation is within a multiple of its estimated cost, and the total of all accepted
/// evaluations is small.
pub(super) fn cost_and_memory(data: &[u8]) {
    let Some((source, object)) = two_texts(data) else { return };
    let Ok(object) = serde_json::from_str::<Value>(object) else { return };
    let Ok(expression) = caught(|| Expression::compile(source)) else { return };
    let cost = expression.cost(&[("self", &object)]);
    if cost > MAX_EVALUATION_COST {
        return;
    }
    let scope = EvaluationScope::new([("self", plain(&object))]);
    let (_, peak) = memory::peak(|| caught(|| expression.evaluate(&scope)));
    let limit = FIXED_BYTES + cost.saturating_mul(BYTES_PER_COST);
    assert!(peak as u64 <= limit, "an evaluation that costs {cost} held {peak} bytes");
    assert!(peak <= 128 << 20, "an evaluation that is allowed held {peak} bytes");
}

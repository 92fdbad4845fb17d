//! CEL: what an evaluation takes is within what it was estimated to cost.

use std::cell::Cell;

use kubewake_apiserver::cel::{COST_PER_CALL, Expression, Scope, plain};
use serde_json::Value;

use crate::{memory, two_texts};

thread_local! {
    static EVALUATES: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread runs the interpreter, whose panics the API server catches. It has a thread of its own for what is deep.
pub(crate) fn is_evaluating() -> bool {
    EVALUATES.get() || std::thread::current().name() == Some("cel")
}

fn caught<T>(work: impl FnOnce() -> T) -> T {
    EVALUATES.set(true);
    let result = work();
    EVALUATES.set(false);
    result
}

/// A unit of cost is a step and 32 bytes; an item of a list takes some times that in the interpreter.
const BYTES_PER_COST: u64 = 2 << 10;
/// The interpreter's own tables.
const FIXED_BYTES: u64 = 4 << 20;

/// The memory of an evaluation is within a multiple of its estimated cost, and that of all evaluations that are let through is small.
pub(super) fn cost_and_memory(data: &[u8]) {
    let Some((source, object)) = two_texts(data) else { return };
    let Ok(object) = serde_json::from_str::<Value>(object) else { return };
    let Ok(expression) = caught(|| Expression::compile(source)) else { return };
    let cost = expression.cost(&[("self", &object)]);
    if cost > COST_PER_CALL {
        return;
    }
    let scope = Scope::new([("self", plain(&object))]);
    let (_, peak) = memory::peak(|| caught(|| expression.evaluate(&scope)));
    let limit = FIXED_BYTES + cost.saturating_mul(BYTES_PER_COST);
    assert!(peak as u64 <= limit, "an evaluation that costs {cost} held {peak} bytes");
    assert!(peak <= 128 << 20, "an evaluation that is allowed held {peak} bytes");
}

//! Bounds of the results and the work of function calls, from the sizes of their arguments.
//!
//! Every function that expressions can call is either listed here, or its result and work do not exceed the sum
//! of its arguments: operators, comparisons, conversions of numbers and times, `size`, `startsWith`,
//! `endsWith`, `contains` of a string, `trim`, `substring`, `charAt`, `slice`, `first`, `last`, `sum`,
//! `isSorted`, `min`, `max`, `format.*`, `validate`, the `is…` functions and the methods of addresses,
//! quantities, versions and URLs.

use kube_cel::cel::common::ast::{CallExpr, Expr};

use super::{
    cost::{BYTES_PER_UNIT, ValueSize},
    functions::{ITEM_BYTES, MAX_FORMAT_DIGITS, MAX_RANGE_ITEMS},
    macros::SORT_BY_KEYS,
    meter::MAX_RESULT_BYTES,
};

/// The units of an item besides its content.
const ITEM_UNITS: u64 = ITEM_BYTES / BYTES_PER_UNIT;

/// The steps of compiling a regular expression that is not a literal, since each round of a loop may have
/// another.
const PATTERN_COMPILE_STEPS: u64 = 20_000;

/// The steps of matching one unit of text against a regular expression.
const MATCH_STEPS_PER_UNIT: u64 = 8;

/// The result of a call, and the work besides reading the arguments once.
pub(super) struct CallBound<'v> {
    pub(super) result: ValueSize<'v>,
    pub(super) work: u64,
}

/// Functions whose result or work exceeds the sum of their arguments.
const MULTIPLYING_FUNCTIONS: [&str; 20] = [
    "replace",
    "split",
    "join",
    "format",
    "quote",
    "encode",
    "escapeKey",
    "string",
    "url",
    "getQuery",
    "getEscapedPath",
    "range",
    "sort",
    SORT_BY_KEYS,
    "distinct",
    "indexOf",
    "lastIndexOf",
    "matches",
    "find",
    "findAll",
];

/// Whether a call can exceed the sum of its arguments.
pub(super) fn exceeds_arguments(call: &CallExpr) -> bool {
    MULTIPLYING_FUNCTIONS.contains(&call.func_name.as_str()) || is_sets_function(call)
}

fn is_sets_function(call: &CallExpr) -> bool {
    matches!(call.target.as_deref().map(|target| &target.expr), Some(Expr::Ident(name)) if name == "sets")
}

/// The bound of a call. `args` begins with the target, `all` is the sum of the arguments.
pub(super) fn bound_call<'v>(call: &CallExpr, args: &[ValueSize<'v>], all: ValueSize<'v>) -> CallBound<'v> {
    let arg = |place: usize| args.get(place).copied().unwrap_or(ValueSize::ONE);
    let first = arg(0);
    let second = arg(1);
    let third = arg(2);
    let made = |result: ValueSize<'v>| CallBound { result, work: result.size };
    let bytes = |part: ValueSize<'_>| part.size.saturating_mul(BYTES_PER_UNIT);
    if is_sets_function(call) {
        let pairs = second.len.saturating_mul(third.size).saturating_add(third.len.saturating_mul(second.size));
        return CallBound { result: ValueSize::ONE, work: pairs };
    }
    match call.func_name.as_str() {
        "replace" => made(text_size(first.len.saturating_add(first.len.saturating_add(2).saturating_mul(third.len)))),
        "join" => made(text_size(bytes(first).saturating_add(first.len.saturating_mul(second.len)))),
        "split" => made(text_list_size(first.len.saturating_add(2), first)),
        // A directive with a precision has at least five characters.
        "format" => made(text_size(
            first.len.saturating_mul(MAX_FORMAT_DIGITS / 2).saturating_add(bytes(second).saturating_mul(2)),
        )),
        "quote" | "encode" | "escapeKey" => made(text_size(bytes(all).saturating_mul(2))),
        "string" | "getEscapedPath" => made(text_size(bytes(all).saturating_mul(3))),
        "url" => made(text_size(bytes(all).saturating_mul(4))),
        "getQuery" => made(text_list_size(first.len, first)),
        "range" => {
            let items = MAX_RANGE_ITEMS.unsigned_abs();
            made(ValueSize { len: items, child: 1, ..ValueSize::from_units(items * ITEM_UNITS) })
        }
        "sort" | SORT_BY_KEYS => CallBound { result: all, work: all.size.saturating_mul(32) },
        "distinct" => CallBound { result: all, work: first.len.saturating_mul(first.size) },
        "indexOf" | "lastIndexOf" => CallBound { result: ValueSize::ONE, work: first.len.saturating_mul(second.size) },
        "matches" | "find" | "findAll" => {
            let pattern = call.args.first().map(|pattern| &pattern.expr);
            let compile = if matches!(pattern, Some(Expr::Literal(_))) { 0 } else { PATTERN_COMPILE_STEPS };
            let result = match call.func_name.as_str() {
                "matches" => ValueSize::ONE,
                "find" => first,
                _ => text_list_size(first.len.saturating_add(2), first),
            };
            CallBound {
                result,
                work: first
                    .size
                    .saturating_mul(MATCH_STEPS_PER_UNIT)
                    .saturating_add(compile)
                    .saturating_add(result.size),
            }
        }
        _ => CallBound { result: all, work: 0 },
    }
}

/// A text of at most so many bytes. Larger ones are refused when they are produced.
fn text_size<'v>(bytes: u64) -> ValueSize<'v> {
    let bytes = bytes.min(MAX_RESULT_BYTES);
    ValueSize { len: bytes, ..ValueSize::from_units(1 + bytes / BYTES_PER_UNIT) }
}

/// A list of at most so many texts, which are parts of another one. Larger ones are refused when they are
/// produced.
fn text_list_size<'v>(items: u64, of: ValueSize<'_>) -> ValueSize<'v> {
    let items = items.min(MAX_RESULT_BYTES / ITEM_BYTES);
    let size = items.saturating_mul(ITEM_UNITS).saturating_add(of.size);
    ValueSize { len: items, child: of.size, ..ValueSize::from_units(size) }
}

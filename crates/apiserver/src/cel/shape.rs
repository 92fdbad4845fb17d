//! What functions make of the sizes of their arguments, and what work that is.
//!
//! Every function that expressions can call is here, or gives no more than the sum of its arguments for as much work: operators,
//! comparisons, conversions of numbers and times, `size`, `startsWith`, `endsWith`, `contains` of a text, `trim`, `substring`,
//! `charAt`, `slice`, `first`, `last`, `sum`, `isSorted`, `min`, `max`, `format.*`, `validate`, the `is…` functions and the methods of
//! addresses, quantities, versions and URLs.

use kube_cel::cel::common::ast::{CallExpr, Expr};

use super::{
    cost::{BYTES_PER_UNIT, Part},
    functions::{ITEM_BYTES, MAX_PRECISION, MAX_RANGE},
    meter::MAX_RESULT,
};

/// Units of an item besides its text.
const ITEM: u64 = ITEM_BYTES / BYTES_PER_UNIT;

/// Steps for the compilation of a regular expression that is not a literal, as each round of a loop may have another.
const PATTERN: u64 = 20_000;

/// Steps for each unit of a text that a regular expression is matched against.
const MATCH: u64 = 8;

/// A call's result and the work besides looking at the arguments once.
pub(super) struct Shape<'v> {
    pub(super) result: Part<'v>,
    pub(super) work: u64,
}

/// Functions whose result or work is more than the sum of their arguments.
const MULTIPLYING: [&str; 19] = [
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
    "distinct",
    "indexOf",
    "lastIndexOf",
    "matches",
    "find",
    "findAll",
];

/// Whether the sum of the arguments is no bound for a call.
pub(super) fn multiplies(call: &CallExpr) -> bool {
    MULTIPLYING.contains(&call.func_name.as_str()) || is_of_sets(call)
}

fn is_of_sets(call: &CallExpr) -> bool {
    matches!(call.target.as_deref().map(|target| &target.expr), Some(Expr::Ident(name)) if name == "sets")
}

/// The shape of a call. `args` has the target first, `all` is what the arguments are together.
pub(super) fn of_call<'v>(call: &CallExpr, args: &[Part<'v>], all: Part<'v>) -> Shape<'v> {
    let arg = |place: usize| args.get(place).copied().unwrap_or(Part::ONE);
    let (first, second, third) = (arg(0), arg(1), arg(2));
    let made = |result: Part<'v>| Shape { result, work: result.size };
    let bytes = |part: Part<'_>| part.size.saturating_mul(BYTES_PER_UNIT);
    if is_of_sets(call) {
        let pairs = second.len.saturating_mul(third.size).saturating_add(third.len.saturating_mul(second.size));
        return Shape { result: Part::ONE, work: pairs };
    }
    match call.func_name.as_str() {
        "replace" => made(text(first.len.saturating_add(first.len.saturating_add(2).saturating_mul(third.len)))),
        "join" => made(text(bytes(first).saturating_add(first.len.saturating_mul(second.len)))),
        "split" => made(texts(first.len.saturating_add(2), first)),
        // A directive for digits has five characters at least.
        "format" => {
            made(text(first.len.saturating_mul(MAX_PRECISION / 2).saturating_add(bytes(second).saturating_mul(2))))
        }
        "quote" | "encode" | "escapeKey" => made(text(bytes(all).saturating_mul(2))),
        "string" | "getEscapedPath" => made(text(bytes(all).saturating_mul(3))),
        "url" => made(text(bytes(all).saturating_mul(4))),
        "getQuery" => made(texts(first.len, first)),
        "range" => {
            let items = MAX_RANGE.unsigned_abs();
            made(Part { len: items, child: 1, ..Part::inside(items * ITEM) })
        }
        "sort" => Shape { result: all, work: all.size.saturating_mul(32) },
        "distinct" => Shape { result: all, work: first.len.saturating_mul(first.size) },
        "indexOf" | "lastIndexOf" => Shape { result: Part::ONE, work: first.len.saturating_mul(second.size) },
        "matches" | "find" | "findAll" => {
            let pattern = call.args.first().map(|pattern| &pattern.expr);
            let compile = if matches!(pattern, Some(Expr::Literal(_))) { 0 } else { PATTERN };
            let result = match call.func_name.as_str() {
                "matches" => Part::ONE,
                "find" => first,
                _ => texts(first.len.saturating_add(2), first),
            };
            Shape { result, work: first.size.saturating_mul(MATCH).saturating_add(compile).saturating_add(result.size) }
        }
        _ => Shape { result: all, work: 0 },
    }
}

/// A text of at most so many bytes. Larger ones are refused when they are made.
fn text<'v>(bytes: u64) -> Part<'v> {
    let bytes = bytes.min(MAX_RESULT);
    Part { len: bytes, ..Part::inside(1 + bytes / BYTES_PER_UNIT) }
}

/// A list of at most so many texts, which are parts of another. Larger ones are refused when they are made.
fn texts<'v>(items: u64, of: Part<'_>) -> Part<'v> {
    let items = items.min(MAX_RESULT / ITEM_BYTES);
    let size = items.saturating_mul(ITEM).saturating_add(of.size);
    Part { len: items, child: of.size, ..Part::inside(size) }
}

//! The functions of Kubernetes' expressions, as the interpreter calls them.
//!
//! Those of the library that make more than they are given, or that evaluate their arguments more than once, are wrapped: arguments
//! are evaluated once, the size of the result is computed from them and charged to the [`meter`], and only then does the library run.
//! Functions that are not wrapped give at most what they are given.

use std::sync::{Arc, LazyLock};

use kube_cel::{
    KubeCelExt,
    cel::{
        Context, ExecutionError, FunctionContext, ResolveResult,
        common::ast::{CallExpr, Expr},
        extractors::This,
        parser::Expression as Ast,
    },
};

use super::{CelValue, meter};

/// The longest list that `lists.range` makes.
pub(super) const MAX_RANGE: i64 = 1_000;

/// The most digits that a directive of `format` may ask for.
pub(super) const MAX_PRECISION: u64 = 1_000;

/// What an item of a list takes besides its text.
pub(super) const ITEM_BYTES: u64 = 64;

/// Library functions that are wrapped.
const WRAPPED: [&str; 36] = [
    "replace",
    "split",
    "join",
    "format",
    "strings.quote",
    "base64.encode",
    "base64.decode",
    "jsonpatch.escapeKey",
    "string",
    "bytes",
    "url",
    "getQuery",
    "getEscapedPath",
    "lowerAscii",
    "upperAscii",
    "substring",
    "trim",
    "charAt",
    "slice",
    "sort",
    "flatten",
    "reverse",
    "distinct",
    // These evaluate their first argument twice when they are not called as a method.
    "indexOf",
    "lastIndexOf",
    "isGreaterThan",
    "isLessThan",
    "compareTo",
    "ip",
    "min",
    "max",
    "add",
    "sub",
    "semver",
    "isSemver",
    "math.abs",
];

/// The library as it is.
static LIBRARY: LazyLock<Context<'static>> = LazyLock::new(|| Context::default().with_all());

/// All functions that expressions can call.
pub(super) static FUNCTIONS: LazyLock<Context<'static>> = LazyLock::new(|| {
    let mut context = Context::default().with_all();
    for name in WRAPPED {
        context.add_function(name, move |call: &FunctionContext<'_, '_>| wrapped(name, call));
    }
    context.add_function("matches", matches);
    context.add_function("find", find);
    context.add_function("findAll", find_all);
    context.add_function("lists.range", range);
    context.add_function("dyn", |value: CelValue| Ok::<_, ExecutionError>(value));
    context
});

/// Evaluates the arguments once, charges the result, and lets the library make it.
fn wrapped(name: &str, call: &FunctionContext<'_, '_>) -> ResolveResult {
    let args = call.args.iter().map(|arg| call.ptx.resolve(arg)).collect::<Result<Vec<_>, _>>()?;
    let all: Vec<&CelValue> = call.this.iter().chain(&args).collect();
    meter::charge(name, result_bytes(name, &all)?)?;
    let mut scope = LIBRARY.new_inner_scope();
    let mut bind = |name: String, value: CelValue| {
        scope.add_variable_from_value(name.clone(), value);
        Ast { id: 0, expr: Expr::Ident(name) }
    };
    let target = call.this.clone().map(|this| Box::new(bind("@this".to_owned(), this)));
    let args = (0..).zip(args).map(|(place, arg): (usize, _)| bind(format!("@{place}"), arg)).collect();
    let expr = Expr::Call(CallExpr { func_name: name.to_owned(), target, args });
    scope.resolve(&Ast { id: 0, expr })
}

/// What the result of a function takes at most. Arguments of wrong types are for the library to refuse.
fn result_bytes(name: &str, args: &[&CelValue]) -> Result<u64, ExecutionError> {
    let text = |place: usize| match args.get(place) {
        Some(CelValue::String(text)) => text.as_str(),
        _ => "",
    };
    let limit = |place: usize| match args.get(place) {
        Some(CelValue::Int(limit)) => u64::try_from(*limit).unwrap_or(u64::MAX),
        _ => u64::MAX,
    };
    let first = args.first().map_or(0, |value| memory(value));
    Ok(match name {
        "replace" => {
            let found = occurrences(text(0), text(1)).min(limit(3));
            first.saturating_add(found.saturating_mul(text(2).len() as u64))
        }
        "split" => {
            let pieces = occurrences(text(0), text(1)).saturating_add(1).min(limit(2));
            first.saturating_add(pieces.saturating_mul(ITEM_BYTES))
        }
        "join" => {
            let Some(CelValue::List(items)) = args.first() else { return Ok(0) };
            if items.iter().any(|item| !matches!(item, CelValue::String(_))) {
                return Err(ExecutionError::NoSuchOverload);
            }
            first.saturating_add((items.len() as u64).saturating_mul(text(1).len() as u64))
        }
        "format" if args.get(1).is_some_and(|value| has_opaque(value)) => return Err(ExecutionError::NoSuchOverload),
        "format" => format_bytes(text(0), args.get(1).map_or(0, |value| memory(value)))?,
        "strings.quote" | "base64.encode" | "jsonpatch.escapeKey" => first.saturating_mul(2).saturating_add(4),
        // Bytes that are no UTF-8 become a character of three bytes each; a URL's path is escaped.
        "string" | "getEscapedPath" => first.saturating_mul(3),
        "url" => first.saturating_mul(4).saturating_add(ITEM_BYTES * 2 * text(0).matches('&').count() as u64),
        _ => first,
    })
}

/// How often a text is found in another. The empty one is found between all characters.
fn occurrences(text: &str, wanted: &str) -> u64 {
    match wanted {
        "" => text.chars().count() as u64 + 2,
        _ => text.matches(wanted).count() as u64,
    }
}

/// What `format` writes at most: each argument once, in hexadecimal digits or with quotes around its parts, and as many digits as
/// directives ask for.
fn format_bytes(format: &str, arguments: u64) -> Result<u64, ExecutionError> {
    let mut bytes = (format.len() as u64).saturating_add(arguments.saturating_mul(2));
    for directive in format.split("%.").skip(1) {
        let digits: String = directive.chars().take_while(char::is_ascii_digit).collect();
        // What is no number is refused by the library.
        let precision = digits.parse::<u64>().unwrap_or(if digits.is_empty() { 0 } else { u64::MAX });
        if precision > MAX_PRECISION {
            return Err(ExecutionError::function_error("format", format!("precision is larger than {MAX_PRECISION}")));
        }
        // The largest number has 309 digits before its point.
        bytes = bytes.saturating_add(precision + 400);
    }
    Ok(bytes)
}

/// About what a value takes, with all of its parts.
fn memory(value: &CelValue) -> u64 {
    match value {
        CelValue::String(text) => text.len() as u64,
        CelValue::Bytes(bytes) => bytes.len() as u64,
        CelValue::List(items) => items.iter().map(|item| ITEM_BYTES + memory(item)).sum(),
        CelValue::Map(map) => map.map.values().map(|value| 2 * ITEM_BYTES + memory(value)).sum(),
        _ => ITEM_BYTES,
    }
}

/// Whether a value, or a part of it, is none of CEL's own types. cel-go's `format` refuses those, and what they print is unbounded.
fn has_opaque(value: &CelValue) -> bool {
    match value {
        CelValue::List(items) => items.iter().any(has_opaque),
        CelValue::Map(map) => map.map.values().any(has_opaque),
        CelValue::Opaque(_) => true,
        _ => false,
    }
}

fn matches(This(text): This<Arc<String>>, pattern: Arc<String>) -> Result<bool, ExecutionError> {
    Ok(meter::pattern("matches", &pattern)?.is_match(&text))
}

fn find(This(text): This<Arc<String>>, pattern: Arc<String>) -> ResolveResult {
    meter::charge("find", text.len() as u64)?;
    let regex = meter::pattern("find", &pattern)?;
    let found = regex.find(&text).map(|found| found.as_str().to_owned()).unwrap_or_default();
    Ok(CelValue::String(Arc::new(found)))
}

fn find_all(call: &FunctionContext<'_, '_>) -> ResolveResult {
    let args = call.args.iter().map(|arg| call.ptx.resolve(arg)).collect::<Result<Vec<_>, _>>()?;
    let all: Vec<&CelValue> = call.this.iter().chain(&args).collect();
    let (text, pattern, most) = match all.as_slice() {
        [CelValue::String(text), CelValue::String(pattern)] => (text, pattern, usize::MAX),
        [CelValue::String(text), CelValue::String(pattern), CelValue::Int(most)] => {
            (text, pattern, usize::try_from(*most).unwrap_or(usize::MAX))
        }
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    let regex = meter::pattern("findAll", pattern)?;
    meter::charge("findAll", text.len() as u64)?;
    let mut found = Vec::new();
    for part in regex.find_iter(text).take(most) {
        meter::charge("findAll", ITEM_BYTES)?;
        found.push(CelValue::String(Arc::new(part.as_str().to_owned())));
    }
    Ok(CelValue::List(Arc::new(found)))
}

fn range(n: i64) -> ResolveResult {
    if !(0..=MAX_RANGE).contains(&n) {
        return Err(ExecutionError::function_error("lists.range", format!("lists.range({n}) is out of bounds")));
    }
    Ok(CelValue::List(Arc::new((0..n).map(CelValue::Int).collect())))
}

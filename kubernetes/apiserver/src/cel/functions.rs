//! The functions of Kubernetes' expressions in the interpreter.
//!
//! Library functions whose results exceed their arguments, or that evaluate their arguments more than once, are
//! wrapped: arguments are evaluated once, the size of the result is computed from them and charged to the
//! [`meter`], and only then does the library run. The results of functions that are not wrapped are at most as
//! large as their arguments.

use std::{
    cmp::Ordering,
    collections::HashMap,
    sync::{Arc, LazyLock},
};

use kube_cel::{
    KubeCelExt,
    cel::{
        Context, ExecutionError, FunctionContext, ResolveResult,
        common::ast::{CallExpr, Expr},
        extractors::This,
        objects::{Key, Map},
        parser::Expression as Ast,
    },
};

use super::{
    CelValue,
    macros::{ENTRIES, INSERT, SORT_BY_KEYS, WITH_FIELDS},
    meter,
};

/// The longest result of `lists.range`.
pub(super) const MAX_RANGE_ITEMS: i64 = 1_000;

/// The highest precision of a `format` directive.
pub(super) const MAX_FORMAT_DIGITS: u64 = 1_000;

/// The size of a list item besides its content.
pub(super) const ITEM_BYTES: u64 = 64;

/// The wrapped library functions.
const METERED_FUNCTIONS: [&str; 36] = [
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
    // These evaluate their first argument twice if they are not called as a method.
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

/// The unmodified library.
static LIBRARY_CONTEXT: LazyLock<Context<'static>> = LazyLock::new(|| Context::default().with_all());

/// All functions of expressions.
pub(super) static FUNCTION_CONTEXT: LazyLock<Context<'static>> = LazyLock::new(|| {
    let mut context = Context::default().with_all();
    for name in METERED_FUNCTIONS {
        context.add_function(name, move |call: &FunctionContext<'_, '_>| call_metered(name, call));
    }
    context.add_function("matches", matches);
    context.add_function("find", find);
    context.add_function("findAll", find_all);
    context.add_function("lists.range", range);
    context.add_function(ENTRIES, entries);
    context.add_function(INSERT, insert);
    context.add_function(SORT_BY_KEYS, sort_by_keys);
    context.add_function(WITH_FIELDS, with_fields);
    context.add_function("dyn", |value: CelValue| Ok::<_, ExecutionError>(value));
    context
});

/// Evaluates the arguments once, charges the result, and calls the library.
fn call_metered(name: &str, call: &FunctionContext<'_, '_>) -> ResolveResult {
    let args = call.args.iter().map(|arg| call.ptx.resolve(arg)).collect::<Result<Vec<_>, _>>()?;
    let all: Vec<&CelValue> = call.this.iter().chain(&args).collect();
    if let ("string", [CelValue::Bool(bool)]) = (name, all.as_slice()) {
        // The library does not convert it.
        return Ok(CelValue::String(Arc::new(bool.to_string())));
    }
    meter::charge(name, result_bytes(name, &all)?)?;
    let mut scope = LIBRARY_CONTEXT.new_inner_scope();
    let mut bind = |name: String, value: CelValue| {
        scope.add_variable_from_value(name.clone(), value);
        Ast { id: 0, expr: Expr::Ident(name) }
    };
    let target = call.this.clone().map(|this| Box::new(bind("@this".to_owned(), this)));
    let args = (0..).zip(args).map(|(place, arg): (usize, _)| bind(format!("@{place}"), arg)).collect();
    let expr = Expr::Call(CallExpr { func_name: name.to_owned(), target, args });
    scope.resolve(&Ast { id: 0, expr })
}

/// The largest possible result of a function. Wrong types are refused by the library.
fn result_bytes(name: &str, args: &[&CelValue]) -> Result<u64, ExecutionError> {
    let text = |place: usize| match args.get(place) {
        Some(CelValue::String(text)) => text.as_str(),
        _ => "",
    };
    let limit = |place: usize| match args.get(place) {
        Some(CelValue::Int(limit)) => u64::try_from(*limit).unwrap_or(u64::MAX),
        _ => u64::MAX,
    };
    let first = args.first().map_or(0, |value| value_bytes(value));
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
        "format" => format_bytes(text(0), args.get(1).map_or(0, |value| value_bytes(value)))?,
        "strings.quote" | "base64.encode" | "jsonpatch.escapeKey" => first.saturating_mul(2).saturating_add(4),
        // Invalid UTF-8 becomes a character of three bytes per byte; a URL's path is escaped.
        "string" | "getEscapedPath" => first.saturating_mul(3),
        "url" => first.saturating_mul(4).saturating_add(ITEM_BYTES * 2 * text(0).matches('&').count() as u64),
        _ => first,
    })
}

/// The number of occurrences of a text in another one. An empty text occurs between all characters.
fn occurrences(text: &str, wanted: &str) -> u64 {
    match wanted {
        "" => text.chars().count() as u64 + 2,
        _ => text.matches(wanted).count() as u64,
    }
}

/// The largest possible result of `format`: each argument once, in hexadecimal digits or with quotes around its
/// parts, and as many digits as directives request.
fn format_bytes(format: &str, arguments: u64) -> Result<u64, ExecutionError> {
    let mut bytes = (format.len() as u64).saturating_add(arguments.saturating_mul(2));
    for directive in format.split("%.").skip(1) {
        let digits: String = directive.chars().take_while(char::is_ascii_digit).collect();
        // An invalid precision is refused by the library.
        let precision = digits.parse::<u64>().unwrap_or(if digits.is_empty() { 0 } else { u64::MAX });
        if precision > MAX_FORMAT_DIGITS {
            return Err(ExecutionError::function_error(
                "format",
                format!("precision is larger than {MAX_FORMAT_DIGITS}"),
            ));
        }
        // The largest number has 309 digits before its point.
        bytes = bytes.saturating_add(precision + 400);
    }
    Ok(bytes)
}

/// The approximate size of a value, including its parts.
fn value_bytes(value: &CelValue) -> u64 {
    match value {
        CelValue::String(text) => text.len() as u64,
        CelValue::Bytes(bytes) => bytes.len() as u64,
        CelValue::List(items) => items.iter().map(|item| ITEM_BYTES + value_bytes(item)).sum(),
        CelValue::Map(map) => map.map.values().map(|value| 2 * ITEM_BYTES + value_bytes(value)).sum(),
        _ => ITEM_BYTES,
    }
}

/// Whether a value, or a part of it, is not of CEL's own types. cel-go's `format` refuses those, and their text
/// is unbounded.
fn has_opaque(value: &CelValue) -> bool {
    match value {
        CelValue::List(items) => items.iter().any(has_opaque),
        CelValue::Map(map) => map.map.values().any(has_opaque),
        CelValue::Opaque(_) => true,
        _ => false,
    }
}

fn matches(This(text): This<Arc<String>>, pattern: Arc<String>) -> Result<bool, ExecutionError> {
    Ok(meter::compile_pattern("matches", &pattern)?.is_match(&text))
}

fn find(This(text): This<Arc<String>>, pattern: Arc<String>) -> ResolveResult {
    meter::charge("find", text.len() as u64)?;
    let regex = meter::compile_pattern("find", &pattern)?;
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
    let regex = meter::compile_pattern("findAll", pattern)?;
    meter::charge("findAll", text.len() as u64)?;
    let mut found = Vec::new();
    for part in regex.find_iter(text).take(most) {
        meter::charge("findAll", ITEM_BYTES)?;
        found.push(CelValue::String(Arc::new(part.as_str().to_owned())));
    }
    Ok(CelValue::List(Arc::new(found)))
}

fn arguments(call: &FunctionContext<'_, '_>) -> Result<Vec<CelValue>, ExecutionError> {
    call.this.iter().cloned().map(Ok).chain(call.args.iter().map(|arg| call.ptx.resolve(arg))).collect()
}

/// The first argument, if it can have a field like the second.
fn with_fields(call: &FunctionContext<'_, '_>) -> ResolveResult {
    let args = arguments(call)?;
    match <[CelValue; 2]>::try_from(args) {
        Ok([value @ (CelValue::Map(_) | CelValue::Opaque(_)), _]) => {
            meter::charge(WITH_FIELDS, value_bytes(&value))?;
            Ok(value)
        }
        Ok([_, CelValue::String(field)]) => Err(ExecutionError::NoSuchKey(field)),
        _ => Err(ExecutionError::NoSuchOverload),
    }
}

/// The entries of a map as pairs of key and value, and those of a list as pairs of index and item.
fn entries(call: &FunctionContext<'_, '_>) -> ResolveResult {
    let args = arguments(call)?;
    let pair = |key: CelValue, value: &CelValue| CelValue::List(Arc::new(vec![key, value.clone()]));
    let pairs: Vec<CelValue> = match args.as_slice() {
        [CelValue::List(items)] => {
            meter::charge(ENTRIES, items.len() as u64 * 3 * ITEM_BYTES)?;
            (0..).zip(items.iter()).map(|(place, item)| pair(CelValue::Int(place), item)).collect()
        }
        [CelValue::Map(map)] => {
            meter::charge(ENTRIES, map.map.len() as u64 * 3 * ITEM_BYTES)?;
            map.map.iter().map(|(key, value)| pair(key_value(key), value)).collect()
        }
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    Ok(CelValue::List(Arc::new(pairs)))
}

fn key_value(key: &Key) -> CelValue {
    match key {
        Key::Int(key) => CelValue::Int(*key),
        Key::Uint(key) => CelValue::UInt(*key),
        Key::Bool(key) => CelValue::Bool(*key),
        Key::String(key) => CelValue::String(Arc::clone(key)),
    }
}

/// A map with an additional entry, or with all entries of another map. Duplicate keys are an error.
fn insert(call: &FunctionContext<'_, '_>) -> ResolveResult {
    let args = arguments(call)?;
    let (map, added) = match args.as_slice() {
        [CelValue::Map(map), CelValue::Map(more)] => {
            (map, more.map.iter().map(|(key, value)| (key.clone(), value.clone())).collect())
        }
        [CelValue::Map(map), key, value] => {
            let key = match key {
                CelValue::Int(key) => Key::Int(*key),
                CelValue::UInt(key) => Key::Uint(*key),
                CelValue::Bool(key) => Key::Bool(*key),
                CelValue::String(key) => Key::String(Arc::clone(key)),
                _ => return Err(ExecutionError::NoSuchOverload),
            };
            (map, vec![(key, value.clone())])
        }
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    meter::charge(INSERT, ((map.map.len() + added.len()) as u64).saturating_mul(2 * ITEM_BYTES))?;
    let mut made = HashMap::clone(&map.map);
    for (key, value) in added {
        if made.contains_key(&key) {
            let shown = match &key {
                Key::Int(key) => key.to_string(),
                Key::Uint(key) => key.to_string(),
                Key::Bool(key) => key.to_string(),
                Key::String(key) => key.to_string(),
            };
            return Err(ExecutionError::function_error(INSERT, format!("insert failed: key {shown} already exists")));
        }
        made.insert(key, value);
    }
    Ok(CelValue::Map(Map { map: Arc::new(made) }))
}

/// A list sorted by keys, one for each item.
fn sort_by_keys(call: &FunctionContext<'_, '_>) -> ResolveResult {
    let args = arguments(call)?;
    let [CelValue::List(items), CelValue::List(keys)] = args.as_slice() else {
        return Err(ExecutionError::NoSuchOverload);
    };
    meter::charge(SORT_BY_KEYS, items.len() as u64 * ITEM_BYTES)?;
    let mut pairs: Vec<(&CelValue, &CelValue)> = keys.iter().zip(items.iter()).collect();
    let first = pairs.first().map(|(key, _)| *key);
    if first.is_some_and(|first| pairs.iter().any(|(key, _)| first.partial_cmp(key).is_none())) {
        return Err(ExecutionError::function_error("sortBy", "list elements must have the same type"));
    }
    pairs.sort_by(|(one, _), (other, _)| one.partial_cmp(other).unwrap_or(Ordering::Equal));
    Ok(CelValue::List(Arc::new(pairs.into_iter().map(|(_, item)| item.clone()).collect())))
}

fn range(n: i64) -> ResolveResult {
    if !(0..=MAX_RANGE_ITEMS).contains(&n) {
        return Err(ExecutionError::function_error("lists.range", format!("lists.range({n}) is out of bounds")));
    }
    Ok(CelValue::List(Arc::new((0..n).map(CelValue::Int).collect())))
}

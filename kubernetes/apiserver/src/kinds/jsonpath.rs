//! The JSONPath of printer columns: `.spec.size`, `.status.conditions[?(@.type=="Ready")].status`,
//! `.spec.list[0].name`.
//!
//! Only simple paths are valid in a CRD; an unsupported one finds nothing. A path is parsed again for each
//! object, which costs less than decoding the object.

use serde_json::Value;

/// The longest path. CRDs are not validated for this.
const MAX_PATH_STEPS: usize = 64;

#[derive(Debug, PartialEq)]
enum JsonPathStep<'a> {
    Field(String),
    Index(i64),
    All,
    /// Items with a field that equals (or does not equal) a text.
    Filter {
        path: &'a str,
        equal: bool,
        text: &'a str,
    },
}

/// The first value that a path finds.
pub fn find_first<'v>(object: &'v Value, path: &str) -> Option<&'v Value> {
    let path = path.strip_prefix('{').and_then(|path| path.strip_suffix('}')).unwrap_or(path);
    let path = path.strip_prefix('$').unwrap_or(path);
    walk(object, &steps(path)?)
}

fn walk<'v>(value: &'v Value, steps: &[JsonPathStep<'_>]) -> Option<&'v Value> {
    let Some((step, rest)) = steps.split_first() else { return Some(value) };
    match step {
        JsonPathStep::Field(name) => walk(value.get(name)?, rest),
        JsonPathStep::Index(index) => {
            let list = value.as_array()?;
            let from_end = i64::try_from(list.len()).ok()?.saturating_add(*index);
            let index = if *index < 0 { from_end } else { *index };
            walk(list.get(usize::try_from(index).ok()?)?, rest)
        }
        JsonPathStep::All => members(value).find_map(|member| walk(member, rest)),
        JsonPathStep::Filter { path, equal, text } => {
            let holds = |member: &&Value| {
                find_first(member, path).map(format_value).is_some_and(|found| (found == *text) == *equal)
            };
            members(value).filter(holds).find_map(|member| walk(member, rest))
        }
    }
}

fn members(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(map) => Box::new(map.values()),
        _ => Box::new(std::iter::empty()),
    }
}

/// A value as text: strings as they are, all else as JSON.
pub fn format_value(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn steps(path: &str) -> Option<Vec<JsonPathStep<'_>>> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if steps.len() == MAX_PATH_STEPS {
            return None;
        }
        if let Some(inner) = rest.strip_prefix('[') {
            let end = closing(inner)?;
            steps.push(bracket(inner.get(..end)?)?);
            rest = inner.get(end + 1..)?;
        } else {
            let (name, after) = field(rest.strip_prefix('.').unwrap_or(rest));
            match name.as_str() {
                "" if after.starts_with('[') => {}
                "" if after.is_empty() => {}
                "" => return None,
                "*" => steps.push(JsonPathStep::All),
                _ => steps.push(JsonPathStep::Field(name)),
            }
            rest = after;
        }
    }
    Some(steps)
}

/// A name up to the next dot or bracket; a backslash escapes the next character.
fn field(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((at, one)) = chars.next() {
        match one {
            '\\' => name.extend(chars.next().map(|(_, next)| next)),
            '.' | '[' => return (name, text.get(at..).unwrap_or_default()),
            _ => name.push(one),
        }
    }
    (name, "")
}

/// The end of a bracket, past nested quotes and brackets.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    let mut quote = None;
    for (at, one) in text.char_indices() {
        match (one, quote) {
            (one, Some(open)) if one == open => quote = None,
            (_, Some(_)) => {}
            ('"' | '\'', None) => quote = Some(one),
            ('[', None) => depth += 1,
            (']', None) if depth == 0 => return Some(at),
            (']', None) => depth -= 1,
            _ => {}
        }
    }
    None
}

fn bracket(inner: &str) -> Option<JsonPathStep<'_>> {
    let inner = inner.trim();
    if let Some(filter) = inner.strip_prefix("?(").and_then(|filter| filter.strip_suffix(')')) {
        return self::filter(filter);
    }
    if let Some(name) = unquoted(inner) {
        return Some(JsonPathStep::Field(name.to_owned()));
    }
    match inner {
        "*" => Some(JsonPathStep::All),
        number => number.parse().ok().map(JsonPathStep::Index),
    }
}

fn filter(text: &str) -> Option<JsonPathStep<'_>> {
    let (left, right, equal) = match (text.split_once("=="), text.split_once("!=")) {
        (Some((left, right)), _) => (left, right, true),
        (None, Some((left, right))) => (left, right, false),
        (None, None) => return None,
    };
    let path = left.trim().strip_prefix('@')?;
    let right = right.trim();
    Some(JsonPathStep::Filter { path, equal, text: unquoted(right).unwrap_or(right) })
}

fn unquoted(text: &str) -> Option<&str> {
    let quoted = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    quoted('"').or_else(|| quoted('\''))
}

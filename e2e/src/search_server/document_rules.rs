//! Which documents an index takes.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{DocumentError, bulk_body::BulkLine};

/// The longest id.
const MAX_ID_BYTES: usize = 512;

pub(super) fn check(line: &BulkLine) -> Result<(), DocumentError> {
    let refuse = |kind, reason: String| Err(DocumentError { status: 400, kind, reason });
    if let Some(fault) = index_fault(&line.index) {
        return refuse("invalid_index_name_exception", format!("Invalid index name [{}], {fault}", line.index));
    }
    if line.id.as_ref().is_some_and(|id| id.is_empty() || id.len() > MAX_ID_BYTES) {
        return refuse("illegal_argument_exception", "id is empty or too long".into());
    }
    let is_stream = is_data_stream(&line.index);
    if line.require_data_stream && !is_stream {
        let reason = format!("no matching index template found for data stream [{}]", line.index);
        return refuse("illegal_argument_exception", reason);
    }
    if is_stream && line.action != "create" {
        let reason = "only write ops with an op_type of create are allowed in data streams".into();
        return refuse("illegal_argument_exception", reason);
    }
    let Some(members) = line.document.as_object() else {
        return refuse("document_parsing_exception", "not an object".into());
    };
    if is_stream && !members.get("@timestamp").is_some_and(Value::is_string) {
        return refuse("document_parsing_exception", "data stream timestamp field [@timestamp] is missing".into());
    }
    if written_members(&line.text) != count_members(&line.document) {
        return refuse("document_parsing_exception", "Duplicate field".into());
    }
    Ok(())
}

/// Whether the name matches a template for data streams.
fn is_data_stream(index: &str) -> bool {
    ["logs", "traces", "ss4o_logs", "ss4o_traces"].iter().any(|prefix| {
        let parts = index.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('-'));
        parts.is_some_and(|parts| parts.contains('-'))
    })
}

fn index_fault(index: &str) -> Option<&'static str> {
    match index {
        "" => Some("must not be empty"),
        "." | ".." => Some("must not be '.' or '..'"),
        index if index.starts_with(['-', '_', '+', '.']) => Some("must not start with '_', '-', '+' or '.'"),
        index if index.len() > 255 => Some("index name is too long"),
        index if index.to_lowercase() != *index => Some("must be lowercase"),
        index if index.contains(['\\', '/', '*', '?', '"', '<', '>', '|', ' ', ',', '#', ':']) => {
            Some("must not contain the following characters")
        }
        _ => None,
    }
}

/// The number of members of all objects, each counted as often as it is written.
fn written_members(text: &str) -> usize {
    let (mut members, mut in_string, mut after_backslash) = (0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if after_backslash => after_backslash = false,
            b'\\' if in_string => after_backslash = true,
            b'"' => in_string = !in_string,
            b':' if !in_string => members += 1,
            _ => {}
        }
    }
    members
}

fn count_members(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(count_members).sum(),
        Value::Object(members) => members.values().map(|value| 1 + count_members(value)).sum(),
        _ => 0,
    }
}

/// Sets the types of new fields, and refuses values of another type.
pub(super) fn check_types(
    index: &str,
    document: &Value,
    types: &mut BTreeMap<(String, String), &'static str>,
) -> Result<(), DocumentError> {
    let mut fields = Vec::new();
    collect(document, String::new(), &mut fields);
    for (path, value) in &fields {
        let kind = type_name(value);
        let known = types.get(&(index.to_owned(), path.clone())).copied().unwrap_or(kind);
        // Numbers are text for a text field.
        if known != kind && known != "text" || (known == "text") && kind == "object" {
            let reason = format!(
                "[1:1] failed to parse field [{path}] of type [{known}] in document with id 'x'. Preview of field's \
                 value: '{value}'"
            );
            return Err(DocumentError { status: 400, kind: "document_parsing_exception", reason });
        }
    }
    for (path, value) in fields {
        types.entry((index.to_owned(), path)).or_insert(type_name(&value));
    }
    Ok(())
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Number(_) => "double",
        Value::Bool(_) => "boolean",
        Value::Object(_) => "object",
        _ => "text",
    }
}

/// All fields below the root, of the elements of lists, too.
fn collect(value: &Value, path: String, out: &mut Vec<(String, Value)>) {
    match value {
        Value::Null => {}
        Value::Array(items) => items.iter().for_each(|item| collect(item, path.clone(), out)),
        Value::Object(members) => {
            if !path.is_empty() {
                out.push((path.clone(), value.clone()));
            }
            for (key, value) in members {
                let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                collect(value, inner, out);
            }
        }
        value => out.push((path, value.clone())),
    }
}

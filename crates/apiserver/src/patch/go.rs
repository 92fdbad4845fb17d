//! Values as Go's messages show them.

use serde_json::Value;

/// The sort of a JSON value, as Go's JSON decoder names it.
pub(crate) fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The Go type that a JSON value is read into.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// As `%v` prints it.
pub(crate) fn printed(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(printed).collect::<Vec<_>>().join(" ")),
        Value::Object(members) => {
            let members: Vec<String> = members.iter().map(|(key, value)| format!("{key}:{}", printed(value))).collect();
            format!("map[{}]", members.join(" "))
        }
        plain => plain.to_string(),
    }
}

/// As `%#v` prints it.
pub(crate) fn syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(syntax).collect::<Vec<_>>().join(", "))
        }
        Value::Object(members) => {
            let members: Vec<String> =
                members.iter().map(|(key, value)| format!("{key:?}:{}", syntax(value))).collect();
            format!("map[string]interface {{}}{{{}}}", members.join(", "))
        }
        plain => plain.to_string(),
    }
}

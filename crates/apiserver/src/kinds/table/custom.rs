//! The columns of custom resources.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Row, age, definition, words};
use crate::{
    api::meta::Meta,
    kinds::{jsonpath, object::text_at},
    registry::Custom,
};

/// The name, then what the definition says, or the age.
pub(super) fn columns(custom: &Custom) -> Vec<Value> {
    let mut all = vec![definition("Name", "string", "name", words::NAME, 0)];
    if custom.columns.is_empty() {
        all.push(definition("Age", "date", "", words::CREATED, 0));
    }
    all.extend(custom.columns.iter().map(column));
    all
}

fn column(column: &Value) -> Value {
    let text = |field: &str| text_at(column, &[field]);
    let words = match text("description") {
        "" => format!("Custom resource definition column (in JSONPath format): {}", text("jsonPath")),
        given => given.to_owned(),
    };
    let priority = column.get("priority").and_then(Value::as_i64).unwrap_or(0);
    definition(text("name"), text("type"), text("format"), &words, priority)
}

pub(super) fn cells(custom: &Custom, row: &Row<'_>) -> Vec<Value> {
    let mut cells = vec![Value::from(row.object.name())];
    if custom.columns.is_empty() {
        cells.push(row.age());
    }
    cells.extend(custom.columns.iter().map(|column| {
        let found = jsonpath::first(row.object, text_at(column, &["jsonPath"]));
        found.map_or(Value::Null, |found| cell(text_at(column, &["type"]), found, row))
    }));
    cells
}

/// A value as its column's type; nothing if it is of another.
fn cell(kind: &str, value: &Value, row: &Row<'_>) -> Value {
    match (kind, value) {
        (_, Value::Null) => Value::Null,
        ("string", value) => jsonpath::shown(value).into(),
        ("integer", Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => number.into(),
            #[expect(clippy::cast_possible_truncation, reason = "an integer is asked for")]
            (None, Some(number)) => (number as i64).into(),
            (None, None) => Value::Null,
        },
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(time)) => match time.parse::<Timestamp>() {
            Ok(_) => age::since(time, row.now).into(),
            Err(_) => json!("<invalid>"),
        },
        _ => Value::Null,
    }
}

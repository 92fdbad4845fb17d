//! The columns of custom resources.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{PrinterRow, age, column_descriptions, definition};
use crate::{
    api::meta::MetaAccessor,
    kinds::{json_object::text_at, jsonpath},
    registry::CustomResourceInfo,
};

/// The name, followed by the columns of the CRD, or by the age.
pub(super) fn columns(custom: &CustomResourceInfo) -> Vec<Value> {
    let mut all = vec![definition("Name", "string", "name", column_descriptions::NAME, 0)];
    if custom.columns.is_empty() {
        all.push(definition("Age", "date", "", column_descriptions::CREATED, 0));
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

pub(super) fn cells(custom: &CustomResourceInfo, row: &PrinterRow<'_>) -> Vec<Value> {
    let mut cells = vec![Value::from(row.object.name())];
    if custom.columns.is_empty() {
        cells.push(row.age());
    }
    cells.extend(custom.columns.iter().map(|column| {
        let found = jsonpath::find_first(row.object, text_at(column, &["jsonPath"]));
        found.map_or(Value::Null, |found| cell(text_at(column, &["type"]), found, row))
    }));
    cells
}

/// A value as the type of its column; null if it is of another type.
fn cell(kind: &str, value: &Value, row: &PrinterRow<'_>) -> Value {
    match (kind, value) {
        (_, Value::Null) => Value::Null,
        ("string", value) => jsonpath::format_value(value).into(),
        ("integer", Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => number.into(),
            #[expect(clippy::cast_possible_truncation, reason = "the column is an integer")]
            (None, Some(number)) => (number as i64).into(),
            (None, None) => Value::Null,
        },
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(time)) => match time.parse::<Timestamp>() {
            Ok(_) => age::age_since(time, row.now).into(),
            Err(_) => json!("<invalid>"),
        },
        _ => Value::Null,
    }
}

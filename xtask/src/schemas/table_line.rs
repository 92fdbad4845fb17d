//! Lines of the table: writes types and fields, and reads marks from an earlier table.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{FieldMarks, OpenApiType};

/// A string member, empty when absent.
pub(super) fn text_member<'a>(value: &'a Value, member: &str) -> &'a str {
    value.get(member).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn write_type(
    out: &mut String,
    package: &str,
    name: &str,
    of: &OpenApiType,
    types: &BTreeMap<String, OpenApiType>,
    marks: &FieldMarks,
) {
    let full = format!("{package}.{name}");
    out.push_str(&format!("type {name}"));
    if let Some(scalar) = opaque_type(&full, &of.schema) {
        out.push_str(&format!(" = {scalar}"));
    }
    if !of.kinds.is_empty() {
        let kinds: Vec<&str> = of.kinds.iter().map(String::as_str).collect();
        out.push_str(&format!(" kinds={}", kinds.join(",")));
    }
    if text_member(&of.schema, "x-kubernetes-map-type") == "atomic" {
        out.push_str(" map=atomic");
    }
    out.push('\n');
    let required: Vec<&str> = strings(&of.schema, "required");
    let fields = of.schema.get("properties").and_then(Value::as_object);
    let fields: BTreeMap<&String, &Value> = fields.into_iter().flatten().collect();
    for (field, schema) in fields {
        let mark = marks.get(&(full.clone(), field.clone()));
        let required = required.contains(&field.as_str());
        let mark = mark.map_or_else(|| guess_mark(schema, required), String::as_str);
        out.push_str(&format!("  {field} {}", field_type(schema, package, types)));
        attributes(out, schema, required, mark);
        out.push('\n');
    }
}

fn attributes(out: &mut String, schema: &Value, required: bool, mark: &str) {
    if required {
        out.push_str(" required");
    }
    if !mark.is_empty() {
        out.push_str(&format!(" {mark}"));
    }
    let named = [
        ("list", "x-kubernetes-list-type"),
        ("map", "x-kubernetes-map-type"),
        ("patch", "x-kubernetes-patch-strategy"),
        ("key", "x-kubernetes-patch-merge-key"),
    ];
    for (name, member) in named {
        if let Some(value) = schema.get(member).and_then(Value::as_str) {
            out.push_str(&format!(" {name}={value}"));
        }
    }
    let keys = strings(schema, "x-kubernetes-list-map-keys");
    if !keys.is_empty() {
        out.push_str(&format!(" keys={}", keys.join(",")));
    }
    // A `zero` mark implies its default.
    if let Some(default) = schema.get("default").filter(|default| mark != "zero" || !is_zero(default)) {
        out.push_str(&format!(" default={default}"));
    }
    let values = strings(innermost_schema(schema), "enum");
    if !values.is_empty() {
        out.push_str(&format!(" enum={}", values.join("|")));
    }
}

/// The type of a field in the table's notation.
fn field_type(schema: &Value, package: &str, types: &BTreeMap<String, OpenApiType>) -> String {
    if let Some(items) = schema.get("items") {
        return format!("[]{}", field_type(items, package, types));
    }
    if let Some(values) = schema.get("additionalProperties") {
        return format!("{{}}{}", field_type(values, package, types));
    }
    let Some(name) = reference(schema) else {
        return scalar_type(schema).to_owned();
    };
    let declared = types.get(name).and_then(|of| opaque_type(name, &of.schema)).filter(|special| *special != "any");
    let local = name.strip_prefix(package).and_then(|rest| rest.strip_prefix('.'));
    declared.or(local.filter(|local| !local.contains('.'))).unwrap_or(name).to_owned()
}

pub(super) fn reference(schema: &Value) -> Option<&str> {
    let own = schema.get("$ref").or_else(|| schema.pointer("/allOf/0/$ref"))?;
    own.as_str()?.rsplit('/').next()
}

fn scalar_type(schema: &Value) -> &'static str {
    match (text_member(schema, "type"), text_member(schema, "format")) {
        ("string", "byte") => "bytes",
        ("string", _) => "string",
        ("boolean", _) => "boolean",
        ("integer", "int32") => "int32",
        ("integer", _) => "int64",
        ("number", _) => "double",
        _ => "any",
    }
}

/// The type of a schema without fields: one with a serialization of its own, or any.
fn opaque_type(name: &str, schema: &Value) -> Option<&'static str> {
    match name.rsplit('.').next().unwrap_or(name) {
        "Time" => Some("time"),
        "MicroTime" => Some("microtime"),
        "Duration" => Some("duration"),
        "Quantity" => Some("quantity"),
        "IntOrString" => Some("intorstring"),
        // Open objects; all other types without fields are empty structs.
        "FieldsV1" | "Patch" | "RawExtension" => Some("any"),
        _ => (schema.get("properties").is_none() && schema.get("type").is_none()).then_some("any"),
    }
}

/// The items of nested lists and maps.
fn innermost_schema(schema: &Value) -> &Value {
    schema.get("items").or_else(|| schema.get("additionalProperties")).map_or(schema, innermost_schema)
}

fn strings<'a>(schema: &'a Value, member: &str) -> Vec<&'a str> {
    schema.get(member).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(value) => value.as_f64() == Some(0.0),
        Value::String(value) => value.is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

/// The mark of a field without Go sources: a zero default in OpenAPI stands for a value that is always written.
fn guess_mark(schema: &Value, required: bool) -> &'static str {
    let many = schema.get("items").or_else(|| schema.get("additionalProperties")).is_some();
    match (schema.get("default"), many) {
        (Some(default), _) if is_zero(default) => "zero",
        (_, true) if required => "null",
        (_, true) => "omit",
        _ => "",
    }
}

/// The marks in a table, by type and field.
pub(super) fn parse_marks(table: &str) -> FieldMarks {
    let mut package = "";
    let mut of = String::new();
    let mut marks = FieldMarks::new();
    for line in table.lines() {
        let mut words = line.split(' ').filter(|word| !word.is_empty());
        match (line.starts_with(' '), words.next(), words.next()) {
            (false, Some("package"), Some(name)) => package = name,
            (false, Some("type"), Some(name)) => of = format!("{package}.{name}"),
            (true, Some(field), Some(_)) => {
                let mark = words.take_while(|word| !word.contains('=')).find(|word| *word != "required");
                marks.insert((of.clone(), field.to_owned()), mark.unwrap_or_default().to_owned());
            }
            _ => {}
        }
    }
    marks
}

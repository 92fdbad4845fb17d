//! The lines of the table: how a type and its fields are written, and what is read back from an earlier table.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Marks, Type};

/// A text member, empty when absent.
pub(super) fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value.get(member).and_then(Value::as_str).unwrap_or_default()
}

/// A type and its fields.
pub(super) fn write_type(
    out: &mut String,
    package: &str,
    name: &str,
    of: &Type,
    types: &BTreeMap<String, Type>,
    marks: &Marks,
) {
    let full = format!("{package}.{name}");
    out.push_str(&format!("type {name}"));
    if let Some(scalar) = special(&full, &of.schema) {
        out.push_str(&format!(" = {scalar}"));
    }
    if !of.kinds.is_empty() {
        let kinds: Vec<&str> = of.kinds.iter().map(String::as_str).collect();
        out.push_str(&format!(" kinds={}", kinds.join(",")));
    }
    if text(&of.schema, "x-kubernetes-map-type") == "atomic" {
        out.push_str(" map=atomic");
    }
    out.push('\n');
    let required: Vec<&str> = strings(&of.schema, "required");
    let fields = of.schema.get("properties").and_then(Value::as_object);
    let fields: BTreeMap<&String, &Value> = fields.into_iter().flatten().collect();
    for (field, schema) in fields {
        let mark = marks.get(&(full.clone(), field.clone()));
        let required = required.contains(&field.as_str());
        let mark = mark.map_or_else(|| guess(schema, required), String::as_str);
        out.push_str(&format!("  {field} {}", type_of(schema, package, types)));
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
    // `zero` says the same as the default that it stands for.
    if let Some(default) = schema.get("default").filter(|default| mark != "zero" || !is_zero(default)) {
        out.push_str(&format!(" default={default}"));
    }
    let values = strings(innermost(schema), "enum");
    if !values.is_empty() {
        out.push_str(&format!(" enum={}", values.join("|")));
    }
}

/// The type of a field in the words of the table.
fn type_of(schema: &Value, package: &str, types: &BTreeMap<String, Type>) -> String {
    if let Some(items) = schema.get("items") {
        return format!("[]{}", type_of(items, package, types));
    }
    if let Some(values) = schema.get("additionalProperties") {
        return format!("{{}}{}", type_of(values, package, types));
    }
    let Some(name) = reference(schema) else {
        return scalar(schema).to_owned();
    };
    let declared = types.get(name).and_then(|of| special(name, &of.schema)).filter(|special| *special != "any");
    let local = name.strip_prefix(package).and_then(|rest| rest.strip_prefix('.'));
    declared.or(local.filter(|local| !local.contains('.'))).unwrap_or(name).to_owned()
}

/// The full name of the type that a field refers to.
pub(super) fn reference(schema: &Value) -> Option<&str> {
    let own = schema.get("$ref").or_else(|| schema.pointer("/allOf/0/$ref"))?;
    own.as_str()?.rsplit('/').next()
}

fn scalar(schema: &Value) -> &'static str {
    match (text(schema, "type"), text(schema, "format")) {
        ("string", "byte") => "bytes",
        ("string", _) => "string",
        ("boolean", _) => "boolean",
        ("integer", "int32") => "int32",
        ("integer", _) => "int64",
        ("number", _) => "double",
        _ => "any",
    }
}

/// What a type without fields is: one of the values that Kubernetes prints in its own way, or anything.
fn special(name: &str, schema: &Value) -> Option<&'static str> {
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

/// Lists and maps down to what they hold in the end.
fn innermost(schema: &Value) -> &Value {
    schema.get("items").or_else(|| schema.get("additionalProperties")).map_or(schema, innermost)
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

/// The mark of a field of which nobody knows more: a zero default in OpenAPI stands for a value that is always written.
fn guess(schema: &Value, required: bool) -> &'static str {
    let many = schema.get("items").or_else(|| schema.get("additionalProperties")).is_some();
    match (schema.get("default"), many) {
        (Some(default), _) if is_zero(default) => "zero",
        (_, true) if required => "null",
        (_, true) => "omit",
        _ => "",
    }
}

/// The marks of a table, by type and field.
pub(super) fn marks(table: &str) -> Marks {
    let (mut package, mut of, mut marks) = ("", String::new(), Marks::new());
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

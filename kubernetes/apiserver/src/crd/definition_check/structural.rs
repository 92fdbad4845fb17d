//! Checks whether a schema is structural: every field has a type outside of `anyOf` and the like, and those
//! only restrict values.

use serde_json::{Map, Value};

use crate::{
    api::field::{FieldError, FieldErrors},
    crd::{
        structural::{array_field, bool_field, text},
        validate::GoPattern,
    },
};

type JsonSchemaProps = Map<String, Value>;

/// The position of a node in the schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaLevel {
    Root,
    Item,
    Field,
}

/// Keywords that are not supported in CRDs; they have errors of their own.
const UNSUPPORTED_KEYWORDS: [&str; 7] =
    ["id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions"];

/// Whether a schema contains an unsupported keyword.
pub(super) fn has_unsupported(schema: &JsonSchemaProps) -> bool {
    let own = UNSUPPORTED_KEYWORDS.iter().any(|name| schema.get(*name).is_some_and(|value| !value.is_null()))
        || schema.get("items").is_some_and(Value::is_array)
        || schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false));
    let parts = ["items", "additionalProperties", "not"].into_iter().filter_map(|name| schema.get(name)?.as_object());
    let lists =
        ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|name| array_field(schema, name)).filter_map(Value::as_object);
    own || parts.chain(lists).chain(properties(schema).map(|(_, part)| part)).any(has_unsupported)
}

/// Reports all errors, sorted by text.
pub(super) fn check(root: &JsonSchemaProps, path: &str, errors: &mut FieldErrors) {
    let mut found = Vec::new();
    invariants(root, SchemaLevel::Root, path, &mut found);
    complete(root, Some(root), path, path, &mut found);
    found.sort_by_cached_key(ToString::to_string);
    errors.extend(found);
}

pub(super) fn properties(schema: &JsonSchemaProps) -> impl Iterator<Item = (&String, &JsonSchemaProps)> {
    let all = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    all.filter_map(|(name, part)| Some((name, part.as_object()?)))
}

fn part<'a>(schema: &'a JsonSchemaProps, name: &str) -> Option<&'a JsonSchemaProps> {
    schema.get(name).and_then(Value::as_object)
}

fn is_set(schema: &JsonSchemaProps, name: &str) -> bool {
    schema.get(name).is_some_and(|value| !value.is_null())
}

fn invariants(schema: &JsonSchemaProps, level: SchemaLevel, path: &str, errors: &mut FieldErrors) {
    if text(schema, "type") == "array" && part(schema, "items").is_none() {
        errors.push(FieldError::required(format!("{path}.items"), "must be specified"));
    }
    if let Some(items) = part(schema, "items") {
        invariants(items, SchemaLevel::Item, &format!("{path}.items"), errors);
    }
    for (name, part) in properties(schema) {
        invariants(part, SchemaLevel::Field, &format!("{path}.properties[{name}]"), errors);
    }
    additional(schema, level, path, errors);
    if bool_field(schema, "x-kubernetes-int-or-string") {
        for name in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
            if bool_field(schema, name) {
                let detail = "must be false if x-kubernetes-int-or-string is true";
                errors.push(FieldError::invalid(format!("{path}.{name}"), &true.into(), detail));
            }
        }
    }
    let either = int_or_string(array_field(schema, "anyOf"));
    value_rules(schema, either, int_or_string_in_all(schema), path, errors);
    types(schema, level, path, errors);
    type_and_meta(schema, level, path, errors);
}

fn additional(schema: &JsonSchemaProps, level: SchemaLevel, path: &str, errors: &mut FieldErrors) {
    if !is_set(schema, "additionalProperties") {
        return;
    }
    let path = format!("{path}.additionalProperties");
    if level == SchemaLevel::Root {
        errors.push(FieldError::forbidden(path.clone(), "must not be used at the root"));
    }
    if let Some(values) = part(schema, "additionalProperties") {
        invariants(values, SchemaLevel::Field, &path, errors);
    }
    if bool_field(schema, "x-kubernetes-embedded-resource") {
        errors.push(FieldError::forbidden(path, "must not be used if x-kubernetes-embedded-resource is set"));
    }
}

fn types(schema: &JsonSchemaProps, level: SchemaLevel, path: &str, errors: &mut FieldErrors) {
    let kind = text(schema, "type");
    let path = format!("{path}.type");
    if bool_field(schema, "x-kubernetes-embedded-resource") && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if kind.is_empty() {
            FieldError::required(path, detail)
        } else {
            FieldError::invalid(path, &kind.into(), detail)
        });
    } else if kind.is_empty() {
        let free = bool_field(schema, "x-kubernetes-int-or-string")
            || bool_field(schema, "x-kubernetes-preserve-unknown-fields");
        let place = match level {
            SchemaLevel::Root => "must not be empty at the root",
            SchemaLevel::Item => "must not be empty for specified array items",
            SchemaLevel::Field => "must not be empty for specified object fields",
        };
        if !free {
            errors.push(FieldError::required(path, place));
        }
    } else if level == SchemaLevel::Root && kind != "object" {
        errors.push(FieldError::invalid(path, &kind.into(), "must be object at the root"));
    }
}

fn type_and_meta(schema: &JsonSchemaProps, level: SchemaLevel, path: &str, errors: &mut FieldErrors) {
    let embedded = bool_field(schema, "x-kubernetes-embedded-resource");
    let is_resource = level == SchemaLevel::Root || embedded;
    for (name, part) in properties(schema) {
        let path = format!("{path}.properties[{name}]");
        let wanted = match name.as_str() {
            "kind" | "apiVersion" => "string",
            "metadata" => "object",
            _ => continue,
        };
        let kind = text(part, "type");
        if is_resource && kind != wanted {
            errors.push(FieldError::invalid(format!("{path}.type"), &kind.into(), &format!("must be {wanted}")));
        }
        if name == "metadata" && level == SchemaLevel::Root && !only_restricts_names(part) {
            let detail =
                "must not specify anything other than name and generateName, but metadata is implicitly specified";
            errors.push(FieldError::forbidden(path, detail));
        }
    }
    if embedded && !bool_field(schema, "x-kubernetes-preserve-unknown-fields") && properties(schema).next().is_none() {
        let detail =
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(format!("{path}.properties"), detail));
    }
}

fn only_restricts_names(metadata: &JsonSchemaProps) -> bool {
    let names = properties(metadata).all(|(name, _)| matches!(name.as_str(), "name" | "generateName"));
    names && metadata.keys().all(|key| matches!(key.as_str(), "type" | "default" | "properties"))
}

/// The only form of types in `anyOf` that is allowed.
fn int_or_string(any_of: &[Value]) -> bool {
    let types: Vec<_> =
        any_of.iter().filter_map(Value::as_object).map(|part| (part.len(), text(part, "type"))).collect();
    types == [(1, "integer"), (1, "string")]
}

fn int_or_string_in_all(schema: &JsonSchemaProps) -> bool {
    array_field(schema, "allOf")
        .first()
        .and_then(Value::as_object)
        .is_some_and(|first| int_or_string(array_field(first, "anyOf")))
}

/// Checks `anyOf` and the like of a node, which may only restrict values.
fn value_rules(schema: &JsonSchemaProps, skip_any: bool, skip_in_all: bool, path: &str, errors: &mut FieldErrors) {
    for (list, skip) in [("anyOf", skip_any), ("allOf", false), ("oneOf", false)] {
        for (index, part) in array_field(schema, list).iter().enumerate().filter(|_| !skip) {
            if let Some(part) = part.as_object() {
                nested(part, list == "allOf" && index == 0 && skip_in_all, &format!("{path}.{list}[{index}]"), errors);
            }
        }
    }
    if let Some(not) = part(schema, "not") {
        nested(not, false, &format!("{path}.not"), errors);
    }
    let pattern = text(schema, "pattern");
    if let Some(why) = GoPattern::new(pattern).problem().filter(|_| !pattern.is_empty()) {
        let detail = format!("must be a valid regular expression, but isn't: {why}");
        errors.push(FieldError::invalid(format!("{path}.pattern"), &pattern.into(), &detail));
    }
}

fn nested(schema: &JsonSchemaProps, skip_any: bool, path: &str, errors: &mut FieldErrors) {
    value_rules(schema, skip_any, false, path, errors);
    if let Some(items) = part(schema, "items") {
        nested(items, false, &format!("{path}.items"), errors);
    }
    for (name, part) in properties(schema) {
        nested(part, false, &format!("{path}.properties[{name}]"), errors);
    }
    let mut forbid = |name: &str, set: bool, what: &str| {
        if set {
            errors.push(FieldError::forbidden(format!("{path}.{name}"), &format!("must be {what} to be structural")));
        }
    };
    for name in ["type", "title", "description"] {
        forbid(name, !text(schema, name).is_empty(), "empty");
    }
    let additional = schema.get("additionalProperties");
    forbid("additionalProperties", additional.is_some_and(|value| value.is_object() || *value == true), "undefined");
    forbid("default", is_set(schema, "default"), "undefined");
    forbid("nullable", bool_field(schema, "nullable"), "false");
    for name in
        ["preserve-unknown-fields", "embedded-resource", "int-or-string"].map(|name| format!("x-kubernetes-{name}"))
    {
        forbid(&name, bool_field(schema, &name), "false");
    }
    for (name, what) in
        [("list-map-keys", "empty"), ("list-type", "undefined"), ("map-type", "undefined"), ("validations", "empty")]
    {
        let name = format!("x-kubernetes-{name}");
        let set = schema
            .get(&name)
            .is_some_and(|value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()));
        forbid(&name, set, what);
    }
    if properties(schema).any(|(name, _)| name == "metadata") {
        errors.push(FieldError::forbidden(
            format!("{path}.properties[metadata]"),
            "must not be specified in a nested context",
        ));
    }
}

/// Whether everything that `rules` refers to is also in `schema`.
fn complete(
    rules: &JsonSchemaProps,
    schema: Option<&JsonSchemaProps>,
    path: &str,
    rules_path: &str,
    errors: &mut FieldErrors,
) {
    let lists = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|list| {
        array_field(rules, list).iter().enumerate().map(move |(index, part)| (format!("{list}[{index}]"), part))
    });
    let not = rules.get("not").map(|not| ("not".to_owned(), not));
    for (name, part) in lists.chain(not) {
        if let Some(part) = part.as_object() {
            complete_nested(part, schema, path, &format!("{rules_path}.{name}"), errors);
        }
    }
}

fn complete_nested(
    rules: &JsonSchemaProps,
    schema: Option<&JsonSchemaProps>,
    path: &str,
    rules_path: &str,
    errors: &mut FieldErrors,
) {
    let Some(schema) = schema else {
        errors.push(FieldError::required(path, &format!("because it is defined in {rules_path}")));
        return;
    };
    complete(rules, Some(schema), path, rules_path, errors);
    if let Some(items) = part(rules, "items") {
        let path = format!("{path}.items");
        let rules_path = format!("{rules_path}.items");
        complete_nested(items, part(schema, "items"), &path, &rules_path, errors);
    }
    for (name, rules) in properties(rules) {
        let of = part(schema, "properties").and_then(|all| part(all, name));
        let path = format!("{path}.properties[{name}]");
        let rules_path = format!("{rules_path}.properties[{name}]");
        complete_nested(rules, of, &path, &rules_path, errors);
    }
}

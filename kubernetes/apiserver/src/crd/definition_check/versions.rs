//! Validates versions and their fields: schema, subresources, columns, selectable fields.

use std::{collections::HashSet, sync::Arc};

use serde_json::{Map, Value};

use super::{
    defaults, openapi, structural,
    version_fields::{VersionFields, items},
};
use crate::{
    api::field::{FieldError, FieldErrors},
    crd::{
        json_path, name_checks,
        structural::{bool_field, build_schema, text},
    },
    schema::{ScalarType, Schema, SchemaNode, SchemaShape},
};

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
const MAX_SELECTABLE_FIELDS: usize = 8;

/// The root keywords of a schema that are allowed together with the subresource `status`.
const ROOT_KEYWORDS_WITH_STATUS: [&str; 22] = [
    "description",
    "type",
    "format",
    "title",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "multipleOf",
    "required",
    "items",
    "properties",
    "externalDocs",
    "example",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];

/// Validates each version, then all of them together.
pub(super) fn check(shared: &VersionFields<'_>, errors: &mut FieldErrors) {
    let mut seen = HashSet::new();
    let mut unique = true;
    for (index, version) in shared.versions.iter().enumerate() {
        let path = format!("spec.versions[{index}]");
        let name = text(version, "name");
        unique &= seen.insert(name);
        if let Some(why) = name_checks::label(name) {
            errors.push(FieldError::invalid(format!("{path}.name"), &name.into(), &why));
        }
        deprecation(version, &path, errors);
        let own = shared.own(version, "schema").and_then(|schema| schema.get("openAPIV3Schema"));
        schema(own, VersionFields::has_status(version), &format!("{path}.schema.openAPIV3Schema"), errors);
        subresources(shared.own(version, "subresources"), &format!("{path}.subresources"), errors);
        columns(items(shared.own(version, "additionalPrinterColumns")), &path, errors);
        let fields = items(shared.own(version, "selectableFields"));
        selectable(fields, version.get("schema"), &format!("{path}.selectableFields"), errors);
    }
    if !unique {
        errors.push(shared.invalid("must contain unique version names"));
    }
    if shared.versions.iter().filter(|version| bool_field(version, "storage")).count() != 1 {
        errors.push(shared.invalid("must have exactly one version marked as storage version"));
    }
}

pub(super) fn check_shared(shared: &VersionFields<'_>, errors: &mut FieldErrors) {
    let has_status = shared.versions.iter().any(|version| VersionFields::has_status(version));
    let openapi = shared.schema.and_then(|schema| schema.get("openAPIV3Schema"));
    schema(openapi, has_status, "spec.validation.openAPIV3Schema", errors);
    subresources(shared.subresources, "spec.subresources", errors);
    columns(items(shared.columns), "spec", errors);
    selectable(items(shared.selectable), shared.schema, "spec.selectableFields", errors);
}

fn schema(openapi: Option<&Value>, has_status: bool, path: &str, errors: &mut FieldErrors) {
    let Some(root) = openapi.and_then(Value::as_object) else { return };
    if has_status {
        check_root_keywords(root, path, errors);
    }
    if bool_field(root, "nullable") {
        errors.push(FieldError::forbidden(format!("{path}.nullable"), "nullable cannot be true at the root"));
    }
    let mut found = Vec::new();
    if !structural::has_unsupported(root) {
        structural::check(root, path, &mut found);
        if found.is_empty() {
            defaults::check(root, path, &mut found);
        }
    }
    let sound = found.is_empty() && !structural::has_unsupported(root);
    errors.extend(found);
    openapi::check(root, path, sound, errors);
}

fn check_root_keywords(root: &Map<String, Value>, path: &str, errors: &mut FieldErrors) {
    let kind = text(root, "type");
    if !kind.is_empty() && kind != "object" {
        let detail =
            "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        errors.push(FieldError::invalid(format!("{path}.type"), &kind.into(), detail));
    }
    let empty = |value: &Value| {
        matches!(value, Value::Null | Value::Bool(false)) || value.as_array().is_some_and(Vec::is_empty)
    };
    if root.iter().any(|(name, value)| !ROOT_KEYWORDS_WITH_STATUS.contains(&name.as_str()) && !empty(value)) {
        let allowed: Vec<String> = ROOT_KEYWORDS_WITH_STATUS.iter().map(|name| go_name(name)).collect();
        let detail = format!(
            "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
            allowed.join(" ")
        );
        errors.push(FieldError::invalid(path, &Value::Object(root.clone()), &detail));
    }
}

/// The name of Go's field of a keyword: `XValidations`.
fn go_name(keyword: &str) -> String {
    let words = keyword.trim_start_matches("x-kubernetes-").split('-');
    let capital = |word: &str| {
        word.chars().next().into_iter().flat_map(char::to_uppercase).chain(word.chars().skip(1)).collect::<String>()
    };
    let x = if keyword.starts_with("x-") { "X" } else { "" };
    format!("{x}{}", words.map(capital).collect::<String>())
}

fn deprecation(version: &Map<String, Value>, path: &str, errors: &mut FieldErrors) {
    let Some(warning) = version.get("deprecationWarning").filter(|warning| !warning.is_null()) else { return };
    let text = warning.as_str().unwrap_or_default();
    let mut report = |why: &str| errors.push(FieldError::invalid(format!("{path}.deprecationWarning"), warning, why));
    if !bool_field(version, "deprecated") {
        return report("can only be set for deprecated versions");
    }
    if text.len() > 256 {
        report("must be <= 256 characters long");
    }
    if text.is_empty() {
        report("must not be an empty string");
    }
    if let Some((at, _)) = text.char_indices().find(|(_, char)| char.is_control()) {
        report(&format!("must only contain printable UTF-8 characters; non-printable character found at index {at}"));
    }
}

fn subresources(subresources: Option<&Value>, path: &str, errors: &mut FieldErrors) {
    let Some(scale) = subresources.and_then(|all| all.get("scale")?.as_object()) else { return };
    for (field, roots) in [("specReplicasPath", &[".spec."][..]), ("statusReplicasPath", &[".status."])] {
        let path = format!("{path}.scale.{field}");
        match text(scale, field) {
            "" => errors.push(FieldError::required(path, "")),
            value => scale_path(value, roots, path, errors),
        }
    }
    let selector = text(scale, "labelSelectorPath");
    if !selector.is_empty() {
        scale_path(selector, &[".spec.", ".status."], format!("{path}.scale.labelSelectorPath"), errors);
    }
}

fn scale_path(value: &str, roots: &[&str], path: String, errors: &mut FieldErrors) {
    if !simple_path(value, &path, errors) || roots.iter().any(|root| value.starts_with(root)) {
        return;
    }
    let under = match roots {
        [root] => root.trim_end_matches('.').to_owned(),
        _ => "either .spec or .status".to_owned(),
    };
    errors.push(FieldError::invalid(path, &value.into(), &format!("should be a json path under {under}")));
}

fn simple_path(value: &str, path: &str, errors: &mut FieldErrors) -> bool {
    if !value.starts_with('.') {
        errors.push(FieldError::invalid(path, &value.into(), "must be a simple json path starting with ."));
    }
    value.starts_with('.')
}

fn columns(columns: &[Value], path: &str, errors: &mut FieldErrors) {
    for (index, column) in columns.iter().enumerate() {
        let Some(column) = column.as_object() else { continue };
        let path = format!("{path}.additionalPrinterColumns[{index}]");
        if text(column, "name").is_empty() {
            errors.push(FieldError::required(format!("{path}.name"), ""));
        }
        let types = format!("must be one of {}", COLUMN_TYPES.join(","));
        match text(column, "type") {
            "" => errors.push(FieldError::required(format!("{path}.type"), &types)),
            kind if !COLUMN_TYPES.contains(&kind) => {
                errors.push(FieldError::invalid(format!("{path}.type"), &kind.into(), &types))
            }
            _ => {}
        }
        let format = text(column, "format");
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
            let detail = format!("must be one of {}", COLUMN_FORMATS.join(","));
            errors.push(FieldError::invalid(format!("{path}.format"), &format.into(), &detail));
        }
        match text(column, "jsonPath") {
            "" => errors.push(FieldError::required(format!("{path}.JSONPath"), "")),
            value => _ = simple_path(value, &format!("{path}.JSONPath"), errors),
        }
    }
}

fn selectable(fields: &[Value], schema: Option<&Value>, path: &str, errors: &mut FieldErrors) {
    let Some(openapi) = schema.and_then(|schema| schema.get("openAPIV3Schema")).filter(|_| !fields.is_empty()) else {
        return;
    };
    let schema: Arc<Schema> = Arc::new(build_schema(openapi, &SchemaNode::default()));
    let mut seen = HashSet::new();
    for (index, field) in fields.iter().enumerate() {
        let path = format!("{path}[{index}].jsonPath");
        let value = field.get("jsonPath").unwrap_or(&Value::Null);
        let text = value.as_str().unwrap_or_default();
        if text.is_empty() {
            errors.push(FieldError::required(path, ""));
            continue;
        }
        match json_path::resolve_field(text, &schema, false) {
            Err(why) => errors.push(FieldError::invalid(path, value, &format!("is an invalid path: {why}"))),
            Ok((written, found)) => {
                if written == "metadata" || written.starts_with("metadata.") {
                    errors.push(FieldError::invalid(path.clone(), value, "must not point to fields in metadata"));
                }
                if !is_selectable(found) {
                    let detail = "must point to a field of type string, boolean or integer. \
                                  Enum string fields and strings with formats are allowed.";
                    errors.push(FieldError::invalid(path.clone(), value, detail));
                }
                if !seen.insert(written) {
                    errors.push(FieldError::duplicate(path, value));
                }
            }
        }
    }
    if seen.len() > MAX_SELECTABLE_FIELDS {
        errors.push(FieldError::too_many(path, seen.len(), MAX_SELECTABLE_FIELDS));
    }
}

fn is_selectable(schema: &Schema) -> bool {
    let scalars = [ScalarType::String, ScalarType::Boolean, ScalarType::Integer, ScalarType::Int32, ScalarType::Int64];
    matches!(&schema.shape, SchemaShape::Scalar(scalar) if scalars.contains(scalar))
}

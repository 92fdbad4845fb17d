//! Versions, and what stands in each or in all of them: schema, subresources, columns, selectable fields.

use std::{collections::HashSet, sync::Arc};

use serde_json::{Map, Value};

use super::{
    defaults, openapi,
    shared::{Shared, items},
    structural,
};
use crate::{
    api::field::{Error, Errors},
    crd::{
        dns, path,
        structural::{build, flag, text},
    },
    schema::{Node, Scalar, Schema, Shape},
};

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
const MAX_SELECTABLE: usize = 8;

/// Keywords at the root of a schema beside which a status can be taken out.
const AT_ROOT: [&str; 22] = [
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

/// Each version by itself, then all of them.
pub(super) fn check(shared: &Shared<'_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    let mut unique = true;
    for (index, version) in shared.versions.iter().enumerate() {
        let path = format!("spec.versions[{index}]");
        let name = text(version, "name");
        unique &= seen.insert(name);
        if let Some(why) = dns::label(name) {
            errors.push(Error::invalid(format!("{path}.name"), &name.into(), &why));
        }
        deprecation(version, &path, errors);
        let own = shared.own(version, "schema").and_then(|schema| schema.get("openAPIV3Schema"));
        schema(own, Shared::has_status(version), &format!("{path}.schema.openAPIV3Schema"), errors);
        subresources(shared.own(version, "subresources"), &format!("{path}.subresources"), errors);
        columns(items(shared.own(version, "additionalPrinterColumns")), &path, errors);
        let fields = items(shared.own(version, "selectableFields"));
        selectable(fields, version.get("schema"), &format!("{path}.selectableFields"), errors);
    }
    if !unique {
        errors.push(shared.invalid("must contain unique version names"));
    }
    if shared.versions.iter().filter(|version| flag(version, "storage")).count() != 1 {
        errors.push(shared.invalid("must have exactly one version marked as storage version"));
    }
}

/// What all versions share.
pub(super) fn check_shared(shared: &Shared<'_>, errors: &mut Errors) {
    let has_status = shared.versions.iter().any(|version| Shared::has_status(version));
    let openapi = shared.schema.and_then(|schema| schema.get("openAPIV3Schema"));
    schema(openapi, has_status, "spec.validation.openAPIV3Schema", errors);
    subresources(shared.subresources, "spec.subresources", errors);
    columns(items(shared.columns), "spec", errors);
    selectable(items(shared.selectable), shared.schema, "spec.selectableFields", errors);
}

fn schema(openapi: Option<&Value>, has_status: bool, path: &str, errors: &mut Errors) {
    let Some(root) = openapi.and_then(Value::as_object) else { return };
    if has_status {
        at_root(root, path, errors);
    }
    if flag(root, "nullable") {
        errors.push(Error::forbidden(format!("{path}.nullable"), "nullable cannot be true at the root"));
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

fn at_root(root: &Map<String, Value>, path: &str, errors: &mut Errors) {
    let kind = text(root, "type");
    if !kind.is_empty() && kind != "object" {
        let detail =
            "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        errors.push(Error::invalid(format!("{path}.type"), &kind.into(), detail));
    }
    let empty = |value: &Value| {
        matches!(value, Value::Null | Value::Bool(false)) || value.as_array().is_some_and(Vec::is_empty)
    };
    if root.iter().any(|(name, value)| !AT_ROOT.contains(&name.as_str()) && !empty(value)) {
        let allowed: Vec<String> = AT_ROOT.iter().map(|name| go_name(name)).collect();
        let detail = format!(
            "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
            allowed.join(" ")
        );
        errors.push(Error::invalid(path, &Value::Object(root.clone()), &detail));
    }
}

/// A keyword as Go names the field: `XValidations`.
fn go_name(keyword: &str) -> String {
    let words = keyword.trim_start_matches("x-kubernetes-").split('-');
    let capital = |word: &str| {
        word.chars().next().into_iter().flat_map(char::to_uppercase).chain(word.chars().skip(1)).collect::<String>()
    };
    let x = if keyword.starts_with("x-") { "X" } else { "" };
    format!("{x}{}", words.map(capital).collect::<String>())
}

fn deprecation(version: &Map<String, Value>, path: &str, errors: &mut Errors) {
    let Some(warning) = version.get("deprecationWarning").filter(|warning| !warning.is_null()) else { return };
    let text = warning.as_str().unwrap_or_default();
    let mut report = |why: &str| errors.push(Error::invalid(format!("{path}.deprecationWarning"), warning, why));
    if !flag(version, "deprecated") {
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

fn subresources(subresources: Option<&Value>, path: &str, errors: &mut Errors) {
    let Some(scale) = subresources.and_then(|all| all.get("scale")?.as_object()) else { return };
    for (field, roots) in [("specReplicasPath", &[".spec."][..]), ("statusReplicasPath", &[".status."])] {
        let path = format!("{path}.scale.{field}");
        match text(scale, field) {
            "" => errors.push(Error::required(path, "")),
            value => scale_path(value, roots, path, errors),
        }
    }
    let selector = text(scale, "labelSelectorPath");
    if !selector.is_empty() {
        scale_path(selector, &[".spec.", ".status."], format!("{path}.scale.labelSelectorPath"), errors);
    }
}

fn scale_path(value: &str, roots: &[&str], path: String, errors: &mut Errors) {
    if !simple_path(value, &path, errors) || roots.iter().any(|root| value.starts_with(root)) {
        return;
    }
    let under = match roots {
        [root] => root.trim_end_matches('.').to_owned(),
        _ => "either .spec or .status".to_owned(),
    };
    errors.push(Error::invalid(path, &value.into(), &format!("should be a json path under {under}")));
}

fn simple_path(value: &str, path: &str, errors: &mut Errors) -> bool {
    if !value.starts_with('.') {
        errors.push(Error::invalid(path, &value.into(), "must be a simple json path starting with ."));
    }
    value.starts_with('.')
}

fn columns(columns: &[Value], path: &str, errors: &mut Errors) {
    for (index, column) in columns.iter().enumerate() {
        let Some(column) = column.as_object() else { continue };
        let path = format!("{path}.additionalPrinterColumns[{index}]");
        if text(column, "name").is_empty() {
            errors.push(Error::required(format!("{path}.name"), ""));
        }
        let types = format!("must be one of {}", COLUMN_TYPES.join(","));
        match text(column, "type") {
            "" => errors.push(Error::required(format!("{path}.type"), &types)),
            kind if !COLUMN_TYPES.contains(&kind) => {
                errors.push(Error::invalid(format!("{path}.type"), &kind.into(), &types))
            }
            _ => {}
        }
        let format = text(column, "format");
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
            let detail = format!("must be one of {}", COLUMN_FORMATS.join(","));
            errors.push(Error::invalid(format!("{path}.format"), &format.into(), &detail));
        }
        match text(column, "jsonPath") {
            "" => errors.push(Error::required(format!("{path}.JSONPath"), "")),
            value => _ = simple_path(value, &format!("{path}.JSONPath"), errors),
        }
    }
}

fn selectable(fields: &[Value], schema: Option<&Value>, path: &str, errors: &mut Errors) {
    let Some(openapi) = schema.and_then(|schema| schema.get("openAPIV3Schema")).filter(|_| !fields.is_empty()) else {
        return;
    };
    let schema: Arc<Schema> = Arc::new(build(openapi, &Node::default()));
    let mut seen = HashSet::new();
    for (index, field) in fields.iter().enumerate() {
        let path = format!("{path}[{index}].jsonPath");
        let value = field.get("jsonPath").unwrap_or(&Value::Null);
        let text = value.as_str().unwrap_or_default();
        if text.is_empty() {
            errors.push(Error::required(path, ""));
            continue;
        }
        match path::resolve(text, &schema, false) {
            Err(why) => errors.push(Error::invalid(path, value, &format!("is an invalid path: {why}"))),
            Ok((written, found)) => {
                if written == "metadata" || written.starts_with("metadata.") {
                    errors.push(Error::invalid(path.clone(), value, "must not point to fields in metadata"));
                }
                if !is_selectable(found) {
                    let detail = "must point to a field of type string, boolean or integer. \
                                  Enum string fields and strings with formats are allowed.";
                    errors.push(Error::invalid(path.clone(), value, detail));
                }
                if !seen.insert(written) {
                    errors.push(Error::duplicate(path, value));
                }
            }
        }
    }
    if seen.len() > MAX_SELECTABLE {
        errors.push(Error::too_many(path, seen.len(), MAX_SELECTABLE));
    }
}

fn is_selectable(schema: &Schema) -> bool {
    let scalars = [Scalar::String, Scalar::Boolean, Scalar::Integer, Scalar::Int32, Scalar::Int64];
    matches!(&schema.shape, Shape::Scalar(scalar) if scalars.contains(scalar))
}

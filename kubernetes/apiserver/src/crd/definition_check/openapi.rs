//! Validates the schema of a CRD, except whether it is structural.

use serde_json::{Map, Value};

use super::{cost_budget::RuleCostTotal, expressions, list_types, structural::properties};
use crate::{
    api::field::{FieldError, FieldErrors},
    crd::{
        json_path,
        structural::{array_field, bool_field, build_part, text},
    },
};

const SCHEMA_TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

type JsonSchemaProps = Map<String, Value>;

/// Validates a schema. Expressions are only checked if the schema is `sound` otherwise.
pub(super) fn check(root: &JsonSchemaProps, path: &str, sound: bool, errors: &mut FieldErrors) {
    let mut found = SchemaErrors::default();
    let place = NodeContext { root: true, expressions: sound, cardinality: Some(1), ..NodeContext::default() };
    found.node(root, path, &place);
    errors.extend(found.schema);
    errors.extend(found.expressions);
    found.budget.check(path, errors);
}

/// The context of a schema node.
#[derive(Clone, Default)]
struct NodeContext {
    root: bool,
    /// Why a default is not allowed.
    no_default: Option<String>,
    inside_meta: bool,
    /// The part of the schema around the node that cannot be correlated with the old object.
    uncorrelated: Option<String>,
    expressions: bool,
    /// The largest number of values of the node in an object; none without a limit.
    cardinality: Option<u64>,
}

impl NodeContext {
    fn part(&self) -> Self {
        Self { root: false, ..self.clone() }
    }

    /// The context of the items or values of a node, with their largest number in the schema.
    fn limited_by(self, most: Option<&Value>) -> Self {
        let most = most.and_then(Value::as_i64).map(|most| u64::try_from(most).unwrap_or(0));
        let cardinality = self.cardinality.zip(most).map(|(all, most)| all.saturating_mul(most));
        Self { cardinality, ..self }
    }

    /// The context of `anyOf` and the like, which have no expressions.
    fn alternative(&self) -> Self {
        Self { expressions: false, ..self.part() }
    }
}

#[derive(Default)]
struct SchemaErrors {
    schema: FieldErrors,
    expressions: FieldErrors,
    budget: RuleCostTotal,
}

impl SchemaErrors {
    fn node(&mut self, schema: &JsonSchemaProps, path: &str, place: &NodeContext) {
        let before = self.schema.len();
        self.keywords(schema, path, place);
        self.parts(schema, path, place);
        self.preserve_and_maps(schema, path);
        self.lists(schema, path);
        list_types::check(schema, path, &mut self.schema);
        self.rules(schema, path);
        if self.schema.len() == before && place.expressions {
            let subject = expressions::RuleContext {
                schema,
                path,
                is_root: place.root,
                uncorrelated: place.uncorrelated.as_deref(),
                cardinality: place.cardinality,
            };
            expressions::check(&subject, &mut self.budget, &mut self.expressions);
        }
    }

    fn keywords(&mut self, schema: &JsonSchemaProps, path: &str, place: &NodeContext) {
        let kind = text(schema, "type");
        if !kind.is_empty() && !SCHEMA_TYPES.contains(&kind) {
            self.schema.push(FieldError::not_supported(format!("{path}.type"), &kind.into(), &SCHEMA_TYPES));
        }
        let set = |name: &str| {
            schema
                .get(name)
                .is_some_and(|value| !value.is_null() && value.as_object().is_none_or(|map| !map.is_empty()))
        };
        let mut forbid =
            |name: &str, detail: &str| self.schema.push(FieldError::forbidden(format!("{path}.{name}"), detail));
        if let Some(why) = place.no_default.as_ref().filter(|_| set("default")) {
            forbid("default", &format!("must not be set {why}"));
        }
        for name in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
            if set(name) {
                forbid(name, &format!("{name} is not supported"));
            }
        }
        if kind == "null" {
            forbid("type", "type cannot be set to null, use nullable as an alternative");
        }
        if schema.get("items").is_some_and(Value::is_array) {
            forbid("items", "items must be a schema object and not an array");
        }
        if place.inside_meta && bool_field(schema, "x-kubernetes-embedded-resource") {
            forbid("x-kubernetes-embedded-resource", "must not be used inside of resource meta");
        }
        if bool_field(schema, "uniqueItems") {
            forbid("uniqueItems", "uniqueItems cannot be set to true since the runtime complexity becomes quadratic");
        }
        let values = schema.get("additionalProperties").filter(|values| !values.is_null());
        if values.is_some_and(|values| *values != true) && properties(schema).next().is_some() {
            forbid("additionalProperties", "additionalProperties and properties are mutual exclusive");
        }
    }

    fn parts(&mut self, schema: &JsonSchemaProps, path: &str, place: &NodeContext) {
        if let Some(values) = schema.get("additionalProperties").and_then(Value::as_object) {
            let mut inside = place.part().limited_by(schema.get("maxProperties"));
            if place.inside_meta {
                inside.no_default = Some("inside additionalProperties applying to object metadata".to_owned());
            }
            self.node(values, &format!("{path}.additionalProperties"), &inside);
        }
        for (name, part) in properties(schema) {
            let mut inside = place.part();
            let of_meta = matches!(name.as_str(), "metadata" | "kind" | "apiVersion");
            if of_meta && (place.root || bool_field(schema, "x-kubernetes-embedded-resource")) {
                inside.inside_meta = true;
                if place.root {
                    inside.no_default = Some(format!("in top-level {name}"));
                }
            }
            self.node(part, &format!("{path}.properties[{name}]"), &inside);
        }
        if let Some(not) = schema.get("not").and_then(Value::as_object) {
            self.node(not, &format!("{path}.not"), &place.alternative());
        }
        for list in ["allOf", "oneOf", "anyOf"] {
            for (index, part) in array_field(schema, list).iter().enumerate() {
                if let Some(part) = part.as_object() {
                    self.node(part, &format!("{path}.{list}[{index}]"), &place.alternative());
                }
            }
        }
        if let Some(items) = schema.get("items").and_then(Value::as_object) {
            let mut inside = place.part().limited_by(schema.get("maxItems"));
            if text(schema, "x-kubernetes-list-type") != "map" {
                inside.uncorrelated.get_or_insert_with(|| path.to_owned());
            }
            self.node(items, &format!("{path}.items"), &inside);
        }
    }

    fn preserve_and_maps(&mut self, schema: &JsonSchemaProps, path: &str) {
        if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
            let path = format!("{path}.x-kubernetes-preserve-unknown-fields");
            self.schema.push(FieldError::invalid(path, &false.into(), "must be true or undefined"));
        }
        let map = text(schema, "x-kubernetes-map-type");
        if map.is_empty() {
            return;
        }
        self.needs_type(schema, path, "object", "x-kubernetes-map-type");
        if !matches!(map, "atomic" | "granular") {
            let path = format!("{path}.x-kubernetes-map-type");
            self.schema.push(FieldError::not_supported(path, &map.into(), &["atomic", "granular"]));
        }
    }

    fn needs_type(&mut self, schema: &JsonSchemaProps, path: &str, wanted: &str, by: &str) -> bool {
        let kind = text(schema, "type");
        let path = format!("{path}.type");
        let detail = format!("must be {wanted} if {by} is specified");
        match kind {
            "" => self.schema.push(FieldError::required(path, &detail)),
            kind if kind != wanted => self.schema.push(FieldError::invalid(path, &kind.into(), &detail)),
            _ => return true,
        }
        false
    }

    fn lists(&mut self, schema: &JsonSchemaProps, path: &str) {
        let list = text(schema, "x-kubernetes-list-type");
        if list.is_empty() {
            return;
        }
        let is_list = self.needs_type(schema, path, "array", "x-kubernetes-list-type");
        let items = schema.get("items").and_then(Value::as_object);
        if let Some(items) = items.filter(|_| is_list && list == "set") {
            // In both cases the message shows the list type of the items, as in kube-apiserver.
            let shown = items.get("x-kubernetes-list-type").unwrap_or(&Value::Null);
            let inner = text(items, "x-kubernetes-list-type");
            let wrong = match text(items, "type") {
                "array" if !inner.is_empty() && inner != "atomic" => Some("x-kubernetes-list-type"),
                "object" if text(items, "x-kubernetes-map-type") != "atomic" => Some("x-kubernetes-map-type"),
                _ => None,
            };
            if let Some(field) = wrong {
                let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
                self.schema.push(FieldError::invalid(format!("{path}.items.{field}"), shown, detail));
            }
        }
        if !matches!(list, "atomic" | "set" | "map") {
            let path = format!("{path}.x-kubernetes-list-type");
            self.schema.push(FieldError::not_supported(path, &list.into(), &["atomic", "set", "map"]));
        }
    }

    /// Validates the format of `x-kubernetes-validations`.
    fn rules(&mut self, schema: &JsonSchemaProps, path: &str) {
        for (index, rule) in array_field(schema, "x-kubernetes-validations").iter().enumerate() {
            let Some(rule) = rule.as_object() else { continue };
            let path = format!("{path}.x-kubernetes-validations[{index}]");
            let source = text(rule, "rule").trim();
            let message = text(rule, "message");
            let lines = |text: &str| text.contains(['\n', '\r']);
            let invalid = |field: &str, detail: &str| {
                FieldError::invalid(format!("{path}.{field}"), &text(rule, field).into(), detail)
            };
            if source.is_empty() {
                self.schema.push(FieldError::required(format!("{path}.rule"), "rule is not specified"));
            } else if !message.is_empty() && message.trim().is_empty() {
                self.schema.push(invalid("message", "must be non-empty if specified"));
            } else if lines(message.trim()) {
                self.schema.push(invalid("message", "must not contain line breaks"));
            } else if lines(source) && message.trim().is_empty() {
                let detail = "message must be specified if rule contains line breaks";
                self.schema.push(FieldError::required(format!("{path}.message"), detail));
            }
            let blank = |field: &str| !text(rule, field).is_empty() && text(rule, field).trim().is_empty();
            if blank("messageExpression") {
                let detail = "messageExpression must be non-empty if specified";
                self.schema.push(FieldError::required(format!("{path}.messageExpression"), detail));
            }
            self.reason_and_place(schema, rule, &path, blank("fieldPath"));
        }
    }

    fn reason_and_place(&mut self, schema: &JsonSchemaProps, rule: &JsonSchemaProps, path: &str, blank: bool) {
        const REASONS: [&str; 4] =
            ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
        if let Some(reason) =
            rule.get("reason").filter(|reason| !REASONS.iter().any(|known| *reason == known) && !reason.is_null())
        {
            self.schema.push(FieldError::not_supported(format!("{path}.reason"), reason, &REASONS));
        }
        let field = text(rule, "fieldPath");
        let mut invalid =
            |detail: &str| self.schema.push(FieldError::invalid(format!("{path}.fieldPath"), &field.into(), detail));
        if blank {
            invalid("must be non-empty if specified");
        }
        if field.contains(['\n', '\r']) {
            invalid("must not contain line breaks");
        }
        if !field.is_empty()
            && json_path::resolve_field(field, &build_part(&Value::Object(schema.clone())), true).is_err()
        {
            invalid("must be a valid path");
        }
    }
}

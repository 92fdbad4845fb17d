//! ValidatingAdmissionPolicy and its binding.

mod expressions;

use serde_json::{Value, json};

use super::{compiles, conditions, default_match, rule};
use crate::{
    api::{
        field::{FieldError, FieldErrors},
        meta::MetaAccessor,
    },
    kinds::{
        field_value::FieldValue,
        json_object::{
            JsonObject, bump_generation_if_anything_changed, init_generation, keep_status_apart_and_bump_generation,
            made, nested_object_mut, object_items_mut, set, set_text_if_empty,
        },
        names, selector,
    },
    registry::Strategy,
};

#[derive(Clone, Copy, Debug)]
pub struct AdmissionPolicyStrategy;

#[derive(Clone, Copy, Debug)]
pub struct AdmissionPolicyBindingStrategy;

impl Strategy for AdmissionPolicyStrategy {
    fn runs_expressions(&self) -> bool {
        true
    }

    fn default(&self, object: &mut Value) {
        made(object, "status");
        let Some(spec) = made(object, "spec") else { return };
        set_text_if_empty(spec, "failurePolicy", "Fail");
        if let Some(constraints) = nested_object_mut(spec, "matchConstraints") {
            default_resources(constraints);
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        set(object, "status", json!({}));
        init_generation(object);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        keep_status_apart_and_bump_generation(new, old, subresource);
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        let spec = root.get("spec");
        spec.get("failurePolicy").require_one_of(errors, &["Fail", "Ignore"]);
        let constraints = spec.get("matchConstraints");
        if constraints.is_set() {
            constraints.get("resourceRules").require(errors, "");
            match_resources(&constraints, errors);
        } else {
            constraints.report_required(errors, "");
        }
        let param_kind = spec.get("paramKind");
        if param_kind.is_set() {
            self::param_kind(&param_kind, errors);
        }
        conditions(&spec.get("matchConditions"), param_kind.is_set(), errors);
        expressions::check(&spec, object.name(), errors);
    }

    fn validate_update(&self, new: &Value, _old: &Value, subresource: &str, errors: &mut FieldErrors) {
        if subresource != "status" {
            self.validate_create(new, errors);
        }
    }

    fn unconditional_update(&self) -> bool {
        false
    }
}

fn default_resources(constraints: &mut JsonObject) {
    default_match(constraints);
    for rules in ["resourceRules", "excludeResourceRules"] {
        object_items_mut(constraints, rules).for_each(|rule| set_text_if_empty(rule, "scope", "*"));
    }
}

/// Validates the kind of a policy's parameters.
fn param_kind(kind: &FieldValue<'_>, errors: &mut FieldErrors) {
    let version = kind.get("apiVersion");
    if version.require(errors, "") {
        let text = version.str();
        let (group, name) = text.split_once('/').unwrap_or(("", text));
        if text.matches('/').count() > 1 {
            version.report_invalid(errors, &format!("unexpected GroupVersion string: {text}"));
        } else {
            let invalid = |part: &str, wrong: Vec<String>| {
                (!wrong.is_empty()).then(|| FieldError::invalid(version.path(), &part.into(), &wrong.join(",")))
            };
            if !group.is_empty() {
                errors.extend(invalid(group, names::subdomain(group)));
            }
            if name.is_empty() {
                version.report_invalid(errors, "version must be specified");
            } else {
                errors.extend(invalid(name, names::label_1035(name)));
            }
        }
    }
    let name = kind.get("kind");
    if name.require(errors, "") {
        let wrong = names::label_1035(&name.str().to_lowercase());
        if !wrong.is_empty() {
            name.report_invalid(
                errors,
                &format!("may have mixed case, but should otherwise match: {}", wrong.join(",")),
            );
        }
    }
}

/// Validates the reference of a binding to parameters.
fn param_ref(of: &FieldValue<'_>, errors: &mut FieldErrors) {
    let name = of.get("name");
    let selector = of.get("selector");
    let exclusive = "name and selector are mutually exclusive";
    if !name.str().is_empty() {
        name.report_invalid_each(errors, names::path_segment(name.str(), false));
        if selector.is_set() {
            errors.push(FieldError::forbidden(name.path(), exclusive));
        }
    }
    if selector.is_set() {
        selector::validate(&selector, errors);
        if !name.str().is_empty() {
            errors.push(FieldError::forbidden(selector.path(), exclusive));
        }
    } else if name.str().is_empty() {
        of.report_required(errors, "one of name or selector must be specified");
    }
    let action = of.get("parameterNotFoundAction");
    if action.require(errors, "") {
        action.require_one_of(errors, &["Allow", "Deny"]);
    }
}

fn match_resources(constraints: &FieldValue<'_>, errors: &mut FieldErrors) {
    constraints.get("matchPolicy").require_one_of(errors, &["Equivalent", "Exact"]);
    selector::validate(&constraints.get("namespaceSelector"), errors);
    selector::validate(&constraints.get("objectSelector"), errors);
    for rules in ["resourceRules", "excludeResourceRules"] {
        constraints.get(rules).items().for_each(|rule| self::rule(&rule, errors));
    }
}

impl Strategy for AdmissionPolicyBindingStrategy {
    fn default(&self, object: &mut Value) {
        let constraints = made(object, "spec").and_then(|spec| nested_object_mut(spec, "matchResources"));
        if let Some(constraints) = constraints {
            default_resources(constraints);
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        init_generation(object);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, _subresource: &str) {
        bump_generation_if_anything_changed(new, old);
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        let spec = root.get("spec");
        let name = spec.get("policyName");
        if name.require(errors, "") {
            name.report_invalid_each(errors, names::subdomain(name.str()));
        }
        if spec.get("paramRef").is_set() {
            param_ref(&spec.get("paramRef"), errors);
        }
        let actions = spec.get("validationActions");
        actions.require(errors, "at least one validation action is required");
        actions.items().for_each(|action| action.require_one_of(errors, &["Audit", "Deny", "Warn"]));
        let has = |name: &str| actions.items().any(|action| action.str() == name);
        if has("Deny") && has("Warn") {
            let why =
                "(repeating the same validation failure information in the API response and headers serves no purpose)";
            actions.report_invalid(errors, &format!("must not contain both Deny and Warn {why}"));
        }
        if spec.get("matchResources").is_set() {
            match_resources(&spec.get("matchResources"), errors);
        }
    }

    fn validate_update(&self, new: &Value, _old: &Value, _subresource: &str, errors: &mut FieldErrors) {
        self.validate_create(new, errors);
    }

    fn unconditional_update(&self) -> bool {
        false
    }
}

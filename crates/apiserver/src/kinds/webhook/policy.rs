//! ValidatingAdmissionPolicy and its binding.

mod expressions;

use serde_json::{Value, json};

use super::{compiles, conditions, default_match, rule};
use crate::{
    api::{
        field::{Error, Errors},
        meta::Meta,
    },
    kinds::{
        at::At,
        names,
        object::{
            Object, each, fill_text, first_generation, keep_status_apart_and_count, made, next_generation_of_all, set,
            sub,
        },
        selector,
    },
    registry::Strategy,
};

/// Rules of ValidatingAdmissionPolicy.
#[derive(Clone, Copy, Debug)]
pub struct Policy;

/// Rules of ValidatingAdmissionPolicyBinding.
#[derive(Clone, Copy, Debug)]
pub struct PolicyBinding;

impl Strategy for Policy {
    fn runs_expressions(&self) -> bool {
        true
    }

    fn default(&self, object: &mut Value) {
        made(object, "status");
        let Some(spec) = made(object, "spec") else { return };
        fill_text(spec, "failurePolicy", "Fail");
        if let Some(constraints) = sub(spec, "matchConstraints") {
            default_resources(constraints);
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        set(object, "status", json!({}));
        first_generation(object);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        keep_status_apart_and_count(new, old, subresource);
    }

    fn validate_create(&self, object: &Value, errors: &mut Errors) {
        let root = At::root(object);
        let spec = root.get("spec");
        spec.get("failurePolicy").one_of(errors, &["Fail", "Ignore"]);
        let constraints = spec.get("matchConstraints");
        if constraints.is_set() {
            constraints.get("resourceRules").require(errors, "");
            match_resources(&constraints, errors);
        } else {
            constraints.required(errors, "");
        }
        let param_kind = spec.get("paramKind");
        if param_kind.is_set() {
            self::param_kind(&param_kind, errors);
        }
        conditions(&spec.get("matchConditions"), param_kind.is_set(), errors);
        expressions::check(&spec, object.name(), errors);
    }

    fn validate_update(&self, new: &Value, _old: &Value, subresource: &str, errors: &mut Errors) {
        if subresource != "status" {
            self.validate_create(new, errors);
        }
    }

    fn unconditional_update(&self) -> bool {
        false
    }
}

fn default_resources(constraints: &mut Object) {
    default_match(constraints);
    for rules in ["resourceRules", "excludeResourceRules"] {
        each(constraints, rules).for_each(|rule| fill_text(rule, "scope", "*"));
    }
}

/// The kind of a policy's parameters.
fn param_kind(kind: &At<'_>, errors: &mut Errors) {
    let version = kind.get("apiVersion");
    if version.require(errors, "") {
        let text = version.str();
        let (group, name) = text.split_once('/').unwrap_or(("", text));
        if text.matches('/').count() > 1 {
            version.invalid(errors, &format!("unexpected GroupVersion string: {text}"));
        } else {
            let invalid = |part: &str, wrong: Vec<String>| {
                (!wrong.is_empty()).then(|| Error::invalid(version.path(), &part.into(), &wrong.join(",")))
            };
            if !group.is_empty() {
                errors.extend(invalid(group, names::subdomain(group)));
            }
            if name.is_empty() {
                version.invalid(errors, "version must be specified");
            } else {
                errors.extend(invalid(name, names::label_1035(name)));
            }
        }
    }
    let name = kind.get("kind");
    if name.require(errors, "") {
        let wrong = names::label_1035(&name.str().to_lowercase());
        if !wrong.is_empty() {
            name.invalid(errors, &format!("may have mixed case, but should otherwise match: {}", wrong.join(",")));
        }
    }
}

/// Which parameters a binding names.
fn param_ref(of: &At<'_>, errors: &mut Errors) {
    let (name, selector) = (of.get("name"), of.get("selector"));
    let exclusive = "name and selector are mutually exclusive";
    if !name.str().is_empty() {
        name.invalid_each(errors, names::path_segment(name.str(), false));
        if selector.is_set() {
            errors.push(Error::forbidden(name.path(), exclusive));
        }
    }
    if selector.is_set() {
        selector::validate(&selector, errors);
        if !name.str().is_empty() {
            errors.push(Error::forbidden(selector.path(), exclusive));
        }
    } else if name.str().is_empty() {
        of.required(errors, "one of name or selector must be specified");
    }
    let action = of.get("parameterNotFoundAction");
    if action.require(errors, "") {
        action.one_of(errors, &["Allow", "Deny"]);
    }
}

fn match_resources(constraints: &At<'_>, errors: &mut Errors) {
    constraints.get("matchPolicy").one_of(errors, &["Equivalent", "Exact"]);
    selector::validate(&constraints.get("namespaceSelector"), errors);
    selector::validate(&constraints.get("objectSelector"), errors);
    for rules in ["resourceRules", "excludeResourceRules"] {
        constraints.get(rules).items().for_each(|rule| self::rule(&rule, errors));
    }
}

impl Strategy for PolicyBinding {
    fn default(&self, object: &mut Value) {
        let constraints = made(object, "spec").and_then(|spec| sub(spec, "matchResources"));
        if let Some(constraints) = constraints {
            default_resources(constraints);
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        first_generation(object);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, _subresource: &str) {
        next_generation_of_all(new, old);
    }

    fn validate_create(&self, object: &Value, errors: &mut Errors) {
        let root = At::root(object);
        let spec = root.get("spec");
        let name = spec.get("policyName");
        if name.require(errors, "") {
            name.invalid_each(errors, names::subdomain(name.str()));
        }
        if spec.get("paramRef").is_set() {
            param_ref(&spec.get("paramRef"), errors);
        }
        let actions = spec.get("validationActions");
        actions.require(errors, "at least one validation action is required");
        actions.items().for_each(|action| action.one_of(errors, &["Audit", "Deny", "Warn"]));
        let has = |name: &str| actions.items().any(|action| action.str() == name);
        if has("Deny") && has("Warn") {
            let why =
                "(repeating the same validation failure information in the API response and headers serves no purpose)";
            actions.invalid(errors, &format!("must not contain both Deny and Warn {why}"));
        }
        if spec.get("matchResources").is_set() {
            match_resources(&spec.get("matchResources"), errors);
        }
    }

    fn validate_update(&self, new: &Value, _old: &Value, _subresource: &str, errors: &mut Errors) {
        self.validate_create(new, errors);
    }

    fn unconditional_update(&self) -> bool {
        false
    }
}

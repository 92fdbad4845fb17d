//! The configuration of admission: webhook configurations, and admission policies with their bindings.

mod policy;

use serde_json::{Value, json};

pub use self::policy::{AdmissionPolicyBindingStrategy, AdmissionPolicyStrategy};
use super::{
    field_value::FieldValue,
    json_object::{
        JsonObject, bump_generation_if_anything_changed, init_generation, nested_object_mut, object_items_mut,
        set_if_absent, set_text_if_empty,
    },
    names, selector,
};
use crate::{
    api::{
        field::{FieldError, FieldErrors},
        webhook_client,
    },
    cel::check::{self, CelType, TypeEnvironment, VariableDeclarations},
    registry::Strategy,
};

/// The limit of match conditions of a webhook.
const MAX_MATCH_CONDITIONS: usize = 64;

/// Rules of MutatingWebhookConfiguration and ValidatingWebhookConfiguration.
#[derive(Clone, Copy, Debug)]
pub struct WebhookConfigurationStrategy {
    /// Whether its webhooks are mutating.
    pub mutating: bool,
}

impl Strategy for WebhookConfigurationStrategy {
    fn runs_expressions(&self) -> bool {
        true
    }

    fn default(&self, object: &mut Value) {
        let Some(configuration) = object.as_object_mut() else { return };
        for hook in object_items_mut(configuration, "webhooks") {
            set_text_if_empty(hook, "failurePolicy", "Fail");
            default_match(hook);
            set_if_absent(hook, "timeoutSeconds", 10);
            if self.mutating {
                set_text_if_empty(hook, "reinvocationPolicy", "Never");
            }
            if let Some(service) =
                nested_object_mut(hook, "clientConfig").and_then(|config| nested_object_mut(config, "service"))
            {
                set_if_absent(service, "port", 443);
            }
            object_items_mut(hook, "rules").for_each(|rule| set_text_if_empty(rule, "scope", "*"));
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
        let mut seen: Vec<&str> = Vec::new();
        for hook in root.get("webhooks").items() {
            self.hook(&hook, errors);
            let name = hook.value.get("name").and_then(Value::as_str).unwrap_or_default();
            if !name.is_empty() && seen.contains(&name) {
                hook.get("name").report_duplicate(errors);
            }
            seen.push(name);
        }
    }

    fn validate_update(&self, new: &Value, _old: &Value, _subresource: &str, errors: &mut FieldErrors) {
        self.validate_create(new, errors);
    }

    fn unconditional_update(&self) -> bool {
        false
    }
}

fn default_match(hook: &mut JsonObject) {
    set_text_if_empty(hook, "matchPolicy", "Equivalent");
    set_if_absent(hook, "namespaceSelector", json!({}));
    set_if_absent(hook, "objectSelector", json!({}));
}

impl WebhookConfigurationStrategy {
    fn hook(self, hook: &FieldValue<'_>, errors: &mut FieldErrors) {
        full_name(&hook.get("name"), errors);
        hook.get("rules").items().for_each(|rule| self::rule(&rule, errors));
        hook.get("failurePolicy").require_one_of(errors, &["Fail", "Ignore"]);
        hook.get("matchPolicy").require_one_of(errors, &["Equivalent", "Exact"]);
        let effects = hook.get("sideEffects");
        if effects.require(errors, "must specify one of None, NoneOnDryRun") {
            effects.require_one_of(errors, &["None", "NoneOnDryRun"]);
        }
        let timeout = hook.get("timeoutSeconds");
        if timeout.int().is_some_and(|seconds| !(1..=30).contains(&seconds)) {
            timeout.report_invalid(errors, "the timeout value must be between 1 and 30 seconds");
        }
        selector::validate(&hook.get("namespaceSelector"), errors);
        selector::validate(&hook.get("objectSelector"), errors);
        if self.mutating {
            hook.get("reinvocationPolicy").require_one_of(errors, &["IfNeeded", "Never"]);
        }
        client(&hook.get("clientConfig"), errors);
        review_versions(&hook.get("admissionReviewVersions"), errors);
        conditions(&hook.get("matchConditions"), false, errors);
    }
}

/// Requires a domain of at least three parts.
fn full_name(name: &FieldValue<'_>, errors: &mut FieldErrors) {
    if !name.require(errors, "") {
        return;
    }
    let wrong = names::subdomain(name.str());
    if !wrong.is_empty() {
        name.report_invalid(errors, &wrong.join(","));
    } else if name.str().split('.').count() < 3 {
        name.report_invalid(errors, "should be a domain with at least three segments separated by dots");
    }
}

fn rule(rule: &FieldValue<'_>, errors: &mut FieldErrors) {
    let operations = rule.get("operations");
    operations.require(errors, "");
    only_star(&operations, "operations", errors);
    operations.items().for_each(|one| one.require_one_of(errors, &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"]));
    for (field, words) in [("apiGroups", "API groups"), ("apiVersions", "API versions")] {
        rule.get(field).require(errors, "");
        only_star(&rule.get(field), words, errors);
    }
    for version in rule.get("apiVersions").items() {
        version.require(errors, "");
    }
    let resources = rule.get("resources");
    resources.require(errors, "");
    for one in resources.items() {
        one.require(errors, "");
    }
    let has = |name: &str| resources.items().any(|one| one.str() == name);
    if resources.len() > 1 && has("*/*") {
        resources.report_invalid(errors, "if '*/*' is present, must not specify other resources");
    }
    if has("*") && resources.items().any(|one| one.str() != "*" && !one.str().contains('/')) {
        resources.report_invalid(errors, "if '*' is present, must not specify other resources without subresources");
    }
    rule.get("scope").require_one_of(errors, &["*", "Cluster", "Namespaced"]);
}

fn only_star(list: &FieldValue<'_>, words: &str, errors: &mut FieldErrors) {
    if list.len() > 1 && list.items().any(|one| one.str() == "*") {
        list.report_invalid(errors, &format!("if '*' is present, must not specify other {words}"));
    }
}

fn client(client: &FieldValue<'_>, errors: &mut FieldErrors) {
    let url = client.get("url");
    let service = client.get("service");
    if url.is_set() == service.is_set() {
        return client.report_required(errors, "exactly one of url or service is required");
    }
    if url.is_set() {
        webhook_client::check_url(url.str(), &url.path(), errors)
    } else {
        webhook_client::check_service(service.value, &service.path(), errors)
    }
}

fn review_versions(versions: &FieldValue<'_>, errors: &mut FieldErrors) {
    if !versions.require(errors, "must specify one of v1, v1beta1") {
        return;
    }
    let mut seen: Vec<&str> = Vec::new();
    for version in versions.items() {
        let text = version.value.as_str().unwrap_or_default();
        if seen.contains(&text) {
            version.report_invalid(errors, "duplicate version");
        }
        version.report_invalid_each(errors, names::label_1035(text));
        seen.push(text);
    }
    if !seen.iter().any(|version| ["v1", "v1beta1"].contains(version)) {
        versions.report_invalid(errors, "must include at least one of v1, v1beta1");
    }
}

fn conditions(list: &FieldValue<'_>, has_params: bool, errors: &mut FieldErrors) {
    if list.len() > MAX_MATCH_CONDITIONS {
        errors.push(FieldError::too_many(list.path(), list.len(), MAX_MATCH_CONDITIONS));
    }
    let environment = check::admission_environment(VariableDeclarations { params: has_params, authorizer: true });
    let mut seen: Vec<&str> = Vec::new();
    for condition in list.items() {
        let expression = condition.get("expression");
        let name = condition.get("name");
        match expression.str().trim() {
            "" => expression.report_required(errors, ""),
            trimmed => compiles(expression.path(), trimmed, &environment, &[CelType::Bool], errors),
        }
        if name.require(errors, "") {
            name.report_invalid_each(errors, names::qualified(name.str()));
        }
        let text = condition.value.get("name").and_then(Value::as_str).unwrap_or_default();
        if !text.is_empty() && seen.contains(&text) {
            name.report_duplicate(errors);
        }
        seen.push(text);
    }
}

/// Checks that an expression compiles and has one of these types.
fn compiles(path: String, source: &str, environment: &TypeEnvironment, types: &[CelType], errors: &mut FieldErrors) {
    let problem = match check::check(source, environment) {
        Err(wrong) => format!("compilation failed: {wrong}"),
        Ok(found) if types.contains(&found) => return,
        Ok(found) => {
            let found = found.declared_name();
            match types.iter().map(CelType::declared_name).collect::<Vec<_>>().as_slice() {
                [one] => format!("must evaluate to {one} but got {found}"),
                many => format!("must evaluate to one of [{}] but got {found}", many.join(" ")),
            }
        }
    };
    errors.push(FieldError::invalid(path, &source.into(), &problem));
}

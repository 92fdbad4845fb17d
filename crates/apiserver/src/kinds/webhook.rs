//! What registers admission: webhook configurations, and admission policies with their bindings.

mod policy;

use serde_json::{Value, json};

pub use self::policy::{Policy, PolicyBinding};
use super::{
    at::At,
    names,
    object::{Object, each, fill, fill_text, first_generation, next_generation_of_all, sub},
    selector,
};
use crate::{
    api::field::{Error, Errors},
    cel::check::{self, Declarations, Environment, Type},
    registry::Strategy,
};

/// How many match conditions a webhook may have.
const CONDITIONS_MAX: usize = 64;

/// Rules of MutatingWebhookConfiguration and ValidatingWebhookConfiguration.
#[derive(Clone, Copy, Debug)]
pub struct Configuration {
    /// Whether its webhooks change objects.
    pub mutating: bool,
}

impl Strategy for Configuration {
    fn runs_expressions(&self) -> bool {
        true
    }

    fn default(&self, object: &mut Value) {
        let Some(configuration) = object.as_object_mut() else { return };
        for hook in each(configuration, "webhooks") {
            fill_text(hook, "failurePolicy", "Fail");
            default_match(hook);
            fill(hook, "timeoutSeconds", 10);
            if self.mutating {
                fill_text(hook, "reinvocationPolicy", "Never");
            }
            if let Some(service) = sub(hook, "clientConfig").and_then(|config| sub(config, "service")) {
                fill(service, "port", 443);
            }
            each(hook, "rules").for_each(|rule| fill_text(rule, "scope", "*"));
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
        let mut seen: Vec<&str> = Vec::new();
        for hook in root.get("webhooks").items() {
            self.hook(&hook, errors);
            let name = hook.value.get("name").and_then(Value::as_str).unwrap_or_default();
            if !name.is_empty() && seen.contains(&name) {
                hook.get("name").duplicate(errors);
            }
            seen.push(name);
        }
    }

    fn validate_update(&self, new: &Value, _old: &Value, _subresource: &str, errors: &mut Errors) {
        self.validate_create(new, errors);
    }

    fn unconditional_update(&self) -> bool {
        false
    }
}

fn default_match(hook: &mut Object) {
    fill_text(hook, "matchPolicy", "Equivalent");
    fill(hook, "namespaceSelector", json!({}));
    fill(hook, "objectSelector", json!({}));
}

impl Configuration {
    fn hook(self, hook: &At<'_>, errors: &mut Errors) {
        full_name(&hook.get("name"), errors);
        hook.get("rules").items().for_each(|rule| self::rule(&rule, errors));
        hook.get("failurePolicy").one_of(errors, &["Fail", "Ignore"]);
        hook.get("matchPolicy").one_of(errors, &["Equivalent", "Exact"]);
        let effects = hook.get("sideEffects");
        if effects.require(errors, "must specify one of None, NoneOnDryRun") {
            effects.one_of(errors, &["None", "NoneOnDryRun"]);
        }
        let timeout = hook.get("timeoutSeconds");
        if timeout.int().is_some_and(|seconds| !(1..=30).contains(&seconds)) {
            timeout.invalid(errors, "the timeout value must be between 1 and 30 seconds");
        }
        selector::validate(&hook.get("namespaceSelector"), errors);
        selector::validate(&hook.get("objectSelector"), errors);
        if self.mutating {
            hook.get("reinvocationPolicy").one_of(errors, &["IfNeeded", "Never"]);
        }
        client(&hook.get("clientConfig"), errors);
        review_versions(&hook.get("admissionReviewVersions"), errors);
        conditions(&hook.get("matchConditions"), false, errors);
    }
}

/// A domain of at least three parts.
fn full_name(name: &At<'_>, errors: &mut Errors) {
    if !name.require(errors, "") {
        return;
    }
    let wrong = names::subdomain(name.str());
    if !wrong.is_empty() {
        name.invalid(errors, &wrong.join(","));
    } else if name.str().split('.').count() < 3 {
        name.invalid(errors, "should be a domain with at least three segments separated by dots");
    }
}

fn rule(rule: &At<'_>, errors: &mut Errors) {
    let operations = rule.get("operations");
    operations.require(errors, "");
    only_star(&operations, "operations", errors);
    operations.items().for_each(|one| one.one_of(errors, &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"]));
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
        resources.invalid(errors, "if '*/*' is present, must not specify other resources");
    }
    if has("*") && resources.items().any(|one| one.str() != "*" && !one.str().contains('/')) {
        resources.invalid(errors, "if '*' is present, must not specify other resources without subresources");
    }
    rule.get("scope").one_of(errors, &["*", "Cluster", "Namespaced"]);
}

fn only_star(list: &At<'_>, words: &str, errors: &mut Errors) {
    if list.len() > 1 && list.items().any(|one| one.str() == "*") {
        list.invalid(errors, &format!("if '*' is present, must not specify other {words}"));
    }
}

fn client(client: &At<'_>, errors: &mut Errors) {
    let (url, service) = (client.get("url"), client.get("service"));
    if url.is_set() == service.is_set() {
        return client.required(errors, "exactly one of url or service is required");
    }
    if url.is_set() {
        return webhook_url(&url, errors);
    }
    service.get("name").require(errors, "service name is required");
    service.get("namespace").require(errors, "service namespace is required");
    let port = service.get("port");
    if let Some(wrong) = port.int().map(names::port_number).and_then(|wrong| wrong.into_iter().next()) {
        port.invalid(errors, &format!("port is not valid: {wrong}"));
    }
    let path = service.get("path");
    if path.is_set() && !path.str().starts_with('/') {
        path.invalid(errors, "must start with a '/'");
    }
}

/// It is called over TLS, as who it says it is, with nothing that the caller adds.
fn webhook_url(url: &At<'_>, errors: &mut Errors) {
    let form = "desired format: https://host[/path]";
    let Some(rest) = url.str().strip_prefix("https://") else {
        let scheme = url.str().split_once("://").map_or("", |(scheme, _)| scheme);
        let detail = format!("'https' is the only allowed URL scheme; {form}");
        return errors.push(Error::invalid(url.path(), &json!(scheme), &detail));
    };
    let (host, rest) = rest.split_once('/').unwrap_or((rest, ""));
    if host.is_empty() {
        errors.push(Error::invalid(url.path(), &json!(""), &format!("host must be specified; {form}")));
    }
    if let Some((user, _)) = host.split_once('@') {
        let detail = "user information is not permitted in the URL";
        errors.push(Error::invalid(url.path(), &json!(user), detail));
    }
    if let Some((_, fragment)) = rest.split_once('#') {
        errors.push(Error::invalid(url.path(), &json!(fragment), "fragments are not permitted in the URL"));
    } else if let Some((_, query)) = rest.split_once('?') {
        errors.push(Error::invalid(url.path(), &json!(query), "query parameters are not permitted in the URL"));
    }
}

fn review_versions(versions: &At<'_>, errors: &mut Errors) {
    if !versions.require(errors, "must specify one of v1, v1beta1") {
        return;
    }
    let mut seen: Vec<&str> = Vec::new();
    for version in versions.items() {
        let text = version.value.as_str().unwrap_or_default();
        if seen.contains(&text) {
            version.invalid(errors, "duplicate version");
        }
        version.invalid_each(errors, names::label_1035(text));
        seen.push(text);
    }
    if !seen.iter().any(|version| ["v1", "v1beta1"].contains(version)) {
        versions.invalid(errors, "must include at least one of v1, v1beta1");
    }
}

fn conditions(list: &At<'_>, has_params: bool, errors: &mut Errors) {
    if list.len() > CONDITIONS_MAX {
        errors.push(Error::too_many(list.path(), list.len(), CONDITIONS_MAX));
    }
    let environment = check::admission(Declarations { params: has_params, authorizer: true });
    let mut seen: Vec<&str> = Vec::new();
    for condition in list.items() {
        let (expression, name) = (condition.get("expression"), condition.get("name"));
        match expression.str().trim() {
            "" => expression.required(errors, ""),
            trimmed => compiles(expression.path(), trimmed, &environment, &[Type::Bool], errors),
        }
        if name.require(errors, "") {
            name.invalid_each(errors, names::qualified(name.str()));
        }
        let text = condition.value.get("name").and_then(Value::as_str).unwrap_or_default();
        if !text.is_empty() && seen.contains(&text) {
            name.duplicate(errors);
        }
        seen.push(text);
    }
}

/// An expression must compile, and give one of these types.
fn compiles(path: String, source: &str, environment: &Environment, types: &[Type], errors: &mut Errors) {
    let problem = match check::check(source, environment) {
        Err(wrong) => format!("compilation failed: {wrong}"),
        Ok(found) if types.contains(&found) => return,
        Ok(found) => {
            let found = found.declared_name();
            match types.iter().map(Type::declared_name).collect::<Vec<_>>().as_slice() {
                [one] => format!("must evaluate to {one} but got {found}"),
                many => format!("must evaluate to one of [{}] but got {found}", many.join(" ")),
            }
        }
    };
    errors.push(Error::invalid(path, &source.into(), &problem));
}

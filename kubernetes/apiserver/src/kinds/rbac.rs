//! Roles and bindings. Any path segment is a valid name.

use serde_json::{Value, json};

use super::{
    field_value::FieldValue,
    json_object::{JsonObject, nested_object_mut, object_items_mut, set_if_absent, set_text_if_empty, text},
    names, selector,
};
use crate::{
    api::field::{FieldError, FieldErrors},
    registry::{NameRule, Strategy},
};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Rules of Role and ClusterRole.
#[derive(Clone, Copy, Debug)]
pub struct RoleStrategy {
    /// Whether it is a Role.
    pub namespaced: bool,
}

/// Rules of RoleBinding and ClusterRoleBinding.
#[derive(Clone, Copy, Debug)]
pub struct RoleBindingStrategy {
    /// Whether it is a RoleBinding.
    pub namespaced: bool,
}

impl Strategy for RoleStrategy {
    fn default(&self, object: &mut Value) {
        if let Some(role) = object.as_object_mut() {
            role.entry("rules").or_insert(Value::Null);
            for rule in object_items_mut(role, "rules") {
                set_if_absent(rule, "verbs", json!([]));
            }
        }
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        for rule in root.get("rules").items() {
            self.rule(&rule, errors);
        }
        let aggregation = root.get("aggregationRule");
        if aggregation.is_set() {
            let selectors = aggregation.get("clusterRoleSelectors");
            let words = "at least one clusterRoleSelector required if aggregationRule is non-nil";
            selectors.require(errors, words);
            for one in selectors.items() {
                selector::validate(&one, errors);
            }
        }
    }

    fn validate_update(&self, new: &Value, _old: &Value, _subresource: &str, errors: &mut FieldErrors) {
        self.validate_create(new, errors);
    }

    fn names(&self) -> NameRule {
        NameRule::PathSegment
    }

    fn create_on_update(&self) -> bool {
        true
    }
}

impl RoleStrategy {
    fn rule(self, rule: &FieldValue<'_>, errors: &mut FieldErrors) {
        rule.get("verbs").require(errors, "verbs must contain at least one value");
        let urls = rule.get("nonResourceURLs");
        if !urls.is_empty() {
            if self.namespaced {
                urls.report_invalid(errors, "namespaced rules cannot apply to non-resource URLs");
            }
            if ["apiGroups", "resources", "resourceNames"].iter().any(|field| !rule.get(field).is_empty()) {
                urls.report_invalid(errors, "rules cannot apply to both regular resources and non-resource URLs");
            }
            return;
        }
        rule.get("apiGroups").require(errors, "resource rules must supply at least one api group");
        rule.get("resources").require(errors, "resource rules must supply at least one resource");
    }
}

impl Strategy for RoleBindingStrategy {
    fn default(&self, object: &mut Value) {
        let Some(binding) = object.as_object_mut() else { return };
        set_if_absent(binding, "roleRef", json!({}));
        if let Some(role) = nested_object_mut(binding, "roleRef") {
            set_text_if_empty(role, "apiGroup", GROUP);
        }
        object_items_mut(binding, "subjects").for_each(subject_default);
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        let role = root.get("roleRef");
        role.get("apiGroup").require_one_of(errors, &[GROUP]);
        let known: &[&str] = if self.namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
        role.get("kind").require_one_of(errors, known);
        let name = role.get("name");
        if name.require(errors, "") {
            name.report_invalid_each(errors, names::path_segment(name.str(), false));
        }
        for subject in root.get("subjects").items() {
            self.subject(&subject, errors);
        }
    }

    fn validate_update(&self, new: &Value, old: &Value, _subresource: &str, errors: &mut FieldErrors) {
        self.validate_create(new, errors);
        let root = FieldValue::root(new);
        let old_root = FieldValue::root(old);
        let role = root.get("roleRef");
        if role.value != old_root.get("roleRef").value {
            // kube-apiserver shows its own type here.
            let text = |field: &str| role.get(field).value.to_string();
            let group = text("apiGroup");
            let kind = text("kind");
            let name = text("name");
            let shown = format!("{{\"APIGroup\":{group},\"Kind\":{kind},\"Name\":{name}}}");
            role.report_invalid_as(errors, &shown, "field is immutable");
        }
    }

    fn names(&self) -> NameRule {
        NameRule::PathSegment
    }

    fn create_on_update(&self) -> bool {
        true
    }
}

fn subject_default(subject: &mut JsonObject) {
    if ["User", "Group"].contains(&text(subject, "kind")) {
        set_text_if_empty(subject, "apiGroup", GROUP);
    }
}

impl RoleBindingStrategy {
    fn subject(self, subject: &FieldValue<'_>, errors: &mut FieldErrors) {
        let kind = subject.get("kind");
        let group = subject.get("apiGroup");
        let name = subject.get("name");
        name.require(errors, "");
        match kind.str() {
            "ServiceAccount" => {
                if !name.is_empty() {
                    name.report_invalid_each(errors, names::subdomain(name.str()));
                }
                if !group.is_empty() {
                    errors.push(FieldError::not_supported(group.path(), group.value, &[""]));
                }
                if !self.namespaced {
                    subject.get("namespace").require(errors, "");
                }
            }
            "User" | "Group" => group.require_one_of(errors, &[GROUP]),
            _ => kind.require_one_of(errors, &["ServiceAccount", "User", "Group"]),
        }
    }
}

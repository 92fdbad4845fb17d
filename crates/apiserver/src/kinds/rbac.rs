//! Roles and bindings. Their names are only bounded by what a path can hold.

use serde_json::{Value, json};

use super::{
    at::At,
    names,
    object::{Object, each, fill, fill_text, sub, text},
    selector,
};
use crate::{
    api::field::{Error, Errors},
    registry::{NameRule, Strategy},
};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Rules of Role and ClusterRole.
#[derive(Clone, Copy, Debug)]
pub struct Role {
    /// Whether it is a Role.
    pub namespaced: bool,
}

/// Rules of RoleBinding and ClusterRoleBinding.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// Whether it is a RoleBinding.
    pub namespaced: bool,
}

impl Strategy for Role {
    fn default(&self, object: &mut Value) {
        if let Some(role) = object.as_object_mut() {
            role.entry("rules").or_insert(Value::Null);
            for rule in each(role, "rules") {
                fill(rule, "verbs", json!([]));
            }
        }
    }

    fn validate_create(&self, object: &Value, errors: &mut Errors) {
        let root = At::root(object);
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

    fn validate_update(&self, new: &Value, _old: &Value, _subresource: &str, errors: &mut Errors) {
        self.validate_create(new, errors);
    }

    fn names(&self) -> NameRule {
        NameRule::PathSegment
    }

    fn create_on_update(&self) -> bool {
        true
    }
}

impl Role {
    fn rule(self, rule: &At<'_>, errors: &mut Errors) {
        rule.get("verbs").require(errors, "verbs must contain at least one value");
        let urls = rule.get("nonResourceURLs");
        if !urls.is_empty() {
            if self.namespaced {
                urls.invalid(errors, "namespaced rules cannot apply to non-resource URLs");
            }
            if ["apiGroups", "resources", "resourceNames"].iter().any(|field| !rule.get(field).is_empty()) {
                urls.invalid(errors, "rules cannot apply to both regular resources and non-resource URLs");
            }
            return;
        }
        rule.get("apiGroups").require(errors, "resource rules must supply at least one api group");
        rule.get("resources").require(errors, "resource rules must supply at least one resource");
    }
}

impl Strategy for Binding {
    fn default(&self, object: &mut Value) {
        let Some(binding) = object.as_object_mut() else { return };
        fill(binding, "roleRef", json!({}));
        if let Some(role) = sub(binding, "roleRef") {
            fill_text(role, "apiGroup", GROUP);
        }
        each(binding, "subjects").for_each(subject_default);
    }

    fn validate_create(&self, object: &Value, errors: &mut Errors) {
        let root = At::root(object);
        let role = root.get("roleRef");
        role.get("apiGroup").one_of(errors, &[GROUP]);
        let known: &[&str] = if self.namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
        role.get("kind").one_of(errors, known);
        let name = role.get("name");
        if name.require(errors, "") {
            name.invalid_each(errors, names::path_segment(name.str(), false));
        }
        for subject in root.get("subjects").items() {
            self.subject(&subject, errors);
        }
    }

    fn validate_update(&self, new: &Value, old: &Value, _subresource: &str, errors: &mut Errors) {
        self.validate_create(new, errors);
        let (root, old_root) = (At::root(new), At::root(old));
        let role = root.get("roleRef");
        if role.value != old_root.get("roleRef").value {
            // kube-apiserver shows its own type here
            let text = |field: &str| role.get(field).value.to_string();
            let (group, kind, name) = (text("apiGroup"), text("kind"), text("name"));
            let shown = format!("{{\"APIGroup\":{group},\"Kind\":{kind},\"Name\":{name}}}");
            role.invalid_as(errors, &shown, "field is immutable");
        }
    }

    fn names(&self) -> NameRule {
        NameRule::PathSegment
    }

    fn create_on_update(&self) -> bool {
        true
    }
}

fn subject_default(subject: &mut Object) {
    if ["User", "Group"].contains(&text(subject, "kind")) {
        fill_text(subject, "apiGroup", GROUP);
    }
}

impl Binding {
    fn subject(self, subject: &At<'_>, errors: &mut Errors) {
        let (kind, group, name) = (subject.get("kind"), subject.get("apiGroup"), subject.get("name"));
        name.require(errors, "");
        match kind.str() {
            "ServiceAccount" => {
                if !name.is_empty() {
                    name.invalid_each(errors, names::subdomain(name.str()));
                }
                if !group.is_empty() {
                    errors.push(Error::not_supported(group.path(), group.value, &[""]));
                }
                if !self.namespaced {
                    subject.get("namespace").require(errors, "");
                }
            }
            "User" | "Group" => group.one_of(errors, &[GROUP]),
            _ => kind.one_of(errors, &["ServiceAccount", "User", "Group"]),
        }
    }
}

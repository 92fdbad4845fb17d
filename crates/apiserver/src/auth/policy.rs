//! The roles and bindings that are there from the start, as kube-apiserver 1.35 makes them, those of kube-controller-manager's
//! controllers among them.
//!
//! Not among them: rules for features that are off by default.

use serde_json::{Map, Value, json};

use crate::api::GroupResource;

use super::rbac::GROUP;

mod controllers;
mod table;

/// All objects, each with its collection, without what a create adds (uid, timestamps). The server writes those that are not there;
/// the ones in `kube-system` after that namespace.
pub fn objects() -> Vec<(GroupResource, Value)> {
    let roles = table::CLUSTER_ROLES.iter().map(|role| ("clusterroles", role.cluster_role()));
    let bindings = table::CLUSTER_BINDINGS.iter().map(|binding| ("clusterrolebindings", binding.to_value("")));
    let local_roles = table::ROLES.iter().map(|role| ("roles", role.local("kube-system")));
    let local_bindings = table::BINDINGS.iter().map(|binding| ("rolebindings", binding.to_value("kube-system")));
    let all = roles.chain(bindings).chain(local_roles).chain(local_bindings).chain(of_controllers());
    all.map(|(resource, object)| (GroupResource::new(GROUP, resource), object)).collect()
}

/// Roles of controllers, and their bindings to the accounts of the same names.
fn of_controllers() -> impl Iterator<Item = (&'static str, Value)> {
    let cluster = controllers::CLUSTER_ROLES.iter().flat_map(|role| {
        [("clusterroles", role.cluster_role()), ("clusterrolebindings", bound_to_account(role.name, ""))]
    });
    let local = controllers::ROLES.iter().flat_map(|(namespace, role)| {
        [("roles", role.local(namespace)), ("rolebindings", bound_to_account(role.name, namespace))]
    });
    cluster.chain(local)
}

fn bound_to_account(role: &'static str, namespace: &str) -> Value {
    let account = role.strip_prefix(controllers::PREFIX).unwrap_or(role);
    let mut binding = Binding { name: role, role: "", subjects: &[] }.to_value(namespace);
    put(&mut binding, "subjects", json!([{"kind": "ServiceAccount", "name": account, "namespace": "kube-system"}]));
    binding
}

/// A role of the table.
struct Role {
    name: &'static str,
    /// `admin`, `edit` or `view`: the aggregated role that its rules go to. Empty for none.
    to: &'static str,
    /// The same for an aggregated role: what it gathers.
    from: &'static str,
    rules: &'static [Rule],
}

/// Words between spaces; `core` is the group without a name.
struct Rule {
    verbs: &'static str,
    groups: &'static str,
    resources: &'static str,
    names: &'static str,
    urls: &'static str,
}

/// A binding of the table, of a role with the same name if it says no other.
struct Binding {
    name: &'static str,
    role: &'static str,
    /// `User:…`, `Group:…` or `ServiceAccount:…` of `kube-system`.
    subjects: &'static [&'static str],
}

impl Role {
    fn cluster_role(&self) -> Value {
        let mut role = object("ClusterRole", self.name, "");
        let label = |role: &str| format!("{GROUP}/aggregate-to-{role}");
        if !self.to.is_empty()
            && let Some(labels) = role.pointer_mut("/metadata/labels").and_then(Value::as_object_mut)
        {
            labels.insert(label(self.to), "true".into());
        }
        if self.from.is_empty() {
            put(&mut role, "rules", self.rules());
        } else {
            let labels = Map::from_iter([(label(self.from), "true".into())]);
            put(&mut role, "aggregationRule", json!({"clusterRoleSelectors": [{"matchLabels": labels}]}));
            // The aggregation fills it in.
            put(&mut role, "rules", Value::Null);
        }
        role
    }

    fn local(&self, namespace: &str) -> Value {
        let mut role = object("Role", self.name, namespace);
        put(&mut role, "rules", self.rules());
        role
    }

    fn rules(&self) -> Value {
        self.rules.iter().map(Rule::to_value).collect()
    }
}

impl Rule {
    fn to_value(&self) -> Value {
        let fields = [
            ("verbs", self.verbs),
            ("apiGroups", self.groups),
            ("resources", self.resources),
            ("resourceNames", self.names),
            ("nonResourceURLs", self.urls),
        ];
        let filled = fields.into_iter().filter(|(_, words)| !words.is_empty());
        filled.map(|(field, words)| (field.to_owned(), sorted(words))).collect::<Map<_, _>>().into()
    }
}

impl Binding {
    fn to_value(&self, namespace: &str) -> Value {
        let (kind, role_kind) =
            if namespace.is_empty() { ("ClusterRoleBinding", "ClusterRole") } else { ("RoleBinding", "Role") };
        let mut binding = object(kind, self.name, namespace);
        let role = if self.role.is_empty() { self.name } else { self.role };
        put(&mut binding, "roleRef", json!({"apiGroup": GROUP, "kind": role_kind, "name": role}));
        if !self.subjects.is_empty() {
            put(&mut binding, "subjects", self.subjects.iter().filter_map(|subject| subject_value(subject)).collect());
        }
        binding
    }
}

fn subject_value(subject: &str) -> Option<Value> {
    let (kind, name) = subject.split_once(':')?;
    Some(match kind {
        "ServiceAccount" => json!({"kind": kind, "name": name, "namespace": "kube-system"}),
        _ => json!({"apiGroup": GROUP, "kind": kind, "name": name}),
    })
}

fn object(kind: &str, name: &str, namespace: &str) -> Value {
    let mut metadata = json!({
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    });
    if !namespace.is_empty() {
        put(&mut metadata, "namespace", namespace.into());
    }
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": metadata})
}

fn put(object: &mut Value, field: &str, value: Value) {
    if let Some(members) = object.as_object_mut() {
        members.insert(field.to_owned(), value);
    }
}

/// kube-apiserver keeps the words of its own rules in order.
fn sorted(words: &str) -> Value {
    let mut words: Vec<&str> = words.split(' ').map(|word| if word == "core" { "" } else { word }).collect();
    words.sort_unstable();
    words.into()
}

#[cfg(test)]
mod tests;

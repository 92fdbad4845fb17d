//! The default roles and bindings of kube-apiserver 1.35, including those of kube-controller-manager's
//! controllers.
//!
//! Not included: rules for features that are off by default.

use serde_json::{Map, Value, json};

use crate::api::GroupResource;

use super::rbac::RBAC_GROUP;

mod controller_roles;
mod default_roles;

/// All objects, each with its collection, without the metadata that a create adds (uid, timestamps). The server
/// writes those that do not exist; those in `kube-system` after that namespace.
pub fn bootstrap_objects() -> Vec<(GroupResource, Value)> {
    let roles = default_roles::CLUSTER_ROLES.iter().map(|role| ("clusterroles", role.cluster_role()));
    let bindings = default_roles::CLUSTER_BINDINGS.iter().map(|binding| ("clusterrolebindings", binding.to_value("")));
    let local_roles = default_roles::ROLES.iter().map(|role| ("roles", role.namespaced_role("kube-system")));
    let local_bindings =
        default_roles::BINDINGS.iter().map(|binding| ("rolebindings", binding.to_value("kube-system")));
    let all = roles.chain(bindings).chain(local_roles).chain(local_bindings).chain(controller_objects());
    all.map(|(resource, object)| (GroupResource::new(RBAC_GROUP, resource), object)).collect()
}

/// Roles of controllers, and their bindings to the ServiceAccounts of the same names.
fn controller_objects() -> impl Iterator<Item = (&'static str, Value)> {
    let cluster = controller_roles::CONTROLLER_CLUSTER_ROLES.iter().flat_map(|role| {
        [("clusterroles", role.cluster_role()), ("clusterrolebindings", binding_to_service_account(role.name, ""))]
    });
    let local = controller_roles::CONTROLLER_ROLES.iter().flat_map(|(namespace, role)| {
        [("roles", role.namespaced_role(namespace)), ("rolebindings", binding_to_service_account(role.name, namespace))]
    });
    cluster.chain(local)
}

fn binding_to_service_account(role: &'static str, namespace: &str) -> Value {
    let account = role.strip_prefix(controller_roles::CONTROLLER_ROLE_PREFIX).unwrap_or(role);
    let mut binding = BootstrapBinding { name: role, role: "", subjects: &[] }.to_value(namespace);
    set_field(
        &mut binding,
        "subjects",
        json!([{"kind": "ServiceAccount", "name": account, "namespace": "kube-system"}]),
    );
    binding
}

struct BootstrapRole {
    name: &'static str,
    /// `admin`, `edit` or `view`: the aggregated role that gets its rules. Empty for none.
    to: &'static str,
    /// For an aggregated role: the role whose rules it aggregates.
    from: &'static str,
    rules: &'static [BootstrapRule],
}

/// A rule as words between spaces; `core` is the group with the empty name.
struct BootstrapRule {
    verbs: &'static str,
    groups: &'static str,
    resources: &'static str,
    names: &'static str,
    urls: &'static str,
}

/// A binding, of the role with the same name unless another is given.
struct BootstrapBinding {
    name: &'static str,
    role: &'static str,
    /// `User:…`, `Group:…` or `ServiceAccount:…` (of `kube-system`).
    subjects: &'static [&'static str],
}

impl BootstrapRole {
    fn cluster_role(&self) -> Value {
        let mut role = object("ClusterRole", self.name, "");
        let label = |role: &str| format!("{RBAC_GROUP}/aggregate-to-{role}");
        if !self.to.is_empty()
            && let Some(labels) = role.pointer_mut("/metadata/labels").and_then(Value::as_object_mut)
        {
            labels.insert(label(self.to), "true".into());
        }
        if self.from.is_empty() {
            set_field(&mut role, "rules", self.rules());
        } else {
            let labels = Map::from_iter([(label(self.from), "true".into())]);
            set_field(&mut role, "aggregationRule", json!({"clusterRoleSelectors": [{"matchLabels": labels}]}));
            // Filled in by aggregation.
            set_field(&mut role, "rules", Value::Null);
        }
        role
    }

    fn namespaced_role(&self, namespace: &str) -> Value {
        let mut role = object("Role", self.name, namespace);
        set_field(&mut role, "rules", self.rules());
        role
    }

    fn rules(&self) -> Value {
        self.rules.iter().map(BootstrapRule::to_value).collect()
    }
}

impl BootstrapRule {
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

impl BootstrapBinding {
    fn to_value(&self, namespace: &str) -> Value {
        let (kind, role_kind) =
            if namespace.is_empty() { ("ClusterRoleBinding", "ClusterRole") } else { ("RoleBinding", "Role") };
        let mut binding = object(kind, self.name, namespace);
        let role = if self.role.is_empty() { self.name } else { self.role };
        set_field(&mut binding, "roleRef", json!({"apiGroup": RBAC_GROUP, "kind": role_kind, "name": role}));
        if !self.subjects.is_empty() {
            set_field(
                &mut binding,
                "subjects",
                self.subjects.iter().filter_map(|subject| subject_value(subject)).collect(),
            );
        }
        binding
    }
}

fn subject_value(subject: &str) -> Option<Value> {
    let (kind, name) = subject.split_once(':')?;
    Some(match kind {
        "ServiceAccount" => json!({"kind": kind, "name": name, "namespace": "kube-system"}),
        _ => json!({"apiGroup": RBAC_GROUP, "kind": kind, "name": name}),
    })
}

fn object(kind: &str, name: &str, namespace: &str) -> Value {
    let mut metadata = json!({
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    });
    if !namespace.is_empty() {
        set_field(&mut metadata, "namespace", namespace.into());
    }
    json!({"apiVersion": format!("{RBAC_GROUP}/v1"), "kind": kind, "metadata": metadata})
}

fn set_field(object: &mut Value, field: &str, value: Value) {
    if let Some(members) = object.as_object_mut() {
        members.insert(field.to_owned(), value);
    }
}

/// kube-apiserver sorts the words of its own rules.
fn sorted(words: &str) -> Value {
    let mut words: Vec<&str> = words.split(' ').map(|word| if word == "core" { "" } else { word }).collect();
    words.sort_unstable();
    words.into()
}

#[cfg(test)]
mod tests;

//! A slow implementation of RBAC after its documentation: every decision reads all objects.

use std::collections::BTreeMap;

use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Value, json};

use crate::{
    api::meta::MetaAccessor,
    auth::{AuthorizationAttributes, UserInfo},
};

#[derive(Clone, Debug)]
pub enum Change {
    Apply(&'static str, Value),
    Remove(&'static str, &'static str, &'static str),
}

#[derive(Debug, Default)]
pub struct Objects(BTreeMap<(String, String, String), Value>);

#[derive(Clone, Debug)]
pub struct Request {
    pub user: String,
    pub groups: Vec<String>,
    verb: &'static str,
    resource: &'static str,
    subresource: &'static str,
    namespace: &'static str,
    name: &'static str,
    path: Option<&'static str>,
}

impl Request {
    pub fn attributes<'a>(&'a self, user: &'a UserInfo) -> AuthorizationAttributes<'a> {
        match self.path {
            Some(path) => AuthorizationAttributes::for_path(user, self.verb, path),
            None => AuthorizationAttributes::for_resource(user, self.verb, "", self.resource)
                .with_subresource(self.subresource)
                .namespace(self.namespace)
                .name(self.name),
        }
    }
}

impl Objects {
    pub fn change(&mut self, change: &Change) {
        match change {
            Change::Apply(kind, object) => {
                let key = ((*kind).into(), object.namespace().into(), object.name().into());
                self.0.insert(key, object.clone());
            }
            Change::Remove(kind, namespace, name) => {
                self.0.remove(&((*kind).into(), (*namespace).into(), (*name).into()));
            }
        }
    }

    pub fn allow(&self, request: &AuthorizationAttributes<'_>) -> bool {
        self.0.iter().any(|((kind, namespace, _), binding)| {
            let applies = kind == "clusterrolebindings"
                || kind == "rolebindings" && !request.namespace.is_empty() && namespace == request.namespace;
            applies
                && list(binding, "subjects").iter().any(|subject| names(subject, request.user, namespace))
                && self.rules(binding, namespace).iter().any(|rule| allows(rule, request))
        })
    }

    fn rules(&self, binding: &Value, namespace: &str) -> Vec<Value> {
        let name = binding["roleRef"]["name"].as_str().unwrap();
        match binding["roleRef"]["kind"].as_str().unwrap() {
            "Role" => {
                self.0.get(&("roles".into(), namespace.into(), name.into())).map_or(vec![], |role| list(role, "rules"))
            }
            _ => self.cluster_rules(name, 0),
        }
    }

    /// The rules of a role; aggregation is followed at most as deep as there are roles.
    fn cluster_rules(&self, name: &str, depth: usize) -> Vec<Value> {
        let Some(role) = self.0.get(&("clusterroles".into(), String::new(), name.into())) else { return vec![] };
        let Some(selected) = role.pointer("/aggregationRule/clusterRoleSelectors/0/matchLabels/to") else {
            return list(role, "rules");
        };
        let others = self.0.iter().filter(|((kind, _, _), other)| {
            depth < 4 && kind == "clusterroles" && other.pointer("/metadata/labels/to") == Some(selected)
        });
        others.flat_map(|((_, _, other), _)| self.cluster_rules(other, depth + 1)).collect()
    }
}

fn list(object: &Value, field: &str) -> Vec<Value> {
    object[field].as_array().cloned().unwrap_or_default()
}

fn names(subject: &Value, user: &UserInfo, namespace: &str) -> bool {
    let name = subject["name"].as_str().unwrap();
    match subject["kind"].as_str().unwrap() {
        "User" => *user.name == *name,
        "Group" => user.groups.iter().any(|group| **group == *name),
        _ => {
            let namespace = subject["namespace"].as_str().unwrap_or(namespace);
            !namespace.is_empty() && *user.name == *format!("system:serviceaccount:{namespace}:{name}")
        }
    }
}

fn allows(rule: &Value, request: &AuthorizationAttributes<'_>) -> bool {
    let any =
        |field: &str, holds: &dyn Fn(&str) -> bool| list(rule, field).iter().any(|one| holds(one.as_str().unwrap()));
    let verb = any("verbs", &|one| one == "*" || one == request.verb);
    if let Some(path) = request.path {
        let matches = |one: &str| one == path || one.ends_with('*') && path.starts_with(&one[..one.len() - 1]);
        return verb && any("nonResourceURLs", &matches);
    }
    let wanted = match request.subresource {
        "" => vec!["*".to_owned(), request.resource.to_owned()],
        sub => vec!["*".to_owned(), format!("{}/{sub}", request.resource), format!("*/{sub}")],
    };
    verb && any("apiGroups", &|one| one == "*" || one == request.group)
        && any("resources", &|one| wanted.iter().any(|wanted| wanted == one))
        && (list(rule, "resourceNames").is_empty() || any("resourceNames", &|one| one == request.name))
}

const NAMES: &[&str] = &["a", "b", "c"];
const NAMESPACES: &[&str] = &["n", "m"];

fn rules() -> impl Strategy<Value = Value> {
    let resources = select(&["pods", "pods/log", "*/log", "*", "secrets"][..]);
    let verbs = select(&["get", "list", "*"][..]);
    let urls = select(&["/x", "/x/*", "*", "/y"][..]);
    let names = vec(select(NAMES), 0..2);
    let resource = (select(&["", "*", "apps"][..]), resources, verbs.clone(), names).prop_map(|(group, resource, verb, names)| {
        json!({"apiGroups": [group], "resources": [resource], "verbs": [verb], "resourceNames": names})
    });
    let url = (urls, verbs).prop_map(|(url, verb)| json!({"nonResourceURLs": [url], "verbs": [verb]}));
    vec(prop_oneof![3 => resource, 1 => url], 0..3).prop_map(Value::from)
}

fn cluster_role() -> impl Strategy<Value = Value> {
    let label = select(NAMES);
    (select(NAMES), label.clone(), rules(), proptest::option::weighted(0.4, label)).prop_map(
        |(name, label, rules, selected)| {
            let mut role = json!({"metadata": {"name": name, "labels": {"to": label}}, "rules": rules});
            if let Some(selected) = selected {
                role["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"to": selected}}]});
            }
            role
        },
    )
}

fn subject() -> impl Strategy<Value = Value> {
    let account =
        (select(NAMES), proptest::option::of(select(NAMESPACES))).prop_map(|(name, namespace)| match namespace {
            Some(namespace) => json!({"kind": "ServiceAccount", "name": name, "namespace": namespace}),
            None => json!({"kind": "ServiceAccount", "name": name}),
        });
    let other =
        (select(&["User", "Group"][..]), select(NAMES)).prop_map(|(kind, name)| json!({"kind": kind, "name": name}));
    prop_oneof![account, other]
}

fn binding(kind: &'static [&'static str]) -> impl Strategy<Value = Value> {
    (select(NAMES), select(kind), select(NAMES), vec(subject(), 0..3)).prop_map(|(name, kind, role, subjects)| {
        json!({"metadata": {"name": name}, "roleRef": {"kind": kind, "name": role}, "subjects": subjects})
    })
}

fn local(object: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    (object, select(NAMESPACES)).prop_map(|(mut object, namespace)| {
        object["metadata"]["namespace"] = namespace.into();
        object
    })
}

pub fn changes() -> impl Strategy<Value = Vec<Change>> {
    let role = (select(NAMES), rules()).prop_map(|(name, rules)| json!({"metadata": {"name": name}, "rules": rules}));
    let kinds = &["roles", "clusterroles", "rolebindings", "clusterrolebindings"][..];
    let gone = (select(kinds), select(NAMESPACES), select(NAMES)).prop_map(|(kind, namespace, name)| {
        Change::Remove(kind, if kind.starts_with("cluster") { "" } else { namespace }, name)
    });
    let change = prop_oneof![
        local(role).prop_map(|object| Change::Apply("roles", object)),
        cluster_role().prop_map(|object| Change::Apply("clusterroles", object)),
        local(binding(&["Role", "ClusterRole"])).prop_map(|object| Change::Apply("rolebindings", object)),
        binding(&["ClusterRole"]).prop_map(|object| Change::Apply("clusterrolebindings", object)),
        gone,
    ];
    vec(change, 0..24)
}

pub fn requests() -> impl Strategy<Value = Vec<Request>> {
    let account = (select(NAMESPACES), select(NAMES))
        .prop_map(|(namespace, name)| format!("system:serviceaccount:{namespace}:{name}"));
    let user = prop_oneof![account, select(NAMES).prop_map(str::to_owned)];
    let groups = vec(select(NAMES).prop_map(str::to_owned), 0..3);
    let place = (select(&["", "n", "m"][..]), select(&["", "a", "b"][..]));
    let resource = (select(&["pods", "secrets"][..]), select(&["", "log"][..]));
    let path = proptest::option::weighted(0.25, select(&["/x", "/x/y", "/y"][..]));
    let request = (user, groups, select(&["get", "list", "delete"][..]), resource, place, path).prop_map(
        |(user, groups, verb, (resource, subresource), (namespace, name), path)| Request {
            user,
            groups,
            verb,
            resource,
            subresource,
            namespace,
            name,
            path,
        },
    );
    vec(request, 1..12)
}

//! RBAC as an index: from a user's name and groups to the rules that apply, kept up to date by change events.
//!
//! Guaranteed: [`Rbac::decide`] takes no more than a shared lock and one look-up per name and group in two maps, whatever the number of
//! roles and bindings; a change is seen by every decision that starts after [`Rbac::apply`] or [`Rbac::remove`] returned. An aggregated
//! ClusterRole has the rules of the roles that it selects at once, without anybody having written them into it. Assumed: the events of
//! one object come in the order of its changes.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::api::{GroupResource, meta::Meta};

use super::{
    Attributes, Authorizer, Decision, User,
    rbac::{GROUP, Rule},
    user::MASTERS,
};

mod bindings;
mod roles;

pub use self::{bindings::RoleRef, roles::Rules};
use self::{
    bindings::{Binding, Grant, Scope},
    roles::ClusterRoles,
};

/// All roles and bindings of now.
#[derive(Debug, Default)]
pub struct Rbac {
    state: RwLock<State>,
}

/// The rules that apply to a user, and what was in the way of finding all of them.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// In the order of the bindings' names, those of ClusterRoleBindings first.
    pub rules: Vec<Rule>,
    /// Roles that are bound but not there, in kube-apiserver's words.
    pub errors: Vec<String>,
}

#[derive(Debug, Default)]
struct State {
    cluster_roles: ClusterRoles,
    roles: HashMap<Arc<str>, HashMap<Arc<str>, Rules>>,
    cluster: Scope,
    namespaces: HashMap<Arc<str>, Scope>,
}

impl Rbac {
    /// An index over these objects, each with its collection.
    pub fn new<'a>(objects: impl IntoIterator<Item = (&'a GroupResource, &'a Value)>) -> Self {
        let rbac = Self::default();
        for (resource, object) in objects {
            rbac.apply(resource, object);
        }
        rbac
    }

    /// An object is there, new or changed. What is no role and no binding is ignored.
    pub fn apply(&self, resource: &GroupResource, object: &Value) {
        if &*resource.group != GROUP {
            return;
        }
        let mut state = self.write();
        match &*resource.resource {
            "clusterroles" => state.cluster_roles.insert(object),
            "roles" => {
                let rules = Rule::parse_all(object).into();
                state.roles.entry(object.namespace().into()).or_default().insert(object.name().into(), rules);
            }
            "clusterrolebindings" => state.cluster.insert(object.name(), Binding::parse(object, "")),
            "rolebindings" => {
                let scope = state.namespaces.entry(object.namespace().into()).or_default();
                scope.insert(object.name(), Binding::parse(object, object.namespace()));
            }
            _ => {}
        }
    }

    /// An object is gone.
    pub fn remove(&self, resource: &GroupResource, namespace: &str, name: &str) {
        if &*resource.group != GROUP {
            return;
        }
        let mut state = self.write();
        match &*resource.resource {
            "clusterroles" => state.cluster_roles.remove(name),
            "roles" => forget(&mut state.roles, namespace, |roles| {
                roles.remove(name);
                roles.is_empty()
            }),
            "clusterrolebindings" => state.cluster.remove(name),
            "rolebindings" => forget(&mut state.namespaces, namespace, |scope| {
                scope.remove(name);
                scope.is_empty()
            }),
            _ => {}
        }
    }

    /// Whether the roles allow a request. Without an opinion if they do not.
    pub fn decide(&self, attributes: &Attributes<'_>) -> Decision {
        if attributes.user.is_in(MASTERS) {
            return Decision::allow("");
        }
        let state = self.read();
        let mut missing = Vec::new();
        for (namespace, grants) in state.grants(attributes.user, attributes.namespace) {
            for grant in grants.values() {
                match state.rules(&grant.role, namespace) {
                    Some(rules) if rules.iter().any(|rule| rule.allows(attributes)) => {
                        return Decision::allow(Arc::clone(&grant.reason));
                    }
                    Some(_) => {}
                    None => missing.push(grant.role.missing()),
                }
            }
        }
        Decision::no_opinion(if missing.is_empty() { String::new() } else { format!("RBAC: {}", aggregate(missing)) })
    }

    /// All rules that apply to a user in a namespace (or, if it is empty, everywhere). `system:masters` has no rules of its own beside
    /// those of the role that is bound to it.
    pub fn rules_for(&self, user: &User, namespace: &str) -> Found {
        let state = self.read();
        let mut found = Found::default();
        // By binding, so that one that names the user twice counts once.
        let mut seen: BTreeMap<(&str, &str), &Grant> = BTreeMap::new();
        for (namespace, grants) in state.grants(user, namespace) {
            seen.extend(grants.iter().map(|(binding, grant)| ((namespace, &**binding), grant)));
        }
        for ((namespace, _), grant) in seen {
            match state.rules(&grant.role, namespace) {
                Some(rules) => found.rules.extend_from_slice(rules),
                None => found.errors.push(grant.role.missing()),
            }
        }
        found
    }

    /// The rules of a role that a binding in this namespace (empty for ClusterRoleBindings) refers to.
    pub fn role(&self, role: &RoleRef, namespace: &str) -> Option<Rules> {
        self.read().rules(role, namespace).cloned()
    }

    /// The ClusterRoles with an aggregationRule and the rules that they therefore have: what is to be written into their `rules`.
    pub fn aggregated(&self) -> Vec<(Arc<str>, Vec<Value>)> {
        let state = self.read();
        let all = state.cluster_roles.aggregated();
        all.map(|(name, rules)| (Arc::clone(name), rules.iter().map(Rule::to_value).collect())).collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        // Nothing in here panics half-way through a change.
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Authorizer for Rbac {
    fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> BoxFuture<'a, Decision> {
        Box::pin(std::future::ready(self.decide(attributes)))
    }
}

impl State {
    /// What is granted to a user, by namespace (empty: everywhere) and binding.
    fn grants<'a>(
        &'a self,
        user: &'a User,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a BTreeMap<Arc<str>, Grant>)> {
        let local = if namespace.is_empty() { None } else { self.namespaces.get(namespace) };
        let scopes = [Some(("", &self.cluster)), local.map(|scope| (namespace, scope))];
        scopes
            .into_iter()
            .flatten()
            .flat_map(|(namespace, scope)| scope.of(user).map(move |grants| (namespace, grants)))
    }

    fn rules(&self, role: &RoleRef, namespace: &str) -> Option<&Rules> {
        match role {
            RoleRef::Cluster(name) => self.cluster_roles.get(name),
            RoleRef::Local(name) => self.roles.get(namespace)?.get(name),
            RoleRef::Unknown(_) => None,
        }
    }
}

/// Several errors as one text, each once, as kube-apiserver joins them.
pub(super) fn aggregate(mut errors: Vec<String>) -> String {
    let mut seen = std::collections::HashSet::new();
    errors.retain(|error| seen.insert(error.clone()));
    match errors.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

/// Removes something from a namespace's part, and the part with it if nothing is left.
fn forget<T>(parts: &mut HashMap<Arc<str>, T>, namespace: &str, remove: impl FnOnce(&mut T) -> bool) {
    if parts.get_mut(namespace).is_some_and(remove) {
        parts.remove(namespace);
    }
}

#[cfg(test)]
mod tests;

//! RBAC as an index: from a user's name and groups to the rules that apply, kept up to date by change events.
//!
//! Guaranteed: [`RbacAuthorizer::decide`] takes no more than a shared lock and one look-up per name and group
//! in two maps, whatever the number of roles and bindings; a change affects every decision that starts after
//! [`RbacAuthorizer::apply`] or [`RbacAuthorizer::remove`] returned. An aggregated ClusterRole has the rules of
//! the roles that it selects at once, before they are written into it. Assumed: the events of one object come
//! in the order of its changes.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, RwLockReadGuard, RwLockWriteGuard},
};

use futures_util::future::BoxFuture;
use kubewake_runtime::lock::RwLock;
use serde_json::Value;

use crate::api::{GroupResource, meta::MetaAccessor};

use super::{
    AuthorizationAttributes, AuthorizationDecision, Authorizer, UserInfo,
    rbac::{PolicyRule, RBAC_GROUP},
    user::MASTERS_GROUP,
};

mod bindings;
mod roles;

pub use self::{bindings::RoleRef, roles::SharedRules};
use self::{
    bindings::{BindingScope, ParsedBinding, RoleGrant},
    roles::ClusterRoles,
};

/// All current roles and bindings.
#[derive(Debug, Default)]
pub struct RbacAuthorizer {
    state: RwLock<RbacState>,
}

/// The rules that apply to a user, and the errors while resolving them.
#[derive(Clone, Debug, Default)]
pub struct ResolvedRules {
    /// The rules in the order of the bindings' names, those of ClusterRoleBindings first.
    pub rules: Vec<PolicyRule>,
    /// Bound roles that do not exist, with kube-apiserver's message.
    pub errors: Vec<String>,
}

#[derive(Debug, Default)]
struct RbacState {
    cluster_roles: ClusterRoles,
    roles: HashMap<Arc<str>, HashMap<Arc<str>, SharedRules>>,
    cluster: BindingScope,
    namespaces: HashMap<Arc<str>, BindingScope>,
}

impl RbacAuthorizer {
    /// An index of these objects, each with its collection.
    pub fn new<'a>(objects: impl IntoIterator<Item = (&'a GroupResource, &'a Value)>) -> Self {
        let rbac = Self::default();
        for (resource, object) in objects {
            rbac.apply(resource, object);
        }
        rbac
    }

    /// Adds or replaces an object. Objects other than roles and bindings are ignored.
    pub fn apply(&self, resource: &GroupResource, object: &Value) {
        if &*resource.group != RBAC_GROUP {
            return;
        }
        let mut state = self.write();
        match &*resource.resource {
            "clusterroles" => state.cluster_roles.insert(object),
            "roles" => {
                let rules = PolicyRule::parse_all(object).into();
                state.roles.entry(object.namespace().into()).or_default().insert(object.name().into(), rules);
            }
            "clusterrolebindings" => state.cluster.insert(object.name(), ParsedBinding::parse(object, "")),
            "rolebindings" => {
                let scope = state.namespaces.entry(object.namespace().into()).or_default();
                scope.insert(object.name(), ParsedBinding::parse(object, object.namespace()));
            }
            _ => {}
        }
    }

    pub fn remove(&self, resource: &GroupResource, namespace: &str, name: &str) {
        if &*resource.group != RBAC_GROUP {
            return;
        }
        let mut state = self.write();
        match &*resource.resource {
            "clusterroles" => state.cluster_roles.remove(name),
            "roles" => remove_from_namespace(&mut state.roles, namespace, |roles| {
                roles.remove(name);
                roles.is_empty()
            }),
            "clusterrolebindings" => state.cluster.remove(name),
            "rolebindings" => remove_from_namespace(&mut state.namespaces, namespace, |scope| {
                scope.remove(name);
                scope.is_empty()
            }),
            _ => {}
        }
    }

    /// Allows a request if a rule matches, else has no opinion.
    pub fn decide(&self, attributes: &AuthorizationAttributes<'_>) -> AuthorizationDecision {
        if attributes.user.is_in(MASTERS_GROUP) {
            return AuthorizationDecision::allow("");
        }
        let state = self.read();
        let mut missing = Vec::new();
        for (namespace, grants) in state.grants(attributes.user, attributes.namespace) {
            for grant in grants.values() {
                match state.rules(&grant.role, namespace) {
                    Some(rules) if rules.iter().any(|rule| rule.allows(attributes)) => {
                        return AuthorizationDecision::allow(Arc::clone(&grant.reason));
                    }
                    Some(_) => {}
                    None => missing.push(grant.role.not_found_message()),
                }
            }
        }
        AuthorizationDecision::no_opinion(if missing.is_empty() {
            String::new()
        } else {
            format!("RBAC: {}", join_errors(missing))
        })
    }

    /// All rules that apply to a user in a namespace (or, if it is empty, everywhere). For `system:masters`
    /// these are only those of the role that is bound to it.
    pub fn rules_for(&self, user: &UserInfo, namespace: &str) -> ResolvedRules {
        let state = self.read();
        let mut found = ResolvedRules::default();
        // By binding, so that one that names the user twice counts once.
        let mut seen: BTreeMap<(&str, &str), &RoleGrant> = BTreeMap::new();
        for (namespace, grants) in state.grants(user, namespace) {
            seen.extend(grants.iter().map(|(binding, grant)| ((namespace, &**binding), grant)));
        }
        for ((namespace, _), grant) in seen {
            match state.rules(&grant.role, namespace) {
                Some(rules) => found.rules.extend_from_slice(rules),
                None => found.errors.push(grant.role.not_found_message()),
            }
        }
        found
    }

    /// The rules of the role that a binding in this namespace (empty for ClusterRoleBindings) refers to.
    pub fn role(&self, role: &RoleRef, namespace: &str) -> Option<SharedRules> {
        self.read().rules(role, namespace).cloned()
    }

    /// The aggregated ClusterRoles and their resulting rules, to be written into their `rules`.
    pub fn aggregated(&self) -> Vec<(Arc<str>, Vec<Value>)> {
        let state = self.read();
        let all = state.cluster_roles.aggregated();
        all.map(|(name, rules)| (Arc::clone(name), rules.iter().map(PolicyRule::to_value).collect())).collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, RbacState> {
        // No code here panics in the middle of a change.
        self.state.read()
    }

    fn write(&self) -> RwLockWriteGuard<'_, RbacState> {
        self.state.write()
    }
}

impl Authorizer for RbacAuthorizer {
    fn authorize<'a>(&'a self, attributes: &'a AuthorizationAttributes<'a>) -> BoxFuture<'a, AuthorizationDecision> {
        Box::pin(std::future::ready(self.decide(attributes)))
    }
}

impl RbacState {
    /// The roles that are granted to a user, by namespace (empty: everywhere) and binding.
    fn grants<'a>(
        &'a self,
        user: &'a UserInfo,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a BTreeMap<Arc<str>, RoleGrant>)> {
        let local = if namespace.is_empty() { None } else { self.namespaces.get(namespace) };
        let scopes = [Some(("", &self.cluster)), local.map(|scope| (namespace, scope))];
        scopes
            .into_iter()
            .flatten()
            .flat_map(|(namespace, scope)| scope.of(user).map(move |grants| (namespace, grants)))
    }

    fn rules(&self, role: &RoleRef, namespace: &str) -> Option<&SharedRules> {
        match role {
            RoleRef::Cluster(name) => self.cluster_roles.get(name),
            RoleRef::Local(name) => self.roles.get(namespace)?.get(name),
            RoleRef::Unknown(_) => None,
        }
    }
}

/// Joins errors into one text without duplicates, as kube-apiserver does.
pub(super) fn join_errors(mut errors: Vec<String>) -> String {
    let mut seen = std::collections::HashSet::new();
    errors.retain(|error| seen.insert(error.clone()));
    match errors.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

/// Removes an entry of a namespace, and the namespace if it becomes empty.
fn remove_from_namespace<T>(parts: &mut HashMap<Arc<str>, T>, namespace: &str, remove: impl FnOnce(&mut T) -> bool) {
    if parts.get_mut(namespace).is_some_and(remove) {
        parts.remove(namespace);
    }
}

#[cfg(test)]
mod tests;

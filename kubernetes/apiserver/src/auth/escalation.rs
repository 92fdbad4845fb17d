//! Prevents privilege escalation: nobody can grant more than they hold.
//!
//! A writer of a role must hold every right in it, or the verb `escalate`; a writer of a binding must hold
//! every right of the bound role, or the verb `bind` on it. As in kube-apiserver, with its messages.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::api::{
    GroupResource, StatusError,
    meta::{MetaAccessor, remove_meta},
};

use super::{
    AuthorizationAttributes, RbacAuthorizer, UnionAuthorizer, UserInfo,
    rbac::{PolicyRule, RBAC_GROUP, contains_or_wildcard, url_matches},
    rbac_index::RoleRef,
    user::MASTERS_GROUP,
};

/// A rule of many groups, resources and verbs is their product. The limit of single rights that are compared: a
/// role that somebody wrote by hand has hundreds.
const MAX_SINGLE_RIGHTS: usize = 20_000;

/// A write of a role or binding.
#[derive(Clone, Copy, Debug)]
pub struct RbacWrite<'a> {
    pub user: &'a UserInfo,
    /// One of the four RBAC collections.
    pub resource: &'a GroupResource,
    /// The namespace; empty for ClusterRoles and ClusterRoleBindings.
    pub namespace: &'a str,
    /// The name in the path; empty for a POST.
    pub path_name: &'a str,
    /// The object to be stored.
    pub new: &'a Value,
    /// The stored object, for an update.
    pub old: Option<&'a Value>,
}

/// Refuses a write that grants more than the writer holds. Writes of other kinds are not checked.
pub async fn check_escalation(
    write: &RbacWrite<'_>,
    rbac: &RbacAuthorizer,
    authorizers: &UnionAuthorizer,
) -> Result<(), StatusError> {
    if &*write.resource.group != RBAC_GROUP || write.user.is_in(MASTERS_GROUP) {
        return Ok(());
    }
    if write.old.is_some_and(|old| differs_only_for_garbage_collection(write.new, old)) {
        return Ok(());
    }
    match &*write.resource.resource {
        "roles" | "clusterroles" => check_role(write, rbac, authorizers).await,
        "rolebindings" | "clusterrolebindings" => check_binding(write, rbac, authorizers).await,
        _ => Ok(()),
    }
}

async fn check_role(
    write: &RbacWrite<'_>,
    rbac: &RbacAuthorizer,
    authorizers: &UnionAuthorizer,
) -> Result<(), StatusError> {
    let RbacWrite { user, resource, namespace, path_name, new, old } = *write;
    let escalate = AuthorizationAttributes::for_resource(user, "escalate", RBAC_GROUP, &resource.resource)
        .namespace(namespace)
        .name(path_name);
    if authorizers.decide(&escalate).await.is_allowed() {
        return Ok(());
    }
    let forbidden = |why: String| StatusError::forbidden(resource, new.name(), &why);
    confirm_no_escalation(rbac, user, namespace, &PolicyRule::parse_all(new)).map_err(forbidden)?;
    // An aggregation rule could collect any rights.
    let aggregates = |role: &Value| role.get("aggregationRule").is_some_and(|rule| !rule.is_null());
    if (aggregates(new) || old.is_some_and(aggregates))
        && confirm_no_escalation(rbac, user, namespace, &cluster_admin_rules()).is_err()
    {
        return Err(forbidden("must have cluster-admin privileges to use the aggregationRule".to_owned()));
    }
    Ok(())
}

async fn check_binding(
    write: &RbacWrite<'_>,
    rbac: &RbacAuthorizer,
    authorizers: &UnionAuthorizer,
) -> Result<(), StatusError> {
    let RbacWrite { user, resource, namespace, new, .. } = *write;
    let role = RoleRef::from_binding(new);
    let (plural, name) = match &role {
        RoleRef::Cluster(name) => ("clusterroles", name),
        RoleRef::Local(name) => ("roles", name),
        // Validation reports it.
        RoleRef::Unknown(_) => return Ok(()),
    };
    let group = new.pointer("/roleRef/apiGroup").and_then(Value::as_str).unwrap_or_default();
    let bind = AuthorizationAttributes::for_resource(user, "bind", group, plural).namespace(namespace).name(name);
    if authorizers.decide(&bind).await.is_allowed() {
        return Ok(());
    }
    let rules = rbac
        .role(&role, namespace)
        .ok_or_else(|| StatusError::not_found(&GroupResource::new(RBAC_GROUP, plural), name))?;
    confirm_no_escalation(rbac, user, namespace, &rules)
        .map_err(|why| StatusError::forbidden(resource, new.name(), &why))
}

/// Checks that a user holds everything that these rules grant. The error lists what is missing.
fn confirm_no_escalation(
    rbac: &RbacAuthorizer,
    user: &UserInfo,
    namespace: &str,
    rules: &[PolicyRule],
) -> Result<(), String> {
    let found = rbac.rules_for(user, namespace);
    let missing = uncovered_rights(&found.rules, rules)
        .ok_or("too many rights in one rule to check whether the user holds all of them")?;
    if missing.is_empty() {
        return Ok(());
    }
    let lines: BTreeSet<String> = merge_verbs(missing).iter().map(format_rule).collect();
    let lines: Vec<String> = lines.into_iter().collect();
    let name = &user.name;
    let groups = quote_list(&user.groups);
    let mut message = format!(
        "user {name:?} (groups={groups}) is attempting to grant RBAC permissions not currently held:\n{}",
        lines.join("\n")
    );
    if !found.errors.is_empty() {
        message.push_str(&format!("; resolution errors: [{}]", super::rbac_index::join_errors(found.errors)));
    }
    Err(message)
}

/// The single rights of these rules that no held rule covers; `None` if there are too many to compare.
fn uncovered_rights(held: &[PolicyRule], rules: &[PolicyRule]) -> Option<Vec<PolicyRule>> {
    let mut missing = Vec::new();
    let mut left = MAX_SINGLE_RIGHTS;
    for rule in rules {
        if held.iter().any(|held| covers(held, rule)) {
            continue;
        }
        for right in single_rights(rule) {
            left = left.checked_sub(1)?;
            if !held.iter().any(|held| covers(held, &right)) {
                missing.push(right);
            }
        }
    }
    Some(missing)
}

/// The single rights of a rule. Lazy, because the product can be large.
fn single_rights(rule: &PolicyRule) -> impl Iterator<Item = PolicyRule> {
    let one = |text: &str| vec![Box::from(text)];
    let names: Vec<Vec<Box<str>>> = match rule.names.as_slice() {
        [] => vec![Vec::new()],
        names => names.iter().map(|name| vec![name.clone()]).collect(),
    };
    let resources = rule.groups.iter().flat_map(|group| rule.resources.iter().map(move |resource| (group, resource)));
    let verbs = resources.flat_map(|(group, resource)| rule.verbs.iter().map(move |verb| (group, resource, verb)));
    let resources = verbs.flat_map(move |(group, resource, verb)| {
        let verbs = one(verb);
        let groups = one(group);
        let resources = one(resource);
        let rule = PolicyRule { verbs, groups, resources, ..PolicyRule::default() };
        names.clone().into_iter().map(move |names| PolicyRule { names, ..rule.clone() })
    });
    let urls = rule.urls.iter().flat_map(|url| rule.verbs.iter().map(move |verb| (url, verb)));
    resources.chain(urls.map(move |(url, verb)| PolicyRule {
        verbs: one(verb),
        urls: one(url),
        ..PolicyRule::default()
    }))
}

/// Whether one rule grants everything that another does.
fn covers(held: &PolicyRule, rule: &PolicyRule) -> bool {
    let names =
        held.names.is_empty() || !rule.names.is_empty() && rule.names.iter().all(|name| held.names.contains(name));
    rule.verbs.iter().all(|verb| contains_or_wildcard(&held.verbs, verb))
        && rule.groups.iter().all(|group| contains_or_wildcard(&held.groups, group))
        && rule.resources.iter().all(|resource| resource_is_covered(held, resource))
        && rule.urls.iter().all(|url| held.urls.iter().any(|held| url_matches(held, url)))
        && names
}

fn resource_is_covered(held: &PolicyRule, resource: &str) -> bool {
    let by_star = |subresource: &str| held.resources.iter().any(|held| held.strip_prefix("*/") == Some(subresource));
    contains_or_wildcard(&held.resources, resource)
        || resource.split_once('/').is_some_and(|(_, subresource)| by_star(subresource))
}

/// Merges rights about the same resource into one rule with several verbs.
fn merge_verbs(rights: Vec<PolicyRule>) -> Vec<PolicyRule> {
    let mut together: BTreeMap<[Vec<Box<str>>; 3], PolicyRule> = BTreeMap::new();
    let mut all = Vec::new();
    for right in rights {
        if !right.urls.is_empty() {
            all.push(right);
            continue;
        }
        let key = [right.groups.clone(), right.resources.clone(), right.names.clone()];
        together.entry(key).and_modify(|rule| rule.verbs.extend(right.verbs.clone())).or_insert(right);
    }
    all.extend(together.into_values());
    all
}

/// A rule in kube-apiserver's format: `{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}`.
fn format_rule(rule: &PolicyRule) -> String {
    let fields = [
        ("APIGroups", &rule.groups),
        ("Resources", &rule.resources),
        ("NonResourceURLs", &rule.urls),
        ("ResourceNames", &rule.names),
        ("Verbs", &rule.verbs),
    ];
    let filled = fields.into_iter().filter(|(_, texts)| !texts.is_empty());
    let parts: Vec<String> = filled.map(|(name, texts)| format!("{name}:{}", quote_list(texts))).collect();
    format!("{{{}}}", parts.join(", "))
}

/// A list of quoted strings in Go's format.
fn quote_list(texts: &[impl AsRef<str>]) -> String {
    let all: Vec<String> = texts.iter().map(|text| format!("{:?}", text.as_ref())).collect();
    format!("[{}]", all.join(" "))
}

fn cluster_admin_rules() -> [PolicyRule; 2] {
    let star = || vec![Box::from("*")];
    let resources = PolicyRule { verbs: star(), groups: star(), resources: star(), ..PolicyRule::default() };
    [resources, PolicyRule { verbs: star(), urls: star(), ..PolicyRule::default() }]
}

/// Whether an update only removes what garbage collection removes.
fn differs_only_for_garbage_collection(new: &Value, old: &Value) -> bool {
    let rest = |object: &Value| {
        let mut object = object.clone();
        for field in ["ownerReferences", "finalizers", "managedFields", "resourceVersion"] {
            remove_meta(&mut object, field);
        }
        object
    };
    rest(new) == rest(old)
}

#[cfg(test)]
mod tests;

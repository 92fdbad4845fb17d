//! Nobody grants more than they hold.
//!
//! Who writes a role must hold every right in it, or may `escalate`; who writes a binding must hold every right of the bound role, or may
//! `bind` it. As kube-apiserver, and in its words.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::api::{
    GroupResource, Status,
    meta::{Meta, remove_meta},
};

use super::{
    Attributes, Authorizers, Rbac, User,
    index::RoleRef,
    rbac::{GROUP, Rule, has, url_covers},
    user::MASTERS,
};

/// A rule of many groups, resources and verbs is their product. More single rights than this are not looked through: a role that somebody
/// wrote by hand has hundreds.
const MOST_RIGHTS: usize = 20_000;

/// A write of a role or binding.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// Who writes.
    pub user: &'a User,
    /// Which of the four collections.
    pub resource: &'a GroupResource,
    /// Where; empty for ClusterRoles and ClusterRoleBindings.
    pub namespace: &'a str,
    /// The name in the path; empty for a POST.
    pub path_name: &'a str,
    /// What is to be stored.
    pub new: &'a Value,
    /// What is stored, for an update.
    pub old: Option<&'a Value>,
}

/// Refuses a write that grants more than the writer holds. Writes of other kinds pass.
pub async fn check(write: &Write<'_>, rbac: &Rbac, authorizers: &Authorizers) -> Result<(), Status> {
    if &*write.resource.group != GROUP || write.user.is_in(MASTERS) {
        return Ok(());
    }
    if write.old.is_some_and(|old| differs_only_for_collection(write.new, old)) {
        return Ok(());
    }
    match &*write.resource.resource {
        "roles" | "clusterroles" => check_role(write, rbac, authorizers).await,
        "rolebindings" | "clusterrolebindings" => check_binding(write, rbac, authorizers).await,
        _ => Ok(()),
    }
}

async fn check_role(write: &Write<'_>, rbac: &Rbac, authorizers: &Authorizers) -> Result<(), Status> {
    let Write { user, resource, namespace, path_name, new, old } = *write;
    let escalate =
        Attributes::resource(user, "escalate", GROUP, &resource.resource).namespace(namespace).name(path_name);
    if authorizers.decide(&escalate).await.is_allowed() {
        return Ok(());
    }
    let forbidden = |why: String| Status::forbidden(resource, new.name(), &why);
    confirm(rbac, user, namespace, &Rule::parse_all(new)).map_err(forbidden)?;
    // Whoever sets what is gathered could gather everything.
    let aggregates = |role: &Value| role.get("aggregationRule").is_some_and(|rule| !rule.is_null());
    if (aggregates(new) || old.is_some_and(aggregates)) && confirm(rbac, user, namespace, &everything()).is_err() {
        return Err(forbidden("must have cluster-admin privileges to use the aggregationRule".to_owned()));
    }
    Ok(())
}

async fn check_binding(write: &Write<'_>, rbac: &Rbac, authorizers: &Authorizers) -> Result<(), Status> {
    let Write { user, resource, namespace, new, .. } = *write;
    let role = RoleRef::of(new);
    let (plural, name) = match &role {
        RoleRef::Cluster(name) => ("clusterroles", name),
        RoleRef::Local(name) => ("roles", name),
        // Validation has words for it.
        RoleRef::Unknown(_) => return Ok(()),
    };
    let group = new.pointer("/roleRef/apiGroup").and_then(Value::as_str).unwrap_or_default();
    let bind = Attributes::resource(user, "bind", group, plural).namespace(namespace).name(name);
    if authorizers.decide(&bind).await.is_allowed() {
        return Ok(());
    }
    let rules =
        rbac.role(&role, namespace).ok_or_else(|| Status::not_found(&GroupResource::new(GROUP, plural), name))?;
    confirm(rbac, user, namespace, &rules).map_err(|why| Status::forbidden(resource, new.name(), &why))
}

/// Whether a user holds everything that these rules grant; if not, what is missing.
fn confirm(rbac: &Rbac, user: &User, namespace: &str, rules: &[Rule]) -> Result<(), String> {
    let found = rbac.rules_for(user, namespace);
    let missing =
        missing(&found.rules, rules).ok_or("too many rights in one rule to tell whether all of them are held")?;
    if missing.is_empty() {
        return Ok(());
    }
    let lines: BTreeSet<String> = compact(missing).iter().map(shown).collect();
    let lines: Vec<String> = lines.into_iter().collect();
    let (name, groups) = (&user.name, quoted(&user.groups));
    let mut message = format!(
        "user {name:?} (groups={groups}) is attempting to grant RBAC permissions not currently held:\n{}",
        lines.join("\n")
    );
    if !found.errors.is_empty() {
        message.push_str(&format!("; resolution errors: [{}]", super::index::aggregate(found.errors)));
    }
    Err(message)
}

/// The single rights of these rules that none of the held ones covers; `None` if there are too many to look at.
fn missing(held: &[Rule], rules: &[Rule]) -> Option<Vec<Rule>> {
    let mut missing = Vec::new();
    let mut left = MOST_RIGHTS;
    for rule in rules {
        if held.iter().any(|held| covers(held, rule)) {
            continue;
        }
        for right in rights(rule) {
            left = left.checked_sub(1)?;
            if !held.iter().any(|held| covers(held, &right)) {
                missing.push(right);
            }
        }
    }
    Some(missing)
}

/// A rule as one of each. Lazy, because a rule's product can be large.
fn rights(rule: &Rule) -> impl Iterator<Item = Rule> {
    let one = |text: &str| vec![Box::from(text)];
    let names: Vec<Vec<Box<str>>> = match rule.names.as_slice() {
        [] => vec![Vec::new()],
        names => names.iter().map(|name| vec![name.clone()]).collect(),
    };
    let resources = rule.groups.iter().flat_map(|group| rule.resources.iter().map(move |resource| (group, resource)));
    let verbs = resources.flat_map(|(group, resource)| rule.verbs.iter().map(move |verb| (group, resource, verb)));
    let resources = verbs.flat_map(move |(group, resource, verb)| {
        let (verbs, groups, resources) = (one(verb), one(group), one(resource));
        let rule = Rule { verbs, groups, resources, ..Rule::default() };
        names.clone().into_iter().map(move |names| Rule { names, ..rule.clone() })
    });
    let urls = rule.urls.iter().flat_map(|url| rule.verbs.iter().map(move |verb| (url, verb)));
    resources.chain(urls.map(move |(url, verb)| Rule { verbs: one(verb), urls: one(url), ..Rule::default() }))
}

/// Whether one rule grants all that another does.
fn covers(held: &Rule, rule: &Rule) -> bool {
    let names =
        held.names.is_empty() || !rule.names.is_empty() && rule.names.iter().all(|name| held.names.contains(name));
    rule.verbs.iter().all(|verb| has(&held.verbs, verb))
        && rule.groups.iter().all(|group| has(&held.groups, group))
        && rule.resources.iter().all(|resource| resource_is_covered(held, resource))
        && rule.urls.iter().all(|url| held.urls.iter().any(|held| url_covers(held, url)))
        && names
}

fn resource_is_covered(held: &Rule, resource: &str) -> bool {
    let by_star = |subresource: &str| held.resources.iter().any(|held| held.strip_prefix("*/") == Some(subresource));
    has(&held.resources, resource) || resource.split_once('/').is_some_and(|(_, subresource)| by_star(subresource))
}

/// Rights about the same resource become one rule with several verbs.
fn compact(rights: Vec<Rule>) -> Vec<Rule> {
    let mut together: BTreeMap<[Vec<Box<str>>; 3], Rule> = BTreeMap::new();
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

/// As kube-apiserver shows a rule: `{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}`.
fn shown(rule: &Rule) -> String {
    let fields = [
        ("APIGroups", &rule.groups),
        ("Resources", &rule.resources),
        ("NonResourceURLs", &rule.urls),
        ("ResourceNames", &rule.names),
        ("Verbs", &rule.verbs),
    ];
    let filled = fields.into_iter().filter(|(_, texts)| !texts.is_empty());
    let parts: Vec<String> = filled.map(|(name, texts)| format!("{name}:{}", quoted(texts))).collect();
    format!("{{{}}}", parts.join(", "))
}

/// Texts as Go shows a list of quoted ones.
fn quoted(texts: &[impl AsRef<str>]) -> String {
    let all: Vec<String> = texts.iter().map(|text| format!("{:?}", text.as_ref())).collect();
    format!("[{}]", all.join(" "))
}

fn everything() -> [Rule; 2] {
    let star = || vec![Box::from("*")];
    let resources = Rule { verbs: star(), groups: star(), resources: star(), ..Rule::default() };
    [resources, Rule { verbs: star(), urls: star(), ..Rule::default() }]
}

/// Whether a change is only what garbage collection needs to remove an object.
fn differs_only_for_collection(new: &Value, old: &Value) -> bool {
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

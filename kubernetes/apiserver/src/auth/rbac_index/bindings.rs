//! Bindings, indexed by their users and groups.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use serde_json::Value;

use crate::{
    api::meta::MetaAccessor,
    auth::{UserInfo, rbac::RBAC_GROUP, user::service_account_name},
};

/// The role that a binding refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleRef {
    Cluster(Arc<str>),
    /// A Role in the binding's own namespace.
    Local(Arc<str>),
    /// Another kind. Validation accepts none.
    Unknown(Arc<str>),
}

/// The role that a binding grants.
#[derive(Clone, Debug)]
pub(super) struct RoleGrant {
    pub role: RoleRef,
    /// The reason in the response to an allowed request.
    pub reason: Arc<str>,
}

/// The content of a binding: its subjects, each with its grant.
#[derive(Debug, Default)]
pub(super) struct ParsedBinding(Vec<(BindingSubject, RoleGrant)>);

/// A subject of a binding. A ServiceAccount is the user that it acts as.
#[derive(Clone, Debug, PartialEq, Eq)]
enum BindingSubject {
    User(Arc<str>),
    Group(Arc<str>),
}

/// The grants of each binding, by the name of a user or group.
type GrantsBySubject = HashMap<Arc<str>, BTreeMap<Arc<str>, RoleGrant>>;

#[derive(Debug, Default)]
pub(super) struct BindingScope {
    users: GrantsBySubject,
    groups: GrantsBySubject,
    /// The subjects of each binding, needed to remove its grants.
    subjects: HashMap<Arc<str>, Vec<BindingSubject>>,
}

impl RoleRef {
    pub fn from_binding(binding: &Value) -> Self {
        let text =
            |field| binding.get("roleRef").and_then(|role| role.get(field)).and_then(Value::as_str).unwrap_or_default();
        match text("kind") {
            "ClusterRole" => Self::Cluster(text("name").into()),
            "Role" => Self::Local(text("name").into()),
            other => Self::Unknown(other.into()),
        }
    }

    /// Kind and name, as messages show them.
    fn kind_and_name(&self) -> (&str, &str) {
        match self {
            Self::Cluster(name) => ("ClusterRole", name),
            Self::Local(name) => ("Role", name),
            Self::Unknown(kind) => (kind, ""),
        }
    }

    /// The message if the role does not exist.
    pub(super) fn not_found_message(&self) -> String {
        match self {
            Self::Unknown(kind) => format!("unsupported role reference kind: {kind:?}"),
            found => {
                let (kind, name) = found.kind_and_name();
                format!("{}.{RBAC_GROUP} {name:?} not found", kind.to_ascii_lowercase())
            }
        }
    }
}

impl ParsedBinding {
    pub fn parse(binding: &Value, namespace: &str) -> Self {
        let role = RoleRef::from_binding(binding);
        let (kind, name) = role.kind_and_name();
        let bound = match namespace {
            "" => format!("ClusterRoleBinding {:?}", binding.name()),
            _ => format!("RoleBinding {:?}", format!("{}/{namespace}", binding.name())),
        };
        let head = format!("RBAC: allowed by {bound} of {kind} {name:?} to ");
        let subjects = binding.get("subjects").and_then(Value::as_array).into_iter().flatten();
        let mut all: Vec<(BindingSubject, RoleGrant)> = Vec::new();
        for (subject, shown) in subjects.filter_map(|subject| BindingSubject::parse(subject, namespace)) {
            // Of equal subjects the first is shown.
            if !all.iter().any(|(one, _)| *one == subject) {
                all.push((subject, RoleGrant { role: role.clone(), reason: format!("{head}{shown}").into() }));
            }
        }
        Self(all)
    }
}

impl BindingSubject {
    /// The subject, and how messages show it.
    fn parse(subject: &Value, namespace: &str) -> Option<(Self, String)> {
        let text = |field| subject.get(field).and_then(Value::as_str).unwrap_or_default();
        let kind = text("kind");
        let name = text("name");
        match kind {
            "User" => Some((Self::User(name.into()), format!("{kind} {name:?}"))),
            "Group" => Some((Self::Group(name.into()), format!("{kind} {name:?}"))),
            "ServiceAccount" => {
                let namespace = if text("namespace").is_empty() { namespace } else { text("namespace") };
                let shown = format!("{kind} {:?}", format!("{name}/{namespace}"));
                let user = Self::User(service_account_name(namespace, name).into());
                (!namespace.is_empty()).then_some((user, shown))
            }
            _ => None,
        }
    }
}

impl BindingScope {
    pub fn insert(&mut self, name: &str, ParsedBinding(grants): ParsedBinding) {
        self.remove(name);
        let binding: Arc<str> = name.into();
        let subjects = grants.iter().map(|(subject, _)| subject.clone()).collect();
        self.subjects.insert(Arc::clone(&binding), subjects);
        for (subject, grant) in grants {
            let (of, name) = match subject {
                BindingSubject::User(name) => (&mut self.users, name),
                BindingSubject::Group(name) => (&mut self.groups, name),
            };
            of.entry(name).or_default().insert(Arc::clone(&binding), grant);
        }
    }

    pub fn remove(&mut self, binding: &str) {
        for subject in self.subjects.remove(binding).unwrap_or_default() {
            let (of, name) = match &subject {
                BindingSubject::User(name) => (&mut self.users, name),
                BindingSubject::Group(name) => (&mut self.groups, name),
            };
            let Some(grants) = of.get_mut(name) else { continue };
            grants.remove(binding);
            if grants.is_empty() {
                of.remove(name);
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.subjects.is_empty()
    }

    /// The grants of a user, by name and by each group.
    pub fn of<'a>(&'a self, user: &'a UserInfo) -> impl Iterator<Item = &'a BTreeMap<Arc<str>, RoleGrant>> {
        let groups = user.groups.iter().filter_map(|group| self.groups.get(group));
        self.users.get(&user.name).into_iter().chain(groups)
    }
}

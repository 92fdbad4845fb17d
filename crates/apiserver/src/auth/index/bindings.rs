//! Bindings by the users and groups that they grant something to.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use serde_json::Value;

use crate::{
    api::meta::Meta,
    auth::{User, rbac::GROUP, user::account_name},
};

/// The role that a binding refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleRef {
    /// A ClusterRole.
    Cluster(Arc<str>),
    /// A Role in the binding's own namespace.
    Local(Arc<str>),
    /// Something else, by its kind. Validation lets none through.
    Unknown(Arc<str>),
}

/// A binding that names somebody.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    pub role: RoleRef,
    /// What an allowed request says.
    pub reason: Arc<str>,
}

/// What is in a binding: whom it names, with what is then granted.
#[derive(Debug, Default)]
pub(super) struct Binding(Vec<(Subject, Grant)>);

/// Whom a binding names. A ServiceAccount is the user that it acts as.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Subject {
    User(Arc<str>),
    Group(Arc<str>),
}

/// By name of a user or group: what each binding grants.
type Grants = HashMap<Arc<str>, BTreeMap<Arc<str>, Grant>>;

/// All bindings of one namespace, or of the cluster.
#[derive(Debug, Default)]
pub(super) struct Scope {
    users: Grants,
    groups: Grants,
    /// Whom each binding names, to forget what it granted.
    subjects: HashMap<Arc<str>, Vec<Subject>>,
}

impl RoleRef {
    /// The role that a binding refers to.
    pub fn of(binding: &Value) -> Self {
        let text =
            |field| binding.get("roleRef").and_then(|role| role.get(field)).and_then(Value::as_str).unwrap_or_default();
        match text("kind") {
            "ClusterRole" => Self::Cluster(text("name").into()),
            "Role" => Self::Local(text("name").into()),
            other => Self::Unknown(other.into()),
        }
    }

    /// Kind and name, as messages show them.
    fn parts(&self) -> (&str, &str) {
        match self {
            Self::Cluster(name) => ("ClusterRole", name),
            Self::Local(name) => ("Role", name),
            Self::Unknown(kind) => (kind, ""),
        }
    }

    /// What is said when the role is not there.
    pub(super) fn missing(&self) -> String {
        match self {
            Self::Unknown(kind) => format!("unsupported role reference kind: {kind:?}"),
            found => {
                let (kind, name) = found.parts();
                format!("{}.{GROUP} {name:?} not found", kind.to_ascii_lowercase())
            }
        }
    }
}

impl Binding {
    /// Reads a RoleBinding of a namespace, or a ClusterRoleBinding if the namespace is empty.
    pub fn parse(binding: &Value, namespace: &str) -> Self {
        let role = RoleRef::of(binding);
        let (kind, name) = role.parts();
        let bound = match namespace {
            "" => format!("ClusterRoleBinding {:?}", binding.name()),
            _ => format!("RoleBinding {:?}", format!("{}/{namespace}", binding.name())),
        };
        let head = format!("RBAC: allowed by {bound} of {kind} {name:?} to ");
        let subjects = binding.get("subjects").and_then(Value::as_array).into_iter().flatten();
        let mut all: Vec<(Subject, Grant)> = Vec::new();
        for (subject, shown) in subjects.filter_map(|subject| Subject::parse(subject, namespace)) {
            // The first of several subjects that are the same one is the one that is shown.
            if !all.iter().any(|(one, _)| *one == subject) {
                all.push((subject, Grant { role: role.clone(), reason: format!("{head}{shown}").into() }));
            }
        }
        Self(all)
    }
}

impl Subject {
    /// Whom a subject names, and how messages show it.
    fn parse(subject: &Value, namespace: &str) -> Option<(Self, String)> {
        let text = |field| subject.get(field).and_then(Value::as_str).unwrap_or_default();
        let (kind, name) = (text("kind"), text("name"));
        match kind {
            "User" => Some((Self::User(name.into()), format!("{kind} {name:?}"))),
            "Group" => Some((Self::Group(name.into()), format!("{kind} {name:?}"))),
            "ServiceAccount" => {
                let namespace = if text("namespace").is_empty() { namespace } else { text("namespace") };
                let shown = format!("{kind} {:?}", format!("{name}/{namespace}"));
                let user = Self::User(account_name(namespace, name).into());
                (!namespace.is_empty()).then_some((user, shown))
            }
            _ => None,
        }
    }
}

impl Scope {
    /// Adds a binding, or replaces the one of its name.
    pub fn insert(&mut self, name: &str, Binding(grants): Binding) {
        self.remove(name);
        let binding: Arc<str> = name.into();
        let subjects = grants.iter().map(|(subject, _)| subject.clone()).collect();
        self.subjects.insert(Arc::clone(&binding), subjects);
        for (subject, grant) in grants {
            let (of, name) = match subject {
                Subject::User(name) => (&mut self.users, name),
                Subject::Group(name) => (&mut self.groups, name),
            };
            of.entry(name).or_default().insert(Arc::clone(&binding), grant);
        }
    }

    /// Forgets a binding.
    pub fn remove(&mut self, binding: &str) {
        for subject in self.subjects.remove(binding).unwrap_or_default() {
            let (of, name) = match &subject {
                Subject::User(name) => (&mut self.users, name),
                Subject::Group(name) => (&mut self.groups, name),
            };
            let Some(grants) = of.get_mut(name) else { continue };
            grants.remove(binding);
            if grants.is_empty() {
                of.remove(name);
            }
        }
    }

    /// Whether no binding is left.
    pub fn is_empty(&self) -> bool {
        self.subjects.is_empty()
    }

    /// What is granted to a user by name and by each of the groups.
    pub fn of<'a>(&'a self, user: &'a User) -> impl Iterator<Item = &'a BTreeMap<Arc<str>, Grant>> {
        let groups = user.groups.iter().filter_map(|group| self.groups.get(group));
        self.users.get(&user.name).into_iter().chain(groups)
    }
}

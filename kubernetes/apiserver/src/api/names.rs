//! Names of groups, versions, kinds, resources and objects.

use std::{fmt, sync::Arc};

/// A version of an API group. The core group is the empty string.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersion {
    /// Empty for the core group.
    pub group: Arc<str>,
    pub version: Arc<str>,
}

/// A kind, independent of the version.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupKind {
    /// Empty for the core group.
    pub group: Arc<str>,
    /// As in `kind: Deployment`.
    pub kind: Arc<str>,
}

/// A resource, independent of the version: one collection in the store.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupResource {
    /// Empty for the core group.
    pub group: Arc<str>,
    /// The plural, as in paths: `deployments`.
    pub resource: Arc<str>,
}

/// The key of an object in the store.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    pub resource: GroupResource,
    /// Empty for cluster-scoped objects.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

impl GroupVersion {
    pub fn new(group: &str, version: &str) -> Self {
        Self { group: group.into(), version: version.into() }
    }

    /// Parses `v1` or `apps/v1`.
    pub fn parse(api_version: &str) -> Option<Self> {
        match api_version.split_once('/') {
            None if api_version.is_empty() => None,
            None => Some(Self::new("", api_version)),
            Some((group, version)) if !version.contains('/') => Some(Self::new(group, version)),
            Some(_) => None,
        }
    }
}

impl fmt::Display for GroupVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() { f.write_str(&self.version) } else { write!(f, "{}/{}", self.group, self.version) }
    }
}

impl GroupKind {
    pub fn new(group: &str, kind: &str) -> Self {
        Self { group: group.into(), kind: kind.into() }
    }
}

/// As in messages: `Deployment.apps`, `ConfigMap`.
impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() { f.write_str(&self.kind) } else { write!(f, "{}.{}", self.kind, self.group) }
    }
}

impl GroupResource {
    pub fn new(group: &str, resource: &str) -> Self {
        Self { group: group.into(), resource: resource.into() }
    }
}

/// As in messages: `deployments.apps`, `configmaps`.
impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() { f.write_str(&self.resource) } else { write!(f, "{}.{}", self.resource, self.group) }
    }
}

impl ObjectKey {
    /// The key of an object; the namespace is empty for cluster-scoped ones.
    pub fn new(resource: GroupResource, namespace: &str, name: &str) -> Self {
        Self { resource, namespace: namespace.into(), name: name.into() }
    }
}

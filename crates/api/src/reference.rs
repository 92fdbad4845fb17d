//! Secrets and ConfigMaps that a pipeline names, and what is in them.

use std::{collections::BTreeMap, fmt};

use kubewake_config::Secret;

use crate::v1alpha1::{KeyRef, ValueType};

/// What a reference names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReferenceKind {
    /// A Secret.
    Secret,
    /// A ConfigMap.
    ConfigMap,
}

impl ReferenceKind {
    /// The kind as Kubernetes has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
        }
    }
}

/// A key of a Secret or a ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// What it is.
    pub kind: ReferenceKind,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The key.
    pub key: String,
}

impl Reference {
    fn new(kind: ReferenceKind, reference: &KeyRef) -> Self {
        let KeyRef { name, namespace, key } = reference.clone();
        Self { kind, namespace, name, key }
    }

    /// The reference that a value is, if it is one.
    pub fn of(value: &ValueType) -> Option<Self> {
        let from = value.value_from.as_ref()?;
        match (&from.secret_key_ref, &from.config_map_key_ref) {
            (Some(reference), _) => Some(Self::new(ReferenceKind::Secret, reference)),
            (None, Some(reference)) => Some(Self::new(ReferenceKind::ConfigMap, reference)),
            (None, None) => None,
        }
    }
}

/// `Secret default/backend`
impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind.as_str(), self.namespace, self.name)
    }
}

/// What was found at a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A text.
    Value {
        /// The text.
        text: Secret,
        /// The `resourceVersion` of its object.
        revision: String,
    },
    /// There is no such object.
    NoObject,
    /// The object has no such key.
    NoKey,
    /// What is there is not UTF-8.
    NotText,
    /// It could not be read, for this reason, which must hold nothing of what is there.
    Unreadable(String),
}

impl Found {
    /// What the bytes of a key are.
    pub fn bytes(bytes: &[u8], revision: impl Into<String>) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Value { text: Secret::new(text), revision: revision.into() },
            Err(_) => Self::NotText,
        }
    }

    /// What a text is.
    pub fn text(text: impl Into<String>, revision: impl Into<String>) -> Self {
        Self::Value { text: Secret::new(text), revision: revision.into() }
    }
}

/// What was found at all references of a pipeline. One that nobody looked for counts as one without an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolved(BTreeMap<Reference, Found>);

impl Resolved {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes what was found.
    pub fn insert(&mut self, reference: Reference, found: Found) {
        self.0.insert(reference, found);
    }

    /// And this.
    #[must_use]
    pub fn with(mut self, reference: Reference, found: Found) -> Self {
        self.insert(reference, found);
        self
    }

    /// What was found at a reference.
    pub fn get(&self, reference: &Reference) -> &Found {
        self.0.get(reference).unwrap_or(&Found::NoObject)
    }
}

impl FromIterator<(Reference, Found)> for Resolved {
    fn from_iter<I: IntoIterator<Item = (Reference, Found)>>(found: I) -> Self {
        Self(found.into_iter().collect())
    }
}

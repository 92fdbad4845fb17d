//! References of a pipeline to Secrets and ConfigMaps, and their values.

use std::{collections::BTreeMap, fmt};

use kubewake_config::SecretString;

use crate::v1alpha1::{KeyRef, ValueType};

/// The kind of a referenced object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReferenceKind {
    /// A Secret.
    Secret,
    /// A ConfigMap.
    ConfigMap,
}

impl ReferenceKind {
    /// The kind in Kubernetes' spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
        }
    }
}

/// A reference to a key of a Secret or a ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueReference {
    /// The kind of the object.
    pub kind: ReferenceKind,
    /// The namespace of the object.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
    /// The key in the object.
    pub key: String,
}

impl ValueReference {
    fn new(kind: ReferenceKind, reference: &KeyRef) -> Self {
        let KeyRef { name, namespace, key } = reference.clone();
        Self { kind, namespace, name, key }
    }

    /// Returns the reference of a value, if it has one.
    pub fn from_value(value: &ValueType) -> Option<Self> {
        let from = value.value_from.as_ref()?;
        match (&from.secret_key_ref, &from.config_map_key_ref) {
            (Some(reference), _) => Some(Self::new(ReferenceKind::Secret, reference)),
            (None, Some(reference)) => Some(Self::new(ReferenceKind::ConfigMap, reference)),
            (None, None) => None,
        }
    }
}

/// Formats the object as `Secret default/backend`.
impl fmt::Display for ValueReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind.as_str(), self.namespace, self.name)
    }
}

/// The result of resolving a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReferencedValue {
    /// The value is text.
    Value {
        /// The text.
        text: SecretString,
        /// The `resourceVersion` of its object.
        revision: String,
    },
    /// The object does not exist.
    NoObject,
    /// The object has no such key.
    NoKey,
    /// The value is not UTF-8.
    NotText,
    /// The object could not be read. The reason must not contain any of its content.
    Unreadable(String),
}

impl ReferencedValue {
    /// The result for the bytes of a key.
    pub fn bytes(bytes: &[u8], revision: impl Into<String>) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Value { text: SecretString::new(text), revision: revision.into() },
            Err(_) => Self::NotText,
        }
    }

    /// The result for a text.
    pub fn text(text: impl Into<String>, revision: impl Into<String>) -> Self {
        Self::Value { text: SecretString::new(text), revision: revision.into() }
    }
}

/// The results for all references of a pipeline. A reference without a result counts as one to a missing
/// object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolvedReferences(BTreeMap<ValueReference, ReferencedValue>);

impl ResolvedReferences {
    /// Creates an empty set of results.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a result.
    pub fn insert(&mut self, reference: ValueReference, found: ReferencedValue) {
        self.0.insert(reference, found);
    }

    /// Adds a result, and returns the set.
    #[must_use]
    pub fn with(mut self, reference: ValueReference, found: ReferencedValue) -> Self {
        self.insert(reference, found);
        self
    }

    /// The result for a reference.
    pub fn get(&self, reference: &ValueReference) -> &ReferencedValue {
        self.0.get(reference).unwrap_or(&ReferencedValue::NoObject)
    }
}

impl FromIterator<(ValueReference, ReferencedValue)> for ResolvedReferences {
    fn from_iter<I: IntoIterator<Item = (ValueReference, ReferencedValue)>>(found: I) -> Self {
        Self(found.into_iter().collect())
    }
}

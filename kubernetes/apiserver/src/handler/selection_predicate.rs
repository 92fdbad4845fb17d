//! Selects the objects of a collection that a request is about: by namespace and selectors.

use std::sync::Arc;

use super::{call::ResourceRequest, handler_response};
use crate::{
    api::StatusError,
    codec::{
        query::ListOptions,
        selector::{FieldSelector, LabelSelector},
    },
    registry::ServedResource,
    store::Stored,
};

/// Matches objects, as far as possible without decoding them.
#[derive(Debug)]
pub struct SelectionPredicate {
    resource: Arc<ServedResource>,
    namespace: Option<Arc<str>>,
    /// Only the object of this name: watches of one object, on the old path for them.
    name: Option<String>,
    labels: LabelSelector,
    fields: FieldSelector,
    /// Whether it selects one name in one namespace, which kube-apiserver looks up by its key.
    single: bool,
}

impl SelectionPredicate {
    /// The predicate of a request.
    pub fn new(on: ResourceRequest<'_>, options: &ListOptions) -> Result<Self, StatusError> {
        options.field_selector.check(on.resource)?;
        let named = on.path.name.as_str();
        let selected = options.field_selector.exact("metadata.name");
        if !named.is_empty() && !options.field_selector.is_everything() && selected != Some(named) {
            return Err(StatusError::bad_request("fieldSelector metadata.name doesn't match requested name"));
        }
        let single = on.namespace().is_empty() != on.resource.namespaced && (selected.is_some() || !named.is_empty());
        Ok(Self {
            single,
            resource: Arc::clone(on.resource),
            namespace: Some(on.namespace()).filter(|namespace| !namespace.is_empty()).map(Arc::from),
            name: Some(on.path.name.clone()).filter(|name| !name.is_empty()),
            labels: options.label_selector.clone(),
            fields: options.field_selector.clone(),
        })
    }

    /// The namespace, if there is exactly one.
    pub fn namespace(&self) -> Option<&Arc<str>> {
        self.namespace.as_ref()
    }

    /// Whether every object of the namespace matches.
    pub fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }

    /// Whether it selects one object by name.
    pub fn matches_single_name(&self) -> bool {
        self.single
    }

    pub fn matches(&self, stored: &Stored) -> bool {
        self.namespace.as_ref().is_none_or(|namespace| *namespace == stored.key.namespace)
            && self.name.as_ref().is_none_or(|name| **name == *stored.key.name)
            && self.labels.matches(|key| stored.label(key))
            && self.matches_fields(stored)
    }

    fn matches_fields(&self, stored: &Stored) -> bool {
        if self.fields.is_everything() {
            return true;
        }
        let by_key = |field: &str| match field {
            "metadata.name" => Some(&*stored.key.name),
            "metadata.namespace" => Some(&*stored.key.namespace),
            _ => None,
        };
        let terms = self.fields.terms();
        if terms.iter().all(|term| by_key(&term.field).is_some()) {
            return terms.iter().all(|term| (by_key(&term.field) == Some(&term.value)) != term.not);
        }
        self.fields.matches_object(&handler_response::value(&self.resource, stored), &self.resource)
    }
}

//! Decides whether a webhook is called for a request, and with which version of the object's kind.

use std::sync::Arc;

use serde_json::Value;

use super::{
    AdmissionOperation, AdmissionWebhook, Request,
    constraints::MatchConstraints,
    review,
    rule::{RuleTarget, RuleWithOperations},
};
use crate::{
    api::{GroupResource, StatusError, meta::MetaAccessor},
    registry::ServedResource,
};

/// The request under admission, with its objects.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionAttributes<'a> {
    pub request: &'a Request<'a>,
    /// The new object; none for a deletion.
    pub object: Option<&'a Value>,
    /// The stored object; none for a creation.
    pub old: Option<&'a Value>,
}

impl<'a> AdmissionAttributes<'a> {
    /// The namespace of the request. For a namespace it is its own name.
    pub fn namespace(&self) -> &'a str {
        let on = self.request.on;
        if self.is_namespace() { self.name() } else { on.namespace() }
    }

    /// The name of the object; empty before a name is generated, and for the deletion of a collection.
    pub fn name(&self) -> &'a str {
        let on = self.request.on;
        match (on.call.info.verb, on.path.name.as_str()) {
            ("deletecollection", _) => "",
            (_, "") => self.object.map(MetaAccessor::name).unwrap_or_default(),
            (_, name) => name,
        }
    }

    pub fn refused_name(&self) -> &'a str {
        refused_name(self.name(), self.object)
    }

    pub fn is_namespace(&self) -> bool {
        let resource = self.request.on.resource;
        resource.gv.group.is_empty() && &*resource.plural == "namespaces"
    }

    /// The resource as which a webhook matches the request; none if it does not match.
    pub fn match_webhook(&self, hook: &AdmissionWebhook) -> Result<Option<Arc<ServedResource>>, StatusError> {
        let Some(resource) = self.wanted(&hook.constraints)? else { return Ok(None) };
        if hook.conditions.is_empty() {
            return Ok(Some(resource));
        }
        let shown = review::VersionedAttributes::for_version(*self, &resource);
        let holds = hook.conditions.match_request(&shown, None).map_err(|why| self.forbidden_status(&why))?;
        Ok(holds.then_some(resource))
    }

    /// A refusal that names the object.
    pub fn forbidden_status(&self, why: &str) -> StatusError {
        StatusError::forbidden(&self.request.on.collection(), self.refused_name(), why)
    }

    /// The resource as which the constraints match the request: its own, or an equivalent one.
    pub fn wanted(&self, constraints: &MatchConstraints) -> Result<Option<Arc<ServedResource>>, StatusError> {
        let resource = if constraints.open && constraints.rules.is_empty() {
            Some(Arc::clone(self.request.on.served_resource()))
        } else {
            self.match_rules(&constraints.rules, constraints.equivalent)
        };
        let Some(resource) = resource else { return Ok(None) };
        let excluded = self.match_rules(&constraints.excluded, constraints.equivalent).is_some();
        let meets =
            !excluded && self.matches_namespace_selector(constraints)? && self.matches_object_selector(constraints)?;
        Ok(meets.then_some(resource))
    }

    fn match_rules(&self, rules: &[RuleWithOperations], equivalent: bool) -> Option<Arc<ServedResource>> {
        let own = self.request.on.served_resource();
        let place = RuleTarget {
            operation: self.request.operation,
            resource: &own.plural,
            subresource: &self.request.on.path.subresource,
            name: self.name(),
            namespaced: own.namespaced,
        };
        let wanting = || rules.iter().filter(|rule| rule.matches_target(&place));
        // Most rules are about other resources: the catalog is searched only if a rule can match.
        wanting().next()?;
        if wanting().any(|rule| rule.matches_version(&own.gv)) {
            return Some(Arc::clone(own));
        }
        if !equivalent {
            return None;
        }
        let equivalents = self.equivalent_resources();
        wanting().find_map(|rule| equivalents.iter().find(|other| rule.matches_version(&other.gv)).cloned())
    }

    fn equivalent_resources(&self) -> Vec<Arc<ServedResource>> {
        let own = self.request.on.served_resource();
        let subresource = self.request.on.path.subresource.as_str();
        let collection = own.group_resource();
        let has_part = |other: &ServedResource| subresource.is_empty() || other.subresource(subresource).is_some();
        let same = |other: &&Arc<ServedResource>| {
            other.plural == own.plural && other.gv != own.gv && other.group_resource() == collection && has_part(other)
        };
        self.request.on.call.catalog.all().filter(same).cloned().collect()
    }

    fn matches_namespace_selector(&self, constraints: &MatchConstraints) -> Result<bool, StatusError> {
        let namespace = self.namespace();
        if namespace.is_empty() && !self.is_namespace() {
            // Cluster-scoped objects are not subject to the namespace selector.
            return Ok(true);
        }
        let selector = constraints.namespaces.as_ref().map_err(StatusError::internal)?;
        if selector.is_everything() {
            return Ok(true);
        }
        let writes = matches!(self.request.operation, AdmissionOperation::Create | AdmissionOperation::Update);
        if self.is_namespace() && writes && self.request.on.path.subresource.is_empty() {
            // The stored object is not yet in its final state.
            return Ok(self.object.is_some_and(|object| selector.matches_object(object)));
        }
        match self.request.on.core().namespace(namespace) {
            Some(stored) => Ok(selector.matches(|key| stored.label(key))),
            None => Err(StatusError::not_found(&GroupResource::new("", "namespaces"), namespace)),
        }
    }

    fn matches_object_selector(&self, constraints: &MatchConstraints) -> Result<bool, StatusError> {
        let selector = constraints.objects.as_ref().map_err(StatusError::internal)?;
        let matches = |object: Option<&Value>| object.is_some_and(|object| selector.matches_object(object));
        Ok(selector.is_everything() || matches(self.object) || matches(self.old))
    }
}

/// The name of an object in a refusal: the prefix of a name that is still to be generated; empty without an
/// object, as for the deletion of a collection.
pub fn refused_name<'a>(name: &'a str, object: Option<&'a Value>) -> &'a str {
    match (name, object.map(|object| object.meta_str("generateName")).unwrap_or_default()) {
        ("", "") => "Unknown",
        ("", prefix) => prefix,
        (name, _) => name,
    }
}

#[cfg(test)]
mod tests;

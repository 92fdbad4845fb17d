//! Whether a webhook is to be called for a request, and in which version of the object's kind.

use std::sync::Arc;

use serde_json::Value;

use super::{
    Hook, Operation, Request,
    constraints::Constraints,
    review,
    rule::{Place, Rule},
};
use crate::{
    api::{GroupResource, Status, meta::Meta},
    registry::Resource,
};

/// What is said about the request, and its objects.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The request.
    pub request: &'a Request<'a>,
    /// The new object; none for a deletion.
    pub object: Option<&'a Value>,
    /// The stored object; none for a creation.
    pub old: Option<&'a Value>,
}

impl<'a> Subject<'a> {
    /// The namespace of the request. That of a namespace is its own name.
    pub fn namespace(&self) -> &'a str {
        let on = self.request.on;
        if self.is_namespace() { self.name() } else { on.namespace() }
    }

    /// The name of the object; empty while it is still to be generated, and where a whole collection is deleted.
    pub fn name(&self) -> &'a str {
        let on = self.request.on;
        match (on.call.info.verb, on.path.name.as_str()) {
            ("deletecollection", _) => "",
            (_, "") => self.object.map(Meta::name).unwrap_or_default(),
            (_, name) => name,
        }
    }

    /// Whether it is about a namespace itself.
    pub fn is_namespace(&self) -> bool {
        let resource = self.request.on.resource;
        resource.gv.group.is_empty() && &*resource.plural == "namespaces"
    }

    /// The resource as which a webhook wants to see the request; none if it does not.
    pub fn invocation(&self, hook: &Hook) -> Result<Option<Arc<Resource>>, Status> {
        let Some(resource) = self.wanted(&hook.constraints)? else { return Ok(None) };
        if hook.conditions.is_empty() {
            return Ok(Some(resource));
        }
        let shown = review::Shown::of(*self, &resource);
        let holds = hook.conditions.hold(&shown).map_err(|why| self.forbidden(&why))?;
        Ok(holds.then_some(resource))
    }

    /// A refusal in the name of the object.
    pub fn forbidden(&self, why: &str) -> Status {
        Status::forbidden(&self.request.on.collection(), self.name(), why)
    }

    /// The resource as which the request meets these constraints: its own, or an equivalent one.
    pub fn wanted(&self, constraints: &Constraints) -> Result<Option<Arc<Resource>>, Status> {
        let resource = match constraints.open && constraints.rules.is_empty() {
            true => Some(Arc::clone(self.request.on.shown())),
            false => self.by_rules(&constraints.rules, constraints.equivalent),
        };
        let Some(resource) = resource else { return Ok(None) };
        let excluded = self.by_rules(&constraints.excluded, constraints.equivalent).is_some();
        let meets = !excluded && self.in_namespace(constraints)? && self.is_selected(constraints)?;
        Ok(meets.then_some(resource))
    }

    fn by_rules(&self, rules: &[Rule], equivalent: bool) -> Option<Arc<Resource>> {
        let own = self.request.on.shown();
        let place = Place {
            operation: self.request.operation,
            resource: &own.plural,
            subresource: &self.request.on.path.subresource,
            name: self.name(),
            namespaced: own.namespaced,
        };
        let wanting = || rules.iter().filter(|rule| rule.wants(&place));
        // Most rules are about other resources: the catalog is looked at only for those that are not.
        wanting().next()?;
        if wanting().any(|rule| rule.wants_version(&own.gv)) {
            return Some(Arc::clone(own));
        }
        if !equivalent {
            return None;
        }
        let equivalents = self.equivalents();
        wanting().find_map(|rule| equivalents.iter().find(|other| rule.wants_version(&other.gv)).cloned())
    }

    /// The same collection in other groups and versions.
    fn equivalents(&self) -> Vec<Arc<Resource>> {
        let own = self.request.on.shown();
        let (subresource, collection) = (self.request.on.path.subresource.as_str(), own.group_resource());
        let has_part = |other: &Resource| subresource.is_empty() || other.subresource(subresource).is_some();
        let same = |other: &&Arc<Resource>| {
            other.plural == own.plural && other.gv != own.gv && other.group_resource() == collection && has_part(other)
        };
        self.request.on.call.catalog.all().filter(same).cloned().collect()
    }

    fn in_namespace(&self, constraints: &Constraints) -> Result<bool, Status> {
        let namespace = self.namespace();
        if namespace.is_empty() && !self.is_namespace() {
            // What lives in no namespace is never exempted by one.
            return Ok(true);
        }
        let selector = constraints.namespaces.as_ref().map_err(Status::internal)?;
        if selector.is_everything() {
            return Ok(true);
        }
        let writes = matches!(self.request.operation, Operation::Create | Operation::Update);
        if self.is_namespace() && writes && self.request.on.path.subresource.is_empty() {
            // What is stored is not yet what it will be.
            return Ok(self.object.is_some_and(|object| selector.matches_object(object)));
        }
        match self.request.on.core().namespace(namespace) {
            Some(stored) => Ok(selector.matches(|key| stored.label(key))),
            None => Err(Status::not_found(&GroupResource::new("", "namespaces"), namespace)),
        }
    }

    fn is_selected(&self, constraints: &Constraints) -> Result<bool, Status> {
        let selector = constraints.objects.as_ref().map_err(Status::internal)?;
        let matches = |object: Option<&Value>| object.is_some_and(|object| selector.matches_object(object));
        Ok(selector.is_everything() || matches(self.object) || matches(self.old))
    }
}

#[cfg(test)]
mod tests;

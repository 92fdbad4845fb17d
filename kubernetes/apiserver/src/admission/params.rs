//! The parameters of a policy: objects that its bindings refer to by name or selector.

use serde_json::Value;

use super::{
    matching::AdmissionAttributes,
    policy::{AdmissionPolicy, AdmissionPolicyBinding},
};
use crate::{
    api::{GroupVersion, ObjectKey},
    codec::selector::LabelSelector,
    handler::handler_response,
    registry::ServedResource,
    store::{ListQuery, Stored},
};

/// The kind of a policy's parameters.
#[derive(Debug)]
pub struct ParamKind {
    pub api_version: String,
    pub kind: String,
}

/// Which objects a binding uses as parameters.
#[derive(Debug)]
pub struct ParamRef {
    /// The name of the object; empty if a selector is given.
    pub name: String,
    /// The namespace of the objects; empty for that of the request.
    pub namespace: String,
    pub selector: Option<Value>,
    /// Whether a request is refused if no object is found.
    pub requires_one: bool,
}

impl ParamKind {
    pub fn from_value(kind: &Value) -> Self {
        Self { api_version: text(kind, "apiVersion"), kind: text(kind, "kind") }
    }
}

impl ParamRef {
    pub fn from_value(reference: &Value) -> Self {
        Self {
            name: text(reference, "name"),
            namespace: text(reference, "namespace"),
            selector: reference.get("selector").filter(|selector| !selector.is_null()).cloned(),
            requires_one: text(reference, "parameterNotFoundAction") == "Deny",
        }
    }
}

/// Why parameters cannot be determined.
#[derive(Debug, PartialEq, Eq)]
pub enum Misconfigured {
    Policy(String),
    Binding(String),
}

/// The parameters for which a policy is evaluated: once without any, unless the policy has a `paramKind` and
/// the binding a `paramRef`.
pub fn collect(
    policy: &AdmissionPolicy,
    binding: &AdmissionPolicyBinding,
    subject: AdmissionAttributes<'_>,
) -> Result<Vec<Option<Value>>, Misconfigured> {
    let Some(kind) = &policy.param_kind else { return Ok(vec![None]) };
    let gv = GroupVersion::parse(&kind.api_version).unwrap_or_else(|| GroupVersion::new("", &kind.api_version));
    let resource = subject.request.on.call.catalog.find_by_kind(&gv, &kind.kind).ok_or_else(|| {
        let shown = format!("{}/{}, Kind={}", gv.group, gv.version, kind.kind);
        Misconfigured::Policy(format!("failed to find resource referenced by paramKind: '{shown}'"))
    })?;
    match &binding.param_ref {
        None => Ok(vec![None]),
        Some(reference) => referenced(resource, reference, subject).map_err(Misconfigured::Binding),
    }
}

fn referenced(
    resource: &ServedResource,
    reference: &ParamRef,
    subject: AdmissionAttributes<'_>,
) -> Result<Vec<Option<Value>>, String> {
    let store = &subject.request.on.core().store;
    let namespace = match (resource.namespaced, reference.namespace.as_str(), subject.request.on.namespace()) {
        (false, "", _) => "",
        (false, ..) => {
            return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned());
        }
        (true, "", "") => {
            return Err(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources".to_owned()
            );
        }
        (true, "", own) => own,
        (true, given, _) => given,
    };
    let collection = resource.group_resource();
    let found = match reference.name.as_str() {
        "" => {
            let selector = LabelSelector::from_value(reference.selector.as_ref())?;
            let namespace = resource.namespaced.then(|| namespace.into());
            let wanted = |stored: &Stored| selector.matches(|key| stored.label(key));
            let query = ListQuery { namespace, ..ListQuery::default() };
            store.list_filtered(&collection, &query, &wanted).map_err(|error| error.to_string())?.items
        }
        name => store.get(&ObjectKey::new(collection, namespace, name)).into_iter().collect(),
    };
    if found.is_empty() && reference.requires_one {
        return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
    }
    Ok(found.iter().map(|stored| Some(handler_response::value(resource, stored))).collect())
}

fn text(value: &Value, field: &str) -> String {
    value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;

//! The admission plugin `Priority`: a new pod gets the value of its PriorityClass, and at most one class is the
//! default.

use serde_json::Value;

use super::call::ResourceRequest;
use crate::{
    admission::refused_name,
    api::{GroupResource, ObjectKey, StatusError, meta::MetaAccessor},
    kinds::pod,
    store::ListQuery,
};

fn classes() -> GroupResource {
    GroupResource::new("scheduling.k8s.io", "priorityclasses")
}

fn is_resource(on: ResourceRequest<'_>, group: &str, plural: &str) -> bool {
    on.path.subresource.is_empty() && on.collection() == GroupResource::new(group, plural)
}

/// Sets the priority of a new pod, and its default tolerations, before webhooks see it. Other kinds do not
/// change.
pub fn admit_create(on: ResourceRequest<'_>, object: &mut Value) -> Result<(), StatusError> {
    if !is_resource(on, "", "pods") {
        return Ok(());
    }
    let named = object.pointer("/spec/priorityClassName").and_then(Value::as_str).unwrap_or_default();
    let class = if named.is_empty() { default_class(on) } else { Some(lookup_class(on, object, named)?) };
    pod::admit_priority(object, class.as_ref()).map_err(|why| forbidden(on, object, &why))?;
    Ok(())
}

/// Refuses a second default class.
pub fn validate(on: ResourceRequest<'_>, object: &Value, is_new: bool) -> Result<(), StatusError> {
    if !is_resource(on, "scheduling.k8s.io", "priorityclasses")
        || object.get("globalDefault") != Some(&Value::Bool(true))
    {
        return Ok(());
    }
    let Some(class) = default_class(on).filter(|class| is_new || class.name() != object.name()) else { return Ok(()) };
    let why = format!("PriorityClass {} is already marked as default. Only one default can exist", class.name());
    Err(forbidden(on, object, &why))
}

fn lookup_class(on: ResourceRequest<'_>, pod: &Value, name: &str) -> Result<Value, StatusError> {
    let found = on.core().store.get(&ObjectKey::new(classes(), "", name));
    let why = || format!("no PriorityClass with name {name} was found");
    found.map(|class| class.value()).ok_or_else(|| forbidden(on, pod, &why()))
}

/// The default class. Of several, which only a race can create, the one with the lowest priority.
fn default_class(on: ResourceRequest<'_>) -> Option<Value> {
    let listed = on.core().store.list(&classes(), &ListQuery::default()).ok()?;
    let all = listed.items.iter().map(|class| class.value());
    let defaults = all.filter(|class| class.get("globalDefault") == Some(&Value::Bool(true)));
    defaults.min_by_key(|class| class.get("value").and_then(Value::as_i64))
}

fn forbidden(on: ResourceRequest<'_>, object: &Value, why: &str) -> StatusError {
    StatusError::forbidden(&on.collection(), refused_name(object.name(), Some(object)), why)
}

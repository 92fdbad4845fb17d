//! The admission plugin `Priority`: a new pod gets the number of its PriorityClass, and one class at most is the default.

use serde_json::Value;

use super::call::On;
use crate::{
    api::{GroupResource, ObjectKey, Status, meta::Meta},
    kinds::pod,
    store::ListQuery,
};

fn classes() -> GroupResource {
    GroupResource::new("scheduling.k8s.io", "priorityclasses")
}

fn is(on: On<'_>, group: &str, plural: &str) -> bool {
    on.path.subresource.is_empty() && on.collection() == GroupResource::new(group, plural)
}

/// Gives a new pod its priority, and the tolerations of nodes that fail, before webhooks see it. Other kinds get nothing.
pub fn admit_create(on: On<'_>, object: &mut Value) -> Result<(), Status> {
    if !is(on, "", "pods") {
        return Ok(());
    }
    let named = object.pointer("/spec/priorityClassName").and_then(Value::as_str).unwrap_or_default();
    let class = if named.is_empty() { default_class(on) } else { Some(lookup_class(on, object, named)?) };
    pod::give_priority(object, class.as_ref()).map_err(|why| forbidden(on, object, &why))?;
    Ok(())
}

/// A class that is to be the default must be the only one.
pub fn validate(on: On<'_>, object: &Value, is_new: bool) -> Result<(), Status> {
    if !is(on, "scheduling.k8s.io", "priorityclasses") || object.get("globalDefault") != Some(&Value::Bool(true)) {
        return Ok(());
    }
    let Some(class) = default_class(on).filter(|class| is_new || class.name() != object.name()) else { return Ok(()) };
    let why = format!("PriorityClass {} is already marked as default. Only one default can exist", class.name());
    Err(forbidden(on, object, &why))
}

fn lookup_class(on: On<'_>, pod: &Value, name: &str) -> Result<Value, Status> {
    let found = on.core().store.get(&ObjectKey::new(classes(), "", name));
    let why = || format!("no PriorityClass with name {name} was found");
    found.map(|class| class.value()).ok_or_else(|| forbidden(on, pod, &why()))
}

/// Of several defaults, which only a race can make, the one with the lowest priority.
fn default_class(on: On<'_>) -> Option<Value> {
    let listed = on.core().store.list(&classes(), &ListQuery::default()).ok()?;
    let all = listed.items.iter().map(|class| class.value());
    let defaults = all.filter(|class| class.get("globalDefault") == Some(&Value::Bool(true)));
    defaults.min_by_key(|class| class.get("value").and_then(Value::as_i64))
}

fn forbidden(on: On<'_>, object: &Value, why: &str) -> Status {
    let name = match (object.name(), object.meta_str("generateName")) {
        ("", "") => "Unknown",
        ("", prefix) => prefix,
        (name, _) => name,
    };
    Status::forbidden(&on.collection(), name, why)
}

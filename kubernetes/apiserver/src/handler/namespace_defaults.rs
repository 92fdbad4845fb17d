//! The admission plugins `LimitRanger`, `RuntimeClass`, `DefaultStorageClass` and `DefaultIngressClass`: what a
//! namespace or the cluster adds to new objects, and the bounds of a namespace.

use serde_json::Value;

use super::call::ResourceRequest;
use crate::{
    admission::refused_name,
    api::{
        GroupResource, ObjectKey, StatusError,
        meta::{MetaAccessor, child_mut},
    },
    kinds::{limits, runtime_class},
    store::ListQuery,
};

/// Adds what a new object omits, before webhooks see it.
pub fn admit_create(on: ResourceRequest<'_>, object: &mut Value) -> Result<(), StatusError> {
    match plural(on) {
        ("", "pods") => {
            for range in limit_ranges(on) {
                limits::set_defaults(object, &range);
            }
            admit_runtime_class(on, object)
        }
        ("", "persistentvolumeclaims") => {
            let annotations =
                ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
            let own = "volume.beta.kubernetes.io/storage-class";
            set_default_class(on, object, "storageClassName", own, ("storage.k8s.io", "storageclasses"), &annotations);
            Ok(())
        }
        ("networking.k8s.io", "ingresses") => {
            let annotations = ["ingressclass.kubernetes.io/is-default-class"];
            let own = "kubernetes.io/ingress.class";
            set_default_class(
                on,
                object,
                "ingressClassName",
                own,
                ("networking.k8s.io", "ingressclasses"),
                &annotations,
            );
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Refuses what the limits of the namespace do not allow: new pods, and claims.
pub fn validate(on: ResourceRequest<'_>, object: &Value, live: Option<&Value>) -> Result<(), StatusError> {
    let kind = match plural(on) {
        ("", "pods") if live.is_none() => "pods",
        ("", "persistentvolumeclaims") if !live.is_some_and(MetaAccessor::is_deleting) => "persistentvolumeclaims",
        _ => return Ok(()),
    };
    let found = limit_ranges(on).into_iter().find_map(|range| limits::violation(object, kind, &range));
    found.map_or(Ok(()), |why| Err(forbidden(on, object, &why)))
}

/// The group and name of the resource; nothing for a subresource.
fn plural<'a>(on: ResourceRequest<'a>) -> (&'a str, &'a str) {
    if on.path.subresource.is_empty() { (&on.resource.gv.group, &on.resource.plural) } else { ("", "") }
}

fn limit_ranges(on: ResourceRequest<'_>) -> Vec<Value> {
    let query = ListQuery { namespace: Some(on.namespace().into()), ..ListQuery::default() };
    list(on, &GroupResource::new("", "limitranges"), &query)
}

fn list(on: ResourceRequest<'_>, collection: &GroupResource, query: &ListQuery) -> Vec<Value> {
    on.core()
        .store
        .list(collection, query)
        .map_or_else(|_| Vec::new(), |found| found.items.iter().map(|item| item.value()).collect())
}

fn admit_runtime_class(on: ResourceRequest<'_>, pod: &mut Value) -> Result<(), StatusError> {
    let name = pod.pointer("/spec/runtimeClassName").and_then(Value::as_str).map(str::to_owned);
    let key = |name: &str| ObjectKey::new(GroupResource::new("node.k8s.io", "runtimeclasses"), "", name);
    let class = name.as_deref().map(|name| {
        let found = on.core().store.get(&key(name)).map(|class| class.value());
        found.ok_or_else(|| forbidden(on, pod, &format!("pod rejected: RuntimeClass {name:?} not found")))
    });
    let class = class.transpose()?;
    runtime_class::apply_to_pod(pod, class.as_ref()).map_err(|why| forbidden(on, pod, &why))
}

/// Sets the class of an object that names none. Of several default classes the newest is taken.
fn set_default_class(
    on: ResourceRequest<'_>,
    object: &mut Value,
    field: &str,
    own_annotation: &str,
    (group, plural): (&str, &str),
    annotations: &[&str],
) {
    let annotation = |object: &Value, name: &str| {
        object.meta("annotations").and_then(|all| all.get(name)).and_then(Value::as_str).map(str::to_owned)
    };
    let is_named = object.get("spec").and_then(|spec| spec.get(field)).is_some_and(|class| !class.is_null());
    if is_named || annotation(object, own_annotation).is_some() {
        return;
    }
    let all = list(on, &GroupResource::new(group, plural), &ListQuery::default());
    let is_default = |class: &Value| annotations.iter().any(|name| annotation(class, name).as_deref() == Some("true"));
    let newest = all.into_iter().filter(is_default).min_by(|one, other| {
        let time = |class: &Value| class.meta_str("creationTimestamp").to_owned();
        time(other).cmp(&time(one)).then_with(|| one.name().cmp(other.name()))
    });
    let spec = object.as_object_mut().and_then(|object| child_mut(object, "spec"));
    if let (Some(class), Some(spec)) = (newest, spec) {
        spec.insert(field.to_owned(), class.name().into());
    }
}

fn forbidden(on: ResourceRequest<'_>, object: &Value, why: &str) -> StatusError {
    StatusError::forbidden(&on.collection(), refused_name(object.name(), Some(object)), why)
}

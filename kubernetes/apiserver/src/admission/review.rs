//! The request to a webhook: an `AdmissionReview`.

use std::{borrow::Cow, sync::Arc};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{AdmissionOperation, Options, matching::AdmissionAttributes};
use crate::{
    api::{GroupVersion, identity},
    codec::query::{DeleteOptions, DeletionPropagation, QueryParameters},
    registry::ServedResource,
};

/// A request in the version that a webhook or policy matches.
#[derive(Debug)]
pub struct VersionedAttributes<'a> {
    /// The request under admission.
    pub subject: AdmissionAttributes<'a>,
    /// The resource in whose version the request is shown.
    pub resource: Arc<ServedResource>,
    /// The new object, in that resource's version.
    pub object: Option<Cow<'a, Value>>,
    /// The stored object, in that resource's version.
    pub old: Option<Cow<'a, Value>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AdmissionReview<'a> {
    kind: &'static str,
    api_version: String,
    request: Body<'a>,
}

/// The `request` of a review.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Body<'a> {
    uid: &'a str,
    kind: GroupVersionKind<'a>,
    resource: GroupVersionResource<'a>,
    #[serde(skip_serializing_if = "str::is_empty")]
    sub_resource: &'a str,
    request_kind: GroupVersionKind<'a>,
    request_resource: GroupVersionResource<'a>,
    #[serde(skip_serializing_if = "str::is_empty")]
    request_sub_resource: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    operation: &'static str,
    user_info: Value,
    object: Option<&'a Value>,
    old_object: Option<&'a Value>,
    dry_run: bool,
    options: Value,
}

#[derive(Debug, Serialize)]
struct GroupVersionKind<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

#[derive(Debug, Serialize)]
struct GroupVersionResource<'a> {
    group: &'a str,
    version: &'a str,
    resource: &'a str,
}

impl<'a> VersionedAttributes<'a> {
    /// The request in the version of a resource.
    pub fn for_version(subject: AdmissionAttributes<'a>, resource: &Arc<ServedResource>) -> Self {
        let on = subject.request.on;
        let convert = |object: &'a Value| {
            if resource.gv == on.resource.gv {
                Cow::Borrowed(object)
            } else {
                Cow::Owned(convert_object(object.clone(), on.resource, resource, &on.path.subresource))
            }
        };
        let object = subject.object.map(convert);
        let old = subject.old.map(convert);
        Self { subject, resource: Arc::clone(resource), object, old }
    }

    /// The bytes of the review, in a version of the API and with a uid.
    pub fn review(&self, version: &str, uid: &str) -> Result<Vec<u8>, serde_json::Error> {
        let mut request = self.review_request(uid);
        (request.object, request.old_object) = (self.object.as_deref(), self.old.as_deref());
        let api_version = format!("admission.k8s.io/{version}");
        serde_json::to_vec(&AdmissionReview { kind: "AdmissionReview", api_version, request })
    }

    /// The `request` variable of expressions, without the objects, which are variables of their own.
    pub fn request(&self) -> Value {
        let mut request = serde_json::to_value(self.review_request(&identity::uid())).unwrap_or_default();
        if let Some(request) = request.as_object_mut() {
            request.remove("object");
            request.remove("oldObject");
        }
        request
    }

    fn review_request<'s>(&'s self, uid: &'s str) -> Body<'s> {
        let request = self.subject.request;
        let on = self.subject.request.on;
        let subresource = on.path.subresource.as_str();
        Body {
            uid,
            kind: group_version_kind(&self.resource, subresource),
            resource: group_version_resource(&self.resource),
            sub_resource: subresource,
            request_kind: group_version_kind(on.served_resource(), subresource),
            request_resource: group_version_resource(on.served_resource()),
            request_sub_resource: subresource,
            name: self.subject.name(),
            namespace: self.subject.namespace(),
            operation: request.operation.name(),
            user_info: on.call.user.to_value(),
            object: None,
            old_object: None,
            dry_run: request.dry_run(),
            options: self.options(),
        }
    }

    fn options(&self) -> Value {
        let request = self.subject.request;
        match (request.options, request.operation) {
            (Options::Delete(options), _) => delete_options(options),
            (Options::Write(_), AdmissionOperation::Connect) => Value::Null,
            (Options::Write(given), operation) => {
                let kind = if operation == AdmissionOperation::Create { "CreateOptions" } else { "UpdateOptions" };
                let mut options = operation_options(kind, given.dry_run);
                if !given.field_manager.is_empty() {
                    options.insert("fieldManager".into(), given.field_manager.as_str().into());
                }
                let query = QueryParameters::parse(&request.on.call.query);
                if let Some(validation) = query.get("fieldValidation").filter(|text| !text.is_empty()) {
                    options.insert("fieldValidation".into(), validation.into());
                }
                options.into()
            }
        }
    }
}

fn operation_options(kind: &str, dry_run: bool) -> Map<String, Value> {
    let mut options = Map::new();
    options.insert("kind".into(), kind.into());
    options.insert("apiVersion".into(), "meta.k8s.io/v1".into());
    if dry_run {
        options.insert("dryRun".into(), json!(["All"]));
    }
    options
}

fn delete_options(given: &DeleteOptions) -> Value {
    let mut options = operation_options("DeleteOptions", given.dry_run);
    let mut set = |name: &str, value: Option<Value>| options.extend(value.map(|value| (name.to_owned(), value)));
    set("gracePeriodSeconds", given.grace_period_seconds.map(Value::from));
    set("orphanDependents", given.orphan_dependents.map(Value::from));
    let policy = given.propagation_policy.map(|policy| match policy {
        DeletionPropagation::Foreground => "Foreground",
        DeletionPropagation::Background => "Background",
        DeletionPropagation::Orphan => "Orphan",
    });
    set("propagationPolicy", policy.map(Value::from));
    let mut preconditions = Map::new();
    preconditions.extend(given.uid.as_deref().map(|uid| ("uid".to_owned(), uid.into())));
    preconditions
        .extend(given.resource_version.as_deref().map(|version| ("resourceVersion".to_owned(), version.into())));
    set("preconditions", (!preconditions.is_empty()).then(|| preconditions.into()));
    options.into()
}

/// The group, version and kind of the objects at a path.
fn kind_at<'a>(resource: &'a ServedResource, subresource: &str) -> (&'a GroupVersion, &'a str) {
    match resource.subresource(subresource) {
        Some(part) => (part.gv.as_ref().unwrap_or(&resource.gv), &part.kind),
        None => (&resource.gv, &resource.kind),
    }
}

fn group_version_kind<'a>(resource: &'a ServedResource, subresource: &str) -> GroupVersionKind<'a> {
    let (gv, kind) = kind_at(resource, subresource);
    GroupVersionKind { group: &gv.group, version: &gv.version, kind }
}

fn group_version_resource(resource: &ServedResource) -> GroupVersionResource<'_> {
    GroupVersionResource { group: &resource.gv.group, version: &resource.gv.version, resource: &resource.plural }
}

/// Converts an object from one version of a kind to another.
pub fn convert_object(mut object: Value, from: &ServedResource, to: &ServedResource, subresource: &str) -> Value {
    let (gv, kind) = kind_at(to, subresource);
    if *kind == *to.kind {
        from.strategy.convert_to_stored(&mut object);
        to.strategy.convert_to_served(&mut object);
    }
    set_type_meta(&mut object, gv, kind);
    object
}

/// Sets the kind of an object to that of its path, whatever a patch made of it.
pub fn with_type_meta(mut object: Value, resource: &ServedResource, subresource: &str) -> Value {
    let (gv, kind) = kind_at(resource, subresource);
    set_type_meta(&mut object, gv, kind);
    object
}

fn set_type_meta(object: &mut Value, gv: &GroupVersion, kind: &str) {
    if let Some(object) = object.as_object_mut() {
        object.insert("apiVersion".into(), gv.to_string().into());
        object.insert("kind".into(), kind.into());
    }
}

#[cfg(test)]
mod tests;

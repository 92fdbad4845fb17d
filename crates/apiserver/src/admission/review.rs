//! The question that a webhook is asked: an `AdmissionReview`.

use std::{borrow::Cow, sync::Arc};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Operation, Options, matching::Subject};
use crate::{
    api::{GroupVersion, identity},
    codec::query::{DeleteOptions, Propagation, Query},
    registry::Resource,
};

/// A request as a webhook sees it: in the version that the webhook asked for.
#[derive(Debug)]
pub struct Shown<'a> {
    /// What is said about the request.
    pub subject: Subject<'a>,
    /// The resource as which it is seen.
    pub resource: Arc<Resource>,
    /// The new object, in that resource's version.
    pub object: Option<Cow<'a, Value>>,
    /// The stored object, in that resource's version.
    pub old: Option<Cow<'a, Value>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
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

impl<'a> Shown<'a> {
    /// The request in the version of a resource.
    pub fn of(subject: Subject<'a>, resource: &Arc<Resource>) -> Self {
        let on = subject.request.on;
        let convert = |object: &'a Value| match resource.gv == on.resource.gv {
            true => Cow::Borrowed(object),
            false => Cow::Owned(converted(object.clone(), on.resource, resource, &on.path.subresource)),
        };
        let (object, old) = (subject.object.map(convert), subject.old.map(convert));
        Self { subject, resource: Arc::clone(resource), object, old }
    }

    /// The bytes of the review in this version of it, with this id.
    pub fn review(&self, version: &str, uid: &str) -> Result<Vec<u8>, serde_json::Error> {
        let mut request = self.body(uid);
        (request.object, request.old_object) = (self.object.as_deref(), self.old.as_deref());
        let api_version = format!("admission.k8s.io/{version}");
        serde_json::to_vec(&Review { kind: "AdmissionReview", api_version, request })
    }

    /// The `request` for expressions, without its objects, which they have as variables of their own.
    pub fn request(&self) -> Value {
        let mut request = serde_json::to_value(self.body(&identity::uid())).unwrap_or_default();
        if let Some(request) = request.as_object_mut() {
            request.remove("object");
            request.remove("oldObject");
        }
        request
    }

    fn body<'s>(&'s self, uid: &'s str) -> Body<'s> {
        let (request, on) = (self.subject.request, self.subject.request.on);
        let subresource = on.path.subresource.as_str();
        Body {
            uid,
            kind: kind(&self.resource, subresource),
            resource: resource(&self.resource),
            sub_resource: subresource,
            request_kind: kind(on.shown(), subresource),
            request_resource: resource(on.shown()),
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

    /// The options of the request, as an object.
    fn options(&self) -> Value {
        let request = self.subject.request;
        match (request.options, request.operation) {
            (Options::Delete(options), _) => delete_options(options),
            (Options::Write(_), Operation::Connect) => Value::Null,
            (Options::Write(given), operation) => {
                let kind = if operation == Operation::Create { "CreateOptions" } else { "UpdateOptions" };
                let mut options = options_of(kind, given.dry_run);
                if !given.field_manager.is_empty() {
                    options.insert("fieldManager".into(), given.field_manager.as_str().into());
                }
                let query = Query::parse(&request.on.call.query);
                if let Some(validation) = query.get("fieldValidation").filter(|text| !text.is_empty()) {
                    options.insert("fieldValidation".into(), validation.into());
                }
                options.into()
            }
        }
    }
}

fn options_of(kind: &str, dry_run: bool) -> Map<String, Value> {
    let mut options = Map::new();
    options.insert("kind".into(), kind.into());
    options.insert("apiVersion".into(), "meta.k8s.io/v1".into());
    if dry_run {
        options.insert("dryRun".into(), json!(["All"]));
    }
    options
}

fn delete_options(given: &DeleteOptions) -> Value {
    let mut options = options_of("DeleteOptions", given.dry_run);
    let mut set = |name: &str, value: Option<Value>| options.extend(value.map(|value| (name.to_owned(), value)));
    set("gracePeriodSeconds", given.grace_period_seconds.map(Value::from));
    set("orphanDependents", given.orphan_dependents.map(Value::from));
    let policy = given.propagation_policy.map(|policy| match policy {
        Propagation::Foreground => "Foreground",
        Propagation::Background => "Background",
        Propagation::Orphan => "Orphan",
    });
    set("propagationPolicy", policy.map(Value::from));
    let mut preconditions = Map::new();
    preconditions.extend(given.uid.as_deref().map(|uid| ("uid".to_owned(), uid.into())));
    preconditions
        .extend(given.resource_version.as_deref().map(|version| ("resourceVersion".to_owned(), version.into())));
    set("preconditions", (!preconditions.is_empty()).then(|| preconditions.into()));
    options.into()
}

/// The kind that is written at this place, and its group and version.
fn place<'a>(resource: &'a Resource, subresource: &str) -> (&'a GroupVersion, &'a str) {
    match resource.subresource(subresource) {
        Some(part) => (part.gv.as_ref().unwrap_or(&resource.gv), &part.kind),
        None => (&resource.gv, &resource.kind),
    }
}

fn kind<'a>(resource: &'a Resource, subresource: &str) -> GroupVersionKind<'a> {
    let (gv, kind) = place(resource, subresource);
    GroupVersionKind { group: &gv.group, version: &gv.version, kind }
}

fn resource(resource: &Resource) -> GroupVersionResource<'_> {
    GroupVersionResource { group: &resource.gv.group, version: &resource.gv.version, resource: &resource.plural }
}

/// An object of one version of a kind as one of another.
pub fn converted(mut object: Value, from: &Resource, to: &Resource, subresource: &str) -> Value {
    let (gv, kind) = place(to, subresource);
    if *kind == *to.kind {
        from.strategy.stored(&mut object);
        to.strategy.served(&mut object);
    }
    mark(&mut object, gv, kind);
    object
}

/// Gives an object the kind of a place back, whatever somebody made of it.
pub fn marked(mut object: Value, resource: &Resource, subresource: &str) -> Value {
    let (gv, kind) = place(resource, subresource);
    mark(&mut object, gv, kind);
    object
}

fn mark(object: &mut Value, gv: &GroupVersion, kind: &str) {
    if let Some(object) = object.as_object_mut() {
        object.insert("apiVersion".into(), gv.to_string().into());
        object.insert("kind".into(), kind.into());
    }
}

#[cfg(test)]
mod tests;

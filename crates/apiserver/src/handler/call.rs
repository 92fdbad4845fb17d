//! One request on its way through the server.

use std::sync::{Arc, Mutex, PoisonError};

use http::{HeaderMap, Method};
use serde_json::Value;

use super::answer::stamp;
use crate::{
    admission::{self, Operation},
    api::{
        GroupResource, GroupVersion, ObjectKey, Status,
        meta::{Meta, remove_meta, set_meta},
    },
    apply::{self, Convert, Owner, reset_fields},
    auth::{User, attributes::selected_name},
    codec::query::{DeleteOptions, Query, WriteOptions},
    core::Core,
    http::{Peer, RequestInfo, ResourcePath},
    registry::{Catalog, Resource, Subresource},
    schema::{Node, Schema, builtin},
    trace::Span,
};

/// A request that was let in.
#[derive(Debug)]
pub struct Call {
    /// The server.
    pub core: Arc<Core>,
    /// What was served when it came.
    pub catalog: Arc<Catalog>,
    /// What it asks for.
    pub info: RequestInfo,
    /// Who asks; the impersonated one where somebody acts as another.
    pub user: User,
    /// As in its first line.
    pub method: Method,
    /// The text after the question mark.
    pub query: String,
    /// Its headers.
    pub headers: HeaderMap,
    /// Who is at the other end.
    pub peer: Arc<Peer>,
    /// Names the request in logs, spans and the answer.
    pub audit_id: String,
    /// `HTTP/1.1` or `HTTP/2.0`.
    pub protocol: &'static str,
    /// What to tell the caller beside the answer.
    pub warnings: Warnings,
}

/// Warnings that are collected while a request is worked on.
#[derive(Debug, Default)]
pub struct Warnings(Mutex<Vec<String>>);

/// A call about objects of a resource that is served.
#[derive(Clone, Copy, Debug)]
pub struct On<'a> {
    /// The call.
    pub call: &'a Call,
    /// The resource, in the version in which it is stored.
    pub resource: &'a Arc<Resource>,
    /// The resource as the caller sees it, where that is another shape of the same objects.
    pub view: Option<&'a Arc<Resource>>,
    /// The place in the path.
    pub path: &'a ResourcePath,
    /// The handler's span.
    pub span: &'a Span,
}

/// So many characters of warnings are sent before each is cut: kube-apiserver's own bound.
const WARNINGS: usize = 4096;
/// So long is a warning that is cut.
const WARNING: usize = 256;

impl Warnings {
    /// One more; each is said once.
    pub fn add(&self, warning: impl Into<String>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let warning = warning.into();
        if !all.contains(&warning) {
            all.push(warning);
        }
    }

    /// All of them, in the order in which they came. Where they are too much for a header, each is cut, and the last are left out,
    /// as kube-apiserver does it.
    pub fn take(&self) -> Vec<String> {
        let mut all = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        if all.iter().map(|warning| warning.chars().count()).sum::<usize>() <= WARNINGS {
            return all;
        }
        let mut written = 0;
        all.retain_mut(|warning| {
            if let Some((end, _)) = warning.char_indices().nth(WARNING) {
                warning.truncate(end);
            }
            let fits = written < WARNINGS;
            written += warning.chars().count();
            fits
        });
        all
    }
}

impl Call {
    /// The name of the object that it is about: that of the path, or the one that the field selector of a list or watch leaves.
    pub fn object_name(&self) -> String {
        let Some(path) = &self.info.resource else { return String::new() };
        if !path.name.is_empty() || !matches!(self.info.verb, "list" | "watch") {
            return path.name.clone();
        }
        let query = Query::parse(&self.query);
        query.get("fieldSelector").and_then(selected_name).unwrap_or_default().to_owned()
    }

    /// A header as text; empty when it is absent or no text.
    pub fn header(&self, name: impl http::header::AsHeaderName) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// Kinds whose deletion is answered with the object itself, as it was last.
const ANSWERED: [(&str, &str); 17] = [
    ("", "persistentvolumeclaims"),
    ("", "persistentvolumes"),
    ("", "pods"),
    ("", "podtemplates"),
    ("", "resourcequotas"),
    ("", "serviceaccounts"),
    ("", "services"),
    ("resource.k8s.io", "deviceclasses"),
    ("resource.k8s.io", "devicetaintrules"),
    ("resource.k8s.io", "resourceclaims"),
    ("resource.k8s.io", "resourceclaimtemplates"),
    ("resource.k8s.io", "resourceslices"),
    ("storage.k8s.io", "csidrivers"),
    ("storage.k8s.io", "csinodes"),
    ("storage.k8s.io", "storageclasses"),
    ("storage.k8s.io", "volumeattachments"),
    ("storage.k8s.io", "volumeattributesclasses"),
];

impl<'a> On<'a> {
    /// The server.
    pub fn core(&self) -> &'a Arc<Core> {
        &self.call.core
    }

    /// The collection of the objects, as the store and messages name it.
    pub fn collection(&self) -> GroupResource {
        self.resource.group_resource()
    }

    /// The namespace that objects have; none for those that live in none, also for namespaces themselves.
    pub fn namespace(&self) -> &'a str {
        if self.resource.namespaced { &self.path.namespace } else { "" }
    }

    /// Where an object of this call is.
    pub fn key(&self, name: &str) -> ObjectKey {
        ObjectKey::new(self.collection(), self.namespace(), name)
    }

    /// The object of the path is not there.
    pub fn not_found(&self) -> Status {
        Status::not_found(&self.collection(), &self.path.name)
    }

    /// The header that says what the body is.
    pub fn content_type(&self) -> Option<&'a str> {
        Some(self.call.header(http::header::CONTENT_TYPE)).filter(|text| !text.is_empty())
    }

    /// Whether the kind is asked and not stored.
    pub fn is_review(&self) -> bool {
        matches!(&*self.resource.gv.group, "authentication.k8s.io" | "authorization.k8s.io")
    }

    /// Whether this is about `scale`.
    pub fn is_scale(&self) -> bool {
        self.path.subresource == "scale"
    }

    /// Whether a deletion is answered with the object.
    pub fn answers_deleted(&self) -> bool {
        ANSWERED.contains(&(&*self.resource.gv.group, &*self.resource.plural))
    }

    /// The resource as the caller sees it.
    pub fn shown(&self) -> &'a Arc<Resource> {
        self.view.unwrap_or(self.resource)
    }

    /// Turns an object from the shape that the caller sees into the stored one.
    pub fn to_stored(&self, object: &mut Value) {
        if let Some(view) = self.view {
            view.strategy.stored(object);
            stamp(self.resource, object);
        }
    }

    /// Turns an object from the stored shape into the one that the caller sees.
    pub fn to_shown(&self, object: &mut Value) {
        if let Some(view) = self.view {
            view.strategy.served(object);
            stamp(view, object);
        }
    }

    /// The kind of the request's body.
    pub fn wanted_kind(&self) -> &'a str {
        self.subresource().map_or(&self.shown().kind, |subresource| &subresource.kind)
    }

    /// The group and version of the request's body.
    pub fn wanted_gv(&self) -> GroupVersion {
        let own = self.subresource().and_then(|subresource| subresource.gv.clone());
        own.unwrap_or_else(|| self.shown().gv.clone())
    }

    /// The schema of the request's body.
    pub fn wanted_schema(&self) -> &'a Schema {
        let other = self.subresource().filter(|subresource| subresource.kind != self.resource.kind);
        let other = other.and_then(|subresource| builtin::of_kind(&self.wanted_gv(), &subresource.kind));
        other.unwrap_or(&self.shown().schema)
    }

    fn subresource(&self) -> Option<&'a Subresource> {
        self.resource.subresource(&self.path.subresource)
    }

    /// Says that the version is on its way out.
    pub fn warn_deprecated(&self) {
        let warning = match &self.resource.custom {
            Some(custom) => custom.deprecation_warning.as_deref(),
            None => deprecation(&self.resource.gv.group, &self.resource.plural),
        };
        if let Some(warning) = warning {
            self.call.warnings.add(warning);
        }
    }

    /// Who writes, as `managedFields` records it.
    pub fn writer(&self, options: &WriteOptions) -> Writer {
        let manager = match options.field_manager.as_str() {
            "" => apply::default_manager(self.call.header(http::header::USER_AGENT)),
            given => given.to_owned(),
        };
        Writer { manager, api_version: self.wanted_gv().to_string(), now: self.core().now() }
    }

    /// Keeps the books of a create (without `live`) or of an update. Objects are in the stored shape; the books are kept in the one
    /// that the caller sees.
    pub fn manage(&self, options: &WriteOptions, live: Option<&Value>, object: &mut Value) {
        let writer = self.writer(options);
        if self.view.is_none() {
            return writer.owner(self).update(live, object);
        }
        let (live, mut shown) = (live.map(|live| self.shown_object(live)), self.shown_object(object));
        writer.owner(self).update(live.as_ref(), &mut shown);
        match shown.meta("managedFields") {
            Some(entries) => set_meta(object, "managedFields", entries.clone()),
            None => drop(remove_meta(object, "managedFields")),
        }
    }

    /// A stored object in the shape that the caller sees.
    pub fn shown_object(&self, object: &Value) -> Value {
        let mut shown = object.clone();
        self.to_shown(&mut shown);
        shown
    }

    /// The write as admission sees it.
    pub fn review<'o>(&self, operation: Operation, options: &'o WriteOptions) -> admission::Request<'o>
    where
        'a: 'o,
    {
        admission::Request { operation, on: *self, options: admission::Options::Write(options) }
    }

    /// A deletion as admission sees it.
    pub fn review_delete<'o>(&self, options: &'o DeleteOptions) -> admission::Request<'o>
    where
        'a: 'o,
    {
        admission::Request { operation: Operation::Delete, on: *self, options: admission::Options::Delete(options) }
    }
}

/// What kube-apiserver says of built-in kinds that nobody should use any more.
fn deprecation(group: &str, plural: &str) -> Option<&'static str> {
    match (group, plural) {
        ("", "componentstatuses") => Some("v1 ComponentStatus is deprecated in v1.19+"),
        ("", "endpoints") => Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
        _ => None,
    }
}

/// A writer and its moment.
#[derive(Clone, Debug)]
pub struct Writer {
    manager: String,
    api_version: String,
    /// The time of the write.
    pub now: String,
}

impl Writer {
    /// Keeps the books of this writer, about objects in the shape that it sees.
    pub fn owner<'a>(&'a self, on: &'a On<'a>) -> Owner<'a> {
        let (resource, subresource) = (on.resource, on.path.subresource.as_str());
        Owner {
            manager: &self.manager,
            api_version: &self.api_version,
            kind: on.wanted_kind(),
            subresource,
            schema: on.wanted_schema(),
            reset: reset_fields(resource, subresource),
            now: &self.now,
            convert: Some(on),
        }
    }
}

impl Convert for On<'_> {
    fn convert(&self, object: &Value, api_version: &str) -> Option<(Value, Node)> {
        let gv = GroupVersion::parse(api_version)?;
        // A part of another kind has one version.
        if self.wanted_kind() != &*self.shown().kind {
            return None;
        }
        if let Some(custom) = &self.resource.custom {
            let schema = custom.schemas.get(&gv.version).filter(|_| gv.group == self.resource.gv.group)?;
            let mut object = object.clone();
            if let Some(object) = object.as_object_mut() {
                object.insert("apiVersion".into(), api_version.into());
            }
            return Some((object, Node::Own(Arc::clone(schema))));
        }
        let other = self.call.catalog.get(&gv, &self.resource.plural)?;
        if other.group_kind() != self.resource.group_kind() {
            return None;
        }
        let mut object = object.clone();
        self.to_stored(&mut object);
        if other.strategy.stored_as().is_some() {
            other.strategy.served(&mut object);
        }
        stamp(other, &mut object);
        Some((object, other.schema.clone()))
    }
}

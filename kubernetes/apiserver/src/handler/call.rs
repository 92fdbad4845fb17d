//! A request on its way through the server, and the context that handlers get of it.

use std::sync::Arc;

use http::{HeaderMap, Method};
use kubewake_runtime::lock::Mutex;
use serde_json::Value;

use super::handler_response::set_type_meta;
use crate::{
    admission::{self, AdmissionOperation},
    api::{
        GroupResource, GroupVersion, ObjectKey, StatusError,
        meta::{MetaAccessor, remove_meta, set_meta},
    },
    apply::{self, FieldManager, VersionConverter, reset_fields},
    auth::{UserInfo, attributes::selected_name},
    codec::query::{DeleteOptions, QueryParameters, WriteOptions},
    http::{ClientPeer, RequestInfo, ResourcePath},
    registry::{Catalog, ServedResource, Subresource},
    schema::{Schema, SchemaNode, builtin},
    server_state::ServerState,
    trace::TraceSpan,
};

/// A request to the API.
#[derive(Debug)]
pub struct ApiRequest {
    pub core: Arc<ServerState>,
    /// The catalog at the time when the request arrived.
    pub catalog: Arc<Catalog>,
    pub info: RequestInfo,
    /// The user; with impersonation, the impersonated one.
    pub user: UserInfo,
    /// The method of the request line.
    pub method: Method,
    /// The query, without the question mark.
    pub query: String,
    pub headers: HeaderMap,
    /// The client's end of the connection.
    pub peer: Arc<ClientPeer>,
    /// Identifies the request in logs, spans and the response.
    pub audit_id: String,
    /// `HTTP/1.1` or `HTTP/2.0`.
    pub protocol: &'static str,
    /// Warnings to send with the response.
    pub warnings: WarningRecorder,
}

/// Collects warnings while a request is handled.
#[derive(Debug, Default)]
pub struct WarningRecorder(Mutex<Vec<String>>);

/// A request about objects of a served resource.
#[derive(Clone, Copy, Debug)]
pub struct ResourceRequest<'a> {
    pub call: &'a ApiRequest,
    /// The resource in its storage version.
    pub resource: &'a Arc<ServedResource>,
    /// The resource as served to the caller, where that is another shape of the same objects.
    pub view: Option<&'a Arc<ServedResource>>,
    /// The parts of the path.
    pub path: &'a ResourcePath,
    pub span: &'a TraceSpan,
}

/// The total length up to which warnings are sent unabridged: kube-apiserver's own bound.
const MAX_WARNING_CHARS_TOTAL: usize = 4096;
/// The length to which a warning is cut.
const MAX_TRUNCATED_WARNING_CHARS: usize = 256;

impl WarningRecorder {
    /// Adds a warning, unless it was added before.
    pub fn add(&self, warning: impl Into<String>) {
        let mut all = self.0.lock();
        let warning = warning.into();
        if !all.contains(&warning) {
            all.push(warning);
        }
    }

    /// All warnings, in the order in which they were added. Where they are too long for a header, each is cut,
    /// and the last are left out, as in kube-apiserver.
    pub fn take(&self) -> Vec<String> {
        let mut all = std::mem::take(&mut *self.0.lock());
        if all.iter().map(|warning| warning.chars().count()).sum::<usize>() <= MAX_WARNING_CHARS_TOTAL {
            return all;
        }
        let mut written = 0;
        all.retain_mut(|warning| {
            if let Some((end, _)) = warning.char_indices().nth(MAX_TRUNCATED_WARNING_CHARS) {
                warning.truncate(end);
            }
            let fits = written < MAX_WARNING_CHARS_TOTAL;
            written += warning.chars().count();
            fits
        });
        all
    }
}

impl ApiRequest {
    /// The name of the requested object: that of the path, or the one that the field selector of a list or
    /// watch selects.
    pub fn object_name(&self) -> String {
        let Some(path) = &self.info.resource else { return String::new() };
        if !path.name.is_empty() || !matches!(self.info.verb, "list" | "watch") {
            return path.name.clone();
        }
        let query = QueryParameters::parse(&self.query);
        query.get("fieldSelector").and_then(selected_name).unwrap_or_default().to_owned()
    }

    /// A header as text; empty if it is absent or not text.
    pub fn header(&self, name: impl http::header::AsHeaderName) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// Kinds whose deletion is answered with the last state of the object.
const RESOURCES_RETURNING_DELETED_OBJECT: [(&str, &str); 17] = [
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

impl<'a> ResourceRequest<'a> {
    pub fn core(&self) -> &'a Arc<ServerState> {
        &self.call.core
    }

    /// The collection of the objects, as in the store and in messages.
    pub fn collection(&self) -> GroupResource {
        self.resource.group_resource()
    }

    /// The namespace of the objects; empty for cluster-scoped ones, also for namespaces themselves.
    pub fn namespace(&self) -> &'a str {
        if self.resource.namespaced { &self.path.namespace } else { "" }
    }

    /// The key of an object of this resource.
    pub fn key(&self, name: &str) -> ObjectKey {
        ObjectKey::new(self.collection(), self.namespace(), name)
    }

    /// The object of the path does not exist.
    pub fn not_found(&self) -> StatusError {
        StatusError::not_found(&self.collection(), &self.path.name)
    }

    /// The `Content-Type` of the body.
    pub fn content_type(&self) -> Option<&'a str> {
        Some(self.call.header(http::header::CONTENT_TYPE)).filter(|text| !text.is_empty())
    }

    /// Whether the kind is a review, which is answered and not stored.
    pub fn is_review(&self) -> bool {
        matches!(&*self.resource.gv.group, "authentication.k8s.io" | "authorization.k8s.io")
    }

    pub fn is_scale(&self) -> bool {
        self.path.subresource == "scale"
    }

    pub fn returns_deleted_object(&self) -> bool {
        RESOURCES_RETURNING_DELETED_OBJECT.contains(&(&*self.resource.gv.group, &*self.resource.plural))
    }

    /// The resource as served to the caller.
    pub fn served_resource(&self) -> &'a Arc<ServedResource> {
        self.view.unwrap_or(self.resource)
    }

    /// Converts an object from the served shape to the stored one.
    pub fn convert_to_stored(&self, object: &mut Value) {
        if let Some(view) = self.view {
            view.strategy.convert_to_stored(object);
            set_type_meta(self.resource, object);
        }
    }

    /// Converts an object from the stored shape to the served one.
    pub fn convert_to_served(&self, object: &mut Value) {
        if let Some(view) = self.view {
            view.strategy.convert_to_served(object);
            set_type_meta(view, object);
        }
    }

    /// The kind of the request's body.
    pub fn body_kind(&self) -> &'a str {
        self.subresource().map_or(&self.served_resource().kind, |subresource| &subresource.kind)
    }

    /// The group and version of the request's body.
    pub fn body_group_version(&self) -> GroupVersion {
        let own = self.subresource().and_then(|subresource| subresource.gv.clone());
        own.unwrap_or_else(|| self.served_resource().gv.clone())
    }

    /// The schema of the request's body.
    pub fn body_schema(&self) -> &'a Schema {
        let other = self.subresource().filter(|subresource| subresource.kind != self.resource.kind);
        let other =
            other.and_then(|subresource| builtin::schema_for_kind(&self.body_group_version(), &subresource.kind));
        other.unwrap_or(&self.served_resource().schema)
    }

    fn subresource(&self) -> Option<&'a Subresource> {
        self.resource.subresource(&self.path.subresource)
    }

    /// Warns if the version is deprecated.
    pub fn warn_deprecated(&self) {
        let warning = match &self.resource.custom {
            Some(custom) => custom.deprecation_warning.as_deref(),
            None => deprecation(&self.resource.gv.group, &self.resource.plural),
        };
        if let Some(warning) = warning {
            self.call.warnings.add(warning);
        }
    }

    /// The writer, as `managedFields` records it.
    pub fn writer_identity(&self, options: &WriteOptions) -> WriterIdentity {
        let manager = match options.field_manager.as_str() {
            "" => apply::default_manager(self.call.header(http::header::USER_AGENT)),
            given => given.to_owned(),
        };
        WriterIdentity { manager, api_version: self.body_group_version().to_string(), now: self.core().now() }
    }

    /// Records field ownership for a create (without `live`) or an update. Objects are in the stored shape;
    /// ownership is recorded in the served one.
    pub fn update_managed_fields(&self, options: &WriteOptions, live: Option<&Value>, object: &mut Value) {
        let writer = self.writer_identity(options);
        if self.view.is_none() {
            return writer.field_manager(self).update(live, object);
        }
        let live = live.map(|live| self.served_object(live));
        let mut shown = self.served_object(object);
        writer.field_manager(self).update(live.as_ref(), &mut shown);
        match shown.meta("managedFields") {
            Some(entries) => set_meta(object, "managedFields", entries.clone()),
            None => drop(remove_meta(object, "managedFields")),
        }
    }

    /// A stored object in the served shape.
    pub fn served_object(&self, object: &Value) -> Value {
        let mut shown = object.clone();
        self.convert_to_served(&mut shown);
        shown
    }

    pub fn review<'o>(&self, operation: AdmissionOperation, options: &'o WriteOptions) -> admission::Request<'o>
    where
        'a: 'o,
    {
        admission::Request { operation, on: *self, options: admission::Options::Write(options) }
    }

    pub fn admission_delete_request<'o>(&self, options: &'o DeleteOptions) -> admission::Request<'o>
    where
        'a: 'o,
    {
        admission::Request {
            operation: AdmissionOperation::Delete,
            on: *self,
            options: admission::Options::Delete(options),
        }
    }
}

/// kube-apiserver's warning about deprecated built-in kinds.
fn deprecation(group: &str, plural: &str) -> Option<&'static str> {
    match (group, plural) {
        ("", "componentstatuses") => Some("v1 ComponentStatus is deprecated in v1.19+"),
        ("", "endpoints") => Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
        _ => None,
    }
}

/// A writer and the time of its write.
#[derive(Clone, Debug)]
pub struct WriterIdentity {
    manager: String,
    api_version: String,
    pub now: String,
}

impl WriterIdentity {
    /// The field manager of this writer, for objects in the served shape.
    pub fn field_manager<'a>(&'a self, on: &'a ResourceRequest<'a>) -> FieldManager<'a> {
        let resource = on.resource;
        let subresource = on.path.subresource.as_str();
        FieldManager {
            manager: &self.manager,
            api_version: &self.api_version,
            kind: on.body_kind(),
            subresource,
            schema: on.body_schema(),
            reset: reset_fields(resource, subresource),
            now: &self.now,
            convert: Some(on),
        }
    }
}

impl VersionConverter for ResourceRequest<'_> {
    fn convert(&self, object: &Value, api_version: &str) -> Option<(Value, SchemaNode)> {
        let gv = GroupVersion::parse(api_version)?;
        // The kind of a subresource, such as `Scale`, has a single version.
        if self.body_kind() != &*self.served_resource().kind {
            return None;
        }
        if let Some(custom) = &self.resource.custom {
            let schema = custom.schemas.get(&gv.version).filter(|_| gv.group == self.resource.gv.group)?;
            let mut object = object.clone();
            if let Some(object) = object.as_object_mut() {
                object.insert("apiVersion".into(), api_version.into());
            }
            return Some((object, SchemaNode::Own(Arc::clone(schema))));
        }
        let other = self.call.catalog.get(&gv, &self.resource.plural)?;
        if other.group_kind() != self.resource.group_kind() {
            return None;
        }
        let mut object = object.clone();
        self.convert_to_stored(&mut object);
        if other.strategy.storage_version().is_some() {
            other.strategy.convert_to_served(&mut object);
        }
        set_type_meta(other, &mut object);
        Some((object, other.schema.clone()))
    }
}

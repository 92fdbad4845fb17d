//! The spans of a request, with kube-apiserver's names and attributes.

use super::{
    call::{ApiRequest, ResourceRequest},
    handler_response::HandlerResponse,
};
use crate::{
    api::StatusError,
    codec::content_type::{self, PatchType},
    http::ResourcePath,
    registry::ServedResource,
    trace::{InstrumentationScope, TraceSpan, TraceSpanKind},
};

/// The span of a handler. Watches have none, except those that begin with a list ([`start_watch_list_span`]).
pub fn start_handler_span(
    call: &ApiRequest,
    resource: &ServedResource,
    path: &ResourcePath,
    parent: &TraceSpan,
) -> TraceSpan {
    let name = match call.info.verb {
        "watch" => return parent.clone(),
        "create" => "Create",
        "get" => "Get",
        "list" => "List",
        "update" => "Update",
        "patch" => "Patch",
        "delete" | "deletecollection" => "Delete",
        other => other,
    };
    let span = parent.component_child(name);
    if span.is_recording() {
        describe(call, resource, path, &span);
    }
    span
}

/// The span of the initial list of a watch.
pub fn start_watch_list_span(on: ResourceRequest<'_>) -> TraceSpan {
    let span = on.span.component_child("WatchList");
    if span.is_recording() {
        describe(on.call, on.served_resource(), on.path, &span);
    }
    span
}

fn describe(call: &ApiRequest, resource: &ServedResource, path: &ResourcePath, span: &TraceSpan) {
    let name = call.object_name();
    let scope = match (call.info.verb, name.is_empty(), path.namespace.is_empty()) {
        ("create", ..) | (_, false, _) => "resource",
        (_, true, false) => "namespace",
        (_, true, true) => "cluster",
    };
    let verb = match call.info.verb {
        "list" => "LIST",
        "watch" => "WATCH",
        "create" => "POST",
        "update" => "PUT",
        "patch" if is_apply(call, resource) => "APPLY",
        "patch" => "PATCH",
        "delete" | "deletecollection" => "DELETE",
        _ => "GET",
    };
    let address = call.peer.address.ip().to_string();
    for (key, value) in [
        ("accept", call.header(http::header::ACCEPT)),
        ("audit-id", &call.audit_id),
        ("client", &address),
        ("api-group", &path.gv.group),
        ("api-version", &path.gv.version),
        ("name", &name),
        ("subresource", &path.subresource),
        ("namespace", &path.namespace),
        ("protocol", call.protocol),
        ("resource", &path.resource),
        ("scope", scope),
        ("url", &call.info.path),
        ("user-agent", call.header(http::header::USER_AGENT)),
        ("verb", verb),
    ] {
        span.set_attribute(key, value);
    }
}

fn is_apply(call: &ApiRequest, resource: &ServedResource) -> bool {
    let media = call.header(http::header::CONTENT_TYPE);
    content_type::patch(Some(media), resource.custom.is_some()) == Ok(PatchType::Apply)
}

/// The name of a store transaction that reads, in traces.
pub const READ_TRANSACTION: &str = "etcdserverpb.KV/Range";
/// The name of one that writes.
pub const WRITE_TRANSACTION: &str = "etcdserverpb.KV/Txn";

impl ResourceRequest<'_> {
    /// A span of reading from the counterpart of kube-apiserver's cache.
    pub fn cache_span(&self, name: &str) -> TraceSpan {
        let span = self.span.component_child(name);
        if span.is_recording() {
            span.set_attribute("audit-id", &self.call.audit_id);
        }
        span
    }

    /// A span of the storage layer about one object.
    pub fn storage_span(&self, name: &str, object: &str, typed: bool) -> TraceSpan {
        let span = self.span.component_child(name);
        if span.is_recording() {
            span.set_attribute("audit-id", &self.call.audit_id);
            span.set_attribute("key", &self.storage_key(object));
            if typed {
                span.set_attribute("type", &self.go_type());
            }
            span.set_attribute("group", &*self.resource.gv.group);
            span.set_attribute("resource", &*self.resource.plural);
        }
        span
    }

    /// The span of a store transaction, where kube-apiserver calls etcd.
    pub fn transaction_span(&self, parent: &TraceSpan, method: &str) -> TraceSpan {
        let span = parent.child(InstrumentationScope::Store, TraceSpanKind::Client, method);
        if span.is_recording() {
            span.set_attribute("rpc.method", method);
            span.set_attribute("rpc.response.status_code", "OK");
            span.set_attribute("rpc.system.name", "grpc");
            span.set_attribute("server.address", "127.0.0.1");
            span.set_attribute("server.port", i64::from(self.core().port()));
        }
        span
    }

    /// Records that the body was read.
    pub fn record_body_read(&self, body: &[u8]) {
        self.span.add_event_with("limitedReadBody succeeded", &[("len", body.len().into())]);
    }

    /// Records the result of a write.
    pub fn record_write_result(&self, body: &[u8], written: &Result<HandlerResponse, StatusError>) {
        let length = body.len().into();
        match written {
            Ok(_) => self.span.add_event_with("Write to database call succeeded", &[("len", length)]),
            Err(status) => {
                let error = status.message.as_str().into();
                self.span.add_event_with("Write to database call failed", &[("err", error), ("len", length)]);
            }
        }
    }

    /// The key of an object in kube-apiserver's etcd, as some refusals show it.
    pub fn registry_key(&self, name: &str) -> String {
        format!("/registry{}", self.storage_key(name))
    }

    /// The same without the prefix of the registry, as spans show it.
    pub fn storage_key(&self, name: &str) -> String {
        let namespace = self.namespace();
        let slash = if namespace.is_empty() { "" } else { "/" };
        format!("{}/{namespace}{slash}{name}", self.storage_prefix())
    }

    /// The prefix of a collection in etcd: custom resources and CRDs by their groups, built-in kinds by their
    /// plurals, except those that predate that rule.
    pub fn storage_prefix(&self) -> String {
        let group = &*self.resource.gv.group;
        let plural = &*self.resource.plural;
        match (group, plural) {
            _ if self.resource.custom.is_some() || group == "apiextensions.k8s.io" => format!("/{group}/{plural}"),
            ("", "replicationcontrollers") => "/controllers".to_owned(),
            ("", "endpoints") => "/services/endpoints".to_owned(),
            ("", "services") => "/services/specs".to_owned(),
            ("", "nodes") => "/minions".to_owned(),
            ("networking.k8s.io", "ingresses") => "/ingress".to_owned(),
            _ => format!("/{plural}"),
        }
    }

    /// The Go type that kube-apiserver stores.
    fn go_type(&self) -> String {
        if self.resource.custom.is_some() {
            return "*unstructured.Unstructured".to_owned();
        }
        let package = match self.resource.gv.group.split('.').next().unwrap_or_default() {
            "" => "core",
            first => first,
        };
        format!("*{package}.{}", self.resource.kind)
    }
}

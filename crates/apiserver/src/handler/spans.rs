//! The spans of a request, with the names and attributes that kube-apiserver gives them.

use super::{
    answer::Answer,
    call::{Call, On},
};
use crate::{
    api::Status,
    codec::content_type::{self, PatchType},
    http::ResourcePath,
    registry::Resource,
    trace::{Kind, Scope, Span},
};

/// The span of a handler. Watches have none, but for those that begin with a list ([`watch_list`]).
pub fn handler(call: &Call, resource: &Resource, path: &ResourcePath, parent: &Span) -> Span {
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
    let span = parent.step(name);
    if span.is_recording() {
        describe(call, resource, path, &span);
    }
    span
}

/// The span of the list that a watch begins with.
pub fn watch_list(on: On<'_>) -> Span {
    let span = on.span.step("WatchList");
    if span.is_recording() {
        describe(on.call, on.shown(), on.path, &span);
    }
    span
}

fn describe(call: &Call, resource: &Resource, path: &ResourcePath, span: &Span) {
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
        span.set(key, value);
    }
}

fn is_apply(call: &Call, resource: &Resource) -> bool {
    let media = call.header(http::header::CONTENT_TYPE);
    content_type::patch(Some(media), resource.custom.is_some()) == Ok(PatchType::Apply)
}

/// What the store's transactions are called in traces.
pub const READ: &str = "etcdserverpb.KV/Range";
/// The same, of one that writes.
pub const WRITE: &str = "etcdserverpb.KV/Txn";

impl On<'_> {
    /// A span of reading from what stands for kube-apiserver's cache.
    pub fn cache_span(&self, name: &str) -> Span {
        let span = self.span.step(name);
        if span.is_recording() {
            span.set("audit-id", &self.call.audit_id);
        }
        span
    }

    /// A span of the store about one object.
    pub fn storage_span(&self, name: &str, object: &str, typed: bool) -> Span {
        let span = self.span.step(name);
        if span.is_recording() {
            span.set("audit-id", &self.call.audit_id);
            span.set("key", &self.storage_key(object));
            if typed {
                span.set("type", &self.go_type());
            }
            span.set("group", &*self.resource.gv.group);
            span.set("resource", &*self.resource.plural);
        }
        span
    }

    /// The span of a transaction of the store: it stands where kube-apiserver calls etcd.
    pub fn transaction(&self, parent: &Span, method: &str) -> Span {
        let span = parent.child(Scope::Store, Kind::Client, method);
        if span.is_recording() {
            span.set("rpc.method", method);
            span.set("rpc.response.status_code", "OK");
            span.set("rpc.system.name", "grpc");
            span.set("server.address", "127.0.0.1");
            span.set("server.port", i64::from(self.core().port()));
        }
        span
    }

    /// Says that the body was read.
    pub fn note_body(&self, body: &[u8]) {
        self.span.event_with("limitedReadBody succeeded", &[("len", body.len().into())]);
    }

    /// Says what became of a write.
    pub fn note_write(&self, body: &[u8], written: &Result<Answer, Status>) {
        let length = body.len().into();
        match written {
            Ok(_) => self.span.event_with("Write to database call succeeded", &[("len", length)]),
            Err(status) => {
                let error = status.message.as_str().into();
                self.span.event_with("Write to database call failed", &[("err", error), ("len", length)]);
            }
        }
    }

    /// Where kube-apiserver keeps an object in etcd, as some refusals name it.
    pub fn registry_key(&self, name: &str) -> String {
        format!("/registry{}", self.storage_key(name))
    }

    /// The same below the prefix of the registry, as spans name it.
    pub fn storage_key(&self, name: &str) -> String {
        let namespace = self.namespace();
        let slash = if namespace.is_empty() { "" } else { "/" };
        format!("{}/{namespace}{slash}{name}", self.storage_prefix())
    }

    /// Below what kube-apiserver keeps a collection: custom resources and their definitions by their groups, built-in kinds by their
    /// plurals, but for those that were named before there were rules.
    pub fn storage_prefix(&self) -> String {
        let (group, plural) = (&*self.resource.gv.group, &*self.resource.plural);
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

    /// kube-apiserver names the Go type that it stores.
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

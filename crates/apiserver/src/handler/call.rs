//! One request on its way through the server.

use std::sync::{Arc, Mutex, PoisonError};

use http::{HeaderMap, Method};
use serde_json::Value;

use super::Core;
use crate::{
    api::{GroupResource, ObjectKey, Status},
    auth::User,
    http::{Peer, RequestInfo, ResourcePath},
    registry::{Catalog, Resource},
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
    /// The resource.
    pub resource: &'a Arc<Resource>,
    /// The place in the path.
    pub path: &'a ResourcePath,
    /// The handler's span.
    pub span: &'a Span,
}

impl Warnings {
    /// One more; each is said once.
    pub fn add(&self, warning: impl Into<String>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let warning = warning.into();
        if !all.contains(&warning) {
            all.push(warning);
        }
    }

    /// All of them, in the order in which they came.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Call {
    /// A header as text; empty when it is absent or no text.
    pub fn header(&self, name: impl http::header::AsHeaderName) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

impl On<'_> {
    /// The server.
    pub fn core(&self) -> &Arc<Core> {
        &self.call.core
    }

    /// The collection of the objects.
    pub fn collection(&self) -> GroupResource {
        self.resource.storage()
    }

    /// As messages name the collection.
    pub fn named(&self) -> GroupResource {
        self.resource.group_resource()
    }

    /// The namespace that objects have; none for those that live in none, also for namespaces themselves.
    pub fn namespace(&self) -> &str {
        if self.resource.namespaced { &self.path.namespace } else { "" }
    }

    /// Where an object of this call is.
    pub fn key(&self, name: &str) -> ObjectKey {
        ObjectKey::new(self.collection(), self.namespace(), name)
    }

    /// The object of the path is not there.
    pub fn not_found(&self) -> Status {
        Status::not_found(&self.named(), &self.path.name)
    }

    /// Puts `apiVersion` and `kind` of this resource on an object.
    pub fn stamp(&self, object: &mut Value) {
        if let Some(object) = object.as_object_mut() {
            object.insert("apiVersion".into(), self.resource.gv.to_string().into());
            object.insert("kind".into(), (*self.resource.kind).into());
        }
    }
}

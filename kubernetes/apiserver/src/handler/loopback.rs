//! A client for the server's own controllers: writes pass the same handlers as requests, without a connection.

use std::sync::Arc;

use http::{HeaderMap, Method};
use serde_json::Value;

use super::{
    call::{ApiRequest, ResourceRequest, WarningRecorder},
    delete,
    handler_response::HandlerResponse,
    heavy_work,
    update::{self, ManagedFieldsMode, Precondition},
};
use crate::{
    api::{GroupVersion, ObjectKey, StatusError, identity},
    auth::UserInfo,
    codec::query::{DeleteOptions, WriteOptions},
    http::{ClientPeer, RequestInfo, ResourcePath},
    registry::ServedResource,
    server_state::ServerState,
    trace::TraceSpan,
};

/// The client of one controller.
#[derive(Clone, Debug)]
pub struct LoopbackClient {
    core: Arc<ServerState>,
    user: UserInfo,
    /// The field manager of its changes; none if empty.
    manager: &'static str,
}

/// The object that a controller works on.
#[derive(Clone, Debug)]
pub struct LoopbackTarget {
    path: ResourcePath,
}

impl LoopbackTarget {
    pub fn for_object(resource: &ServedResource, key: &ObjectKey) -> Self {
        let path = ResourcePath {
            gv: resource.gv.clone(),
            namespace: key.namespace.to_string(),
            resource: resource.plural.to_string(),
            name: key.name.to_string(),
            subresource: String::new(),
            rest: Vec::new(),
        };
        Self { path }
    }

    pub fn namespace(name: &str, subresource: &str) -> Self {
        let path = ResourcePath {
            gv: GroupVersion::new("", "v1"),
            namespace: name.to_owned(),
            resource: "namespaces".into(),
            name: name.to_owned(),
            subresource: subresource.to_owned(),
            rest: Vec::new(),
        };
        Self { path }
    }

    pub fn for_definition(key: &ObjectKey) -> Self {
        let path = ResourcePath {
            gv: GroupVersion::new(&key.resource.group, "v1"),
            namespace: String::new(),
            resource: key.resource.resource.to_string(),
            name: key.name.to_string(),
            subresource: String::new(),
            rest: Vec::new(),
        };
        Self { path }
    }

    /// A subresource of the object.
    #[must_use]
    pub fn with_subresource(mut self, name: &str) -> Self {
        name.clone_into(&mut self.path.subresource);
        self
    }
}

impl LoopbackClient {
    /// A client with this user name.
    pub fn new(core: &Arc<ServerState>, user: &str) -> Self {
        let user = UserInfo::new(user, ["system:masters", "system:authenticated"]);
        Self { core: Arc::clone(core), user, manager: "" }
    }

    /// Sets the field manager of its changes.
    #[must_use]
    pub fn with_field_manager(self, manager: &'static str) -> Self {
        Self { manager, ..self }
    }

    /// The current time in the format of objects.
    pub fn now(&self) -> String {
        self.core.now()
    }

    pub async fn delete(&self, target: &LoopbackTarget, options: &DeleteOptions) -> Result<(), StatusError> {
        let call = self.call(target, Method::DELETE, "delete");
        let resource = self.resource(&call, target)?;
        let on = ResourceRequest {
            call: &call,
            resource: &resource,
            view: None,
            path: &target.path,
            span: &TraceSpan::default(),
        };
        self.run(on, delete::delete_object(on, options)).await.map(drop)
    }

    pub async fn change(
        &self,
        target: &LoopbackTarget,
        change: &(dyn Fn(&mut Value) + Send + Sync),
    ) -> Result<HandlerResponse, StatusError> {
        let call = self.call(target, Method::PUT, "patch");
        let resource = self.resource(&call, target)?;
        let on = ResourceRequest {
            call: &call,
            resource: &resource,
            view: None,
            path: &target.path,
            span: &TraceSpan::default(),
        };
        let managers = if self.manager.is_empty() { ManagedFieldsMode::Keep } else { ManagedFieldsMode::Update };
        let make = |live: &Value| {
            let mut object = live.clone();
            change(&mut object);
            Ok((object, managers))
        };
        let options = WriteOptions { field_manager: self.manager.to_owned(), ..WriteOptions::default() };
        self.run(on, update::guaranteed_update(on, &options, Precondition::default(), &make)).await
    }

    /// Runs a write off the async threads if it is heavy, as for requests of clients.
    async fn run<T>(&self, on: ResourceRequest<'_>, write: impl Future<Output = T>) -> T {
        if heavy_work::is_heavy_write(on, &[]) { self.core.heavy.run(write).await } else { write.await }
    }

    fn resource(&self, call: &ApiRequest, target: &LoopbackTarget) -> Result<Arc<ServedResource>, StatusError> {
        call.catalog.get(&target.path.gv, &target.path.resource).cloned().ok_or_else(StatusError::no_such_path)
    }

    fn call(&self, target: &LoopbackTarget, method: Method, verb: &'static str) -> ApiRequest {
        ApiRequest {
            core: Arc::clone(&self.core),
            catalog: self.core.registry.catalog(),
            info: RequestInfo { verb, path: String::new(), resource: Some(target.path.clone()) },
            user: self.user.clone(),
            method,
            query: String::new(),
            headers: HeaderMap::new(),
            peer: Arc::new(ClientPeer { address: ([127, 0, 0, 1], 0).into(), user: None }),
            audit_id: identity::uid(),
            protocol: "HTTP/2.0",
            warnings: WarningRecorder::default(),
        }
    }
}

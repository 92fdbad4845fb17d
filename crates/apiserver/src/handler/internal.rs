//! The server's own controllers as clients: their writes take the same way as everybody's, without a connection.

use std::sync::Arc;

use http::{HeaderMap, Method};
use serde_json::Value;

use super::{
    answer::Answer,
    call::{Call, On, Warnings},
    delete, heavy,
    update::{self, Managers, Precondition},
};
use crate::{
    api::{GroupVersion, ObjectKey, Status, identity},
    auth::User,
    codec::query::{DeleteOptions, WriteOptions},
    core::Core,
    http::{Peer, RequestInfo, ResourcePath},
    registry::Resource,
    trace::Span,
};

/// A controller of the server.
#[derive(Clone, Debug)]
pub struct Internal {
    core: Arc<Core>,
    user: User,
    /// Who owns what it changes; nobody if empty.
    manager: &'static str,
}

/// The object that it works on.
#[derive(Clone, Debug)]
pub struct Target {
    path: ResourcePath,
}

impl Target {
    /// An object of a resource.
    pub fn of(resource: &Resource, key: &ObjectKey) -> Self {
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

    /// A namespace.
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

    /// A CustomResourceDefinition.
    pub fn definition(key: &ObjectKey) -> Self {
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

    /// A part of the object.
    #[must_use]
    pub fn subresource(mut self, name: &str) -> Self {
        name.clone_into(&mut self.path.subresource);
        self
    }
}

impl Internal {
    /// A controller with this user's name.
    pub fn new(core: &Arc<Core>, user: &str) -> Self {
        let user = User::new(user, ["system:masters", "system:authenticated"]);
        Self { core: Arc::clone(core), user, manager: "" }
    }

    /// Owns what it changes, under this name.
    #[must_use]
    pub fn managing(self, manager: &'static str) -> Self {
        Self { manager, ..self }
    }

    /// The time of now, as objects carry it.
    pub fn now(&self) -> String {
        self.core.now()
    }

    /// Deletes an object.
    pub async fn delete(&self, target: &Target, options: &DeleteOptions) -> Result<(), Status> {
        let call = self.call(target, Method::DELETE, "delete");
        let resource = self.resource(&call, target)?;
        let on = On { call: &call, resource: &resource, view: None, path: &target.path, span: &Span::default() };
        self.run(on, delete::remove(on, options)).await.map(drop)
    }

    /// Changes an object.
    pub async fn change(&self, target: &Target, change: &(dyn Fn(&mut Value) + Send + Sync)) -> Result<Answer, Status> {
        let call = self.call(target, Method::PUT, "patch");
        let resource = self.resource(&call, target)?;
        let on = On { call: &call, resource: &resource, view: None, path: &target.path, span: &Span::default() };
        let managers = if self.manager.is_empty() { Managers::Done } else { Managers::Update };
        let make = |live: &Value| {
            let mut object = live.clone();
            change(&mut object);
            Ok((object, managers))
        };
        let options = WriteOptions { field_manager: self.manager.to_owned(), ..WriteOptions::default() };
        self.run(on, update::change(on, &options, Precondition::default(), &make)).await
    }

    /// What computes for long does so on no async thread, as for requests of others.
    async fn run<T>(&self, on: On<'_>, write: impl Future<Output = T>) -> T {
        match heavy::is_heavy_write(on, &[]) {
            true => self.core.heavy.run(write).await,
            false => write.await,
        }
    }

    fn resource(&self, call: &Call, target: &Target) -> Result<Arc<Resource>, Status> {
        call.catalog.get(&target.path.gv, &target.path.resource).cloned().ok_or_else(Status::no_such_path)
    }

    fn call(&self, target: &Target, method: Method, verb: &'static str) -> Call {
        Call {
            core: Arc::clone(&self.core),
            catalog: self.core.registry.catalog(),
            info: RequestInfo { verb, path: String::new(), resource: Some(target.path.clone()) },
            user: self.user.clone(),
            method,
            query: String::new(),
            headers: HeaderMap::new(),
            peer: Arc::new(Peer { address: ([127, 0, 0, 1], 0).into(), user: None }),
            audit_id: identity::uid(),
            protocol: "HTTP/2.0",
            warnings: Warnings::default(),
        }
    }
}

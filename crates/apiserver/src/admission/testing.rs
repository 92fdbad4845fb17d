//! Requests that were never sent, for tests.

use std::sync::{Arc, atomic::AtomicU16};

use http::{HeaderMap, Method};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{Admission, Operation, Request};
use crate::{
    access::{Access, Files},
    api::{GroupResource, GroupVersion, ObjectKey},
    auth::User,
    client::{Address, Services},
    codec::query::WriteOptions,
    core::Core,
    handler::call::{Call, On, Warnings},
    http::{Peer, RequestInfo, ResourcePath},
    kinds,
    metrics::Metrics,
    registry::{Custom, Registry, Resource},
    store::{self, Store},
    trace::{Span, Tracer},
};

#[derive(Debug)]
struct Nowhere;

impl Services for Nowhere {
    fn resolve(&self, _: &str, name: &str, _: u16) -> Result<Address, String> {
        Err(format!("service {name:?} not found"))
    }
}

/// A server without sockets, with a namespace `prod` that has the label `tier=gold`.
pub async fn core() -> Arc<Core> {
    let store = Store::open(store::Options::default()).unwrap();
    let key = ObjectKey::new(GroupResource::new("", "namespaces"), "", "prod");
    store.create(key, json!({ "metadata": { "name": "prod", "labels": { "tier": "gold" } } })).await.unwrap();
    let access = Access::new(&store, Files::default(), true).unwrap();
    Arc::new(Core {
        store,
        registry: Registry::new(kinds::catalog()),
        access,
        admission: Admission::new(Arc::new(Nowhere)),
        nodes: None,
        service_accounts: false,
        tracer: Tracer::default(),
        metrics: Metrics::default(),
        clock: Timestamp::now,
        in_flight: crate::handler::in_flight::InFlightLimits::new(0, 0),
        heavy: crate::handler::heavy::HeavyWork::default(),
        body_limit: 1 << 20,
        stop: watch::Sender::new(false),
        port: AtomicU16::new(0),
    })
}

/// Serves `widgets.example.com` in these versions.
pub fn serve_widgets(core: &Core, versions: &[&str]) {
    let catalog = core.registry.catalog();
    let model = catalog.get(&GroupVersion::new("", "v1"), "configmaps").unwrap();
    for version in versions {
        let widget = Resource {
            gv: GroupVersion::new("example.com", version),
            plural: "widgets".into(),
            kind: "Widget".into(),
            schema: crate::schema::Node::Own(Arc::default()),
            custom: Some(Arc::new(Custom::default())),
            ..Resource::clone(model)
        };
        core.registry.change(|catalog| catalog.insert(Arc::new(widget.clone())));
    }
}

/// A request on its way to admission.
pub struct Stage {
    call: Call,
    resource: Arc<Resource>,
    path: ResourcePath,
    span: Span,
    options: WriteOptions,
    operation: Operation,
}

impl Stage {
    /// A request as its first line has it.
    pub fn new(core: &Arc<Core>, method: Method, target: &str) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let info = RequestInfo::new(&method, path, query);
        let path = info.resource.clone().unwrap();
        let catalog = core.registry.catalog();
        let resource = Arc::clone(catalog.get(&path.gv, &path.resource).unwrap());
        let operation = match method {
            Method::POST => Operation::Create,
            Method::DELETE => Operation::Delete,
            _ => Operation::Update,
        };
        let call = Call {
            core: Arc::clone(core),
            catalog,
            info,
            user: User::new("jane", ["system:authenticated"]),
            method,
            query: query.to_owned(),
            headers: HeaderMap::new(),
            peer: Arc::new(Peer { address: ([127, 0, 0, 1], 1).into(), user: None }),
            audit_id: String::new(),
            protocol: "HTTP/1.1",
            warnings: Warnings::default(),
        };
        let query = crate::codec::query::Query::parse(&call.query);
        let options = WriteOptions::create(&query).unwrap();
        Self { call, resource, path, span: Span::default(), options, operation }
    }

    /// As admission sees it.
    pub fn request(&self) -> Request<'_> {
        let on = On { call: &self.call, resource: &self.resource, view: None, path: &self.path, span: &self.span };
        on.review(self.operation, &self.options)
    }

    /// What the caller is told.
    pub fn warnings(&self) -> Vec<String> {
        self.call.warnings.take()
    }
}

/// An object of a name with a label.
pub fn object(name: &str, label: (&str, &str)) -> Value {
    json!({ "metadata": { "name": name, "labels": { label.0: label.1 } } })
}

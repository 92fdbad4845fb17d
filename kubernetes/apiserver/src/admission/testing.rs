//! Requests for tests, without a connection.

use std::sync::{Arc, atomic::AtomicU16};

use http::{HeaderMap, Method};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{AdmissionChain, AdmissionOperation, Request};
use crate::{
    access::{AccessControl, AuthFiles},
    api::{GroupResource, GroupVersion, ObjectKey},
    auth::UserInfo,
    client::{DialAddress, ServiceAddressResolver},
    codec::query::WriteOptions,
    handler::call::{ApiRequest, ResourceRequest, WarningRecorder},
    http::{ClientPeer, RequestInfo, ResourcePath},
    kinds,
    metrics::ApiServerMetrics,
    registry::{CustomResourceInfo, Registry, ServedResource},
    server_state::ServerState,
    store::{self, ObjectStore},
    trace::{TraceSpan, Tracer},
};

#[derive(Debug)]
struct Nowhere;

impl ServiceAddressResolver for Nowhere {
    fn resolve(&self, _: &str, name: &str, _: u16) -> Result<DialAddress, String> {
        Err(format!("service {name:?} not found"))
    }
}

/// A server without sockets, with a namespace `prod` that has the label `tier=gold`.
pub async fn core() -> Arc<ServerState> {
    let store = ObjectStore::open(store::Options::default()).unwrap();
    let key = ObjectKey::new(GroupResource::new("", "namespaces"), "", "prod");
    store.create(key, json!({ "metadata": { "name": "prod", "labels": { "tier": "gold" } } })).await.unwrap();
    let access = AccessControl::new(&store, AuthFiles::default(), true).unwrap();
    Arc::new(ServerState {
        store,
        registry: Registry::new(kinds::catalog()),
        access,
        admission: AdmissionChain::new(Arc::new(Nowhere)),
        nodes: None,
        service_accounts: false,
        tracer: Tracer::default(),
        metrics: ApiServerMetrics::default(),
        clock: Timestamp::now,
        in_flight: crate::handler::in_flight::InFlightLimits::new(0, 0),
        heavy: crate::handler::heavy_work::HeavyWork::default(),
        body_limit: 1 << 20,
        stop: watch::Sender::new(false),
        port: AtomicU16::new(0),
    })
}

/// Serves `widgets.example.com` in the given versions.
pub fn serve_widgets(core: &ServerState, versions: &[&str]) {
    let catalog = core.registry.catalog();
    let model = catalog.get(&GroupVersion::new("", "v1"), "configmaps").unwrap();
    for version in versions {
        let widget = ServedResource {
            gv: GroupVersion::new("example.com", version),
            plural: "widgets".into(),
            kind: "Widget".into(),
            schema: crate::schema::SchemaNode::Own(Arc::default()),
            custom: Some(Arc::new(CustomResourceInfo::default())),
            ..ServedResource::clone(model)
        };
        core.registry.update_catalog(|catalog| catalog.insert(Arc::new(widget.clone())));
    }
}

/// A request about to be admitted.
pub struct Stage {
    call: ApiRequest,
    resource: Arc<ServedResource>,
    path: ResourcePath,
    span: TraceSpan,
    options: WriteOptions,
    operation: AdmissionOperation,
}

impl Stage {
    /// A request with this method and target.
    pub fn new(core: &Arc<ServerState>, method: Method, target: &str) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let info = RequestInfo::new(&method, path, query);
        let path = info.resource.clone().unwrap();
        let catalog = core.registry.catalog();
        let resource = Arc::clone(catalog.get(&path.gv, &path.resource).unwrap());
        let operation = match method {
            Method::POST => AdmissionOperation::Create,
            Method::DELETE => AdmissionOperation::Delete,
            _ => AdmissionOperation::Update,
        };
        let call = ApiRequest {
            core: Arc::clone(core),
            catalog,
            info,
            user: UserInfo::new("jane", ["system:authenticated"]),
            method,
            query: query.to_owned(),
            headers: HeaderMap::new(),
            peer: Arc::new(ClientPeer { address: ([127, 0, 0, 1], 1).into(), user: None }),
            audit_id: String::new(),
            protocol: "HTTP/1.1",
            warnings: WarningRecorder::default(),
        };
        let query = crate::codec::query::QueryParameters::parse(&call.query);
        let options = WriteOptions::for_create(&query).unwrap();
        Self { call, resource, path, span: TraceSpan::default(), options, operation }
    }

    pub fn request(&self) -> Request<'_> {
        let on = ResourceRequest {
            call: &self.call,
            resource: &self.resource,
            view: None,
            path: &self.path,
            span: &self.span,
        };
        on.review(self.operation, &self.options)
    }

    /// The warnings for the caller.
    pub fn warnings(&self) -> Vec<String> {
        self.call.warnings.take()
    }
}

/// An object with a name and a label.
pub fn object(name: &str, label: (&str, &str)) -> Value {
    json!({ "metadata": { "name": name, "labels": { label.0: label.1 } } })
}

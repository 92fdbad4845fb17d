//! The endpoints at which the collector shows itself: metrics, and health.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};

use kubewake_config::{
    ComponentId, Document,
    model::{Extension, ServerTls},
};
use rustls::ServerConfig;
use tokio::net::TcpListener;

use crate::{
    components::BuildError,
    engine::ApplyError,
    net::{sockets::Claims, tls},
    telemetry::{MetricsRoutes, Routes, Server, Telemetry},
};

/// Where the collector shows itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Endpoints {
    /// Of `/metrics`.
    pub metrics: Option<SocketAddr>,
    /// Of the first `health_check`.
    pub health: Option<SocketAddr>,
}

/// Who serves.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Metrics,
    Extension(ComponentId),
}

struct Running {
    endpoint: String,
    server: Server,
}

/// An endpoint that is bound and checked, and does not serve yet.
struct Ready {
    endpoint: String,
    tls: Option<Arc<ServerConfig>>,
    routes: Arc<dyn Routes>,
    /// `None`: the address is the one that is served already.
    listener: Option<Arc<TcpListener>>,
}

/// The endpoints of a new document.
pub(super) struct Change(BTreeMap<Key, Ready>);

pub(super) struct Console {
    telemetry: Arc<Telemetry>,
    servers: BTreeMap<Key, Running>,
}

impl Console {
    pub(super) fn new(telemetry: Arc<Telemetry>) -> Self {
        Self { telemetry, servers: BTreeMap::new() }
    }

    /// Binds what `document` asks for beyond what is served.
    pub(super) fn prepare(&self, document: &Document, claims: &Claims) -> Result<Change, Vec<ApplyError>> {
        let (mut ready, mut errors) = (BTreeMap::new(), Vec::new());
        let mut add = |key: Key, path: String, result: Result<Ready, BuildError>| match result {
            Ok(one) => drop(ready.insert(key, one)),
            Err(error) => errors.push(ApplyError { path, message: error.0 }),
        };
        let metrics = &document.service.telemetry.metrics;
        if let Some(endpoint) = &metrics.endpoint {
            let routes = Arc::new(MetricsRoutes::new(self.telemetry.clone(), metrics.level));
            let result = self.ready(&Key::Metrics, endpoint, None, routes, claims);
            add(Key::Metrics, "service::telemetry::metrics".into(), result);
        }
        for id in &document.service.extensions {
            let Some(Extension::HealthCheck(settings)) = document.extensions.get(id) else { continue };
            let key = Key::Extension(id.clone());
            let result = self
                .health(settings)
                .and_then(|routes| self.ready(&key, &settings.endpoint, settings.tls.as_ref(), routes, claims));
            add(key, format!("extensions::{id}"), result);
        }
        if errors.is_empty() { Ok(Change(ready)) } else { Err(errors) }
    }

    #[cfg(feature = "extension-health-check")]
    fn health(&self, settings: &kubewake_config::model::HealthCheck) -> Result<Arc<dyn Routes>, BuildError> {
        Ok(Arc::new(crate::extension::health::HealthRoutes::new(settings, self.telemetry.clone())))
    }

    #[cfg(not(feature = "extension-health-check"))]
    fn health(&self, _: &kubewake_config::model::HealthCheck) -> Result<Arc<dyn Routes>, BuildError> {
        Err(BuildError("health_check is not part of this build".into()))
    }

    fn ready(
        &self,
        key: &Key,
        endpoint: &str,
        settings: Option<&ServerTls>,
        routes: Arc<dyn Routes>,
        claims: &Claims,
    ) -> Result<Ready, BuildError> {
        let listener = match self.servers.get(key).filter(|running| running.endpoint == endpoint) {
            Some(served) => claims.keep(served.server.address()).map(|()| None)?,
            None => Some(claims.bind(endpoint)?),
        };
        let tls = settings.map(|settings| tls::server_config(settings, &[b"http/1.1"])).transpose()?;
        Ok(Ready { endpoint: endpoint.to_owned(), tls, routes, listener })
    }

    /// Serves what was prepared, and nothing else.
    pub(super) fn commit(&mut self, change: Change) {
        let mut old = std::mem::take(&mut self.servers);
        for (key, Ready { endpoint, tls, routes, listener }) in change.0 {
            let running = match (listener, old.remove(&key)) {
                (None, Some(running)) => {
                    running.server.reconfigure(tls, routes);
                    Some(running)
                }
                (Some(listener), _) => match Server::start(listener, tls, routes) {
                    Ok(server) => Some(Running { endpoint, server }),
                    Err(error) => {
                        tracing::error!(endpoint, %error, "the listener failed as it was opened");
                        None
                    }
                },
                (None, None) => None,
            };
            self.servers.extend(running.map(|running| (key, running)));
        }
    }

    /// Where metrics are served, and where health is.
    pub(super) fn endpoints(&self) -> Endpoints {
        let address = |key: &Key| self.servers.get(key).map(|running| running.server.address());
        let health = self.servers.keys().find(|key| matches!(key, Key::Extension(_)));
        Endpoints { metrics: address(&Key::Metrics), health: health.and_then(address) }
    }

    pub(super) async fn stop(&mut self) {
        for running in std::mem::take(&mut self.servers).into_values() {
            running.server.stop().await;
        }
    }
}

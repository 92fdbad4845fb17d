//! The servers for metrics and health.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};

use kubewake_config::{CollectorDocument, ComponentId, model::ServerTls};
use rustls::ServerConfig;
use tokio::net::TcpListener;

use crate::{
    components::{BuildError, ExtensionContext},
    engine::ApplyError,
    extension::{self, ExtensionEndpoint},
    net::{listener_pool::AddressClaims, tls},
    telemetry::{MetricsRoutes, RouteHandler, TelemetryServer, TelemetryState},
};

/// The addresses of the servers.
#[derive(Clone, Copy, Debug, Default)]
pub struct TelemetryEndpoints {
    pub metrics: Option<SocketAddr>,
    pub health: Option<SocketAddr>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ServerKey {
    Metrics,
    Extension(ComponentId),
}

struct RunningServer {
    endpoint: String,
    server: TelemetryServer,
}

/// An endpoint that is bound and checked, and does not serve yet.
struct PreparedServer {
    endpoint: String,
    tls: Option<Arc<ServerConfig>>,
    routes: Arc<dyn RouteHandler>,
    /// `None` if the address is served already.
    listener: Option<Arc<TcpListener>>,
}

/// The endpoints of a new document.
pub(super) struct ServerChanges(BTreeMap<ServerKey, PreparedServer>);

pub(super) struct TelemetryServers {
    telemetry: Arc<TelemetryState>,
    servers: BTreeMap<ServerKey, RunningServer>,
}

impl TelemetryServers {
    pub(super) fn new(telemetry: Arc<TelemetryState>) -> Self {
        Self { telemetry, servers: BTreeMap::new() }
    }

    /// Binds the endpoints that `document` needs beyond the current ones.
    pub(super) fn prepare(
        &self,
        document: &CollectorDocument,
        claims: &AddressClaims,
    ) -> Result<ServerChanges, Vec<ApplyError>> {
        let mut ready = BTreeMap::new();
        let mut errors = Vec::new();
        let mut add = |key: ServerKey, path: String, result: Result<PreparedServer, BuildError>| match result {
            Ok(one) => drop(ready.insert(key, one)),
            Err(error) => errors.push(ApplyError { path, message: error.0 }),
        };
        let metrics = &document.service.telemetry.metrics;
        if let Some(endpoint) = &metrics.endpoint {
            let routes = Arc::new(MetricsRoutes::new(self.telemetry.clone(), metrics.level));
            let result = self.prepare_server(&ServerKey::Metrics, endpoint, None, routes, claims);
            add(ServerKey::Metrics, "service::telemetry::metrics".into(), result);
        }
        for id in &document.service.extensions {
            let Some(settings) = document.extensions.get(id) else { continue };
            // The engine reports an extension that this build lacks.
            let Ok(extension) = extension::prepare(settings, &ExtensionContext { id }) else { continue };
            let Some(ExtensionEndpoint { endpoint, tls, routes }) = extension.endpoint() else { continue };
            let key = ServerKey::Extension(id.clone());
            let result = self.prepare_server(&key, &endpoint, tls.as_ref(), routes(self.telemetry.clone()), claims);
            add(key, format!("extensions::{id}"), result);
        }
        if errors.is_empty() { Ok(ServerChanges(ready)) } else { Err(errors) }
    }

    fn prepare_server(
        &self,
        key: &ServerKey,
        endpoint: &str,
        settings: Option<&ServerTls>,
        routes: Arc<dyn RouteHandler>,
        claims: &AddressClaims,
    ) -> Result<PreparedServer, BuildError> {
        let listener = match self.servers.get(key).filter(|running| running.endpoint == endpoint) {
            Some(served) => claims.claim(served.server.address()).map(|()| None)?,
            None => Some(claims.bind(endpoint)?),
        };
        let tls = settings.map(|settings| tls::server_config(settings, &[b"http/1.1"])).transpose()?;
        Ok(PreparedServer { endpoint: endpoint.to_owned(), tls, routes, listener })
    }

    /// Serves the prepared endpoints, and no others.
    pub(super) fn commit(&mut self, change: ServerChanges) {
        let mut old = std::mem::take(&mut self.servers);
        for (key, PreparedServer { endpoint, tls, routes, listener }) in change.0 {
            let running = match (listener, old.remove(&key)) {
                (None, Some(running)) => {
                    running.server.reconfigure(tls, routes);
                    Some(running)
                }
                (Some(listener), _) => match TelemetryServer::start(listener, tls, routes) {
                    Ok(server) => Some(RunningServer { endpoint, server }),
                    Err(error) => {
                        tracing::error!(endpoint, %error, "failed to open the listener");
                        None
                    }
                },
                (None, None) => None,
            };
            self.servers.extend(running.map(|running| (key, running)));
        }
    }

    pub(super) fn endpoints(&self) -> TelemetryEndpoints {
        let address = |key: &ServerKey| self.servers.get(key).map(|running| running.server.address());
        let health = self.servers.keys().find(|key| matches!(key, ServerKey::Extension(_)));
        TelemetryEndpoints { metrics: address(&ServerKey::Metrics), health: health.and_then(address) }
    }

    pub(super) async fn stop(&mut self) {
        for running in std::mem::take(&mut self.servers).into_values() {
            running.server.stop().await;
        }
    }
}

//! How peers are reached, and all that is known before there are any.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use kubewake_config::model::{LoadBalancingExporter, OtlpGrpcExporter, Queue, Resolver, Retry, RoutingKey};
use kubewake_otlp::Signal;
use tokio::net::TcpStream;

use crate::{
    components::{BuildError, BuiltExporter},
    exporter::otlp_grpc,
    extension::ClientAuth,
};

/// How long a knock at a peer may take.
const KNOCK_LIMIT: Duration = Duration::from_secs(5);

/// How peers are reached.
pub(super) trait Dial: Send + Sync {
    /// An exporter to one.
    fn exporter(&self, endpoint: &str) -> Result<BuiltExporter, BuildError>;

    /// Whether somebody is there.
    fn reaches<'a>(&'a self, endpoint: &'a str) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>>;
}

/// By OTLP over gRPC, as the document says.
struct Otlp {
    template: OtlpGrpcExporter,
    signal: Signal,
    auth: Option<Arc<dyn ClientAuth>>,
}

impl Dial for Otlp {
    fn exporter(&self, endpoint: &str) -> Result<BuiltExporter, BuildError> {
        let settings = OtlpGrpcExporter { endpoint: endpoint.to_owned(), ..self.template.clone() };
        otlp_grpc::build(&settings, self.signal, self.auth.clone())
    }

    fn reaches<'a>(&'a self, endpoint: &'a str) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> {
        Box::pin(
            async move { matches!(tokio::time::timeout(KNOCK_LIMIT, TcpStream::connect(endpoint)).await, Ok(Ok(_))) },
        )
    }
}

/// Settings that were checked.
pub struct Prepared {
    pub(super) dial: Arc<dyn Dial>,
    pub(super) resolver: Resolver,
    pub(super) routing: Option<RoutingKey>,
    pub(super) timeout: Option<Duration>,
    pub(super) retry: Option<Retry>,
    pub(super) queue: Option<Queue>,
    /// How long a peer is tried.
    pub(super) peer_retry: Option<Retry>,
}

/// Checks all that can be known before there are peers.
pub(crate) fn prepare(
    settings: &LoadBalancingExporter,
    signal: Signal,
    auth: Option<Arc<dyn ClientAuth>>,
) -> Result<Prepared, BuildError> {
    let dial = Otlp { template: settings.otlp.clone(), signal, auth };
    match &settings.resolver {
        Resolver::Static(endpoints) => endpoints.iter().try_for_each(|peer| dial.exporter(peer).map(drop))?,
        // Any name will do: certificates, headers and credentials are the same for all.
        Resolver::Dns(_) | Resolver::Kubernetes(_) => drop(dial.exporter("peer:4317")?),
    }
    Ok(Prepared {
        dial: Arc::new(dial),
        resolver: settings.resolver.clone(),
        routing: settings.routing.clone(),
        timeout: settings.timeout,
        retry: settings.retry.clone(),
        queue: settings.queue.clone(),
        peer_retry: settings.otlp.retry.clone(),
    })
}

//! Connects to peers, and checks settings before any peer is known.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use kubewake_config::model::{
    LoadBalancingExporter, OtlpGrpcExporter, PeerResolver, QueueConfig, RetryConfig, RoutingKey,
};
use kubewake_otlp::Signal;

use crate::{
    components::{BuildError, ExporterParts},
    core::{BackendStatus, Batch, Charge, Part},
    exporter::otlp_grpc,
    extension::ClientAuth,
};

/// Time limit of a probe where attempts have none.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) trait PeerDialer: Send + Sync {
    fn build_exporter(&self, endpoint: &str) -> Result<ExporterParts, BuildError>;

    /// Whether a peer answers requests at this endpoint.
    fn probe<'a>(&'a self, endpoint: &'a str) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>>;
}

/// Connects by OTLP over gRPC, as configured.
struct OtlpDialer {
    template: OtlpGrpcExporter,
    signal: Signal,
    auth: Option<Arc<dyn ClientAuth>>,
}

impl OtlpDialer {
    fn settings(&self, endpoint: &str) -> OtlpGrpcExporter {
        OtlpGrpcExporter { endpoint: endpoint.into(), ..self.template.clone() }
    }

    /// Sends an empty request, on a connection of its own, with the timeout of any other request. A connection
    /// alone proves little: the kernel accepts it even for a program that hangs.
    async fn send_probe(&self, endpoint: &str) -> bool {
        let built = otlp_grpc::build_without_warning(&self.settings(endpoint), self.signal, self.auth.clone());
        let Ok(ExporterParts { exporter, timeout, .. }) = built else { return false };
        let nothing = Part::new(Bytes::new(), 0, Arc::default(), Arc::new(Charge::exempt()));
        let nothing = Batch::single(self.signal, nothing);
        match tokio::time::timeout(timeout.unwrap_or(PROBE_TIMEOUT), exporter.send(&nothing)).await {
            Ok(Ok(_)) => true,
            // Any response proves that the peer answers.
            Ok(Err(error)) => matches!(error.backend_status, Some(BackendStatus::Grpc(_) | BackendStatus::Http(_))),
            Err(_) => false,
        }
    }
}

impl PeerDialer for OtlpDialer {
    fn build_exporter(&self, endpoint: &str) -> Result<ExporterParts, BuildError> {
        otlp_grpc::build(&self.settings(endpoint), self.signal, self.auth.clone())
    }

    fn probe<'a>(&'a self, endpoint: &'a str) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> {
        Box::pin(self.send_probe(endpoint))
    }
}

pub struct PreparedBalancer {
    pub(super) dialer: Arc<dyn PeerDialer>,
    pub(super) resolver: PeerResolver,
    pub(super) routing: Option<RoutingKey>,
    pub(super) timeout: Option<Duration>,
    pub(super) retry: Option<RetryConfig>,
    pub(super) queue: Option<QueueConfig>,
    /// Retries for one peer.
    pub(super) peer_retry: Option<RetryConfig>,
}

/// Checks all settings that can be checked before there are peers.
pub(crate) fn prepare(
    settings: &LoadBalancingExporter,
    signal: Signal,
    auth: Option<Arc<dyn ClientAuth>>,
) -> Result<PreparedBalancer, BuildError> {
    let dial = OtlpDialer { template: settings.otlp.clone(), signal, auth };
    match &settings.resolver {
        PeerResolver::Static(endpoints) => endpoints.iter().try_for_each(|peer| dial.build_exporter(peer).map(drop))?,
        // Any name will do: certificates, headers and credentials are the same for all peers.
        PeerResolver::Dns(_) | PeerResolver::Kubernetes(_) => drop(dial.build_exporter("peer:4317")?),
    }
    Ok(PreparedBalancer {
        dialer: Arc::new(dial),
        resolver: settings.resolver.clone(),
        routing: settings.routing.clone(),
        timeout: settings.timeout,
        retry: settings.retry.clone(),
        queue: settings.queue.clone(),
        peer_retry: settings.otlp.retry.clone(),
    })
}

#[cfg(test)]
mod tests {
    use kubewake_config::{
        ConfigText,
        model::{ClientTls, CompressionType},
    };
    use tokio::net::TcpListener;

    use super::*;
    use crate::net::testing::{Backend, Reply, Speaks};

    /// Whether a probe with a short timeout is answered.
    async fn reaches(endpoint: &str, moment: Duration) -> bool {
        let template = OtlpGrpcExporter {
            endpoint: ConfigText::default(),
            tls: ClientTls { insecure: true, ..ClientTls::default() },
            compression: CompressionType::Gzip,
            headers: Vec::new(),
            authority: None,
            auth: None,
            keepalive: None,
            timeout: Some(moment),
            retry: None,
            queue: None,
        };
        OtlpDialer { template, signal: Signal::Traces, auth: None }.probe(endpoint).await
    }

    #[tokio::test]
    async fn whoever_answers_is_there_whatever_the_answer() {
        for status in ["0", "14", "16"] {
            let reply = Reply::grpc(&[], &[("grpc-status", status)]);
            let backend = Backend::start(Speaks::Http2, None, move |_, _| reply.clone()).await;
            assert!(reaches(&backend.address.to_string(), Duration::from_secs(60)).await, "{status}");
        }
    }

    #[tokio::test]
    async fn one_who_can_be_connected_to_and_says_nothing_is_not() {
        // The kernel accepts connections for it, as for a stopped program.
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = silent.local_addr().unwrap().to_string();
        assert!(!reaches(&endpoint, Duration::from_millis(100)).await);
        drop(silent);
        assert!(!reaches(&endpoint, Duration::from_secs(60)).await, "nor one who is gone");
    }
}

//! How peers are reached, and all that is known before there are any.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use kubewake_config::model::{LoadBalancingExporter, OtlpGrpcExporter, Queue, Resolver, Retry, RoutingKey};
use kubewake_otlp::Signal;

use crate::{
    components::{BuildError, BuiltExporter},
    core::{Batch, Charge, Part, Said},
    exporter::otlp_grpc,
    extension::ClientAuth,
};

/// How long a knock at a peer may take where attempts have no limit.
const KNOCK_LIMIT: Duration = Duration::from_secs(5);

/// How peers are reached.
pub(super) trait Dial: Send + Sync {
    /// An exporter to one.
    fn exporter(&self, endpoint: &str) -> Result<BuiltExporter, BuildError>;

    /// Whether somebody is there, and answers requests.
    fn reaches<'a>(&'a self, endpoint: &'a str) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>>;
}

/// By OTLP over gRPC, as the document says.
struct Otlp {
    template: OtlpGrpcExporter,
    signal: Signal,
    auth: Option<Arc<dyn ClientAuth>>,
}

impl Otlp {
    fn settings(&self, endpoint: &str) -> OtlpGrpcExporter {
        OtlpGrpcExporter { endpoint: endpoint.to_owned(), ..self.template.clone() }
    }

    /// Sends a request without anything in it, on a connection of its own, and waits as long as for any other. A connection alone
    /// says little: that of a program which hangs is made by the kernel.
    async fn knock(&self, endpoint: &str) -> bool {
        let built = otlp_grpc::build_again(&self.settings(endpoint), self.signal, self.auth.clone());
        let Ok(BuiltExporter { exporter, timeout, .. }) = built else { return false };
        let nothing = Part::new(Bytes::new(), 0, Arc::default(), Arc::new(Charge::free()));
        let nothing = Batch::single(self.signal, nothing);
        match tokio::time::timeout(timeout.unwrap_or(KNOCK_LIMIT), exporter.send(&nothing)).await {
            Ok(Ok(_)) => true,
            // It answers, whatever it says.
            Ok(Err(error)) => matches!(error.said, Some(Said::Grpc(_) | Said::Http(_))),
            Err(_) => false,
        }
    }
}

impl Dial for Otlp {
    fn exporter(&self, endpoint: &str) -> Result<BuiltExporter, BuildError> {
        otlp_grpc::build(&self.settings(endpoint), self.signal, self.auth.clone())
    }

    fn reaches<'a>(&'a self, endpoint: &'a str) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> {
        Box::pin(self.knock(endpoint))
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

#[cfg(test)]
mod tests {
    use kubewake_config::model::{ClientTls, Compression};
    use tokio::net::TcpListener;

    use super::*;
    use crate::net::testing::{Backend, Reply, Speaks};

    /// Whether a knock is answered, by one who is given a moment for it.
    async fn reaches(endpoint: &str, moment: Duration) -> bool {
        let template = OtlpGrpcExporter {
            endpoint: String::new(),
            tls: ClientTls { insecure: true, ..ClientTls::default() },
            compression: Compression::Gzip,
            headers: Vec::new(),
            authority: None,
            auth: None,
            keepalive: None,
            timeout: Some(moment),
            retry: None,
            queue: None,
        };
        Otlp { template, signal: Signal::Traces, auth: None }.reaches(endpoint).await
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
        // The kernel makes connections for it, as it does for a program that was stopped.
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = silent.local_addr().unwrap().to_string();
        assert!(!reaches(&endpoint, Duration::from_millis(100)).await);
        drop(silent);
        assert!(!reaches(&endpoint, Duration::from_secs(60)).await, "nor one who is gone");
    }
}

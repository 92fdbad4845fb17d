//! Receives OTLP with the collector's receiver, and puts it into the store.
//!
//! gRPC and HTTP, protobuf and JSON, and every compression that the collector supports. Spans that the store
//! rejects are reported to their sender (partial success). The memory for requests in flight is bounded
//! separately from the store's. Logs are passed to readers who follow them, and not stored. Metrics are accepted
//! and dropped, so that a program that exports all three needs no other configuration for the viewer; the log
//! says so once.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use http::{HeaderMap, header::HOST};
use kubewake_collector::{
    components::Receiver as _,
    core::{
        Allowance, Batch, Budget, ConsumeOutcome, Consumer, DropReason, OverflowPolicy, PartialSuccess, Pipeline,
        PipelineSet, StatsRegistry,
    },
    extension::{AuthDecision, AuthRefusal, ServerAuth},
    receiver::otlp,
};
use kubewake_config::{
    PipelineId,
    model::{GrpcServer, HttpServer, OtlpReceiver},
};
use kubewake_otlp::Signal;

use crate::{
    ViewerError,
    log_tail::LogTail,
    serve::is_known_host,
    store::{RejectedSpans, StoreWriter},
};

/// Memory for requests in flight.
const MAX_IN_FLIGHT_BYTES: u64 = 128 << 20;
/// The largest request. Collectors batch by number of items, and some items are large.
const MAX_REQUEST_BYTES: u64 = 32 << 20;
/// How long requests in flight may take at shutdown.
const SHUTDOWN_GRACE_PERIOD: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub struct ReceiverAddresses {
    pub grpc: Option<SocketAddr>,
    pub http: Option<SocketAddr>,
    /// Host names, beside addresses and `localhost`, that requests over HTTP to a loopback address may use.
    pub hosts: Vec<String>,
}

/// Rejects requests whose host name may be under somebody else's control. Otherwise a web page could write
/// spans after its name is made to resolve to the loopback address (DNS rebinding): to the browser these are
/// requests to the page's own server.
struct HostGuard {
    hosts: Vec<String>,
}

impl ServerAuth for HostGuard {
    fn authenticate(&self, headers: &HeaderMap, _: IpAddr) -> AuthDecision {
        // Browsers always send a host.
        let is_served = match headers.get(HOST) {
            None => true,
            Some(host) => host.to_str().is_ok_and(|host| is_known_host(host, &self.hosts)),
        };
        let refusal = AuthRefusal::Forbidden("host name not allowed; add it with --allow-host");
        AuthDecision::Now(if is_served { Ok(None) } else { Err(refusal) })
    }
}

pub struct ViewerReceiver(otlp::OtlpServer);

impl std::fmt::Debug for ViewerReceiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Receiver").field("grpc", &self.grpc()).field("http", &self.http()).finish()
    }
}

impl ViewerReceiver {
    /// Starts the receivers, which write to the store, and pass log records to their readers.
    pub(crate) fn start(
        settings: &ReceiverAddresses,
        keeper: StoreWriter,
        logs: Arc<LogTail>,
    ) -> Result<Self, ViewerError> {
        let budget = Budget::new(MAX_IN_FLIGHT_BYTES, 0);
        let intake = Arc::new(PipelineSet::default());
        let feed = |signal, consumer: Arc<dyn Consumer>| {
            let id = PipelineId { signal, name: None };
            let pipeline = Pipeline::new(id, Allowance { member: budget.join(), limiter: None }, Arc::default());
            pipeline.head().set_targets(vec![consumer]);
            intake.set_pipelines(signal, vec![pipeline]);
        };
        feed(Signal::Traces, Arc::new(StoreConsumer(keeper)));
        feed(Signal::Logs, Arc::new(LogConsumer(logs)));
        feed(Signal::Metrics, Arc::new(DiscardingConsumer::new("metrics")));
        let grpc = settings.grpc.map(|at| GrpcServer {
            endpoint: at.to_string().into(),
            max_message_bytes: MAX_REQUEST_BYTES,
            ..GrpcServer::default()
        });
        let http = settings.http.map(|at| HttpServer {
            endpoint: at.to_string().into(),
            max_body_bytes: MAX_REQUEST_BYTES,
            ..HttpServer::default()
        });
        // Other addresses are reached by names of a cluster or a network, which are not known here.
        let is_loopback = settings.http.is_some_and(|at| at.ip().is_loopback());
        let hosts = settings.hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        let guard = is_loopback.then(|| Arc::new(HostGuard { hosts }) as Arc<dyn ServerAuth>);
        let listening = otlp::listen(&OtlpReceiver { grpc, http }, guard, &intake, &StatsRegistry::default());
        listening.map(Self).map_err(|error| ViewerError::Otlp(error.to_string()))
    }

    pub fn grpc(&self) -> Option<SocketAddr> {
        self.0.grpc_address()
    }

    pub fn http(&self) -> Option<SocketAddr> {
        self.0.http_address()
    }

    pub(crate) async fn shutdown(&self) {
        self.0.shutdown();
        if tokio::time::timeout(SHUTDOWN_GRACE_PERIOD, self.0.wait_closed()).await.is_err() {
            self.0.abort();
            self.0.wait_closed().await;
        }
    }
}

pub(crate) fn unix_nanos_now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Writes traces to the store.
struct StoreConsumer(StoreWriter);

impl Consumer for StoreConsumer {
    fn consume(self: Arc<Self>, batch: Batch, _: OverflowPolicy) -> ConsumeOutcome {
        let mut rejected = RejectedSpans::default();
        for part in batch.parts() {
            rejected += self.0.write_request(&part.bytes).rejected;
        }
        match rejected.spans() {
            0 => ConsumeOutcome::Now(Ok(())),
            items => ConsumeOutcome::Partial(Box::new(PartialSuccess { items, message: rejected.to_string() })),
        }
    }

    fn count_refused(&self, _: &Batch) {}

    fn count_lost(&self, _: &Batch, _: DropReason) {}
}

/// Passes log records to readers who follow them.
struct LogConsumer(Arc<LogTail>);

impl Consumer for LogConsumer {
    fn consume(self: Arc<Self>, batch: Batch, _: OverflowPolicy) -> ConsumeOutcome {
        batch.parts().iter().for_each(|part| self.0.publish(&part.bytes));
        ConsumeOutcome::Now(Ok(()))
    }

    fn count_refused(&self, _: &Batch) {}

    fn count_lost(&self, _: &Batch, _: DropReason) {}
}

struct DiscardingConsumer {
    signal: &'static str,
    has_warned: AtomicBool,
}

impl DiscardingConsumer {
    fn new(signal: &'static str) -> Self {
        Self { signal, has_warned: AtomicBool::new(false) }
    }
}

impl Consumer for DiscardingConsumer {
    fn consume(self: Arc<Self>, _: Batch, _: OverflowPolicy) -> ConsumeOutcome {
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            tracing::info!(signal = self.signal, "received data is dropped: the viewer has no metrics");
        }
        ConsumeOutcome::Now(Ok(()))
    }

    fn count_refused(&self, _: &Batch) {}

    fn count_lost(&self, _: &Batch, _: DropReason) {}
}

//! OTLP into the store: the collector's own receiver, with the store behind it.
//!
//! gRPC and HTTP, protobuf and JSON, and every compression that the collector knows. A sender is told of spans that the store does not take (partial success). Memory for requests under way is bounded apart from the store's. Metrics and logs
//! are accepted and dropped, so that a program that sends all three need not be told that this is a viewer of traces; the log says so once.

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
    core::{Allowance, Answer, Batch, Budget, Consumer, DropReason, Intake, Pipeline, Pressure, Registry, Shortfall},
    extension::{AuthRefusal, ServerAuth, Verdict},
    receiver::{Receiver as _, otlp},
};
use kubewake_config::{
    PipelineId,
    model::{GrpcServer, HttpServer, OtlpReceiver},
};
use kubewake_otlp::Signal;

use crate::{
    Error,
    serve::is_known,
    store::{Keeper, Rejected},
};

/// What requests under way may take.
const UNDER_WAY: u64 = 128 << 20;
/// The largest request. Collectors batch by items, and some items are large.
const REQUEST: u64 = 32 << 20;
/// How long requests under way may take to end.
const GRACE: Duration = Duration::from_secs(2);

/// Where to listen.
#[derive(Clone, Debug)]
pub struct Settings {
    /// For gRPC.
    pub grpc: Option<SocketAddr>,
    /// For HTTP.
    pub http: Option<SocketAddr>,
    /// Names, beside addresses and `localhost`, by which requests over HTTP may ask for a loopback address.
    pub hosts: Vec<String>,
}

/// Refuses requests that ask for this machine by a name which somebody else may control. A web page whose name suddenly points to
/// the loopback address (DNS rebinding) could write spans otherwise: to the browser it asks its own server.
struct HostGuard {
    hosts: Vec<String>,
}

impl ServerAuth for HostGuard {
    fn authenticate(&self, headers: &HeaderMap, _: IpAddr) -> Verdict {
        // A browser always names a host.
        let is_served = match headers.get(HOST) {
            None => true,
            Some(host) => host.to_str().is_ok_and(|host| is_known(host, &self.hosts)),
        };
        let refusal = AuthRefusal::Forbidden("this host name is not served here; --allow-host adds one");
        Verdict::Now(if is_served { Ok(None) } else { Err(refusal) })
    }
}

/// A receiver that runs.
pub struct Receiver(otlp::Otlp);

impl std::fmt::Debug for Receiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Receiver").field("grpc", &self.grpc()).field("http", &self.http()).finish()
    }
}

impl Receiver {
    /// Listens, and puts what comes into the store.
    pub(crate) fn start(settings: &Settings, keeper: Keeper) -> Result<Self, Error> {
        let budget = Budget::new(UNDER_WAY, 0);
        let intake = Arc::new(Intake::default());
        let feed = |signal, consumer: Arc<dyn Consumer>| {
            let id = PipelineId { signal, name: None };
            let pipeline = Pipeline::new(id, Allowance { member: budget.join(), limiter: None }, Arc::default());
            pipeline.head().point_at(vec![consumer]);
            intake.point_at(signal, vec![pipeline]);
        };
        feed(Signal::Traces, Arc::new(Sink(keeper)));
        feed(Signal::Metrics, Arc::new(Ignorer::new("metrics")));
        feed(Signal::Logs, Arc::new(Ignorer::new("logs")));
        let grpc = settings.grpc.map(|at| GrpcServer {
            endpoint: at.to_string(),
            max_message_bytes: REQUEST,
            ..GrpcServer::default()
        });
        let http = settings.http.map(|at| HttpServer {
            endpoint: at.to_string(),
            max_body_bytes: REQUEST,
            ..HttpServer::default()
        });
        // Other addresses are asked for by names of a cluster or a network, which are not known here.
        let is_loopback = settings.http.is_some_and(|at| at.ip().is_loopback());
        let hosts = settings.hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        let guard = is_loopback.then(|| Arc::new(HostGuard { hosts }) as Arc<dyn ServerAuth>);
        let listening = otlp::listen(&OtlpReceiver { grpc, http }, guard, &intake, &Registry::default());
        listening.map(Self).map_err(|error| Error::Otlp(error.to_string()))
    }

    /// Where gRPC is served.
    pub fn grpc(&self) -> Option<SocketAddr> {
        self.0.grpc_address()
    }

    /// Where HTTP is served.
    pub fn http(&self) -> Option<SocketAddr> {
        self.0.http_address()
    }

    /// Takes no more.
    pub(crate) async fn stop(&self) {
        self.0.close();
        if tokio::time::timeout(GRACE, self.0.closed()).await.is_err() {
            self.0.cut();
            self.0.closed().await;
        }
    }
}

/// Nanoseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Puts traces into the store.
struct Sink(Keeper);

impl Consumer for Sink {
    fn consume(self: Arc<Self>, batch: Batch, _: Pressure) -> Answer {
        let mut rejected = Rejected::default();
        for part in batch.parts() {
            rejected += self.0.keep(&part.bytes).rejected;
        }
        match rejected.spans() {
            0 => Answer::Now(Ok(())),
            items => Answer::Partly(Box::new(Shortfall { items, message: rejected.to_string() })),
        }
    }

    fn refused(&self, _: &Batch) {}

    fn lost(&self, _: &Batch, _: DropReason) {}
}

/// Takes what nobody looks at.
struct Ignorer {
    signal: &'static str,
    said: AtomicBool,
}

impl Ignorer {
    fn new(signal: &'static str) -> Self {
        Self { signal, said: AtomicBool::new(false) }
    }
}

impl Consumer for Ignorer {
    fn consume(self: Arc<Self>, _: Batch, _: Pressure) -> Answer {
        if !self.said.swap(true, Ordering::Relaxed) {
            tracing::info!(signal = self.signal, "received and dropped: the viewer keeps traces only");
        }
        Answer::Now(Ok(()))
    }

    fn refused(&self, _: &Batch) {}

    fn lost(&self, _: &Batch, _: DropReason) {}
}

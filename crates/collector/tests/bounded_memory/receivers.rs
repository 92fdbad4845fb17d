//! Memory that receivers allocate for requests, until these are held in a queue.

use std::{net::SocketAddr, sync::Arc};

use bytes::Bytes;
use http::{Request, Version};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kubewake_collector::{
    components::{Receiver, ReceiverContext, ReceiverSite},
    core::{Allowance, Consumer, Pipeline, PipelineSet, StatsRegistry},
    net::listener_pool::ListenerPool,
    receiver,
};
use kubewake_config::{ComponentId, PipelineId};
use kubewake_otlp::Signal;
use tokio::net::TcpStream;

use super::{
    Findings, Holder, meter,
    requests::{self, Call},
    settings, take_turn,
};

/// What may be held for a connection beyond its requests: its buffers at both ends, and the memory for
/// decompression beside its output.
const CONNECTION_BYTES: i64 = 256 << 10;

/// A budget with room for most decompressed requests.
const LIMIT_BYTES: u64 = 64 << 20;

/// The HTTP/2 window: what a call can send before it is read.
const STREAM_WINDOW: i64 = 1 << 20;

/// A client that waits for each response.
enum Client {
    Http1(conn::http1::SendRequest<Full<Bytes>>),
    Http2(conn::http2::SendRequest<Full<Bytes>>),
}

impl Client {
    async fn connect(address: SocketAddr, is_http2: bool) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        // Without it, Nagle's algorithm would wait for delayed acknowledgements.
        stream.set_nodelay(true).unwrap();
        let io = TokioIo::new(stream);
        if is_http2 {
            let (sender, connection) = conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
            tokio::spawn(connection);
            return Self::Http2(sender);
        }
        let (sender, connection) = conn::http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        Self::Http1(sender)
    }

    /// Sends a request, and returns whether it was answered. A refused one may be cut off.
    async fn send(&mut self, mut request: Request<Full<Bytes>>) -> bool {
        let response: Result<http::Response<Incoming>, _> = match self {
            Self::Http1(sender) => {
                *request.uri_mut() = request.uri().path().parse().unwrap();
                request.headers_mut().insert("host", "localhost".parse().unwrap());
                sender.send_request(request).await
            }
            Self::Http2(sender) => {
                *request.version_mut() = Version::HTTP_2;
                sender.send_request(request).await
            }
        };
        match response {
            Err(_) => false,
            Ok(mut response) => {
                while let Some(Ok(_)) = response.body_mut().frame().await {}
                true
            }
        }
    }
}

/// A receiver that feeds a consumer which holds everything.
struct Place {
    receiver: Arc<dyn Receiver>,
    intake: Arc<PipelineSet>,
    registry: StatsRegistry,
}

impl Place {
    fn start(name: &str) -> Self {
        let intake = Arc::<PipelineSet>::default();
        let registry = StatsRegistry::default();
        let settings = settings::receiver(name, requests::MAX_BYTES);
        let id = ComponentId::new("measured");
        let nobody = |id: &ComponentId| panic!("{id}");
        let context = ReceiverContext {
            id: &id,
            auth: &nobody,
            claims: &ListenerPool::default().claims(),
            previous: None,
            state_root: None,
        };
        let prepared = receiver::prepare(&settings, &context).unwrap_or_else(|error| panic!("{error}"));
        let receiver = prepared.start(None, &ReceiverSite { id: &id, pipelines: &intake, registry: &registry });
        Self { receiver, intake, registry }
    }

    fn address(&self, name: &str) -> SocketAddr {
        self.receiver.listeners().into_iter().find(|(known, _)| *known == name).unwrap().1
    }

    async fn measure(&self, signal: Signal, call: &Call, limit: u64) -> i64 {
        meter::budget().resize(limit, limit / 8);
        let id = PipelineId { signal, name: None };
        let allowance = Allowance { member: meter::budget().join(), limiter: None };
        let pipeline = Pipeline::new(id.clone(), allowance, self.registry.pipeline(&id));
        let holder = Arc::new(Holder::default());
        pipeline.head().set_targets(vec![holder.clone() as Arc<dyn Consumer>]);
        self.intake.set_pipelines(signal, vec![pipeline]);
        let mut client = Client::connect(self.address(call.address), call.is_http2).await;
        meter::begin();
        let mut sent = 0;
        let mut was_answered = true;
        while was_answered && sent < call.times {
            was_answered = client.send(call.request()).await;
            sent += 1;
        }
        let uncharged = meter::end();
        assert!(was_answered, "{}: not answered", call.what);
        drop(client);
        self.intake.set_pipelines(signal, Vec::new());
        holder.0.lock().clear();
        // The rest of a refused request is read and charged until its task has noticed the refusal.
        while meter::budget().used() > 0 {
            tokio::task::yield_now().await;
        }
        uncharged
    }
}

fn measure_receivers(signal: Signal) {
    let _turn = take_turn();
    let mut findings = Findings::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for name in settings::listed("receivers: ") {
        let calls = requests::to_receiver(&name, signal);
        if calls.is_empty() {
            continue;
        }
        let place = runtime.block_on(async { Place::start(&name) });
        for call in &calls {
            for limit in [LIMIT_BYTES, LIMIT_BYTES / 16] {
                let uncharged = runtime.block_on(place.measure(signal, call, limit));
                let allowed = CONNECTION_BYTES + if call.is_http2 { STREAM_WINDOW } else { 0 };
                findings.note(uncharged, allowed, format!("{name}, {signal}, {}, {limit}", call.what));
            }
        }
        runtime.block_on(async { place.receiver.abort() });
    }
    findings.settle();
}

#[test]
fn receivers_allocate_for_traces_what_was_charged() {
    measure_receivers(Signal::Traces);
}

#[test]
fn receivers_allocate_for_logs_what_was_charged() {
    measure_receivers(Signal::Logs);
}

#[test]
fn receivers_allocate_for_metrics_what_was_charged() {
    measure_receivers(Signal::Metrics);
}

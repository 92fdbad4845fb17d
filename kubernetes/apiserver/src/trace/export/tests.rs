use std::sync::Mutex;

use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, UnixListener};

use super::*;
use crate::{
    client::{DialAddress, ServiceAddressResolver},
    trace::{
        InstrumentationScope, SpanOrigin, SpanSampling, SpanStart, TraceSpanKind, Tracer,
        config::TracingConfiguration,
        testing::{Collector, Reply},
    },
};

#[derive(Debug, Default)]
struct Moving(Mutex<Option<(String, u16)>>);

impl ServiceAddressResolver for Moving {
    fn resolve(&self, _: &str, name: &str, _: u16) -> Result<DialAddress, String> {
        let address = self.0.lock().unwrap().clone();
        address.map(|(host, port)| DialAddress::Tcp(host, port)).ok_or_else(|| name.to_owned())
    }
}

fn target(body: &str) -> SpanExportTarget {
    target_with(body, "TracingConfiguration", Arc::new(Moving::default()))
}

fn target_with(body: &str, kind: &str, services: Arc<dyn ServiceAddressResolver>) -> SpanExportTarget {
    let text = format!("apiVersion: apiserver.config.k8s.io/v1\nkind: {kind}\n{body}");
    SpanExportTarget::new(&TracingConfiguration::parse(text.as_bytes()).unwrap(), None, &services).unwrap()
}

struct Setup {
    tracer: Tracer,
    pipeline: Arc<SpanPipeline>,
    exporter: SpanExporter,
}

fn setup(target: SpanExportTarget) -> Setup {
    let pipeline = SpanPipeline::new(SpanSampling { ratio_per_million: 1_000_000, ..SpanSampling::default() });
    let tracer = Tracer::default();
    tracer.set_pipeline(Some(Arc::clone(&pipeline)));
    let resource = TraceResource { instance: "me".into() };
    Setup { tracer, exporter: SpanExporter::start(target, &resource, Arc::clone(&pipeline)), pipeline }
}

impl Setup {
    fn span(&self, name: &str) {
        let start = std::time::SystemTime::now();
        let begin =
            SpanStart { scope: InstrumentationScope::Component, kind: TraceSpanKind::Internal, name: &name, start };
        drop(self.tracer.start(&SpanOrigin::Root, begin));
    }

    /// Counters are updated just after the collector's response.
    async fn counts(&self, fits: impl Fn(&super::super::SpanCounts) -> bool) {
        while !fits(&self.pipeline.counts()) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

#[tokio::test]
async fn spans_arrive_over_grpc_with_resource_and_scope() {
    let (mut collector, address) = Collector::on_tcp(true, &[]).await;
    let setup = setup(target(&format!("endpoint: {address}\nheaders: {{x-key: k}}")));
    setup.span("one");
    setup.exporter.stop().await;
    let (headers, request) = collector.requests.recv().await.unwrap();
    assert_eq!((&headers["te"], &headers["x-key"]), (&"trailers".parse().unwrap(), &"k".parse().unwrap()));
    let resource = &request.resource_spans[0];
    let keys: Vec<&str> = resource.resource.as_ref().unwrap().attributes.iter().map(|pair| pair.key.as_str()).collect();
    assert_eq!(keys, ["service.name", "service.instance.id"]);
    assert_eq!(resource.scope_spans[0].scope.as_ref().unwrap().name, "k8s.io/component-base/tracing");
    assert_eq!(setup.pipeline.counts().exported, 1);
}

#[tokio::test]
async fn spans_arrive_over_http_and_unix_sockets() {
    let (mut collector, address) = Collector::on_tcp(false, &[]).await;
    let setup_http = setup(target(&format!("protocol: http/protobuf\nendpoint: http://{address}")));
    setup_http.span("http");
    setup_http.exporter.stop().await;
    assert_eq!(collector.next().await.1, ["http"]);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    let (mut collector, serve) = Collector::new(true, &[]);
    tokio::spawn(async move { serve(TokioIo::new(listener.accept().await.unwrap().0)) });
    let setup_unix = setup(target(&format!("endpoint: unix://{}", path.display())));
    setup_unix.span("unix");
    setup_unix.exporter.stop().await;
    assert_eq!(collector.next().await.1, ["unix"]);
}

#[tokio::test]
async fn everything_that_waits_is_sent_at_the_end_in_batches() {
    let (mut collector, address) = Collector::on_tcp(true, &[]).await;
    let setup = setup(target(&format!("endpoint: {address}")));
    (0..1500).for_each(|number| setup.span(&number.to_string()));
    setup.exporter.stop().await;
    assert_eq!(setup.pipeline.counts(), super::super::SpanCounts { exported: 1500, dropped: 0, failed: 0 });
    let mut names = Vec::new();
    while names.len() < 1500 {
        let batch = collector.next().await.1;
        assert!(batch.len() <= 512);
        names.extend(batch);
    }
    assert!(names.iter().map(|name| name.parse::<usize>().unwrap()).eq(0..1500), "in order");
}

#[tokio::test]
async fn what_is_refused_for_now_is_sent_once_more() {
    for (config, reply) in [("", Reply::Grpc("14")), ("protocol: http/protobuf\n", Reply::Http(503))] {
        let (mut collector, address) = Collector::on_tcp(config.is_empty(), &[reply]).await;
        let setup = setup(target(&format!("{config}endpoint: {address}")));
        setup.span("again");
        assert_eq!(collector.next().await.1, ["again"]);
        assert_eq!(collector.next().await.1, ["again"]);
        setup.counts(|counts| counts.exported == 1 && counts.dropped == 0).await;
    }
}

#[tokio::test]
async fn what_is_refused_for_good_is_counted_and_not_sent_again() {
    for (config, reply) in
        [("", Reply::Grpc("3")), ("protocol: http/protobuf\n", Reply::Http(400)), ("", Reply::Http(404))]
    {
        let (mut collector, address) = Collector::on_tcp(config.is_empty(), &[reply]).await;
        let setup = setup(target(&format!("{config}endpoint: {address}")));
        setup.span("bad");
        collector.next().await;
        setup.counts(|counts| counts.dropped == 1 && counts.failed == 1).await;
        setup.span("good");
        assert_eq!(collector.next().await.1, ["good"]);
    }
}

#[tokio::test]
async fn spans_that_the_collector_rejects_are_counted() {
    let (mut collector, address) = Collector::on_tcp(true, &[Reply::Rejected]).await;
    let setup = setup(target(&format!("endpoint: {address}")));
    setup.span("one");
    setup.span("two");
    collector.next().await;
    setup.counts(|counts| counts.exported == 1 && counts.dropped == 1 && counts.failed == 0).await;
}

#[tokio::test]
async fn nobody_there_costs_a_batch_and_a_redirect_ends_the_wait() {
    // A port that was free a moment ago.
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let setup = setup(target(&format!("endpoint: {gone}")));
    setup.span("lost");
    setup.counts(|counts| counts.dropped == 1 && counts.failed == 1).await;
    let (mut collector, address) = Collector::on_tcp(true, &[]).await;
    setup.span("kept");
    setup.exporter.redirect(target(&format!("endpoint: {address}")));
    assert_eq!(collector.next().await.1, ["kept"]);
}

#[tokio::test]
async fn a_service_is_looked_up_for_every_batch() {
    let (mut first, one) = Collector::on_tcp(true, &[]).await;
    let (mut second, two) = Collector::on_tcp(true, &[]).await;
    let services = Arc::new(Moving::default());
    let move_to = |address: &str| {
        let (host, port) = address.split_once(':').unwrap();
        *services.0.lock().unwrap() = Some((host.to_owned(), port.parse().unwrap()));
    };
    move_to(&one);
    let to = "service: {namespace: o, name: c, port: 4317}";
    let setup = setup(target_with(to, "OpenTelemetryClientConfiguration", services.clone()));
    setup.span("first");
    assert_eq!(first.next().await.1, ["first"]);
    setup.counts(|counts| counts.exported == 1).await;
    move_to(&two);
    setup.span("second");
    assert_eq!(second.next().await.1, ["second"]);
}

#[tokio::test(start_paused = true)]
async fn a_collector_that_never_answers_does_not_keep_the_server_from_ending() {
    let (mut collector, address) = Collector::on_tcp(true, &[Reply::Never]).await;
    let setup = setup(target(&format!("endpoint: {address}")));
    setup.span("stuck");
    collector.next().await;
    let began = Instant::now();
    setup.exporter.stop().await;
    assert!(began.elapsed() <= SHUTDOWN_TIMEOUT + Duration::from_millis(100));
}

#[test]
fn pauses_grow_up_to_a_limit() {
    let seconds: Vec<u64> = [1, 2, 3, 4, 5, 99].map(|failures| backoff(failures).as_secs()).to_vec();
    assert_eq!(seconds, [1, 2, 4, 8, 10, 10]);
}

#[test]
fn a_collector_that_is_gone_is_told_once_and_that_it_is_back() {
    let refused = || Err(SpanExportError { why: "connection refused".to_owned(), retry: None });
    let said = outcome_message(&refused(), 0, false, "127.0.0.1:4317").unwrap();
    assert_eq!(
        said,
        "failed to export spans to the collector at 127.0.0.1:4317, dropping them until it works again: connection refused"
    );
    assert_eq!(outcome_message(&refused(), 1, true, "127.0.0.1:4317"), None);
    assert_eq!(
        outcome_message(&Ok(0), 2, true, "c:1").unwrap(),
        "the export of spans to the collector at c:1 works again"
    );
    assert_eq!(outcome_message(&Ok(0), 0, false, "c:1"), None);
    assert!(outcome_message(&refused(), 0, true, "c:2").is_some(), "another one that does not take them either");
    assert!(outcome_message(&Ok(0), 0, true, "c:3").is_some(), "another one that does");
}

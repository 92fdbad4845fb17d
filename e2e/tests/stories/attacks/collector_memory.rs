//! Memory that a small, valid request makes a collector spend after it was let in.
//!
//! A span takes two bytes and a resource with one takes six, so that a body of 20 MiB holds millions of them
//! and is 30 KB in gzip. Whatever a component writes for each of them must be charged to the memory limiter
//! before it is allocated.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use kubewake_e2e::{
    CollectorProcess, ConfigBuilder, Http1Connection, HttpBackend, SinkProcess,
    otlp::{attribute, field, gzip, log_json, metric_json, resource_attributes, spans},
    wait_until,
};
use kubewake_otlp::{Signal, json};

const PROTOBUF: &str = "application/x-protobuf";

/// What the memory limiter allows.
const LIMIT_MIB: u64 = 128;

/// What the process takes beside that: itself, its connections, what threads need to work on requests of usual
/// size, and what the allocator does not give back. Without an attack a collector of a debug build takes about
/// 60 MiB.
const BESIDE_MIB: u64 = 160;

/// Largest body that the receiver takes by default.
const MAX_BODY_BYTES: usize = 20 << 20;

/// How many attackers send at once.
const ATTACKERS: usize = 2;

/// Between two requests of the ordinary sender, which is not to take the processor from the attack.
const ORDINARY_PACE: Duration = Duration::from_millis(5);

/// As many resources as fit, each with one empty span.
fn tiny_resources() -> Vec<u8> {
    [0x0a, 0x04, 0x12, 0x02, 0x12, 0x00].repeat(3_400_000)
}

/// As many empty spans as fit, of one resource.
fn empty_spans() -> Vec<u8> {
    field(1, &field(2, &[0x12, 0x00].repeat(MAX_BODY_BYTES / 2 - 16)))
}

/// As many empty data points as fit, each of a metric of its own.
fn empty_metrics() -> Vec<u8> {
    let metric = field(2, &field(5, &field(1, &[])));
    field(1, &field(2, &metric.repeat(MAX_BODY_BYTES / metric.len() - 16)))
}

/// As many spans as fit of which every other one has a name.
fn alternating_spans() -> Vec<u8> {
    field(1, &field(2, &[0x12, 0x00, 0x12, 0x03, 0x2a, 0x01, b'x'].repeat(MAX_BODY_BYTES / 7 - 16)))
}

/// As many spans as fit whose ids are zeroes, which the receiver removes.
fn zero_ids() -> Vec<u8> {
    let span = field(2, &field(2, &[0; 8]));
    field(1, &field(2, &span.repeat(MAX_BODY_BYTES / span.len() - 16)))
}

/// One span with as many empty attributes as fit.
fn many_attributes() -> Vec<u8> {
    field(1, &field(2, &field(2, &[0x4a, 0x00].repeat(MAX_BODY_BYTES / 2 - 16))))
}

/// Attacks a pipeline of traces.
fn attack(config: ConfigBuilder, body: &[u8]) {
    attack_with(Signal::Traces, config, body);
}

fn ordinary_request(signal: Signal) -> Vec<u8> {
    let json = match signal {
        Signal::Traces => return spans(&["ordinary"]),
        Signal::Logs => log_json("ordinary"),
        Signal::Metrics => metric_json("ordinary"),
    };
    json::decode(signal, json.as_bytes()).expect("it is OTLP")
}

/// Sends the body to a collector over several connections at once, while somebody else sends ordinary requests.
fn attack_with(signal: Signal, config: ConfigBuilder, body: &[u8]) {
    let limiter = format!("{{check_interval: 1s, limit_mib: {LIMIT_MIB}, spike_limit_mib: 16}}");
    let config = config.processor("memory_limiter", limiter);
    attack_collector(CollectorProcess::with_config(config).start(), signal, body, LIMIT_MIB + BESIDE_MIB);
}

/// The same with a collector that may take so much memory.
fn attack_collector(mut collector: CollectorProcess, signal: Signal, body: &[u8], most_mib: u64) {
    let path = format!("/v1/{signal}");
    let compressed = gzip(body);
    let http = collector.http();
    assert!(compressed.len() < body.len() / 50, "a small request: {} bytes", compressed.len());
    let over = AtomicBool::new(false);
    let ordinary = ordinary_request(signal);
    thread::scope(|scope| {
        let legitimate = scope.spawn(|| {
            let mut connection = Http1Connection::connect(http);
            let mut taken = 0;
            while !over.load(Ordering::Relaxed) || taken == 0 {
                let status = connection.post(&path, PROTOBUF, &ordinary).status;
                assert_eq!(status, 200, "an ordinary sender beside the attack, after {taken} requests");
                taken += 1;
                thread::sleep(ORDINARY_PACE);
            }
            taken
        });
        let attackers: Vec<_> = (0..ATTACKERS)
            .map(|_| {
                scope.spawn(|| {
                    let mut connection = Http1Connection::connect(http);
                    let headers = [("content-type", PROTOBUF), ("content-encoding", "gzip")];
                    connection.request("POST", &path, &headers, &compressed).status
                })
            })
            .collect();
        let answers: Vec<u16> = attackers.into_iter().map(|attacker| attacker.join().unwrap()).collect();
        over.store(true, Ordering::Relaxed);
        let taken = legitimate.join().unwrap();
        let peak = collector.peak_mib();
        eprintln!("peak {peak} MiB; ordinary requests taken: {taken}; answers to the attack: {answers:?}");
        assert!(answers.iter().all(|status| [200, 413, 503].contains(status)), "{answers:?}");
        assert!(peak <= most_mib, "peak of {peak} MiB where {most_mib} are allowed");
    });
    assert!(collector.is_running());
}

/// A pipeline of traces with one processor.
fn with_processor(id: &str, settings: &str) -> ConfigBuilder {
    pipeline_of(Signal::Traces, id, settings)
}

/// A pipeline of one processor.
fn pipeline_of(signal: Signal, id: &str, settings: &str) -> ConfigBuilder {
    let processors = format!("memory_limiter, {id}");
    ConfigBuilder::new().processor(id, settings).exporter("nop", "").pipeline(signal.name(), &processors, "nop")
}

const UPSERT: &str = "{actions: [{key: environment, value: production, action: upsert}]}";

#[test]
fn attributes_of_millions_of_empty_spans_stay_within_the_limiter() {
    attack(with_processor("attributes", UPSERT), &empty_spans());
}

#[test]
fn attributes_of_millions_of_empty_log_records_stay_within_the_limiter() {
    // Log records are in the same fields as spans.
    attack_with(Signal::Logs, pipeline_of(Signal::Logs, "attributes", UPSERT), &empty_spans());
}

#[test]
fn attributes_of_millions_of_empty_metrics_stay_within_the_limiter() {
    attack_with(Signal::Metrics, pipeline_of(Signal::Metrics, "attributes", UPSERT), &empty_metrics());
}

#[test]
fn attributes_of_one_span_with_millions_of_attributes_stay_within_the_limiter() {
    attack(with_processor("attributes", UPSERT), &many_attributes());
}

#[test]
fn resource_of_millions_of_resources_stays_within_the_limiter() {
    let settings = "{attributes: [{key: environment, value: production, action: upsert}]}";
    attack(with_processor("resource", settings), &tiny_resources());
}

#[test]
fn k8s_attributes_of_millions_of_resources_stay_within_the_limiter() {
    attack(with_processor("k8s_attributes", "{passthrough: true}"), &tiny_resources());
}

#[test]
fn filter_that_drops_every_other_span_stays_within_the_limiter() {
    let settings = "{spans: {exclude: {match_type: strict, span_names: [x]}}}";
    attack(with_processor("filter", settings), &alternating_spans());
}

#[test]
fn clearing_millions_of_zero_ids_stays_within_the_limiter() {
    let config = ConfigBuilder::new().exporter("nop", "").pipeline("traces", "memory_limiter", "nop");
    attack(config, &zero_ids());
}

#[test]
fn load_balancing_of_millions_of_empty_spans_stays_within_the_limiter() {
    let sinks = [SinkProcess::start(), SinkProcess::start()];
    let peers = sinks.each_ref().map(|sink| format!("'{}'", sink.address())).join(", ");
    let settings =
        format!("{{protocol: {{otlp: {{tls: {{insecure: true}}}}}}, resolver: {{static: {{hostnames: [{peers}]}}}}}}");
    let config = ConfigBuilder::new().exporter("load_balancing", settings).pipeline(
        "traces",
        "memory_limiter",
        "load_balancing",
    );
    attack(config, &empty_spans());
}

/// The document of a gateway, which the tests of the operator's API compare with what is rendered.
const GATEWAY: &str = include_str!("../../../../crates/api/tests/golden/smallest.yaml");

/// The memory limit that the operator gives to a gateway.
const GATEWAY_MIB: u64 = 512;

/// A kubeconfig for a cluster in which this address is that of a pod.
fn cluster_with_pod(address: &str) -> (HttpBackend, String) {
    let pod = format!(
        r#"{{"metadata":{{"name":"shop-7d9c-x","namespace":"shop","uid":"1b4e28ba-2fa1-11d2-883f-0016d3cca427"}},
            "spec":{{"nodeName":"node-1","serviceAccountName":"shop","containers":[{{"name":"main"}}]}},
            "status":{{"podIP":"{address}","podIPs":[{{"ip":"{address}"}}],"startTime":"2026-01-01T00:00:00Z"}}}}"#
    );
    let api = HttpBackend::start(move |request| {
        let items = if request.path.contains("/pods") { &*pod } else { "" };
        let list = format!(r#"{{"metadata":{{"resourceVersion":"1"}},"items":[{items}]}}"#);
        let body = if request.path.contains("watch=true") { String::new() } else { list };
        (200, Vec::new(), body.into_bytes())
    });
    let kubeconfig = format!(
        "current-context: c\nclusters: [{{name: k, cluster: {{server: 'http://{}'}}}}]\n\
         contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\nusers: [{{name: u, user: {{token: token}}}}]\n",
        api.address()
    );
    (api, kubeconfig)
}

#[test]
fn gateway_of_the_operator_stays_within_its_memory_when_a_pod_attacks_it() {
    let (sink, (_api, kubeconfig)) = (SinkProcess::start(), cluster_with_pod("127.0.0.1"));
    let (document, _) = GATEWAY.split_once("---").expect("the keys of its Secret follow");
    // Addresses of this machine, and the share of the memory limit that a gateway has in a cluster.
    let document = document
        .replace("${env:POD_IP}:13133", "${env:HEALTH}")
        .replace("${env:POD_IP}:4317", "127.0.0.1:0")
        .replace("${env:POD_IP}:4318", "127.0.0.1:0")
        .replace("${env:POD_IP}", "127.0.0.1")
        .replace("port: 8888", "port: ${env:METRICS_PORT}")
        .replace("wait_for_metadata: true", "wait_for_metadata: true\n    auth_type: kubeConfig")
        .replace("backend.example.com:4317", &format!("http://{}", sink.address()))
        .replace("spike_limit_percentage: 15", &format!("spike_limit_mib: {}", GATEWAY_MIB * 15 / 100))
        .replace("limit_percentage: 75", &format!("limit_mib: {}", GATEWAY_MIB * 75 / 100));
    let builder = CollectorProcess::with_config(document).file("kubeconfig", kubeconfig);
    let path = builder.folder().join("kubeconfig");
    let gateway = builder.env("KUBECONFIG", path).start();
    let state = || gateway.status()["clusters"]["k8s_attributes"]["state"].clone();
    wait_until("the collector knows the pods of the cluster", || state() == "synced");
    attack_collector(gateway, Signal::Traces, &tiny_resources(), GATEWAY_MIB);
    let resources = resource_attributes(&sink.received(Signal::Traces));
    assert!(resources.iter().any(|attributes| attribute(attributes, "k8s.pod.name") == "shop-7d9c-x"));
}

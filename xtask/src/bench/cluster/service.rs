//! A collector in a pod, reached alternately at the pod's address and through its Service.

use std::time::Duration;

use anyhow::ensure;
use serde_json::{Value, json};

use super::{BenchCluster, ClusterWorkload, write_object};
use crate::bench::{
    load::LoadCommand,
    process::machine_cpu_time,
    section::{BenchSection, median},
    sink::BenchSink,
};

/// Limit of the CPU time through the Service, as a ratio to the direct connection, for the whole machine.
const MAX_CPU_RATIO: f64 = 1.3;
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const PODS: &str = "/api/v1/namespaces/default/pods";

pub(super) fn measure(size: ClusterWorkload, section: &mut BenchSection) -> anyhow::Result<()> {
    let sink = BenchSink::start("cluster-sink")?;
    let mut cluster = BenchCluster::start("cluster-service")?;
    let mut post = |path: &str, name: &str, object: Value| -> anyhow::Result<()> {
        let file = write_object(name, &object)?;
        cluster.client.run_command(&format!("post {path} {}", file.display())).map(drop)
    };
    post(CONFIG_MAPS, "collector-config", config_map(&sink.address))?;
    post(SERVICES, "collector-service", service())?;
    cluster.deploy("collector", 1, pod())?;
    let pod = field(&mut cluster, PODS, "/items/0/status/podIP")?;
    let service = field(&mut cluster, &format!("{SERVICES}/collector"), "/spec/clusterIP")?;
    let direct = format!("{pod}:4317");
    let through = format!("{service}:4317");
    for address in [&direct, &through] {
        cost(address, size.rate, Duration::from_secs(1))?;
    }
    let mut ratios = Vec::new();
    let mut costs = [Vec::new(), Vec::new()];
    for _ in 0..size.rounds {
        let time = Duration::from_secs(size.seconds);
        let [plain, forwarded] = [cost(&direct, size.rate, time)?, cost(&through, size.rate, time)?];
        ratios.push(forwarded / plain);
        costs[0].push(plain);
        costs[1].push(forwarded);
    }
    let [plain, forwarded] = costs.map(median);
    let ratio = median(ratios);
    let shown = format!(
        "{ratio:.2} × ({forwarded:.2} µs a span of the whole machine through the Service, {plain:.2} µs directly; {} spans/s, median of {} rounds in turns)",
        size.rate, size.rounds
    );
    section.check(format!("a Service costs at most {MAX_CPU_RATIO} × the CPU"), shown, ratio <= MAX_CPU_RATIO);
    cluster.process.stop()
}

fn field(cluster: &mut BenchCluster, path: &str, pointer: &str) -> anyhow::Result<String> {
    let report = cluster.client.run_command(&format!("read {path} {pointer}"))?;
    ensure!(!report.text("value").is_empty(), "{path} has no {pointer}");
    Ok(report.text("value").to_owned())
}

/// CPU time of the whole machine for each span, in microseconds: sender, forwarder, collector, backend and
/// kernel.
fn cost(address: &str, rate: u64, time: Duration) -> anyhow::Result<f64> {
    let before = machine_cpu_time()?;
    let outcome = LoadCommand::new("cluster-load", address).rate(rate).duration(time).run()?;
    let cpu = machine_cpu_time()? - before;
    ensure!(outcome.acknowledged() > 0, "nothing was acknowledged by {address}: {}", outcome.codes());
    Ok(cpu.as_secs_f64() * 1e6 / outcome.acknowledged() as f64)
}

fn config_map(backend: &str) -> Value {
    let config = format!(
        "receivers: {{otlp: {{protocols: {{grpc: {{endpoint: '${{env:POD_IP}}:4317'}}}}}}}}\n\
         processors: {{batch: {{}}}}\n\
         exporters: {{otlp: {{endpoint: '{backend}', tls: {{insecure: true}}, compression: none}}}}\n\
         service:\n  telemetry: {{metrics: {{level: none}}}}\n  pipelines: {{traces: {{receivers: [otlp], processors: [batch], exporters: [otlp]}}}}\n"
    );
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "collector" },
        "data": { "collector.yaml": config },
    })
}

fn service() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "collector" },
        "spec": { "selector": { "app": "collector" }, "ports": [{ "port": 4317 }] },
    })
}

fn pod() -> Value {
    json!({
        "containers": [{
            "name": "main",
            "image": kubewake_release::ReleaseImage::Collector.reference(),
            "args": ["--config", "/etc/collector/collector.yaml"],
            "env": [{ "name": "POD_IP", "valueFrom": { "fieldRef": { "fieldPath": "status.podIP" } } }],
            "readinessProbe": { "tcpSocket": { "port": 4317 }, "periodSeconds": 1 },
            "volumeMounts": [{ "name": "config", "mountPath": "/etc/collector" }],
        }],
        "volumes": [{ "name": "config", "configMap": { "name": "collector" } }],
    })
}

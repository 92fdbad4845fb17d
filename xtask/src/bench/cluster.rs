//! The embedded cluster: time until a Deployment is ready, memory of a hundred pods, and cost of a Service.

mod service;

use std::{path::PathBuf, process::Command, thread::sleep, time::Duration};

use serde_json::{Value, json};

use super::{
    BenchPlan,
    apiserver::client::ApiClientProcess,
    directory,
    process::BenchProcess,
    program,
    section::{BenchSection, format_mib, median},
};

/// From the create of a Deployment until it is ready, in milliseconds.
const MAX_READY_MILLIS: f64 = 150.0;
/// Memory that the node and the controllers add to an API server with this number of pods. The baseline is a
/// server without objects, so that its memory for the pods counts, too.
const MAX_POD_BYTES: u64 = 40 << 20;
const PODS: u64 = 100;
/// Background work of the startup has ended by then.
const SETTLE_PERIOD: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug)]
pub(crate) struct ClusterWorkload {
    deployments: usize,
    /// Pairs of rounds: directly and through the Service, in alternation.
    rounds: usize,
    seconds: u64,
    rate: u64,
}

impl ClusterWorkload {
    /// Sizes of a full run, or of a quick one that only checks the bench.
    pub(crate) fn new(quick: bool) -> Self {
        let pick = |full, short| if quick { short } else { full };
        Self { deployments: pick(21, 5), rounds: pick(5, 1), seconds: if quick { 3 } else { 10 }, rate: 40_000 }
    }
}

/// A cluster under test, with storage in memory and one node.
#[derive(Debug)]
struct BenchCluster {
    process: BenchProcess,
    client: ApiClientProcess,
}

impl BenchCluster {
    fn start(name: &str) -> anyhow::Result<Self> {
        let kubeconfig = directory().join(format!("{name}.kubeconfig"));
        let mut command = Command::new(program("kubewake"));
        command.args(["cluster", "--listen", "127.0.0.1:0", "--image", "bench/sleep=/bin/sleep"]);
        let process = BenchProcess::start(name, command.arg("--kubeconfig").arg(&kubeconfig))?;
        Ok(Self { process, client: ApiClientProcess::start(&kubeconfig, 1)? })
    }

    /// Creates a Deployment, and returns the milliseconds until it is ready.
    fn deploy(&mut self, name: &str, replicas: u64, pod: Value) -> anyhow::Result<f64> {
        let file = write_object(name, &deployment(name, replicas, pod))?;
        Ok(self.client.run_command(&format!("deploy {}", file.display()))?.number("ready_ms"))
    }
}

/// Runs all measurements in sequence.
pub(crate) fn run(plan: &BenchPlan) -> anyhow::Result<BenchSection> {
    let how = "`kubewake cluster` runs in memory with one node. The bench creates a Deployment of one pod \
               (`/bin/sleep`), and a watch shows when it is ready. Memory is that of the cluster's process without its \
               pods, minus that of an empty API server alone.";
    let mut section = BenchSection::new("Embedded cluster", how);
    let mut cluster = BenchCluster::start("cluster")?;
    measure_ready(plan.cluster, &mut cluster, &mut section)?;
    measure_memory(plan.cluster, &mut cluster, &mut section)?;
    cluster.process.stop()?;
    service::measure(plan.cluster, &mut section)?;
    Ok(section)
}

fn measure_ready(size: ClusterWorkload, cluster: &mut BenchCluster, section: &mut BenchSection) -> anyhow::Result<()> {
    let mut times = Vec::new();
    for number in 0..size.deployments {
        times.push(cluster.deploy(&format!("one-{number}"), 1, sleep_pod())?);
    }
    let worst = times.iter().copied().fold(0.0, f64::max);
    let time = median(times);
    let shown = format!("{time:.0} ms, at worst {worst:.0} ms of {}", size.deployments);
    section.check(
        format!("from create of a Deployment to ready at most {MAX_READY_MILLIS:.0} ms"),
        shown,
        time <= MAX_READY_MILLIS,
    );
    Ok(())
}

fn measure_memory(size: ClusterWorkload, cluster: &mut BenchCluster, section: &mut BenchSection) -> anyhow::Result<()> {
    let before = cluster.process.memory()?.now;
    let rest = PODS.saturating_sub(size.deployments as u64);
    let time = cluster.deploy("many", rest, sleep_pod())?;
    sleep(SETTLE_PERIOD);
    let memory = cluster.process.memory()?;
    let server = server_alone()?;
    let own = memory.now.saturating_sub(server);
    let shown = format!(
        "{}: {} with the API server in it, {} for an API server alone ({} are not pages of the binary; before the last {rest}: {}; they were ready in {:.1} s)",
        format_mib(own),
        format_mib(memory.now),
        format_mib(server),
        format_mib(memory.own),
        format_mib(before),
        time / 1000.0
    );
    section.check(
        format!("the node's own memory with {PODS} pods at most {}", format_mib(MAX_POD_BYTES)),
        shown,
        own <= MAX_POD_BYTES,
    );
    Ok(())
}

/// The memory of an API server without objects.
fn server_alone() -> anyhow::Result<u64> {
    let mut command = Command::new(program("kubewake"));
    let server = BenchProcess::start("cluster-server", command.args(["apiserver", "--listen", "127.0.0.1:0"]))?;
    sleep(SETTLE_PERIOD);
    let memory = server.memory()?.now;
    server.stop()?;
    Ok(memory)
}

/// A pod that is ready as soon as it runs.
fn sleep_pod() -> Value {
    json!({
        "terminationGracePeriodSeconds": 0,
        "containers": [{ "name": "main", "image": "bench/sleep", "args": ["3600"] }],
    })
}

fn deployment(name: &str, replicas: u64, pod: Value) -> Value {
    let labels = json!({ "app": name });
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": pod },
        },
    })
}

/// Writes an object to a file for the client.
fn write_object(name: &str, object: &Value) -> anyhow::Result<PathBuf> {
    let path = directory().join(format!("cluster-{name}.json"));
    std::fs::write(&path, object.to_string())?;
    Ok(path)
}

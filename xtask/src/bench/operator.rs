//! The operator with two hundred pipelines: duration and requests of a resync, and memory.

use std::{
    path::{Path, PathBuf},
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::ensure;
use serde_json::{Value, json};

use super::{
    BenchPlan, BenchProgram,
    apiserver::client::ApiClientProcess,
    directory, http,
    process::BenchProcess,
    program,
    section::{BenchSection, format_mib},
};
use crate::workspace_root;

const MAX_RESYNC_SECONDS: f64 = 2.0;
const MAX_MEMORY_BYTES: u64 = 40 << 20;
const PIPELINES: usize = 200;
/// The interval at which each pipeline is reconciled without a change.
const RESYNC_INTERVAL: Duration = Duration::from_secs(3);
/// An operator that takes longer is stuck.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(120);

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GROUP: &str = "/apis/telemetry.kubewake.io/v1alpha1";
/// The metric that counts reconciles.
const RECONCILE_COUNT_METRIC: &str = "kubewake_operator_reconcile_duration_seconds_count";
const WRITES_METRIC: &str = "kubewake_operator_writes_total";

pub(crate) fn run(_: &BenchPlan) -> anyhow::Result<BenchSection> {
    let how = "`kubewake operator` is built as for its image and runs as its manifests specify. It uses `kubewake \
               apiserver` with 200 pipelines of three kinds and no node, so that no collector answers. A resync \
               reconciles each pipeline once. Its time is that from the end of the first reconcile to the end of the \
               last. Memory is resident memory, including the pages of the binary that are in use.";
    let mut section = BenchSection::new("Operator", how);
    let kubeconfig = directory().join("operator.kubeconfig");
    let mut command = Command::new(program("kubewake"));
    command.args(["apiserver", "--listen", "127.0.0.1:0", "--kubeconfig"]).arg(&kubeconfig);
    let server = BenchProcess::start("operator-server", &mut command)?;
    populate(&kubeconfig)?;
    let mut command = Command::new(BenchProgram::Operator.program());
    // The same setting as in the manifests.
    command.env("MIMALLOC_PURGE_DELAY", "0");
    command.args(["operator", "--listen", "127.0.0.1:0", "--resync-seconds", &RESYNC_INTERVAL.as_secs().to_string()]);
    let operator = BenchProcess::start("operator", command.arg("--kubeconfig").arg(&kubeconfig))?;
    measure(&operator, &mut section)?;
    operator.stop()?;
    server.stop()?;
    Ok(section)
}

fn measure(operator: &BenchProcess, section: &mut BenchSection) -> anyhow::Result<()> {
    let page = operator.address()?;
    wait_until_settled(&page)?;
    // From the end of one resync, through the start of the next one, to its end.
    let before = wait_until_idle(&page)?;
    let first = wait_for_reconciles(&page, before.count + 1.0)?;
    let begun = Instant::now();
    let cpu = operator.cpu_time()?;
    let after = wait_for_reconciles(&page, before.count + PIPELINES as f64)?;
    let time = begun.elapsed().as_secs_f64();
    let cpu = operator.cpu_time()? - cpu;
    let memory = operator.memory()?;
    let seen = after.count - first.count;
    let shown = format!("{time:.2} s ({:.2} s of CPU; {seen} of them after the first look)", cpu.as_secs_f64());
    section.check(
        format!("a resync of {PIPELINES} pipelines at most {MAX_RESYNC_SECONDS:.0} s"),
        shown,
        time <= MAX_RESYNC_SECONDS,
    );
    section.check_none("objects written by it", (after.writes - before.writes) as u64);
    let shown = format!(
        "{} ({} are not pages of the binary, {} at most)",
        format_mib(memory.now),
        format_mib(memory.own),
        format_mib(memory.peak)
    );
    section.check(
        format!("memory with them at most {}", format_mib(MAX_MEMORY_BYTES)),
        shown,
        memory.now <= MAX_MEMORY_BYTES,
    );
    Ok(())
}

/// Waits until no reconcile has ended for a while.
fn wait_until_idle(page: &str) -> anyhow::Result<ReconcileCounts> {
    let begun = Instant::now();
    loop {
        let before = read_counts(page)?;
        sleep(RESYNC_INTERVAL / 6);
        if read_counts(page)?.count == before.count {
            return Ok(before);
        }
        ensure!(begun.elapsed() < SETTLE_TIMEOUT, "the operator did not become idle");
    }
}

/// Waits until everything was reconciled and a whole resync has written nothing.
fn wait_until_settled(page: &str) -> anyhow::Result<()> {
    let begun = Instant::now();
    let mut before = wait_for_reconciles(page, PIPELINES as f64)?;
    loop {
        let after = wait_for_reconciles(page, before.count + 2.0 * PIPELINES as f64)?;
        if after.writes == before.writes {
            return Ok(());
        }
        ensure!(begun.elapsed() < SETTLE_TIMEOUT, "the operator did not stop writing");
        before = after;
    }
}

/// Waits until the counter has reached this number of reconciles.
fn wait_for_reconciles(page: &str, count: f64) -> anyhow::Result<ReconcileCounts> {
    let begun = Instant::now();
    loop {
        let figures = read_counts(page)?;
        if figures.count >= count {
            return Ok(figures);
        }
        ensure!(begun.elapsed() < SETTLE_TIMEOUT, "only {} reconciles were counted", figures.count);
        sleep(Duration::from_millis(20));
    }
}

#[derive(Clone, Copy, Debug)]
struct ReconcileCounts {
    count: f64,
    writes: f64,
}

fn read_counts(page: &str) -> anyhow::Result<ReconcileCounts> {
    let text = http::text(page, "/metrics")?;
    let total = |name: &str| -> f64 {
        let lines =
            text.lines().filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{'])));
        lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
    };
    Ok(ReconcileCounts { count: total(RECONCILE_COUNT_METRIC), writes: total(WRITES_METRIC) })
}

/// Creates the CRDs, the operator's namespace, slots for all pipelines, and the pipelines.
fn populate(kubeconfig: &Path) -> anyhow::Result<()> {
    let mut client = ApiClientProcess::start(kubeconfig, 1)?;
    for kind in ["tracepipelines", "logpipelines", "metricpipelines", "telemetries"] {
        let file = workspace_root().join(format!("deploy/crds/{kind}.yaml"));
        client.run_command(&format!("post {DEFINITIONS} {}", file.display()))?;
    }
    let mut post = |path: &str, object: &Value| -> anyhow::Result<()> {
        let file = write_object(object)?;
        client.run_command(&format!("post {path} {}", file.display())).map(drop)
    };
    post(
        "/api/v1/namespaces",
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kubewake-system"}}),
    )?;
    // A new CRD is served with a short delay.
    sleep(Duration::from_secs(1));
    post(
        &format!("{GROUP}/telemetries"),
        &object("Telemetry", "default", &json!({"slots": {"traces": 100, "logs": 50, "metrics": 50}})),
    )?;
    for number in 0..PIPELINES {
        let (kind, plural) = match number % 4 {
            0 => ("LogPipeline", "logpipelines"),
            1 => ("MetricPipeline", "metricpipelines"),
            _ => ("TracePipeline", "tracepipelines"),
        };
        let endpoint = format!("https://backend-{number}.example.com:4317");
        let spec = json!({"output": {"otlp": {"endpoint": {"value": endpoint}}}});
        post(&format!("{GROUP}/{plural}"), &object(kind, &format!("p{number}"), &spec))?;
    }
    Ok(())
}

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "telemetry.kubewake.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// Writes an object to a file for the client.
fn write_object(object: &Value) -> anyhow::Result<PathBuf> {
    let path = directory().join("operator-object.json");
    std::fs::write(&path, object.to_string())?;
    Ok(path)
}

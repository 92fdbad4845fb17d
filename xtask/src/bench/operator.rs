//! The operator with two hundred pipelines: what a resync takes, what it sends, and what memory it needs.

use std::{
    path::{Path, PathBuf},
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::ensure;
use serde_json::{Value, json};

use super::{
    Part, Plan,
    apiserver::client::Client,
    check::{Section, mib},
    directory, http,
    process::Process,
    program,
};
use crate::root;

/// Promised.
const MAX_RESYNC: f64 = 2.0;
const MAX_MEMORY: u64 = 40 << 20;
/// Over three kinds.
const PIPELINES: usize = 200;
/// How often each pipeline is looked at although nothing happened.
const RESYNC: Duration = Duration::from_secs(3);
/// What takes longer is stuck.
const PATIENCE: Duration = Duration::from_secs(120);

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GROUP: &str = "/apis/telemetry.kubewake.io/v1alpha1";
/// How many reconciles there were.
const COUNT: &str = "kubewake_operator_reconcile_duration_seconds_count";
/// What was written.
const WRITES: &str = "kubewake_operator_writes_total";

pub(crate) fn run(_: &Plan) -> anyhow::Result<Section> {
    let how = "`kubewake operator`, built alone as its image has it and run as its manifests do, on `kubewake apiserver`, with 200 pipelines over three kinds and no node, so that no collector answers. A resync looks at each of them once; its time is that from the end of the first \
               reconcile to the end of the last. Memory is resident memory, with the pages of the binary that are in use.";
    let mut section = Section::new("Operator", how);
    let kubeconfig = directory().join("operator.kubeconfig");
    let mut command = Command::new(program("kubewake"));
    command.args(["apiserver", "--listen", "127.0.0.1:0", "--kubeconfig"]).arg(&kubeconfig);
    let server = Process::start("operator-server", &mut command)?;
    populate(&kubeconfig)?;
    let mut command = Command::new(Part::Operator.program());
    // As its manifests have it.
    command.env("MIMALLOC_PURGE_DELAY", "0");
    command.args(["operator", "--listen", "127.0.0.1:0", "--resync-seconds", &RESYNC.as_secs().to_string()]);
    let operator = Process::start("operator", command.arg("--kubeconfig").arg(&kubeconfig))?;
    measure(&operator, &mut section)?;
    operator.stop()?;
    server.stop()?;
    Ok(section)
}

fn measure(operator: &Process, section: &mut Section) -> anyhow::Result<()> {
    let page = operator.address()?;
    settle(&page)?;
    // From one that is over, to the moment when the next begins, to its end.
    let before = rest(&page)?;
    let first = rounds(&page, before.count + 1.0)?;
    let (begun, cpu) = (Instant::now(), operator.cpu()?);
    let after = rounds(&page, before.count + PIPELINES as f64)?;
    let (time, cpu) = (begun.elapsed().as_secs_f64(), operator.cpu()? - cpu);
    let memory = operator.memory()?;
    let seen = after.count - first.count;
    let shown = format!("{time:.2} s ({:.2} s of CPU; {seen} of them after the first look)", cpu.as_secs_f64());
    section.check(format!("a resync of {PIPELINES} pipelines at most {MAX_RESYNC:.0} s"), shown, time <= MAX_RESYNC);
    section.check_none("objects written by it", (after.writes - before.writes) as u64);
    let shown =
        format!("{} ({} are not pages of the binary, {} at most)", mib(memory.now), mib(memory.own), mib(memory.peak));
    section.check(format!("memory with them at most {}", mib(MAX_MEMORY)), shown, memory.now <= MAX_MEMORY);
    Ok(())
}

/// Waits until no reconcile has ended for a while.
fn rest(page: &str) -> anyhow::Result<Figures> {
    let begun = Instant::now();
    loop {
        let before = figures(page)?;
        sleep(RESYNC / 6);
        if figures(page)?.count == before.count {
            return Ok(before);
        }
        ensure!(begun.elapsed() < PATIENCE, "the operator never rests");
    }
}

/// Waits until everything was looked at and a whole round has written nothing.
fn settle(page: &str) -> anyhow::Result<()> {
    let begun = Instant::now();
    let mut before = rounds(page, PIPELINES as f64)?;
    loop {
        let after = rounds(page, before.count + 2.0 * PIPELINES as f64)?;
        if after.writes == before.writes {
            return Ok(());
        }
        ensure!(begun.elapsed() < PATIENCE, "the operator writes and writes");
        before = after;
    }
}

/// Waits until there were so many reconciles.
fn rounds(page: &str, count: f64) -> anyhow::Result<Figures> {
    let begun = Instant::now();
    loop {
        let figures = figures(page)?;
        if figures.count >= count {
            return Ok(figures);
        }
        ensure!(begun.elapsed() < PATIENCE, "{} reconciles are too few", figures.count);
        sleep(Duration::from_millis(20));
    }
}

#[derive(Clone, Copy, Debug)]
struct Figures {
    count: f64,
    writes: f64,
}

fn figures(page: &str) -> anyhow::Result<Figures> {
    let text = http::text(page, "/metrics")?;
    let total = |name: &str| -> f64 {
        let lines =
            text.lines().filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{'])));
        lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
    };
    Ok(Figures { count: total(COUNT), writes: total(WRITES) })
}

/// The kinds, the operator's namespace, slots for all, and the pipelines.
fn populate(kubeconfig: &Path) -> anyhow::Result<()> {
    let mut client = Client::start(kubeconfig, 1)?;
    for kind in ["tracepipelines", "logpipelines", "metricpipelines", "telemetries"] {
        let file = root().join(format!("deploy/crds/{kind}.yaml"));
        client.tell(&format!("post {DEFINITIONS} {}", file.display()))?;
    }
    let mut post = |path: &str, object: &Value| -> anyhow::Result<()> {
        let file = file(object)?;
        client.tell(&format!("post {path} {}", file.display())).map(drop)
    };
    post(
        "/api/v1/namespaces",
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kubewake-system"}}),
    )?;
    // A kind is served a moment after it was created.
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

/// An object in a file, for the client to send.
fn file(object: &Value) -> anyhow::Result<PathBuf> {
    let path = directory().join("operator-object.json");
    std::fs::write(&path, object.to_string())?;
    Ok(path)
}

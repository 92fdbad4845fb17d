//! The embedded cluster: how soon a Deployment is ready, what a hundred pods take, and what a Service costs.

mod service;

use std::{path::PathBuf, process::Command, thread::sleep, time::Duration};

use serde_json::{Value, json};

use super::{
    Plan,
    apiserver::client::Client,
    check::{Section, median, mib},
    directory,
    process::Process,
    program,
};

/// From the create of a Deployment until it is ready, in milliseconds.
const MAX_READY: f64 = 150.0;
/// What the node and the controllers add to an API server with so many pods. The server is taken as it is without any object, so that
/// what it holds of the pods counts as theirs.
const MAX_MEMORY: u64 = 40 << 20;
const PODS: u64 = 100;
/// What starts has settled by then.
const WAIT: Duration = Duration::from_secs(5);

/// How many of what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    deployments: usize,
    /// Rounds directly and as many through the Service, in turn.
    rounds: usize,
    seconds: u64,
    rate: u64,
}

impl Size {
    /// For a whole run, or only to see that it works.
    pub(crate) fn new(quick: bool) -> Self {
        let pick = |full, short| if quick { short } else { full };
        Self { deployments: pick(21, 5), rounds: pick(5, 1), seconds: if quick { 3 } else { 10 }, rate: 40_000 }
    }
}

/// A cluster under test, in memory, with one node.
#[derive(Debug)]
struct Cluster {
    process: Process,
    client: Client,
}

impl Cluster {
    fn start(name: &str) -> anyhow::Result<Self> {
        let kubeconfig = directory().join(format!("{name}.kubeconfig"));
        let mut command = Command::new(program("kubewake"));
        command.args(["cluster", "--listen", "127.0.0.1:0", "--image", "bench/sleep=/bin/sleep"]);
        let process = Process::start(name, command.arg("--kubeconfig").arg(&kubeconfig))?;
        Ok(Self { process, client: Client::start(&kubeconfig, 1)? })
    }

    /// Creates a Deployment, and gives the milliseconds until it is ready.
    fn deploy(&mut self, name: &str, replicas: u64, pod: Value) -> anyhow::Result<f64> {
        let file = file(name, &deployment(name, replicas, pod))?;
        Ok(self.client.tell(&format!("deploy {}", file.display()))?.number("ready_ms"))
    }
}

/// All of it, one after the other.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<Section> {
    let how = "`kubewake cluster` in memory, with one node. A Deployment of one pod (`/bin/sleep`) is created, and a watch says when it is ready; \
               memory is that of the cluster's process without its pods, less that of an API server alone which holds nothing.";
    let mut section = Section::new("Embedded cluster", how);
    let mut cluster = Cluster::start("cluster")?;
    ready(plan.cluster, &mut cluster, &mut section)?;
    memory(plan.cluster, &mut cluster, &mut section)?;
    cluster.process.stop()?;
    service::measure(plan.cluster, &mut section)?;
    Ok(section)
}

fn ready(size: Size, cluster: &mut Cluster, section: &mut Section) -> anyhow::Result<()> {
    let mut times = Vec::new();
    for number in 0..size.deployments {
        times.push(cluster.deploy(&format!("one-{number}"), 1, sleeper())?);
    }
    let worst = times.iter().copied().fold(0.0, f64::max);
    let time = median(times);
    let shown = format!("{time:.0} ms, at worst {worst:.0} ms of {}", size.deployments);
    section.check(format!("from create of a Deployment to ready at most {MAX_READY:.0} ms"), shown, time <= MAX_READY);
    Ok(())
}

fn memory(size: Size, cluster: &mut Cluster, section: &mut Section) -> anyhow::Result<()> {
    let before = cluster.process.memory()?.now;
    let rest = PODS.saturating_sub(size.deployments as u64);
    let time = cluster.deploy("many", rest, sleeper())?;
    sleep(WAIT);
    let (memory, server) = (cluster.process.memory()?, server_alone()?);
    let own = memory.now.saturating_sub(server);
    let shown = format!(
        "{}: {} with the API server in it, {} for an API server alone ({} are not pages of the binary; before the last {rest}: {}; they were ready in {:.1} s)",
        mib(own),
        mib(memory.now),
        mib(server),
        mib(memory.own),
        mib(before),
        time / 1000.0
    );
    section.check(
        format!("the node's own memory with {PODS} pods at most {}", mib(MAX_MEMORY)),
        shown,
        own <= MAX_MEMORY,
    );
    Ok(())
}

/// The memory of an API server without objects.
fn server_alone() -> anyhow::Result<u64> {
    let mut command = Command::new(program("kubewake"));
    let server = Process::start("cluster-server", command.args(["apiserver", "--listen", "127.0.0.1:0"]))?;
    sleep(WAIT);
    let memory = server.memory()?.now;
    server.stop()?;
    Ok(memory)
}

/// Ready as soon as it runs.
fn sleeper() -> Value {
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

/// An object in a file, for the client to send.
fn file(name: &str, object: &Value) -> anyhow::Result<PathBuf> {
    let path = directory().join(format!("cluster-{name}.json"));
    std::fs::write(&path, object.to_string())?;
    Ok(path)
}

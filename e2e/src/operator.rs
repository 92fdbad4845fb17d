//! A cluster with the telemetry operator at work.
//!
//! - [`inside`]: on a cluster that was there before the story, the operator runs there, as it is installed;
//! - [`way`]: how a story reaches collectors.

use std::{
    net::SocketAddr,
    process::Command,
    time::{Duration, Instant},
};

use serde_json::Value;

use self::{inside::Inside, way::Way};
use crate::{
    Kubectl, Sink,
    cluster::KUBECONFIG,
    eventually, http,
    load::Report,
    process::{Process, kubewake, workspace},
    until, until_ok,
};

pub mod inside;
mod way;

/// Where the operator makes collectors.
pub const NAMESPACE: &str = "kubewake-system";
/// All kinds of which the operator makes objects.
const MADE: &str = "configmaps,secrets,services,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,deployments,\
                    statefulsets,networkpolicies,poddisruptionbudgets,horizontalpodautoscalers,pods,replicasets";

/// A cluster with nodes that knows pipelines, and the operator beside it, or inside where the cluster is not the story's own.
pub struct Operated {
    operator: Option<Process>,
    address: Option<SocketAddr>,
    args: Vec<String>,
    way: Way,
    /// How an administrator works on the cluster.
    pub kubectl: Kubectl,
    /// The last to go: then it is another story's turn.
    inside: Option<Inside>,
}

impl Operated {
    /// With the operator at work. None where there is no kubectl.
    pub fn start() -> Option<Self> {
        Self::start_with(&[], &[])
    }

    /// The same, or on the cluster that was named, as one finds it after [installing](inside) the operator.
    pub fn anywhere() -> Option<Self> {
        if std::env::var_os(KUBECONFIG).is_none() {
            return Self::start();
        }
        let inside = Inside::turn();
        let kubectl = Kubectl::start()?;
        inside::refuse_unless_alone(&kubectl);
        // From here on everything is removed, whatever fails.
        let operated = Self::of(kubectl, Some(inside));
        operated.inside.iter().for_each(|inside| inside.install(&operated.kubectl));
        Some(operated)
    }

    /// The same, with arguments of `kubewake cluster` and of `kubewake operator`.
    pub fn start_with(cluster: &[&str], operator: &[&str]) -> Option<Self> {
        let mut operated = Self::without_operator(cluster)?;
        operated.args = operator.iter().map(|arg| (*arg).to_owned()).collect();
        operated.start_operator();
        Some(operated)
    }

    /// A cluster that knows pipelines, and nobody who does something about them.
    pub fn without_operator(cluster: &[&str]) -> Option<Self> {
        let kubectl = Kubectl::with_nodes(cluster)?;
        kubectl.ok(&format!("apply --server-side -k {}", workspace().join("deploy/crds").display()));
        kubectl.ok("wait --for=condition=Established crd --all");
        eventually("all kinds are served", || {
            kubectl.run("get tracepipelines,logpipelines,metricpipelines,telemetries", "").code == 0
        });
        Some(Self::of(kubectl, None))
    }

    fn of(kubectl: Kubectl, inside: Option<Inside>) -> Self {
        Self { operator: None, address: None, args: Vec::new(), way: Way::default(), kubectl, inside }
    }

    /// The operator as a command, to be started beside the cluster.
    pub fn command(&self) -> Command {
        let mut command = kubewake();
        command.args(["operator", "--listen", "127.0.0.1:0", "--namespace", NAMESPACE, "--kubeconfig"]);
        // It has the same name each time, so that it leads again at once.
        command.arg(self.kubectl.cluster().kubeconfig()).args(["--identity", "story"]).args(&self.args);
        command
    }

    /// Starts the operator, which does not run.
    pub fn start_operator(&mut self) {
        if let Some(inside) = &self.inside {
            return inside.start(&self.kubectl);
        }
        let mut command = self.command();
        self.start_as(&mut command);
    }

    /// Starts the operator by a command of the story's own.
    pub fn start_as(&mut self, command: &mut Command) {
        let mut operator = Process::start(command);
        let ready = operator.ready();
        self.address = Some(ready.rsplit(' ').next().unwrap().parse().expect("it says where it listens"));
        self.operator = Some(operator);
    }

    /// Lets the operator end in good order.
    pub fn stop_operator(&mut self) {
        if let Some(inside) = &self.inside {
            return inside.stop(&self.kubectl);
        }
        let mut operator = self.operator.take().expect("it runs");
        operator.signal("TERM");
        assert!(operator.wait().success(), "the operator did not end well: {}", operator.stderr());
    }

    /// Kills the operator. Inside of a cluster it has a second to go.
    pub fn kill_operator(&mut self) {
        self.operator = None;
        if let Some(inside) = &self.inside {
            inside.stop(&self.kubectl);
        }
    }

    /// The operator.
    pub fn operator(&self) -> &Process {
        self.operator.as_ref().expect("it runs")
    }

    /// What the operator that runs has logged.
    pub fn said(&self) -> String {
        self.inside.as_ref().map_or_else(|| self.operator().stderr(), |inside| inside.said(&self.kubectl))
    }

    /// One of the operator's own figures: the sum of all that begin so, such as `kubewake_operator_writes_total`.
    pub fn figure(&self, name: &str) -> f64 {
        let page = self.page("/metrics");
        let lines = page.lines().filter(|line| line.starts_with(name));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }

    /// What the operator serves there.
    pub fn page(&self, path: &str) -> String {
        http::get(self.address.expect("it runs"), path).text()
    }

    /// Applies something.
    pub fn apply(&self, manifest: &str) {
        self.kubectl.ok_with("apply -f -", manifest);
    }

    /// Waits until a pipeline (`tracepipeline/backend`) is in a state, and gives its status.
    pub fn until_state(&self, pipeline: &str, state: &str) -> Value {
        self.until_status(pipeline, &format!("is {state}"), |status| status["state"] == state)
    }

    /// Waits until the status of a pipeline has this reason, and gives it.
    pub fn until_reason(&self, pipeline: &str, reason: &str) -> Value {
        self.until_status(pipeline, &format!("says {reason}"), |status| status["reason"] == reason)
    }

    fn until_status(&self, pipeline: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        until_ok(|| {
            let object = self.kubectl.json(pipeline);
            let status = &object["status"];
            let is_observed = status["observedGeneration"] == object["metadata"]["generation"];
            let said = || format!("{pipeline} {what}, but it has {status}");
            (is_observed && holds(status)).then(|| status.clone()).ok_or_else(said)
        })
    }

    /// A condition in a status.
    pub fn condition(status: &Value, name: &str) -> Value {
        let conditions = status["conditions"].as_array().expect("there are conditions");
        conditions.iter().find(|it| it["type"] == name).unwrap_or_else(|| panic!("no {name} in {status}")).clone()
    }

    /// Where senders send to.
    pub fn otlp(&self) -> SocketAddr {
        let address = self.kubectl.field(&format!("service kubewake-otlp --namespace {NAMESPACE}"), ".spec.clusterIP");
        SocketAddr::new(address.parse().expect("it has an address"), 4317)
    }

    /// The collectors' pods: name, uid, and how often they were restarted.
    pub fn pods(&self) -> Vec<(String, String, u64)> {
        let pods = self.kubectl.json(&format!("pods --namespace {NAMESPACE} -l app.kubernetes.io/component=collector"));
        let pods = pods["items"].as_array().unwrap().iter().map(|pod| {
            let text = |field: &str| pod["metadata"][field].as_str().unwrap().to_owned();
            (text("name"), text("uid"), pod["status"]["containerStatuses"][0]["restartCount"].as_u64().unwrap_or(0))
        });
        pods.collect()
    }

    /// Waits until so many collectors of the gateway are ready, and no others are there.
    pub fn until_pods(&self, count: usize) {
        let deployment = format!("deployment kubewake-gateway --namespace {NAMESPACE}");
        eventually(&format!("{count} collectors are ready"), || {
            let there = self.kubectl.exists(&deployment);
            there
                && self.kubectl.field(&deployment, ".status.readyReplicas") == count.to_string()
                && self.pods().len() == count
        });
    }

    /// Sends until everything of a run arrives, and gives that run: what is sent before a pipeline works may be lost.
    pub fn until_delivered(&self, sink: &Sink, args: &[&str]) -> Report {
        until("what is sent arrives", || {
            let (report, sent) = (self.send(args), Instant::now());
            while sent.elapsed() < Duration::from_secs(2) {
                if report.items("acknowledged") > 0 && sink.missing(&report.acknowledged) == 0 {
                    return Some(report);
                }
            }
            None
        })
    }

    /// Everything that runs in the operator's namespace, as `kind/name`, without the operator.
    pub fn workloads(&self) -> String {
        let others = "-l app.kubernetes.io/name!=kubewake-operator";
        self.kubectl.ok(&format!("get deployments,statefulsets,pods --namespace {NAMESPACE} {others} -o name"))
    }

    /// Everything that the operator made, as `kind/name`.
    pub fn made(&self) -> Vec<String> {
        let all = self.kubectl.ok(&format!("get {MADE} --namespace {NAMESPACE} -l telemetry.kubewake.io/part -o name"));
        all.lines().map(str::to_owned).collect()
    }

    /// Waits until nothing is left of what the operator made.
    pub fn until_nothing_is_left(&self) {
        let mut last = Vec::new();
        eventually("everything that the operator made is gone", || {
            last = self.made();
            last.is_empty()
        });
    }
}

impl Drop for Operated {
    fn drop(&mut self) {
        if let Some(inside) = &self.inside {
            inside.remove(&self.kubectl);
        }
    }
}

/// A TracePipeline to a backend without TLS.
pub fn trace_pipeline(name: &str, backend: SocketAddr) -> String {
    pipeline("TracePipeline", name, backend)
}

/// A pipeline of this kind to a backend without TLS.
pub fn pipeline(kind: &str, name: &str, backend: SocketAddr) -> String {
    format!(
        "apiVersion: telemetry.kubewake.io/v1alpha1
kind: {kind}
metadata: {{name: {name}}}
spec: {{output: {{otlp: {{endpoint: {{value: \"http://{backend}\"}}}}}}}}
"
    )
}

/// How collectors run, with this spec in YAML's flow style.
pub fn telemetry(spec: &str) -> String {
    format!("apiVersion: telemetry.kubewake.io/v1alpha1\nkind: Telemetry\nmetadata: {{name: default}}\nspec: {spec}\n")
}

//! A cluster with a running telemetry operator.
//!
//! - [`in_cluster`]: on a cluster that existed before the story, the operator is installed and runs inside;
//! - `collector_access`: how a story reaches collectors.

use std::{
    net::SocketAddr,
    process::Command,
    time::{Duration, Instant},
};

use serde_json::Value;

use self::{collector_access::CollectorAccess, in_cluster::InClusterOperator};
use crate::{
    Kubectl, SinkProcess,
    cluster::KUBECONFIG_VARIABLE,
    http,
    load::LoadReport,
    process::{ChildProcess, kubewake, workspace},
    wait_for, wait_for_ok, wait_until,
};

mod collector_access;
pub mod in_cluster;

/// Namespace of the operator and its collectors.
pub const OPERATOR_NAMESPACE: &str = "kubewake-system";
/// All kinds of objects that the operator creates.
const OWNED_KINDS: &str = "configmaps,secrets,services,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,deployments,\
                    statefulsets,networkpolicies,poddisruptionbudgets,horizontalpodautoscalers,pods,replicasets";

/// A cluster with nodes and the CRDs of pipelines. The operator runs beside it, or inside where the cluster is
/// not the story's own.
pub struct OperatorCluster {
    operator: Option<ChildProcess>,
    address: Option<SocketAddr>,
    args: Vec<String>,
    collector_access: CollectorAccess,
    /// kubectl with an administrator's credentials.
    pub kubectl: Kubectl,
    /// Dropped last, which lets the next story begin.
    in_cluster: Option<InClusterOperator>,
}

impl OperatorCluster {
    /// Starts a cluster and the operator. None where kubectl is not installed.
    pub fn start() -> Option<Self> {
        Self::start_with(&[], &[])
    }

    /// The same, or uses the cluster that the environment names, after [installing](in_cluster) the operator.
    pub fn start_anywhere() -> Option<Self> {
        if std::env::var_os(KUBECONFIG_VARIABLE).is_none() {
            return Self::start();
        }
        let inside = InClusterOperator::wait_for_turn();
        let kubectl = Kubectl::start()?;
        in_cluster::assert_not_installed(&kubectl);
        // From here on a failure removes everything, too.
        let operated = Self::with_kubectl(kubectl, Some(inside));
        operated.in_cluster.iter().for_each(|inside| inside.install(&operated.kubectl));
        Some(operated)
    }

    /// The same with arguments of `kubewake cluster` and of `kubewake operator`.
    pub fn start_with(cluster: &[&str], operator: &[&str]) -> Option<Self> {
        let mut operated = Self::without_operator(cluster)?;
        operated.args = operator.iter().map(|arg| (*arg).to_owned()).collect();
        operated.start_operator();
        Some(operated)
    }

    /// A cluster with the CRDs of pipelines, without an operator.
    pub fn without_operator(cluster: &[&str]) -> Option<Self> {
        let kubectl = Kubectl::with_nodes(cluster)?;
        kubectl.run_ok(&format!("apply --server-side -k {}", workspace().join("deploy/crds").display()));
        kubectl.run_ok("wait --for=condition=Established crd --all");
        wait_until("the API server serves all kinds of pipelines", || {
            kubectl.run("get tracepipelines,logpipelines,metricpipelines,telemetries", "").code == 0
        });
        Some(Self::with_kubectl(kubectl, None))
    }

    fn with_kubectl(kubectl: Kubectl, in_cluster: Option<InClusterOperator>) -> Self {
        Self {
            operator: None,
            address: None,
            args: Vec::new(),
            collector_access: CollectorAccess::default(),
            kubectl,
            in_cluster,
        }
    }

    /// The command of an operator that runs beside the cluster.
    pub fn command(&self) -> Command {
        let mut command = kubewake();
        command.args(["operator", "--listen", "127.0.0.1:0", "--namespace", OPERATOR_NAMESPACE, "--kubeconfig"]);
        // The identity stays the same, so that the operator leads again at once after a restart.
        command.arg(self.kubectl.cluster().kubeconfig()).args(["--identity", "story"]).args(&self.args);
        command
    }

    /// Starts the operator, which must not be running.
    pub fn start_operator(&mut self) {
        if let Some(inside) = &self.in_cluster {
            return inside.start(&self.kubectl);
        }
        let mut command = self.command();
        self.start_operator_with(&mut command);
    }

    /// Starts the operator with the given command.
    pub fn start_operator_with(&mut self, command: &mut Command) {
        let mut operator = ChildProcess::start(command);
        let ready = operator.wait_until_ready();
        self.address = Some(ready.rsplit(' ').next().unwrap().parse().expect("the ready line ends with an address"));
        self.operator = Some(operator);
    }

    /// Shuts the operator down gracefully.
    pub fn stop_operator(&mut self) {
        if let Some(inside) = &self.in_cluster {
            return inside.stop(&self.kubectl);
        }
        let mut operator = self.operator.take().expect("the operator is running");
        operator.signal("TERM");
        assert!(operator.wait_for_exit().success(), "the operator failed: {}", operator.stderr());
    }

    /// Kills the operator. Inside a cluster it has a grace period of one second.
    pub fn kill_operator(&mut self) {
        self.operator = None;
        if let Some(inside) = &self.in_cluster {
            inside.stop(&self.kubectl);
        }
    }

    pub fn operator(&self) -> &ChildProcess {
        self.operator.as_ref().expect("the operator is running")
    }

    /// The log of the running operator.
    pub fn operator_logs(&self) -> String {
        self.in_cluster.as_ref().map_or_else(|| self.operator().stderr(), |inside| inside.logs(&self.kubectl))
    }

    /// The sum of all samples of the operator's metrics that begin so, such as
    /// `kubewake_operator_writes_total`.
    pub fn metric(&self, name: &str) -> f64 {
        let page = self.page("/metrics");
        let lines = page.lines().filter(|line| line.starts_with(name));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }

    /// A page that the operator serves.
    pub fn page(&self, path: &str) -> String {
        http::get(self.address.expect("the operator is running"), path).text()
    }

    pub fn apply(&self, manifest: &str) {
        self.kubectl.run_ok_with("apply -f -", manifest);
    }

    /// Waits until a pipeline (`tracepipeline/backend`) is in a state, and returns its status.
    pub fn wait_for_state(&self, pipeline: &str, state: &str) -> Value {
        self.wait_for_status(pipeline, &format!("is {state}"), |status| status["state"] == state)
    }

    /// Waits until the status of a pipeline has this reason, and returns it.
    pub fn wait_for_reason(&self, pipeline: &str, reason: &str) -> Value {
        self.wait_for_status(pipeline, &format!("has reason {reason}"), |status| status["reason"] == reason)
    }

    fn wait_for_status(&self, pipeline: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        wait_for_ok(|| {
            let object = self.kubectl.json(pipeline);
            let status = &object["status"];
            let is_observed = status["observedGeneration"] == object["metadata"]["generation"];
            let said = || format!("{pipeline} {what}; its status is {status}");
            (is_observed && holds(status)).then(|| status.clone()).ok_or_else(said)
        })
    }

    /// A condition in a status.
    pub fn condition(status: &Value, name: &str) -> Value {
        let conditions = status["conditions"].as_array().expect("the status has conditions");
        conditions
            .iter()
            .find(|it| it["type"] == name)
            .unwrap_or_else(|| panic!("no condition {name} in {status}"))
            .clone()
    }

    /// The OTLP endpoint of the gateway.
    pub fn otlp(&self) -> SocketAddr {
        let address =
            self.kubectl.field(&format!("service kubewake-otlp --namespace {OPERATOR_NAMESPACE}"), ".spec.clusterIP");
        SocketAddr::new(address.parse().expect("the Service has a cluster IP"), 4317)
    }

    /// The collectors' pods: name, uid, and number of restarts.
    pub fn pods(&self) -> Vec<(String, String, u64)> {
        let pods = self
            .kubectl
            .json(&format!("pods --namespace {OPERATOR_NAMESPACE} -l app.kubernetes.io/component=collector"));
        let pods = pods["items"].as_array().unwrap().iter().map(|pod| {
            let text = |field: &str| pod["metadata"][field].as_str().unwrap().to_owned();
            (text("name"), text("uid"), pod["status"]["containerStatuses"][0]["restartCount"].as_u64().unwrap_or(0))
        });
        pods.collect()
    }

    /// Waits until exactly this number of gateway pods exists and is ready.
    pub fn wait_for_pods(&self, count: usize) {
        let deployment = format!("deployment kubewake-gateway --namespace {OPERATOR_NAMESPACE}");
        wait_until(&format!("{count} collectors are ready"), || {
            let there = self.kubectl.exists(&deployment);
            there
                && self.kubectl.field(&deployment, ".status.readyReplicas") == count.to_string()
                && self.pods().len() == count
        });
    }

    /// Sends until all items of a run are delivered, and returns that run: items sent before a pipeline works
    /// may be lost.
    pub fn send_until_delivered(&self, sink: &SinkProcess, args: &[&str]) -> LoadReport {
        wait_for("the sent data arrives", || {
            let report = self.send(args);
            let sent = Instant::now();
            while sent.elapsed() < Duration::from_secs(2) {
                if report.items("acknowledged") > 0 && sink.missing(&report.acknowledged) == 0 {
                    return Some(report);
                }
            }
            None
        })
    }

    /// Workloads in the operator's namespace, as `kind/name`, without the operator.
    pub fn workloads(&self) -> String {
        let others = "-l app.kubernetes.io/name!=kubewake-operator";
        self.kubectl
            .run_ok(&format!("get deployments,statefulsets,pods --namespace {OPERATOR_NAMESPACE} {others} -o name"))
    }

    /// Objects that the operator created, as `kind/name`.
    pub fn owned_objects(&self) -> Vec<String> {
        let all = self.kubectl.run_ok(&format!(
            "get {OWNED_KINDS} --namespace {OPERATOR_NAMESPACE} -l telemetry.kubewake.io/part -o name"
        ));
        all.lines().map(str::to_owned).collect()
    }

    /// Waits until no object that the operator created is left.
    pub fn wait_until_cleaned_up(&self) {
        let mut last = Vec::new();
        wait_until("all objects of the operator are deleted", || {
            last = self.owned_objects();
            last.is_empty()
        });
    }
}

impl Drop for OperatorCluster {
    fn drop(&mut self) {
        if let Some(inside) = &self.in_cluster {
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

/// A `Telemetry` with this spec in YAML's flow style.
pub fn telemetry(spec: &str) -> String {
    format!("apiVersion: telemetry.kubewake.io/v1alpha1\nkind: Telemetry\nmetadata: {{name: default}}\nspec: {spec}\n")
}

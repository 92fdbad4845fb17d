//! A platform team puts trace context on objects of programs that know nothing of it.
//!
//! The stories of kubectl are told on any cluster that reaches this machine (`KUBEWAKE_E2E_HOST`); the API
//! server's own spans are asserted where it is ours.

mod certificates;
mod deployed;
mod rules;
mod trouble;

use kubewake_e2e::{
    ClusterUnderTest, Kubectl, TraceReceiver,
    process::{ChildProcess, kubewake},
    traces::{CallerVisibility, ExportedSpan},
};
use serde_json::Value;

const PARENT: &str = "tracing.k8s.io/traceparent";
const PREVIOUS: &str = "trail.kubewake.io/previous";
const SPEC: &str = "trail.kubewake.io/spec";
const SERVICE: &str = "kubewake-webhook";

/// A cluster whose requests are traced, and a webhook for the ConfigMaps and Deployments of one namespace.
struct Stage {
    webhook: Option<ChildProcess>,
    kubectl: Kubectl,
    traces: TraceReceiver,
    name: String,
    args: Vec<String>,
}

impl Stage {
    /// With these arguments of the webhook. None where there is no kubectl.
    fn start(args: &[&str]) -> Option<Self> {
        let traces = TraceReceiver::start();
        let config = traces.api_server_config(&["system:masters"]);
        let kubectl = Kubectl::start_with(&["--tracing-config-file", config.to_str().unwrap()])?;
        let callers =
            if kubectl.cluster().is_embedded() { CallerVisibility::Trusted } else { CallerVisibility::Hidden };
        let traces = traces.with_callers(callers);
        let name = kubectl.cluster().unique_name();
        let mut stage = Self { webhook: None, kubectl, traces, name, args: Vec::new() };
        stage.args = args.iter().map(|arg| (*arg).to_owned()).collect();
        stage.begin();
        Some(stage)
    }

    /// Starts the webhook, again perhaps. Once this is done every object is stamped.
    fn begin(&mut self) {
        let namespace = format!("kubernetes.io/metadata.name={}", self.kubectl.namespace());
        let mut command = kubewake();
        command.args(["webhook", "--select", "v1/configmaps", "--select", "apps/v1/deployments"]);
        command.args(["--listen", &format!("{}:0", ClusterUnderTest::host()), "--name", &self.name]);
        command.args(["--namespace-selector", &namespace]).args(&self.args).env_remove("RUST_LOG");
        self.traces.export_all_from(&mut command).env("KUBECONFIG", self.kubectl.cluster().kubeconfig());
        let mut process = ChildProcess::start(&mut command);
        process.wait_until_ready();
        self.webhook = Some(process);
        // A registration is in force a moment after it was made.
        kubewake_e2e::wait_until("the API server calls", || {
            let probe = "create configmap probe --dry-run=server -o json";
            let made: Value = serde_json::from_str(&self.kubectl.run_ok(probe)).unwrap();
            !made["metadata"]["annotations"][PARENT].is_null()
        });
    }

    fn webhook(&mut self) -> &mut ChildProcess {
        self.webhook.as_mut().unwrap()
    }

    /// The annotations of an object.
    fn annotations(&self, object: &str) -> Value {
        self.kubectl.json(object)["metadata"]["annotations"].clone()
    }

    /// Those of them that the webhook writes.
    fn stamped(&self, object: &str) -> Value {
        let mut all = self.annotations(object);
        let ours = all.as_object_mut().expect("it has annotations");
        ours.retain(|key, _| key.starts_with("tracing.k8s.io/") || key.starts_with("trail.kubewake.io/"));
        all
    }

    /// The context of an object: `00-trace-span-flags`.
    fn context(&self, object: &str) -> String {
        self.annotations(object)[PARENT].as_str().unwrap_or_else(|| panic!("{object} has no context")).to_owned()
    }

    /// The span that stamped an object.
    fn stamp(&self, object: &str) -> ExportedSpan {
        let context = self.context(object);
        self.traces.wait_for("the span of the stamp", |spans| {
            spans.from_service(SERVICE).find(|span| span.traceparent() == context).cloned()
        })
    }

    /// The ConfigMap as a manifest, as its writer has it.
    fn manifest(&self, name: &str, value: &str) -> String {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{colour: {value}}}\n")
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !self.kubectl.cluster().is_embedded() {
            self.webhook = None;
            self.kubectl.run(&format!("delete mutatingwebhookconfiguration {} --ignore-not-found", self.name), "");
        }
    }
}

fn trace_of(context: &str) -> &str {
    &context[3..35]
}

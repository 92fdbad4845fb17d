//! A cluster whose requests are traced, and programs beside it that take part in the same traces.

use std::{
    fs,
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use serde_json::{Value, json};

use crate::{
    ClusterUnderTest, Kubectl, TraceReceiver,
    cluster::KUBECONFIG_VARIABLE,
    process::{ChildProcess, kubewake},
    traces::CallerVisibility,
    wait_until,
};

/// The group of administrators, whose credentials kubectl uses.
pub const ADMINISTRATORS_GROUP: &str = "system:masters";
/// The annotation that carries a trace context.
const TRACEPARENT_ANNOTATION: &str = "tracing.k8s.io/traceparent";

/// A cluster with nodes whose API server sends its spans to [`TraceReceiver`].
pub struct TracedCluster {
    /// kubectl with an administrator's credentials. Dropped first, so that the cluster ends before the receiver
    /// of its spans.
    pub kubectl: Kubectl,
    pub traces: TraceReceiver,
}

impl TracedCluster {
    /// Starts a cluster with these arguments of `kubewake cluster`, which trusts the trace context of these
    /// groups. None where kubectl is not installed.
    pub fn start(args: &[&str], trusted: &[&str]) -> Option<Self> {
        let callers = if trusted.is_empty() { CallerVisibility::Linked } else { CallerVisibility::Trusted };
        let traces = TraceReceiver::start().with_callers(callers);
        let config = traces.api_server_config(trusted);
        let tracing = ["--tracing-config-file", config.to_str().expect("a path in UTF-8")];
        let kubectl = Kubectl::with_nodes(&[&tracing, args].concat())?;
        Some(Self { traces, kubectl })
    }

    /// The same, or uses the cluster that the environment names. Its API server trusts none of the stories'
    /// callers, and may export no spans.
    pub fn start_anywhere(args: &[&str], trusted: &[&str]) -> Option<Self> {
        if std::env::var_os(KUBECONFIG_VARIABLE).is_none() {
            return Self::start(args, trusted);
        }
        let traces = TraceReceiver::start_external();
        let kubectl = Kubectl::start()?;
        let nudge = format!("get namespace {}", kubectl.namespace());
        traces.wait_for_api_server(|| _ = kubectl.run_ok(&nudge));
        Some(Self { kubectl, traces })
    }

    /// Runs a program as an existing ServiceAccount, with its spans exported to the receiver.
    pub fn as_account(&self, mut program: Command, namespace: &str, name: &str) -> Command {
        let kubeconfig = self.account_kubeconfig(namespace, name);
        self.traces.export_from(&mut program).env("KUBECONFIG", kubeconfig);
        program
    }

    /// Writes a kubeconfig for a ServiceAccount.
    pub fn account_kubeconfig(&self, namespace: &str, name: &str) -> PathBuf {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let token = self.kubectl.run_ok(&format!("create token {name} --namespace {namespace} --duration 24h"));
        let config = self.kubectl.run_ok("config view --raw --minify -o json");
        let mut config: Value = serde_json::from_str(&config).expect("kubectl prints JSON");
        config["users"] = json!([{"name": name, "user": {"token": token.trim()}}]);
        config["contexts"][0]["context"]["user"] = name.into();
        let file = format!("{name}-{}.kubeconfig", NEXT.fetch_add(1, Ordering::Relaxed));
        let path = self.kubectl.cluster().folder().join(file);
        fs::write(&path, config.to_string()).unwrap();
        path
    }

    /// Starts a webhook that stamps objects of these kinds (`GROUP/VERSION/RESOURCE`), with additional
    /// arguments.
    pub fn start_webhook(&self, kinds: &[&str], args: &[&str]) -> ChildProcess {
        let mut command = kubewake();
        let listen = format!("{}:0", ClusterUnderTest::host());
        let name = self.kubectl.cluster().unique_name();
        command.args(["webhook", "--unregister-on-exit", "--listen", &listen, "--name", &name]).args(args);
        kinds.iter().for_each(|kind| _ = command.args(["--select", kind]));
        // It follows the sampling of its callers: an operator's write that changes nothing leaves no span.
        self.traces.export_from(&mut command).env("KUBECONFIG", self.kubectl.cluster().kubeconfig());
        let mut webhook = ChildProcess::start(&mut command);
        webhook.wait_until_ready();
        webhook
    }

    /// Waits until the webhook is called for an object like this one: a registration takes effect with a delay.
    pub fn wait_until_stamped(&self, manifest: &str) {
        wait_until("the API server calls the webhook", || {
            let tried = self.kubectl.run_ok_with("create --dry-run=server -o json -f -", manifest);
            let tried: Value = serde_json::from_str(&tried).expect("kubectl prints JSON");
            !tried["metadata"]["annotations"][TRACEPARENT_ANNOTATION].is_null()
        });
    }

    /// The trace in the context on an object.
    pub fn trace_of(&self, object: &str) -> String {
        let found = self.kubectl.json(object);
        let context = found["metadata"]["annotations"][TRACEPARENT_ANNOTATION].as_str();
        context
            .and_then(|context| context.split('-').nth(1))
            .unwrap_or_else(|| panic!("{object} has no trace context"))
            .to_owned()
    }

    /// Stops the cluster if it is embedded, which exports its remaining spans.
    pub fn stop(mut self) -> TraceReceiver {
        if self.kubectl.cluster().is_embedded() {
            let cluster = self.kubectl.process();
            cluster.signal("TERM");
            assert!(cluster.wait_for_exit().success(), "the cluster failed at the end");
        }
        self.traces
    }
}

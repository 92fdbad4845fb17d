//! A cluster whose requests are traced, and programs beside it that work with it in the same traces.

use std::{
    fs,
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use serde_json::{Value, json};

use crate::{
    Cluster, Kubectl, Traces,
    cluster::KUBECONFIG,
    eventually,
    process::{Process, kubewake},
    traces::Callers,
};

/// An administrator's group, of which kubectl is part here.
pub const ADMINISTRATORS: &str = "system:masters";
/// The annotation that carries a context.
const TRACEPARENT: &str = "tracing.k8s.io/traceparent";

/// A cluster with nodes whose API server sends its spans to [`Traces`].
pub struct Traced {
    /// How an administrator works on the cluster, which ends before those whom it tells do.
    pub kubectl: Kubectl,
    /// What was received.
    pub traces: Traces,
}

impl Traced {
    /// With these arguments of `kubewake cluster`; callers in these groups are believed. None where there is no kubectl.
    pub fn start(args: &[&str], trusted: &[&str]) -> Option<Self> {
        let callers = if trusted.is_empty() { Callers::Linked } else { Callers::Trusted };
        let traces = Traces::start().seen_by(callers);
        let config = traces.api_server_config(trusted);
        let tracing = ["--tracing-config-file", config.to_str().expect("a path in UTF-8")];
        let kubectl = Kubectl::with_nodes(&[&tracing, args].concat())?;
        Some(Self { traces, kubectl })
    }

    /// The same, or on the cluster that was named. Its API server trusts nobody of ours, if anybody gets its spans at all.
    pub fn anywhere(args: &[&str], trusted: &[&str]) -> Option<Self> {
        if std::env::var_os(KUBECONFIG).is_none() {
            return Self::start(args, trusted);
        }
        let (traces, kubectl) = (Traces::elsewhere(), Kubectl::start()?);
        let nudge = format!("get namespace {}", kubectl.namespace());
        traces.until_heard(|| _ = kubectl.ok(&nudge));
        Some(Self { kubectl, traces })
    }

    /// A program of ours that sends its spans and works as this ServiceAccount, which is there.
    pub fn as_account(&self, mut program: Command, namespace: &str, name: &str) -> Command {
        let kubeconfig = self.account_kubeconfig(namespace, name);
        self.traces.export_from(&mut program).env("KUBECONFIG", kubeconfig);
        program
    }

    /// A file by which a ServiceAccount reaches the cluster.
    pub fn account_kubeconfig(&self, namespace: &str, name: &str) -> PathBuf {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let token = self.kubectl.ok(&format!("create token {name} --namespace {namespace} --duration 24h"));
        let config = self.kubectl.ok("config view --raw --minify -o json");
        let mut config: Value = serde_json::from_str(&config).expect("kubectl prints JSON");
        config["users"] = json!([{"name": name, "user": {"token": token.trim()}}]);
        config["contexts"][0]["context"]["user"] = name.into();
        let file = format!("{name}-{}.kubeconfig", NEXT.fetch_add(1, Ordering::Relaxed));
        let path = self.kubectl.cluster().folder().join(file);
        fs::write(&path, config.to_string()).unwrap();
        path
    }

    /// Stamps contexts on objects of these kinds (`GROUP/VERSION/RESOURCE`) from now on, with these arguments beside.
    pub fn webhook(&self, kinds: &[&str], args: &[&str]) -> Process {
        let mut command = kubewake();
        let (listen, name) = (format!("{}:0", Cluster::host()), self.kubectl.cluster().unique_name());
        command.args(["webhook", "--unregister-on-exit", "--listen", &listen, "--name", &name]).args(args);
        kinds.iter().for_each(|kind| _ = command.args(["--select", kind]));
        // It follows the sampling of its callers: an operator's write that changes nothing leaves no span.
        self.traces.export_from(&mut command).env("KUBECONFIG", self.kubectl.cluster().kubeconfig());
        let mut webhook = Process::start(&mut command);
        webhook.ready();
        webhook
    }

    /// Waits until the webhook is called for an object like this: a registration is in force a moment after it was made.
    pub fn until_stamped(&self, manifest: &str) {
        eventually("the API server calls the webhook", || {
            let tried = self.kubectl.ok_with("create --dry-run=server -o json -f -", manifest);
            let tried: Value = serde_json::from_str(&tried).expect("kubectl prints JSON");
            !tried["metadata"]["annotations"][TRACEPARENT].is_null()
        });
    }

    /// The trace that the context on an object belongs to.
    pub fn trace_of(&self, object: &str) -> String {
        let found = self.kubectl.json(object);
        let context = found["metadata"]["annotations"][TRACEPARENT].as_str();
        context
            .and_then(|context| context.split('-').nth(1))
            .unwrap_or_else(|| panic!("{object} has no context"))
            .to_owned()
    }

    /// Ends the cluster, if it is ours. All that it had to say is said then.
    pub fn end(mut self) -> Traces {
        if self.kubectl.cluster().is_embedded() {
            let cluster = self.kubectl.process();
            cluster.signal("TERM");
            assert!(cluster.wait().success(), "the cluster did not end well");
        }
        self.traces
    }
}

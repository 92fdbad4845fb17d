//! Logs of containers: agents come with the first pipeline that reads them, and go with the last.

use kubewake_e2e::{
    backend::{HttpBackend, accepted_reply},
    operator::OperatorCluster,
    process::workspace,
    wait_until,
};

const AGENTS: &str = "--namespace kubewake-agents";

/// A pod that writes a line of JSON and a line of text, and stays.
const WRITER: &str = r#"apiVersion: v1
kind: Pod
metadata: {name: writer, labels: {team: till}}
spec:
  containers:
  - name: app
    image: none
    command: [sh, -c, 'echo "{\"level\":\"error\",\"msg\":\"json-line\",\"order\":17}"; echo plain-line; sleep 3600']
"#;

fn log_pipeline(name: &str, backend: &HttpBackend, runtime: &str) -> String {
    format!(
        "apiVersion: telemetry.kubewake.io/v1alpha1
kind: LogPipeline
metadata: {{name: {name}}}
spec:
  input: {{otlp: {{enabled: false}}, runtime: {runtime}}}
  output: {{otlp: {{protocol: http, endpoint: {{value: \"http://{}\"}}, compression: none}}}}
",
        backend.address()
    )
}

/// A cluster whose operator may have agents.
fn cluster() -> Option<OperatorCluster> {
    let operated = OperatorCluster::start()?;
    operated.kubectl.run_ok(&format!("apply {AGENTS} -f {}", workspace().join("deploy/base/agents.yaml").display()));
    Some(operated)
}

/// Starts a pod in a namespace.
fn start_pod(operated: &OperatorCluster, namespace: &str, manifest: &str) {
    operated.kubectl.run_ok_with(&format!("apply --namespace {namespace} -f -"), manifest);
}

fn made(operated: &OperatorCluster) -> String {
    let kinds = "configmaps,secrets,services,serviceaccounts,networkpolicies,daemonsets,pods";
    operated.kubectl.run_ok(&format!("get {kinds} {AGENTS} -l telemetry.kubewake.io/part -o name"))
}

fn has_received(backend: &HttpBackend, text: &str) -> bool {
    backend.requests().iter().any(|request| request.contains(text))
}

#[test]
fn lines_of_pods_reach_the_backend_with_their_metadata_and_agents_go_with_the_pipeline() {
    let Some(operated) = cluster() else { return };
    let backend = HttpBackend::start(|_| accepted_reply());
    start_pod(&operated, "default", WRITER);
    assert_eq!(made(&operated), "", "nobody reads logs");

    operated.apply(&log_pipeline("containers", &backend, "{}"));
    let status = operated.wait_for_state("logpipeline/containers", "Ready");
    assert_eq!(status["ready"], "1/1", "{status}");
    for text in ["json-line", "plain-line"] {
        wait_until(&format!("{text} arrives"), || has_received(&backend, text));
    }
    for text in ["k8s.pod.name", "writer", "k8s.container.name", "app", "k8s.pod.label.team", "till", "k8s.node.name"] {
        assert!(has_received(&backend, text), "{text}");
    }
    assert!(has_received(&backend, "order") && !has_received(&backend, "\\\"order\\\""), "the line was parsed");
    operated.wait_for_reason("logpipeline/containers", "Delivering");

    operated.kubectl.run_ok("delete logpipeline containers");
    wait_until("the agents are gone", || made(&operated).is_empty());
    operated.wait_until_cleaned_up();
}

#[test]
fn excluded_namespace_stays_on_its_node_and_an_agent_that_is_replaced_reads_on() {
    let Some(operated) = cluster() else { return };
    let backend = HttpBackend::start(|_| accepted_reply());
    operated.kubectl.run_ok("create namespace quiet");
    start_pod(&operated, "quiet", &WRITER.replace("-line", "-secret"));
    start_pod(&operated, "default", WRITER);
    operated.apply(&log_pipeline("containers", &backend, "{namespaces: {exclude: [quiet]}}"));
    operated.wait_for_state("logpipeline/containers", "Ready");
    wait_until("the lines arrive", || has_received(&backend, "plain-line"));

    operated.kubectl.run_ok(&format!("delete pods {AGENTS} -l app.kubernetes.io/name=kubewake-agent"));
    start_pod(&operated, "default", &WRITER.replace("name: writer", "name: later").replace("-line", "-later"));
    wait_until("the next agent reads what came later", || has_received(&backend, "plain-later"));
    let copies = backend.requests().iter().filter(|request| request.contains("plain-line")).count();
    assert_eq!(copies, 1, "what was delivered is not read again");
    assert!(!has_received(&backend, "plain-secret"));
}

//! What stands in a Secret stands nowhere else.

use kubewake_e2e::{
    LoadGenerator, SinkProcess, http,
    operator::{OPERATOR_NAMESPACE, OperatorCluster, telemetry},
    wait_until,
};

use super::guarded;

const PLANTED: &str = "planted-9f2c71";

/// Everything that people can read who may not read Secrets.
fn readable(operated: &OperatorCluster) -> Vec<(String, String)> {
    let objects =
        "configmaps,services,deployments,statefulsets,replicasets,pods,events,tracepipelines,leases,endpointslices";
    let mut all =
        vec![("objects".to_owned(), operated.kubectl.run_ok(&format!("get {objects} --all-namespaces -o yaml")))];
    all.push(("the operator's log".to_owned(), operated.operator().stderr() + &operated.operator().stdout()));
    all.push(("the operator's figures".to_owned(), operated.page("/metrics")));
    for (pod, address) in operated.addresses() {
        all.push((
            format!("the log of {pod}"),
            operated.kubectl.run_ok(&format!("logs {pod} --namespace {OPERATOR_NAMESPACE}")),
        ));
        all.push((format!("the status of {pod}"), http::get((address, 13133).into(), "/status").text()));
        all.push((format!("the figures of {pod}"), http::get((address, 8888).into(), "/metrics").text()));
    }
    all
}

#[test]
fn a_planted_secret_is_found_nowhere() {
    let Some(operated) = OperatorCluster::start() else { return };
    let sink = SinkProcess::start();
    let backend = guarded::by_password(&sink, &["ada:lovelace"]);
    operated.apply(&telemetry("{logLevel: debug}"));
    operated.apply(&guarded::password("ada", PLANTED));
    // A key that the pipeline does not name is nobody's business, and one that is no use is talked about.
    operated.kubectl.run_ok(&format!(
        "patch secret backend -p {{\"stringData\":{{\"other\":\"{PLANTED}\",\"bad\":\"http://{PLANTED}:x\"}}}}"
    ));
    operated.apply(&guarded::with_password(&operated, "backend", backend.grpc()));
    let broken = guarded::with_password(&operated, "broken", backend.grpc());
    let from_secret = guarded::value(&operated, "bad");
    operated.apply(&broken.replace(&format!("{{value: \"http://{}\"}}", backend.grpc()), &from_secret));
    operated.wait_for_reason("tracepipeline/broken", "EndpointInvalid");
    operated.wait_for_state("tracepipeline/backend", "Ready");
    LoadGenerator::run("grpc", operated.otlp(), &["--requests", "10"]);
    operated.wait_for_reason("tracepipeline/backend", "BackendRefuses");

    let encoded = "cGxhbnRlZC05ZjJjNzE"; // the same in base64
    for (place, text) in readable(&operated) {
        assert!(!text.is_empty(), "there is nothing in {place}");
        for needle in [PLANTED, encoded] {
            let line = text.lines().find(|line| line.contains(needle));
            assert_eq!(line, None, "in {place}");
        }
    }
    let values = format!("get secret kubewake-gateway --namespace {OPERATOR_NAMESPACE} -o yaml");
    wait_until("the Secret of the collectors has the value", || operated.kubectl.run_ok(&values).contains(encoded));
}

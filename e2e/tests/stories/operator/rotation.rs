//! What stands in a Secret changes, goes and comes back, and data flows on.

use std::net::SocketAddr;

use kubewake_e2e::{OperatorCluster, SinkProcess, wait_until};

/// A pipeline whose backend stands in a Secret of a namespace.
fn pipeline(namespace: &str) -> String {
    format!(
        "
apiVersion: telemetry.kubewake.io/v1alpha1
kind: TracePipeline
metadata: {{name: backend}}
spec:
  output:
    otlp:
      endpoint: {{valueFrom: {{secretKeyRef: {{name: backend, namespace: {namespace}, key: endpoint}}}}}}
"
    )
}

fn secret(backend: SocketAddr) -> String {
    format!(
        "
apiVersion: v1
kind: Secret
metadata: {{name: backend}}
stringData: {{endpoint: \"http://{backend}\"}}
"
    )
}

#[test]
fn a_secret_is_rotated_under_load_and_no_pod_is_restarted() {
    let Some(operated) = OperatorCluster::start_anywhere() else { return };
    let first = SinkProcess::start();
    let second = SinkProcess::start();
    let namespace = operated.kubectl.namespace();
    operated.apply(&pipeline(namespace));
    let status = operated.wait_for_state("tracepipeline/backend", "Invalid");
    assert_eq!(status["reason"], "SecretMissing", "{status}");
    assert!(status.to_string().contains(&format!("{namespace}/backend")), "it says which: {status}");

    operated.apply(&secret(first.address()));
    operated.wait_for_state("tracepipeline/backend", "Ready");
    wait_until("two collectors exist", || operated.pods().len() == 2);
    operated.kubectl.run_ok("rollout status deployment/kubewake-gateway --namespace kubewake-system");
    let pods = operated.pods();

    let load = operated.start_sending(&["--rate", "500", "--seconds", "600"]);
    wait_until("the first backend gets something", || first.items() > 0);
    operated.apply(&secret(second.address()));
    wait_until("the second backend gets something", || second.items() > 0);
    operated.kubectl.run_ok("delete secret backend");
    let status = operated.wait_for_state("tracepipeline/backend", "Degraded");
    assert_eq!(status["reason"], "SecretMissing", "{status}");
    let before = second.items();
    wait_until("data flows on", || second.items() > before);
    let report = load.stop_early();
    assert_eq!(report.items("acknowledged"), report.items("started"), "{report:?}");
    wait_until("everything has arrived", || {
        first.count("distinct") + second.count("distinct") >= report.items("acknowledged")
    });

    operated.apply(&secret(first.address()));
    operated.wait_for_state("tracepipeline/backend", "Ready");
    assert_eq!(operated.pods(), pods, "nobody was replaced or restarted");
    let told = operated.kubectl.run_ok("describe tracepipeline backend") + operated.operator_logs().as_str();
    assert!(!told.contains(&second.address().to_string()), "what stands in a Secret is said nowhere: {told}");
}

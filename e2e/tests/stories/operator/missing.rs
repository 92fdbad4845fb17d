//! A Secret that is not there is said to be missing, and nothing more is needed than that it appears.

use kubewake_e2e::{OperatorCluster, SinkProcess};

use super::guarded;

#[test]
fn a_pipeline_starts_when_its_secret_appears() {
    let Some(operated) = OperatorCluster::start_anywhere() else { return };
    let sink = SinkProcess::start();
    let backend = guarded::by_password(&sink, &["ada:lovelace"]);
    operated.apply(&guarded::with_password(&operated, "backend", backend.grpc()));
    let status = operated.wait_for_state("tracepipeline/backend", "Invalid");
    let accepted = OperatorCluster::condition(&status, "Accepted");
    assert_eq!(accepted["reason"], "SecretMissing", "{status}");
    assert!(
        accepted["message"].as_str().unwrap().contains(&format!("{}/backend", operated.kubectl.namespace())),
        "{status}"
    );
    assert_eq!(operated.workloads(), "", "it takes no slot");

    operated.apply(&guarded::password("ada", "lovelace"));
    operated.wait_for_state("tracepipeline/backend", "Ready");
    operated.send_until_delivered(&sink, &["--requests", "10"]);

    operated.kubectl.run_ok("delete secret backend");
    let status = operated.wait_for_state("tracepipeline/backend", "Degraded");
    assert_eq!(status["reason"], "SecretMissing", "{status}");
    let report = operated.send(&["--requests", "10"]);
    sink.wait_for_all(&report.acknowledged);

    operated.apply(&guarded::password("ada", "lovelace"));
    operated.wait_for_state("tracepipeline/backend", "Ready");
}

//! What changes while data flows costs no data and no pod.

use kubewake_e2e::{
    SinkProcess, TestAuthority,
    operator::{OPERATOR_NAMESPACE, OperatorCluster},
    wait_until,
};

use super::guarded;

/// Longer than all that these stories do, which end it; what is refused for a time is sent again.
const STEADY: &[&str] = &["--seconds", "600", "--rate", "500", "--spans", "10", "--retry"];

/// Waits until a word is in the gateway's document, and every collector has read that.
fn until_in_force(operated: &OperatorCluster, word: &str) {
    wait_until(&format!("{word} is in force"), || {
        let document = operated
            .kubectl
            .field(&format!("configmap kubewake-gateway --namespace {OPERATOR_NAMESPACE}"), ".data.collector\\.yaml");
        document.contains(word)
            && operated
                .collector_statuses()
                .iter()
                .all(|status| status["revision"]["hash"] == kubewake_config::fingerprint(&document))
    });
}

/// Waits until collectors can read no values but those of this revision.
fn until_only_values_of(operated: &OperatorCluster, revision: &str) {
    wait_until("replaced values are removed from the Secret", || {
        let secret = operated.kubectl.json(&format!("secret kubewake-gateway --namespace {OPERATOR_NAMESPACE}"));
        secret["data"].as_object().is_some_and(|data| data.keys().all(|key| key.ends_with(revision)))
    });
}

fn resource_version(operated: &OperatorCluster) -> String {
    operated.kubectl.field("secret backend", ".metadata.resourceVersion")
}

#[test]
fn a_new_password_and_another_endpoint_cost_no_span_and_no_pod() {
    let Some(operated) = OperatorCluster::start_anywhere() else { return };
    let sink = SinkProcess::start();
    let (first, second) =
        (guarded::by_password(&sink, &["ada:one", "bob:two"]), guarded::by_password(&sink, &["bob:two"]));
    operated.apply(&guarded::password("ada", "one"));
    operated.apply(&guarded::with_password(&operated, "backend", first.grpc()));
    operated.wait_for_pods(2);
    let pods = operated.pods();
    let load = operated.start_sending(STEADY);
    sink.wait_for_items(100);

    operated.apply(&guarded::password("bob", "two"));
    let revision = format!("-r{}", resource_version(&operated));
    until_in_force(&operated, &revision);
    until_only_values_of(&operated, &revision);
    sink.wait_for_items(sink.items() + 500);
    operated.apply(&guarded::with_password(&operated, "backend", second.grpc()));
    until_in_force(&operated, &second.grpc().to_string());
    sink.wait_for_items(sink.items() + 500);

    let report = load.stop_early();
    assert_eq!((report.items("refused"), report.items("failed")), (0, 0), "{report:?}");
    sink.wait_for_all(&report.acknowledged);
    assert_eq!(operated.pods(), pods, "the same, and none was restarted");
    let status = operated.wait_for_reason("tracepipeline/backend", "Delivering");
    assert_eq!(status["state"], "Ready", "{status}");
}

#[test]
fn a_renewed_certificate_costs_no_span_and_no_pod() {
    let Some(operated) = OperatorCluster::start_anywhere() else { return };
    let sink = SinkProcess::start();
    let authority = TestAuthority::new("ours");
    let backend = guarded::by_certificate(&sink, &authority);
    operated.apply(&guarded::certificate(&authority, &authority.sign("first")));
    operated.apply(&guarded::with_certificate(&operated, "backend", backend.grpc()));
    operated.wait_for_pods(2);
    let pods = operated.pods();
    let load = operated.start_sending(STEADY);
    sink.wait_for_items(100);
    for name in ["second", "third"] {
        operated.apply(&guarded::certificate(&authority, &authority.sign(name)));
        until_in_force(&operated, &format!("-r{}", resource_version(&operated)));
        sink.wait_for_items(sink.items() + 500);
    }
    let report = load.stop_early();
    assert_eq!((report.items("refused"), report.items("failed")), (0, 0), "{report:?}");
    sink.wait_for_all(&report.acknowledged);
    assert_eq!(operated.pods(), pods, "the same, and none was restarted");
}

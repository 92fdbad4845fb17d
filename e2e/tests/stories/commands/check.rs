//! What is wrong is said, with what to do about it; before an install and after.

use std::{net::SocketAddr, thread};

use kubewake_e2e::{
    Kubectl, SinkProcess,
    operator::{OPERATOR_NAMESPACE, OperatorCluster, trace_pipeline},
    wait_until,
};

use super::{Said, run};

/// `not a certificate`, in base64.
const NO_PEM: &str = "bm90IGEgY2VydGlmaWNhdGU=";

fn check(kubectl: &Kubectl, args: &str) -> Said {
    let cluster = kubectl.cluster();
    run(cluster.folder(), &format!("check --kubeconfig {} {args}", cluster.kubeconfig().display()))
}

/// Every line that is not well has to say what to do.
fn assert_mendable(said: &Said) {
    let report = said.json();
    for line in report["sections"].as_array().unwrap().iter().flat_map(|section| section["lines"].as_array().unwrap()) {
        assert!(line["result"] == "passed" || line["mend"] != "", "{line}");
    }
}

#[test]
fn without_a_cluster_there_is_one_line() {
    let home = tempfile::tempdir().unwrap();
    let said = run(home.path(), "check");
    assert_eq!(said.code, 1);
    assert!(
        said.stdout.contains("✗ KW101") && said.stdout.contains("→ kubewake check --kubeconfig FILE"),
        "{}",
        said.stdout
    );
    assert!(said.stdout.ends_with("1 check failed\n"), "{}", said.stdout);
    assert_eq!(run(home.path(), "check -o name").stdout, "KW101\n");
    assert_eq!(run(home.path(), "check --pre --endpoint http://x").code, 2);
}

#[test]
fn before_an_install_it_says_whether_one_can_be_made() {
    let Some(kubectl) = Kubectl::start() else { return };
    let said = check(&kubectl, "--pre -o json");
    assert_eq!(
        (said.code, said.results("KW111"), said.results("KW202")),
        (0, vec!["passed".into()], vec!["passed".into()]),
        "{said:?}"
    );

    // Somebody who may do nothing.
    kubectl.run_ok("create serviceaccount guest");
    let token = kubectl.run("create token guest", "");
    if token.code != 0 {
        return eprintln!("skipped: kubectl is too old to make tokens");
    }
    let server = kubectl.run_ok("config view --minify --raw -o jsonpath={.clusters[0].cluster.server}");
    let ca = kubectl.run_ok("config view --minify --raw -o jsonpath={.clusters[0].cluster.certificate-authority-data}");
    let file = kubectl.cluster().folder().join("guest.kubeconfig");
    let text = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "guest",
        "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority-data": ca}}],
        "users": [{"name": "guest", "user": {"token": token.stdout.trim()}}],
        "contexts": [{"name": "guest", "context": {"cluster": "c", "user": "guest"}}],
    });
    std::fs::write(&file, text.to_string()).unwrap();
    let said = run(kubectl.cluster().folder(), &format!("check --pre -o json --kubeconfig {}", file.display()));
    assert_eq!((said.code, said.results("KW111")), (1, vec!["failed".into()]), "{said:?}");
    let line = said.lines("KW111").remove(0);
    assert!(
        line["detail"].as_str().unwrap().contains("create customresourcedefinitions.apiextensions.k8s.io"),
        "{line}"
    );
    assert_mendable(&said);
}

#[test]
fn a_span_is_followed_to_the_backend_and_what_is_wrong_with_it_found() {
    let Some(operated) = OperatorCluster::start() else { return };
    let kubectl = &operated.kubectl;
    let said = check(kubectl, "-o json");
    assert_eq!(said.code, 0, "nothing is wrong without a pipeline: {said:?}");
    assert_eq!((said.results("KW501"), said.results("KW701")), (vec!["warned".into()], vec!["warned".into()]));
    assert_eq!(said.results("KW401"), ["warned"], "this operator has no webhook");

    let sink = SinkProcess::start();
    operated.apply(&trace_pipeline("backend", sink.address()));
    let said = check(kubectl, "--wait 120 -o json");
    assert_eq!(said.code, 0, "{said:?}");
    for code in ["KW102", "KW201", "KW202", "KW301", "KW302", "KW505", "KW601", "KW602", "KW603", "KW701", "KW702"] {
        assert_eq!(said.results(code), ["passed"], "{code} in {said:?}");
    }
    assert!(sink.stats()["items"].as_u64().unwrap() >= 1, "the backend has the span");

    // The backend goes: the pipeline may not know yet, but the span does not arrive.
    drop(sink);
    let said = check(kubectl, "--probe-seconds 3 -o json");
    assert_eq!((said.code, said.results("KW702")), (1, vec!["failed".into()]), "{said:?}");
    assert_mendable(&said);
    operated.wait_for_reason("tracepipeline/backend", "BackendUnreachable");
    let said = check(kubectl, "-o json --probe-seconds 3600");
    assert_eq!((said.code, said.results("KW701")), (1, vec!["passed".into()]), "{said:?}");
    let line = said.lines("KW702").remove(0);
    assert_eq!(line["detail"], "tracepipeline/backend does not deliver (KW505), so its delivery is not awaited");
    assert_mendable(&said);

    // Another one that delivers is waited for, once it has a slot: as it is proposed.
    let sink = SinkProcess::start();
    operated.apply(&trace_pipeline("other", sink.address()));
    operated.wait_for_reason("tracepipeline/other", "Pending");
    let pending = check(kubectl, "--no-probe -o json").lines("KW502").remove(0);
    operated.apply(pending["mend"].as_str().unwrap().split('\'').nth(1).expect("a Telemetry in quotes"));
    operated.wait_for_state("tracepipeline/other", "Ready");
    let said = check(kubectl, "-o json");
    assert_eq!(said.results("KW702"), ["failed", "passed"], "{said:?}");
    let said = check(kubectl, "--no-probe");
    assert_eq!(said.code, 1);
    assert!(
        said.stdout.contains("✗ KW505") && said.stdout.contains("→ kubectl edit tracepipeline backend"),
        "{}",
        said.stdout
    );
}

#[test]
fn nobody_who_answers_is_told_from_nobody_who_is_asked() {
    let Some(kubectl) = installed() else { return };
    let said = until_passed(&kubectl);
    for code in ["KW301", "KW302", "KW303", "KW401", "KW402", "KW403", "KW404"] {
        assert_eq!(said.results(code), ["passed"], "{code} in {said:?}");
    }

    // Somebody changes the registration, so that pipelines are written unseen.
    let patch = r#"[{"op":"replace","path":"/webhooks/0/rules/0/resources","value":["telemetries"]}]"#;
    let patched = format!("patch validatingwebhookconfiguration kubewake-operator --type json --patch {patch}");
    // The operator mends it by itself: ask faster than it does.
    kubectl.run_ok(&format!("scale deployment kubewake-operator --namespace {OPERATOR_NAMESPACE} --replicas 0"));
    wait_until("the operators are gone", || {
        kubectl.run_ok(&format!("get pods --namespace {OPERATOR_NAMESPACE} -o name")).is_empty()
    });
    kubectl.run_ok(&patched);
    let said = check(&kubectl, "-o json");
    assert_eq!(said.code, 1);
    for code in ["KW301", "KW302", "KW403", "KW404"] {
        assert_eq!(said.results(code), ["failed"], "{code} in {said:?}");
    }
    assert_mendable(&said);

    // A registration that believes nobody.
    let patch = format!(r#"[{{"op":"replace","path":"/webhooks/0/clientConfig/caBundle","value":"{NO_PEM}"}}]"#);
    kubectl.run_ok(&format!("patch validatingwebhookconfiguration kubewake-operator --type json --patch {patch}"));
    assert_eq!(check(&kubectl, "-o json").results("KW402"), ["failed"]);
    // What was broken is whole again when the operator is, and a check can wait for it.
    kubectl.run_ok(&format!("scale deployment kubewake-operator --namespace {OPERATOR_NAMESPACE} --replicas 1"));
    assert_eq!(until_passed(&kubectl).code, 0);
}

/// Readiness and kube-proxy differ: pods are ready and the rollout is done, but nobody forwards to the
/// webhook's Service yet.
#[test]
fn pipeline_can_be_applied_once_check_has_waited_for_the_webhook() {
    const PROXY_NAME: &str = "service.kubernetes.io/service-proxy-name";
    let Some(kubectl) = installed() else { return };
    let service = format!("label service kubewake-operator --namespace {OPERATOR_NAMESPACE}");
    kubectl.run_ok(&format!("{service} {PROXY_NAME}=late"));
    kubectl.run_ok(&format!(
        "rollout status deployment/kubewake-operator --namespace {OPERATOR_NAMESPACE} --timeout=240s"
    ));
    let sink = SinkProcess::start();
    let pipeline = trace_pipeline("backend", sink.address());
    let refused = kubectl.run_failing_with("apply -f -", &pipeline);
    assert!(refused.contains("failed calling webhook") && refused.contains("connection refused"), "{refused}");

    let said = check(&kubectl, "--wait=1s --no-probe -o json");
    assert_eq!((said.code, said.results("KW404")), (1, vec!["failed".into()]), "{said:?}");
    assert!(said.lines("KW404")[0]["detail"].as_str().unwrap().contains("connection refused"), "{said:?}");
    assert_mendable(&said);

    let waited = thread::scope(|scope| {
        let waiting = scope.spawn(|| check(&kubectl, "--wait=4m --no-probe -o json"));
        kubectl.run_ok(&format!("{service} {PROXY_NAME}-"));
        waiting.join().unwrap()
    });
    assert_eq!((waited.code, waited.results("KW404")), (0, vec!["passed".into()]), "{waited:?}");
    kubectl.run_ok_with("apply -f -", &pipeline);
}

/// The operator as its manifests have it.
fn installed() -> Option<Kubectl> {
    let kubectl = Kubectl::with_nodes(&[])?;
    let manifests = run(kubectl.cluster().folder(), "operator manifests").stdout;
    kubectl.ok_anywhere("apply --server-side -f -", &manifests);
    Some(kubectl)
}

fn until_passed(kubectl: &Kubectl) -> Said {
    let said = check(kubectl, "--wait 240 -o json");
    assert_eq!(said.code, 0, "{said:?}");
    said
}

#[test]
fn a_span_can_be_sent_elsewhere() {
    let Some(kubectl) = Kubectl::start() else { return };
    let closed: SocketAddr = kubewake_e2e::free_address();
    let said = check(&kubectl, &format!("-o json --endpoint http://{closed}"));
    assert_eq!((said.code, said.results("KW701")), (1, vec!["failed".into()]), "{said:?}");
}

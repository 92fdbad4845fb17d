//! Somebody lets the webhook of a running `up` stamp more than it does.

use kubewake_e2e::{up_process::HomeDir, wait_until};

#[test]
fn the_webhook_is_rolled_out_with_new_arguments_as_often_as_somebody_likes() {
    let home = HomeDir::default();
    let up = home.start(&["--no-demo"]);
    let webhook = ["--namespace", "kubewake-webhook", "deployment/kubewake-webhook"];
    for resource in ["v1/secrets", "v1/services", "v1/configmaps"] {
        let added = format!(
            r#"[{{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"--select={resource}"}}]"#
        );
        let patch = [&["patch"], &webhook[..], &["--type=json", "-p", &added]].concat();
        let Some(_) = up.kubectl(&patch) else { return up.stop_with("TERM") };
        up.kubectl(&[&["rollout", "status", "--timeout=60s"], &webhook[..]].concat());
    }
    // A registration is in force a moment after it was made.
    let create = ["create", "configmap", "shop", "--dry-run=server", "-o", "yaml"];
    wait_until("new objects are stamped", || up.kubectl(&create).unwrap().contains("tracing.k8s.io/traceparent"));
    up.stop_with("TERM");
}

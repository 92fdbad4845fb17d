//! A webhook in trouble stands in nobody's way.

use kubewake_e2e::curl;

use super::*;

#[test]
fn objects_are_made_without_it_and_it_goes_on_where_it_was() {
    let Some(mut stage) = Stage::start(&[]) else { return };
    stage.kubectl.run_ok("create configmap before");
    let context = stage.context("configmap before");
    let restarted = Stage::begin;
    stage.webhook().signal("KILL");
    stage.webhook().wait_for_exit();
    stage.kubectl.run_ok("create configmap during");
    assert!(stage.annotations("configmap during").is_null());
    stage.kubectl.run_ok("label configmap before a=b");
    assert_eq!(stage.context("configmap before"), context);
    restarted(&mut stage);
    stage.kubectl.run_ok("create configmap after");
    stage.stamp("configmap after");
    stage.kubectl.run_ok("label configmap during a=b");
    assert!(stage.annotations("configmap during").is_null(), "it asks for nothing new");
}

#[test]
fn hostile_calls_are_bounded_and_counted() {
    let Some(mut stage) = Stage::start(&[]) else { return };
    let address = stage.webhook().stdout().lines().last().unwrap().rsplit(' ').next().unwrap().to_owned();
    let url = |path: &str| format!("https://{address}{path}");
    let send = |media: &str, body: &[u8]| {
        let media = format!("Content-Type: {media}");
        curl(["--insecure", "-H", &media, "-H", "Expect:", "--data-binary", "@-", &url("/stamp")], body).unwrap().status
    };
    assert_eq!(send("application/json", b"{"), 400);
    assert_eq!(send("application/json", "[".repeat(1 << 20).as_bytes()), 400);
    assert_eq!(send("text/plain", b"{}"), 415);
    let long = curl(
        [
            "--insecure",
            "--http1.1",
            "-H",
            "Content-Type: application/json",
            "-H",
            "Content-Length: 99999999",
            "-X",
            "POST",
            &url("/stamp"),
        ],
        b"",
    );
    assert_eq!(long.unwrap().status, 413);
    assert_eq!(curl(["--insecure", &url("/readyz")], b"").unwrap().status, 200);
    assert_eq!(curl(["--insecure", &url("/elsewhere")], b"").unwrap().status, 404);
    let metrics = curl(["--insecure", &url("/metrics")], b"").unwrap();
    let page = String::from_utf8_lossy(&metrics.body).into_owned();
    for row in [r#"troubles_total{reason="no_review"} 3"#, r#"troubles_total{reason="too_large"} 1"#] {
        assert!(page.contains(row), "{page}");
    }
    stage.kubectl.run_ok("create configmap shop");
    stage.stamp("configmap shop");
}

#[test]
fn who_cannot_begin_says_why() {
    let Some(stage) = Stage::start(&[]) else { return };
    let run = |args: &[&str], kubeconfig: &std::path::Path| {
        let mut command = kubewake();
        command.args(["webhook", "--listen", "127.0.0.1:0"]).args(args).env("KUBECONFIG", kubeconfig);
        let output = ChildProcess::start(&mut command).output();
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let here = stage.kubectl.cluster().kubeconfig();
    let nowhere = std::path::Path::new("/nowhere");
    assert!(run(&[], here).contains("--select"));
    assert!(run(&["--select", "pods"], here).contains("GROUP/VERSION/RESOURCE"));
    assert!(run(&["--select", "v1/configmaps"], nowhere).contains("failed to read kubeconfig /nowhere: No such file"));
    assert!(
        run(&["--select", "v1/configmaps", "--kubeconfig", "/nowhere"], here)
            .contains("failed to read kubeconfig /nowhere")
    );
    assert!(run(&["--select", "v1/configmaps", "--certificate-lifetime", "1s"], here).contains("at least 10s"));
    let secret = ["--select", "v1/configmaps", "--certificate-secret", "absent-namespace/x"];
    assert!(run(&secret, here).contains("failed to write Secret x"));
}

#[test]
fn a_mistyped_selection_and_a_second_webhook_of_one_name_are_told() {
    let Some(stage) = Stage::start(&["--select", "apps/v1/deployment"]) else { return };
    let first = stage.webhook.as_ref().unwrap();
    let said = |what: &str| kubewake_e2e::wait_until(what, || first.stderr().contains(what));
    said("selected resource apps/v1/deployment is not served by the API server");
    said("did you mean apps/v1/deployments?");
    let mut second = kubewake();
    second.args(["webhook", "--select", "v1/secrets", "--listen", &format!("{}:0", ClusterUnderTest::host())]);
    second.args(["--name", &stage.name]).env("KUBECONFIG", stage.kubectl.cluster().kubeconfig());
    let mut second = ChildProcess::start(&mut second);
    second.wait_until_ready();
    said("another webhook also writes this registration");
    said("differs=\"webhooks[");
}

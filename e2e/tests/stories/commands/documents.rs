//! Somebody types what docs/troubleshooting.md says, beside a pipeline whose backend is the viewer.

use std::process::Command;

use kubewake_e2e::{
    ViewerProcess,
    operator::{OperatorCluster, trace_pipeline},
    process::ChildProcess,
    wait_for,
};

use super::{super::readme, trace::send_one};

#[test]
fn everything_that_the_document_says_works() {
    let viewer = ViewerProcess::start();
    let Some(mut operated) = OperatorCluster::without_operator(&[]) else { return };
    let mut operator = operated.command();
    operator.env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf");
    operator.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{}", viewer.http()));
    operated.start_operator_with(&mut operator);
    operated.apply(&trace_pipeline("backend", viewer.grpc()));
    operated.wait_for_state("tracepipeline/backend", "Ready");
    let folder = tempfile::tempdir().unwrap();
    let typed = |command: &str| -> Command {
        let mut shell = readme::shell(command, folder.path());
        shell.env("KUBECONFIG", operated.kubectl.cluster().kubeconfig()).env("NO_PROXY", "*");
        shell.env("KUBEWAKE_VIEWER", viewer.url(""));
        shell
    };
    let mut followed = false;
    for command in readme::commands("docs/troubleshooting.md") {
        if command.starts_with("kubewake tail") {
            let mut tail = ChildProcess::start(&mut typed(&command));
            let mut sent = 0;
            wait_for("a span is seen", || {
                sent += 1;
                send_one(&viewer, sent, "shop", "buy", serde_json::json!({}));
                (!tail.is_running()).then_some(())
            });
            assert!(tail.wait_for_exit().success(), "{}", tail.stderr());
            followed = true;
            continue;
        }
        // What has just happened to an object takes a moment to the viewer.
        let output = wait_for(&command, || {
            let output = typed(&command).output().unwrap();
            (output.status.success() || !command.starts_with("kubewake trace")).then_some(output)
        });
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{command}\n{}{}", text(&output.stdout), text(&output.stderr));
        if command == "kubewake check" {
            assert!(
                text(&output.stdout).contains("✓ KW702 the span reaches the backend: seen in http://"),
                "{}",
                text(&output.stdout)
            );
        }
    }
    assert!(followed, "the document shows how to follow spans");
}

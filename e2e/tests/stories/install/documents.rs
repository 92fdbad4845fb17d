//! Somebody types what docs/running-on-a-cluster.md and docs/pipelines.md say, from the top to the end.

use std::{fs, path::Path, process::Command};

use kubewake_e2e::{SinkProcess, process::kubewake, wait_until};

use super::{super::readme, *};

/// Runs a line as a person does who is at the root of the tree, with this program in the path.
fn typed(kubectl: &Kubectl, folder: &Path, line: &str) {
    let program = kubewake();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let link = folder.join("kubewake");
    if !link.exists() {
        std::os::unix::fs::symlink(program.get_program(), &link).unwrap();
    }
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(folder).env("PATH", path).env("KUBECONFIG", kubectl.cluster().kubeconfig());
    let output = shell.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{line}\n{}{}", text(&output.stdout), text(&output.stderr));
}

/// Those of its own kinds are applied, as whoever reads them would; the rest is for other programs.
fn write_down(folder: &Path, yaml: &str, backend: SocketAddr) -> Option<String> {
    let file = match yaml {
        yaml if !yaml.contains("apiVersion: telemetry.kubewake.io/") => return None,
        yaml if yaml.contains("kind: Telemetry\n") => "telemetry.yaml",
        _ => "pipeline.yaml",
    };
    let yaml = yaml.replace("https://backend.example.com:4317", &format!("http://{backend}"));
    fs::write(folder.join(file), yaml).unwrap();
    Some(format!("kubectl apply -f {file}"))
}

fn walk(kubectl: &Kubectl, folder: &Path, document: &str, backend: SocketAddr) {
    for (language, block) in readme::in_order(document) {
        match language.as_str() {
            "sh" => block.lines().filter(|line| !line.is_empty()).for_each(|line| match line {
                // The archives are made before the tests, with the same names.
                image if image.starts_with("cargo xtask image ") => {}
                line => typed(kubectl, folder, line),
            }),
            "yaml" => {
                if let Some(apply) = write_down(folder, &block, backend) {
                    typed(kubectl, folder, &apply);
                }
            }
            _ => {}
        }
    }
}

#[test]
fn everything_that_the_documents_say_works_in_their_order() {
    // The page makes archives and loads them on the nodes; a registry is not there.
    let Some(kubectl) = with_archives(&[ReleaseImage::Collector, ReleaseImage::Operator]) else { return };
    if !kubectl.is_at_least(31, "wait for conditions as they are used here") {
        return;
    }
    let sink = SinkProcess::start();
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(workspace().join("deploy"), folder.path().join("deploy")).unwrap();
    let install = [
        "kubectl apply -k deploy",
        "kubectl rollout status deployment/kubewake-operator --namespace kubewake-system --timeout 120s",
    ];
    install.iter().for_each(|line| typed(&kubectl, folder.path(), line));
    // Who reads of the API server's traces has a pipeline.
    walk(&kubectl, folder.path(), "docs/pipelines.md", sink.address());
    // The page shows more pipelines than the one that it deletes.
    kubectl.run_ok("delete tracepipelines,logpipelines,metricpipelines --all");
    wait_until("all created objects are deleted", || {
        let left = kubectl
            .run_ok(&format!("get all {SYSTEM} --selector app.kubernetes.io/managed-by=kubewake-operator -o name"));
        left.is_empty()
    });
    kubectl.run_ok_with("apply -f -", &pipeline("again", sink.address()).to_string());
    kubectl.run_ok("wait tracepipeline/again --for condition=CollectorReady --timeout=120s");
    walk(&kubectl, folder.path(), "docs/running-on-a-cluster.md", sink.address());
    assert!(!kubectl.exists("namespace kubewake-system"));
}

//! A platform engineer installs the operator by its manifests, and it works with exactly what they let it do.

mod admission;
mod archives;
mod documents;
mod removed;
mod schemas;
mod whole;

use std::{net::SocketAddr, path::PathBuf};

use kubewake_e2e::{Kubectl, process::workspace};
use kubewake_release::ReleaseImage;
use serde_json::Value;

/// Where the operator is installed.
const SYSTEM: &str = "--namespace kubewake-system";

/// A cluster with nodes on which the operator runs, as `deploy` has it. None where there is no kubectl that can
/// install it.
fn installed() -> Option<Kubectl> {
    let kubectl = Kubectl::with_nodes(&[])?;
    if !kubectl.is_at_least(22, "kustomize that knows patches") {
        return None;
    }
    kubectl.ok_anywhere(&format!("apply -k {}", workspace().join("deploy").display()), "");
    kubectl.run_ok(&format!("rollout status deployment/kubewake-operator {SYSTEM} --timeout=120s"));
    Some(kubectl)
}

/// A cluster whose nodes have the images of these archives, and can pull nothing. None, with a line that says
/// so, where no archives were made.
fn with_archives(images: &[ReleaseImage]) -> Option<Kubectl> {
    let Some(folder) = std::env::var_os("KUBEWAKE_IMAGE_ARCHIVES").map(PathBuf::from) else {
        eprintln!("SKIPPED: no archives of images were made: run `cargo xtask test`");
        return None;
    };
    let archives = images.iter().map(|image| folder.join(format!("{}.tar", image.name())).display().to_string());
    let given = archives.flat_map(|archive| ["--image-archive".to_owned(), archive]);
    let args: Vec<String> = std::iter::once("--only-given-images".to_owned()).chain(given).collect();
    let kubectl = Kubectl::with_nodes(&args.iter().map(String::as_str).collect::<Vec<_>>())?;
    kubectl.is_at_least(22, "kustomize that knows patches").then_some(kubectl)
}

/// A pipeline of traces to a backend of this machine.
fn pipeline(name: &str, backend: SocketAddr) -> Value {
    serde_json::json!({
        "apiVersion": "telemetry.kubewake.io/v1alpha1",
        "kind": "TracePipeline",
        "metadata": {"name": name},
        "spec": {"output": {"otlp": {"endpoint": {"value": format!("http://{backend}")}}}},
    })
}

/// The same, with a password that stands in a Secret.
fn with_password(mut pipeline: Value, namespace: &str, secret: &str) -> Value {
    let named = |key: &str| serde_json::json!({"valueFrom": {"secretKeyRef": {"name": secret, "namespace": namespace, "key": key}}});
    pipeline["spec"]["output"]["otlp"]["authentication"] =
        serde_json::json!({"basic": {"user": {"value": "shop"}, "password": named("password")}});
    pipeline
}

fn said(kubectl: &Kubectl) -> String {
    kubectl.run_ok(&format!("logs --selector app.kubernetes.io/name=kubewake-operator {SYSTEM} --tail=-1"))
}

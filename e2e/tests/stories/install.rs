//! A platform engineer installs the operator by its manifests, and it works with exactly what they let it do.

mod admission;
mod documents;
mod whole;

use std::net::SocketAddr;

use kubewake_e2e::{Kubectl, process::workspace};
use serde_json::Value;

/// Where the operator is installed.
const SYSTEM: &str = "--namespace kubewake-system";

/// A cluster with nodes on which the operator runs, as `deploy` has it. None where there is no kubectl that can install it.
fn installed() -> Option<Kubectl> {
    let kubectl = Kubectl::with_nodes(&[])?;
    if !kubectl.since(22, "kustomize that knows patches") {
        return None;
    }
    kubectl.ok_anywhere(&format!("apply -k {}", workspace().join("deploy").display()), "");
    kubectl.ok(&format!("rollout status deployment/kubewake-operator {SYSTEM} --timeout=120s"));
    Some(kubectl)
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

/// What every operator said.
fn said(kubectl: &Kubectl) -> String {
    kubectl.ok(&format!("logs --selector app.kubernetes.io/name=kubewake-operator {SYSTEM} --tail=-1"))
}

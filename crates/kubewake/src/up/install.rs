//! Installs Kubewake in a cluster that has just started: the manifests of `deploy/` and of the examples,
//! adapted to one machine.
//!
//! One replica is enough where everything runs in one process, and it avoids the wait until API servers know a
//! second one. Spans are exported with a short delay, because a user is watching.

use std::net::SocketAddr;

use anyhow::Context;
use k8s_openapi::api::core::v1::Service;
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::{
    manifest_applier::{self, ManifestApplier, set_env_variable},
    operator,
};

const WEBHOOK_MANIFESTS: [&str; 4] = [
    include_str!("../../../../deploy/webhook/namespace.yaml"),
    include_str!("../../../../deploy/webhook/rbac.yaml"),
    include_str!("../../../../deploy/webhook/service.yaml"),
    include_str!("../../../../deploy/webhook/deployment.yaml"),
];
/// The stamped resources, which users change to see the effects.
const STAMPED_RESOURCES: [&str; 4] =
    ["apps/v1/deployments", "v1/pods", "demo.kubewake.io/*/*", "telemetry.kubewake.io/*/*"];

/// Namespace of the operator and the collectors.
pub(crate) const SYSTEM_NAMESPACE: &str = "kubewake-system";
/// The Service that receives all spans of the cluster.
const OTLP_SERVICE: &str = "kubewake-otlp";
const OTLP_GRPC_PORT: u16 = 4317;

/// A TracePipeline to the viewer, by OTLP over gRPC.
pub(crate) fn pipeline_manifest(viewer: &str) -> Value {
    json!({
        "apiVersion": "telemetry.kubewake.io/v1alpha1", "kind": "TracePipeline", "metadata": {"name": "default"},
        "spec": {"output": {"otlp": {"endpoint": {"value": viewer}}}},
    })
}

/// A LogPipeline of container logs to the viewer, which shows them to those who follow them.
pub(crate) fn log_pipeline_manifest(viewer: &str) -> Value {
    json!({
        "apiVersion": "telemetry.kubewake.io/v1alpha1", "kind": "LogPipeline", "metadata": {"name": "default"},
        "spec": {"input": {"runtime": {}}, "output": {"otlp": {"endpoint": {"value": viewer}}}},
    })
}

pub(crate) fn telemetry_manifest() -> Value {
    json!({
        "apiVersion": "telemetry.kubewake.io/v1alpha1", "kind": "Telemetry", "metadata": {"name": "default"},
        "spec": {"replicas": {"min": 1, "max": 1}},
    })
}

/// The CRDs and the operator. The operator exports directly to the viewer: the pipeline does not exist before
/// it runs.
pub(crate) fn operator_manifests(viewer: SocketAddr) -> anyhow::Result<Vec<Value>> {
    let mut all = manifest_applier::parse_manifest(&operator::default_manifests())?;
    // With one replica it would only block evictions.
    all.retain(|object| object.get("kind").and_then(Value::as_str) != Some("PodDisruptionBudget"));
    let deployment = manifest_applier::find_deployment(&mut all, "kubewake-operator")?;
    configure_single_replica(deployment, |arg| !arg.starts_with("--shutdown-delay"));
    export_traces_to(deployment, &format!("http://{viewer}"));
    Ok(all)
}

pub(crate) fn webhook_manifests(otlp: &str) -> anyhow::Result<Vec<Value>> {
    let mut all = manifest_applier::parse_manifest(&WEBHOOK_MANIFESTS.join("---\n"))?;
    let deployment = manifest_applier::find_deployment(&mut all, "kubewake-webhook")?;
    configure_single_replica(deployment, |arg| !arg.starts_with("--shutdown-delay") && !arg.starts_with("--select"));
    if let Some(Value::Array(args)) = deployment.pointer_mut("/spec/template/spec/containers/0/args") {
        args.extend(STAMPED_RESOURCES.iter().map(|kind| Value::from(format!("--select={kind}"))));
    }
    export_traces_to(deployment, otlp);
    Ok(all)
}

/// Sets one replica, and keeps the arguments that make sense for it.
fn configure_single_replica(deployment: &mut Value, keep: impl Fn(&str) -> bool) {
    if let Some(replicas) = deployment.pointer_mut("/spec/replicas") {
        *replicas = json!(1);
    }
    if let Some(Value::Array(args)) = deployment.pointer_mut("/spec/template/spec/containers/0/args") {
        args.retain(|arg| arg.as_str().is_none_or(&keep));
    }
    // The default delay of five or ten seconds is unnecessary here.
    if let Some(Value::Object(probe)) = deployment.pointer_mut("/spec/template/spec/containers/0/readinessProbe") {
        probe.insert("periodSeconds".to_owned(), json!(1));
    }
}

/// Configures a Deployment to export spans to `endpoint` with a short delay.
pub(crate) fn export_traces_to(deployment: &mut Value, endpoint: &str) {
    set_env_variable(deployment, "OTEL_EXPORTER_OTLP_ENDPOINT", endpoint);
    set_env_variable(deployment, "OTEL_BSP_SCHEDULE_DELAY", "500");
}

/// The endpoint of the pipelines' Service, once it has an address.
pub(crate) async fn wait_for_otlp_endpoint(client: &Client) -> anyhow::Result<String> {
    let services: Api<Service> = Api::namespaced(client.clone(), SYSTEM_NAMESPACE);
    let address = |service: &Service| service.spec.as_ref().and_then(|spec| spec.cluster_ip.clone());
    let found = manifest_applier::wait_until(services, OTLP_SERVICE, |service| address(service).is_some()).await?;
    let address = address(&found).with_context(|| format!("Service {OTLP_SERVICE} has no cluster IP"))?;
    Ok(format!("http://{address}:{OTLP_GRPC_PORT}"))
}

/// Waits until the collectors report that the pipeline works.
pub(crate) async fn wait_for_pipeline(objects: &mut ManifestApplier, pipeline: &Value) -> anyhow::Result<()> {
    let api = objects.api_for_object(pipeline).await?;
    let is_ready = |object: &kube::api::DynamicObject| {
        let status = object.data.get("status");
        let field = |name: &str| status.and_then(|status| status.get(name));
        field("state").and_then(Value::as_str) == Some("Ready")
            && field("observedGeneration").and_then(Value::as_i64) == object.metadata.generation
    };
    manifest_applier::wait_until(api, "default", is_ready).await.map(drop)
}

/// The API server exports its spans to the pipelines' Service, which it resolves itself, and trusts the trace
/// context of callers in the cluster.
pub(crate) const TRACING_CONFIGURATION: &str = "apiVersion: apiserver.config.k8s.io/v1alpha1
kind: OpenTelemetryClientConfiguration
service: {namespace: kubewake-system, name: kubewake-otlp, port: 4317}
samplingRatePerMillion: 1000000
trustedGroups: [system:masters, system:serviceaccounts]
authenticationRoots: false
";

#[cfg(test)]
mod tests {
    use super::*;

    fn at() -> SocketAddr {
        ([127, 0, 0, 1], 4317).into()
    }

    fn container<'a>(objects: &'a mut [Value], name: &str) -> (&'a Value, &'a Value) {
        let deployment = manifest_applier::find_deployment(objects, name).unwrap();
        (&deployment["spec"]["replicas"], &deployment["spec"]["template"]["spec"]["containers"][0])
    }

    #[test]
    fn the_operator_is_alone_and_tells_the_viewer() {
        let mut all = operator_manifests(at()).unwrap();
        assert!(all.iter().any(|object| object["kind"] == "CustomResourceDefinition"));
        assert!(all.iter().all(|object| object["kind"] != "PodDisruptionBudget"));
        let (replicas, container) = container(&mut all, "kubewake-operator");
        assert_eq!(*replicas, 1);
        assert!(!container["args"].to_string().contains("shutdown-delay"), "{container}");
        assert!(container["args"].to_string().contains("--webhook-service"), "{container}");
        let endpoint = json!({"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://127.0.0.1:4317"});
        assert!(container["env"].as_array().unwrap().contains(&endpoint), "{container}");
    }

    #[test]
    fn the_webhook_stamps_what_people_change_here() {
        let mut all = webhook_manifests("http://127.1.1.1:4317").unwrap();
        let (replicas, container) = container(&mut all, "kubewake-webhook");
        assert_eq!(*replicas, 1);
        let args = container["args"].as_array().unwrap();
        let selects = args.iter().filter(|arg| arg.as_str().unwrap().starts_with("--select"));
        assert_eq!(selects.count(), STAMPED_RESOURCES.len());
    }
}

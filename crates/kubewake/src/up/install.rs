//! What is applied to a cluster that has just started: the manifests of `deploy/` and of the examples, for one machine.
//!
//! One replica is enough where everything shares the fate of one process, and nobody has to wait until API servers have learned to call
//! another one. Spans come soon, as somebody is looking.

use std::net::SocketAddr;

use anyhow::Context;
use k8s_openapi::api::core::v1::Service;
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::{
    objects::{self, Objects, set_variable},
    operator,
};

/// The webhook's manifests.
const WEBHOOK: [&str; 4] = [
    include_str!("../../../../deploy/webhook/namespace.yaml"),
    include_str!("../../../../deploy/webhook/rbac.yaml"),
    include_str!("../../../../deploy/webhook/service.yaml"),
    include_str!("../../../../deploy/webhook/deployment.yaml"),
];
/// What is stamped: what people change to see what comes of it.
const STAMPED: [&str; 4] = ["apps/v1/deployments", "v1/pods", "demo.kubewake.io/*/*", "telemetry.kubewake.io/*/*"];

/// Where operator and collectors are.
pub(crate) const SYSTEM: &str = "kubewake-system";
/// By which everything in the cluster sends its spans.
const OTLP: &str = "kubewake-otlp";
const OTLP_PORT: u16 = 4317;

/// The TracePipeline that ends at the viewer, which takes OTLP over gRPC there.
pub(crate) fn pipeline(viewer: &str) -> Value {
    json!({
        "apiVersion": "telemetry.kubewake.io/v1alpha1", "kind": "TracePipeline", "metadata": {"name": "default"},
        "spec": {"output": {"otlp": {"endpoint": {"value": viewer}}}},
    })
}

/// How collectors run here.
pub(crate) fn telemetry() -> Value {
    json!({
        "apiVersion": "telemetry.kubewake.io/v1alpha1", "kind": "Telemetry", "metadata": {"name": "default"},
        "spec": {"replicas": {"min": 1, "max": 1}},
    })
}

/// The kinds and the operator. Its own spans go straight to the viewer: the pipeline is what it is about to make.
pub(crate) fn operator(viewer: SocketAddr) -> anyhow::Result<Vec<Value>> {
    let mut all = objects::parse(&operator::manifests())?;
    // With one replica it would only be in the way.
    all.retain(|object| object.get("kind").and_then(Value::as_str) != Some("PodDisruptionBudget"));
    let deployment = objects::deployment(&mut all, "kubewake-operator")?;
    alone(deployment, |arg| !arg.starts_with("--shutdown-delay"));
    trace_to(deployment, &format!("http://{viewer}"));
    Ok(all)
}

/// The webhook.
pub(crate) fn webhook(otlp: &str) -> anyhow::Result<Vec<Value>> {
    let mut all = objects::parse(&WEBHOOK.join("---\n"))?;
    let deployment = objects::deployment(&mut all, "kubewake-webhook")?;
    alone(deployment, |arg| !arg.starts_with("--shutdown-delay") && !arg.starts_with("--select"));
    if let Some(Value::Array(args)) = deployment.pointer_mut("/spec/template/spec/containers/0/args") {
        args.extend(STAMPED.iter().map(|kind| Value::from(format!("--select={kind}"))));
    }
    trace_to(deployment, otlp);
    Ok(all)
}

/// One replica, with those of its arguments that make sense for one.
fn alone(deployment: &mut Value, keep: impl Fn(&str) -> bool) {
    if let Some(replicas) = deployment.pointer_mut("/spec/replicas") {
        *replicas = json!(1);
    }
    if let Some(Value::Array(args)) = deployment.pointer_mut("/spec/template/spec/containers/0/args") {
        args.retain(|arg| arg.as_str().is_none_or(&keep));
    }
    // Nobody waits five or ten seconds to learn what is so after one.
    if let Some(Value::Object(probe)) = deployment.pointer_mut("/spec/template/spec/containers/0/readinessProbe") {
        probe.insert("periodSeconds".to_owned(), json!(1));
    }
}

/// Spans of a Deployment go there, and soon.
pub(crate) fn trace_to(deployment: &mut Value, endpoint: &str) {
    set_variable(deployment, "OTEL_EXPORTER_OTLP_ENDPOINT", endpoint);
    set_variable(deployment, "OTEL_BSP_SCHEDULE_DELAY", "500");
}

/// Where the pipelines' Service is, once it has an address.
pub(crate) async fn otlp(client: &Client) -> anyhow::Result<String> {
    let services: Api<Service> = Api::namespaced(client.clone(), SYSTEM);
    let address = |service: &Service| service.spec.as_ref().and_then(|spec| spec.cluster_ip.clone());
    let found = objects::becomes(services, OTLP, |service| address(service).is_some()).await?;
    let address = address(&found).with_context(|| format!("Service {OTLP} has no address"))?;
    Ok(format!("http://{address}:{OTLP_PORT}"))
}

/// Waits until the collectors say that the pipeline works.
pub(crate) async fn pipeline_ready(objects: &mut Objects, pipeline: &Value) -> anyhow::Result<()> {
    let api = objects.api_of(pipeline).await?;
    let is_ready = |object: &kube::api::DynamicObject| {
        let status = object.data.get("status");
        let field = |name: &str| status.and_then(|status| status.get(name));
        field("state").and_then(Value::as_str) == Some("Ready")
            && field("observedGeneration").and_then(Value::as_i64) == object.metadata.generation
    };
    objects::becomes(api, "default", is_ready).await.map(drop)
}

/// The API server's own spans go to the pipelines' Service, which it looks up for itself. Whoever works in the cluster is believed.
pub(crate) const TRACING: &str = "apiVersion: apiserver.config.k8s.io/v1alpha1
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
        let deployment = objects::deployment(objects, name).unwrap();
        (&deployment["spec"]["replicas"], &deployment["spec"]["template"]["spec"]["containers"][0])
    }

    #[test]
    fn the_operator_is_alone_and_tells_the_viewer() {
        let mut all = operator(at()).unwrap();
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
        let mut all = webhook("http://127.1.1.1:4317").unwrap();
        let (replicas, container) = container(&mut all, "kubewake-webhook");
        assert_eq!(*replicas, 1);
        let args = container["args"].as_array().unwrap();
        let selects = args.iter().filter(|arg| arg.as_str().unwrap().starts_with("--select"));
        assert_eq!(selects.count(), STAMPED.len());
    }
}

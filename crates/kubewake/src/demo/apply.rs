//! Applies a sample and its operator to a cluster.

use std::{path::Path, time::Duration};

use anyhow::{Context, bail};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, Client, Config, ResourceExt as _,
    api::{DynamicObject, ListParams},
};
use kubewake_api::v1alpha1::TracePipeline;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::DemoSample;
use crate::{
    kube_client,
    manifest_applier::{self, ManifestApplier},
    output::text::shell_quote,
    up::install,
};

const FIELD_MANAGER: &str = "kubewake-demo";
/// Set on every object that passes the webhook.
const TRACEPARENT_ANNOTATION: &str = "tracing.k8s.io/traceparent";
/// Only a broken system exceeds this.
const READY_TIMEOUT: Duration = Duration::from_secs(90);
/// Interval of the dry runs that show whether the webhook is called.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Clients of the cluster, with and without tracing.
pub(crate) struct DemoClients {
    /// Requests of this client start traces.
    traced: Client,
    /// Requests of this client carry a trace context that is not sampled.
    pub(crate) quiet: Client,
    /// The kubectl command in messages, which must not address another cluster.
    kubectl: String,
}

#[derive(Debug)]
pub(crate) struct AppliedSample {
    pub(crate) trace_id: String,
    /// A description of the change.
    pub(crate) change: String,
}

impl DemoClients {
    /// `kubeconfig` appears in kubectl commands; none if kubectl finds the cluster by default.
    pub(crate) fn new(config: Config, kubeconfig: Option<&Path>) -> anyhow::Result<Self> {
        Ok(Self {
            traced: Client::try_from(config.clone())?,
            quiet: Client::try_from(kube_client::without_tracing(config))?,
            kubectl: kubeconfig
                .map_or_else(|| "kubectl".to_owned(), |file| format!("kubectl --kubeconfig {}", shell_quote(file))),
        })
    }
}

/// Whether the sample's operator is installed.
pub(super) async fn is_installed(clients: &DemoClients, sample: DemoSample) -> anyhow::Result<bool> {
    let (namespace, name) = sample.operator();
    let deployments: Api<Deployment> = Api::namespaced(clients.quiet.clone(), namespace);
    let found =
        deployments.get_opt(name).await.with_context(|| format!("failed to get Deployment {namespace}/{name}"))?;
    Ok(found.is_some())
}

/// Fails if there is no active TracePipeline, because no trace would reach the viewer.
pub(super) async fn ensure_pipeline(clients: &DemoClients, viewer: &str) -> anyhow::Result<()> {
    let pipelines: Api<TracePipeline> = Api::all(clients.quiet.clone());
    let found = pipelines.list(&ListParams::default()).await.context("failed to list TracePipelines")?;
    if found.items.is_empty() {
        bail!(
            "there is no TracePipeline, so no trace would reach the viewer. Create the one of `kubewake up` again:\n  \
             echo '{}' | {} apply -f -",
            install::pipeline_manifest(viewer),
            clients.kubectl
        )
    }
    if let Some(first) = found.items.first().filter(|_| found.items.iter().all(|it| it.spec.paused)) {
        let name = first.name_any();
        bail!(
            "TracePipeline {name} is paused, so no trace would reach the viewer. Resume it:\n  \
             {} patch tracepipeline {name} --type=merge -p '{{\"spec\":{{\"paused\":false}}}}'",
            clients.kubectl
        )
    }
    Ok(())
}

/// Applies the sample's CRDs, which may have been deleted since its operator was installed.
pub(super) async fn apply_definitions(clients: &DemoClients, sample: DemoSample) -> anyhow::Result<()> {
    let mut manifests = sample.manifests()?;
    manifests.retain(|object| object.get("kind").and_then(Value::as_str) == Some("CustomResourceDefinition"));
    ManifestApplier::new(clients.quiet.clone(), FIELD_MANAGER).apply_all(&manifests).await
}

/// Applies the sample's CRDs and its operator, whose spans go to the pipelines.
pub(crate) async fn apply_operator(clients: &DemoClients, sample: DemoSample) -> anyhow::Result<()> {
    let otlp = timeout(READY_TIMEOUT, install::wait_for_otlp_endpoint(&clients.quiet))
        .await
        .context("timed out while waiting for Service kubewake-otlp")??;
    let mut manifests = sample.manifests()?;
    install::export_traces_to(manifest_applier::find_deployment(&mut manifests, sample.operator().1)?, &otlp);
    ManifestApplier::new(clients.quiet.clone(), FIELD_MANAGER).apply_all(&manifests).await
}

/// Waits until the sample's operator is available.
pub(crate) async fn wait_for_operator(clients: &DemoClients, sample: DemoSample) -> anyhow::Result<()> {
    let (namespace, name) = sample.operator();
    let available =
        timeout(READY_TIMEOUT, manifest_applier::wait_until_available(&clients.quiet, namespace, name)).await;
    available.with_context(|| {
        let seconds = READY_TIMEOUT.as_secs();
        let kubectl = &clients.kubectl;
        format!("Deployment {namespace}/{name} is not ready after {seconds} s: see `{kubectl} --namespace {namespace} get pods`")
    })?
}

/// Applies the sample, or a change of it if it exists.
pub(crate) async fn apply_sample(clients: &DemoClients, sample: DemoSample) -> anyhow::Result<AppliedSample> {
    let mut quiet = ManifestApplier::new(clients.quiet.clone(), FIELD_MANAGER);
    let now = quiet.get(&sample.object()?).await?;
    let (object, what) = sample.next_change(now.as_ref().map(|now| &now.data))?;
    let before = now.as_ref().and_then(annotated_trace_id);
    wait_until_stamped(&mut quiet, &object, before.as_deref(), &clients.kubectl).await?;
    let applied = ManifestApplier::new(clients.traced.clone(), FIELD_MANAGER).apply(&object).await?;
    let trace = changed_trace_id(&applied, before.as_deref()).with_context(|| {
        format!(
            "{} {what}, but has no trace, because the webhook did not answer the API server in time: try again",
            sample.title()
        )
    })?;
    Ok(AppliedSample { trace_id: trace, change: what })
}

/// The trace of the existing sample.
pub(crate) async fn current_trace_id(clients: &DemoClients, sample: DemoSample) -> anyhow::Result<Option<String>> {
    let found = ManifestApplier::new(clients.quiet.clone(), FIELD_MANAGER).get(&sample.object()?).await?;
    Ok(found.as_ref().and_then(annotated_trace_id))
}

/// Waits until the status of the sample is ready for its current generation.
pub(crate) async fn wait_until_ready(clients: &DemoClients, sample: DemoSample) -> anyhow::Result<()> {
    let api = ManifestApplier::new(clients.quiet.clone(), FIELD_MANAGER).api_for_object(&sample.object()?).await?;
    let is_ready = |object: &DynamicObject| {
        let Some(status) = object.data.get("status") else { return false };
        let conditions = status.get("conditions").and_then(Value::as_array).into_iter().flatten();
        let mut conditions = conditions.map(|it| (it.get("type"), it.get("status")));
        status.get("observedGeneration").and_then(Value::as_i64) == object.metadata.generation
            && conditions.any(|it| it == (Some(&json!("Ready")), Some(&json!("True"))))
    };
    manifest_applier::wait_until(api, sample.namespace_and_name().1, is_ready).await.map(drop)
}

/// Waits until the webhook is called: a new registration takes effect with a delay.
async fn wait_until_stamped(
    objects: &mut ManifestApplier,
    object: &Value,
    before: Option<&str>,
    kubectl: &str,
) -> anyhow::Result<()> {
    let deadline = Instant::now() + READY_TIMEOUT;
    while changed_trace_id(&objects.dry_run(object).await?, before).is_none() {
        if Instant::now() > deadline {
            bail!(
                "the webhook does not add trace context to objects: see `{kubectl} --namespace kubewake-webhook logs deployment/kubewake-webhook`"
            )
        }
        sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

/// The trace in its annotation, unless it is still the previous one.
fn changed_trace_id(object: &DynamicObject, before: Option<&str>) -> Option<String> {
    annotated_trace_id(object).filter(|trace| Some(trace.as_str()) != before)
}

fn annotated_trace_id(object: &DynamicObject) -> Option<String> {
    let context = object.annotations().get(TRACEPARENT_ANNOTATION)?;
    context.split('-').nth(1).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use kube::api::ApiResource;

    use super::*;

    #[test]
    fn a_change_that_was_not_stamped_has_not_the_trace_of_the_one_before() {
        let stamped = |context: &str| {
            let object = json!({"metadata": {"name": "sample", "annotations": {TRACEPARENT_ANNOTATION: context}}});
            serde_json::from_value::<DynamicObject>(object).unwrap()
        };
        let found = |context: &str, before: Option<&str>| changed_trace_id(&stamped(context), before);
        assert_eq!(found("00-b-1-01", Some("a")).as_deref(), Some("b"));
        assert_eq!(found("00-a-1-01", None).as_deref(), Some("a"));
        assert_eq!(found("00-a-1-01", Some("a")), None);
        assert_eq!(
            changed_trace_id(&DynamicObject::new("sample", &ApiResource::erase::<TracePipeline>(&())), None),
            None
        );
    }
}

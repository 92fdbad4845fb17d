//! A sample and its operator in a cluster.

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

use super::Sample;
use crate::{
    client,
    objects::{self, Objects},
    output::text::quoted,
    up::install,
};

/// Who applies samples.
const MANAGER: &str = "kubewake-demo";
/// On every object that the webhook has seen.
const TRACEPARENT: &str = "tracing.k8s.io/traceparent";
/// Only a broken system needs this long.
const PATIENCE: Duration = Duration::from_secs(90);
/// How often it is tried whether the webhook is called yet.
const PAUSE: Duration = Duration::from_millis(100);

/// How the cluster is reached: as anybody does, and without a trace.
pub(crate) struct Clients {
    /// What it does begins traces.
    traced: Client,
    /// What it does leaves none: it is part of one that nobody records.
    pub(crate) quiet: Client,
    /// How kubectl is called on it: what somebody is told to type must not go to another cluster.
    kubectl: String,
}

/// A sample that was applied.
#[derive(Debug)]
pub(crate) struct Applied {
    /// Its trace.
    pub(crate) trace: String,
    /// What it changed, in words.
    pub(crate) what: String,
}

impl Clients {
    /// By a kubeconfig that kubectl has to be told of, unless it finds the cluster by itself.
    pub(crate) fn new(config: Config, kubeconfig: Option<&Path>) -> anyhow::Result<Self> {
        Ok(Self {
            traced: Client::try_from(config.clone())?,
            quiet: Client::try_from(client::quiet(config))?,
            kubectl: kubeconfig
                .map_or_else(|| "kubectl".to_owned(), |file| format!("kubectl --kubeconfig {}", quoted(file))),
        })
    }
}

/// Whether the sample's operator is there.
pub(super) async fn is_installed(clients: &Clients, sample: Sample) -> anyhow::Result<bool> {
    let (namespace, name) = sample.operator();
    let deployments: Api<Deployment> = Api::namespaced(clients.quiet.clone(), namespace);
    let found = deployments.get_opt(name).await.with_context(|| format!("Deployment {name} cannot be read"))?;
    Ok(found.is_some())
}

/// Without a pipeline nobody learns of what happens.
pub(super) async fn has_pipeline(clients: &Clients, viewer: &str) -> anyhow::Result<()> {
    let pipelines: Api<TracePipeline> = Api::all(clients.quiet.clone());
    let found = pipelines.list(&ListParams::default()).await.context("TracePipelines cannot be listed")?;
    if found.items.is_empty() {
        bail!(
            "there is no TracePipeline, so that no trace would come to the viewer. This makes the one of `kubewake up` again:\n  \
             echo '{}' | {} apply -f -",
            install::pipeline(viewer),
            clients.kubectl
        )
    }
    if let Some(first) = found.items.first().filter(|_| found.items.iter().all(|it| it.spec.paused)) {
        let name = first.name_any();
        bail!(
            "TracePipeline {name} is paused, so that no trace would come to the viewer. This resumes it:\n  \
             {} patch tracepipeline {name} --type=merge -p '{{\"spec\":{{\"paused\":false}}}}'",
            clients.kubectl
        )
    }
    Ok(())
}

/// Applies the sample's kinds, which somebody may have deleted since its operator came.
pub(super) async fn define(clients: &Clients, sample: Sample) -> anyhow::Result<()> {
    let mut manifests = sample.manifests()?;
    manifests.retain(|object| object.get("kind").and_then(Value::as_str) == Some("CustomResourceDefinition"));
    Objects::new(clients.quiet.clone(), MANAGER).apply_all(&manifests).await
}

/// Applies the sample's kinds and its operator, whose spans go to the pipelines.
pub(crate) async fn install(clients: &Clients, sample: Sample) -> anyhow::Result<()> {
    let otlp = timeout(PATIENCE, install::otlp(&clients.quiet)).await.context("there is no pipeline")??;
    let mut manifests = sample.manifests()?;
    install::trace_to(objects::deployment(&mut manifests, sample.operator().1)?, &otlp);
    Objects::new(clients.quiet.clone(), MANAGER).apply_all(&manifests).await
}

/// Waits until the sample's operator works.
pub(crate) async fn ready(clients: &Clients, sample: Sample) -> anyhow::Result<()> {
    let (namespace, name) = sample.operator();
    let available = timeout(PATIENCE, objects::available(&clients.quiet, namespace, name)).await;
    available.with_context(|| {
        let (seconds, kubectl) = (PATIENCE.as_secs(), &clients.kubectl);
        format!("{name} is not ready after {seconds} s: see `{kubectl} --namespace {namespace} get pods`")
    })?
}

/// Applies the sample, or a change of it where it is there.
pub(crate) async fn run(clients: &Clients, sample: Sample) -> anyhow::Result<Applied> {
    let mut quiet = Objects::new(clients.quiet.clone(), MANAGER);
    let now = quiet.get(&sample.object()?).await?;
    let (object, what) = sample.next(now.as_ref().map(|now| &now.data))?;
    let before = now.as_ref().and_then(trace_of);
    until_stamped(&mut quiet, &object, before.as_deref(), &clients.kubectl).await?;
    let applied = Objects::new(clients.traced.clone(), MANAGER).apply(&object).await?;
    let trace = new_trace(&applied, before.as_deref()).with_context(|| {
        format!(
            "{} {what}, and got no trace: the webhook did not answer the API server in time, as on a machine that is very busy. Try it again",
            sample.title()
        )
    })?;
    Ok(Applied { trace, what })
}

/// The trace of the sample that is there.
pub(crate) async fn current(clients: &Clients, sample: Sample) -> anyhow::Result<Option<String>> {
    let found = Objects::new(clients.quiet.clone(), MANAGER).get(&sample.object()?).await?;
    Ok(found.as_ref().and_then(trace_of))
}

/// Waits until the sample says that it is ready as it is specified now.
pub(crate) async fn is_ready(clients: &Clients, sample: Sample) -> anyhow::Result<()> {
    let api = Objects::new(clients.quiet.clone(), MANAGER).api_of(&sample.object()?).await?;
    let is_ready = |object: &DynamicObject| {
        let Some(status) = object.data.get("status") else { return false };
        let conditions = status.get("conditions").and_then(Value::as_array).into_iter().flatten();
        let mut conditions = conditions.map(|it| (it.get("type"), it.get("status")));
        status.get("observedGeneration").and_then(Value::as_i64) == object.metadata.generation
            && conditions.any(|it| it == (Some(&json!("Ready")), Some(&json!("True"))))
    };
    objects::becomes(api, sample.place().1, is_ready).await.map(drop)
}

/// A registration is in force a moment after it was made: waits until the webhook would be called.
async fn until_stamped(
    objects: &mut Objects,
    object: &Value,
    before: Option<&str>,
    kubectl: &str,
) -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while new_trace(&objects.try_out(object).await?, before).is_none() {
        if Instant::now() > deadline {
            bail!(
                "no trace context is put on objects: see `{kubectl} --namespace kubewake-webhook logs deployment/kubewake-webhook`"
            )
        }
        sleep(PAUSE).await;
    }
    Ok(())
}

/// The trace that it names, unless that is still the one of before.
fn new_trace(object: &DynamicObject, before: Option<&str>) -> Option<String> {
    trace_of(object).filter(|trace| Some(trace.as_str()) != before)
}

fn trace_of(object: &DynamicObject) -> Option<String> {
    let context = object.annotations().get(TRACEPARENT)?;
    context.split('-').nth(1).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use kube::api::ApiResource;

    use super::*;

    #[test]
    fn a_change_that_was_not_stamped_has_not_the_trace_of_the_one_before() {
        let stamped = |context: &str| {
            let object = json!({"metadata": {"name": "sample", "annotations": {TRACEPARENT: context}}});
            serde_json::from_value::<DynamicObject>(object).unwrap()
        };
        let found = |context: &str, before: Option<&str>| new_trace(&stamped(context), before);
        assert_eq!(found("00-b-1-01", Some("a")).as_deref(), Some("b"));
        assert_eq!(found("00-a-1-01", None).as_deref(), Some("a"));
        assert_eq!(found("00-a-1-01", Some("a")), None);
        assert_eq!(new_trace(&DynamicObject::new("sample", &ApiResource::erase::<TracePipeline>(&())), None), None);
    }
}

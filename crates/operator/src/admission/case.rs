//! What a call is about, as far as the resource itself tells.

use jiff::Timestamp;
use kube::core::admission::Operation;
use kubewake_api::{
    Pipeline, Problem,
    v1alpha1::{LogPipeline, MetricPipeline, Otlp, Telemetry, TelemetrySpec, TracePipeline},
    validate_spec, validate_telemetry,
};
use kubewake_trail::webhook::review::Review;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Objects, access::Object};

/// A resource that is about to be written.
#[derive(Debug)]
pub(super) struct Case {
    /// None for `Telemetry`.
    pub(super) pipeline: Option<Pipeline>,
    /// What is wrong with it.
    pub(super) problems: Vec<Problem>,
    /// What is allowed but unwise about it.
    pub(super) warnings: Vec<Problem>,
    /// What its writer must be allowed to read.
    pub(super) named: Objects,
}

/// The resource does not have the shape of its kind, which the API server would have said before.
#[derive(Debug, thiserror::Error)]
#[error("this is no {0} of telemetry.kubewake.io/v1alpha1")]
pub(super) struct Strange(String);

impl Case {
    /// None if there is nothing to decide.
    pub(super) fn of(review: &Review, namespace: &str, now: Timestamp) -> Result<Option<Self>, Strange> {
        let is_update = match review.operation {
            Operation::Create => false,
            Operation::Update => true,
            Operation::Delete | Operation::Connect => return Ok(None),
        };
        let going = review.object.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null());
        // Who takes a finalizer away or puts a label on need not mend what has been wrong before.
        let same = is_update && review.object.get("spec") == review.old_object.get("spec");
        if !review.sub_resource.is_empty() || same {
            return Ok(None);
        }
        let case = match review.resource.resource.as_str() {
            "telemetries" => Self::of_telemetry(review, namespace),
            resource => Self::of_pipeline(resource, review, now),
        };
        let case = case.ok_or_else(|| Strange(review.kind.kind.clone()))?;
        Ok(if going { case.only_access() } else { Some(case) })
    }

    /// Of a resource that is being deleted it does not matter whether it is right: nothing comes of it any more. What it names must be its writer's to read
    /// all the same, so that nothing depends on nobody reading it.
    fn only_access(self) -> Option<Self> {
        let is_asked = !self.named.is_empty();
        is_asked.then(|| Self { pipeline: None, problems: Vec::new(), warnings: Vec::new(), named: self.named })
    }

    fn of_telemetry(review: &Review, namespace: &str) -> Option<Self> {
        let spec = read::<Telemetry>(&review.object)?.spec;
        let before = read::<Telemetry>(&review.old_object).map(|before| before.spec);
        let said = validate_telemetry(&spec);
        // Where an image comes from is where they are shown.
        let shown = |spec: &TelemetrySpec| (spec.image.clone(), spec.image_pull_secrets.clone());
        let named = match before {
            Some(before) if shown(&before) == shown(&spec) => Objects::new(),
            _ => spec.image_pull_secrets.iter().map(|secret| Object::secret(namespace, &secret.name)).collect(),
        };
        Some(Self { pipeline: None, problems: said.problems, warnings: said.warnings, named })
    }

    fn of_pipeline(resource: &str, review: &Review, now: Timestamp) -> Option<Self> {
        let mut pipeline = pipeline(resource, &review.object)?;
        if pipeline.name.is_empty() {
            // The API server is yet to put five characters to what it begins with.
            pipeline.name = format!("{}00000", review.shown_name());
        }
        let before = self::pipeline(resource, &review.old_object);
        let said = validate_spec(&pipeline, now);
        let named = named(&pipeline, before.as_ref());
        Some(Self { pipeline: Some(pipeline), problems: said.problems, warnings: said.warnings, named })
    }
}

/// The pipeline that an object of this resource is.
fn pipeline(resource: &str, object: &Value) -> Option<Pipeline> {
    match resource {
        "tracepipelines" => read::<TracePipeline>(object).as_ref().map(Pipeline::from),
        "logpipelines" => read::<LogPipeline>(object).as_ref().map(Pipeline::from),
        "metricpipelines" => read::<MetricPipeline>(object).as_ref().map(Pipeline::from),
        _ => None,
    }
}

fn read<K: DeserializeOwned>(object: &Value) -> Option<K> {
    serde_json::from_value(object.clone()).ok()
}

/// What the writer must be allowed to read. Nothing, if what is named goes where it went before, for the same purpose: then others may change the rest. But who changes
/// the endpoint alone sends all that is named there.
fn named(pipeline: &Pipeline, before: Option<&Pipeline>) -> Objects {
    match before {
        Some(before) if destination(before) == destination(pipeline) => Objects::new(),
        _ => pipeline.references().iter().map(Object::from).collect(),
    }
}

/// The output without what only says how fast and how often.
fn destination(pipeline: &Pipeline) -> Option<Otlp> {
    let output = pipeline.output.clone()?;
    Some(Otlp { compression: None, timeout: None, retry: None, queue: None, ..output })
}

#[cfg(test)]
mod tests;

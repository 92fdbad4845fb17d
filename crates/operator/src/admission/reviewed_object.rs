//! The part of an admission review that depends on the resource alone.

use jiff::Timestamp;
use kube::core::admission::Operation;
use kubewake_api::{
    SpecProblem, TelemetryPipeline,
    destination::PipelineDestination,
    v1alpha1::{LogPipeline, MetricPipeline, Telemetry, TelemetrySpec, TracePipeline},
    validate_spec, validate_telemetry,
};
use kubewake_webhook::review::ReviewRequest;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{AccessTargets, access::AccessTarget};

/// A resource that is about to be written.
#[derive(Debug)]
pub(super) struct ReviewedObject {
    pub(super) pipeline: Option<TelemetryPipeline>,
    /// Why it is refused.
    pub(super) problems: Vec<SpecProblem>,
    /// Problems that do not prevent the write.
    pub(super) warnings: Vec<SpecProblem>,
    /// The objects that its writer must be allowed to read.
    pub(super) access_targets: AccessTargets,
}

/// The resource does not have the shape of its kind. API servers with the schema refuse it before.
#[derive(Debug, thiserror::Error)]
#[error("failed to parse the object as {0} of telemetry.kubewake.io/v1alpha1")]
pub(super) struct UnexpectedKind(String);

impl ReviewedObject {
    /// Returns `None` if there is nothing to decide.
    pub(super) fn from_review(
        review: &ReviewRequest,
        namespace: &str,
        now: Timestamp,
    ) -> Result<Option<Self>, UnexpectedKind> {
        let is_update = match review.operation {
            Operation::Create => false,
            Operation::Update => true,
            Operation::Delete | Operation::Connect => return Ok(None),
        };
        let going = review.object.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null());
        // Removing a finalizer or adding a label does not require fixing an older problem of the spec.
        let same = is_update && review.object.get("spec") == review.old_object.get("spec");
        if !review.sub_resource.is_empty() || same {
            return Ok(None);
        }
        let case = match review.resource.resource.as_str() {
            "telemetries" => Self::from_telemetry(review, namespace),
            resource => Self::from_pipeline(resource, review, now),
        };
        let case = case.ok_or_else(|| UnexpectedKind(review.kind.kind.clone()))?;
        Ok(if going { case.into_access_check() } else { Some(case) })
    }

    /// Reduces the review of a resource that is being deleted to the access check: its validity no longer
    /// matters. Its writer must still be allowed to read what it names, so that security does not rest on the
    /// operator ignoring such resources.
    fn into_access_check(self) -> Option<Self> {
        let is_asked = !self.access_targets.is_empty();
        is_asked.then(|| Self {
            pipeline: None,
            problems: Vec::new(),
            warnings: Vec::new(),
            access_targets: self.access_targets,
        })
    }

    fn from_telemetry(review: &ReviewRequest, namespace: &str) -> Option<Self> {
        let spec = parse_object::<Telemetry>(&review.object)?.spec;
        let before = parse_object::<Telemetry>(&review.old_object).map(|before| before.spec);
        let said = validate_telemetry(&spec);
        // Pull secrets are shown to the image's registry, so a change of the image counts as a change of
        // destination.
        let shown = |spec: &TelemetrySpec| (spec.image.clone(), spec.image_pull_secrets.clone());
        let named = match before {
            Some(before) if shown(&before) == shown(&spec) => AccessTargets::new(),
            _ => spec.image_pull_secrets.iter().map(|secret| AccessTarget::secret(namespace, &secret.name)).collect(),
        };
        Some(Self { pipeline: None, problems: said.problems, warnings: said.warnings, access_targets: named })
    }

    fn from_pipeline(resource: &str, review: &ReviewRequest, now: Timestamp) -> Option<Self> {
        let mut pipeline = parse_pipeline(resource, &review.object)?;
        if pipeline.name.is_empty() {
            // The API server appends five characters to `generateName` after admission.
            pipeline.name = format!("{}00000", review.display_name());
        }
        let before = self::parse_pipeline(resource, &review.old_object);
        let said = validate_spec(&pipeline, now);
        let named = access_targets(&pipeline, before.as_ref());
        Some(Self { pipeline: Some(pipeline), problems: said.problems, warnings: said.warnings, access_targets: named })
    }
}

/// Parses an object of this resource as a pipeline.
fn parse_pipeline(resource: &str, object: &Value) -> Option<TelemetryPipeline> {
    match resource {
        "tracepipelines" => parse_object::<TracePipeline>(object).as_ref().map(TelemetryPipeline::from),
        "logpipelines" => parse_object::<LogPipeline>(object).as_ref().map(TelemetryPipeline::from),
        "metricpipelines" => parse_object::<MetricPipeline>(object).as_ref().map(TelemetryPipeline::from),
        _ => None,
    }
}

fn parse_object<K: DeserializeOwned>(object: &Value) -> Option<K> {
    serde_json::from_value(object.clone()).ok()
}

/// The objects that the writer must be allowed to read: none if the destination is unchanged, so that others
/// may edit the rest. A change of the endpoint alone sends all referenced values elsewhere, and so requires
/// access to all of them.
fn access_targets(pipeline: &TelemetryPipeline, before: Option<&TelemetryPipeline>) -> AccessTargets {
    match before {
        Some(before) if destination(before) == destination(pipeline) => AccessTargets::new(),
        _ => pipeline.references().iter().map(AccessTarget::from).collect(),
    }
}

/// The outputs without the settings that affect only when and how often data is sent.
fn destination(pipeline: &TelemetryPipeline) -> Vec<PipelineDestination> {
    pipeline.destinations.iter().map(PipelineDestination::without_sending).collect()
}

#[cfg(test)]
mod tests;

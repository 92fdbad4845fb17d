//! Validates a pipeline with the values that it references. Pure.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kubewake_api::{ResolvedReferences, SpecProblem, TelemetryPipeline, ValidPipeline, validate};

use super::slot_step::SlotClaim;
use crate::pipeline::{pipeline_cache::PipelineState, slot_lock::Slot};

/// A pipeline and everything that its validation depends on but the time.
pub struct FetchedPipeline {
    pub pipeline: TelemetryPipeline,
    pub resolved: Arc<ResolvedReferences>,
    /// The last validation of this pipeline by this operator.
    pub before: Option<Arc<PipelineState>>,
}

/// The result of a validation.
pub struct ValidatedPipeline {
    /// The current spec, or the last valid one.
    valid: Option<Arc<ValidPipeline>>,
    /// The problems of the current spec.
    problems: Vec<SpecProblem>,
    checked: (i64, Arc<ResolvedReferences>),
}

impl FetchedPipeline {
    /// Validates the current spec. A validation of the same input is reused. If the spec is invalid, the last valid
    /// one stays, so that a broken edit does not stop delivery; `load_recorded` loads it where this operator has not
    /// validated the pipeline before.
    pub fn validate(self, load_recorded: impl FnOnce() -> Option<ValidPipeline>, now: Timestamp) -> ValidatedPipeline {
        let Self { pipeline, resolved, before } = self;
        let generation = pipeline.generation;
        let reusable = before.as_ref().and_then(|before| before.reusable_validation(generation, &resolved));
        let result = reusable.map_or_else(|| validate(&pipeline, &resolved, now).map(Arc::new), Ok);
        let checked = (generation, resolved);
        match result {
            Ok(valid) => ValidatedPipeline { valid: Some(valid), problems: Vec::new(), checked },
            Err(problems) => {
                let valid = match before {
                    Some(before) => before.valid.clone(),
                    None => load_recorded().map(Arc::new),
                };
                ValidatedPipeline { valid, problems, checked }
            }
        }
    }
}

impl ValidatedPipeline {
    /// Whether the current spec is valid.
    pub fn is_valid(&self) -> bool {
        self.problems.is_empty()
    }

    /// The values with which the spec was validated.
    pub fn resolved(&self) -> &ResolvedReferences {
        &self.checked.1
    }

    /// Only a valid pipeline takes a slot. One that becomes invalid keeps the slot that it holds.
    pub fn slot_claim(&self) -> SlotClaim {
        if self.is_valid() { SlotClaim::TakeFree } else { SlotClaim::KeepHeld }
    }

    /// The state for the cache; `slot` is `None` if it is not known, or if the pipeline claimed none.
    pub fn into_state(self, owner: OwnerReference, slot: Option<Slot>) -> PipelineState {
        let Self { valid, problems, checked } = self;
        PipelineState { owner, valid, problems, slot, checked: Some(checked) }
    }
}

//! Validates pipelines.
//!
//! # Guarantees
//!
//! - All problems are found at once, each with its path in the resource.
//! - A [`ValidPipeline`] can be rendered, and the collector accepts the result.
//! - No message holds a text that is a secret or that comes from another object.
//!
//! No request is sent from here. Values from the cluster are given as [`ResolvedReferences`]; without these,
//! [`validate_spec`] checks the resource alone.

mod context;
mod endpoint;
mod names;
mod output;
mod sampling;
mod selection;
mod sending;
mod tls;

#[cfg(test)]
mod tests;

use std::fmt;

use jiff::Timestamp;

use crate::{ConditionReason, ResolvedReferences, Signal, TelemetryPipeline, ValidPipeline};
use context::ValidationContext;
pub(crate) use selection::{is_label, is_name};
pub(crate) use sending::{check_range, refuse, sending};
pub(crate) use tls::EXPIRY_WARNING_PERIOD;

/// A problem of a resource, or a warning about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecProblem {
    /// The path of the field: `spec.output.otlp.endpoint`.
    pub path: String,
    /// The reason for the status.
    pub reason: ConditionReason,
    /// What is wrong, and how to fix it.
    pub message: String,
}

/// Formats as `spec.output.otlp.endpoint: has no port`.
impl fmt::Display for SpecProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// The result of validating a resource alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValidationReport {
    /// Problems that make it invalid.
    pub problems: Vec<SpecProblem>,
    /// Problems that do not make it invalid.
    pub warnings: Vec<SpecProblem>,
}

/// The limit of a pipeline's name, which is part of names with up to 253 characters.
const MAX_NAME_BYTES: usize = 63;

/// Validates a pipeline with the values of its references.
///
/// # Errors
///
/// All problems of the pipeline.
pub fn validate(
    pipeline: &TelemetryPipeline,
    resolved: &ResolvedReferences,
    now: Timestamp,
) -> Result<ValidPipeline, Vec<SpecProblem>> {
    let mut check = ValidationContext::new(pipeline, Some(resolved), now);
    let valid = validate_in_context(&mut check, pipeline);
    match valid {
        Some(mut valid) if check.problems.is_empty() => {
            valid.warnings = check.warnings;
            valid.expires = check.expires;
            Ok(valid)
        }
        _ => Err(check.problems),
    }
}

/// Validates a pipeline without the values of its references.
pub fn validate_spec(pipeline: &TelemetryPipeline, now: Timestamp) -> ValidationReport {
    let mut check = ValidationContext::new(pipeline, None, now);
    validate_in_context(&mut check, pipeline);
    ValidationReport { problems: check.problems, warnings: check.warnings }
}

/// Runs all checks, each regardless of the results of the others.
fn validate_in_context(check: &mut ValidationContext<'_>, pipeline: &TelemetryPipeline) -> Option<ValidPipeline> {
    name(check, &pipeline.name);
    selection::input(check, pipeline);
    selection::runtime(check, pipeline);
    selection::filter(check, pipeline);
    let sampling = sampling::sampling(check, pipeline);
    let [destination] = pipeline.destinations.as_slice() else {
        let message = match pipeline.signal {
            Signal::Traces | Signal::Metrics => "an output must be set: `otlp`",
            Signal::Logs => "set exactly one of `otlp`, `loki`, `elasticsearch`, `opensearch` and `http`",
        };
        check.refuse("spec.output", ConditionReason::SpecInvalid, message);
        return None;
    };
    let output = output::output(check, pipeline.signal, destination);
    Some(ValidPipeline {
        signal: pipeline.signal,
        name: pipeline.name.clone(),
        uid: pipeline.uid.clone(),
        generation: pipeline.generation,
        paused: pipeline.paused,
        input: pipeline.input.clone(),
        runtime: pipeline.runtime.clone(),
        filter: pipeline.filter.clone(),
        sampling,
        backend: output::backend(destination),
        output: output?,
        warnings: Vec::new(),
        expires: None,
    })
}

fn name(check: &mut ValidationContext<'_>, name: &str) {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    let whole = name.bytes().all(inner) && !name.starts_with(['-', '.']) && !name.ends_with(['-', '.']);
    if name.is_empty() || name.len() > MAX_NAME_BYTES || !whole {
        let message = format!(
            "must have at most {MAX_NAME_BYTES} characters: lower-case letters, digits, `-` and `.`, with a letter or digit at both ends"
        );
        check.refuse("metadata.name", ConditionReason::NameInvalid, message);
    }
}

/// The path of the input in the spec of a kind.
fn input_path(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "spec.input",
        Signal::Logs | Signal::Metrics => "spec.input.otlp",
    }
}

//! Whether a pipeline can work as it is written.
//!
//! # Guarantees
//!
//! - All that is wrong is found at once, each with its path in the resource.
//! - What is [`Valid`] can be rendered, and the collector takes what comes out.
//! - No message holds a text that is a secret or that stands elsewhere than in the resource.
//!
//! Nothing is asked of the cluster here. What it would say is given as [`Resolved`]; without that, [`validate_spec`] says what can be said.

mod check;
mod endpoint;
mod output;
mod sampling;
mod selection;
mod sending;
mod tls;

#[cfg(test)]
mod tests;

use std::fmt;

use jiff::Timestamp;

use crate::{Pipeline, Reason, Resolved, Signal, Valid};
use check::Check;
pub(crate) use selection::{is_label, is_name};
pub(crate) use sending::{refuse, sending, within};
pub(crate) use tls::SOON;

/// One thing that is wrong with a resource, or unwise about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where: `spec.output.otlp.endpoint`.
    pub path: String,
    /// What kind of thing it is.
    pub reason: Reason,
    /// What is wrong, and how to mend it.
    pub message: String,
}

/// `spec.output.otlp.endpoint: has no port`
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// What can be said of a resource alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Review {
    /// What is wrong.
    pub problems: Vec<Problem>,
    /// What is allowed but unwise.
    pub warnings: Vec<Problem>,
}

/// The longest name of a pipeline: it is a part of names that must not be longer than 253 characters.
const MAX_NAME: usize = 63;

/// Checks a pipeline with what was found in the Secrets and ConfigMaps that it names.
///
/// # Errors
///
/// Everything that is wrong with it.
pub fn validate(pipeline: &Pipeline, resolved: &Resolved, now: Timestamp) -> Result<Valid, Vec<Problem>> {
    let mut check = Check::new(pipeline, Some(resolved), now);
    let valid = pipeline_with(&mut check, pipeline);
    match valid {
        Some(mut valid) if check.problems.is_empty() => {
            valid.warnings = check.warnings;
            valid.expires = check.expires;
            Ok(valid)
        }
        _ => Err(check.problems),
    }
}

/// Checks a pipeline without looking at the Secrets and ConfigMaps that it names.
pub fn validate_spec(pipeline: &Pipeline, now: Timestamp) -> Review {
    let mut check = Check::new(pipeline, None, now);
    pipeline_with(&mut check, pipeline);
    Review { problems: check.problems, warnings: check.warnings }
}

/// All steps, each of which is taken whatever the others found.
fn pipeline_with(check: &mut Check<'_>, pipeline: &Pipeline) -> Option<Valid> {
    name(check, &pipeline.name);
    selection::input(check, pipeline);
    selection::filter(check, pipeline);
    let sampling = sampling::sampling(check, pipeline);
    let Some(otlp) = &pipeline.output else {
        check.refuse("spec.output", Reason::SpecInvalid, "an output must be set: `otlp`");
        return None;
    };
    let output = output::output(check, pipeline.signal, otlp);
    Some(Valid {
        signal: pipeline.signal,
        name: pipeline.name.clone(),
        uid: pipeline.uid.clone(),
        generation: pipeline.generation,
        paused: pipeline.paused,
        input: pipeline.input.clone(),
        filter: pipeline.filter.clone(),
        sampling,
        backend: output::backend(otlp),
        output: output?,
        warnings: Vec::new(),
        expires: None,
    })
}

fn name(check: &mut Check<'_>, name: &str) {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    let whole = name.bytes().all(inner) && !name.starts_with(['-', '.']) && !name.ends_with(['-', '.']);
    if name.is_empty() || name.len() > MAX_NAME || !whole {
        let message = format!(
            "must have at most {MAX_NAME} characters: lower-case letters, digits, `-` and `.`, the last two only inside"
        );
        check.refuse("metadata.name", Reason::NameInvalid, message);
    }
}

/// Where the inputs of a kind stand.
fn input_path(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "spec.input",
        Signal::Logs | Signal::Metrics => "spec.input.otlp",
    }
}

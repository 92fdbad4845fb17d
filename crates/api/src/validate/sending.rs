//! Durations and sizes of an exporter.

use std::time::Duration;

use kubewake_config::parse_duration;

use super::{SpecProblem, context::ValidationContext};
use crate::{
    ConditionReason,
    destination::PipelineDestination,
    settings::{RetrySettings, SendingQueueSettings, SendingSettings},
    v1alpha1::{BatchOptions, OutputDefaults, QueueOptions, RetryOptions},
};

/// A month: longer than any duration that makes sense.
const MAX_DURATION: Duration = Duration::from_secs(720 * 3600);

/// The settings of an output.
pub(super) fn output_settings(check: &mut ValidationContext<'_>, destination: &PipelineDestination) -> SendingSettings {
    sending(&destination.path(), &destination.sending, &mut check.problems)
}

/// The settings of an output, or the defaults of all outputs.
pub(crate) fn sending(path: &str, given: &OutputDefaults, problems: &mut Vec<SpecProblem>) -> SendingSettings {
    let timeout = given.timeout.as_deref();
    SendingSettings {
        compression: given.compression,
        timeout: timeout.and_then(|text| duration(&format!("{path}.timeout"), text, problems)),
        retry: given.retry.as_ref().map(|given| retry(&format!("{path}.retry"), given, problems)).unwrap_or_default(),
        queue: given.queue.as_ref().map(|given| queue(&format!("{path}.queue"), given, problems)).unwrap_or_default(),
    }
}

/// Parses a duration such as `1m30s`.
pub(super) fn duration(path: &str, text: &str, problems: &mut Vec<SpecProblem>) -> Option<Duration> {
    let message = match parse_duration(text) {
        Ok(duration) if duration <= MAX_DURATION => return Some(duration),
        Ok(_) => "is longer than 720h".to_owned(),
        Err(error) => format!("{error}; write a number with a unit, such as 500ms, 1m30s or 1.5h"),
    };
    refuse(path, message, problems);
    None
}

pub(crate) fn refuse(path: impl Into<String>, message: impl Into<String>, problems: &mut Vec<SpecProblem>) {
    problems.push(SpecProblem { path: path.into(), reason: ConditionReason::SettingInvalid, message: message.into() });
}

fn retry(path: &str, given: &RetryOptions, problems: &mut Vec<SpecProblem>) -> RetrySettings {
    let mut time = |name: &str, text: &Option<String>| {
        text.as_deref().and_then(|text| duration(&format!("{path}.{name}"), text, problems))
    };
    let retrying = RetrySettings {
        enabled: given.enabled,
        initial_interval: time("initialInterval", &given.initial_interval),
        max_interval: time("maxInterval", &given.max_interval),
        max_elapsed_time: time("maxElapsedTime", &given.max_elapsed_time),
    };
    let elapsed = retrying.max_elapsed_time.filter(|elapsed| !elapsed.is_zero());
    let intervals = [("initialInterval", retrying.initial_interval), ("maxInterval", retrying.max_interval)];
    for (name, interval) in intervals {
        if interval.zip(elapsed).is_some_and(|(interval, elapsed)| interval > elapsed) {
            refuse(format!("{path}.{name}"), "is longer than `maxElapsedTime`", problems);
        }
    }
    if retrying.initial_interval.zip(retrying.max_interval).is_some_and(|(initial, max)| initial > max) {
        refuse(format!("{path}.initialInterval"), "is longer than `maxInterval`", problems);
    }
    retrying
}

/// The schema's limit.
const MAX_QUEUE_BYTES: i64 = 1 << 40;

fn queue(path: &str, given: &QueueOptions, problems: &mut Vec<SpecProblem>) -> SendingQueueSettings {
    check_range(&format!("{path}.sizeBytes"), given.size_bytes, 1 << 20, MAX_QUEUE_BYTES, problems);
    check_range(&format!("{path}.numConsumers"), given.num_consumers.map(i64::from), 1, 1000, problems);
    let none = BatchOptions::default();
    let batch = given.batch.as_ref().unwrap_or(&none);
    let place = format!("{path}.batch");
    let flush = format!("{place}.flushTimeout");
    let flush_timeout = batch.flush_timeout.as_deref().and_then(|text| duration(&flush, text, problems));
    if flush_timeout.is_some_and(|timeout| timeout.is_zero()) {
        refuse(flush, "must be positive", problems);
    }
    let min = batch.min_size_bytes;
    let max = batch.max_size_bytes;
    check_range(&format!("{place}.minSizeBytes"), min, 0, MAX_QUEUE_BYTES, problems);
    check_range(&format!("{place}.maxSizeBytes"), max, 1, MAX_QUEUE_BYTES, problems);
    if min.zip(max).is_some_and(|(min, max)| min > max) {
        refuse(format!("{place}.minSizeBytes"), "is greater than `maxSizeBytes`", problems);
    }
    if min.zip(given.size_bytes).is_some_and(|(min, size)| min > size) {
        refuse(format!("{place}.minSizeBytes"), "is greater than `sizeBytes` of the queue", problems);
    }
    SendingQueueSettings {
        bytes: given.size_bytes,
        consumers: given.num_consumers,
        flush_timeout,
        min_bytes: min,
        max_bytes: max,
    }
}

/// Checks that a number, if there is one, is within these bounds.
pub(crate) fn check_range(path: &str, value: Option<i64>, least: i64, most: i64, problems: &mut Vec<SpecProblem>) {
    if value.is_some_and(|value| !(least..=most).contains(&value)) {
        refuse(path, format!("must be from {least} to {most}"), problems);
    }
}

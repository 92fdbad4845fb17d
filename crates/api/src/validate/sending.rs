//! Times and sizes of an exporter.

use std::time::Duration;

use kubewake_config::parse_duration;

use super::{Problem, check::Check};
use crate::{
    Reason,
    settings::{Batching, Retrying, Sending},
    v1alpha1::{Batch, Defaults, Otlp, Queue, Retry},
};

/// A month: more than anything that is still meant.
const MAX_DURATION: Duration = Duration::from_secs(720 * 3600);

/// What an output says.
pub(super) fn of_output(check: &mut Check<'_>, otlp: &Otlp) -> Sending {
    let given = Defaults {
        compression: otlp.compression,
        timeout: otlp.timeout.clone(),
        retry: otlp.retry.clone(),
        queue: otlp.queue.clone(),
    };
    sending("spec.output.otlp", &given, &mut check.problems)
}

/// What an output, or the defaults of all outputs, say.
pub(crate) fn sending(path: &str, given: &Defaults, problems: &mut Vec<Problem>) -> Sending {
    let timeout = given.timeout.as_deref();
    Sending {
        compression: given.compression,
        timeout: timeout.and_then(|text| duration(&format!("{path}.timeout"), text, problems)),
        retry: given.retry.as_ref().map(|given| retry(&format!("{path}.retry"), given, problems)).unwrap_or_default(),
        queue: given.queue.as_ref().map(|given| queue(&format!("{path}.queue"), given, problems)).unwrap_or_default(),
    }
}

/// A time such as `1m30s`.
pub(super) fn duration(path: &str, text: &str, problems: &mut Vec<Problem>) -> Option<Duration> {
    let message = match parse_duration(text) {
        Ok(duration) if duration <= MAX_DURATION => return Some(duration),
        Ok(_) => "is longer than 720h".to_owned(),
        Err(error) => format!("{error}; write a number with a unit, such as 500ms, 1m30s or 1.5h"),
    };
    refuse(path, message, problems);
    None
}

pub(crate) fn refuse(path: impl Into<String>, message: impl Into<String>, problems: &mut Vec<Problem>) {
    problems.push(Problem { path: path.into(), reason: Reason::SettingInvalid, message: message.into() });
}

fn retry(path: &str, given: &Retry, problems: &mut Vec<Problem>) -> Retrying {
    let mut time = |name: &str, text: &Option<String>| {
        text.as_deref().and_then(|text| duration(&format!("{path}.{name}"), text, problems))
    };
    let retrying = Retrying {
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

/// As much as the schema allows.
const MAX_BYTES: i64 = 1 << 40;

fn queue(path: &str, given: &Queue, problems: &mut Vec<Problem>) -> Batching {
    within(&format!("{path}.sizeBytes"), given.size_bytes, 1 << 20, MAX_BYTES, problems);
    within(&format!("{path}.numConsumers"), given.num_consumers.map(i64::from), 1, 1000, problems);
    let none = Batch::default();
    let batch = given.batch.as_ref().unwrap_or(&none);
    let place = format!("{path}.batch");
    let flush = format!("{place}.flushTimeout");
    let flush_timeout = batch.flush_timeout.as_deref().and_then(|text| duration(&flush, text, problems));
    if flush_timeout.is_some_and(|timeout| timeout.is_zero()) {
        refuse(flush, "must be positive", problems);
    }
    let (min, max) = (batch.min_size_bytes, batch.max_size_bytes);
    within(&format!("{place}.minSizeBytes"), min, 0, MAX_BYTES, problems);
    within(&format!("{place}.maxSizeBytes"), max, 1, MAX_BYTES, problems);
    if min.zip(max).is_some_and(|(min, max)| min > max) {
        refuse(format!("{place}.minSizeBytes"), "is greater than `maxSizeBytes`", problems);
    }
    if min.zip(given.size_bytes).is_some_and(|(min, size)| min > size) {
        refuse(format!("{place}.minSizeBytes"), "is greater than `sizeBytes` of the queue", problems);
    }
    Batching { bytes: given.size_bytes, consumers: given.num_consumers, flush_timeout, min_bytes: min, max_bytes: max }
}

/// Checks that a number, if it is given, is within these bounds.
pub(crate) fn within(path: &str, value: Option<i64>, least: i64, most: i64, problems: &mut Vec<Problem>) {
    if value.is_some_and(|value| !(least..=most).contains(&value)) {
        refuse(path, format!("must be from {least} to {most}"), problems);
    }
}

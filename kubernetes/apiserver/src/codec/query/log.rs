//! `PodLogOptions`: the requested part of a container's output.

use jiff::Timestamp;

use super::QueryParameters;
use crate::api::{GroupKind, StatusError, field};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogOptions {
    /// Stream further output.
    pub follow: bool,
    /// The output of the previous container.
    pub previous: bool,
    /// Prefix each line with its time.
    pub timestamps: bool,
    /// Only output since then.
    pub since: Option<LogSince>,
    pub tail_lines: Option<u64>,
    pub limit_bytes: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LogSince {
    Seconds(u64),
    Time(Timestamp),
}

impl LogOptions {
    /// Parses and validates the options.
    ///
    /// # Errors
    /// A 400 for invalid numbers or times, a 422 for invalid values; with kube-apiserver's messages.
    pub fn from_query(query: &QueryParameters<'_>, pod: &str) -> Result<Self, StatusError> {
        let tail = query.int("tailLines")?;
        let limit = query.int("limitBytes")?;
        let seconds = query.int("sinceSeconds")?;
        let time = query.get("sinceTime").filter(|text| !text.is_empty());
        let time =
            time.map(|text| text.parse::<Timestamp>().map_err(|error| StatusError::bad_request(error.to_string())));
        let time = time.transpose()?;
        let errors = problems(tail, limit, seconds, time);
        if !errors.is_empty() {
            return Err(StatusError::invalid(&GroupKind::new("", "PodLogOptions"), pod, &errors));
        }
        let number = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok());
        Ok(Self {
            follow: query.flag("follow").unwrap_or(false),
            previous: query.flag("previous").unwrap_or(false),
            timestamps: query.flag("timestamps").unwrap_or(false),
            since: time.map(LogSince::Time).or(number(seconds).map(LogSince::Seconds)),
            tail_lines: number(tail),
            limit_bytes: number(limit),
        })
    }
}

fn problems(
    tail: Option<i64>,
    limit: Option<i64>,
    seconds: Option<i64>,
    time: Option<Timestamp>,
) -> Vec<field::FieldError> {
    let mut errors = Vec::new();
    if let Some(tail) = tail.filter(|tail| *tail < 0) {
        errors.push(field::FieldError::invalid("tailLines", &tail.into(), "must be greater than or equal to 0"));
    }
    if let Some(limit) = limit.filter(|limit| *limit < 1) {
        errors.push(field::FieldError::invalid("limitBytes", &limit.into(), "must be greater than 0"));
    }
    match (seconds, time) {
        (Some(_), Some(_)) => {
            errors.push(field::FieldError::forbidden(
                "",
                "at most one of `sinceTime` or `sinceSeconds` may be specified",
            ));
        }
        (Some(seconds), None) if seconds < 1 => {
            errors.push(field::FieldError::invalid("sinceSeconds", &seconds.into(), "must be greater than 0"));
        }
        _ => {}
    }
    errors
}

#[cfg(test)]
mod tests;

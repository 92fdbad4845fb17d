//! `PodLogOptions`: which part of a container's output is wanted.

use jiff::Timestamp;

use super::Query;
use crate::api::{GroupKind, Status, field};

/// Which part of a container's output is wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogOptions {
    /// Goes on with what comes.
    pub follow: bool,
    /// The run before this one.
    pub previous: bool,
    /// Each line begins with its time.
    pub timestamps: bool,
    /// Only what was written since.
    pub since: Option<Since>,
    /// Only the last lines.
    pub tail_lines: Option<u64>,
    /// At most so many bytes.
    pub limit_bytes: Option<u64>,
}

/// From when on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Since {
    /// So many seconds ago.
    Seconds(u64),
    /// A moment.
    Time(Timestamp),
}

impl LogOptions {
    /// Reads and checks them.
    ///
    /// # Errors
    /// A 400 for what is no number or time, a 422 for those that make no sense; with kube-apiserver's words.
    pub fn from_query(query: &Query<'_>, pod: &str) -> Result<Self, Status> {
        let (tail, limit, seconds) = (query.int("tailLines")?, query.int("limitBytes")?, query.int("sinceSeconds")?);
        let time = query.get("sinceTime").filter(|text| !text.is_empty());
        let time = time.map(|text| text.parse::<Timestamp>().map_err(|error| Status::bad_request(error.to_string())));
        let time = time.transpose()?;
        let errors = problems(tail, limit, seconds, time);
        if !errors.is_empty() {
            return Err(Status::invalid(&GroupKind::new("", "PodLogOptions"), pod, &errors));
        }
        let number = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok());
        Ok(Self {
            follow: query.flag("follow").unwrap_or(false),
            previous: query.flag("previous").unwrap_or(false),
            timestamps: query.flag("timestamps").unwrap_or(false),
            since: time.map(Since::Time).or(number(seconds).map(Since::Seconds)),
            tail_lines: number(tail),
            limit_bytes: number(limit),
        })
    }
}

fn problems(tail: Option<i64>, limit: Option<i64>, seconds: Option<i64>, time: Option<Timestamp>) -> Vec<field::Error> {
    let mut errors = Vec::new();
    if let Some(tail) = tail.filter(|tail| *tail < 0) {
        errors.push(field::Error::invalid("tailLines", &tail.into(), "must be greater than or equal to 0"));
    }
    if let Some(limit) = limit.filter(|limit| *limit < 1) {
        errors.push(field::Error::invalid("limitBytes", &limit.into(), "must be greater than 0"));
    }
    match (seconds, time) {
        (Some(_), Some(_)) => {
            errors.push(field::Error::forbidden("", "at most one of `sinceTime` or `sinceSeconds` may be specified"));
        }
        (Some(seconds), None) if seconds < 1 => {
            errors.push(field::Error::invalid("sinceSeconds", &seconds.into(), "must be greater than 0"));
        }
        _ => {}
    }
    errors
}

#[cfg(test)]
mod tests;

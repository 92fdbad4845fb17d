//! Query parameters and their validation.

use std::ops::RangeInclusive;

use kubewake_config::parse_duration;
use serde::Serialize;

use crate::{
    query::{ObjectFilter, TraceFilter},
    store::{MAX_NAME_BYTES, truncate},
};

/// How many traces are returned by default, and at most.
const DEFAULT_AND_MAX_TRACES: (usize, usize) = (20, 1500);

/// Unknown parameters that are reported individually.
const MAX_UNKNOWN_PARAMETERS: usize = 10;
const KNOWN_PARAMETERS: [&str; 14] = [
    "service",
    "operation",
    "attr",
    "kind",
    "namespace",
    "name",
    "minDuration",
    "maxDuration",
    "start",
    "end",
    "lookback",
    "errors",
    "q",
    "limit",
];

/// A parameter that is not valid, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ParameterProblem {
    pub(crate) parameter: String,
    pub(crate) message: String,
}

/// The parameters of a query, and the problems found so far.
#[derive(Debug, Default)]
pub(crate) struct QueryParams {
    pairs: Vec<(String, String)>,
    pub(crate) problems: Vec<ParameterProblem>,
}

impl QueryParams {
    pub(crate) fn new(pairs: Vec<(String, String)>) -> Self {
        Self { pairs, problems: Vec::new() }
    }

    /// The last value that is not empty: forms also send fields that were left empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.all_values(name).last()
    }

    pub(crate) fn all_values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.pairs.iter().filter(move |(key, value)| key == name && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    pub(crate) fn add_problem(&mut self, parameter: &str, message: impl Into<String>) {
        self.problems.push(ParameterProblem { parameter: parameter.to_owned(), message: message.into() });
    }

    /// Parses a value; a failure is recorded as a problem.
    pub(crate) fn parse_with<T>(&mut self, name: &str, read: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        match read(self.text(name)?) {
            Ok(value) => Some(value),
            Err(message) => {
                self.add_problem(name, message);
                None
            }
        }
    }

    pub(crate) fn number<T: std::str::FromStr>(&mut self, name: &str) -> Option<T> {
        self.parse_with(name, |text| text.parse().map_err(|_| format!("{text:?} is not a number in the valid range")))
    }

    /// A duration in Go's notation, in nanoseconds.
    pub(crate) fn duration(&mut self, name: &str) -> Option<u64> {
        self.parse_with(name, |text| {
            let duration = parse_duration(text).map_err(|error| format!("{error}; examples: 200ms, 1.5s"))?;
            Ok(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
        })
    }

    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let flag = self.parse_with(name, |text| match text {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err(format!("{text:?} is neither true nor false")),
        });
        flag.unwrap_or_default()
    }

    /// The range between two parameters, if either of them was given.
    pub(crate) fn range(
        &mut self,
        names: (&str, &str),
        low: Option<u64>,
        high: Option<u64>,
    ) -> Option<RangeInclusive<u64>> {
        if low.zip(high).is_some_and(|(low, high)| low > high) {
            self.add_problem(names.1, format!("must be at least {}", names.0));
        }
        (low.is_some() || high.is_some()).then(|| low.unwrap_or_default()..=high.unwrap_or(u64::MAX))
    }

    pub(crate) fn limit(&mut self) -> usize {
        let (usual, most) = DEFAULT_AND_MAX_TRACES;
        match self.number::<usize>("limit") {
            Some(0) => {
                self.add_problem("limit", "must be at least 1");
                usual
            }
            Some(wanted) => wanted.min(most),
            None => usual,
        }
    }

    pub(crate) fn filter(&mut self, now: u64) -> TraceFilter {
        self.check_names(&KNOWN_PARAMETERS);
        if self.text("lookback").is_some() && self.text("start").is_some() {
            self.add_problem("lookback", "cannot be combined with start");
        }
        let durations = (self.duration("minDuration"), self.duration("maxDuration"));
        let duration = self.range(("minDuration", "maxDuration"), durations.0, durations.1);
        let times = (self.number("start"), self.number("end"));
        let since = self.duration("lookback").map(|back| now.saturating_sub(back));
        let start = self.range(("start", "end"), times.0.or(since), times.1);
        TraceFilter {
            service: self.name("service"),
            operation: self.name("operation"),
            span_kind: None,
            attributes: self.attributes(),
            object: self.object(),
            span_duration: None,
            duration,
            start,
            errors: self.flag("errors"),
            id: self.parse_with("q", parse_trace_id_prefix),
        }
    }

    /// Rejects unknown parameters: a query that is only partly understood must not be answered.
    pub(crate) fn check_names(&mut self, known: &[&str]) {
        let mut unknown: Vec<_> =
            self.pairs.iter().map(|(name, _)| truncate(name, MAX_NAME_BYTES).to_owned()).collect();
        unknown.retain(|name| !known.contains(&name.as_str()));
        unknown.sort_unstable();
        unknown.dedup();
        let message = format!("unknown parameter; known parameters: {}", known.join(", "));
        unknown.iter().take(MAX_UNKNOWN_PARAMETERS).for_each(|name| self.add_problem(name, message.clone()));
    }

    /// A name, truncated as names in the store are.
    pub(crate) fn name(&self, name: &str) -> Option<String> {
        self.text(name).map(|text| truncate(text, MAX_NAME_BYTES).to_owned())
    }

    pub(crate) fn object(&self) -> ObjectFilter {
        let text = |name| self.text(name).map(str::to_owned);
        let namespace = text("namespace").map(|namespace| if namespace == "-" { String::new() } else { namespace });
        ObjectFilter { kind: text("kind"), namespace, name: text("name") }
    }

    fn attributes(&mut self) -> Vec<(String, String)> {
        let mut attributes = Vec::new();
        let mut wrong = Vec::new();
        for text in self.all_values("attr") {
            match text.split_once('=') {
                Some((key, value)) if !key.trim().is_empty() => {
                    attributes.push((key.trim().to_owned(), unquote(value.trim()).to_owned()));
                }
                _ => wrong.push(format!("{text:?} is not of the form key=value")),
            }
        }
        wrong.into_iter().for_each(|message| self.add_problem("attr", message));
        attributes
    }
}

/// Removes the quotes that protect blanks around a value.
fn unquote(value: &str) -> &str {
    value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value)
}

fn parse_trace_id_prefix(text: &str) -> Result<String, String> {
    let text = text.trim().to_ascii_lowercase();
    let is_hex = text.len() <= 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then_some(text).ok_or_else(|| "a trace id has up to 32 hexadecimal digits".to_owned())
}

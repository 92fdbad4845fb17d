//! Parameters of a query, and what is wrong with them.

use std::ops::RangeInclusive;

use kubewake_config::parse_duration;
use serde::Serialize;

use crate::{
    query::{Filter, ObjectFilter},
    store::{NAME, cut},
};

/// How many traces are shown unless more are wanted, and how many can be.
const LIMIT: (usize, usize) = (20, 1500);

/// Unknown parameters that are told one by one.
const PROBLEMS: usize = 10;
/// What can be asked for.
const KNOWN: [&str; 14] = [
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

/// What is wrong with a parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Problem {
    pub(crate) parameter: String,
    pub(crate) message: String,
}

/// The parameters of a query, and all that is wrong with them.
#[derive(Debug, Default)]
pub(crate) struct Params {
    pairs: Vec<(String, String)>,
    pub(crate) problems: Vec<Problem>,
}

impl Params {
    pub(crate) fn new(pairs: Vec<(String, String)>) -> Self {
        Self { pairs, problems: Vec::new() }
    }

    /// The last value that is not empty: forms send what was left empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.all(name).last()
    }

    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.pairs.iter().filter(move |(key, value)| key == name && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    pub(crate) fn problem(&mut self, parameter: &str, message: impl Into<String>) {
        self.problems.push(Problem { parameter: parameter.to_owned(), message: message.into() });
    }

    /// A value that is read in some way.
    pub(crate) fn read<T>(&mut self, name: &str, read: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        match read(self.text(name)?) {
            Ok(value) => Some(value),
            Err(message) => {
                self.problem(name, message);
                None
            }
        }
    }

    pub(crate) fn number<T: std::str::FromStr>(&mut self, name: &str) -> Option<T> {
        self.read(name, |text| text.parse().map_err(|_| format!("{text:?} is no number that fits here")))
    }

    /// A duration as Go writes it, in nanoseconds.
    pub(crate) fn duration(&mut self, name: &str) -> Option<u64> {
        self.read(name, |text| {
            let duration = parse_duration(text).map_err(|error| format!("{error}; write for example 200ms or 1.5s"))?;
            Ok(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
        })
    }

    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let flag = self.read(name, |text| match text {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err(format!("{text:?} is neither true nor false")),
        });
        flag.unwrap_or_default()
    }

    /// What lies between two values, if any of them was given.
    pub(crate) fn between(
        &mut self,
        names: (&str, &str),
        low: Option<u64>,
        high: Option<u64>,
    ) -> Option<RangeInclusive<u64>> {
        if low.zip(high).is_some_and(|(low, high)| low > high) {
            self.problem(names.1, format!("it is less than {}", names.0));
        }
        (low.is_some() || high.is_some()).then(|| low.unwrap_or_default()..=high.unwrap_or(u64::MAX))
    }

    /// How many are wanted.
    pub(crate) fn limit(&mut self) -> usize {
        let (usual, most) = LIMIT;
        match self.number::<usize>("limit") {
            Some(0) => {
                self.problem("limit", "it is 0: ask for one trace at least");
                usual
            }
            Some(wanted) => wanted.min(most),
            None => usual,
        }
    }

    /// Which traces are wanted.
    pub(crate) fn filter(&mut self, now: u64) -> Filter {
        self.check_names();
        let durations = (self.duration("minDuration"), self.duration("maxDuration"));
        let duration = self.between(("minDuration", "maxDuration"), durations.0, durations.1);
        let times = (self.number("start"), self.number("end"));
        let since = self.duration("lookback").map(|back| now.saturating_sub(back));
        let start = self.between(("start", "end"), times.0.or(since), times.1);
        Filter {
            service: self.name("service"),
            operation: self.name("operation"),
            span_kind: None,
            attributes: self.attributes(),
            object: self.object(),
            span_duration: None,
            duration,
            start,
            errors: self.flag("errors"),
            id: self.read("q", trace_id_start),
        }
    }

    /// A question that is not understood in full must not be answered as if it were.
    fn check_names(&mut self) {
        let mut unknown: Vec<_> = self.pairs.iter().map(|(name, _)| cut(name, NAME).to_owned()).collect();
        unknown.retain(|name| !KNOWN.contains(&name.as_str()));
        unknown.sort_unstable();
        unknown.dedup();
        let message = format!("it is not known; these are: {}", KNOWN.join(", "));
        unknown.iter().take(PROBLEMS).for_each(|name| self.problem(name, message.clone()));
        if self.text("lookback").is_some() && self.text("start").is_some() {
            self.problem("lookback", "start says the same already: give one of them");
        }
    }

    /// A name, cut as those in the store are.
    fn name(&self, name: &str) -> Option<String> {
        self.text(name).map(|text| cut(text, NAME).to_owned())
    }

    pub(crate) fn object(&self) -> ObjectFilter {
        let text = |name| self.text(name).map(str::to_owned);
        let namespace = text("namespace").map(|namespace| if namespace == "-" { String::new() } else { namespace });
        ObjectFilter { kind: text("kind"), namespace, name: text("name") }
    }

    fn attributes(&mut self) -> Vec<(String, String)> {
        let (mut attributes, mut wrong) = (Vec::new(), Vec::new());
        for text in self.all("attr") {
            match text.split_once('=') {
                Some((key, value)) if !key.trim().is_empty() => {
                    attributes.push((key.trim().to_owned(), unquoted(value.trim()).to_owned()));
                }
                _ => wrong.push(format!("{text:?} is not of the form key=value")),
            }
        }
        wrong.into_iter().for_each(|message| self.problem("attr", message));
        attributes
    }
}

/// Quotes keep blanks around a value.
fn unquoted(value: &str) -> &str {
    value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value)
}

fn trace_id_start(text: &str) -> Result<String, String> {
    let text = text.trim().to_ascii_lowercase();
    let is_hex = text.len() <= 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then_some(text).ok_or_else(|| "a trace id has up to 32 hexadecimal digits".to_owned())
}

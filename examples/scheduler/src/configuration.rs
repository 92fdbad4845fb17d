//! What a scheduler decides by: the document that the operator writes and the scheduler reads, and the same as plugins.
//!
//! *Guarantees.* Both check the same rules, and tell all that is wrong at once. A document carries a hash of itself, its revision: one that
//! was changed by hand, or that has something that its reader does not know, is refused as a whole.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    api::{Backoff, SchedulerSpec, ScorePlugin},
    plugin::{FILTERS, Filter, LABEL, Label, SCORES, Score},
    queue,
};

/// Where the document is in its ConfigMap.
pub const KEY: &str = "configuration.json";
/// As many plugins of a sort.
const PLUGINS: usize = 16;
/// No weight is larger: 16 plugins of 100 points stay far from any limit.
const WEIGHT: i64 = 100;
/// An hour.
const LONGEST: i64 = 3600;

/// As it is written.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Document {
    /// A hash of the rest.
    pub revision: String,
    /// The filter plugins.
    pub filters: Vec<String>,
    /// The score plugins.
    pub scores: Vec<ScorePlugin>,
    /// How long a pod that fits nowhere waits.
    pub backoff: Backoff,
}

/// As the scheduler works with it.
pub struct Configuration {
    /// Which one it is.
    pub revision: String,
    /// In the order in which they are asked.
    pub filters: Vec<(&'static str, &'static dyn Filter)>,
    /// All of them.
    pub scores: Vec<Scorer>,
    /// How long a pod that fits nowhere waits at least.
    pub backoff: queue::Backoff,
}

/// A score plugin with its weight.
pub struct Scorer {
    /// Its name.
    pub name: &'static str,
    /// Its points count so often.
    pub weight: i64,
    /// The label that it looks for, if it does.
    pub label: Option<Label>,
    plugin: Option<&'static dyn Score>,
}

impl Scorer {
    /// The plugin itself.
    pub fn plugin(&self) -> Option<&dyn Score> {
        self.plugin.or_else(|| self.label.as_ref().map(|label| label as &dyn Score))
    }
}

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    path: String,
    what: String,
}

impl Problem {
    /// Says so.
    pub fn new(path: impl Into<String>, what: impl Into<String>) -> Self {
        Self { path: path.into(), what: what.into() }
    }

    /// The same, seen from further out.
    pub fn within(&self, outer: &str) -> Self {
        Self { path: format!("{outer}.{}", self.path), what: self.what.clone() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.what)
    }
}

/// Why a document is not taken.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// It is no such document at all.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// Somebody changed it by hand, or whoever wrote it knows more.
    #[error("its content is not that of revision {0:?}: only the operator writes it")]
    Changed(String),
    /// It asks for what there is not.
    #[error("{}", list(.0))]
    Wrong(Vec<Problem>),
}

/// All of them in one line.
pub fn list(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("; ")
}

impl Document {
    /// What a resource asks for.
    pub fn of(spec: &SchedulerSpec) -> Self {
        let mut document = Self {
            revision: String::new(),
            filters: spec.filters.clone(),
            scores: spec.scores.clone(),
            backoff: spec.backoff,
        };
        document.revision = document.hash();
        document
    }

    /// As text.
    pub fn text(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }

    /// Reads a document as the scheduler does.
    pub fn read(text: &str) -> Result<Configuration, Refusal> {
        let document: Self = serde_json::from_str(text)?;
        if document.hash() != document.revision {
            return Err(Refusal::Changed(document.revision));
        }
        document.check().map_err(Refusal::Wrong)
    }

    /// The revision that a text says it is, however wrong the rest may be.
    pub fn revision_of(text: &str) -> String {
        let value: Option<serde_json::Value> = serde_json::from_str(text).ok();
        let revision = value.as_ref().and_then(|value| value.get("revision")?.as_str());
        revision.unwrap_or("unknown").chars().take(64).collect()
    }

    /// The plugins of it, or all that is wrong with it.
    pub fn check(&self) -> Result<Configuration, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut note = |path: String, what: String| problems.push(Problem { path, what });
        let filters = self.filters(&mut note);
        let scores = self.scores(&mut note);
        let backoff = self.backoff(&mut note);
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Configuration { revision: self.revision.clone(), filters, scores, backoff })
    }

    fn filters(&self, note: &mut impl FnMut(String, String)) -> Vec<(&'static str, &'static dyn Filter)> {
        too_many("filters", self.filters.len(), note);
        let mut found: Vec<(&'static str, &'static dyn Filter)> = Vec::new();
        for (index, name) in self.filters.iter().take(PLUGINS).enumerate() {
            let path = format!("filters[{index}]");
            match FILTERS.into_iter().find(|(known, _)| known == name) {
                None => note(path, unknown("filter", name, FILTERS.iter().map(|(known, _)| *known))),
                Some((name, _)) if found.iter().any(|(other, _)| *other == name) => {
                    note(path, format!("{name} is there twice"));
                }
                Some(plugin) => found.push(plugin),
            }
        }
        found
    }

    fn scores(&self, note: &mut impl FnMut(String, String)) -> Vec<Scorer> {
        too_many("scores", self.scores.len(), note);
        let mut found: Vec<Scorer> = Vec::new();
        for (index, asked) in self.scores.iter().take(PLUGINS).enumerate() {
            let path = format!("scores[{index}]");
            if !(1..=WEIGHT).contains(&asked.weight) {
                note(format!("{path}.weight"), format!("{} is not from 1 to {WEIGHT}", asked.weight));
            }
            match scorer(asked) {
                Err((field, what)) => note(format!("{path}.{field}"), what),
                Ok(scorer) if found.iter().any(|other| other.name == scorer.name && other.label == scorer.label) => {
                    note(path, format!("{} is there twice: give one of them the sum of the weights", scorer.name));
                }
                Ok(scorer) => found.push(scorer),
            }
        }
        found
    }

    fn backoff(&self, note: &mut impl FnMut(String, String)) -> queue::Backoff {
        let Backoff { initial_seconds, max_seconds } = self.backoff;
        for (name, seconds) in [("initialSeconds", initial_seconds), ("maxSeconds", max_seconds)] {
            if !(1..=LONGEST).contains(&seconds) {
                note(format!("backoff.{name}"), format!("{seconds} is not from 1 to {LONGEST}"));
            }
        }
        if initial_seconds > max_seconds {
            note(
                "backoff".to_owned(),
                format!("it begins with {initial_seconds} s, more than its most, {max_seconds} s"),
            );
        }
        let seconds = |seconds: i64| Duration::from_secs(seconds.unsigned_abs());
        queue::Backoff { first: seconds(initial_seconds), most: seconds(max_seconds) }
    }

    fn hash(&self) -> String {
        let rest = Self { revision: String::new(), ..self.clone() };
        // A document of strings and numbers is always text.
        let text = serde_json::to_vec(&rest).unwrap_or_default();
        format!("{:016x}", xxh3_64(&text)).split_off(6)
    }
}

fn scorer(asked: &ScorePlugin) -> Result<Scorer, (&'static str, String)> {
    let weight = asked.weight;
    if asked.name == LABEL {
        let text = asked.label.as_deref().ok_or_else(|| ("label", format!("{LABEL} needs one, such as disk=ssd")))?;
        let label = Label::parse(text).map_err(|what| ("label", what))?;
        return Ok(Scorer { name: LABEL, weight, label: Some(label), plugin: None });
    }
    let known = || SCORES.iter().map(|(known, _)| *known).chain([LABEL]);
    let plugin = SCORES.into_iter().find(|(known, _)| *known == asked.name);
    let (name, plugin) = plugin.ok_or_else(|| ("name", unknown("score", &asked.name, known())))?;
    if asked.label.is_some() {
        return Err(("label", format!("{name} has none, only {LABEL} has")));
    }
    Ok(Scorer { name, weight, label: None, plugin: Some(plugin) })
}

fn too_many(path: &str, count: usize, note: &mut impl FnMut(String, String)) {
    if count > PLUGINS {
        note(path.to_owned(), format!("{count} plugins are too many, {PLUGINS} are allowed"));
    }
}

fn unknown(sort: &str, name: &str, known: impl Iterator<Item = &'static str>) -> String {
    let name: String = name.chars().take(63).collect();
    format!("unknown {sort} plugin {name:?}; known are {}", known.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests;

//! The configuration of a scheduler: the document that the operator writes and the scheduler reads, and the
//! plugins that it resolves to.
//!
//! *Guaranteed*: both sides check the same rules, and report all problems at once. A document carries a hash of
//! itself, its revision: a document that was changed by hand, or that has a field unknown to its reader, is
//! rejected as a whole.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    api::{BackoffSpec, SchedulerSpec, ScorePlugin},
    plugin::{FILTER_PLUGINS, FilterPlugin, LabelPreference, NODE_LABEL, SCORE_PLUGINS, ScoringPlugin},
    queue,
};

/// The key of the document in its ConfigMap.
pub const CONFIGURATION_KEY: &str = "configuration.json";
/// The most plugins of each type.
const MAX_PLUGINS: usize = 16;
/// The largest weight: 16 plugins of 100 points each stay far from an overflow.
const MAX_WEIGHT: i64 = 100;
const MAX_BACKOFF_SECONDS: i64 = 3600;

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConfigurationDocument {
    /// A hash of the other fields.
    pub revision: String,
    pub filters: Vec<String>,
    pub scores: Vec<ScorePlugin>,
    /// The backoff of a pod that fits on no node.
    pub backoff: BackoffSpec,
}

/// The configuration with its plugins resolved.
pub struct SchedulerConfiguration {
    pub revision: String,
    /// In the order in which they run.
    pub filters: Vec<(&'static str, &'static dyn FilterPlugin)>,
    pub scores: Vec<WeightedScorePlugin>,
    /// The backoff of a pod that fits on no node.
    pub backoff: queue::PodBackoff,
}

pub struct WeightedScorePlugin {
    pub name: &'static str,
    /// The factor of its points.
    pub weight: i64,
    /// The label that a `NodeLabel` plugin prefers.
    pub label: Option<LabelPreference>,
    plugin: Option<&'static dyn ScoringPlugin>,
}

impl WeightedScorePlugin {
    pub fn plugin(&self) -> Option<&dyn ScoringPlugin> {
        self.plugin.or_else(|| self.label.as_ref().map(|label| label as &dyn ScoringPlugin))
    }
}

/// A problem and the path of its field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigurationProblem {
    path: String,
    what: String,
}

impl ConfigurationProblem {
    pub fn new(path: impl Into<String>, what: impl Into<String>) -> Self {
        Self { path: path.into(), what: what.into() }
    }

    /// The same problem with a longer path.
    pub fn prefixed_with(&self, outer: &str) -> Self {
        Self { path: format!("{outer}.{}", self.path), what: self.what.clone() }
    }
}

impl fmt::Display for ConfigurationProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.what)
    }
}

/// The reason why a document is rejected.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// The document cannot be parsed.
    #[error("failed to parse the configuration: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// The revision does not match: the document was changed by hand or written by a newer version.
    #[error("the content does not match revision {0:?}: only the operator may write the configuration")]
    RevisionMismatch(String),
    /// The document is not valid.
    #[error("{}", join_problems(.0))]
    Invalid(Vec<ConfigurationProblem>),
}

/// Joins all problems into one line.
pub fn join_problems(problems: &[ConfigurationProblem]) -> String {
    problems.iter().map(ConfigurationProblem::to_string).collect::<Vec<_>>().join("; ")
}

impl ConfigurationDocument {
    /// Builds the document for a Scheduler.
    pub fn from_spec(spec: &SchedulerSpec) -> Self {
        let mut document = Self {
            revision: String::new(),
            filters: spec.filters.clone(),
            scores: spec.scores.clone(),
            backoff: spec.backoff,
        };
        document.revision = document.hash();
        document
    }

    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }

    /// Parses and validates a document.
    pub fn parse(text: &str) -> Result<SchedulerConfiguration, ConfigurationError> {
        let document: Self = serde_json::from_str(text)?;
        if document.hash() != document.revision {
            return Err(ConfigurationError::RevisionMismatch(document.revision));
        }
        document.resolve().map_err(ConfigurationError::Invalid)
    }

    /// The revision that a text claims to be, however invalid the rest is.
    pub fn claimed_revision(text: &str) -> String {
        let value: Option<serde_json::Value> = serde_json::from_str(text).ok();
        let revision = value.as_ref().and_then(|value| value.get("revision")?.as_str());
        revision.unwrap_or("unknown").chars().take(64).collect()
    }

    /// Resolves the plugins, or returns all problems.
    pub fn resolve(&self) -> Result<SchedulerConfiguration, Vec<ConfigurationProblem>> {
        let mut problems = Vec::new();
        let mut note = |path: String, what: String| problems.push(ConfigurationProblem { path, what });
        let filters = self.resolve_filters(&mut note);
        let scores = self.resolve_scores(&mut note);
        let backoff = self.resolve_backoff(&mut note);
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(SchedulerConfiguration { revision: self.revision.clone(), filters, scores, backoff })
    }

    fn resolve_filters(&self, note: &mut impl FnMut(String, String)) -> Vec<(&'static str, &'static dyn FilterPlugin)> {
        check_plugin_count("filters", self.filters.len(), note);
        let mut found: Vec<(&'static str, &'static dyn FilterPlugin)> = Vec::new();
        for (index, name) in self.filters.iter().take(MAX_PLUGINS).enumerate() {
            let path = format!("filters[{index}]");
            match FILTER_PLUGINS.into_iter().find(|(known, _)| known == name) {
                None => {
                    note(path, unknown_plugin_message("filter", name, FILTER_PLUGINS.iter().map(|(known, _)| *known)))
                }
                Some((name, _)) if found.iter().any(|(other, _)| *other == name) => {
                    note(path, format!("{name} is listed twice"));
                }
                Some(plugin) => found.push(plugin),
            }
        }
        found
    }

    fn resolve_scores(&self, note: &mut impl FnMut(String, String)) -> Vec<WeightedScorePlugin> {
        check_plugin_count("scores", self.scores.len(), note);
        let mut found: Vec<WeightedScorePlugin> = Vec::new();
        for (index, asked) in self.scores.iter().take(MAX_PLUGINS).enumerate() {
            let path = format!("scores[{index}]");
            if !(1..=MAX_WEIGHT).contains(&asked.weight) {
                note(format!("{path}.weight"), format!("{} is not from 1 to {MAX_WEIGHT}", asked.weight));
            }
            match resolve_score_plugin(asked) {
                Err((field, what)) => note(format!("{path}.{field}"), what),
                Ok(scorer) if found.iter().any(|other| other.name == scorer.name && other.label == scorer.label) => {
                    note(path, format!("{} is listed twice: keep one entry with the sum of the weights", scorer.name));
                }
                Ok(scorer) => found.push(scorer),
            }
        }
        found
    }

    fn resolve_backoff(&self, note: &mut impl FnMut(String, String)) -> queue::PodBackoff {
        let BackoffSpec { initial_seconds, max_seconds } = self.backoff;
        for (name, seconds) in [("initialSeconds", initial_seconds), ("maxSeconds", max_seconds)] {
            if !(1..=MAX_BACKOFF_SECONDS).contains(&seconds) {
                note(format!("backoff.{name}"), format!("{seconds} is not from 1 to {MAX_BACKOFF_SECONDS}"));
            }
        }
        if initial_seconds > max_seconds {
            note(
                "backoff".to_owned(),
                format!("initialSeconds {initial_seconds} is more than maxSeconds {max_seconds}"),
            );
        }
        let seconds = |seconds: i64| Duration::from_secs(seconds.unsigned_abs());
        queue::PodBackoff { initial: seconds(initial_seconds), max: seconds(max_seconds) }
    }

    fn hash(&self) -> String {
        let rest = Self { revision: String::new(), ..self.clone() };
        // Strings and numbers always serialize.
        let text = serde_json::to_vec(&rest).unwrap_or_default();
        format!("{:016x}", xxh3_64(&text)).split_off(6)
    }
}

fn resolve_score_plugin(asked: &ScorePlugin) -> Result<WeightedScorePlugin, (&'static str, String)> {
    let weight = asked.weight;
    if asked.name == NODE_LABEL {
        let text =
            asked.label.as_deref().ok_or_else(|| ("label", format!("{NODE_LABEL} needs a label, such as disk=ssd")))?;
        let label = LabelPreference::parse(text).map_err(|what| ("label", what))?;
        return Ok(WeightedScorePlugin { name: NODE_LABEL, weight, label: Some(label), plugin: None });
    }
    let known = || SCORE_PLUGINS.iter().map(|(known, _)| *known).chain([NODE_LABEL]);
    let plugin = SCORE_PLUGINS.into_iter().find(|(known, _)| *known == asked.name);
    let (name, plugin) = plugin.ok_or_else(|| ("name", unknown_plugin_message("score", &asked.name, known())))?;
    if asked.label.is_some() {
        return Err(("label", format!("{name} takes no label, only {NODE_LABEL} does")));
    }
    Ok(WeightedScorePlugin { name, weight, label: None, plugin: Some(plugin) })
}

fn check_plugin_count(path: &str, count: usize, note: &mut impl FnMut(String, String)) {
    if count > MAX_PLUGINS {
        note(path.to_owned(), format!("{count} plugins are too many: at most {MAX_PLUGINS} are allowed"));
    }
}

fn unknown_plugin_message(sort: &str, name: &str, known: impl Iterator<Item = &'static str>) -> String {
    let name: String = name.chars().take(63).collect();
    format!("unknown {sort} plugin {name:?}; known plugins are {}", known.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests;

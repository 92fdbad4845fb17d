//! Preference for a node label.

use std::fmt;

use kube::ResourceExt;

use super::{MAX_NODE_SCORE, PodInfo, ScoringPlugin};
use crate::cluster::NodeAllocation;

/// Prefers nodes that have the label, with the value if one is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelPreference {
    key: String,
    value: Option<String>,
}

impl LabelPreference {
    /// Parses `key` or `key=value`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (key, value) = match text.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (text, None),
        };
        let (prefix, name) = key.rsplit_once('/').unwrap_or(("", key));
        let is_word = |text: &str, most: usize, inside: &[u8]| {
            let bytes = text.as_bytes();
            let ends = |end: Option<&u8>| end.is_some_and(u8::is_ascii_alphanumeric);
            bytes.len() <= most
                && ends(bytes.first())
                && ends(bytes.last())
                && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || inside.contains(byte))
        };
        let has_prefix = key.contains('/');
        if !is_word(name, 63, b"-_.") || (has_prefix && !is_word(prefix, 253, b"-.")) {
            return Err(format!("{key:?} is not a label key: write for example `disk=ssd` or `example.com/disk=ssd`"));
        }
        if value.is_some_and(|value| !value.is_empty() && !is_word(value, 63, b"-_.")) {
            return Err(format!("{:?} is not a label value", value.unwrap_or_default()));
        }
        Ok(Self { key: key.to_owned(), value: value.map(str::to_owned) })
    }
}

impl fmt::Display for LabelPreference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{}={value}", self.key),
            None => f.write_str(&self.key),
        }
    }
}

impl ScoringPlugin for LabelPreference {
    fn score_nodes(&self, _: &PodInfo<'_>, allocations: &[&NodeAllocation]) -> Vec<i64> {
        let has = |allocation: &&NodeAllocation| {
            let found = allocation.node.labels().get(&self.key);
            found.is_some_and(|found| self.value.as_ref().is_none_or(|value| value == found))
        };
        allocations.iter().map(|allocation| if has(allocation) { MAX_NODE_SCORE } else { 0 }).collect()
    }
}

//! What each document says of each pipeline: as a number, by which a collector that has read another document is known to do what this one says of it; and which
//! pipeline it is of all that have had its name.

use std::collections::{BTreeMap, VecDeque};

use kubewake_config::fingerprint;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use super::judge::Tier;

/// So many documents back it is known what they say. A collector that is behind is a few behind.
const KNOWN: usize = 16;

/// By the pipeline's id.
pub type Sections = BTreeMap<String, Section>;

/// What is said of a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// A number that stands for all of it.
    pub print: u64,
    /// The uid of its resource.
    pub uid: Option<String>,
}

/// The documents of both tiers: which one is wanted, and what the last ones say.
#[derive(Debug, Default)]
pub struct Documents {
    wanted: BTreeMap<Tier, String>,
    known: VecDeque<(String, Sections)>,
}

impl Documents {
    /// This is what the collectors of a tier are to read.
    pub fn want(&mut self, tier: Tier, text: Option<&str>) {
        let Some(text) = text else {
            self.wanted.remove(&tier);
            return;
        };
        let hash = fingerprint(text);
        if self.sections(&hash).is_none() {
            self.known.push_back((hash.clone(), sections(text)));
            while self.known.len() > KNOWN {
                self.known.pop_front();
            }
        }
        self.wanted.insert(tier, hash);
    }

    /// The hash of what the collectors of a tier are to read, and what it says.
    pub fn wanted(&self, tier: Tier) -> Option<(&str, &Sections)> {
        let hash = self.wanted.get(&tier)?;
        Some((hash, self.sections(hash)?))
    }

    /// What a document says, if it is known.
    pub fn sections(&self, hash: &str) -> Option<&Sections> {
        self.known.iter().find(|(known, _)| known == hash).map(|(_, sections)| sections)
    }
}

/// What a document says of each pipeline: its line in the service, and all components that it names.
fn sections(text: &str) -> Sections {
    // It is a document that the operator wrote.
    let document: Value = serde_saphyr::from_str(text).unwrap_or_default();
    let pipelines = document.pointer("/service/pipelines").and_then(Value::as_object).into_iter().flatten();
    pipelines.map(|(id, pipeline)| (id.clone(), section(&document, pipeline))).collect()
}

fn section(document: &Value, pipeline: &Value) -> Section {
    let mut parts = vec![pipeline.clone()];
    for kind in ["receivers", "processors", "exporters"] {
        let ids = pipeline.get(kind).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        parts.extend(ids.filter_map(|id| document.get(kind)?.get(id)).cloned());
    }
    let authenticators = parts.iter().filter_map(|part| part.pointer("/auth/authenticator")?.as_str());
    let extensions: Vec<Value> = authenticators.filter_map(|id| document.get("extensions")?.get(id)).cloned().collect();
    parts.extend(extensions);
    let print = xxh3_64(Value::Array(parts).to_string().as_bytes());
    Section { print, uid: pipeline.get("uid").and_then(Value::as_str).map(str::to_owned) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "
extensions: {basicauth/traces-a: {username: a}, health_check: {}}
receivers: {otlp: {}}
processors: {memory_limiter: {limit: 1}}
exporters:
  otlp_grpc/traces-a: {endpoint: a, auth: {authenticator: basicauth/traces-a}}
  otlp_grpc/traces-b: {endpoint: b}
service:
  pipelines:
    traces/a: {receivers: [otlp], processors: [memory_limiter], exporters: [otlp_grpc/traces-a]}
    traces/b: {receivers: [otlp], processors: [memory_limiter], exporters: [otlp_grpc/traces-b], uid: one}
";

    /// The pipelines of which something else is said.
    fn changed(from: &str, to: &str) -> Vec<String> {
        let (before, after) = (sections(DOCUMENT), sections(&DOCUMENT.replace(from, to)));
        assert_eq!(before.len(), 2);
        before.into_iter().filter(|(id, section)| after.get(id) != Some(section)).map(|(id, _)| id).collect()
    }

    #[test]
    fn a_change_concerns_the_pipelines_that_it_is_about() {
        assert_eq!(changed("endpoint: a", "endpoint: c"), ["traces/a"]);
        assert_eq!(changed("username: a", "username: b"), ["traces/a"], "its credentials are its own");
        assert_eq!(changed("endpoint: b", "endpoint: c"), ["traces/b"]);
        assert_eq!(changed("uid: one", "uid: two"), ["traces/b"], "it is another one of its name");
        assert_eq!(changed("limit: 1", "limit: 2"), ["traces/a", "traces/b"], "what is shared is everybody's");
        assert_eq!(changed("health_check: {}", "health_check: {endpoint: x}"), [""; 0], "and some things nobody's");
    }

    #[test]
    fn only_the_last_documents_are_known() {
        let mut documents = Documents::default();
        let text = |i: usize| DOCUMENT.replace("limit: 1", &format!("limit: {i}"));
        for i in 0..=KNOWN {
            documents.want(Tier::Gateway, Some(&text(i)));
        }
        assert!(documents.sections(&fingerprint(&text(0))).is_none());
        assert!(documents.sections(&fingerprint(&text(1))).is_some());
        assert_eq!(documents.wanted(Tier::Gateway).unwrap().0, fingerprint(&text(KNOWN)));
        documents.want(Tier::Gateway, None);
        assert!(documents.wanted(Tier::Gateway).is_none() && documents.wanted(Tier::Sticky).is_none());
    }
}

//! The sections of pipelines in recent documents. Their fingerprints show whether a collector that has read
//! another document treats a pipeline as the current one does; their uids tell pipelines of the same name
//! apart.

use std::collections::{BTreeMap, VecDeque};

use kubewake_config::fingerprint;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use super::health_assessment::CollectorTier;

/// Documents whose sections are kept. A collector that lags is a few documents behind.
const MAX_KNOWN_DOCUMENTS: usize = 16;

pub type SectionsById = BTreeMap<String, SectionSummary>;

/// The section of one pipeline in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionSummary {
    /// A hash of the whole section.
    pub fingerprint: u64,
    /// The uid of the pipeline's resource.
    pub uid: Option<String>,
}

/// The desired document of each tier, and the sections of recent ones.
#[derive(Debug, Default)]
pub struct DocumentHistory {
    desired: BTreeMap<CollectorTier, String>,
    known: VecDeque<(String, SectionsById)>,
}

impl DocumentHistory {
    /// Sets the document that the collectors of a tier should read.
    pub fn set_desired(&mut self, tier: CollectorTier, text: Option<&str>) {
        let Some(text) = text else {
            self.desired.remove(&tier);
            return;
        };
        let hash = fingerprint(text);
        if self.sections_of_hash(&hash).is_none() {
            self.known.push_back((hash.clone(), parse_sections(text)));
            while self.known.len() > MAX_KNOWN_DOCUMENTS {
                self.known.pop_front();
            }
        }
        self.desired.insert(tier, hash);
    }

    /// The hash and sections of a tier's desired document.
    pub fn wanted(&self, tier: CollectorTier) -> Option<(&str, &SectionsById)> {
        let hash = self.desired.get(&tier)?;
        Some((hash, self.sections_of_hash(hash)?))
    }

    /// The sections of the document with this hash, if it is known.
    pub fn sections_of_hash(&self, hash: &str) -> Option<&SectionsById> {
        self.known.iter().find(|(known, _)| known == hash).map(|(_, sections)| sections)
    }
}

/// The sections of a document: for each pipeline its entry in `service`, and all components that it names.
fn parse_sections(text: &str) -> SectionsById {
    // The operator wrote the document, so it can be parsed.
    let document: Value = serde_saphyr::from_str(text).unwrap_or_default();
    let pipelines = document.pointer("/service/pipelines").and_then(Value::as_object).into_iter().flatten();
    pipelines.map(|(id, pipeline)| (id.clone(), summarize_section(&document, pipeline))).collect()
}

fn summarize_section(document: &Value, pipeline: &Value) -> SectionSummary {
    let mut parts = vec![pipeline.clone()];
    for kind in ["receivers", "processors", "exporters"] {
        let ids = pipeline.get(kind).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        parts.extend(ids.filter_map(|id| document.get(kind)?.get(id)).cloned());
    }
    let authenticators = parts.iter().filter_map(|part| part.pointer("/auth/authenticator")?.as_str());
    let extensions: Vec<Value> = authenticators.filter_map(|id| document.get("extensions")?.get(id)).cloned().collect();
    parts.extend(extensions);
    let print = xxh3_64(Value::Array(parts).to_string().as_bytes());
    SectionSummary { fingerprint: print, uid: pipeline.get("uid").and_then(Value::as_str).map(str::to_owned) }
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

    /// The pipelines whose sections differ.
    fn changed(from: &str, to: &str) -> Vec<String> {
        let before = parse_sections(DOCUMENT);
        let after = parse_sections(&DOCUMENT.replace(from, to));
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
        let mut documents = DocumentHistory::default();
        let text = |i: usize| DOCUMENT.replace("limit: 1", &format!("limit: {i}"));
        for i in 0..=MAX_KNOWN_DOCUMENTS {
            documents.set_desired(CollectorTier::Gateway, Some(&text(i)));
        }
        assert!(documents.sections_of_hash(&fingerprint(&text(0))).is_none());
        assert!(documents.sections_of_hash(&fingerprint(&text(1))).is_some());
        assert_eq!(documents.wanted(CollectorTier::Gateway).unwrap().0, fingerprint(&text(MAX_KNOWN_DOCUMENTS)));
        documents.set_desired(CollectorTier::Gateway, None);
        assert!(
            documents.wanted(CollectorTier::Gateway).is_none() && documents.wanted(CollectorTier::Sticky).is_none()
        );
    }
}

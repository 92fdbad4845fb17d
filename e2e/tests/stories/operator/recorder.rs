//! Sees every revision of locks and documents.

use std::collections::BTreeSet;

use kubewake_e2e::{
    operator::{OPERATOR_NAMESPACE, OperatorCluster},
    process::ChildProcess,
    wait_until,
};
use serde_json::Value;

const LOCK: &str = "kubewake-tracepipeline-lock";
const DOCUMENT: &str = "kubewake-gateway";

/// Somebody who watches all ConfigMaps that the operator makes: one watch, so that everything comes in the
/// order in which it happened.
pub(super) struct Recorder(ChildProcess);

/// What was seen, in words, and who was active at the end.
#[derive(Debug, Default)]
pub(super) struct Record {
    /// How many revisions of the lock there were.
    pub(super) locks: usize,
    /// How many revisions of the document there were.
    pub(super) documents: usize,
    /// Those that were active at some time.
    pub(super) active: BTreeSet<String>,
    /// Who holds the slot at the end.
    pub(super) holder: Option<String>,
}

impl Recorder {
    pub(super) fn start(operated: &OperatorCluster) -> Self {
        let watch = "get configmaps -l telemetry.kubewake.io/part --watch --output-watch-events -o json";
        Self(operated.kubectl.follow(&format!("{watch} --namespace {OPERATOR_NAMESPACE}")))
    }

    /// Waits until it has seen that this one holds the slot.
    pub(super) fn until_holder(&self, who: impl Fn(&str) -> bool) {
        wait_until("the recorder sees the holder of the slot", || self.record().holder.as_deref().is_some_and(&who));
    }

    /// Everything so far. It fails where two were active, or one that holds no slot.
    pub(super) fn record(&self) -> Record {
        let text = self.0.stdout();
        let mut record = Record::default();
        // The last one may not be whole yet.
        for event in serde_json::Deserializer::from_str(&text).into_iter::<Value>().map_while(Result::ok) {
            record.see(&event);
        }
        record
    }
}

impl Record {
    fn see(&mut self, event: &Value) {
        let object = &event["object"];
        let is_gone = event["type"] == "DELETED";
        match object["metadata"]["name"].as_str() {
            Some(LOCK) if is_gone => self.holder = None,
            Some(LOCK) => {
                let owners = object["metadata"]["ownerReferences"].as_array().expect("a lock has owners");
                assert_eq!(owners.len(), 1, "one slot, one holder: {event}");
                let holder = owners[0]["name"].as_str().unwrap();
                self.active.insert(holder.to_owned());
                self.holder = Some(holder.to_owned());
                self.locks += 1;
            }
            Some(DOCUMENT) if !is_gone => {
                let text = object["data"]["collector.yaml"].as_str().expect("there is a document");
                let lines = text.lines().filter_map(|line| line.strip_prefix("    traces/")?.strip_suffix(':'));
                let pipelines: Vec<&str> = lines.collect();
                assert_eq!(
                    pipelines,
                    self.holder.iter().map(String::as_str).collect::<Vec<_>>(),
                    "the holder and nobody else: {event}"
                );
                self.documents += 1;
            }
            _ => {}
        }
    }
}

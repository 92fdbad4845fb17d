//! Cache of the pipelines' delivery health, as collectors report it. Only the polls write it.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Deref,
    sync::Arc,
};

use kubewake_api::{ConditionReason, DeliveryOutcome, RenderedDocument};
use kubewake_runtime::lock::Mutex;

use crate::{model::pipeline_key::PipelineKey, runtime::resync_trigger::ResyncTrigger};

/// The delivery health of one pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryHealth {
    /// The uid of the pipeline that it is about, if the document has it.
    pub uid: Option<String>,
    pub delivery: DeliveryOutcome,
    pub message: String,
    /// Whether the pipeline's section is in force at all collectors.
    pub rollout: RolloutState,
    /// The hashes of the documents that `rollout` is about, one for each tier that takes data for the pipeline. It
    /// does not apply to later ones.
    pub documents: BTreeSet<String>,
}

impl DeliveryHealth {
    /// Adds what is known from the collectors of another tier. What they deliver was assessed together.
    #[must_use]
    pub fn with_tier(mut self, other: Self) -> Self {
        self.rollout = self.rollout.with_tier(other.rollout);
        self.documents.extend(other.documents);
        self
    }
}

/// Whether a pipeline's section of the document is in force at the collectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RolloutState {
    /// No collector reports which document it has read.
    Unknown,
    /// It is in force at all collectors that answer.
    InForce,
    /// It is not in force at all of them: the reason, and the message.
    Incomplete(ConditionReason, String),
}

impl RolloutState {
    /// The state at the collectors of both tiers: the one with news first.
    fn with_tier(self, other: Self) -> Self {
        match (self, other) {
            (Self::Incomplete(reason, words), _) | (_, Self::Incomplete(reason, words)) => {
                Self::Incomplete(reason, words)
            }
            (Self::InForce, Self::InForce) => Self::InForce,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
        }
    }

    /// The reason why it is not in force at all collectors, if that is known.
    pub fn reason(&self) -> Option<ConditionReason> {
        match self {
            Self::Unknown | Self::InForce => None,
            Self::Incomplete(reason, _) => Some(*reason),
        }
    }
}

/// The hash of the document that a collector has read, if it reports one.
pub type ReadDocument = Option<String>;

/// Whether the collectors of a tier have read a document. Ordered by caution: of several the greatest
/// decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DocumentAgreement {
    /// At least one collector was observed, and all that were observed have read the document.
    All,
    /// No collector was observed, or one of them does not report which document it has read. Nothing may be
    /// removed because of it.
    Unknown,
    /// A collector reports that it has read another document.
    Behind,
}

/// The delivery health of all pipelines, and the document that each collector has read, for readers.
#[derive(Debug)]
pub struct DeliveryHealthCache {
    health: Mutex<BTreeMap<PipelineKey, DeliveryHealth>>,
    /// By the uid of the collector's pod.
    read_documents: Mutex<BTreeMap<String, ReadDocument>>,
    resync_trigger: ResyncTrigger,
}

/// The right to change a [`DeliveryHealthCache`], for the task that polls collectors.
#[derive(Debug)]
pub struct DeliveryHealthWriter(Arc<DeliveryHealthCache>);

impl Deref for DeliveryHealthWriter {
    type Target = DeliveryHealthCache;

    fn deref(&self) -> &DeliveryHealthCache {
        &self.0
    }
}

impl DeliveryHealthCache {
    /// The health of the pipeline with this uid; not that of another one that had its name before.
    pub fn health_of(&self, id: &PipelineKey, uid: &str) -> Option<DeliveryHealth> {
        let known = self.health.lock();
        known.get(id).filter(|verdict| verdict.uid.as_deref().is_none_or(|of| of == uid)).cloned()
    }

    /// Whether the collectors in the pods of these uids have read a document.
    pub fn document_agreement<'a>(
        &self,
        pods: impl IntoIterator<Item = &'a str>,
        document: &RenderedDocument,
    ) -> DocumentAgreement {
        let read = self.read_documents.lock();
        let of_pod = |uid: &str| match read.get(uid) {
            Some(Some(hash)) if *hash == document.hash => DocumentAgreement::All,
            Some(Some(_)) => DocumentAgreement::Behind,
            Some(None) | None => DocumentAgreement::Unknown,
        };
        pods.into_iter().map(of_pod).max().unwrap_or(DocumentAgreement::Unknown)
    }
}

impl DeliveryHealthWriter {
    /// An empty cache, whose changes notify the trigger.
    pub fn new(resync_trigger: ResyncTrigger) -> Self {
        let read_documents = Mutex::default();
        Self(Arc::new(DeliveryHealthCache { health: Mutex::default(), read_documents, resync_trigger }))
    }

    pub fn reader(&self) -> Arc<DeliveryHealthCache> {
        Arc::clone(&self.0)
    }

    /// Replaces the health of all pipelines.
    pub fn set_health(&self, all: BTreeMap<PipelineKey, DeliveryHealth>) {
        let mut known = self.health.lock();
        if *known != all {
            *known = all;
            self.resync_trigger.notify();
        }
    }

    /// Replaces the documents that collectors have read, by the uid of their pod, as the last round of polls
    /// found them.
    pub fn set_read_documents(&self, all: BTreeMap<String, ReadDocument>) {
        let mut read = self.read_documents.lock();
        if *read != all {
            *read = all;
            self.resync_trigger.notify();
        }
    }
}

#[cfg(test)]
mod tests {
    use kubewake_api::Signal;

    use super::*;

    #[test]
    fn a_verdict_is_about_one_of_all_who_have_a_name() {
        let verdicts = DeliveryHealthWriter::new(ResyncTrigger::default());
        let id = PipelineKey { signal: Signal::Traces, name: "a".to_owned() };
        let verdict = |uid: Option<&str>| DeliveryHealth {
            uid: uid.map(str::to_owned),
            delivery: DeliveryOutcome::DataDropped,
            message: String::new(),
            rollout: RolloutState::InForce,
            documents: BTreeSet::new(),
        };
        verdicts.set_health(BTreeMap::from([(id.clone(), verdict(Some("one")))]));
        assert!(verdicts.health_of(&id, "one").is_some());
        assert_eq!(verdicts.health_of(&id, "two"), None, "it is of the one before");
        verdicts.set_health(BTreeMap::from([(id.clone(), verdict(None))]));
        assert!(verdicts.health_of(&id, "two").is_some(), "a document that was written before does not say");
    }

    #[test]
    fn agreement_over_observed_pods_is_unknown_without_any() {
        let verdicts = DeliveryHealthWriter::new(ResyncTrigger::default());
        let document = RenderedDocument { yaml: String::new(), hash: "new".to_owned() };
        let read = |all: &[(&str, Option<&str>)]| {
            verdicts.set_read_documents(
                all.iter().map(|(uid, hash)| ((*uid).to_owned(), hash.map(str::to_owned))).collect(),
            );
        };
        let of = |pods: &[&str]| verdicts.document_agreement(pods.iter().copied(), &document);
        assert_eq!(of(&[]), DocumentAgreement::Unknown, "nobody was observed, and nobody was asked");
        assert_eq!(of(&["a"]), DocumentAgreement::Unknown, "it has not been asked yet");
        read(&[("a", Some("new"))]);
        assert_eq!(of(&["a"]), DocumentAgreement::All);
        assert_eq!(of(&[]), DocumentAgreement::Unknown, "what was asked before is not there any more");
        assert_eq!(of(&["a", "b"]), DocumentAgreement::Unknown, "one has come since");
        read(&[("a", Some("new")), ("b", None)]);
        assert_eq!(of(&["a", "b"]), DocumentAgreement::Unknown, "one does not say");
        read(&[("a", Some("new")), ("b", None), ("c", Some("old"))]);
        assert_eq!(of(&["a", "b", "c"]), DocumentAgreement::Behind, "one goes by another document, and says so");
    }
}

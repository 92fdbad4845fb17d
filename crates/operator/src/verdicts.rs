//! What the collectors' own figures say of each pipeline, for its status.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use kubewake_api::{Delivery, Document, Reason};

use crate::{bell::Bell, desk::Id};

/// What is known of one pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The uid of the pipeline that it is about, if the document says it.
    pub uid: Option<String>,
    /// How it delivers.
    pub delivery: Delivery,
    /// In words.
    pub message: String,
    /// Whether its section is in force everywhere.
    pub rollout: Rollout,
    /// The hash of the document that `rollout` is about. It says nothing of a later one.
    pub document: String,
}

/// Whether what the document says of a pipeline is in force at the collectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rollout {
    /// No collector says which document it goes by.
    Unknown,
    /// All collectors that answer do what the document says.
    InForce,
    /// Not at all of them: why, with words.
    Incomplete(Reason, String),
}

impl Rollout {
    /// Why it is not in force everywhere, if that is known.
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::Unknown | Self::InForce => None,
            Self::Incomplete(reason, _) => Some(*reason),
        }
    }
}

/// The hash of the document that a collector goes by; nothing, if it does not say.
pub type Read = Option<String>;

/// Whether the collectors of a tier go by a document. The order is that of caution: of several the last one decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Agreement {
    /// At least one collector was observed, and all that were observed go by the document.
    All,
    /// No collector was observed, or one of them does not say by which document it goes. Nothing may be removed because of it.
    Unknown,
    /// A collector says that it goes by another document.
    Behind,
}

/// What is known of all pipelines.
#[derive(Debug)]
pub struct Verdicts {
    known: Mutex<BTreeMap<Id, Verdict>>,
    /// By the uid of the collector's pod.
    read: Mutex<BTreeMap<String, Read>>,
    bell: Bell,
}

impl Verdicts {
    /// Nothing yet. The bell rings when that changes.
    pub fn new(bell: Bell) -> Self {
        Self { known: Mutex::default(), read: Mutex::default(), bell }
    }

    /// What is known now of all pipelines.
    pub fn set(&self, all: BTreeMap<Id, Verdict>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if *known != all {
            *known = all;
            self.bell.ring();
        }
    }

    /// What is known of the one of this uid. What is known of another that had its name before is not about this one.
    pub fn get(&self, id: &Id, uid: &str) -> Option<Verdict> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(id).filter(|verdict| verdict.uid.as_deref().is_none_or(|of| of == uid)).cloned()
    }

    /// The documents by which collectors go, by the uid of their pod: what the last round of questions found.
    pub fn note_read(&self, all: BTreeMap<String, Read>) {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if *read != all {
            *read = all;
            self.bell.ring();
        }
    }

    /// Whether the collectors in the pods of these uids go by a document.
    pub fn agreement<'a>(&self, pods: impl IntoIterator<Item = &'a str>, document: &Document) -> Agreement {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let of_pod = |uid: &str| match read.get(uid) {
            Some(Some(hash)) if *hash == document.hash => Agreement::All,
            Some(Some(_)) => Agreement::Behind,
            Some(None) | None => Agreement::Unknown,
        };
        pods.into_iter().map(of_pod).max().unwrap_or(Agreement::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use kubewake_api::Signal;

    use super::*;

    #[test]
    fn a_verdict_is_about_one_of_all_who_have_a_name() {
        let (verdicts, id) = (Verdicts::new(Bell::default()), Id { signal: Signal::Traces, name: "a".to_owned() });
        let verdict = |uid: Option<&str>| Verdict {
            uid: uid.map(str::to_owned),
            delivery: Delivery::DataDropped,
            message: String::new(),
            rollout: Rollout::InForce,
            document: String::new(),
        };
        verdicts.set(BTreeMap::from([(id.clone(), verdict(Some("one")))]));
        assert!(verdicts.get(&id, "one").is_some());
        assert_eq!(verdicts.get(&id, "two"), None, "it is of the one before");
        verdicts.set(BTreeMap::from([(id.clone(), verdict(None))]));
        assert!(verdicts.get(&id, "two").is_some(), "a document that was written before does not say");
    }

    #[test]
    fn agreement_over_observed_pods_is_unknown_without_any() {
        let verdicts = Verdicts::new(Bell::default());
        let document = Document { yaml: String::new(), hash: "new".to_owned() };
        let read = |all: &[(&str, Option<&str>)]| {
            verdicts.note_read(all.iter().map(|(uid, hash)| ((*uid).to_owned(), hash.map(str::to_owned))).collect());
        };
        let of = |pods: &[&str]| verdicts.agreement(pods.iter().copied(), &document);
        assert_eq!(of(&[]), Agreement::Unknown, "nobody was observed, and nobody was asked");
        assert_eq!(of(&["a"]), Agreement::Unknown, "it has not been asked yet");
        read(&[("a", Some("new"))]);
        assert_eq!(of(&["a"]), Agreement::All);
        assert_eq!(of(&[]), Agreement::Unknown, "what was asked before is not there any more");
        assert_eq!(of(&["a", "b"]), Agreement::Unknown, "one has come since");
        read(&[("a", Some("new")), ("b", None)]);
        assert_eq!(of(&["a", "b"]), Agreement::Unknown, "one does not say");
        read(&[("a", Some("new")), ("b", None), ("c", Some("old"))]);
        assert_eq!(of(&["a", "b", "c"]), Agreement::Behind, "one goes by another document, and says so");
    }
}

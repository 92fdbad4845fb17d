//! What the collectors' own figures say of each pipeline, for its status.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
};

use kubewake_api::{Delivery, Document, Reason};

use crate::{bell::Bell, delivery::judge::Tier, desk::Id};

/// What is known of one pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The uid of the pipeline that it is about, if the document says it.
    pub uid: Option<String>,
    /// How it delivers.
    pub delivery: Delivery,
    /// In words.
    pub message: String,
    /// Why its section is not in force everywhere, with words, if it is not.
    pub rollout: Option<(Reason, String)>,
}

/// The hash of the document that a collector goes by; nothing, if it does not say.
pub type Read = Option<String>;

/// What is known of all pipelines.
#[derive(Debug)]
pub struct Verdicts {
    known: Mutex<BTreeMap<Id, Verdict>>,
    read: Mutex<Option<BTreeMap<Tier, BTreeSet<Read>>>>,
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

    /// What the collectors of each tier go by now, all of them.
    pub fn note_read(&self, all: BTreeMap<Tier, BTreeSet<Read>>) {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.as_ref() != Some(&all) {
            *read = Some(all);
            self.bell.ring();
        }
    }

    /// Whether all collectors of a tier go by this document; there must be none, if it is none. Those that do not say may be taken to: they are `given_up`.
    pub fn is_read(&self, tier: Tier, document: Option<&Document>, given_up: bool) -> bool {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let does = |read: &Read| match (read, document) {
            (Some(read), Some(document)) => *read == document.hash,
            (None, Some(_)) => given_up,
            (_, None) => false,
        };
        read.as_ref().is_some_and(|read| read.get(&tier).into_iter().flatten().all(does))
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
            rollout: None,
        };
        verdicts.set(BTreeMap::from([(id.clone(), verdict(Some("one")))]));
        assert!(verdicts.get(&id, "one").is_some());
        assert_eq!(verdicts.get(&id, "two"), None, "it is of the one before");
        verdicts.set(BTreeMap::from([(id.clone(), verdict(None))]));
        assert!(verdicts.get(&id, "two").is_some(), "a document that was written before does not say");
    }

    #[test]
    fn a_document_is_read_when_everybody_goes_by_it() {
        let verdicts = Verdicts::new(Bell::default());
        let [old, new] = ["old", "new"].map(|hash| Some(hash.to_owned()));
        let document = Document { yaml: String::new(), hash: "new".to_owned() };
        let is_read = |given_up| verdicts.is_read(Tier::Gateway, Some(&document), given_up);
        let after = |all: &[&Read], given_up| {
            verdicts.note_read(BTreeMap::from([(Tier::Gateway, all.iter().copied().cloned().collect())]));
            is_read(given_up)
        };
        assert!(!is_read(true), "nobody was asked");
        assert!(after(&[], false), "there is nobody");
        assert!(after(&[&new], false));
        assert!(!after(&[&new, &old], true), "one goes by another, and says so");
        assert!(!after(&[&new, &None], false) && after(&[&new, &None], true));
        assert!(!verdicts.is_read(Tier::Gateway, None, true), "those who should not be there are");
        assert!(verdicts.is_read(Tier::Sticky, None, false), "and nobody else");
    }
}

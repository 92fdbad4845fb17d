//! What the collectors' own figures say of each pipeline, for its status.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
};

use kubewake_api::{Delivery, Reason};

use crate::{bell::Bell, desk::Id};

/// What is known of one pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
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
    read: Mutex<Option<BTreeSet<Read>>>,
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

    /// What is known of one.
    pub fn get(&self, id: &Id) -> Option<Verdict> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// What the collectors that receive go by now, all of them.
    pub fn note_read(&self, all: BTreeSet<Read>) {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.as_ref() != Some(&all) {
            *read = Some(all);
            self.bell.ring();
        }
    }

    /// Whether all collectors that receive go by the document of this hash. Those that do not say may be taken to: they are `given_up`.
    pub fn is_read(&self, hash: &str, given_up: bool) -> bool {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let does = |read: &Read| read.as_ref().map_or(given_up, |read| read == hash);
        read.as_ref().is_some_and(|read| read.iter().all(does))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_read_when_everybody_goes_by_it() {
        let verdicts = Verdicts::new(Bell::default());
        let [old, new] = ["old", "new"].map(|hash| Some(hash.to_owned()));
        let after = |all: &[&Read], given_up| {
            verdicts.note_read(all.iter().copied().cloned().collect());
            verdicts.is_read("new", given_up)
        };
        assert!(!verdicts.is_read("new", true), "nobody was asked");
        assert!(after(&[], false), "there is nobody");
        assert!(after(&[&new], false));
        assert!(!after(&[&new, &old], true), "one goes by another, and says so");
        assert!(!after(&[&new, &None], false) && after(&[&new, &None], true));
    }
}
